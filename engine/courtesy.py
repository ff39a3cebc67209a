"""Who goes first?  Whoever waits for an answer.

The event loop and the threads that derive share one interpreter, and a capture asks for it half a
dozen times: for its bytes, its decision, its fsync, its answer. Each time it would wait for a
thread that is in the middle of something. So those threads do small pieces of work, and between
two of them they give way while somebody is being answered: a few times as long as they worked, so
that a rush slows them down and never stops them.

What is in the middle of a piece is asked for the interpreter after a while. While others post,
those who derive are asked sooner than who is being answered.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

TIMES: Final = 4.0
"""How many times as long as it worked a thread gives way at the most."""
GIVEN_S_MAX: Final = 0.005
"""Seconds to give way at a time: by then a capture has been answered."""
SWITCH_S: Final = 0.001
"""Seconds after which a thread that wants the interpreter asks for it; of Python itself, 5 ms."""
SWITCH_BESIDE_S: Final = 0.0002
"""The same while others post and nobody is being answered: it is wanted for one who has just come,
and those who derive have it. A fifth of the time costs them a tenth of their speed, so not longer
than somebody posts."""


class Way:
    """The interpreter, as something that is given to whoever is being answered."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._taken = 0
        self._is_beside = False

    def mind_posts(self, *, is_busy: bool) -> None:
        """Whether others post, beside those who derive; who said yes says no as well."""
        with self._lock:
            if is_busy != self._is_beside:
                self._is_beside = is_busy
                sys.setswitchinterval(SWITCH_BESIDE_S if is_busy and not self._taken else SWITCH_S)

    def take(self) -> None:
        """Somebody is being answered, until as many times `leave` was called."""
        with self._lock:
            self._taken += 1
            if self._taken == 1:
                self._free.clear()
                if self._is_beside:
                    sys.setswitchinterval(SWITCH_S)

    def leave(self) -> None:
        """Somebody has been answered."""
        with self._lock:
            self._taken -= 1
            if not self._taken:
                if self._is_beside:
                    sys.setswitchinterval(SWITCH_BESIDE_S)
                self._free.set()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Take it for a while."""
        self.take()
        try:
            yield
        finally:
            self.leave()

    @property
    def is_beside(self) -> bool:
        """Whether others post just now, beside those who derive."""
        return self._is_beside

    @property
    def is_free(self) -> bool:
        """Whether nobody is being answered."""
        return not self._taken

    def wait(self, seconds: float) -> None:
        """Until nobody is being answered, and no longer than so many seconds."""
        self._free.wait(seconds)


class Courtesy:
    """One who gives way, and what it has worked since it last did. Used by a thread at a time."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._since_s = way.now_s()

    def give_way(self) -> None:
        """Between two pieces of work: let those who are being answered go first."""
        way = self._way
        if way.is_free:
            return
        worked_s = way.now_s() - self._since_s
        way.wait(min(worked_s * TIMES, GIVEN_S_MAX))
        self._since_s = way.now_s()
