"""What does a selector come to?  Records and events, and what rests on them alone (001 §11.2)."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.layers.naming import meaning_of
from engine.records import as_known, get_latest, present
from engine.state.names import SCOPE
from engine.temporal import Window, resolve
from projectors.blobs import cited
from projectors.records import LAYERS, name_key
from schemas import limits
from schemas.entry import Entry, ForgottenEvent, ForgottenRecord
from schemas.errors import InvalidParameter
from schemas.forget import LayerCounts, Selector
from schemas.ids import format_id, parse_id
from schemas.layers import Belief, Concept, Episode, Fact, LiteralValue, Node, Record
from schemas.temporal import TemporalBlock

if TYPE_CHECKING:
    from engine.engine import Engine

TABLES: Final = {
    "episodes": "episodes",
    "facts": "facts",
    "beliefs": "beliefs",
    "understanding": "concepts",
}
"""The layer as it is called, and its table."""

_CALLED: Final = {table: layer for layer, table in TABLES.items()}
_TABLE_OF: Final = {prefix: table for table, (prefix, _) in LAYERS.items()}
_STEP: Final = 256

Wanted = Callable[[Any], bool]


class Selection(msgspec.Struct, kw_only=True):
    """What was found: records by id with their scope, and events by offset."""

    records: dict[str, ForgottenRecord] = {}
    events: dict[int, ForgottenEvent] = {}
    callers: set[str] = set()
    held: int = 0

    def add(self, record: Record, scope_no: int) -> None:
        """One more record."""
        self.records[record.id] = ForgottenRecord(record.id, scope_no)
        if len(self.records) + len(self.events) > limits.FORGET_RECORDS_MAX:
            raise InvalidParameter(
                field="selector",
                reason=f"more than {limits.FORGET_RECORDS_MAX} records match",
                remediation="narrow the selector, or erase the scope at /v1/erasures",
            )

    def counts(self, *, with_events: bool) -> LayerCounts:
        """How many of each layer."""
        found = dict.fromkeys(TABLES, 0)
        for name in self.records:
            found[_CALLED[table_of(name) or "facts"]] += 1
        return LayerCounts(events=len(self.events) if with_events else 0, **found)


def table_of(record_id: str) -> str | None:
    """The table of the layer whose id this is."""
    return _TABLE_OF.get(record_id.partition("_")[0])


# ── filters ──────────────────────────────────────────────────────────────────────────────────


class Filters:
    """A selector as tests of records and of events, in one scope."""

    def __init__(self, engine: "Engine", tenant_no: int, scope_no: int, selector: Selector) -> None:
        self._engine = engine
        self._tenant_no = tenant_no
        self.scope_no = scope_no
        self.selector = selector
        recorded = selector.recorded_during or selector.created_during
        block = TemporalBlock(valid_during=selector.valid_during, recorded_during=recorded)
        self._window: Window = resolve(block, present(engine), at="selector")
        self._subject = self._roots(selector.about_subject, scope_no)
        self._entity = self._roots(selector.about_entity, scope_no)

    def _roots(self, text: str | None, scope_no: int) -> set[str]:
        if not text:
            return set()
        meant = meaning_of(self._engine, self._tenant_no, text, scope_no)
        return {text} if meant is None else {text, meant.id, meant.root}

    def _names(self, node: Node | str | None) -> set[str]:
        """All that a node is called by: its id, its root, its name."""
        if node is None or isinstance(node, LiteralValue):
            return set() if node is None else {str(node.value)}
        named = node if isinstance(node, str) else node.id
        row = self._engine.staged.get(self._tenant_no, "entities", name_key(named))
        found = {named} if row is None else {named, row.root, row.name, row.actor or named}
        return found if isinstance(node, str) else found | {node.name or named}

    def wants(self, record: Record) -> bool:
        """Whether every filter that is set matches a record."""
        during, recorded = self._window.valid_during, self._window.recorded_during
        if not all(span.overlaps(record.valid_from, record.valid_to) for span in during):
            return False
        if not all(span.contains(record.recorded_from) for span in recorded):
            return False
        subjects, others, predicate = self._about(record)
        asked = self.selector
        if asked.predicate and predicate != asked.predicate:
            return False
        if self._subject and not self._subject & subjects:
            return False
        return not self._entity or bool(self._entity & (subjects | others))

    def _about(self, record: Record) -> tuple[set[str], set[str], str | None]:
        """(names of its subject, of other things, its predicate) of a record."""
        match record:
            case Fact(subject=subject, object=thing, predicate=predicate):
                return self._names(subject), self._names(thing), predicate
            case Belief(claim=claim):
                return self._names(claim.subject), self._names(claim.object), claim.predicate
            case Episode(actors_involved=actors):
                return {name for actor in actors for name in self._names(actor)}, set(), None
            case Concept(entity_id=entity):
                said = record.synthesis_inputs.filters.get("predicate")
                return self._names(entity), set(), said if isinstance(said, str) else None

    @property
    def can_match_events(self) -> bool:
        """Whether what is asked can be asked of an event: it has no predicate of its own."""
        return not self.selector.predicate and not self.selector.about_entity

    def wants_event(self, entry: Entry) -> bool:
        """Whether every filter that is set matches an event."""
        envelope = entry.envelope
        if envelope is None:
            return False
        actor = envelope.observed_actor.id if envelope.observed_actor is not None else entry.caller
        about = envelope.subject.id if envelope.subject is not None else actor
        if self._subject and not self._subject & self._names(about):
            return False
        observed = envelope.context.observed_at
        return all(span.contains(observed) for span in self._window.valid_during) and all(
            span.contains(entry.recorded_at) for span in self._window.recorded_during
        )


# ── finding ──────────────────────────────────────────────────────────────────────────────────


def records_in(engine: "Engine", tenant_no: int, table: str, scope_no: int) -> Iterator[Record]:
    """Every record of a layer in a scope, as it is known last."""
    if table not in engine.staged.owner:
        return
    after = scope_no.to_bytes(4, "big")
    end = (scope_no + 1).to_bytes(4, "big")
    while True:
        rows = engine.staged.between(
            tenant_no, f"{table}_in", after, end, last_first=False, limit=_STEP
        )
        for key, _ in rows:
            record = get_latest(engine, tenant_no, table, key[4:])
            if record is not None:
                yield record
        if len(rows) < _STEP:
            return
        after = rows[-1][0] + b"\0"


def entries_in(engine: "Engine", tenant_no: int, scope_no: int) -> Iterator[Entry]:
    """Every experience of a scope that still has its payload, oldest first."""
    after, head = 0, engine.log.head()
    while True:
        offsets = engine.directory.scope_offsets(
            tenant_no, scope_no, after=after, newest_first=False, limit=_STEP
        )
        offsets = [offset for offset in offsets if offset <= head]
        for row in engine.log.read_many(offsets):
            entry = engine.entry_of(row)
            if entry.envelope is not None:
                yield entry
        if len(offsets) < _STEP:
            return
        after = offsets[-1]


def forgotten_event(engine: "Engine", entry: Entry) -> ForgottenEvent:
    """An event with all that hangs on its payload."""
    envelope, tenant_no = entry.envelope, entry.tenant_no
    assert envelope is not None, "an experience that was not erased"
    derives = engine.staged.get(tenant_no, "derives", entry.id)
    ids = derives.ids if derives is not None else []
    names = [name for name in ids if not name.startswith("redacted:")]
    told = [
        (format_id("concept", raw), offset)
        for raw in concepts_on(engine, tenant_no, names)
        for offset in _annotations(engine, tenant_no, raw)
    ]
    return ForgottenEvent(
        event_id=entry.event_id,
        offset=entry.offset,
        scope_no=entry.scope_no,
        blobs=sorted({blob for _, blob in cited(envelope) if parse_id("blob", blob)}),
        cites=sorted({one for one in envelope.context.preceded_by if parse_id("evt", one)}),
        derived=names,
        annotations=_annotations(engine, tenant_no, entry.id),
        told=told,
    )


def _annotations(engine: "Engine", tenant_no: int, raw: bytes) -> list[int]:
    """The offsets of what models said of an event or a concept."""
    rows = engine.inline.scan(tenant_no, "annotated", raw)
    return [int.from_bytes(key[16:], "big") for key, _ in rows]


# ── what rests on it ─────────────────────────────────────────────────────────────────────────


def take_events(
    engine: "Engine", tenant_no: int, found: Selection, entries: Iterable[Entry]
) -> None:
    """Take events into a selection, with what follows from them and from nothing else."""
    fresh = []
    for entry in entries:
        if entry.offset not in found.events:
            found.events[entry.offset] = forgotten_event(engine, entry)
            found.callers.add(entry.caller)
            fresh.append(found.events[entry.offset])
    ids = {event.event_id for event in found.events.values()}
    for name in dict.fromkeys(name for event in fresh for name in event.derived):
        record = latest(engine, tenant_no, name)
        if isinstance(record, Fact | Episode) and set(behind(engine, tenant_no, record)) <= ids:
            found.add(record, scope_no_of(engine, tenant_no, record))
        if len(found.events) > limits.FORGET_RECORDS_MAX:
            reason = f"more than {limits.FORGET_RECORDS_MAX} events match"
            raise InvalidParameter(field="selector", reason=reason)


def take_dependants(engine: "Engine", tenant_no: int, found: Selection) -> None:
    """Beliefs and concepts of which nothing would be left go too, and are counted."""
    facts = [name for name in found.records if name.startswith("fact_")]
    for belief, scope_no in beliefs_on(engine, tenant_no, facts):
        found.add(belief, scope_no)
    for raw in concepts_on(engine, tenant_no, facts):
        concept = get_latest(engine, tenant_no, "concepts", raw)
        if isinstance(concept, Concept) and set(concept.supported_by.facts) <= set(facts):
            found.add(concept, scope_no_of(engine, tenant_no, concept))


def beliefs_on(
    engine: "Engine", tenant_no: int, facts: Iterable[str]
) -> Iterator[tuple[Record, int]]:
    """The beliefs that rest on these facts and on nothing else, each with its scope's number."""
    gone = {parse_id("fact", name) for name in facts if name.startswith("fact_")}
    met: dict[bytes, None] = {}
    for raw in gone:
        weighed = engine.staged.get(tenant_no, "belief_evidence", raw or b"")
        if weighed is not None:
            met[weighed.belief] = None
    for raw in sorted(met):
        scale = engine.staged.get(tenant_no, "belief_scales", raw)
        belief = get_latest(engine, tenant_no, "beliefs", raw)
        if belief is None or scale is None or scale.facts > len(scale.shown):
            continue
        if all(one.fact in gone for one in scale.shown):
            yield belief, scale.scope_no


