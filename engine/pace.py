"""How much of the interpreter does projection take?

Whoever posts is waiting, and what is derived is not waited for. So between two batches projection
rests, and sees what the event loop does with all of the interpreter: when that has its hands full
the rests become far longer than the work, and projection lags; when the rush is over it catches up.
A rush that does not end is no rush: who is far behind takes its share again.
"""

from typing import Final

from schemas import limits

_REST_S_MIN: Final = 0.01
_REST_S_MAX: Final = 2.0
_TIMES_MIN: Final = 1.0
_TIMES_FAR: Final = 4.0
_TIMES_MAX: Final = 32.0
_PRESSED: Final = 0.6
_AT_EASE: Final = 0.3
_AGAIN: Final = 2
LOOK_S: Final = 0.1
"""Seconds after which what the loop does is clear."""


def entries_beside(came: int) -> int:
    """Entries of a batch while others post, of whom so many came since the batch before.

    As many, and as many again of a backlog: it keeps up with them, and takes no more of the
    interpreter than it needs for that.
    """
    return min(max(_AGAIN * came, limits.WAITED_FOR_ENTRIES_MIN), limits.WAITED_FOR_ENTRIES_MAX)


class Posts:
    """Whether others post: a gap between two posts is not the end of them."""

    def __init__(self, written: int) -> None:
        self._written = written
        self._until_s = 0.0

    def saw(self, written: int, now_s: float) -> bool:
        """Whether they do, by what is written now."""
        if written != self._written:
            self._written = written
            self._until_s = now_s + limits.POSTS_LATELY_S
        return now_s < self._until_s


class Pace:
    """How long to rest after a batch."""

    def __init__(self) -> None:
        self._times = _TIMES_MIN
        self._share = 0.0

    def saw(self, share: float | None, looked_s: float) -> None:
        """What part of so many seconds the event loop computed; None when nobody can tell.

        A short look may fall between two requests of a rush, or into one large request: it counts
        for little, and a rush is one after about a second.
        """
        if share is None:
            self._times = _TIMES_MIN
            return
        weight = min(1.0, looked_s / LOOK_S)
        self._share += weight * (share - self._share)
        if self._share > _PRESSED:
            self._times = min(self._times * 2, _TIMES_MAX)
        elif self._share < _AT_EASE:
            self._times = _TIMES_MIN
        else:
            # Neither: it keeps to its share and does not swing, and a rush does not linger on.
            self._times = min(self._times, _TIMES_FAR)

    @property
    def is_pressed(self) -> bool:
        """Whether the event loop had its hands full lately."""
        return self._times > _TIMES_MIN

    def rest_s(self, worked_s: float, *, is_busy: bool, behind: int) -> float:
        """Seconds until the next batch, after one during which entries came in, or did not.

        At ease a rest still makes a batch a few milliseconds wide, which costs far less than many
        of one entry; one that is behind, by so many entries, has wide batches anyway.
        """
        if is_busy:
            is_far = behind > limits.RUSH_ENTRIES_MAX
            times = min(self._times, _TIMES_FAR) if is_far else self._times
            return min(max(_REST_S_MIN, worked_s * times), _REST_S_MAX)
        return 0.0 if behind > limits.PROJECT_ENTRIES_MAX else _REST_S_MIN
