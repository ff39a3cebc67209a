"""What may the engine ask of an ordered key-value store, and how does the store fail?

A store holds named families of rows; a row is a key and a value, both `bytes`, in key order.
`engine.state.rocks` keeps them on disk, `engine.state.memory` is the twin for tests.
`tests/contract/test_kv.py` holds both to the promises written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

# RocksDB always has a family of this name and never lets it go.
# It stays empty and unseen, so that every family a caller can see can also be dropped.
RESERVED_FAMILY = "default"


class StoreError(Exception):
    """The store cannot do what was asked: it is closed, or the family is not there."""


class CorruptStore(StoreError):
    """The bytes on disk are not the bytes that were written; `path` and `offset` say where."""

    def __init__(self, message: str, path: str | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset


class StoreLocked(StoreError):
    """Another process, or another part of this one, holds the store."""


class StoreWriteFailed(StoreError):
    """A write or a sync failed: its outcome is unknown, and the store takes no more writes."""


Row = tuple[bytes, bytes]
"""A key and its value."""


class Batch(Protocol):
    """Changes that become visible together, in the order in which they were added."""

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set the row."""

    def put_many(self, family: str, rows: Iterable[Row]) -> None:
        """Set many rows, in their order."""

    def delete(self, family: str, key: bytes) -> None:
        """Remove the row, if it is there."""

    def delete_range(self, family: str, start: bytes, end: bytes) -> None:
        """Remove the rows in [start, end); a range that ends before it starts is empty."""

    def __len__(self) -> int:
        """How many changes the batch holds; 0 once it is written."""
        ...


class Readable(Protocol):
    """What can be looked up in."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value, or None if there is no such row."""
        ...

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the keys, None for each that is missing."""
        ...

    def scan(
        self,
        family: str,
        start: bytes = b"",
        end: bytes | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The rows in [start, end), ascending, or descending when `reverse`.

        The rows are those of the instant at which the first one is asked for.
        A scan is complete or it raises: CorruptStore if a block cannot be read,
        StoreError if the store is closed under it.
        """
        ...


class KV(Readable, Protocol):
    """An ordered key-value store with atomic batches across families."""

    def batch(self) -> Batch:
        """A new, empty batch for this store; `write` consumes it."""
        ...

    def write(self, batch: Batch) -> None:
        """Apply the batch as one: visible at once, ordered after all earlier writes.

        It is durable only after the next `sync`.
        A batch that names a family dropped meanwhile is refused whole, and harms nothing.
        """

    def sync(self) -> None:
        """All earlier writes are on the disk when this returns."""

    def families(self) -> list[str]:
        """The names of all families, sorted."""
        ...

    def create_family(self, name: str) -> None:
        """Add an empty family, at once and durably; no-op if it is there."""

    def drop_family(self, name: str) -> None:
        """Remove a family and its rows, at once and durably; no-op if it is not there."""

    def compact(self, family: str, start: bytes | None = None, end: bytes | None = None) -> None:
        """Rewrite the range, so that deleted bytes leave the files.

        A scan that began earlier keeps its files, and a checkpoint always does.
        """

    def checkpoint(self, path: Path) -> None:
        """Make a consistent copy at `path`, which must not exist, that opens on its own."""

    def stats(self) -> dict[str, int]:
        """Sizes now: at least size_bytes, wal_bytes and memtable_bytes."""
        ...

    def close(self) -> None:
        """Let go of everything, scans included; closing twice is fine."""
