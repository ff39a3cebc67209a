"""Who folds while the server answers?  A process of its own, when there is much to fold.

What follows from an entry is decided by pure projectors from the entry and the rows before it.
So a process beside the server can decide it: it reads the store as the server had written it, keeps
what it has folded since, and hands over rows. Writing stays with the owner
of the log, in one batch with checkpoint, feed and announcements: a process that dies takes nothing
along, and what it had is folded again (ADR 0037).
"""

import contextlib
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

import msgspec

from engine.clock import Clock
from engine.folder import HELLO
from engine.pipes import receive, send, start_module
from engine.rows import Ask, Folded
from engine.state.scratch import clear_scratch
from engine.state.views import Unit
from projectors.fold import Skips
from schemas import limits
from schemas.entry import Entry

if TYPE_CHECKING:
    from engine.embedders import Kind

_CAN_HOLD: Final = sys.platform == "linux"
"""Elsewhere one that is held would outlive a server that is killed."""


class Gone(Exception):
    """The process beside the server has ended."""


_FAILURES: Final = (Gone, OSError, TimeoutError, ValueError)
"""Of a process that has ended: `ValueError` says that its pipe is closed."""


_encode = msgspec.msgpack.Encoder().encode
_read_folded = msgspec.msgpack.Decoder(Folded).decode


@dataclass(frozen=True)
class Asked:
    """A run of offsets that is being folded."""

    first: int
    last: int
    answer: "Future[bytes]"


@dataclass(frozen=True)
class Stretch:
    """What there is to fold: after an offset up to another, without these, announced so."""

    cursor: int
    head: int
    skips: Skips
    is_indexed: bool
    beside_entries: int
    """How many of them at a time while others post; 0: nobody does."""
    again_until: int
    """The last offset that was announced, and that the indexes follow elsewhere; 0: none."""


Source = Callable[[int, int], list[Entry]]
"""Entries from an offset on, at most so many; none where one may not be folded yet."""


class Folder(Protocol):
    """Who folds for the server: asks go in, what was folded comes out, in order."""

    is_ready: bool
    has_ended: bool

    def ask(self, message: bytes) -> "Future[bytes]":
        """Hand it over; what comes back is the future's."""
        ...

    def hold(self) -> None:
        """Keep it still, wherever it is."""
        ...

    def let_go(self) -> None:
        """It goes on."""
        ...

    def close(self) -> None:
        """End it; it has nothing to lose."""


class Start(Protocol):
    """Starts one that folds into a generation of the unit's rows, perhaps with one that reads."""

    def __call__(self, generation: int, *, is_read_first: bool) -> Folder:
        """Raises OSError."""
        ...


