"""How do the engine's rows get onto the disk and back, through rocksdict, without surprises?

rocksdict is thin and quick, and has traps. Each one below is stepped around in this module,
and proved again on rocksdict itself by `tests/integration/test_rocksdict_bugs.py`:

* `ReadOptions.set_iterate_lower_bound` sets the upper bound. A scan seeks to its start.
* An iterator does not keep its upper bound's bytes alive. A scan holds them in its own frame.
* A `Snapshot` iterates over the present. An iterator is a snapshot of its own: we use that.
* `items()` and `keys()` end early at a corrupt block and say nothing, and so does a loop over
  `iter()`. Only `status()` tells, so every scan asks it.
* `next()` on an iterator that has run out kills the process. A scan looks before it steps.
* The default recovery opens a log with a flipped bit and drops all that follows.
  `tolerate_corrupted_tail_records` refuses, save where damage looks like the end of the log;
  `engine.state.prescan` finds that too, and names the file and the offset.
* Some bit flips in a log or the MANIFEST make RocksDB loop for ever, with the GIL held, in
  `list_cf` or in the opening itself. The pre-scan comes before both.
* A batch with an inverted `delete_range`, or one for a dropped family, is refused only after it
  is in the log, and then every later write fails. Neither reaches RocksDB from here.
* `close()` keeps the LOCK while a family handle, an iterator or a checkpoint object lives.
* `compact_range` over a corrupt block returns as if all were well. The next flush tells.
* A read-only store creates families, in the MANIFEST that its owner is writing. Ours refuses.
* Every error is a bare `Exception`: its text is all there is to tell one from another.
* `write()` holds the GIL, fsync included; `flush_wal()` does not. So a write never syncs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any
from weakref import WeakSet

import rocksdict

from engine.state.aside import aside
from engine.state.kv import (
    RESERVED_FAMILY,
    Batch,
    CorruptStore,
    StoreError,
    StoreLocked,
    StoreWriteFailed,
)
from engine.state.leaving import Leaving
from engine.state.prescan import find_first_bad, refuse_damage

_MIB = 1024 * 1024
_BLOCK_CACHE_BYTES = 48 * _MIB
_SMALL_BYTES = 8 * _MIB
# Set by us: a log of this size replays in about a second after a crash.
_WAL_BYTES_MAX = 128 * _MIB
# Of all families together: there are dozens, and each would fill a buffer of its own.
_BUFFER_COUNT_MAX = 2
# A family is written a few MiB at a time, and what a flush overlaps is written again. RocksDB's own
# figures (256 and 64 MiB) let each flush rewrite a family whole.
_LEVEL_BYTES = 32 * _MIB
_FILE_BYTES = 8 * _MIB
_BLOOM_BITS_PER_KEY = 10
_BACKGROUND_JOB_COUNT = 2
_FILE_KINDS = (".sst", ".log")
_INFO_LOG_COUNT = 4
# A reader can lose a race with the owner, who deletes files and families it has just listed.
# Twenty times in a row is no race any more.
_READ_ONLY_ATTEMPT_COUNT = 20

_Row = tuple[bytes, bytes]
_PLACE = re.compile(r"(?P<path>/\S*(?:\.sst|\.log|MANIFEST-\d+))(?: offset (?P<offset>\d+))?")


class _Border:
    """Turns rocksdict's bare exceptions into ours."""

    def __init__(self, otherwise: type[StoreError]) -> None:
        self._otherwise = otherwise
        self.has_failed = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Exactly `Exception`: a subclass was raised by Python or by us, and means what it says.
        if kind is Exception:
            self.has_failed = True
            raise _translate(str(error), self._otherwise) from error
        if kind is rocksdict.DbClosedError:
            raise StoreError("the store is closed") from error


_READING = _Border(StoreError)
_CHANGING = _Border(StoreWriteFailed)


def _translate(text: str, otherwise: type[StoreError]) -> StoreError:
    if text.startswith("Corruption"):
        place = _PLACE.search(text)
        if place is None:
            return CorruptStore(text)
        offset = place["offset"]
        return CorruptStore(text, place["path"], None if offset is None else int(offset))
    if "/LOCK: " in text:
        return StoreLocked(text)
    return otherwise(text)


