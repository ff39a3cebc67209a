"""Who goes first?  Whoever waits for an answer.

The event loop and the threads that derive share one interpreter, and a capture asks for it half a
dozen times: for its bytes, its decision, its fsync, its answer. Each time it would wait for a
thread that is in the middle of something. So those threads do small pieces of work, and between
two of them they give way while somebody is being answered: a few times as long as they worked, so
that a rush slows them down and never stops them.

What is in the middle of a piece is asked for the interpreter after a while. While others post,
those who derive are asked sooner, and sleep for a moment after each piece: one who has just woken
gets a core when somebody lets go of it, and sooner or later otherwise.

The folding process needs no interpreter of ours, and takes a core. It is kept still while somebody
is being answered (ADR 0053).
"""

import asyncio
import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

TIMES: Final = 4.0
"""How many times as long as it worked a thread gives way at the most."""
GIVEN_S_MAX: Final = 0.005
"""Seconds to give way at a time: by then a capture has been answered."""
SWITCH_S: Final = 0.001
"""Seconds after which a thread that wants the interpreter asks for it; of Python itself, 5 ms."""
SWITCH_BESIDE_S: Final = 0.0002
"""The same while others post: it is wanted for one who is answered, and those who derive have it.
A fifth of the time costs them a tenth of their speed, so not longer than somebody posts."""
PIECE_S: Final = 0.0003
"""Seconds of work after which who derives sleeps for a moment, while others post."""
MOMENT_S: Final = 0.00003
"""That moment: enough for a core to change hands, a tenth of the work."""
COMING_S: Final = 0.0002
"""Seconds from somebody's first byte until it has taken the way, on a quiet machine."""
LINGER_S: Final = 0.001
"""Seconds after the last one came in which another is likely: who is still stays so."""
STILL_S_MAX: Final = 0.005
"""Seconds that the folding process is kept still at a time. It has as many for itself."""


class Way:
    """The interpreter, as something that is given to whoever is being answered."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._taken = 0
        self._is_beside = False
        self._came_s = -math.inf
        self.on_came: Callable[[], None] = lambda: None

    def mind_posts(self, *, is_busy: bool) -> None:
        """Whether others post, beside those who derive; who said yes says no as well."""
        with self._lock:
            if is_busy != self._is_beside:
                self._is_beside = is_busy
                sys.setswitchinterval(SWITCH_BESIDE_S if is_busy else SWITCH_S)

    def came(self) -> None:
        """Somebody's first bytes are here; said on the event loop, and long before `take`."""
        if self._is_beside:
            self._came_s = self.now_s()
            self.on_came()

    def has_come(self, within_s: float) -> bool:
        """Whether somebody has come lately, while others post."""
        return self._is_beside and self.now_s() - self._came_s < within_s

    def take(self) -> None:
        """Somebody is being answered, until as many times `leave` was called."""
        with self._lock:
            self._taken += 1
            if self._taken == 1:
                self._free.clear()

    def leave(self) -> None:
        """Somebody has been answered."""
        with self._lock:
            self._taken -= 1
            if not self._taken:
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

    def sleep(self, seconds: float) -> None:
        """Let go of the interpreter and of the core."""
        time.sleep(seconds)


class Courtesy:
    """One who gives way, and what it has worked since it last did. Used by a thread at a time."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._since_s = way.now_s()

    def give_way(self) -> None:
        """Between two pieces of work: let those who are being answered go first."""
        way = self._way
        if way.is_free and not way.is_beside:
            return
        worked_s = way.now_s() - self._since_s
        is_piece = way.is_beside and worked_s >= PIECE_S
        if is_piece:
            way.sleep(MOMENT_S)
        if not way.is_free:
            way.wait(min(worked_s * TIMES, GIVEN_S_MAX))
        elif way.has_come(COMING_S):
            way.sleep(COMING_S)
        elif not is_piece:
            return
        self._since_s = way.now_s()


def _on_the_loop(seconds: float, work: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, work)


class Hush:
    """Keeps another process still while somebody is being answered. Used on the event loop.

    A core that somebody has is not soon another's: Linux looks every few milliseconds, whatever the
    urgency of those two (ADR 0053). So who takes a core beside the server lets go of it when
    somebody comes, until nobody has come for a moment. Half of the time is its own, whoever comes.
    """

    def __init__(
        self,
        way: Way,
        hold: Callable[[], bool],
        let_go: Callable[[], None],
        later: Callable[[float, Callable[[], None]], object] = _on_the_loop,
    ) -> None:
        """`hold` says whether there is somebody to be held; `later` does something after a time."""
        self._way = way
        self._hold = hold
        self._let_go = let_go
        self._later = later
        self._since_s = way.now_s()
        self._is_still = False
        self._left_s = STILL_S_MAX
        """What it may be kept still, as of the last time that it stopped or went on."""

    def came(self) -> None:
        """Somebody is here."""
        if self._is_still:
            return
        now_s = self._way.now_s()
        left_s = min(self._left_s + now_s - self._since_s, STILL_S_MAX)
        # For less than that it is not worth it: nobody would be answered meanwhile.
        if left_s >= LINGER_S and self._hold():
            self._is_still, self._since_s, self._left_s = True, now_s, left_s
            self._later(LINGER_S, self.look)

    def look(self) -> None:
        """Let it go on when nobody needs it to be still, or when it was so for long."""
        way, now_s = self._way, self._way.now_s()
        left_s = self._left_s - (now_s - self._since_s)
        if left_s > 0 and (not way.is_free or way.has_come(LINGER_S)):
            self._later(min(LINGER_S, left_s), self.look)
            return
        self._is_still, self._since_s, self._left_s = False, now_s, left_s
        self._let_go()
