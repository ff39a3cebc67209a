"""Filters of recall: which records they let through, and which conditions are refused by name."""

from datetime import UTC, datetime

import numpy as np
import pytest

from engine.recall.filters import FIELDS, admits, column_mask, read_filters
from engine.state.block import Block
from schemas import limits
from schemas.envelope import Actor, Message
from schemas.errors import InvalidParameter
from schemas.layers import EntityRef, Event, EventContext, Fact, LiteralValue

AT = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
EVENT_ID = "evt_0190c8e2-0000-7000-8000-000000000001"


def event(**changes):
    fields = {
        "id": EVENT_ID,
        "scope": "org:acme/user:alice",
        "actor": "user:alice",
        "modality": "conversation",
        "content": Message(role="user", text="Acme moved to 200 seats"),
        "context": EventContext(
            observed_at=AT, recorded_at=AT, intent="deal_close", labels=["sales", "q3"]
        ),
        "derives": [],
        "wal_offset": 1,
        "observed_actor": Actor(id="user:alice", session="run_1"),
        "subject": Actor(id="customer:c7"),
    }
    return Event(**fields | changes)


def fact(**changes):
    fields = {
        "id": "fact_0190c8e2-0000-7000-8000-000000000002",
        "scope": "org:acme/user:alice",
        "subject": EntityRef(id="ent_acme", name="Acme Corp"),
        "predicate": "seat_count",
        "object": LiteralValue(datatype="integer", value=200),
        "supports": [EVENT_ID],
        "valid_from": AT,
        "valid_to": None,
        "recorded_from": AT,
        "recorded_to": None,
        "confidence": 0.7,
        "extractor": "rules",
        "asserted_by": "user:alice",
    }
    return Fact(**fields | changes)


HOLDS = [
    ({"observed_actor": {"in": ["user:alice", "agent:planner_v3"]}}, True, True),
    ({"actor": "user:bob"}, False, False),
    ({"subject": {"eq": "customer:c7"}}, True, False),
    ({"subject": {"in": ["Acme Corp", "customer:c7"]}}, True, True),
    ({"modality": {"ne": "document"}}, True, True),
    ({"modality": "document"}, False, True),
    ({"labels": "sales"}, True, True),
    ({"labels": {"in": ["none", "q3"]}}, True, True),
    ({"labels": {"ne": "sales"}}, False, True),
    ({"layer": "facts"}, False, True),
    ({"predicate": "seat_count"}, True, True),
    ({"predicate": {"ne": "seat_count"}}, True, False),
    ({"confidence": {"gte": 0.6}}, True, True),
    ({"confidence": {"gte": 0.8}}, True, False),
    ({"confidence": {"lte": 0.8}}, False, True),
    ({"observed_at": {"gte": "2026-05-13", "lte": "2026-05-14T00:00:00Z"}}, True, True),
    ({"observed_at": {"lte": "2026-05-13"}}, False, True),
    ({"recorded_at": {"gte": "2026-05-14"}}, False, False),
    ({"valid_from": {"lte": "2026-05-14"}}, True, True),
    ({"valid_to": {"lte": "2026-05-14"}}, True, False),
    ({"session": "run_1"}, True, True),
    ({"session": {"in": ["run_2"]}}, False, True),
    ({"intent": {"eq": "deal_close"}}, True, True),
    ({"role": "assistant"}, False, True),
    ({"AND": [{"labels": "sales"}, {"confidence": {"gte": 0.8}}]}, True, False),
    ({"OR": [{"labels": "none"}, {"confidence": {"gte": 0.8}}]}, True, False),
    ({"OR": [{"labels": "none"}, {"modality": "document"}]}, False, True),
    ({"NOT": {"labels": "sales"}}, False, True),
    ({"NOT": {"OR": [{"labels": "none"}, {"predicate": "seat_count"}]}}, True, False),
    ({"metadata": {"labels": "sales"}}, True, True),
    ({}, True, True),
    (None, True, True),
]
"""(filters, whether the event passes, whether the fact does)."""


@pytest.mark.parametrize("given, of_event, of_fact", HOLDS)
def test_a_condition_is_about_layers_that_have_the_field(given, of_event, of_fact):
    """A layer without the field is neither let in nor kept out by a condition on it."""
    filters = read_filters(given)

    assert (of_event, of_fact) == (admits(filters, event()), admits(filters, fact()))


