"""Do the store on disk and its twin in memory keep the same promises?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state.kv import KV, RESERVED_FAMILY, StoreError, StoreLocked
from engine.state.memory import MemoryKV
from engine.state.rocks import RocksKV

FAMILIES = ["log", "views"]


@pytest.fixture(params=["memory", "rocks"])
def kv(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KV]:
    """An empty store with two families."""
    store: KV = MemoryKV(FAMILIES)
    if request.param == "rocks":
        store = RocksKV.open(tmp_path / "store", FAMILIES)
    yield store
    store.close()


def open_checkpoint(kv: KV, path: Path) -> KV:
    """Open a copy with the kind of store that made it."""
    return MemoryKV.load(path) if isinstance(kv, MemoryKV) else RocksKV.open(path, [])


def put(kv: KV, family: str, *keys: bytes) -> None:
    """Write rows whose value is the key in capitals."""
    batch = kv.batch()
    for key in keys:
        batch.put(family, key, key.upper())
    kv.write(batch)


def keys_of(kv: KV, family: str, start: bytes = b"", end: bytes | None = None) -> list[bytes]:
    """The keys in the range, ascending."""
    return [key for key, _ in kv.scan(family, start, end)]


# Reading and writing


def test_a_row_is_read_as_it_was_put(kv: KV) -> None:
    """A put is visible at once, before any sync, in its own family only."""
    put(kv, "log", b"a")

    assert kv.get("log", b"a") == b"A"
    assert kv.get("views", b"a") is None


def test_many_rows_are_put_in_their_order(kv: KV) -> None:
    """Rows handed over together are as if each had been put: the last of a key wins."""
    batch = kv.batch()
    batch.put("log", b"k", b"before")
    batch.put_many("log", iter([(b"k", b"1"), (b"l", b""), (b"k", b"2")]))
    batch.put_many("views", [])
    assert 4 == len(batch)
    kv.write(batch)

    assert [(b"k", b"2"), (b"l", b"")] == list(kv.scan("log"))
    with pytest.raises(StoreError):
        batch.put_many("log", [(b"m", b"")])


def test_a_second_put_wins(kv: KV) -> None:
    """The last write of a key is its value."""
    for value in (b"old", b"new"):
        batch = kv.batch()
        batch.put("log", b"a", value)
        kv.write(batch)

    assert kv.get("log", b"a") == b"new"
    assert list(kv.scan("log")) == [(b"a", b"new")]


def test_empty_keys_and_values_are_rows(kv: KV) -> None:
    """An empty value is not a missing one, and the empty key comes first."""
    batch = kv.batch()
    batch.put("log", b"", b"v")
    batch.put("log", b"k", b"")
    kv.write(batch)

    assert kv.get("log", b"") == b"v"
    assert kv.get("log", b"k") == b""
    assert list(kv.scan("log")) == [(b"", b"v"), (b"k", b"")]


def test_a_deleted_row_is_gone(kv: KV) -> None:
    """Delete removes the row, and one that is not there is no error."""
    put(kv, "log", b"a", b"a\0")
    batch = kv.batch()
    batch.delete("log", b"a")
    batch.delete("log", b"never")
    kv.write(batch)

    assert kv.get("log", b"a") is None
    assert keys_of(kv, "log") == [b"a\0"]


def test_get_many_answers_in_the_order_asked(kv: KV) -> None:
    """One answer a key: missing ones are None, repeated ones are repeated."""
    put(kv, "log", b"a", b"b")

    assert kv.get_many("log", [b"b", b"x", b"a", b"b"]) == [b"B", None, b"A", b"B"]
    assert kv.get_many("log", (b"a",)) == [b"A"]
    assert kv.get_many("log", []) == []


# Batches


def test_a_batch_is_invisible_until_it_is_written(kv: KV) -> None:
    """Nothing of a batch shows before write, all of it after, across families."""
    batch = kv.batch()
    batch.put("log", b"a", b"1")
    batch.put("views", b"a", b"2")
    assert kv.get("log", b"a") is None
    assert len(batch) == 2

    kv.write(batch)

    assert (kv.get("log", b"a"), kv.get("views", b"a")) == (b"1", b"2")


def test_the_last_change_of_a_batch_wins(kv: KV) -> None:
    """Changes apply in the order added: put then delete is gone, delete then put is there."""
    put(kv, "log", b"a", b"b", b"c")
    batch = kv.batch()
    batch.put("log", b"a", b"x")
    batch.delete("log", b"a")
    batch.delete_range("log", b"b", b"d")
    batch.put("log", b"b", b"again")
    batch.put("log", b"d", b"D")
    kv.write(batch)

    assert list(kv.scan("log")) == [(b"b", b"again"), (b"d", b"D")]


def test_delete_range_takes_its_start_and_spares_its_end(kv: KV) -> None:
    """The range is [start, end)."""
    put(kv, "log", b"a", b"b", b"c", b"d")
    batch = kv.batch()
    batch.delete_range("log", b"b", b"d")
    kv.write(batch)

    assert keys_of(kv, "log") == [b"a", b"d"]


@pytest.mark.parametrize("start, end", [(b"z", b"a"), (b"a", b"a"), (b"a", b"")])
def test_a_range_that_ends_before_it_starts_is_empty(kv: KV, start: bytes, end: bytes) -> None:
    """It deletes nothing and scans nothing, and the store takes writes afterwards."""
    put(kv, "log", b"a", b"b")
    batch = kv.batch()
    batch.delete_range("log", start, end)
    kv.write(batch)
    put(kv, "log", b"c")

    assert keys_of(kv, "log") == [b"a", b"b", b"c"]
    assert keys_of(kv, "log", start, end) == []
    assert list(kv.scan("log", start, end, reverse=True)) == []


def test_an_empty_batch_changes_nothing(kv: KV) -> None:
    """Writing nothing is allowed."""
    kv.write(kv.batch())

    assert keys_of(kv, "log") == []


def test_a_batch_is_written_once(kv: KV) -> None:
    """Write consumes the batch: it is empty, and neither written nor filled again."""
    batch = kv.batch()
    batch.put("log", b"a", b"1")
    kv.write(batch)

    assert len(batch) == 0
    with pytest.raises(StoreError):
        kv.write(batch)
    with pytest.raises(StoreError):
        batch.put("log", b"b", b"2")
    assert keys_of(kv, "log") == [b"a"]


def test_a_batch_of_another_store_is_refused(kv: KV, tmp_path: Path) -> None:
    """Families of two stores may share a name, never a batch."""
    other_path = tmp_path / "other"
    with (
        closing(MemoryKV(FAMILIES)) as memory,
        closing(RocksKV.open(other_path, FAMILIES)) as rocks,
    ):
        for other in (memory, rocks):
            batch = other.batch()
            batch.put("log", b"a", b"1")
            with pytest.raises(StoreError):
                kv.write(batch)

    assert keys_of(kv, "log") == []


# Scans


@pytest.mark.parametrize(
    "start, end, expected",
    [
        (b"", None, [b"a", b"b", b"b\0", b"c", b"\xff\xff"]),
        (b"b", None, [b"b", b"b\0", b"c", b"\xff\xff"]),
        (b"b", b"c", [b"b", b"b\0"]),
        (b"b", b"b\0", [b"b"]),
        (b"aa", b"bb", [b"b", b"b\0"]),
        (b"", b"a", []),
        (b"d", b"e", []),
        (b"\xff\xff\xff", None, []),
        (b"c", b"\xff\xff\xff", [b"c", b"\xff\xff"]),
    ],
)
def test_a_scan_keeps_to_its_bounds_both_ways(
    kv: KV, start: bytes, end: bytes | None, expected: list[bytes]
) -> None:
    """The rows in [start, end), ascending or descending, up to any limit."""
    put(kv, "log", b"c", b"a", b"\xff\xff", b"b", b"b\0")
    put(kv, "views", b"b", b"bb")
    forth = [(key, key.upper()) for key in expected]
    back = forth[::-1]

    assert list(kv.scan("log", start, end)) == forth
    assert list(kv.scan("log", start, end, reverse=True)) == back
    for limit in range(len(expected) + 2):
        assert list(kv.scan("log", start, end, limit=limit)) == forth[:limit]
        assert list(kv.scan("log", start, end, reverse=True, limit=limit)) == back[:limit]


def test_a_scan_does_not_see_later_writes(kv: KV) -> None:
    """The rows are those of the instant the first one was asked for."""
    put(kv, "log", b"a", b"b", b"c")
    rows = kv.scan("log")
    first = next(rows)
    batch = kv.batch()
    batch.delete("log", b"b")
    batch.put("log", b"c", b"changed")
    batch.put("log", b"d", b"new")
    kv.write(batch)

    assert [first, *rows] == [(b"a", b"A"), (b"b", b"B"), (b"c", b"C")]
    assert keys_of(kv, "log") == [b"a", b"c", b"d"]


def test_a_scan_begins_when_its_first_row_is_asked_for(kv: KV) -> None:
    """A scan that was made and not begun pins nothing and sees what is written meanwhile."""
    rows = kv.scan("log")
    put(kv, "log", b"a")

    assert [key for key, _ in rows] == [b"a"]


def test_many_scans_run_side_by_side(kv: KV) -> None:
    """Each scan has its own bounds and place, however they are interleaved."""
    put(kv, "log", *(bytes([n]) for n in range(100)))
    scans = [kv.scan("log", bytes([n]), bytes([n + 10])) for n in range(80)]
    columns = [[key[0] for key, _ in rows] for rows in zip(*scans, strict=True)]

    assert columns == [list(range(n, n + 80)) for n in range(10)]


# Families


def test_families_come_and_go(kv: KV) -> None:
    """Creating one that is there and dropping one that is not are no-ops."""
    kv.create_family("new")
    kv.create_family("new")
    put(kv, "new", b"a")
    assert kv.families() == ["log", "new", "views"]

    kv.drop_family("log")
    kv.drop_family("log")

    assert kv.families() == ["new", "views"]
    assert kv.get("new", b"a") == b"A"


def test_a_family_created_again_is_empty(kv: KV) -> None:
    """Dropping a family takes its rows; the name may be used anew."""
    put(kv, "log", b"a", b"b")
    kv.drop_family("log")
    kv.create_family("log")
    put(kv, "log", b"c")

    assert keys_of(kv, "log") == [b"c"]


def test_a_batch_made_before_a_family_can_fill_it(kv: KV) -> None:
    """A batch meets families when they are named, not when it is made."""
    batch = kv.batch()
    kv.create_family("new")
    batch.put("new", b"a", b"1")
    kv.drop_family("views")
    batch.put("log", b"a", b"2")
    kv.write(batch)

    assert (kv.get("new", b"a"), kv.get("log", b"a")) == (b"1", b"2")


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_batch_for_a_dropped_family_is_refused_whole(kv: KV, is_created_again: bool) -> None:
    """Nothing of it is written, not into a new family of the same name, and no harm is done."""
    batch = kv.batch()
    batch.put("log", b"a", b"1")
    batch.put("views", b"a", b"2")
    kv.drop_family("log")
    if is_created_again:
        kv.create_family("log")
    with pytest.raises(StoreError, match="log"):
        kv.write(batch)
    put(kv, "views", b"b")

    assert keys_of(kv, "views") == [b"b"]
    assert not is_created_again or keys_of(kv, "log") == []


def test_an_unknown_family_is_an_error_everywhere(kv: KV) -> None:
    """A misspelt family is never taken for an empty one."""
    uses: list[Callable[[], object]] = [
        lambda: kv.get("lgo", b"a"),
        lambda: kv.get_many("lgo", [b"a"]),
        lambda: list(kv.scan("lgo")),
        lambda: kv.batch().put("lgo", b"a", b"1"),
        lambda: kv.batch().delete("lgo", b"a"),
        lambda: kv.batch().delete_range("lgo", b"a", b"b"),
        lambda: kv.compact("lgo"),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="lgo"):
            use()


def test_the_reserved_family_is_out_of_reach(kv: KV) -> None:
    """RocksDB's own family is neither shown nor offered."""
    with pytest.raises(StoreError, match="reserved"):
        kv.create_family(RESERVED_FAMILY)
    with pytest.raises(StoreError):
        kv.get(RESERVED_FAMILY, b"a")
    kv.drop_family(RESERVED_FAMILY)

    assert RESERVED_FAMILY not in kv.families()


