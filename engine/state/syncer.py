"""When is it on the disk?  One fsync for everyone who waits for it."""

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from engine.state.kv import StoreWriteFailed

_QUICK_SYNC_S = 0.001
_SYNC_SAMPLES = 8


class Syncer:
    """Makes writes durable, one fsync for everyone who waits."""

    def __init__(self, sync: Callable[[], None], clock: Callable[[], float] = monotonic) -> None:
        self._sync = sync
        self._clock = clock
        self.took_s = deque([_QUICK_SYNC_S], _SYNC_SAMPLES)
        self._turn = threading.Condition()
        self._started = self._done = 0
        self._busy = self._failed = False

    def is_quick(self) -> bool:
        """Whether the disk mostly answers fast enough to be waited for on the event loop.

        The middle of the last ones: some waited for the interpreter, and not for the disk. Another
        sync under way is waited for there too: a thread would wait for it as well, and twice more
        for the interpreter.
        """
        middle_s = sorted(self.took_s)[(len(self.took_s) - 1) // 2]
        return middle_s < _QUICK_SYNC_S

    def sync(self, patience_s: float = 0.0) -> None:
        """Return when everything written before the call is on the disk.

        Who has patience waits so long for somebody else's fsync, which does it for both.
        """
        with self._turn:
            # A sync under way may have begun before our write: only the next one covers it.
            ticket = self._started + 1
            if patience_s:
                self._turn.wait_for(lambda: self._done >= ticket or self._failed, patience_s)
            while self._busy and self._done < ticket:
                self._turn.wait()
            if self._done >= ticket:
                return
            if self._failed:
                # The kernel may have dropped what it could not write: no later sync brings it back.
                raise StoreWriteFailed("an earlier sync failed")
            self._busy = True
            self._started = mine = self._started + 1
        done, began = False, self._clock()
        try:
            self._sync()
            done = True
        finally:
            self.took_s.append(self._clock() - began)
            with self._turn:
                self._busy = False
                self._failed = not done
                if done:
                    self._done = mine
                self._turn.notify_all()
