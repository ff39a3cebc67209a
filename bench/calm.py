"""Was the machine idle?  A fixed piece of work, timed before and after a measurement, tells.

Goals in milliseconds and in events a second are set for an idle machine. A neighbour on the same
processor can take half of its speed, which no load average shows and which comes and goes within
seconds. So what is judged by such a goal is measured in short windows, and those count in which the
piece of work took hardly longer than ever. It is the piece of work that decides, and never the
figure itself.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

_STEPS = 200_000
_CALM = 1.12
"""Times the least that a piece of work took: more, and somebody else is at it."""
_BEATS = 20
"""Pieces of work at first, to know how fast the machine is when it is idle."""
_TIMES = 3
"""Windows to look at, for each that is wanted."""
_PATIENCE_S = 5.0
_PAUSE_S = 0.1

Value = TypeVar("Value")


class Window(NamedTuple, Generic[Value]):
    """What was measured, and whether the machine was idle before and after."""

    value: Value
    is_calm: bool


class Pulse:
    """How fast the machine is, by a piece of work that is always the same."""

    def __init__(self, work: Callable[[], float] | None = None) -> None:
        self._work = work or _work
        self._least_s = math.inf
        for _ in range(_BEATS):
            self._beat()

    def is_calm(self) -> bool:
        """Whether the machine is as fast as it ever was."""
        return self._beat() <= self._least_s * _CALM

    def settle(self, pause: Callable[[float], None] = time.sleep) -> bool:
        """Wait a while for the machine to be idle; False when it is not."""
        for _ in range(int(_PATIENCE_S / _PAUSE_S)):
            if self.is_calm():
                return True
            pause(_PAUSE_S)
        return False

    def windows(self, measure: Callable[[], Value], wanted: int) -> list[Window[Value]]:
        """Windows until so many were calm, or so many times as many were not."""
        found: list[Window[Value]] = []
        while len(calm(found)) < wanted and len(found) < wanted * _TIMES:
            was_calm = self.settle()
            value = measure()
            found.append(Window(value, self.is_calm() and was_calm))
        return found

    def _beat(self) -> float:
        taken_s = self._work()
        self._least_s = min(self._least_s, taken_s)
        return taken_s


def calm(windows: Sequence[Window[Value]]) -> list[Value]:
    """What was measured while the machine was idle."""
    return [one.value for one in windows if one.is_calm]


def counted(windows: Sequence[Window[Value]]) -> list[Value]:
    """What counts: what was measured while the machine was idle; everything, when it never was."""
    return calm(windows) or [one.value for one in windows]


def on_every_core(work: Callable[[], float]) -> float:
    """The longest that a piece of work takes on a core that may be ours: each has neighbours."""
    if not hasattr(os, "sched_setaffinity"):
        return work()
    ours, longest_s = os.sched_getaffinity(0), 0.0
    try:
        for core in ours:
            os.sched_setaffinity(0, {core})
            longest_s = max(longest_s, work())
    finally:
        os.sched_setaffinity(0, ours)
    return longest_s


def _work() -> float:
    return on_every_core(_step)


def _step() -> float:
    started, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step * step & 7
    return time.perf_counter() - started