# Upkeep


def test_sync_and_compact_change_no_row(kv: KV) -> None:
    """What was there is there; what was deleted stays deleted."""
    put(kv, "log", b"a", b"b", b"c", b"d")
    kv.sync()
    batch = kv.batch()
    batch.delete("log", b"b")
    batch.delete_range("log", b"c", b"d")
    kv.write(batch)
    for bounds in ((b"a", b"c"), (None, None)):
        kv.compact("log", *bounds)
        assert list(kv.scan("log")) == [(b"a", b"A"), (b"d", b"D")]


def test_a_checkpoint_stands_on_its_own(kv: KV, tmp_path: Path) -> None:
    """It holds all that was written, and neither side sees the other's later writes."""
    kv.create_family("empty")
    put(kv, "log", b"a", b"b")
    kv.checkpoint(tmp_path / "copy")
    batch = kv.batch()
    batch.put("log", b"a", b"changed")
    batch.delete("log", b"b")
    kv.write(batch)
    with closing(open_checkpoint(kv, tmp_path / "copy")) as copy:
        assert copy.families() == ["empty", "log", "views"]
        assert list(copy.scan("log")) == [(b"a", b"A"), (b"b", b"B")]
        put(copy, "log", b"z")

    assert list(kv.scan("log")) == [(b"a", b"changed")]


