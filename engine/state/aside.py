"""How urgent is what nobody waits for?  Less than whoever waits for an answer.

RocksDB compacts and tantivy merges in threads of their own, which never hold the interpreter and
are seldom waited for. On a busy machine they would take the processor from a thread that does hold
it, and everybody who posts or asks would wait for a compaction. A thread inherits its urgency from
the one that starts it: so the libraries are told to start theirs from one that stands aside.

Being nicer is a smaller share, and not a later turn: who has just got a core keeps it for some
milliseconds, whoever wakes meanwhile. So what can wait for any length of time runs only where
nobody else wants to (ADR 0044), and who is waited for asks for short turns: one with a shorter turn
need not wait for the end of a longer one (ADR 0052).
"""

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

NICER: Final = 10
"""A tenth of the processor, when somebody else wants all of it."""

TURN_NS: Final = 100_000
"""The shortest turn there is: a tenth of a millisecond."""
_SET_ATTRIBUTES: Final = {"x86_64": 314, "aarch64": 274}
"""The number of `sched_setattr`, of which neither Python nor the C library knows."""
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""Size, policy, flags, nice, priority, and three times, of which the first is the turn."""

Value = TypeVar("Value")


def stand_aside() -> None:
    """Lower the urgency of the calling thread, and of those it will start; for good."""
    if sys.platform == "linux":  # elsewhere a thread is as urgent as its process
        thread = threading.get_native_id()
        # Who was started with less urgency than this may not take more.
        nice = max(NICER, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, nice)


def stand_back() -> None:
    """Let the calling thread, and those it will start, run where nobody else wants to; for good.

    Anyone who wakes takes the core from it at once. With a single core that could be for ever:
    there it stands aside.
    """
    stand_aside()
    if sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:
        _be(os.SCHED_IDLE)


def push_nobody() -> None:
    """The calling thread wakes without taking a core from who has it; its share stays what it is.

    For one that holds what others wait for now and then: it must not be kept from it for long.
    """
    if sys.platform == "linux":
        _be(os.SCHED_BATCH)


def come_soon() -> None:
    """Let the calling thread have a core soon after it wakes, and no more of it than before.

    So do the threads that it starts. Linux knows of it since 6.12; elsewhere all is as it was.
    """
    number = _SET_ATTRIBUTES.get(platform.machine()) if sys.platform == "linux" else None
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, TURN_NS, 0, 0)
    # Where it is not allowed, its turn is as long as everybody's.
    ctypes.CDLL(None).syscall(number, 0, ctypes.c_char_p(wanted), 0)


def _be(policy: int) -> None:
    # Where it is not allowed, it is as urgent as it was.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(threading.get_native_id(), policy, os.sched_param(0))


def helper(count: int, name: str, stand: Callable[[], None] = stand_aside) -> ThreadPoolExecutor:
    """Threads that stand aside."""
    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=stand)


def aside(work: Callable[[], Value]) -> Value:
    """Do something in a thread that stands aside, and wait for it."""
    with helper(1, "aside") as one:
        return one.submit(work).result()
