"""Does what is said become episodes, facts, beliefs and concepts, and stop being them together?

Everything here goes through the stages as the daemon runs them, from words to concepts.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from projectors import STAGES
from projectors.beliefs.why import why
from projectors.fold import fold_stages
from projectors.overlay import Overlay
from schemas.entry import KINDS, Cancel, Directive, Entry, Experience, Synthesize
from schemas.envelope import Actor, Context, Envelope, Message, Triple, TripleContent
from schemas.ids import format_id, parse_id, uuid7
from schemas.times import to_us

SCOPE = "org:acme/user:alice"
TABLES = {t: k for stage in STAGES for p in stage.projectors for t, k in p.tables.items()}


class Rows:
    """Rows as a store keeps them: bytes, decoded anew whenever they are read."""

    def __init__(self):
        self.rows = {}

    def get(self, tenant_no, table, key):
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else msgspec.msgpack.decode(value, type=TABLES[table])

    def scan(self, tenant_no, table, prefix):
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.get(*place)

    def take(self, overlay):
        for place, value in overlay.pending.items():
            if value is None:
                self.rows.pop(place, None)
            else:
                self.rows[place] = msgspec.msgpack.encode(value)


class Log:
    """Entries by hand, and what the stages make of them."""

    def __init__(self):
        self.entries = []
        self.at = datetime(2026, 5, 1, 9, tzinfo=UTC)
        self.store = Rows()
        self.reports = []

    def add(self, body: Any, by: str = "user:alice") -> Entry:
        self.at += timedelta(hours=1)
        raw = uuid7(to_us(self.at), len(self.entries) + 1)
        entry = Entry(
            offset=len(self.entries) + 1,
            id=raw,
            event_id=format_id("evt", raw),
            tenant="acme",
            tenant_no=1,
            scope=SCOPE,
            scope_no=4,
            caller=by,
            recorded_at=self.at,
            kind=KINDS[type(body)],
            body=body,
        )
        self.entries.append(entry)
        overlay = Overlay(self.store)
        (outcome,) = fold_stages([entry], STAGES, overlay, frozenset())
        self.store.take(overlay)
        self.reports = outcome.reports
        return entry

    def say(self, content: Any, by: str = "user:alice") -> Entry:
        if isinstance(content, str):
            content = Message(role="user", text=content)
        envelope = Envelope(
            scope=SCOPE,
            observed_actor=Actor(id=by),
            modality="conversation",
            content=content,
            context=Context(observed_at=self.at),
            idempotency_key=f"k{len(self.entries)}",
        )
        return self.add(Experience(envelope=envelope), by)

    def know(self, subject: str, predicate: str, value: Any, by: str = "user:alice") -> Entry:
        return self.say(
            TripleContent(triple=Triple(subject=subject, predicate=predicate, object=value)), by
        )

    def cancel(self, entry: Entry) -> Entry:
        command = Cancel(event_id=entry.event_id, offset=entry.offset, stages=[])
        return self.add(Directive(command=command, scope=SCOPE))

    def records(self, layer):
        return [record for _, record in self.store.scan(1, layer, b"")]

    def beliefs(self):
        """What is believed now, by subject, predicate and value."""
        return {
            (one.claim.subject.name, one.claim.predicate, _value(one.claim.object)): one
            for one in self.records("beliefs")
            if one.recorded_to is None and one.valid_to is None
        }

    def concepts(self):
        return {one.name: one for one in self.records("concepts")}

    def replayed(self, sizes):
        """The rows that the same entries leave when they are folded in batches of these sizes."""
        store, left = Rows(), list(self.entries)
        for size in [*sizes, len(left)]:
            batch, left = left[:size], left[size:]
            overlay = Overlay(store)
            fold_stages(batch, STAGES, overlay, frozenset())
            store.take(overlay)
        return store.rows


def _value(node):
    return getattr(node, "name", None) or node.value


@pytest.fixture
def log():
    """An empty log."""
    return Log()


def test_a_move_is_believed(log):
    """Where one lives now is believed, where one lived is believed of then; never both of now."""
    log.say("I live in Paris.")
    log.say("I moved to Rome.")
    found = log.beliefs()
    (paris,) = [one for one in log.records("beliefs") if _value(one.claim.object) == "Paris"]

    assert [("Alice", "lives_in", "Rome")] == list(found)
    assert found["Alice", "lives_in", "Rome"].id == paris.superseded_by
    assert found["Alice", "lives_in", "Rome"].valid_from == paris.valid_to


def test_a_cancelled_event_is_taken_back_from_every_layer(log):
    """The fact it made, the belief in it, and what was understood of it, in the same entry."""
    log.say("I live in Paris.")
    log.know("Alice Corp", "seats", 10)
    move = log.say("I moved to Rome.")
    log.cancel(move)

    assert ("Alice", "lives_in", "Paris") in log.beliefs()
    assert ("Alice", "lives_in", "Rome") not in log.beliefs()
    assert not [
        one
        for one in log.records("facts")
        if one.recorded_to is None and move.event_id in one.supports
    ]


def test_the_trail_leads_from_the_concept_to_the_events(log):
    """Every record names what it rests on, and the events know what rests on them."""
    said = [
        log.know("Acme", "seats", 200),
        log.know("Acme", "stage", "signed"),
        log.know("Acme", "city", "Berlin"),
    ]
    acme = log.concepts()["Acme"]
    facts = {one.id: one for one in log.records("facts")}
    events = {entry.event_id for entry in said}
    derives = [log.store.get(1, "derives", entry.id).ids for entry in said]

    assert set(acme.supported_by.facts) == set(facts)
    assert events == {event for fact in facts.values() for event in fact.supports}
    assert events == set(acme.supports)
    assert all(acme.id in ids for ids in derives)
    assert all(any(one.startswith("belief_") for one in ids) for ids in derives)


def test_compressed_says_which_concepts_were_made(log):
    """The stage reports a concept when a version came to be, and not for counting alone."""
    log.know("Acme", "seats", 200)
    counted = log.reports[-1]
    log.know("Acme", "stage", "signed")
    log.know("Acme", "city", "Berlin")
    made = log.reports[-1]

    assert ("compressed", 0) == (counted.stage, counted.count("concepts"))
    assert ("compressed", 1) == (made.stage, made.count("concepts"))


def test_why_it_is_believed_ends_in_what_was_said(log):
    """From the belief to the words, through the fact."""
    log.say("I live in Paris.")
    (belief,) = log.records("beliefs")
    lookup = {one.id: one for layer in ("facts", "episodes") for one in log.records(layer)}.get
    found = why(belief, lookup)

    assert found.narrative.startswith("I believe that Alice lives in Paris.")
    assert [belief.id, belief.supports[0].id] == [node.id for node in found.support_graph.nodes]


def test_a_synthesis_on_demand_goes_through_the_stages(log):
    """A directive makes what is stale anew, and leaves what it came to."""
    for number in range(4):
        log.know("Acme", f"p{number}", number)
    entry = log.add(Directive(command=Synthesize(force=True), scope=SCOPE))
    row = log.store.get(1, "concept_syntheses", entry.id)

    assert (1, None) == (row.made, row.next)
    assert 4 == len(log.concepts()["Acme"].supported_by.facts)


@pytest.mark.parametrize("sizes", [[], [1] * 40, [3, 1, 7], [5] * 8])
def test_the_same_log_gives_the_same_rows(log, sizes):
    """I4, with every layer, whatever the batches."""
    first = log.say("I live in Paris.")
    log.say("I work at Acme Corp with Bob.")
    log.know("Acme Corp", "seats", 200)
    log.know("Acme Corp", "seats", 300, by="agent:crm")
    log.say("I moved to Rome.", by="user:alice")
    log.say("I don't like jazz.")
    log.know("Acme Corp", "same_as", "Acme", by="user:bob")
    log.know("Acme Corp", "city", "Berlin")
    log.cancel(first)
    log.add(Directive(command=Synthesize(force=True), scope=SCOPE))
    log.say("I live in Paris.")

    assert log.replayed([1] * len(log.entries)) == log.replayed(sizes) == log.store.rows


def test_ids_of_records_parse(log):
    """Every id a record names is an id."""
    log.know("Acme", "seats", 200)
    log.know("Acme", "seats", 300)
    for belief in log.records("beliefs"):
        assert all(parse_id("fact", one.id) for one in belief.supports)
        assert all(parse_id("belief", one.belief_id) for one in belief.contradicts)
