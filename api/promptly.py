"""Which answers need no thread?  Those known to be quick, while nobody writes (ADR 0050).

Handing a question to a thread and its answer back wakes two threads, which takes a tenth of a quick
recall. On the event loop nobody else is answered meanwhile: so a question stays there only when its
like was answered in a few milliseconds, nobody has posted lately and nothing is left to derive.
"""

import math
from collections.abc import Callable, Hashable
from typing import Final

from schemas import limits

_WEIGHT: Final = 0.125
"""Of the newest time in the average: one slow answer counts, and is forgotten after a few."""


class Promptness:
    """How long questions took of late, by their place, and how long nobody has written."""

    def __init__(
        self,
        now_s: Callable[[], float],
        posted: Callable[[], int],
        is_settled: Callable[[], bool],
    ) -> None:
        self._now_s = now_s
        self._posted = posted
        self._is_settled = is_settled
        self._took_s: dict[Hashable, float] = {}
        self._seen = -1
        self._since_s = now_s()

    def is_due(self, place: Hashable) -> bool:
        """Whether a question of this place may be answered on the event loop, just now."""
        now_s, posted = self._now_s(), self._posted()
        if posted != self._seen:
            self._seen, self._since_s = posted, now_s
        if now_s - self._since_s < limits.ON_LOOP_QUIET_S:
            return False
        if self._took_s.get(place, math.inf) > limits.ON_LOOP_S_MAX:
            return False
        return self._is_settled()

    def took(self, place: Hashable, seconds: float) -> None:
        """A question of this place was answered, here or in a thread."""
        known = self._took_s.get(place)
        if known is None:
            if len(self._took_s) >= limits.ON_LOOP_PLACES_MAX:
                self._took_s.clear()
            known = seconds
        self._took_s[place] = known + (seconds - known) * _WEIGHT
