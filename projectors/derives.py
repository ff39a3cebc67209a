"""What followed from this event?  The back-pointers from an event to its records (001 §7.1)."""

from collections.abc import Iterable, Iterator

import msgspec

from projectors.base import Change, Projector, Put, View
from schemas.entry import Entry
from schemas.ids import parse_id


class DerivesRow(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of the records that an event supports, in the order they came."""

    ids: list[str]


def back_pointers(changes: Iterable[Change], view: View) -> Iterator[Change]:
    """One row for every event that the new records cite."""
    known: dict[bytes, list[str]] = {}
    grown: dict[bytes, None] = {}
    for change in changes:
        if not isinstance(change, Put) or change.record_id is None:
            continue
        for event_id in change.supports:
            key = parse_id("evt", event_id)
            if key is None:
                continue
            if key not in known:
                row = view.get("derives", key)
                known[key] = [] if row is None else list(row.ids)
            if change.record_id not in known[key]:
                known[key].append(change.record_id)
                grown[key] = None
    for key in grown:
        yield Put(table="derives", key=key, value=DerivesRow(ids=known[key]))


def _nothing(entry: Entry, view: View) -> tuple[Change, ...]:
    """Entries alone move no back-pointer: records do, through `back_pointers`."""
    del entry, view
    return ()


DERIVES = Projector(name="derives", version=1, tables={"derives": DerivesRow}, project=_nothing)
