"""Does what was worked out about a record last exactly as long as the record?"""

import gc
from datetime import UTC, datetime

import msgspec

from engine.attached import Attached, same_reading
from schemas.layers import Episode

_AT = datetime(2024, 5, 1, tzinfo=UTC)


def episode(name):
    return Episode(
        id="ep_1",
        scope="org:acme",
        name=name,
        summary="",
        events=[],
        started_at=_AT,
        ended_at=_AT,
        valid_from=_AT,
        valid_to=None,
        recorded_from=_AT,
        recorded_to=None,
        actors_involved=[],
        centrality_score=0.0,
        causal_chain=[],
    )


def test_a_value_is_that_of_one_object_and_not_of_its_equals():
    """Rows are read anew when they were written: what is equal may soon be otherwise."""
    attached, one, other = Attached(), episode("trip"), episode("trip")
    attached.keep(one, "words of the trip")

    assert "words of the trip" == attached.get(one)
    assert attached.get(other) is None


def test_a_value_goes_with_its_record():
    """Nothing is left of what was erased, and whoever takes its place in memory finds nothing."""
    attached = Attached()
    for number in range(1000):
        one = episode(f"trip {number}")
        assert attached.get(one) is None, "a place that was taken before"
        attached.keep(one, one.name)
    del one
    gc.collect()

    assert {} == attached._kept


def test_a_record_that_reads_the_same_is_the_same_object():
    """Only so what hangs on a reading is found again; another reading takes its place."""
    record = episode("trip")
    partial = msgspec.structs.replace(record, partial=True)
    first = same_reading(record, partial)

    assert record is same_reading(record, record)
    assert first is same_reading(record, msgspec.structs.replace(record, partial=True))
    sealed = same_reading(record, msgspec.structs.replace(record, sealed=True))
    assert (False, True) == (sealed.partial, sealed.sealed)
    assert same_reading(record, partial).partial
