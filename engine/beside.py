"""Who folds while the server answers?  A process of its own, when there is much to fold.

What follows from an entry is decided by pure projectors from the entry and the rows before it.
So a process beside the server can decide it: it reads the store as the server had written it, keeps
what it has folded since, and hands over rows. Writing stays with the owner
of the log, in one batch with checkpoint, feed and announcements: a process that dies takes nothing
along, and what it had is folded again (ADR 0037).
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from engine.clock import Clock
from engine.documents import Unplaced
from engine.folding import fold_entry
from engine.pipes import receive, send, start_module
from engine.reading import NICER, read_findings, rest_seldom
from engine.rows import Ask, Folded, Hurry, Step
from engine.state.aside import helper, stand_back
from engine.state.directory import Directory
from engine.state.index import Embedder
from engine.state.kv import KV
from engine.state.rows import Packed
from engine.state.scratch import clear_scratch, open_beside
from engine.state.views import Place, Remembered, Rows, Unit, family_of, packed, row_key
from projectors import STAGES
from projectors.base import Projector, Stage
from projectors.fold import ProjectorFailed, Skips
from projectors.overlay import Overlay
from projectors.text import Extraction, was_read
from schemas import limits
from schemas.entry import Entry

if TYPE_CHECKING:
    from engine.embedders import Kind

_HELLO: Final = b"ready"
_GONE: Final = b""
_QUICK: Final = frozenset({"wordllama", "hashing"})
"""Models that make vectors of a few texts in no time, from what is on the disk."""


class Gone(Exception):
    """The process beside the server has ended."""


_FAILURES: Final = (Gone, OSError, TimeoutError, ValueError)
"""Of a process that has ended: `ValueError` says that its pipe is closed."""


_encode = msgspec.msgpack.Encoder().encode
_read_ask = msgspec.msgpack.Decoder(Ask).decode
_read_hurry = msgspec.msgpack.Decoder(Hurry).decode
_read_folded = msgspec.msgpack.Decoder(Folded).decode


# ── in the server ────────────────────────────────────────────────────────────────────────────


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
            ask = Ask(
                # Not while it opens the store, which everything else waits for.
                is_beside=stretch.beside_entries > 0 and not (is_afresh or self._is_starved),
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
        self._process = start_module("engine.beside", arguments, before)
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
            self.is_ready = receive(answers) == _HELLO
            while (message := receive(answers)) is not None:
                self._waiting.popleft().set_result(message)
        self.has_ended = True
        while self._waiting:
            self._waiting.popleft().set_exception(Gone("the folding process has ended"))

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


# ── in the other process ─────────────────────────────────────────────────────────────────────


class Sight:
    """The rows of a generation: as they were written when it was opened, and as folded since.

    What is folded is kept in a store of its own, which goes with the process. So nothing depends
    on when the owner writes it, and memory is bounded.
    """

    def __init__(self, base: KV, own: KV, projectors: Sequence[Projector], generation: int) -> None:
        self._base, self._own = base, own
        unit = Unit(base, "staged", projectors)
        self._families = {t: family_of(p, generation) for t, p in unit.owner.items()}
        self.rows = Remembered(Rows(unit, generation, self))
        self._directory = Directory(base)
        self._scopes: dict[tuple[int, str], int] = {}
        self._offsets: dict[bytes, int] = {}

    def get(self, family: str, key: bytes) -> bytes | None:
        """The row as it was folded, else as it was written."""
        found = self._own.get(family, key)
        return self._base.get(family, key) if found is None else found or None

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The same for each of them."""
        return [self.get(family, key) for key in keys]

    def scan(
        self,
        family: str,
        start: bytes = b"",
        end: bytes | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Both merged, in key order."""
        rows = dict(self._base.scan(family, start, end))
        rows.update(self._own.scan(family, start, end))
        found = sorted((row for row in rows.items() if row[1] != _GONE), reverse=reverse)
        return iter(found[:limit])

    def keep(self, rows: Sequence[Packed], pending: dict[Place, msgspec.Struct | None]) -> None:
        """This was folded; no row's value is empty, so an empty one says that it is gone."""
        batch = self._own.batch()
        for tenant_no, table, key, value in rows:
            place = row_key(tenant_no, table, key)
            batch.put(self._families[table], place, _GONE if value is None else value)
        self._own.write(batch)
        self.rows.written(pending)

    # ── where things are, as far as it is known here (`Places`) ──

    def saw(self, entries: Sequence[Entry]) -> None:
        """These entries were handed over to be folded."""
        for entry in entries:
            self._scopes[entry.tenant_no, entry.scope] = entry.scope_no
            if entry.into_scope:
                self._scopes[entry.tenant_no, entry.into_scope] = entry.into_scope_no
            self._offsets[entry.id] = entry.offset

    def scope_no(self, tenant_no: int, scope: str) -> int:
        """The number of a scope that an entry has brought along."""
        found = self._scopes.get((tenant_no, scope))
        if found is None:
            raise Unplaced
        return found

    def offset(self, tenant_no: int, event: bytes) -> int:
        """Where an event is in the log."""
        found = self._offsets.get(event) or self._directory.find(tenant_no, event)
        if found is None:
            raise Unplaced
        return found

    def row(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """A row of the views."""
        return self.rows.get(tenant_no, table, key)

    def close(self) -> None:
        """Let go of both."""
        self._base.close()
        self._own.close()


class Desk:
    """Folds what it is asked to, on top of what is written and of what it folded itself."""

    def __init__(
        self,
        stages: tuple[Stage, ...],
        look: Callable[[], Sight],
        model: Callable[[], Embedder | None],
    ) -> None:
        """`look` opens what is written now; `model` makes vectors, once it is there."""
        self._stages = stages
        self._look = look
        self._model = model
        self._sight: Sight | None = None
        self._has_failed = False

    def answer(self, message: bytes, findings: bytes | None = None) -> bytes:
        """What an ask leaves, both as they travel; with what its words say, when they were read."""
        read = () if findings is None else read_findings(findings)
        return _encode(self._answer(_read_ask(message), read))

    def _answer(self, ask: Ask, read: Sequence[Extraction | None]) -> Folded:
        """What the entries leave; nothing after one that failed, until it is asked afresh."""
        if ask.is_afresh:
            self.close()
            self._sight = self._look()
            self._has_failed = False
        if self._has_failed or self._sight is None:
            return Folded([], [], is_whole=False)
        sight = self._sight
        overlay = Overlay(sight.rows)
        sight.saw(ask.entries)
        steps = self._fold(ask, read, overlay)
        rows = packed(overlay.pending)
        sight.keep(rows, overlay.pending)
        # While others post, the server has little time for its indexes, and nobody waits here.
        is_described = bool(steps) and ask.is_beside and not ask.is_again
        said = self._said(sight, ask.entries[: len(steps)], overlay) if is_described else None
        return Folded(rows, steps, is_whole=not self._has_failed, described=said)

    def _said(self, sight: Sight, entries: Sequence[Entry], overlay: Overlay) -> bytes:
        """What the entries mean for the indexes, with vectors where the model is there."""
        # It brings numpy along, and most who fold never need it: they are there the sooner.
        from engine.describing import (  # noqa: PLC0415
            Describer,
            describe,
            embedded,
            gist_of,
            layers_of,
        )

        layers = layers_of([one for stage in self._stages for one in stage.projectors])
        found = describe(Describer(sight), layers, entries, overlay.pending)
        model = self._model()
        if model is not None:
            texts = [gist_of(document) for one in found.told for document in one[4]]
            vectors = list(embedded(model, texts, _nothing))
            found = msgspec.structs.replace(found, model=model.name, vectors=vectors)
        return _encode(found)

    def _fold(self, ask: Ask, read: Sequence[Extraction | None], overlay: Overlay) -> list[Step]:
        steps: list[Step] = []
        skips, indexed, is_again = frozenset(ask.skips), ask.is_indexed, ask.is_again
        for at, entry in enumerate(ask.entries):
            found = read[at] if read else None
            if found is not None:
                was_read(entry, found)
            try:
                step = fold_entry(
                    entry, self._stages, overlay, skips, indexed=indexed, is_again=is_again
                )
                steps.append(step)
            except ProjectorFailed:
                # It fails in the server again, where it is tried, told and parked.
                self._has_failed = True
                break
        return steps

    def close(self) -> None:
        """Let go of what it sees."""
        if self._sight is not None:
            self._sight.close()
            self._sight = None


def look(store: Path, generation: int) -> Sight:
    """The rows of the store as they are now."""
    projectors = tuple(projector for stage in STAGES for projector in stage.projectors)
    families = [family_of(projector.name, generation) for projector in projectors]
    return Sight(*open_beside(store, families), projectors, generation)


def _nothing() -> None:
    """Nobody waits here."""


def serve(store: Path, kind: "Kind", generation: int, *, is_read: bool) -> None:
    """Fold until the server hangs up; what each ask says follows it, when another has read it.

    While others post, a thread folds that stands back; one that did so once may not come forward
    again, so that there is another for when nobody posts.
    """
    pipe_in, pipe_out = sys.stdin.buffer, sys.stdout.buffer
    send(pipe_out, _HELLO)
    with helper(1, "back", stand_back) as back, helper(1, "model") as loader:
        desk = Desk(STAGES, partial(look, store, generation), Model(kind, loader))
        while (message := receive(pipe_in)) is not None:
            findings = receive(pipe_in) if is_read else None
            if is_read and findings is None:
                return
            if _read_hurry(message).is_beside:
                answer = back.submit(desk.answer, message, findings).result()
            else:
                answer = desk.answer(message, findings)
            send(pipe_out, answer)


def _load(kind: "Kind") -> Embedder:
    from engine.embedders import load_embedder  # noqa: PLC0415 - slow, and seldom needed

    return load_embedder(kind)


class Model:
    """The model that makes vectors, loaded when it is first asked for; until then there is none.

    One that is slow, or not on the disk, is asked by the server alone.
    """

    def __init__(self, kind: "Kind", loader: ThreadPoolExecutor) -> None:
        self._kind = kind
        self._loader = loader
        self._loading: Future[Embedder] | None = None

    def __call__(self) -> Embedder | None:
        """The model, if it is there."""
        if self._kind not in _QUICK:
            return None
        if self._loading is None:
            self._loading = self._loader.submit(_load, self._kind)
        is_loaded = self._loading.done() and self._loading.exception() is None
        return self._loading.result() if is_loaded else None


def main(arguments: Sequence[str]) -> None:
    """What the server starts: the store, the model, the generation, whether words were read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    rest_seldom()
    os.nice(NICER)
    with contextlib.suppress(BrokenPipeError):
        store, kind, generation, *more = arguments
        serve(Path(store), cast("Kind", kind), int(generation), is_read="read" in more)
