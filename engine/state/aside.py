"""How urgent is what libraries do behind our back?  Less than whoever waits for an answer.

RocksDB compacts and tantivy merges in threads of their own, which never hold the interpreter and
are seldom waited for. On a busy machine they would take the processor from a thread that does hold
it, and everybody who posts or asks would wait for a compaction. A thread inherits its urgency from
the one that starts it: so the libraries are told to start theirs from one that stands aside.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

NICER: Final = 10
"""A tenth of the processor, when somebody else wants all of it."""

Value = TypeVar("Value")


def stand_aside() -> None:
    """Lower the urgency of the calling thread, and of those it will start; for good."""
    if sys.platform == "linux":  # elsewhere a thread is as urgent as its process
        thread = threading.get_native_id()
        # Who was started with less urgency than this may not take more.
        nice = max(NICER, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, nice)


def helper(count: int, name: str) -> ThreadPoolExecutor:
    """Threads that stand aside."""
    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=stand_aside)


def aside(work: Callable[[], Value]) -> Value:
    """Do something in a thread that stands aside, and wait for it."""
    with helper(1, "aside") as one:
        return one.submit(work).result()