REFUSED = [
    ({"colour": "red"}, "filters.colour"),
    ({"AND": [{"labels": "a"}, {"colour": {"eq": 1}}]}, "filters.AND[1].colour"),
    ({"confidence": {"above": 1}}, "filters.confidence.above"),
    ({"confidence": {"gte": "high"}}, "filters.confidence.gte"),
    ({"confidence": {}}, "filters.confidence"),
    ({"labels": {"gte": "a"}}, "filters.labels.gte"),
    ({"labels": {"in": "a"}}, "filters.labels.in"),
    ({"labels": {"in": [["a"]]}}, "filters.labels.in[0]"),
    ({"labels": None}, "filters.labels.eq"),
    ({"observed_at": {"gte": "soon"}}, "filters.observed_at.gte"),
    ({"observed_at": {"gte": 5}}, "filters.observed_at.gte"),
    ({"AND": {"labels": "a"}}, "filters.AND"),
    ({"OR": []}, "filters.OR"),
    ({"NOT": [{"labels": "a"}]}, "filters.NOT"),
    ({"NOT": {}}, "filters.NOT"),
    ({"metadata": {"colour": "red"}}, "filters.metadata.colour"),
    ({"without": ["evt_1"]}, "filters.without[0]"),
    ({"without": "evt_1"}, "filters.without"),
    ({"OR": [{"without": [EVENT_ID]}]}, "filters.OR[0].without"),
    ({"labels": {"in": ["a"] * (limits.FILTER_VALUES_MAX + 1)}}, "filters.labels.in"),
    ({"AND": [{"labels": "a"}] * (limits.FILTER_CONDITIONS_MAX + 1)}, "filters"),
]


@pytest.mark.parametrize("given, field", REFUSED)
def test_what_is_not_understood_is_named(given, field):
    """An unknown field, operator or value is refused with its place in the filters."""
    with pytest.raises(InvalidParameter) as refused:
        read_filters(given)

    assert field == refused.value.details["field"]


def test_nesting_is_bounded():
    """Conditions nest only so deep."""
    deep = {"labels": "a"}
    for _ in range(limits.FILTER_DEPTH_MAX):
        deep = {"NOT": deep}
    with pytest.raises(InvalidParameter):
        read_filters(deep)


def test_conditions_are_named_in_diagnostics():
    """Each condition applied is told as field and operator (001 §9)."""
    filters = read_filters(
        {"AND": [{"actor": {"in": ["a"]}}, {"confidence": {"gte": 0.6}}], "without": [EVENT_ID]}
    )

    assert ["actor.in", "confidence.gte", "without"] == filters.applied()


def block():
    """Three events by two actors."""
    raws = [bytes([n]) * 16 for n in range(3)]
    times = np.array([10, 20, 30])
    return Block(
        raws=raws,
        rows={raw: n for n, raw in enumerate(raws)},
        offsets=np.arange(3),
        observed_us=times * 1_000_000,
        recorded_us=times * 1_000_000,
        session=np.array([1, 1, 0]),
        actor=np.array([1, 2, 1]),
        words=np.ones(3),
        is_question=np.zeros(3, np.bool_),
        vectors=np.zeros((3, 2), np.float32),
        role=np.array([1, 2, 1]),
        tokens=np.zeros(0, np.int32),
        starts=np.zeros(4, np.int64),
        sessions=["", "run_1"],
        actors=["", "user:alice", "user:bob"],
        roles=["", "user", "assistant"],
    )


COLUMNS = [
    ({"actor": "user:alice"}, [True, False, True]),
    ({"NOT": {"actor": "user:alice"}}, [False, True, False]),
    ({"actor": {"ne": "user:alice"}}, [False, True, False]),
    ({"session": {"in": ["run_1"]}, "role": "user"}, [True, False, False]),
    ({"observed_at": {"gte": "1970-01-01T00:00:20Z"}}, [False, True, True]),
    ({"OR": [{"actor": "user:bob"}, {"labels": "sales"}]}, [True, True, True]),
    ({"AND": [{"actor": "user:bob"}, {"labels": "sales"}]}, [False, True, False]),
    ({"NOT": {"AND": [{"actor": "user:bob"}, {"labels": "sales"}]}}, [True, True, True]),
]


@pytest.mark.parametrize("given, rows", COLUMNS)
def test_columns_keep_out_only_what_the_record_would(given, rows):
    """A mask may let through what is tried again later, and never keeps out what would pass."""
    mask = column_mask(read_filters(given))

    assert rows == mask("events", block()).tolist()
    assert [True] * 3 == mask("facts", block()).tolist()


def test_imagined_away_events_are_not_found():
    """A counterfactual takes its events out before anything is ranked."""
    raw = bytes.fromhex("0190c8e2000070008000000000000001")
    held = block()
    held.raws[1] = raw
    held.rows[raw] = 1
    mask = column_mask(read_filters({"without": [EVENT_ID]}))

    assert [True, False, True] == mask("events", held).tolist()


def test_without_columns_there_is_no_mask():
    """Conditions that no column knows cost nothing while gathering."""
    assert column_mask(read_filters({"labels": "a"})) is None
    assert column_mask(read_filters(None)) is None


def test_every_field_reads_some_layer():
    """A documented field belongs to at least one layer."""
    assert [] == [name for name, field in FIELDS.items() if not field.of]
