"""What passes between the stages of recall?  The question, the candidates as columns, the ranked.

`read_question` (question.py) makes the Question; `gather` (gather.py) resolves it against the
participants it finds and returns Candidates; `rank` (rank.py) gives the Ranked
(shapes.py), best first within each layer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from engine.state.block import Block
from engine.state.index import Embedder, Layer, TextIndex, VectorIndex

if TYPE_CHECKING:
    from engine.recall import columns, native

QueryKind = Literal["lookup", "temporal", "multi_hop", "preference", "summary"]


class Span(NamedTuple):
    """A period that the question names, in microseconds, half-open."""

    from_us: int
    to_us: int


@dataclass(frozen=True)
class Question:
    """What is asked, as the channels need it."""

    text: str
    kind: QueryKind
    terms: tuple[str, ...]
    """Words that carry meaning, lower case, in order; the index stems them."""
    gist: str
    """What is embedded: the bare question, in the first person when it names one participant."""
    about: tuple[str, ...] = ()
    """Actors the question names, in this order."""
    expects: frozenset[str] = frozenset()
    """Words of the sort an answer should have: a time to a when, a number to a how many."""
    spans: tuple[Span, ...] = ()
    """Periods it names: a soft boost, never a filter."""
    is_first_person: bool = False
    asks_assistant: bool = False
    """It asks for what the assistant said, and not the user."""
    wants_current: bool = False
    """It asks for the state now: only then does recency count."""


@dataclass(frozen=True)
class Window:
    """What gathering leaves out beforehand; None is no bound, and the bound itself is outside."""

    recorded_until_us: int | None = None
    admits: Callable[[Layer, Block], Any] | None = None
    """A filter on columns: bool[n] for a block, True where a row may be found."""


@dataclass(frozen=True)
class Reach:
    """How many candidates each channel may bring, and how many of the best bring neighbours.

    Twice as many find no more (ADR 0028).
    """

    words: int = 80
    meaning: int = 80
    neighbours: int = 20


@dataclass(frozen=True)
class Sources:
    """What gathering asks: the indexes, the embedder, and the events behind records."""

    arithmetic: Any
    """Who lays candidates out: the module `columns`, or a `native.Native`."""

    text: TextIndex
    vectors: VectorIndex
    embedder: Embedder
    events_behind: Callable[[int, Layer, Sequence[bytes]], Mapping[bytes, Sequence[bytes]]]
    """(tenant, layer, raw ids) -> raw ids of the events each record rests on."""
    actor_called: Callable[[int, int, str], str | None] = lambda _tenant, _scope, _name: None
    """(tenant, scope, name) -> the actor who goes by it there, by what was said of names."""


@dataclass(frozen=True)
class Candidates:
    """Everything that may answer, with the question as it was resolved.

    Events are told by people and compared among each other; what was derived is sentences of one
    kind, and one pool for all its layers.
    """

    question: Question
    layers: Sequence[Layer]
    pools: Mapping[Literal["events", "derived"], "columns.Pool | native.Pool"]
    hits: Mapping[str, int]
    """How many each channel brought: the probe that every leg was live."""
