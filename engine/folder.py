"""What does the process that folds do?  It reads asks and hands back what follows from them.

It sees the store as the server had written it when it looked, and what it folded itself since, and
writes to nothing but a scratch store of its own (ADR 0037).
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from engine.documents import Unplaced
from engine.folding import fold_entry
from engine.pipes import end_with_starter, receive, send
from engine.reading import NICER, read_findings, rest_seldom
from engine.rows import Ask, Folded, Hurry, Step
from engine.state.aside import helper, stand_back
from engine.state.directory import Directory
from engine.state.index import Embedder
from engine.state.kv import KV
from engine.state.rows import Packed
from engine.state.scratch import open_beside
from engine.state.views import Place, Remembered, Rows, Unit, family_of, packed, row_key
from projectors import STAGES
from projectors.base import Projector, Stage
from projectors.fold import ProjectorFailed
from projectors.overlay import Overlay
from projectors.text import Extraction, was_read
from schemas.entry import Entry

if TYPE_CHECKING:
    from engine.embedders import Kind

HELLO: Final = b"ready"
"""What it says first."""
_GONE: Final = b""
_QUICK: Final = frozenset({"wordllama", "hashing"})
"""Models that make vectors of a few texts in no time, from what is on the disk."""

_encode = msgspec.msgpack.Encoder().encode
_read_ask = msgspec.msgpack.Decoder(Ask).decode
_read_hurry = msgspec.msgpack.Decoder(Hurry).decode


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
    send(pipe_out, HELLO)
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
    end_with_starter()
    rest_seldom()
    os.nice(NICER)
    with contextlib.suppress(BrokenPipeError):
        store, kind, generation, *more = arguments
        serve(Path(store), cast("Kind", kind), int(generation), is_read="read" in more)
