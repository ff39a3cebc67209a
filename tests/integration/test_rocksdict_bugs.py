"""Are rocksdict's traps still there, and does our store step around each?

Every test here proves a fault of rocksdict or RocksDB that `engine/state/rocks.py` works around.
If one fails after an upgrade, the fault is gone: simplify `engine/state/rocks.py`.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import rocksdict

from engine.state.kv import CorruptStore, StoreError
from engine.state.rocks import RocksKV

ROW_COUNT = 1000
ROW_BYTES = 500
# A record's header, a batch's header, a put's tag, and a key and a value with their lengths.
RECORD_BYTES = 7 + 12 + 1 + (1 + 8) + (2 + ROW_BYTES)
BLOCK_BYTES = 32 * 1024

# Children write rows, or trip over a trap, and die without closing the store.
PRELUDE = """
import os, sys
import rocksdict
path = sys.argv[1]
def key(number):
    return number.to_bytes(8, "big")
options = rocksdict.Options(raw_mode=True)
options.create_if_missing(True)
"""
OPEN = """
db = rocksdict.Rdict(path, options)
"""
WRITE_ROWS = f"""{OPEN}
for number in range({ROW_COUNT}):
    db.put(key(number), bytes([number % 256]) * {ROW_BYTES})
db.flush_wal(True)
os._exit(0)
"""
READ_WITH_A_FREED_BOUND = f"""{OPEN}
for number in range(1000):
    db.put(key(number), b"")
def bounded(end):
    options = rocksdict.ReadOptions()
    options.set_iterate_upper_bound(key(end))
    return options
wrong_count = 0
for end in range(100, 400):
    iterator = db.iter(bounded(end))
    reused = [key(number) for number in range(5, 55)]
    iterator.seek(key(90))
    found = []
    while iterator.valid():
        found.append(iterator.key())
        iterator.next()
    wrong_count += found != [key(number) for number in range(90, end)]
print(wrong_count)
os._exit(0)
"""
STEP_PAST_THE_END = f"""{OPEN}
db.put(b"only", b"row")
iterator = db.iter()
iterator.seek_to_first()
iterator.next()
assert not iterator.valid()
iterator.next()
os._exit(0)
"""
OPEN_AGAIN = f"""{OPEN}
os._exit(0)
"""
LIST_FAMILIES = """
rocksdict.Rdict.list_cf(path, options)
os._exit(0)
"""


def key(number: int) -> bytes:
    """Keys in the order of their numbers."""
    return number.to_bytes(8, "big")


def in_child(path: Path, script: str, timeout_s: int = 60) -> subprocess.CompletedProcess[str]:
    """Run a script against a store in a process of its own."""
    command = [sys.executable, "-c", PRELUDE + script, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


def options(recovery: str | None = None) -> Any:
    """Plain options: raw bytes, created if missing."""
    plain = rocksdict.Options(raw_mode=True)
    plain.create_if_missing(True)
    plain.create_missing_column_families(True)
    if recovery is not None:
        plain.set_wal_recovery_mode(getattr(rocksdict.DBRecoveryMode, recovery)())
    return plain


def open_native(path: Path, recovery: str | None = None) -> Any:
    """Rocksdict itself, with one family beside its own."""
    return rocksdict.Rdict(str(path), options(recovery), column_families={"log": options()})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Any]:
    """A store of rocksdict's own with twenty rows."""
    native = rocksdict.Rdict(str(tmp_path / "native"), options())
    for number in range(20):
        native.put(key(number), b"old")
    yield native
    native.close()


def keys_in(iterator: Any) -> list[int]:
    """The numbers of the keys from where the iterator stands."""
    found = []
    while iterator.valid():
        found.append(int.from_bytes(iterator.key(), "big"))
        iterator.next()
    return found


def harm(file: Path, offset: int, change: bytes) -> None:
    """Overwrite bytes of a file."""
    with file.open("r+b") as handle:
        handle.seek(offset)
        handle.write(change)


def only(path: Path, pattern: str) -> Path:
    """The largest file of its kind."""
    return max(path.glob(pattern), key=lambda file: file.stat().st_size)


# Scans


