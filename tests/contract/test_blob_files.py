"""Do blobs come back as they were, or not at all?  Files and their twin, one suite for both."""

import pytest

from engine.state.blob_files import FileBlobs, MemoryBlobs, new_key
from engine.state.kv import CorruptStore
from schemas import limits

RAW, OTHER, KEY = bytes(15) + b"\1", bytes(15) + b"\2", new_key()
PIECE = limits.BLOB_PIECE_BYTES


@pytest.fixture(params=["files", "memory"])
def blobs(request, tmp_path):
    return FileBlobs(tmp_path / "blobs") if request.param == "files" else MemoryBlobs()


def stored(blobs, data, raw=RAW, step=700_000):
    upload = blobs.begin(7, raw, KEY)
    for at in range(0, len(data), step):
        upload.write(data[at : at + step])
    upload.keep()


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_bytes_come_back(blobs, size):
    """Whatever their number, and in whatever pieces they came."""
    data = bytes(range(256)) * (size // 256 + 1)
    stored(blobs, data[:size])

    assert data[:size] == b"".join(blobs.read(7, RAW, KEY))
    assert [(7, RAW)] == blobs.all()


def test_what_was_not_kept_is_not_there(blobs):
    """An upload that was dropped, or never finished, leaves nothing to be read."""
    upload = blobs.begin(7, RAW, KEY)
    upload.write(b"x" * (2 * PIECE))
    with pytest.raises(CorruptStore):
        list(blobs.read(7, RAW, KEY))
    upload.drop()

    assert [] == blobs.all()


def test_removing(blobs):
    """One goes, the others stay; what is not there can be removed."""
    stored(blobs, b"one")
    stored(blobs, b"two", OTHER)
    blobs.remove(7, RAW)
    blobs.remove(7, RAW)
    blobs.remove(8, OTHER)

    assert [(7, OTHER)] == blobs.all()
    assert b"two" == b"".join(blobs.read(7, OTHER, KEY))


def test_another_key_opens_nothing(blobs):
    """The bytes are nobody's without the key that the log holds."""
    stored(blobs, b"secret")
    with pytest.raises(CorruptStore):
        list(blobs.read(7, RAW, new_key()))


@pytest.fixture
def file(tmp_path):
    blobs = FileBlobs(tmp_path / "blobs")
    stored(blobs, b"a" * PIECE + b"b" * PIECE + b"c")
    return blobs, tmp_path / "blobs" / "7" / RAW.hex()


SEALED = PIECE + 28
CUTS = {
    "a changed byte": lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
    "cut at a piece": lambda data: data[: 2 * SEALED],
    "cut within a piece": lambda data: data[:-1],
    "pieces swapped": lambda data: data[SEALED : 2 * SEALED] + data[:SEALED] + data[2 * SEALED :],
    "a piece left out": lambda data: data[SEALED:],
    "nothing left": lambda data: b"",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_damage_is_found(file, cut):
    """Nothing is answered in silence that was not uploaded so."""
    blobs, path = file
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(CorruptStore):
        list(blobs.read(7, RAW, KEY))


def test_no_plain_byte_is_on_the_disk(tmp_path):
    """Neither the bytes nor the key, also not while they come."""
    blobs = FileBlobs(tmp_path / "blobs")
    upload = blobs.begin(7, RAW, KEY)
    upload.write(b"a canary in a blob " * 100_000)
    under_way = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    upload.keep()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert b"canary" not in under_way + kept
    assert KEY not in kept
