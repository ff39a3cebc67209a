"""What does a record say by itself, whoever asks?  Worked out once for as long as it is kept."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.attached import Attached
from engine.recall.render import Thing, source_of, trust_of, when_of, words_of
from engine.recall.shapes import UNMARKED, Marks
from engine.state.index import Layer
from schemas import limits
from schemas.ids import parse_id
from schemas.layers import Belief, Concept, Episode, Event, Fact

LAYER_OF: Final[Mapping[str, Layer]] = {
    "evt": "events",
    "ep": "episodes",
    "fact": "facts",
    "belief": "beliefs",
    "concept": "concepts",
}
"""Which layer an id is of, by its prefix."""

LOW_TRUST: Final = 0.5
STALE: Final = 0.5
"""Below this confidence a record is marked; above this share of missed updates a concept is."""


class Way(NamedTuple):
    """One step down from a record: an id, its table, and its raw form where it is a record's."""

    name: str
    table: Layer | None
    raw: bytes | None


class Sheet:
    """What follows from a record and nothing else; it does not hold the record."""

    __slots__ = (
        "behind",
        "cited",
        "encoded",
        "events",
        "facts",
        "has_source",
        "is_deprecated",
        "lines",
        "marks",
        "source",
        "trust",
        "ways",
        "when",
        "words",
    )

    def __init__(self, thing: Thing) -> None:
        self.words = words_of(thing)
        self.source = source_of(thing)
        self.trust = trust_of(thing)
        self.when = when_of(thing)
        self.cited = rests_on(thing)[: limits.CITED_EVENTS_MAX]
        self.events = _events(self.cited)
        """The raw ids of what it cites; None when not all of it is events."""
        self.ways = [_way(name) for name in self.cited] if self.events is None else []
        """What it cites, as it is looked up, when not all of it is events."""
        self.behind: tuple[bytes, ...] | None = None
        """The raw ids of all events it rests on directly; None when it rests on anything else, and
        until somebody asked."""
        self.facts = _facts(thing)
        """The raw ids of the facts that follow from an event."""
        self.marks = _marks(thing)
        """What a reader should know of it; None when that depends on the moment asked about."""
        self.is_deprecated = getattr(thing, "stance", None) == "deprecated"
        self.lines: dict[tuple[str, ...], tuple[str, int]] = {}
        """(model, rendering, *marks) -> its line with all of its words, and the tokens it has."""
        self.encoded: tuple[bytes, str] | None = None
        """The record as a client gets it, and where it comes from; None until somebody did."""
        self.has_source = isinstance(thing, Event) and thing.source is not None
        """Whether it says itself where it comes from: then the item's word takes that place."""


_sheets: Final[Attached[Sheet]] = Attached()


def sheet_of(thing: Thing) -> Sheet:
    """The sheet of a record."""
    return _sheets.get(thing) or _sheets.keep(thing, Sheet(thing))


def marked(
    is_superseded: bool = False, *, is_stale: bool = False, is_low_trust: bool = False
) -> Marks:
    """Marks without names; mostly there are none."""
    if not (is_superseded or is_stale or is_low_trust):
        return UNMARKED
    return Marks((), is_superseded, is_stale, is_low_trust)


def marks_when(record: Fact | Belief, *, is_over: bool) -> Marks:
    """What a reader should know of a record, once it is known whether something else holds."""
    if isinstance(record, Fact):
        return marked(is_over, is_low_trust=record.confidence < LOW_TRUST or record.partial)
    is_weak = record.confidence < LOW_TRUST or record.stance != "supported"
    return marked(is_over, is_stale=record.stance == "deprecated", is_low_trust=is_weak)


def _marks(thing: Thing) -> Marks | None:
    match thing:
        case Event():
            return None if thing.derives else UNMARKED
        case Fact() | Belief():
            ends = thing.valid_to is not None and thing.superseded_by is not None
            is_open = thing.recorded_to is None and not ends
            return marks_when(thing, is_over=False) if is_open else None
        case Concept():
            is_stale = thing.staleness_score > STALE or thing.stance == "deprecated"
            return marked(is_stale=is_stale, is_low_trust=thing.confidence < LOW_TRUST)
    return UNMARKED


def rests_on(thing: Thing) -> list[str]:
    """The ids a record cites itself: one step of the way to the events (001 §9.3)."""
    match thing:
        case Fact():
            return thing.supports
        case Episode():
            return thing.events
        case Belief():
            return [evidence.id for evidence in thing.supports]
        case Concept():
            named = thing.supported_by
            return [*named.facts, *named.beliefs, *named.episodes] or thing.supports
    return []


def raw_event(name: str) -> bytes | None:
    """The sixteen bytes of an event's id; records cite many, and only what was written so."""
    try:
        return bytes.fromhex(name[4:].replace("-", ""))
    except ValueError:
        return None


def _facts(thing: Thing) -> tuple[bytes, ...]:
    named = thing.derives if isinstance(thing, Event) else ()
    return tuple(raw for name in named if (raw := parse_id("fact", name)) is not None)


def _way(name: str) -> Way:
    prefix = name.partition("_")[0]
    table = LAYER_OF.get(prefix)
    is_looked_up = table is not None and table != "events"
    return Way(name, table, parse_id(prefix, name) if is_looked_up else None)


def _events(cited: Sequence[str]) -> tuple[bytes, ...] | None:
    raws = [raw_event(name) if name.startswith("evt_") else None for name in cited]
    known = [raw for raw in raws if raw is not None]
    return tuple(known) if len(known) == len(raws) else None
