"""Who reads the words while others fold?  A process of its own, when there is much to read.

Extraction needs no view (DESIGN §5): what a text says is the same wherever it is read. So a
backlog is read ahead in another process, and the projection finds it done. With little to do, or
where no process can be started, everything is read where it is folded.
"""

import contextlib
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import IO, Final

from projectors.text import Extraction, foresee, read_body
from schemas import limits
from schemas.entry import Entry

Task = tuple[bytes, str, bytes]
"""Id, caller and encoded body of an entry that has words."""

Source = Callable[[int, int], tuple[list[Task], int]]
"""The tasks of the entries from an offset on, at most so many, and the last offset looked at."""

Found = dict[bytes, Extraction]


class ReaderGone(Exception):
    """The other process has ended."""


_FAILURES: Final = (ReaderGone, OSError, TimeoutError)


def read_all(tasks: Sequence[Task]) -> Found:
    """What the bodies say; runs in the other process."""
    return {entry_id: read_body(body, caller) for entry_id, caller, body in tasks}


@dataclass(frozen=True)
class Stretch:
    """A run of offsets that is being read."""

    first: int
    last: int
    found: "Future[Found]"


class ReadAhead:
    """Reads the next entries of a backlog while earlier ones are folded."""

    def __init__(self, workers: int, source: Source) -> None:
        self._workers = workers
        self._source = source
        self._readers: deque[Reader] = deque()
        self._ahead: deque[Stretch] = deque()
        self._lost_in_a_row = 0
        self.failure: str | None = None
        self.taken = 0
        self.lost = 0

    def look_ahead(self, cursor: int, head: int) -> None:
        """Keep the other process busy with what comes after the cursor, if that is much."""
        if self._workers == 0 or self.failure is not None:
            return
        if head - cursor < limits.READ_AHEAD_ENTRIES:
            if head == cursor:
                self.rest()
            return
        if self._ahead and not self._ahead[0].first <= cursor + 1 <= self._ahead[-1].last + 1:
            self._ahead.clear()  # a rebuild begins again at the first entry
        start = self._ahead[-1].last + 1 if self._ahead else cursor + 1
        try:
            while start <= min(head, cursor + limits.READ_AHEAD_WINDOW):
                tasks, last = self._source(start, limits.READ_AHEAD_STEP)
                self._ahead.append(Stretch(start, last, self._next().submit(tasks)))
                start = last + 1
            foresee(self.find)
        except _FAILURES as error:
            self._replace(error)

    def find(self, entry: Entry) -> Extraction | None:
        """What an entry says, if it was read ahead; None has it read here."""
        if self._ahead and self._ahead[-1].last < entry.offset:
            return None  # far beyond: of rows that keep up while others are built
        while self._ahead and self._ahead[0].last < entry.offset:
            self._ahead.popleft()
        if not self._ahead or self._ahead[0].first > entry.offset:
            return None
        try:
            found = self._ahead[0].found.result(timeout=limits.READ_AHEAD_S_MAX).get(entry.id)
        except _FAILURES as error:
            self._replace(error)
            return None
        self._lost_in_a_row = 0
        self.taken += found is not None
        return found

    def rest(self) -> None:
        """There is no backlog: the other process goes."""
        foresee(None)
        self._ahead.clear()
        while self._readers:
            self._readers.pop().close()

    def _next(self) -> "Reader":
        """The readers in turn, started when they are first needed."""
        if len(self._readers) < self._workers:
            self._readers.append(Reader())
        self._readers.rotate()
        return self._readers[0]

    def _replace(self, error: BaseException) -> None:
        """A process that died is replaced when there is more to read; what it had is read again.

        One that dies again and again is not: then everything is read here, and health says so.
        """
        self.rest()
        self.lost += 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= limits.READ_AHEAD_LOST_MAX:
            self.failure = f"reading ahead stopped: {error!r}"


# ── the other process ────────────────────────────────────────────────────────────────────────


class Reader:
    """One process that reads: tasks go in, what they say comes out, in order."""

    def __init__(self) -> None:
        # A command of its own and not a fork: that would take the locks of other threads along.
        command = [sys.executable, "-m", "engine.reading"]
        self._process = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._waiting: deque[Future[Found]] = deque()
        self._collecting = threading.Thread(target=self._collect, name="read-ahead", daemon=True)
        self._collecting.start()

    def submit(self, tasks: Sequence[Task]) -> "Future[Found]":
        """Hand tasks over; what comes back is the future's."""
        future: Future[Found] = Future()
        self._waiting.append(future)
        assert self._process.stdin is not None
        _send(self._process.stdin, tasks)
        return future

    def _collect(self) -> None:
        """Nobody writes while nobody reads: so answers are taken in a thread of their own."""
        assert self._process.stdout is not None
        try:
            while (found := _receive(self._process.stdout)) is not None:
                self._waiting.popleft().set_result(found)
        except (OSError, ValueError, IndexError, InvalidStateError, pickle.UnpicklingError):
            pass  # closed, or not answering in order: those who wait are told below
        while self._waiting:
            self._waiting.popleft().set_exception(ReaderGone("the reading process has ended"))

    def close(self) -> None:
        """End it; it has nothing to lose."""
        self._process.kill()
        self._process.wait()
        self._collecting.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was still to be sent has nowhere to go
                pipe.close()


def _send(pipe: IO[bytes], value: object) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(len(data).to_bytes(8, "big") + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> "Found | None":
    """The next message; None at the end. Both ends are ours: pickle reads no stranger here."""
    size = pipe.read(8)
    if len(size) < 8:
        return None
    found: Found = pickle.loads(pipe.read(int.from_bytes(size, "big")))  # noqa: S301
    return found


def main() -> None:
    """Read until the server hangs up."""
    tasks: object
    while (tasks := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, read_all(tasks))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
