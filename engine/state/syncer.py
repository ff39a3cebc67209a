"""When is it on the disk?  Whoever can wait a little is served by somebody else's fsync."""

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from engine.state.kv import StoreWriteFailed

_QUICK_SYNC_S = 0.001
_SYNC_SAMPLES = 8


class Syncer:
    """Makes writes durable, and after a sync that failed nothing more."""

    def __init__(self, sync: Callable[[], None], clock: Callable[[], float] = monotonic) -> None:
        self._sync = sync
        self._clock = clock
        self.took_s = deque([_QUICK_SYNC_S], _SYNC_SAMPLES)
        self._turn = threading.Condition()
        self._started = self._done = 0
        self._failed = False

    def is_quick(self) -> bool:
        """Whether the disk mostly answers fast enough to be waited for on the event loop.

        The middle of the last ones: some waited for the interpreter, and not for the disk.
        """
        middle_s = sorted(self.took_s)[(len(self.took_s) - 1) // 2]
        return middle_s < _QUICK_SYNC_S

    def sync(self, patience_s: float = 0.0) -> None:
        """Return when everything written before the call is on the disk.

        Who has patience waits so long for somebody else's fsync, which does it for both. Who has
        none asks at once, and not after another who asks just now: that one may have its answer
        and wait for the interpreter. The store takes them one after the other.
        """
        with self._turn:
            # A sync under way may have begun before our write: only the next one covers it.
            ticket = self._started + 1
            if patience_s:
                self._turn.wait_for(lambda: self._done >= ticket or self._failed, patience_s)
            if self._done >= ticket:
                return
            self._require_sound()
            self._started = mine = self._started + 1
        done, began = False, self._clock()
        try:
            self._sync()
            done = True
        finally:
            self.took_s.append(self._clock() - began)
            with self._turn:
                self._failed = self._failed or not done
                self._done = max(self._done, mine) if done else self._done
                self._turn.notify_all()
        self._require_sound()

    def _require_sound(self) -> None:
        """The kernel may have dropped what it could not write: no later sync brings it back."""
        if self._failed:
            raise StoreWriteFailed("an earlier sync failed")
