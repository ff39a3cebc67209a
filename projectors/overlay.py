"""What does a batch see of what it has said itself?  Pending changes, on top of what was there."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from projectors.base import Base, Change, Drop, Put, View

Place = tuple[int, str, bytes]
"""A row of all: tenant number, table, key."""


class Overlay:
    """Pending changes on top of a base, so that a batch sees its own.

    What was taken in since a mark can be taken back: an entry is folded whole or not at all.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self.pending: dict[Place, msgspec.Struct | None] = {}
        self._journal: list[tuple[Place, Any]] = []
        # Few tables are ever scanned: only their keys are kept in order.
        self._keys: dict[tuple[int, str], list[bytes]] = {}

    def of(self, tenant_no: int) -> "TenantView":
        """The view one tenant's projectors see."""
        return TenantView(self, tenant_no)

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The pending value if the batch touched the row, else the base's."""
        found = self.pending.get((tenant_no, table, key), _ABSENT)
        return self.base.get(tenant_no, table, key) if found is _ABSENT else found

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        """Base and pending rows merged, in key order."""
        touched = self._touched(tenant_no, table, prefix)
        if not touched:
            return self.base.scan(tenant_no, table, prefix)
        rows = dict(self.base.scan(tenant_no, table, prefix))
        rows.update((key, self.pending[tenant_no, table, key]) for key in touched)
        return iter([(key, rows[key]) for key in sorted(rows) if rows[key] is not None])

    def _touched(self, tenant_no: int, table: str, prefix: bytes) -> list[bytes]:
        """The keys with this prefix that the batch touched, without looking at all it touched."""
        keys = self._keys.get((tenant_no, table))
        if keys is None:
            place = (tenant_no, table)
            keys = self._keys[place] = sorted(at[2] for at in self.pending if at[:2] == place)
        start = end = bisect_left(keys, prefix)
        while end < len(keys) and keys[end].startswith(prefix):
            end += 1
        return keys[start:end]

    def apply(self, tenant_no: int, change: Change) -> None:
        """Take one change into the batch."""
        place = (tenant_no, change.table, change.key)
        if isinstance(change, Put):
            self._set(place, change.value)
        elif isinstance(change, Drop):
            self._set(place, None)
        else:
            current = self.get(*place)
            assert current is not None, f"closing a row that is not there: {place}"
            self._set(place, msgspec.structs.replace(current, recorded_to=change.recorded_to))

    def _set(self, place: Place, value: msgspec.Struct | None) -> None:
        before = self.pending.get(place, _ABSENT)
        self._journal.append((place, before))
        if before is _ABSENT and self._keys:
            keys = self._keys.get(place[:2])
            if keys is not None:
                insort(keys, place[2])
        self.pending[place] = value

    def mark(self) -> None:
        """From here on changes can be taken back."""
        self._journal.clear()

    def take_back(self) -> None:
        """As it was at the mark."""
        while self._journal:
            place, before = self._journal.pop()
            if before is _ABSENT:
                del self.pending[place]
            else:
                self.pending[place] = before
        self._keys.clear()


_ABSENT: Final[Any] = object()


class TenantView:
    """An overlay seen through one tenant's eyes."""

    __slots__ = ("overlay", "tenant_no")

    def __init__(self, overlay: Overlay, tenant_no: int) -> None:
        self.overlay = overlay
        self.tenant_no = tenant_no

    def get(self, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        return self.overlay.get(self.tenant_no, table, key)

    def scan(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        return self.overlay.scan(self.tenant_no, table, prefix)


class Draft:
    """What a projector has said so far about an entry, on top of what it may look up.

    Changes reach the view when the projector is done with the entry; one that moves a row more than
    once sees its own here, and says each row once, as it came out. Rows are looked up once.
    """

    __slots__ = ("_rows", "_said", "_view")

    def __init__(self, view: View) -> None:
        self._view = view
        self._rows: dict[tuple[str, bytes], Any | None] = {}
        self._said: dict[tuple[str, bytes], Put | Drop] = {}

    def get(self, table: str, key: bytes) -> Any | None:
        """The row's value as it would be after what was said, or None."""
        place = (table, key)
        value = self._rows.get(place, _ABSENT)
        if value is _ABSENT:
            value = self._rows[place] = self._view.get(table, key)
        return value

    def put(self, table: str, key: bytes, value: msgspec.Struct) -> None:
        """This row is now so."""
        place = (table, key)
        self._rows[place] = value
        self._said[place] = Put(table=table, key=key, value=value)

    def drop(self, table: str, key: bytes) -> None:
        """This row is gone."""
        self._rows[table, key] = None
        self._said[table, key] = Drop(table=table, key=key)

    def take(self, changes: Iterable[Put | Drop]) -> None:
        """Say what others put into words."""
        for change in changes:
            place = (change.table, change.key)
            self._rows[place] = change.value if isinstance(change, Put) else None
            self._said[place] = change

    def changes(self) -> tuple[Change, ...]:
        """All that was said, in the order in which the rows were first touched."""
        return tuple(self._said.values())