class RocksBatch:
    """A native batch, with the handles of the families it names."""

    __slots__ = ("__weakref__", "_dropped", "_handles", "_native", "is_enrolled", "store")

    def __init__(self, store: RocksKV) -> None:
        self.store = store
        self._native: Any = rocksdict.WriteBatch(raw_mode=True)
        self._handles: dict[str, Any] = {}
        self._dropped: str | None = None
        self.is_enrolled = False

    # The hottest path there is: one dictionary look-up and one native call.
    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set the row."""
        try:
            handle = self._handles[family]
        except KeyError:
            handle = self._name(family)
        self._native.put(key, value, handle)

    def put_many(self, family: str, rows: Iterable[_Row]) -> None:
        """Set many rows, in their order: nothing but the native call for each."""
        try:
            handle = self._handles[family]
        except KeyError:
            handle = self._name(family)
        put = self._native.put
        for key, value in rows:
            put(key, value, handle)

    def delete(self, family: str, key: bytes) -> None:
        """Remove the row, if it is there."""
        try:
            handle = self._handles[family]
        except KeyError:
            handle = self._name(family)
        self._native.delete(key, handle)

    def delete_range(self, family: str, start: bytes, end: bytes) -> None:
        """Remove the rows in [start, end); a range that ends before it starts is empty."""
        # An inverted range would reach the log first and stop all writes after it.
        if start < end:
            self._native.delete_range(start, end, self._name(family))

    def __len__(self) -> int:
        return 0 if self._native is None else len(self._native)

    def _name(self, family: str) -> Any:
        if self._native is None:
            raise StoreError("this batch is already written; make a new one")
        handle = self._handles[family] = self.store.enrol(self, family)
        return handle

    def take(self) -> Any:
        """Hand over the native batch, once."""
        if self._native is None:
            raise StoreError("this batch is already written; make a new one")
        native, self._native = self._native, None
        self._handles.clear()
        if self._dropped is not None:
            raise StoreError(f"family {self._dropped!r} was dropped after the batch named it")
        return native

    def lose(self, family: str) -> None:
        """Let go of a family that is being dropped; if the batch names it, it is spoilt."""
        if self._handles.pop(family, None) is not None:
            self._dropped = family


class RocksKV:
    """An ordered key-value store in a directory, owned by one process at a time."""

    def __init__(
        self,
        path: Path,
        families: Sequence[str],
        read_only: bool,
        buffer: int,
        cache: int = _BLOCK_CACHE_BYTES,
    ) -> None:
        self._path = path
        self._is_read_only = read_only
        self._buffer_bytes = buffer
        self._cache: Any = rocksdict.Cache(cache)
        self._lock = RLock()
        # After a failed write or sync nobody knows what is on the disk, and a second sync may
        # succeed because the kernel has dropped the pages. So the first failure is the last write.
        self._writing = _Border(StoreWriteFailed)
        # All that would keep the LOCK after close(): every one must be in reach of it.
        self._columns: dict[str, Any] = {}
        self._handles: dict[str, Any] = {}
        self._scans: WeakSet[Generator[_Row]] = WeakSet()
        self._batches: WeakSet[RocksBatch] = WeakSet()
        self._leaving = Leaving(path, _FILE_KINDS)
        with _READING:
            # RocksDB starts its threads with the first store that a process opens.
            self._db: Any = aside(lambda: self._open_native(families))
            for name in families:
                self._columns[name] = self._db.get_column_family(name)
                self._handles[name] = self._db.get_column_family_handle(name)

    @classmethod
    def open(
        cls,
        path: Path,
        families: Sequence[str],
        *,
        read_only: bool = False,
        write_buffer_mb: int = 32,
    ) -> RocksKV:
        """Open the store with these families and all that are on disk; create what is missing.

        A read-only store sees the rows of the instant at which it was opened, creates nothing,
        and may be opened while another process owns the store.
        """
        _refuse_reserved(families)
        buffer = write_buffer_mb * _MIB
        if read_only:
            return cls._open_read_only(path, buffer)
        if (path / "CURRENT").exists():
            refuse_damage(path)
            families = sorted({*families, *_families_on_disk(path)})
        else:
            _refuse_headless(path)
            path.mkdir(parents=True, exist_ok=True)
        try:
            kv = cls(path, families, False, buffer)
        except CorruptStore as error:
            found = _find_damage(error, path)
            if found is None:
                raise
            raise found from error
        kv._leaving.start()
        return kv

    @classmethod
    def open_small(cls, path: Path, families: Sequence[str], *, read_only: bool) -> RocksKV:
        """A store for one that works beside the owner: little memory, and only these families.

        Read-only it is the owner's, as it is now. That is not looked over for damage: the owner
        did so when it opened.
        """
        if not read_only:
            path.mkdir(mode=0o700, parents=True)
            kv = cls(path, families, False, _SMALL_BYTES, _SMALL_BYTES)
            kv._forget_when_closed()
            kv._leaving.start()
            return kv
        return cls._steadily(path, lambda: cls(path, families, True, _SMALL_BYTES, _SMALL_BYTES))

    def _forget_when_closed(self) -> None:
        """Keep no log of writes: what is here goes with the process anyway."""
        options: Any = rocksdict.WriteOptions()
        options.disable_wal = True
        with _READING:
            self._db.set_write_options(options)

    @classmethod
    def _open_read_only(cls, path: Path, buffer: int) -> RocksKV:
        def look() -> RocksKV:
            refuse_damage(path)
            return cls(path, _families_on_disk(path), True, buffer)

        return cls._steadily(path, look)

    @classmethod
    def _steadily(cls, path: Path, look: Callable[[], RocksKV]) -> RocksKV:
        """Open beside the owner, who writes meanwhile.

        A flush that ends between reading the MANIFEST and reading the logs takes rows out of the
        logs that the MANIFEST did not yet have in files: they would be missing, and nothing would
        say so. So what was opened counts only if the MANIFEST did not move meanwhile.
        """
        if not (path / "CURRENT").exists():
            raise StoreError(f"there is no store at {path}")
        for attempt in range(1, _READ_ONLY_ATTEMPT_COUNT + 1):
            try:
                before = _manifest(path)
                kv = look()
                if before == _manifest(path):
                    return kv
                kv.close()
                raise StoreError(f"{path} is written faster than it can be opened")
            except StoreError as error:
                if attempt < _READ_ONLY_ATTEMPT_COUNT:
                    continue
                found = _find_damage(error, path)
                if found is None:
                    raise
                raise found from error
        raise AssertionError("the last attempt returns or raises")

    def _open_native(self, families: Sequence[str]) -> Any:
        access = rocksdict.AccessType.read_write()
        if self._is_read_only:
            access = rocksdict.AccessType.read_only(error_if_log_file_exist=False)
        return rocksdict.Rdict(
            str(self._path),
            self._options(),
            column_families={name: self._options() for name in (RESERVED_FAMILY, *families)},
            access_type=access,
        )

    def _options(self) -> Any:
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_bloom_filter(_BLOOM_BITS_PER_KEY, False)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(not self._is_read_only)
        options.create_missing_column_families(not self._is_read_only)
        options.set_block_based_table_factory(table)
        options.set_write_buffer_size(self._buffer_bytes)
        options.set_db_write_buffer_size(self._buffer_bytes * _BUFFER_COUNT_MAX)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_max_bytes_for_level_base(_LEVEL_BYTES)
        options.set_target_file_size_base(_FILE_BYTES)
        options.set_max_total_wal_size(_WAL_BYTES_MAX)
        options.set_max_background_jobs(_BACKGROUND_JOB_COUNT)
        options.set_keep_log_file_num(_INFO_LOG_COUNT)
        options.set_paranoid_checks(True)
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.tolerate_corrupted_tail_records())
        return options

    def batch(self) -> RocksBatch:
        """A new, empty batch."""
        self._require_writable()
        return RocksBatch(self)

    # No local may hold a column where an error can pass: the error's traceback would keep it,
    # and with it the LOCK, for as long as the caller keeps the error.
    def get(self, family: str, key: bytes) -> bytes | None:
        """The value, or None if there is no such row."""
        with _READING:
            value: bytes | None = self._column(family).get(key)
            return value

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the keys, None for each that is missing."""
        with _READING:
            if len(keys) == 1:
                # A list is looked up without the interpreter, which costs more than one key does.
                return [self._column(family).get(keys[0])]
            values: list[bytes | None] = self._column(family).get(list(keys))
            return values

    def scan(
        self,
        family: str,
        start: bytes = b"",
        end: bytes | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[_Row]:
        """The rows in [start, end) as they are when the first is asked for."""
        rows = self._rows(family, start, end, reverse, limit)
        self._scans.add(rows)
        yield from rows
        # close() ends the rows early; without this that would pass for the end of the range.
        if self._db is None:
            raise StoreError("the store was closed during the scan")

    def _rows(
        self, family: str, start: bytes, end: bytes | None, reverse: bool, limit: int | None
    ) -> Generator[_Row]:
        options = rocksdict.ReadOptions()
        # The iterator only borrows these bytes. This frame holds `end`, and outlives it.
        if end is not None:
            options.set_iterate_upper_bound(end)
        remaining_count = -1 if limit is None else limit
        with _READING:
            iterator: Any = self._column(family).iter(options)
            key, value, step = iterator.key, iterator.value, iterator.next
            try:
                if reverse:
                    step = iterator.prev
                    iterator.seek_to_last()
                else:
                    iterator.seek(start)
                # key() is None at the end, and a step from there would kill the process.
                while remaining_count and (found := key()) is not None and found >= start:
                    yield found, value()
                    remaining_count -= 1
                    if remaining_count:
                        step()
                iterator.status()
            finally:
                # An error's traceback keeps this frame; let it not keep the iterator.
                del iterator, key, value, step

    def write(self, batch: Batch) -> None:
        """Apply the batch as one; durable only after `sync`."""
        if not isinstance(batch, RocksBatch) or batch.store is not self:
            raise StoreError("this batch was made by another store")
        with self._lock:
            self._require_writable()
            native = batch.take()
            with self._writing:
                self._db.write(native)

    def sync(self) -> None:
        """All earlier writes are on the disk when this returns; other threads run meanwhile."""
        self._require_writable()
        with self._writing:
            self._db.flush_wal(True)

    def families(self) -> list[str]:
        """The names of all families, sorted."""
        self._require_open()
        return sorted(self._handles)

    def create_family(self, name: str) -> None:
        """Add an empty family; no-op if it is there."""
        _refuse_reserved([name])
        with self._lock:
            self._require_writable()
            if name in self._handles:
                return
            with _CHANGING:
                self._columns[name] = self._db.create_column_family(name, self._options())
                self._handles[name] = self._db.get_column_family_handle(name)

    def drop_family(self, name: str) -> None:
        """Remove a family and its rows; no-op if it is not there."""
        with self._lock:
            self._require_writable()
            # RocksDB deletes the files once the last of these lets go.
            if self._handles.pop(name, None) is None:
                return
            del self._columns[name]
            for batch in list(self._batches):
                batch.lose(name)
            with _CHANGING:
                self._db.drop_column_family(name)

    def compact(self, family: str, start: bytes | None = None, end: bytes | None = None) -> None:
        """Flush every family, then rewrite the range down to the last level.

        What it replaces is gone from the disk, and not on its way.
        """
        self._require_writable()
        with self._leaving.at_once():
            self._compact(family, start, end)

    def _compact(self, family: str, start: bytes | None, end: bytes | None) -> None:
        force = rocksdict.CompactOptions()
        force.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        self._column(family)
        # One family's unflushed rows keep the whole log, with every family's bytes in it.
        for name in self.families():
            self._flush(name)
        with _CHANGING:
            self._column(family).compact_range(start, end, force)
            # The compaction itself reports nothing; after a failed one, this raises its error.
            self._column(family).flush()

    def _flush(self, family: str) -> None:
        """Bring a family's rows into files; one that is dropped meanwhile has none."""
        try:
            with _CHANGING:
                self._column(family).flush()
        except StoreError:
            self._require_open()
            if family in self.families():
                raise

    def checkpoint(self, path: Path) -> None:
        """Make a copy, mostly of hard links, that opens on its own."""
        self._require_writable()
        if path.exists():
            raise StoreError(f"there is something at {path} already")
        with _READING:
            rocksdict.Checkpoint(self._db).create_checkpoint(str(path))

    def stats(self) -> dict[str, int]:
        """Sizes now, summed over the families."""
        self._require_open()
        return {
            "size_bytes": self._sum("rocksdb.total-sst-files-size"),
            "wal_bytes": sum(_size_of(log) for log in self._path.glob("*.log")),
            "memtable_bytes": self._sum("rocksdb.size-all-mem-tables"),
            "pending_compaction_bytes": self._sum("rocksdb.estimate-pending-compaction-bytes"),
            "block_cache_bytes": self._cache.get_usage(),
            "background_error_count": self._db.property_int_value("rocksdb.background-errors"),
        }

    def _sum(self, name: str) -> int:
        with _READING:
            return sum(column.property_int_value(name) for column in self._columns.values())

    def close(self) -> None:
        """Let go of everything, the LOCK included; closing twice is fine.

        If the last rows cannot be flushed this raises, with the LOCK released all the same.
        """
        with self._lock:
            if self._db is None:
                return
            for rows in list(self._scans):
                _stop(rows)
            for batch in list(self._batches):
                for name in self._handles:
                    batch.lose(name)
            self._columns.clear()
            self._handles.clear()
            db, self._db = self._db, None
            self._leaving.stop()
            with _CHANGING:
                db.close()

    def enrol(self, batch: RocksBatch, family: str) -> Any:
        """The handle of a family, for a batch that will let go of it when told."""
        with self._lock:
            self._column(family)
            if not batch.is_enrolled:
                self._batches.add(batch)
                batch.is_enrolled = True
            return self._handles[family]

    def _column(self, family: str) -> Any:
        try:
            return self._columns[family]
        except KeyError:
            self._require_open()
            raise StoreError(f"there is no family {family!r}") from None

    def _require_open(self) -> None:
        if self._db is None:
            raise StoreError("the store is closed")

    def _require_writable(self) -> None:
        self._require_open()
        if self._is_read_only:
            raise StoreError("the store is read-only")
        if self._writing.has_failed:
            raise StoreWriteFailed("an earlier write failed; open the store again")


def _refuse_reserved(families: Sequence[str]) -> None:
    if RESERVED_FAMILY in families:
        raise StoreError(f"the name {RESERVED_FAMILY!r} is reserved")


def _find_damage(error: StoreError, path: Path) -> CorruptStore | None:
    """The bad record itself, for an error in which RocksDB does not say which log it means."""
    if isinstance(error, CorruptStore) and error.path is None:
        return find_first_bad(path)
    return None


def _refuse_headless(path: Path) -> None:
    # Without CURRENT, RocksDB would start afresh here and clear the old files away.
    for file in (*path.glob("*.sst"), *path.glob("*.log")):
        if _size_of(file):
            raise CorruptStore(f"{path / 'CURRENT'} is missing, but {file} is there", str(file))


def _manifest(path: Path) -> tuple[str, int]:
    """The MANIFEST in use, and how far it is written."""
    try:
        name = (path / "CURRENT").read_text().strip()
    except FileNotFoundError as error:
        raise StoreError(f"there is no store at {path}") from error
    return name, _size_of(path / name)


def _families_on_disk(path: Path) -> list[str]:
    with _READING:
        names: list[str] = rocksdict.Rdict.list_cf(str(path), rocksdict.Options(raw_mode=True))
    return sorted(name for name in names if name != RESERVED_FAMILY)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # RocksDB deletes its files when it pleases.
        return 0


def _stop(rows: Generator[_Row]) -> None:
    try:
        rows.close()
    except ValueError as error:
        raise StoreError("a scan is running in another thread; stop it before closing") from error
