"""What time is it, and what tells two ids apart?  The only clock and the only chance."""

import os
import random
import time
from collections.abc import Callable
from functools import partial

from schemas.ids import fresh_id, uuid7

_ENTROPY_BITS = 62

WallClock = Callable[[], int]
"""Microseconds since 1970."""


def wall_clock_us() -> int:
    """The system's clock, in microseconds since 1970."""
    return time.time_ns() // 1000


class Stamps:
    """Strictly increasing microseconds: max(now, last + 1), also when the clock steps back.

    Ids made from these stamps sort as they were made (docs/adr/0009).
    """

    def __init__(self, wall: WallClock, last_us: int = 0) -> None:
        self._wall = wall
        self.last_us = last_us

    def next_us(self) -> int:
        """The next stamp. Callers serialise: one owner, or a lock around it."""
        now, last = self._wall(), self.last_us
        self.last_us = stamp = now if now > last else last + 1
        return stamp


class Clock:
    """Wall time, monotonic time and entropy; tests bring their own."""

    def __init__(self, wall: WallClock = wall_clock_us, seed: int | None = None) -> None:
        self.wall = wall
        # Ids only have to differ: no secret is made here.
        self._random = random.Random(seed if seed is not None else os.urandom(32))  # noqa: S311
        self.entropy = partial(self._random.getrandbits, _ENTROPY_BITS)
        """62 bits that tell apart ids of one microsecond. Not a secret."""

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return self.wall()

    elapsed_s = staticmethod(time.monotonic)
    """Seconds on a clock that never steps, for durations only."""

    @staticmethod
    def thread_cpu_s(ident: int) -> float | None:
        """Seconds a thread has computed so far; None where the system does not tell."""
        if not hasattr(time, "pthread_getcpuclockid"):
            return None
        return time.clock_gettime(time.pthread_getcpuclockid(ident))

    def new_id(self, prefix: str) -> str:
        """A fresh id of this moment, for things that are not in the log."""
        return fresh_id(prefix, uuid7(self.wall(), self.entropy()))
