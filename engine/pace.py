"""How much of the interpreter does projection take?

Whoever posts is waiting, and what is derived is not waited for. So between two batches projection
rests, and sees what the event loop does with all of the interpreter: when that has its hands full
the rests become longer than the work, and projection lags; when the rush is over it catches up.
"""

from typing import Final

_REST_S_MIN: Final = 0.01
_TIMES_MIN: Final = 1.0
_TIMES_MAX: Final = 4.0
_PRESSED: Final = 0.6
_AT_EASE: Final = 0.3


class Pace:
    """How long to rest after a batch."""

    def __init__(self) -> None:
        self._times = _TIMES_MIN

    def saw(self, share: float | None) -> None:
        """What part of the last rest the event loop computed; None when nobody can tell."""
        if share is None:
            self._times = _TIMES_MIN
        elif share > _PRESSED:
            self._times = min(self._times * 2, _TIMES_MAX)
        elif share < _AT_EASE:
            self._times = max(self._times / 2, _TIMES_MIN)

    def rest_s(self, worked_s: float, *, is_busy: bool, is_behind: bool) -> float:
        """Seconds until the next batch, after one during which entries came in, or did not.

        At ease a rest still makes a batch a few milliseconds wide, which costs far less than many
        of one entry; one that is behind has wide batches anyway.
        """
        if is_busy:
            return max(_REST_S_MIN, worked_s * self._times)
        return 0.0 if is_behind else _REST_S_MIN
