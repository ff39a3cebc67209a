"""What was worked out about this record before?  Kept for as long as the record itself is.

Readers keep rows decoded (`Recent`, `told.py`), so the same record comes as the same object again
and again. What follows from it hangs on that object: it goes when the row is written anew, erased,
or not asked for any more, and needs no bound and no clearing of its own.
"""

from typing import Generic, TypeVar
from weakref import ref

from schemas.layers import Event, Record

Value = TypeVar("Value")
Thing = TypeVar("Thing", bound=Event | Record)


class Attached(Generic[Value]):
    """A value a record, found by which object it is: nothing of it is hashed or compared."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ref[Event | Record], Value]] = {}

    def get(self, owner: Event | Record) -> Value | None:
        """What was kept; None when there is nothing."""
        found = self._kept.get(id(owner))
        return None if found is None else found[1]

    def keep(self, owner: Event | Record, value: Value) -> Value:
        """Keep a value, which must not hold on to its owner."""
        kept, place = self._kept, id(owner)
        # An object's place is not taken by another before this was called.
        kept[place] = ref(owner, lambda _: kept.pop(place, None)), value
        return value


_readings: Attached[Event | Record] = Attached()


def same_reading(record: Thing, reading: Thing) -> Thing:
    """How a record reads, as the object that was given out before where it reads the same."""
    if reading is record:
        return record
    kept = _readings.get(record)
    # Where it is not the same, it is another reading of the same record: of the same kind.
    return kept if kept == reading else _readings.keep(record, reading)  # type: ignore[return-value]