def concepts_on(engine: "Engine", tenant_no: int, facts: Iterable[str]) -> list[bytes]:
    """The concepts in whose tallies these facts are counted."""
    found: dict[bytes, None] = {}
    for name in facts:
        raw = parse_id("fact", name)
        counted = raw and engine.staged.get(tenant_no, "concept_facts", raw)
        for key in counted.keys if counted else ():
            tally = engine.staged.get(tenant_no, "concept_tallies", key)
            if tally is not None and tally.concept is not None:
                found[tally.concept] = None
    return list(found)


def latest(engine: "Engine", tenant_no: int, record_id: str) -> Record | None:
    """A record of any layer by its id."""
    table = table_of(record_id)
    raw = None if table is None else parse_id(LAYERS[table][0], record_id)
    return None if table is None or raw is None else get_latest(engine, tenant_no, table, raw)


def episode_events(engine: "Engine", tenant_no: int, episode: Episode) -> list[str]:
    """The events of an episode, also while it is open."""
    raw = parse_id("ep", episode.id) or b""
    whole = as_known(engine, tenant_no, raw, episode, present(engine))
    return whole.events if isinstance(whole, Episode) else episode.events


def scope_no_of(engine: "Engine", tenant_no: int, record: Record) -> int:
    """The number of the scope a record lives in."""
    return engine.names.known(SCOPE, tenant_no, record.scope) or 0