def test_the_lower_bound_sets_the_upper(db: Any) -> None:
    """If this fails, an upgrade fixed the bug: a scan may use a lower bound."""
    bounds = rocksdict.ReadOptions()
    bounds.set_iterate_lower_bound(key(5))
    iterator = db.iter(bounds)
    iterator.seek_to_first()

    assert keys_in(iterator) == [0, 1, 2, 3, 4]


def test_a_snapshot_iterates_over_the_present(db: Any) -> None:
    """If this fails, an upgrade fixed the bug: snapshots may be scanned."""
    snapshot = db.snapshot()
    db.put(key(100), b"new")
    db.delete(key(3))
    iterator = snapshot.iter()
    iterator.seek_to_first()
    seen = keys_in(iterator)

    assert 100 in seen
    assert 3 not in seen
    assert snapshot[key(3)] == b"old"


def test_an_iterator_does_not_keep_its_bound_alive(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: a scan need not hold its bound."""
    child = in_child(tmp_path, READ_WITH_A_FREED_BOUND)

    # Reading freed memory may also kill the child; either way the bound was not kept.
    assert child.returncode < 0 or int(child.stdout) > 0


def test_our_scan_keeps_its_bound_alive(tmp_path: Path) -> None:
    """The same reading through our store is right every time."""
    with closing(RocksKV.open(tmp_path, ["log"])) as kv:
        batch = kv.batch()
        for number in range(1000):
            batch.put("log", key(number), b"")
        kv.write(batch)
        for end in range(100, 400):
            rows = kv.scan("log", key(90), key(end))
            found = [next(rows)[0]]
            reused = [key(number) for number in range(5, 55)]
            gc.collect(0)
            found += [row_key for row_key, _ in rows]

            assert found == [key(number) for number in range(90, end)]
            assert len(reused) == 50


def test_a_step_past_the_end_kills_the_process(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: a scan may step without looking."""
    child = in_child(tmp_path, STEP_PAST_THE_END)

    assert child.returncode in (-signal.SIGSEGV, -signal.SIGABRT)


# Corruption


@pytest.fixture
def corrupt(tmp_path: Path) -> Path:
    """A store whose only table has a bad block in the middle."""
    path = tmp_path / "corrupt"
    with closing(RocksKV.open(path, ["log"])) as kv:
        batch = kv.batch()
        for number in range(ROW_COUNT):
            batch.put("log", key(number), os.urandom(ROW_BYTES))
        kv.write(batch)
        kv.compact("log")
    table = only(path, "*.sst")
    harm(table, table.stat().st_size // 2, b"\xff\x00\xff\x00")
    return path


def test_items_and_keys_hide_a_corrupt_block(corrupt: Path) -> None:
    """If this fails, an upgrade fixed the bug: scans may use items()."""
    with closing(open_native(corrupt)) as db:
        column = db.get_column_family("log")
        item_count, key_count = len(list(column.items())), len(list(column.keys()))
        del column

    assert 0 < item_count < ROW_COUNT
    assert 0 < key_count < ROW_COUNT


@pytest.mark.parametrize("reverse", [False, True])
def test_our_scan_reports_a_corrupt_block(corrupt: Path, reverse: bool) -> None:
    """It names the file and the offset, and keeping the error does not keep the lock."""
    kv = RocksKV.open(corrupt, ["log"])
    with pytest.raises(CorruptStore) as scanned:
        list(kv.scan("log", reverse=reverse))
    with pytest.raises(CorruptStore) as many:
        kv.get_many("log", [key(number) for number in range(ROW_COUNT)])
    with pytest.raises(CorruptStore) as single:
        for number in range(ROW_COUNT):
            kv.get("log", key(number))
    kv.close()
    RocksKV.open(corrupt, ["log"]).close()

    for raised in (scanned, many, single):
        assert raised.value.path == str(only(corrupt, "*.sst"))
        assert raised.value.offset is not None
        assert raised.value.path in str(raised.value)


def test_a_compaction_keeps_quiet_about_a_corrupt_block(corrupt: Path) -> None:
    """If this fails, an upgrade fixed the bug: compact() need not flush to learn the outcome."""
    db = open_native(corrupt)
    force = rocksdict.CompactOptions()
    force.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
    db.get_column_family("log").compact_range(None, None, force)
    with pytest.raises(Exception, match="Corruption"):
        db.close()


def test_our_compaction_reports_a_corrupt_block(corrupt: Path) -> None:
    """An erasure that did not happen must not look as if it had; and close frees the lock."""
    kv = RocksKV.open(corrupt, ["log"])
    with pytest.raises(CorruptStore, match=r"\.sst"):
        kv.compact("log")
    with pytest.raises(CorruptStore):
        kv.close()
    kv.close()

    RocksKV.open(corrupt, ["log"]).close()


# Recovery


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A store with all its rows in the log, left behind by a process that died."""
    path = tmp_path / "crashed"
    assert in_child(path, WRITE_ROWS).returncode == 0
    return path


def recovered_count(path: Path, recovery: str | None) -> int:
    """How many rows rocksdict finds when it opens the store."""
    with closing(open_native(path, recovery)) as db:
        iterator = db.iter()
        iterator.seek_to_first()
        found = len(keys_in(iterator))
        iterator.status()
        del iterator
    return found


def test_the_default_recovery_drops_what_follows_a_flipped_bit(crashed: Path) -> None:
    """If this fails, an upgrade fixed the bug: the default recovery mode may be used."""
    log = only(crashed, "*.log")
    middle = log.stat().st_size // 2
    harm(log, middle, bytes([log.read_bytes()[middle] ^ 1]))

    assert recovered_count(crashed, None) < ROW_COUNT * 0.6


def test_our_recovery_refuses_a_flipped_bit(crashed: Path) -> None:
    """The chosen mode refuses, and so do we, with the file and the offset."""
    log = only(crashed, "*.log")
    middle = log.stat().st_size // 2
    harm(log, middle, bytes([log.read_bytes()[middle] ^ 1]))
    with pytest.raises(Exception, match="Corruption"):
        open_native(crashed, "tolerate_corrupted_tail_records")

    with pytest.raises(CorruptStore, match=log.name) as refused:
        RocksKV.open(crashed, [])
    assert refused.value.offset is not None
    assert refused.value.offset <= middle < refused.value.offset + ROW_BYTES * 2


def tenth_record_from_the_end(log: Path) -> int:
    """Where a record starts that shares the last block with those behind it."""
    content = log.read_bytes()
    start = len(content) - 10 * RECORD_BYTES
    assert start // BLOCK_BYTES == len(content) // BLOCK_BYTES
    assert int.from_bytes(content[start + 4 : start + 6], "little") == RECORD_BYTES - 7
    return start


def lengthen_a_record(log: Path) -> None:
    """Make a record claim to reach beyond the end of the file, with one bit."""
    start = tenth_record_from_the_end(log)
    harm(log, start + 5, bytes([log.read_bytes()[start + 5] ^ 0x40]))


def lose_some_records(log: Path) -> None:
    """Turn records into zeros, as a disk may lose a sector."""
    harm(log, tenth_record_from_the_end(log), bytes(4 * RECORD_BYTES))


@pytest.mark.parametrize("damage", [lengthen_a_record, lose_some_records])
def test_even_the_strict_recovery_overlooks_some_damage(
    crashed: Path, damage: Callable[[Path], None]
) -> None:
    """If this fails, an upgrade fixed the bug: the pre-scan may be dropped."""
    damage(only(crashed, "*.log"))
    with pytest.raises(CorruptStore, match=r"\.log offset \d+"):
        RocksKV.open(crashed, [])

    assert recovered_count(crashed, "tolerate_corrupted_tail_records") < ROW_COUNT


def test_some_damage_makes_rocksdb_loop_for_ever(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: list_cf may come before the pre-scan."""
    open_native(tmp_path).close()
    manifest = only(tmp_path, "MANIFEST-*")
    content = manifest.read_bytes()
    second_record = 7 + int.from_bytes(content[4:6], "little")
    harm(manifest, second_record + 6, b"\x05")
    with pytest.raises(CorruptStore, match=manifest.name):
        RocksKV.open(tmp_path, [])

    with pytest.raises(subprocess.TimeoutExpired):
        in_child(tmp_path, LIST_FAMILIES, timeout_s=3)


# Writes


@pytest.mark.parametrize("fault", ["inverted range", "dropped family"])
def test_a_refused_batch_stops_all_later_writes(tmp_path: Path, fault: str) -> None:
    """If this fails, an upgrade fixed the bug: a batch need not be checked beforehand."""
    db = open_native(tmp_path)
    batch = rocksdict.WriteBatch(raw_mode=True)
    if fault == "inverted range":
        batch.delete_range(b"z", b"a")
    else:
        batch.put(b"a", b"1", db.get_column_family_handle("log"))
        db.drop_column_family("log")
    with pytest.raises(Exception, match="Invalid argument"):
        db.write(batch)

    with pytest.raises(Exception, match="Invalid argument"):
        db.put(b"innocent", b"row")
    with pytest.raises(Exception, match="Invalid argument"):
        db.close()


def test_a_write_holds_the_interpreter_and_a_sync_does_not(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: a write may sync by itself."""
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.0002):
            ticks[0] += 1

    ticker = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    # From here, a thread runs until it lets go of the interpreter of its own accord.
    sys.setswitchinterval(100)
    ticker.start()
    during_write = during_sync = 0
    try:
        with closing(open_native(tmp_path)) as db:
            for _ in range(200):
                time.sleep(0.001)
                batch = rocksdict.WriteBatch(raw_mode=True)
                for number in range(500):
                    batch.put(key(number), bytes(1000))
                before = ticks[0]
                db.write(batch)
                during_write += ticks[0] - before
                before = ticks[0]
                db.flush_wal(True)
                during_sync += ticks[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        ticker.join()

    assert during_write == 0
    assert during_sync > 0


# Opening and closing


@pytest.mark.parametrize("kept", ["family", "handle", "iterator", "snapshot", "checkpoint"])
def test_close_keeps_the_lock_while_anything_lives(tmp_path: Path, kept: str) -> None:
    """If this fails, an upgrade fixed the bug: close() need not drop handles and scans first."""
    db = open_native(tmp_path)
    make: dict[str, Callable[[], object]] = {
        "family": lambda: db.get_column_family("log"),
        "handle": lambda: db.get_column_family_handle("log"),
        "iterator": db.iter,
        "snapshot": db.snapshot,
        "checkpoint": lambda: rocksdict.Checkpoint(db),
    }
    held = [make[kept]()]
    db.close()

    with pytest.raises(Exception, match="LOCK"):
        open_native(tmp_path)
    held.clear()
    open_native(tmp_path).close()


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    """Not a bug: RocksDB refuses a second owner, here and in another process, as we rely on."""
    with closing(open_native(tmp_path)):
        with pytest.raises(Exception, match="LOCK"):
            open_native(tmp_path)
        child = in_child(tmp_path, OPEN_AGAIN)

    assert child.returncode == 1
    assert "LOCK" in child.stderr


def test_every_error_is_a_bare_exception(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: errors may be told apart by their class."""
    with closing(open_native(tmp_path)) as db:
        with pytest.raises(Exception, match="LOCK") as raised:
            open_native(tmp_path)
        with pytest.raises(Exception, match="does not exist") as missing:
            db.get_column_family("absent")

    assert raised.type is Exception
    assert missing.type is Exception


def test_a_read_only_store_lets_itself_be_changed(tmp_path: Path) -> None:
    """If this fails, an upgrade fixed the bug: RocksDB itself refuses, and we need not."""
    owner = open_native(tmp_path)
    access = rocksdict.AccessType.read_only(error_if_log_file_exist=False)
    reader = rocksdict.Rdict(str(tmp_path), options(), {"log": options()}, access)
    reader.create_column_family("new", options())
    reader.close()
    owner.close()

    # It wrote into the MANIFEST, of which another process may be the owner.
    assert "new" in rocksdict.Rdict.list_cf(str(tmp_path), options())
    with closing(RocksKV.open(tmp_path, [], read_only=True)) as ours, pytest.raises(StoreError):
        ours.create_family("newer")
