"""A small world to search: turns as documents in real indexes, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from engine.embedders import load_local
from engine.recall import columns
from engine.recall.candidates import Candidates, Question, Reach, Sources, Window
from engine.recall.gather import gather
from engine.recall.question import read_question
from engine.recall.rank import rank
from engine.recall.shapes import Ranked
from engine.state.blocks import pack_vectors, row_of
from engine.state.index import Document, Layer
from engine.state.memory import MemoryKV
from engine.state.text_index import TantivyText
from engine.state.vector_index import BlockVectors, Placed
from schemas.times import to_us

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
ARITHMETIC = columns
"""Who lays candidates out; `conftest.py` tries both."""
NOW_US = to_us(datetime(2026, 6, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Turn:
    """Something said. `text` alone will do."""

    text: str
    actor: str = "user:ann"
    session: str = ""
    role: str = ""
    at: datetime | None = None
    scope_no: int = 1
    layer: Layer = "events"


@dataclass
class World:
    """Documents in both indexes; a turn is known by its place in the list."""

    turns: Sequence[Turn]
    behind: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Place of a derived document -> places of the events it rests on."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Name -> the actor who goes by it."""

    def __post_init__(self) -> None:
        embedder = load_local("wordllama")
        text, kv = TantivyText(), MemoryKV(["meta"])
        vectors = BlockVectors(kv, 1, embedder.dimensions)
        documents = [self._document(at, turn) for at, turn in enumerate(self.turns)]
        text.add(documents)
        text.commit(len(documents))
        packed = pack_vectors(embedder.embed([document.gist for document in documents]))
        placed = [
            Placed(1, one.scope_no, one.layer, row_of(one, b"", vector, self._tokens(one.gist)))
            for one, vector in zip(documents, packed, strict=True)
        ]
        vectors.write(kv.batch(), placed, [], len(documents))
        self.sources = Sources(
            arithmetic=columns,
            text=text,
            vectors=vectors,
            embedder=embedder,
            events_behind=self._events_behind,
            actor_called=lambda _tenant, _scope, name: self.called.get(name),
        )

    @staticmethod
    def _tokens(gist: str) -> bytes:
        tokens: bytes = load_local("wordllama").tokens(gist).astype("<i4").tobytes()
        return tokens

    @staticmethod
    def _document(at: int, turn: Turn) -> Document:
        when = turn.at or START + timedelta(minutes=at)
        speaker = turn.actor.partition(":")[2]
        return Document(
            layer=turn.layer,
            raw=raw_of(at),
            tenant_no=1,
            scope_no=turn.scope_no,
            offset=at + 1,
            text=f"[{when.day} {when:%B %Y}] {speaker}: {turn.text}",
            gist=turn.text,
            observed_us=to_us(when),
            recorded_us=to_us(START + timedelta(minutes=at)),
            actor=turn.actor,
            session=turn.session,
            role=turn.role,
        )

    def _events_behind(
        self, tenant_no: int, layer: Layer, raws: Sequence[bytes]
    ) -> dict[bytes, list[bytes]]:
        return {raw: [raw_of(at) for at in self.behind.get(place_of(raw), ())] for raw in raws}

    def gather(
        self,
        text: str | Question,
        layers: Sequence[Layer] = ("events",),
        scopes: Sequence[int] = (1,),
        window: Window | None = None,
        reach: Reach | None = None,
    ) -> Candidates:
        question = read_question(text, NOW_US) if isinstance(text, str) else text
        return gather(
            replace(self.sources, arithmetic=ARITHMETIC),
            1,
            scopes,
            question,
            layers=layers,
            window=window or Window(),
            reach=reach or Reach(),
        )

    def ranked(self, text: str, **options) -> list[Ranked]:
        """The events that answer, best first."""
        return list(rank(self.gather(text, **options))["events"])

    def best(self, text: str, **options) -> list[int]:
        """The places of the turns that answer, best first."""
        return [place_of(one.raw) for one in self.ranked(text, **options)]


def raw_of(at: int) -> bytes:
    return at.to_bytes(16, "big")


def place_of(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