def test_a_checkpoint_overwrites_nothing(kv: KV, tmp_path: Path) -> None:
    """The place must be free."""
    kv.checkpoint(tmp_path / "copy")

    with pytest.raises(StoreError):
        kv.checkpoint(tmp_path / "copy")


def test_stats_are_counts_of_bytes(kv: KV) -> None:
    """The three sizes are always there, and rows show up in them."""
    before = kv.stats()
    put(kv, "log", *(b"%05d" % n * 50 for n in range(100)))
    after = kv.stats()

    assert {"size_bytes", "wal_bytes", "memtable_bytes"} <= after.keys()
    assert sum(after.values()) > sum(before.values())


def test_a_closed_store_refuses_everything(kv: KV) -> None:
    """Closing twice is fine; using the store, or a batch made before, is an error."""
    batch = kv.batch()
    batch.put("log", b"a", b"1")
    kv.close()
    kv.close()
    uses: list[Callable[[], object]] = [
        kv.batch,
        kv.sync,
        kv.families,
        kv.stats,
        lambda: kv.write(batch),
        lambda: kv.get("log", b"a"),
        lambda: kv.get_many("log", [b"a"]),
        lambda: list(kv.scan("log")),
        lambda: kv.create_family("new"),
        lambda: kv.drop_family("log"),
        lambda: kv.compact("log"),
        lambda: kv.checkpoint(Path("nowhere")),
    ]
    for use in uses:
        with pytest.raises(StoreError):
            use()


