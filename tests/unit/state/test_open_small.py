"""What does a reader beside the owner of a store see?"""

import threading

import pytest

from engine.state.kv import StoreError
from engine.state.rocks import RocksKV


@pytest.fixture
def owner(tmp_path):
    """A store that is open for writing."""
    kv = RocksKV.open(tmp_path / "store", ["a", "b", "other"], write_buffer_mb=1)
    yield kv
    kv.close()


def put(kv, *rows):
    """These rows, in one batch."""
    batch = kv.batch()
    for family, key, value in rows:
        batch.put(family, key, value)
    kv.write(batch)


def look(tmp_path):
    """One who reads two of its families."""
    return RocksKV.open_small(tmp_path / "store", ["a", "b"], read_only=True)


def test_it_sees_what_was_written_when_it_opened(owner, tmp_path):
    """Also what was not flushed, and nothing that comes later."""
    put(owner, ("a", b"1", b"one"))
    reader = look(tmp_path)
    put(owner, ("a", b"2", b"two"))

    assert [(b"1", b"one")] == list(reader.scan("a"))
    reader.close()


def test_files_that_the_owner_deletes_are_still_read(owner, tmp_path):
    """It has them open."""
    put(owner, *(("a", b"%03d" % number, b"x" * 500) for number in range(500)))
    owner.compact("a")
    reader = look(tmp_path)
    before = list(owner.scan("a"))
    batch = owner.batch()
    batch.delete_range("a", b"", b"\xff")
    owner.write(batch)
    owner.compact("a")

    assert before == list(reader.scan("a"))
    reader.close()


def test_nothing_is_missing_that_was_written_before(owner, tmp_path):
    """However often the owner flushes and compacts while it is being opened."""
    stop = threading.Event()
    written = 0

    def write():
        nonlocal written
        number = 0
        while not stop.is_set():
            number += 1
            value = b"%d" % number + b" " * 2000
            put(owner, ("a", b"k", value), ("b", b"k%d" % (number % 50), value))
            written = number
            if number % 200 == 0:
                owner.compact("a")
            stop.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            at_least = written
            reader = look(tmp_path)
            seen = int(reader.get("a", b"k") or b"0")
            rows = [int(value) for _, value in reader.scan("b")]
            reader.close()
            assert at_least <= seen
            assert list(range(max(1, seen - 49), seen + 1)) == sorted(rows)
    finally:
        stop.set()
        writer.join()


def test_an_opening_that_the_owner_disturbed_is_done_again(owner, tmp_path):
    """A flush meanwhile may have moved rows from a log not yet read to files not yet known."""
    openings = []

    def look_while_it_is_flushed():
        put(owner, ("a", b"%d" % len(openings), b"x"))
        reader = look(tmp_path)
        if not openings:
            owner.compact("a")
        openings.append(reader)
        return reader

    reader = RocksKV._steadily(tmp_path / "store", look_while_it_is_flushed)

    assert 2 == len(openings)
    assert [b"0", b"1"] == [key for key, _ in reader.scan("a")]
    reader.close()


def test_it_writes_nothing(owner, tmp_path):
    """The store has one owner."""
    reader = look(tmp_path)
    with pytest.raises(StoreError, match="read-only"):
        reader.batch()
    reader.close()


def test_one_of_its_own_is_made_anew(tmp_path):
    """A scratch store begins empty: where something is, nothing is opened."""
    own = RocksKV.open_small(tmp_path / "own", ["a"], read_only=False)
    put(own, ("a", b"1", b"one"))
    own.close()
    with pytest.raises(FileExistsError):
        RocksKV.open_small(tmp_path / "own", ["a"], read_only=False)
