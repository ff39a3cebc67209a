"""What can be computed away from the log?  Each kind of task: what is asked, answered, and how.

None of it reads the store or appends: the answer follows from what is asked, whoever computes it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from engine.asking import Facts, kept_facts, question_of
from engine.clock import Clock
from engine.exporters import EXPORTERS
from engine.importers.mapping import MapPart, Mapped, Mapper
from engine.models import Failure, Model, ModelFailed
from engine.sources import SourceFailed, read_url
from engine.state.index import Embedder
from schemas.entry import Entry
from schemas.layers import Belief, Concept, Episode, Event, Fact

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

_json = msgspec.json.Encoder().encode
_SHAPES: Final[dict[str, Any]] = {
    "events": list[Event],
    "episodes": list[Episode],
    "facts": list[Fact],
    "beliefs": list[Belief],
    "understanding": list[Concept],
}
_FILES_KEPT: Final = 2


class Refused(Exception):
    """There can be no answer, now or later, here or elsewhere; the message says why."""


class Tools:
    """What the computing needs besides what is asked; a model and an embedder where there are."""

    def __init__(
        self, clock: Clock, model: Model | None = None, embedder: Embedder | None = None
    ) -> None:
        self.clock = clock
        self.model = model
        self.embedder = embedder
        self._files: OrderedDict[str, tuple[float, Mapper]] = OrderedDict()

    def mapper(self, job_id: str) -> Mapper:
        """The file of an import, parsed once for all of its parts."""
        _, found = self._files.pop(job_id, (0.0, Mapper()))
        self._files[job_id] = (self.clock.elapsed_s(), found)
        while len(self._files) > _FILES_KEPT:
            self._files.popitem(last=False)
        return found

    def forget(self, job_id: str) -> None:
        """The job is over: its file goes."""
        self._files.pop(job_id, None)

    def forget_unused(self, since_s: float) -> None:
        """What nobody asked about for a while goes: it holds what people wrote."""
        before_s = self.clock.elapsed_s() - since_s
        for job_id in [name for name, (at_s, _) in self._files.items() if at_s < before_s]:
            self._files.pop(job_id, None)


Reading = Callable[[], bytes]


@dataclass(frozen=True)
class Compute(Generic[Asked, Answer]):
    """One kind of task."""

    kind: str
    asked: type[Asked]
    answer: type[Answer]
    run: Callable[[Asked, Tools, Reading], Awaitable[Answer]]


# ── imports ──────────────────────────────────────────────────────────────────────────────────


async def _map(asked: MapPart, tools: Tools, read: Reading) -> Mapped:
    """Rows of a file as checked envelopes. A worker fetches an address by itself."""
    url = asked.source.get("url")
    source = read if url is None else lambda: read_url(url)
    try:
        return await asyncio.to_thread(tools.mapper(asked.job_id).part, asked, source)
    except SourceFailed as error:
        raise Refused(str(error)) from error


MAP: Final = Compute("import", MapPart, Mapped, _map)


# ── exports ──────────────────────────────────────────────────────────────────────────────────


class RenderPart(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one layer, to be written in a format."""

    format: str
    layer: str
    records: bytes


class Rendered(msgspec.Struct, frozen=True):
    """Lines of a file, and how many."""

    lines: bytes
    count: int


def records_of(records: Sequence[Any]) -> bytes:
    """Records as a task carries them."""
    return msgspec.msgpack.encode(records)


def render(asked: RenderPart) -> Rendered:
    """The lines of some records; some have none in another system's file."""
    line_of = EXPORTERS[asked.format]
    records = msgspec.msgpack.decode(asked.records, type=_SHAPES[asked.layer])
    made = [line_of(asked.layer, record) for record in records]
    kept = [_json(line) for line in made if line is not None]
    return Rendered(b"".join(line + b"\n" for line in kept), len(kept))


async def _render(asked: RenderPart, tools: Tools, read: Reading) -> Rendered:
    del tools, read
    return await asyncio.to_thread(render, asked)


RENDER: Final = Compute("export", RenderPart, Rendered, _render)


# ── erasures ─────────────────────────────────────────────────────────────────────────────────


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure comes to, by name only: no word of what is erased leaves the owner."""

    events: list[str]
    records: int
    kept: list[list[str]]
    """For each fact that outlives its evidence, the events that support it."""
    step: int


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One directive's worth: where it begins in both lists, and which facts lose evidence by it."""

    start: int
    kept: list[int]


def split(asked: SplitPlan) -> list[Part]:
    """Cut a plan into parts; a fact goes with every part that takes evidence from it."""
    place = {event_id: at // asked.step for at, event_id in enumerate(asked.events)}
    losing: dict[int, list[int]] = {}
    for number, supports in enumerate(asked.kept):
        for part in {place[event_id] for event_id in supports if event_id in place}:
            losing.setdefault(part, []).append(number)
    starts = range(0, max(len(asked.events), asked.records), asked.step)
    return [Part(start, losing.get(at, [])) for at, start in enumerate(starts)]


async def _split(asked: SplitPlan, tools: Tools, read: Reading) -> list[Part]:
    del tools, read
    return await asyncio.to_thread(split, asked)


SPLIT: Final[Compute[SplitPlan, list[Part]]] = Compute("erasure", SplitPlan, list[Part], _split)


# ── models ───────────────────────────────────────────────────────────────────────────────────


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model said of an event, or why it said nothing."""

    facts: list[dict[str, Any]] = []
    version: str = ""
    failure: Failure | None = None
    reason: str = ""
    retry_after_s: float | None = None


async def ask_about(model: Model, entry: Entry, nonce: str) -> Said:
    """Ask a model about one event."""
    try:
        answer = await model.ask(question_of(entry, nonce), Facts)
    except ModelFailed as failed:
        return Said(failure=failed.kind, reason=failed.reason, retry_after_s=failed.retry_after_s)
    facts = kept_facts(answer.value, entry)
    if facts is None:
        return Said(failure="unusable", reason="no fact of the answer can stand")
    return Said(facts=facts, version=answer.version)


async def ask_about_all(model: Model, entries: Sequence[Entry], clock: Clock) -> list[Said]:
    """Ask about several, as many at once as the model takes."""
    nonces = [f"{clock.entropy():016x}" for _ in entries]
    return await asyncio.gather(*map(ask_about, [model] * len(entries), entries, nonces))


async def _annotate(asked: list[Entry], tools: Tools, read: Reading) -> list[Said]:
    del read
    if tools.model is None:
        raise Refused("there is no model here")
    return await ask_about_all(tools.model, asked, tools.clock)


ANNOTATE: Final[Compute[list[Entry], list[Said]]] = Compute(
    "model", list[Entry], list[Said], _annotate
)


# ── embedders ────────────────────────────────────────────────────────────────────────────────


class Embedded(msgspec.Struct, frozen=True):
    """Vectors of texts, row by row, as float32."""

    dimensions: int
    rows: bytes


async def _embed(asked: list[str], tools: Tools, read: Reading) -> Embedded:
    del read
    if tools.embedder is None:
        raise Refused("there is no embedder here")
    found = await asyncio.to_thread(tools.embedder.embed, asked)
    return Embedded(int(found.shape[1]), found.astype("<f4").tobytes())


EMBED: Final[Compute[list[str], Embedded]] = Compute("embed", list[str], Embedded, _embed)

COMPUTES: Final[dict[str, Compute[Any, Any]]] = {
    one.kind: one for one in (MAP, RENDER, SPLIT, ANNOTATE, EMBED)
}
