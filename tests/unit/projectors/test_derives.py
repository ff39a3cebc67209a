"""Does every event know the records that cite it?"""

import msgspec

from projectors.base import Close, Drop, Put
from projectors.derives import DERIVES, back_pointers
from projectors.derives.rows import DerivesRow
from schemas.ids import derive_id


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    text: str


def record(entry, number, *supports):
    """A record that follows from an entry and cites others."""
    name = derive_id("fact", entry.id, number)
    return Put(
        table="facts",
        key=name.encode(),
        value=Fact(text="x"),
        record_id=name,
        supports=tuple(one.event_id for one in supports),
    )


def pointed(changes, overlay):
    """Fold the back-pointers; what each event's row says now."""
    for change in tuple(back_pointers(changes, overlay.of(1))):
        overlay.apply(1, change)
    return {key: row.ids for key, row in overlay.of(1).scan("derives")}


def test_each_event_cited_gets_the_record(said, overlay):
    """One row an event, keyed by the event's own sixteen bytes."""
    one, two = said(1), said(2)
    fact = record(two, 0, one, two)

    assert {one.id: [fact.record_id], two.id: [fact.record_id]} == pointed([fact], overlay)


def test_records_come_in_order(said, overlay):
    """Within an entry and over entries: the order they were derived in."""
    one, two = said(1), said(2)
    first, second, third = record(one, 0, one), record(one, 1, one), record(two, 0, one)
    pointed([first], overlay)
    pointed([second], overlay)

    assert {one.id: [r.record_id for r in (first, second, third)]} == pointed([third], overlay)


def test_records_of_one_entry_come_together(said, overlay):
    """Several that follow from an event at once are all there, in one row."""
    one = said(1)
    first, second = record(one, 0, one), record(one, 1, one)

    assert {one.id: [first.record_id, second.record_id]} == pointed([first, second], overlay)


def test_a_record_put_again_is_pointed_to_once(said, overlay):
    """A record that changes keeps its id; the list does not grow."""
    one = said(1)
    fact = record(one, 0, one)
    pointed([fact], overlay)

    assert {one.id: [fact.record_id]} == pointed([fact, fact], overlay)
    assert [] == list(back_pointers([fact], overlay.of(1)))


def test_only_records_with_support_point(said, overlay):
    """Counters, closes, drops and records that cite nothing leave no trace."""
    one = said(1)
    plain = Put(table="counts", key=b"k", value=Fact(text="x"), supports=(one.event_id,))
    alone = record(one, 1)
    close = Close(table="facts", key=b"k", recorded_to=one.recorded_at)

    assert {} == pointed([plain, alone, close, Drop(table="facts", key=b"k")], overlay)


def test_support_that_is_no_event_is_passed_over(said, overlay):
    """A redacted id, or another kind of record, has no row to point from."""
    one = said(1)
    fact = msgspec.structs.replace(
        record(one, 0, one), supports=("redacted:evt_x", "fact_x", one.event_id)
    )

    assert {one.id: [fact.record_id]} == pointed([fact], overlay)


def test_entries_alone_move_nothing(said, overlay):
    """The projector owns the table; the rows come from records."""
    assert () == DERIVES.project(said(1), overlay.of(1))
    assert {"derives": DerivesRow} == DERIVES.tables