class Beside:
    """Has the backlog of a unit folded by another process, a few batches ahead."""

    worth_entries = limits.FOLD_BESIDE_ENTRIES
    batch_entries = limits.FOLD_ENTRIES
    again_entries = limits.FOLD_AGAIN_ENTRIES

    def __init__(self, unit: Unit, start: Start, source: Source, clock: Clock) -> None:
        self._unit = unit
        self._start = start
        self._source = source
        self._clock = clock
        self._process: Folder | None = None
        self._released: Folder | None = None
        self._generation = 0
        self._asked: deque[Asked] = deque()
        self._next = 0
        self._rows = 0
        self._lost_in_a_row = 0
        self._is_starved = False
        self._stands_back = False
        self._is_ending = False
        self._used_s = 0.0
        self.failure: str | None = None
        self.folded = 0
        self.lost = 0

    def fold(self, stretch: Stretch) -> Folded | None:
        """The batch after the cursor; None when it is to be folded here."""
        process = self._ready_process(stretch)
        if process is None:
            return None
        self._used_s = self._clock.elapsed_s()
        try:
            self._ask_ahead(process, stretch)
            if not self._asked:
                return None
            folded = _read_folded(self._asked.popleft().answer.result(limits.FOLD_S_MAX))
            self._mind_starving(stretch)
        except _FAILURES as error:
            self._lose(error)
            return None
        self._lost_in_a_row = 0
        if not folded.is_whole:
            self.discard()
        return folded if folded.steps else None

    def _mind_starving(self, stretch: Stretch) -> None:
        """Others may want every core there is, for good: then it takes its share again."""
        waited_s = self._clock.elapsed_s() - self._used_s
        if stretch.beside_entries and waited_s > limits.FOLD_BACK_S_MAX:
            self._is_starved = True

    def wrote(self, folded: Folded) -> None:
        """What was handed out last is in the store."""
        self.folded += len(folded.steps)
        self._unit.forget_remembered()
        self._rows += len(folded.rows)
        if self._rows > limits.FOLD_ROWS_MAX:
            self.discard()

    def discard(self) -> None:
        """What was asked is not wanted any more: begin again with what is written."""
        self._asked.clear()
        self._next = self._rows = 0

    def rest(self) -> None:
        """There is nothing to fold: after a while the process goes."""
        unused_s = self._clock.elapsed_s() - self._used_s
        if self._process is not None and unused_s > limits.FOLD_IDLE_S:
            self.close()

    def release(self) -> None:
        """Files that the store has deleted are held no longer; from any thread.

        The process reads them until it goes. Another is started when there is much to fold.
        """
        process = self._process
        if process is not None:
            self._released = process
            process.close()

    def hold(self) -> bool:
        """Keep the process still, if it is one that stands back; whether there is one."""
        process = self._process
        can_be = self._stands_back and not (self._is_starved or self._is_ending)
        if process is None or not process.is_ready or not (_CAN_HOLD and can_be):
            return False
        process.hold()
        return True

    def let_go(self) -> None:
        """It goes on; harmless when it was not held."""
        process = self._process
        if process is not None:
            process.let_go()

    def hold_no_more(self) -> None:
        """The server is ending, and waits for what is being folded."""
        self._is_ending = True
        self.let_go()

    @property
    def is_at_work(self) -> bool:
        """Whether there is a process that folds."""
        return self._process is not None and self._process.is_ready

    def close(self) -> None:
        """End the process; it has nothing to lose."""
        self.discard()
        self._is_starved = False
        if self._process is not None:
            self._process.close()
            self._process = None

    def _ready_process(self, stretch: Stretch) -> Folder | None:
        """The process, when it is there for the rows that move; else perhaps one is started."""
        unit, process = self._unit, self._process
        # Rows that keep up while others are built have little to do: that is done here.
        if self.failure is not None or unit.keeps_up:
            return None
        if process is None or self._generation != unit.target:
            if stretch.head - stretch.cursor < self.worth_entries:
                return None
            self.close()
            try:
                # A log that is folded again is long: it is worth somebody who reads it.
                is_read_first = self._is_rebuild(stretch)
                self._process = process = self._start(unit.target, is_read_first=is_read_first)
            except OSError as error:
                self._lose(error)
                return None
            self._generation = unit.target
        if process.has_ended:
            self._lose(Gone("before it was ready"))
            return None
        return process if process.is_ready else None

    def _ask_ahead(self, process: Folder, stretch: Stretch) -> None:
        """Keep it busy with what comes after the cursor."""
        first = self._asked[0].first if self._asked else self._next
        if first != stretch.cursor + 1:
            self.discard()
        is_afresh = not self._next
        start = self._next or stretch.cursor + 1
        most = self._most(stretch)
        while len(self._asked) < limits.FOLD_BATCHES_AHEAD and start <= stretch.head:
            entries = self._source(start, min(most, stretch.head - start + 1))
            if not entries:
                break
            last = entries[-1].offset
            # Not while it opens the store, which everything else waits for.
            is_beside = stretch.beside_entries > 0 and not (is_afresh or self._is_starved)
            self._stands_back = is_beside
            ask = Ask(
                is_beside=is_beside,
                entries=entries,
                skips=[skip for skip in stretch.skips if start <= skip[1] <= last],
                is_indexed=stretch.is_indexed,
                is_afresh=is_afresh,
                is_again=last <= stretch.again_until,
            )
            self._asked.append(Asked(start, last, process.ask(_encode(ask))))
            self._next = start = last + 1
            is_afresh = False

    def _most(self, stretch: Stretch) -> int:
        """Entries of a batch: few while others post, many where nobody waits to hear of them."""
        if stretch.beside_entries:
            return stretch.beside_entries
        return self.again_entries if self._is_rebuild(stretch) else self.batch_entries

    def _is_rebuild(self, stretch: Stretch) -> bool:
        """Whether other rows have what comes next already, be it by projectors of before."""
        state = self._unit.state
        return self._unit.target == state.building and stretch.cursor < state.announced

    def _lose(self, error: BaseException) -> None:
        """A process that died is replaced when there is more to fold.

        One that dies again and again is not: then everything is folded here, and health says so.
        """
        was_released = self._process is not None and self._process is self._released
        self.close()
        if was_released:
            return
        self.lost += 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= limits.FOLD_LOST_MAX:
            self.failure = f"folding beside the server stopped: {error!r}"


class Process:
    """Folds in a process of its own, which reads the store beside its owner.

    What `is_read_first` goes through another, which reads the words, on its way there.
    """

    def __init__(self, store: Path, kind: "Kind", generation: int, *, is_read_first: bool) -> None:
        """`kind` is the model that the indexes ask for vectors."""
        self._store = store
        self._reader = start_module("engine.reading") if is_read_first else None
        arguments = [str(store), kind, str(generation), *(["read"] if is_read_first else [])]
        before = subprocess.PIPE if self._reader is None else _out_of(self._reader)
        self._process = start_module("engine.folder", arguments, before)
        if self._reader is not None:
            _out_of(self._reader).close()  # it is the other's now: who is left behind must notice
        self._into = (self._reader or self._process).stdin
        self._waiting: deque[Future[bytes]] = deque()
        self.is_ready = False
        self.has_ended = False
        self._collecting = threading.Thread(target=self._collect, name="fold", daemon=True)
        self._collecting.start()

    def ask(self, message: bytes) -> "Future[bytes]":
        """Hand it over; what comes back is the future's."""
        answer: Future[bytes] = Future()
        self._waiting.append(answer)
        assert self._into is not None
        send(self._into, message)
        return answer

    def _collect(self) -> None:
        """Nobody writes while nobody reads: so answers are taken in a thread of their own."""
        answers = _out_of(self._process)
        with contextlib.suppress(OSError, ValueError, IndexError, InvalidStateError):
            self.is_ready = receive(answers) == HELLO
            while (message := receive(answers)) is not None:
                self._waiting.popleft().set_result(message)
        self.has_ended = True
        while self._waiting:
            self._waiting.popleft().set_exception(Gone("the folding process has ended"))

    def hold(self) -> None:
        """Keep it still, wherever it is; who reads for it goes on."""
        self._process.send_signal(signal.SIGSTOP)

    def let_go(self) -> None:
        """It goes on."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        for process in filter(None, (self._reader, self._process)):
            process.kill()
            process.wait()
        self._collecting.join()
        clear_scratch(self._store, self._process.pid)
        for pipe in (self._into, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was still to be sent has nowhere to go
                pipe.close()


def _out_of(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
