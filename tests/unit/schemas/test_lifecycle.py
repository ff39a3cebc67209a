"""Is the lifecycle one union, told apart by `event`, that survives its encodings?  (001 §13)"""

import msgspec
import pytest

from schemas.lifecycle import (
    EVENT_NAMES,
    JOB_FIELDS,
    STAGE_ORDER,
    LifecycleEvent,
    LifecycleRow,
    row_of,
)

KINDS = {str(kind.__struct_config__.tag): kind for kind in LifecycleEvent.__args__}
SHARED = {
    "lifecycle_id": "lce_0196ca18-6b3b-774b-8000-00000000002a",
    "timestamp": "2026-05-13T15:42:09.418000Z",
    "scope": "org:acme",
    "event_id": "evt_0196ca18-6b3b-774b-8000-00000000002a",
    "sequence": 1,
    "batch_id": "batch_0196ca18-6b3b-774b-8000-00000000002a",
}
OWN = {
    "captured": {"actor": "user:alice", "modality": "conversation", "wal_offset": 7},
    "extracted": {"derived": {"facts": 3, "entities": 2, "beliefs": 1, "episodes": 1}},
    "indexed": {"layers_indexed": ["events", "facts"]},
    "consolidated": {"beliefs_updated": 1, "conflicts_resolved": 2, "superseded_facts": 3},
    "compressed": {"episode_id": "ep_1", "understanding_ids": ["concept_1"]},
    "cancelled": {"stages_cancelled": ["indexed"]},
    "parked": {"projector": "facts", "error": "ValueError()", "attempts": 3},
    "forgotten": {"layer": "facts", "count": 2, "by_actor": "user:a", "cascade": "derived_only"},
    "policy_changed": {"tier": "scope", "scope_or_actor": "org:a", "capability_diff": {"a": 1}},
    "policy_revoked": {"reason": "membership ended"},
    "import_progress": {
        "import_id": "imp_1",
        "fraction_complete": 0.5,
        "processed": 5,
        "total": 10,
    },
    "import_complete": {"import_id": "imp_1", "summary": {"rows": 10}},
    "import_error": {"import_id": "imp_1", "line": 7, "error": "not JSON"},
    "export_progress": {"export_id": "exp_1", "fraction_complete": 0.25},
    "export_complete": {"export_id": "exp_1", "url": "/v1/export/exp_1", "size_bytes": 9},
    "erasure_progress": {
        "erasure_id": "erasure_1",
        "phase": "refcount",
        "fraction_complete": 0.1,
        "deleted_events": 1,
        "redacted_events": 2,
    },
    "erasure_complete": {"erasure_id": "erasure_1", "summary": {}, "audit_id": "audit_1"},
    "lagging": {"behind_by": 31.5},
}


def test_every_kind_is_tried_here():
    """An event added to the union gets an example here."""
    assert set(EVENT_NAMES) == set(OWN) == set(KINDS)


def test_the_stages_come_first_and_in_order():
    """For one event they are announced strictly in this order (001 §18.2.3)."""
    assert ("captured", "extracted", "indexed", "consolidated", "compressed") == STAGE_ORDER
    assert STAGE_ORDER == EVENT_NAMES[:5]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack], ids=["json", "msgpack"])
def test_round_trip(name, codec):
    """Decoded to its own class, and encoded to what it was."""
    sent = {"event": name, **SHARED, **OWN[name]}
    event = codec.decode(codec.encode(sent), type=LifecycleEvent)

    assert KINDS[name] is type(event)
    assert event == codec.decode(codec.encode(event), type=LifecycleEvent)
    assert sent == msgspec.json.decode(msgspec.json.encode(event))


@pytest.mark.parametrize("name", OWN)
def test_what_is_not_known_is_left_out(name):
    """Only its id and its time are always there; null is not sent."""
    needed = {"event": name, **{key: SHARED[key] for key in ("lifecycle_id", "timestamp")}}
    sent = needed | OWN[name]
    event = msgspec.convert(sent, LifecycleEvent)

    assert sent == msgspec.json.decode(msgspec.json.encode(event))


def test_an_unknown_event_is_refused():
    """The catalogue is closed."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"event": "cooked", **SHARED}, LifecycleEvent)


@pytest.mark.parametrize("name", OWN)
def test_the_row_of_an_event(name):
    """The shared fields outside, its own in `payload` (001 §8.9.2)."""
    event = msgspec.convert({"event": name, **SHARED, **OWN[name]}, LifecycleEvent)
    row = msgspec.json.decode(msgspec.json.encode(row_of(event)))

    assert {
        "lifecycle_id": SHARED["lifecycle_id"],
        "event_id": SHARED["event_id"],
        "stage": name,
        "ts": SHARED["timestamp"],
        "scope": SHARED["scope"],
        "sequence": 1,
        "payload": OWN[name] | {"batch_id": SHARED["batch_id"]},
    } == row
    assert row_of(event) == msgspec.convert(row, LifecycleRow)


def test_job_filters_name_fields():
    """Each condition on a job is a field that some event has, or the word for any job."""
    fields = {field for kind in KINDS.values() for field in kind.__struct_fields__}

    assert set(JOB_FIELDS) - fields <= {"job_id"}