def test_a_scan_cut_short_by_close_raises(kv: KV) -> None:
    """The rest of its rows must not look as if they had never been."""
    put(kv, "log", b"a", b"b", b"c")
    rows = kv.scan("log")
    next(rows)
    kv.close()

    with pytest.raises(StoreError, match="closed"):
        next(rows)


def test_threads_share_a_store(kv: KV) -> None:
    """Writers in many threads lose nothing, and a reader sees each batch whole."""
    torn: list[object] = []

    def write_rows(writer: int) -> None:
        for n in range(100):
            batch = kv.batch()
            batch.put("log", b"%d-%03d" % (writer, n), b"")
            batch.put("views", b"%d" % writer, b"%03d" % n)
            kv.write(batch)
            latest = kv.get("views", b"%d" % writer)
            if latest != b"%03d" % n or kv.get("log", b"%d-%03d" % (writer, n)) is None:
                torn.append((writer, n, latest))

    threads = [threading.Thread(target=write_rows, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert torn == []
    assert len(keys_of(kv, "log")) == 400


# The disk only


def test_rows_and_families_survive_a_reopen(tmp_path: Path) -> None:
    """A family on disk is opened though nobody lists it; a listed one is created."""
    with closing(RocksKV.open(tmp_path, FAMILIES)) as kv:
        kv.create_family("later")
        put(kv, "later", b"a")
        kv.drop_family("views")
    with closing(RocksKV.open(tmp_path, ["log", "listed"])) as kv:
        assert kv.families() == ["later", "listed", "log"]
        assert kv.get("later", b"a") == b"A"


def test_close_frees_the_store_whatever_is_still_held(tmp_path: Path) -> None:
    """Scans, batches and errors that a caller keeps do not keep the lock."""
    kv = RocksKV.open(tmp_path, FAMILIES)
    put(kv, "log", b"a", b"b")
    rows, batch = kv.scan("log"), kv.batch()
    next(rows)
    batch.put("log", b"c", b"1")
    with pytest.raises(StoreLocked) as held:
        RocksKV.open(tmp_path, FAMILIES)
    kv.close()

    with closing(RocksKV.open(tmp_path, FAMILIES)) as again:
        assert keys_of(again, "log") == [b"a", b"b"]
    assert str(tmp_path) in str(held.value)


def test_a_store_without_its_head_is_refused(tmp_path: Path) -> None:
    """Without CURRENT, RocksDB would begin an empty store on top of the rows."""
    with closing(RocksKV.open(tmp_path, FAMILIES)) as kv:
        put(kv, "log", b"a")
        kv.compact("log")
    (tmp_path / "CURRENT").unlink()

    with pytest.raises(StoreError, match="CURRENT"):
        RocksKV.open(tmp_path, FAMILIES)


def test_a_read_only_store_reads_beside_its_owner(tmp_path: Path) -> None:
    """It sees what was written before it was opened, synced or not, and changes nothing."""
    with closing(RocksKV.open(tmp_path, FAMILIES)) as owner:
        put(owner, "log", b"a")
        with closing(RocksKV.open(tmp_path, ["absent"], read_only=True)) as reader:
            put(owner, "log", b"b")
            assert keys_of(reader, "log") == [b"a"]
            assert reader.families() == FAMILIES
            uses: list[Callable[[], object]] = [
                reader.batch,
                reader.sync,
                lambda: reader.create_family("new"),
                lambda: reader.drop_family("log"),
                lambda: reader.compact("log"),
                lambda: reader.checkpoint(tmp_path / "copy"),
            ]
            for use in uses:
                with pytest.raises(StoreError, match="read-only"):
                    use()
        assert keys_of(owner, "log") == [b"a", b"b"]


def test_nothing_is_created_to_be_read(tmp_path: Path) -> None:
    """Reading a store that is not there is an error and leaves no trace."""
    with pytest.raises(StoreError, match="no store"):
        RocksKV.open(tmp_path / "absent", FAMILIES, read_only=True)

    assert not (tmp_path / "absent").exists()


# The memory only


def test_a_power_cut_keeps_what_was_synced() -> None:
    """Rows need a sync to survive; families come and go durably at once."""
    kv = MemoryKV(FAMILIES)
    put(kv, "log", b"a")
    put(kv, "views", b"a")
    kv.sync()
    put(kv, "log", b"b")
    kv.create_family("new")
    put(kv, "new", b"a")
    kv.drop_family("views")
    after = kv.crash()

    assert after.families() == ["log", "new"]
    assert (keys_of(after, "log"), keys_of(after, "new")) == ([b"a"], [])
    assert keys_of(kv, "log") == [b"a", b"b"]


def test_a_power_cut_never_revives_a_dropped_family() -> None:
    """Unsynced rows of a dropped family do not reach the new one of its name."""
    kv = MemoryKV(FAMILIES)
    put(kv, "log", b"old")
    kv.drop_family("log")
    kv.create_family("log")
    put(kv, "log", b"new")
    kv.sync()

    assert keys_of(kv.crash(), "log") == [b"new"]


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """A missing or foreign file is an error of the store."""
    (tmp_path / "foreign").write_bytes(b"\xc1")

    for name in ("foreign", "missing"):
        with pytest.raises(StoreError, match=name):
            MemoryKV.load(tmp_path / name)


# Any order of anything

KEYS = st.binary(max_size=3) | st.sampled_from([b"a", b"b", b"c", b"\xff", b"\xff\xff"])
FAMILY = st.sampled_from(["log", "views", "third"])
CHANGE = st.one_of(
    st.tuples(st.just("put"), FAMILY, KEYS, st.binary(max_size=5)),
    st.tuples(st.just("delete"), FAMILY, KEYS),
    st.tuples(st.just("delete_range"), FAMILY, KEYS, KEYS),
)
STEP = st.one_of(
    st.tuples(st.just("write"), st.lists(CHANGE, max_size=6)),
    st.tuples(st.just("sync")),
    st.tuples(st.just("crash_or_reopen")),
    st.tuples(st.just("renew"), FAMILY),
    st.tuples(st.just("compact"), FAMILY),
)
Model = dict[str, dict[bytes, bytes]]
Step = tuple[Any, ...]


def change_model(model: Model, change: Step) -> None:
    """What one change of a batch must do."""
    verb, rows, (key, *rest) = change[0], model[change[1]], change[2:]
    if verb == "put":
        rows[key] = rest[0]
    elif verb == "delete":
        rows.pop(key, None)
    else:
        for found in [found for found in rows if key <= found < rest[0]]:
            del rows[found]


def take_step(store: KV, model: Model, step: Step) -> None:
    """Do one step to a store and to its model."""
    if step[0] == "write":
        batch = store.batch()
        for change in step[1]:
            getattr(batch, change[0])(*change[1:])
            change_model(model, change)
        store.write(batch)
    elif step[0] == "renew":
        store.drop_family(step[1])
        store.create_family(step[1])
        model[step[1]] = {}
    elif step[0] == "compact":
        store.compact(step[1])
    else:
        store.sync()


def assert_equal(store: KV, model: Model, start: bytes, end: bytes) -> None:
    """Every way of reading gives what the model holds."""
    for family, rows in model.items():
        ordered = sorted(rows.items())
        inside = [row for row in ordered if start <= row[0] < end]
        assert list(store.scan(family)) == ordered
        assert list(store.scan(family, start, end)) == inside
        assert list(store.scan(family, start, end, reverse=True)) == inside[::-1]
        assert list(store.scan(family, start, end, limit=2)) == inside[:2]
        assert (
            list(store.scan(family, start, reverse=True, limit=2))
            == [row for row in ordered[::-1] if row[0] >= start][:2]
        )
        assert store.get_many(family, [start, end]) == [rows.get(start), rows.get(end)]


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(STEP, max_size=12), start=KEYS, end=KEYS)
def test_any_order_of_anything_matches_a_dictionary(
    steps: list[Step], start: bytes, end: bytes
) -> None:
    """Both stores hold what a dictionary would, through syncs, cuts, reopens and new families."""
    names = ["log", "third", "views"]
    with TemporaryDirectory() as place:
        memory, rocks = MemoryKV(names), RocksKV.open(Path(place), names, write_buffer_mb=1)
        models: list[Model] = [{name: {} for name in names} for _ in range(2)]
        for step in steps:
            take_step(memory, models[0], step)
            take_step(rocks, models[1], step)
            if step[0] == "crash_or_reopen":
                rocks.close()
                memory, rocks = memory.crash(), RocksKV.open(Path(place), [])
        assert_equal(memory, models[0], start, end)
        assert_equal(rocks, models[1], start, end)
        rocks.close()
