"""What does a store promise, when there is no disk to hide behind?

The twin of `engine.state.rocks` for tests: the same promises, plus `crash()`, a power cut.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock

import msgspec

from engine.state.kv import RESERVED_FAMILY, Batch, StoreError

# (family, start, end, value): a put when the value is bytes, else a delete of [start, end).
_Change = tuple[str, bytes, bytes, bytes | None]


class _Rows:
    """The rows of one family, with their keys kept in order."""

    __slots__ = ("keys", "values")

    def __init__(self, values: dict[bytes, bytes] | None = None) -> None:
        self.values = values or {}
        self.keys = sorted(self.values)

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def delete(self, start: bytes, end: bytes) -> None:
        span = self.span(start, end)
        for key in self.keys[span]:
            del self.values[key]
        del self.keys[span]

    def span(self, start: bytes, end: bytes | None) -> slice:
        low = bisect_left(self.keys, start)
        high = len(self.keys) if end is None else bisect_left(self.keys, end)
        return slice(low, max(low, high))

    def copy(self) -> _Rows:
        return _Rows(dict(self.values))


def _apply(changes: list[_Change], families: dict[str, _Rows]) -> None:
    for family, start, end, value in changes:
        if value is None:
            families[family].delete(start, end)
        else:
            families[family].put(start, value)


class MemoryBatch:
    """A list of changes, waiting for `MemoryKV.write`."""

    __slots__ = ("_used", "changes", "is_consumed", "store")

    def __init__(self, store: MemoryKV) -> None:
        self.store = store
        self._used: dict[str, _Rows] = {}
        self.changes: list[_Change] = []
        self.is_consumed = False

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set the row."""
        self._add((family, key, key, value))

    def put_many(self, family: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Set many rows, in their order."""
        for key, value in rows:
            self.put(family, key, value)

    def delete(self, family: str, key: bytes) -> None:
        """Remove the row, if it is there."""
        # The next key in byte order is the same key with a zero byte behind it.
        self._add((family, key, key + b"\0", None))

    def delete_range(self, family: str, start: bytes, end: bytes) -> None:
        """Remove the rows in [start, end); a range that ends before it starts is empty."""
        if start < end:
            self._add((family, start, end, None))

    def _add(self, change: _Change) -> None:
        if self.is_consumed:
            raise StoreError("this batch is already written; make a new one")
        family = change[0]
        if family not in self._used:
            self._used[family] = self.store.require(family)
        self.changes.append(change)

    def __len__(self) -> int:
        return len(self.changes)

    def dropped_family(self, families: dict[str, _Rows]) -> str | None:
        """The first family that the batch names and that is no longer the same one."""
        # A family dropped and created again has the same name and is another family.
        for name, rows in self._used.items():
            if families.get(name) is not rows:
                return name
        return None


class MemoryKV:
    """An ordered key-value store in this process's memory."""

    def __init__(self, families: Sequence[str] = ()) -> None:
        self._lock = RLock()
        self._is_open = True
        self._visible: dict[str, _Rows] = {}
        self._durable: dict[str, _Rows] = {}
        self._unsynced: list[_Change] = []
        for name in families:
            self.create_family(name)

    @classmethod
    def load(cls, path: Path) -> MemoryKV:
        """Open a checkpoint."""
        try:
            stored = msgspec.msgpack.decode(
                path.read_bytes(), type=dict[str, list[tuple[bytes, bytes]]]
            )
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(f"{path} is no checkpoint: {error}") from error
        return cls._of({name: _Rows(dict(rows)) for name, rows in stored.items()})

    @classmethod
    def _of(cls, families: dict[str, _Rows]) -> MemoryKV:
        store = cls(list(families))
        store._visible = families
        store._durable = {name: rows.copy() for name, rows in families.items()}
        return store

    def crash(self) -> MemoryKV:
        """The store as a power cut at this instant leaves it: only what was synced."""
        with self._lock:
            return self._of({name: rows.copy() for name, rows in self._durable.items()})

    def batch(self) -> MemoryBatch:
        """A new, empty batch."""
        self._require_open()
        return MemoryBatch(self)

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value, or None if there is no such row."""
        with self._lock:
            return self.require(family).values.get(key)

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the keys, None for each that is missing."""
        with self._lock:
            values = self.require(family).values
            return [values.get(key) for key in keys]

    def scan(
        self,
        family: str,
        start: bytes = b"",
        end: bytes | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The rows in [start, end) as they are when the first is asked for."""
        with self._lock:
            rows = self.require(family)
            keys = rows.keys[rows.span(start, end)]
            if reverse:
                keys.reverse()
            found = [(key, rows.values[key]) for key in keys[:limit]]
        for row in found:
            self._require_open()
            yield row

    def write(self, batch: Batch) -> None:
        """Apply the batch as one."""
        if not isinstance(batch, MemoryBatch) or batch.store is not self:
            raise StoreError("this batch was made by another store")
        with self._lock:
            self._require_open()
            if batch.is_consumed:
                raise StoreError("this batch is already written; make a new one")
            changes, batch.changes, batch.is_consumed = batch.changes, [], True
            dropped = batch.dropped_family(self._visible)
            if dropped is not None:
                raise StoreError(f"family {dropped!r} was dropped after the batch named it")
            _apply(changes, self._visible)
            self._unsynced.extend(changes)

    def sync(self) -> None:
        """Make all earlier writes survive `crash`."""
        with self._lock:
            self._require_open()
            _apply(self._unsynced, self._durable)
            self._unsynced.clear()

    def families(self) -> list[str]:
        """The names of all families, sorted."""
        with self._lock:
            self._require_open()
            return sorted(self._visible)

    def create_family(self, name: str) -> None:
        """Add an empty family; no-op if it is there."""
        if name == RESERVED_FAMILY:
            raise StoreError(f"the name {name!r} is reserved")
        with self._lock:
            self._require_open()
            if name not in self._visible:
                self._visible[name], self._durable[name] = _Rows(), _Rows()

    def drop_family(self, name: str) -> None:
        """Remove a family and its rows; no-op if it is not there."""
        with self._lock:
            self._require_open()
            self._visible.pop(name, None)
            self._durable.pop(name, None)
            self._unsynced = [change for change in self._unsynced if change[0] != name]

    def compact(self, family: str, start: bytes | None = None, end: bytes | None = None) -> None:
        """Do nothing: a deleted row leaves memory at once."""
        del start, end
        self.require(family)

    def checkpoint(self, path: Path) -> None:
        """Write all rows, synced or not, into one file that `load` opens."""
        with self._lock:
            self._require_open()
            rows = {name: list(rows.values.items()) for name, rows in self._visible.items()}
        try:
            with path.open("xb") as file:
                file.write(msgspec.msgpack.encode(rows))
        except OSError as error:
            raise StoreError(f"no checkpoint at {path}: {error}") from error

    def stats(self) -> dict[str, int]:
        """Sizes now; nothing is on a disk."""
        with self._lock:
            self._require_open()
            rows = [row for rows in self._visible.values() for row in rows.values.items()]
        memtable_bytes = sum(len(key) + len(value) for key, value in rows)
        return {"size_bytes": 0, "wal_bytes": 0, "memtable_bytes": memtable_bytes}

    def close(self) -> None:
        """Refuse all further use; closing twice is fine."""
        self._is_open = False

    def require(self, family: str) -> _Rows:
        """The rows of a family that must be there."""
        self._require_open()
        try:
            return self._visible[family]
        except KeyError:
            raise StoreError(f"there is no family {family!r}") from None

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("the store is closed")