def event_of_id(engine: "Engine", tenant_no: int, event_id: str) -> Entry | None:
    """An experience by its id, if it still has its payload."""
    raw = parse_id("evt", event_id)
    offset = None if raw is None else engine.directory.find(tenant_no, raw)
    if offset is None or offset > engine.log.head():
        return None
    entry = engine.entry_of(engine.log.read_many([offset])[0])
    return entry if entry.envelope is not None else None


def behind(engine: "Engine", tenant_no: int, record: Record) -> Iterator[str]:
    """The ids of the events that a record rests on."""
    match record:
        case Fact(supports=supports):
            yield from supports
        case Episode():
            yield from episode_events(engine, tenant_no, record)
        case Belief(supports=evidence):
            for one in evidence:
                fact = latest(engine, tenant_no, one.id)
                yield from fact.supports if isinstance(fact, Fact) else ()
        case Concept(supported_by=supported):
            for name in supported.facts:
                fact = latest(engine, tenant_no, name)
                yield from fact.supports if isinstance(fact, Fact) else ()


def is_held(engine: "Engine", tenant_no: int, scope: str) -> bool:
    """Whether a legal hold lies on a scope or on one above it."""
    parts = scope.split("/")
    for size in range(1, len(parts) + 1):
        number = engine.names.known(SCOPE, tenant_no, "/".join(parts[:size]))
        key = (number or 0).to_bytes(4, "big")
        if number is not None and engine.inline.get(tenant_no, "holds", key) is not None:
            return True
    return False
