"""When the disk lies, does the store say so, and do erased bytes really leave it?"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.state.kv import CorruptStore, StoreError, StoreWriteFailed
from engine.state.mending import tail_of
from engine.state.prescan import scan_wal
from engine.state.rocks import RocksKV

BATCH_COUNT = 400
BATCH_ROWS = 5
ROW_COUNT = BATCH_COUNT * BATCH_ROWS
FAMILIES = ["log", "views"]

# Writes rows that can be computed again, then dies: the log is synced and not flushed.
WRITER = f"""
import os, random, signal, sys
from pathlib import Path
from engine.state.rocks import RocksKV
path, stage = Path(sys.argv[1]), sys.argv[2]
kv = RocksKV.open(path, {FAMILIES})
for number in range({BATCH_COUNT}):
    batch = kv.batch()
    for row in range(number * {BATCH_ROWS}, (number + 1) * {BATCH_ROWS}):
        batch.put("log", row.to_bytes(8, "big"), random.Random(row).randbytes(row % 300))
    batch.put("views", b"head", number.to_bytes(8, "big"))
    kv.write(batch)
    if stage == "two logs" and number == {BATCH_COUNT // 2}:
        # Flushing one family starts a new log; the other family keeps the old one alive.
        kv._columns["views"].flush()
kv.sync()
if stage == "tables":
    kv.compact("log")
os.kill(os.getpid(), signal.SIGKILL)
"""


def expected_rows() -> list[tuple[bytes, bytes]]:
    """What the writer wrote."""
    rows = range(ROW_COUNT)
    return [(row.to_bytes(8, "big"), random.Random(row).randbytes(row % 300)) for row in rows]


EXPECTED = expected_rows()


def write_and_die(path: Path, stage: str) -> Path:
    """A store as a killed process leaves it."""
    root = Path(__file__).resolve().parents[2]
    child = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), stage],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    return path


@pytest.fixture(scope="module", params=["one log", "two logs", "tables"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A killed process's store, with its rows in one log, in two, or in tables."""
    return write_and_die(tmp_path_factory.mktemp("killed") / "store", request.param)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A killed process's store, with its rows in one log."""
    return write_and_die(tmp_path_factory.mktemp("logged") / "store", "one log")


@pytest.fixture(scope="module")
def twice_logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A killed process's store, with its rows in two logs."""
    return write_and_die(tmp_path_factory.mktemp("twice") / "store", "two logs")


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A killed process's store, with its rows in tables."""
    return write_and_die(tmp_path_factory.mktemp("tabled") / "store", "tables")


def logs_of(path: Path) -> list[Path]:
    """The logs that hold records, oldest first."""
    return [log for log in sorted(path.glob("*.log")) if log.stat().st_size]


def copy_with_flip(source: Path, place: Path, name: str, offset: int, bit: int) -> Path:
    """A copy of the store with one bit of one file changed."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    with (place / name).open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
    return place


def read_all(path: Path) -> list[tuple[bytes, bytes]]:
    """Open the store and read every row."""
    with closing(RocksKV.open(path, FAMILIES)) as kv:
        list(kv.scan("views"))
        return list(kv.scan("log"))


def complaint(path: Path) -> CorruptStore | None:
    """What the store has to say; if it says nothing, no row may be missing or wrong."""
    try:
        rows = read_all(path)
    except CorruptStore as error:
        return error
    assert rows == EXPECTED
    return None


def blamed_file(error: CorruptStore) -> str:
    """The name of the file that the error and its text point to."""
    assert error.path is not None, error
    assert error.path in str(error)
    return Path(error.path).name


def test_a_killed_process_loses_nothing_it_synced(killed: Path, tmp_path: Path) -> None:
    """Every row is there, and the views stand where the log does."""
    shutil.copytree(killed, tmp_path / "copy")
    with closing(RocksKV.open(tmp_path / "copy", [])) as kv:
        assert list(kv.scan("log")) == EXPECTED
        assert kv.get("views", b"head") == (BATCH_COUNT - 1).to_bytes(8, "big")


@pytest.mark.parametrize("seed", range(3))
def test_a_flip_in_a_log_is_detected(
    logged: Path, twice_logged: Path, tmp_path: Path, seed: int
) -> None:
    """One bit anywhere before the last record of the last log: the store refuses to open."""
    rng = random.Random(seed)
    (log,), (older, newer) = logs_of(logged), logs_of(twice_logged)
    for file, tail_bytes in ((log, 2000), (older, 0), (newer, 2000)):
        for _ in range(8):
            offset = rng.randrange(file.stat().st_size - tail_bytes)
            store = copy_with_flip(file.parent, tmp_path, file.name, offset, rng.randrange(8))

            error = complaint(store)

            assert error is not None, (file, offset)
            assert blamed_file(error) == file.name


def test_a_flip_in_the_last_record_is_detected(logged: Path, tmp_path: Path) -> None:
    """RocksDB tells it from a tear by its full length, and we find which file it means."""
    (log,) = logs_of(logged)
    error = complaint(copy_with_flip(logged, tmp_path, log.name, log.stat().st_size - 20, 3))

    assert error is not None
    assert blamed_file(error) == log.name


@pytest.mark.parametrize("seed", range(3))
def test_a_flip_in_a_table_is_never_a_short_scan(tabled: Path, tmp_path: Path, seed: int) -> None:
    """One bit anywhere in a table: opening or scanning raises, or every row is right."""
    rng = random.Random(seed)
    table = max(tabled.glob("*.sst"), key=lambda file: file.stat().st_size)
    size = table.stat().st_size
    offsets = [rng.randrange(size) for _ in range(12)]
    # The end holds the indexes, the filter, the properties and the footer.
    offsets += [size - rng.randrange(1, 3000) for _ in range(8)]
    errors = [
        complaint(copy_with_flip(tabled, tmp_path, table.name, offset, rng.randrange(8)))
        for offset in offsets
    ]
    blamed = [blamed_file(error) for error in errors if error is not None]

    assert blamed.count(table.name) >= len(offsets) / 2
    # Of a table that it cannot even open, RocksDB may say that the list of tables is wrong.
    assert all(name == table.name or name.startswith("MANIFEST") for name in blamed)


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "CURRENT"])
def test_a_flip_in_the_list_of_tables_is_detected(
    tabled: Path, tmp_path: Path, pattern: str
) -> None:
    """One bit in it could hide whole tables: the store refuses to open, read-only too."""
    rng = random.Random(4)
    file = max(tabled.glob(pattern))
    # The last byte of CURRENT is a line's end, on which nothing hangs.
    offsets = [rng.randrange(file.stat().st_size - 1) for _ in range(12)]
    for offset in offsets:
        store = copy_with_flip(tabled, tmp_path, file.name, offset, rng.randrange(8))
        error = complaint(store)

        assert error is not None, offset
        assert blamed_file(error) == file.name
        with pytest.raises(CorruptStore, match=file.name):
            RocksKV.open(store, [], read_only=True)


def test_a_record_that_would_hang_rocksdb_is_refused(
    logged: Path, tabled: Path, tmp_path: Path
) -> None:
    """A last record whose type became that of a recycled log; RocksDB loops over it for ever."""
    for file in (*logs_of(logged), *tabled.glob("MANIFEST-*")):
        store = tmp_path / file.name
        shutil.copytree(file.parent, store)
        os.truncate(store / file.name, file.stat().st_size - 1)
        last_record = scan_wal(store / file.name).first_bad_offset
        assert last_record is not None
        content = bytearray(file.read_bytes())
        content[last_record + 6] = 5
        (store / file.name).write_bytes(content)
        error = complaint(store)

        assert error is not None
        assert (blamed_file(error), error.offset) == (file.name, last_record)


def test_a_torn_tail_costs_only_what_was_torn(logged: Path, tmp_path: Path) -> None:
    """A log cut anywhere opens with its whole batches, in order, and no part of another."""
    (log,) = logs_of(logged)
    rng = random.Random(5)
    for cut in (1, 7, 500, *(rng.randrange(log.stat().st_size) for _ in range(8))):
        shutil.rmtree(tmp_path)
        shutil.copytree(logged, tmp_path)
        os.truncate(tmp_path / log.name, log.stat().st_size - cut)
        rows = read_all(tmp_path)

        assert len(rows) < ROW_COUNT
        assert len(rows) % BATCH_ROWS == 0
        assert rows == EXPECTED[: len(rows)]


def test_a_torn_log_before_another_is_refused(twice_logged: Path, tmp_path: Path) -> None:
    """RocksDB would go on behind the gap: later rows without earlier ones."""
    shutil.copytree(twice_logged, tmp_path / "copy")
    older, newer = logs_of(tmp_path / "copy")
    os.truncate(older, older.stat().st_size - 100)

    with pytest.raises(CorruptStore, match=f"{older.name} offset"):
        read_all(tmp_path / "copy")
    newer.unlink()
    assert 0 < len(read_all(tmp_path / "copy")) < ROW_COUNT


def test_a_tear_once_recovered_stays_recovered(logged: Path, tmp_path: Path) -> None:
    """Killed again after the recovery and new writes, the store opens again."""
    shutil.copytree(logged, tmp_path / "copy")
    (log,) = logs_of(tmp_path / "copy")
    os.truncate(log, log.stat().st_size - 100)
    write_and_die(tmp_path / "copy", "one log")

    assert read_all(tmp_path / "copy") == EXPECTED


# Mending

HOLDER = """
import fcntl, sys
held = open(sys.argv[1], "a+b")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def ending_in_garbage(logged: Path, tmp_path: Path) -> Path:
    """A store whose last record has its length and not its bytes."""
    shutil.copytree(logged, tmp_path / "copy")
    (log,) = logs_of(tmp_path / "copy")
    with log.open("r+b") as file:
        file.seek(-200, os.SEEK_END)
        file.write(random.Random(7).randbytes(200))
    return tmp_path / "copy"


def test_a_whole_record_of_garbage_is_refused_and_can_be_cut_off(ending_in_garbage: Path) -> None:
    """It may be a bad disk's doing: who knows of a power cut says so, and loses that alone."""
    with pytest.raises(CorruptStore, match="strata mend"):
        read_all(ending_in_garbage)
    (log,) = logs_of(ending_in_garbage)
    before = log.read_bytes()
    shown = tail_of(ending_in_garbage, cut=False)
    assert log.read_bytes() == before

    assert shown is not None
    assert shown == tail_of(ending_in_garbage, cut=True)
    assert log.read_bytes() == before[: shown.offset]
    assert tail_of(ending_in_garbage, cut=True) is None
    assert read_all(ending_in_garbage) == EXPECTED[:-BATCH_ROWS]


def test_damage_with_records_behind_it_is_not_cut_off(logged: Path, tmp_path: Path) -> None:
    """That is no end: what is behind it was acknowledged."""
    (log,) = logs_of(logged)
    store = copy_with_flip(logged, tmp_path, log.name, log.stat().st_size // 2, 1)
    before = (store / log.name).read_bytes()

    with pytest.raises(CorruptStore, match=log.name):
        tail_of(store, cut=True)
    assert (store / log.name).read_bytes() == before


def test_a_store_in_use_is_not_mended(ending_in_garbage: Path) -> None:
    """Its owner writes to the log that would be cut."""
    lock = str(ending_in_garbage / "LOCK")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="LOCK"):
            tail_of(ending_in_garbage, cut=True)
        holder.stdin.close()

    assert tail_of(ending_in_garbage, cut=True) is not None


def test_where_there_is_no_store_there_is_nothing_to_mend(tmp_path: Path) -> None:
    """A wrong path is said, and nothing is made there."""
    with pytest.raises(StoreError, match="no store"):
        tail_of(tmp_path, cut=True)
    assert not list(tmp_path.iterdir())


# Failing writes


def test_the_first_failed_write_is_the_last(tmp_path: Path) -> None:
    """No write or sync is taken after one that failed; reopened, the store has all before it."""
    kv = RocksKV.open(tmp_path, FAMILIES)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written_count = 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(StoreWriteFailed):
            for number in range(2000):
                write_row(kv, number)
                written_count = number + 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(StoreWriteFailed):
        write_row(kv, 5000)
    with pytest.raises(StoreWriteFailed):
        kv.sync()
    assert 0 < written_count < 2000
    assert kv.get("log", b"%04d" % (written_count - 1)) is not None
    with contextlib.suppress(StoreWriteFailed):
        kv.close()

    with closing(RocksKV.open(tmp_path, FAMILIES)) as again:
        keys = [key for key, _ in again.scan("log")]
        write_row(again, 5000)
    assert keys[:written_count] == [b"%04d" % number for number in range(written_count)]
    assert len(keys) <= written_count + 1


def write_row(kv: RocksKV, number: int) -> None:
    """Write one row of a kilobyte."""
    batch = kv.batch()
    batch.put("log", b"%04d" % number, random.Random(number).randbytes(1000))
    kv.write(batch)


# Erasure


def files_with(path: Path, canaries: list[bytes]) -> list[str]:
    """The files of the store in which any of the canaries can be read."""
    files = [file for file in path.rglob("*") if file.is_file()]
    return [file.name for file in files if any(canary in file.read_bytes() for canary in canaries)]


@pytest.mark.parametrize("is_in_tables", [False, True])
@pytest.mark.parametrize("is_range", [False, True])
def test_deleted_bytes_leave_the_disk(tmp_path: Path, is_in_tables: bool, is_range: bool) -> None:
    """After delete and compact no file holds them, though another family was not flushed."""
    rng = random.Random(6)
    # Noise does not compress, so its bytes stand in the files as they are.
    canaries = [rng.randbytes(32) for _ in range(5)]
    with closing(RocksKV.open(tmp_path, FAMILIES)) as kv:
        batch = kv.batch()
        for row in range(2000):
            canary = canaries[row % 5] if 1000 <= row < 1010 else b""
            batch.put("log", row.to_bytes(8, "big"), rng.randbytes(200) + canary)
        kv.write(batch)
        kv.sync()
        if is_in_tables:
            kv.compact("log")
        batch = kv.batch()
        batch.put("views", b"pins the log", b"")
        kv.write(batch)
        assert files_with(tmp_path, canaries) != []

        batch = kv.batch()
        start, end = (1000).to_bytes(8, "big"), (1010).to_bytes(8, "big")
        if is_range:
            batch.delete_range("log", start, end)
        else:
            for row in range(1000, 1010):
                batch.delete("log", row.to_bytes(8, "big"))
        kv.write(batch)
        kv.compact("log", start, end)

        assert files_with(tmp_path, canaries) == []
        assert len(list(kv.scan("log"))) == 1990
    assert files_with(tmp_path, canaries) == []


def test_a_dropped_family_leaves_the_disk(tmp_path: Path) -> None:
    """Its tables go with it, and its rows in the log go when the rest is flushed."""
    canary = random.Random(7).randbytes(32)
    with closing(RocksKV.open(tmp_path, FAMILIES)) as kv:
        for is_flushed in (True, False):
            batch = kv.batch()
            batch.put("log", b"%d" % is_flushed, canary)
            batch.put("views", b"pins the log", b"")
            kv.write(batch)
            if is_flushed:
                kv.compact("log")
        assert files_with(tmp_path, [canary]) != []

        kv.drop_family("log")
        kv.compact("views")

        assert files_with(tmp_path, [canary]) == []
