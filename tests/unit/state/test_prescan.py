"""Does the pre-scan tell a torn log from a damaged one, wherever the harm is?"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import google_crc32c
import pytest

from engine.state.kv import CorruptStore
from engine.state.prescan import Verdict, WalScan, refuse_damage, scan_directory, scan_wal

BLOCK = 32 * 1024
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def fragment(kind: int, payload: bytes) -> bytes:
    """One record of the log format, with its masked CRC."""
    crc = google_crc32c.value(bytes([kind]) + payload)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<IHB", masked, len(payload), kind) + payload


def batch(sequence: int, size: int) -> bytes:
    """The payload of a batch with one change, of noise that is the same in every run."""
    return struct.pack("<QI", sequence, 1) + random.Random(sequence).randbytes(size)


def log_of(payloads: list[bytes]) -> tuple[bytes, list[int]]:
    """Lay payloads out as RocksDB does; also, where each one ends."""
    log, ends = bytearray(), []
    for payload in payloads:
        rest, is_first = payload, True
        while rest or is_first:
            room = BLOCK - len(log) % BLOCK
            if room < 7:
                log += bytes(room)
                room = BLOCK
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = (FIRST if rest else FULL) if is_first else (MIDDLE if rest else LAST)
            log += fragment(kind, piece)
            is_first = False
        ends.append(len(log))
    return bytes(log), ends


# Small records, some that end just short of a block, and one over several blocks.
SIZES = [100] * 200 + [BLOCK - 3000, 900, 13, 2000] + [300] * 60 + [3 * BLOCK] + [50] * 300
LOG, ENDS = log_of([batch(number, size) for number, size in enumerate(SIZES, start=1)])
LAST_START = ENDS[-2]


def scan(tmp_path: Path, log: bytes) -> WalScan:
    """Scan these bytes as a file."""
    path = tmp_path / "000004.log"
    path.write_bytes(log)
    return scan_wal(path)


def flipped(log: bytes, offset: int, bit: int = 0) -> bytes:
    """The log with one bit changed."""
    changed = bytearray(log)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def test_a_whole_log_is_clean(tmp_path: Path) -> None:
    """Every record counts, however it is laid out."""
    found = scan(tmp_path, LOG)

    place, size = tmp_path / "000004.log", len(LOG)
    assert found == WalScan(place, size, len(SIZES), whole_bytes=size)
    assert found.verdict is Verdict.CLEAN


def test_an_empty_log_is_clean(tmp_path: Path) -> None:
    """A store that was opened and never written to has one."""
    assert scan(tmp_path, b"").verdict is Verdict.CLEAN


def test_a_cut_is_never_called_damage(tmp_path: Path) -> None:
    """A crash cuts anywhere: whole records stay counted, and only a cut within one is a tear."""
    rng = random.Random(1)
    cuts = {rng.randrange(1, len(LOG)) for _ in range(150)} | {end + 3 for end in ENDS[:50]}
    for cut in sorted(cuts | set(ENDS[200:270])):
        found = scan(tmp_path, LOG[:cut])
        whole = [end for end in ENDS if end <= cut]

        assert found.record_count == len(whole)
        assert found.verdict is not Verdict.DAMAGED
        if cut in ENDS:
            assert found.verdict is Verdict.CLEAN


@pytest.mark.parametrize("tail", [bytes(9), bytes(40_000), random.Random(2).randbytes(70_000)])
def test_a_tail_of_rubbish_is_a_tear(tmp_path: Path, tail: bytes) -> None:
    """Zeros or noise behind the last record: nothing that was written is lost."""
    found = scan(tmp_path, LOG + tail)

    assert (found.verdict, found.first_bad_offset) == (Verdict.TORN_TAIL, len(LOG))
    assert found.record_count == len(SIZES)


def test_a_flip_with_records_behind_it_is_damage(tmp_path: Path) -> None:
    """One bit anywhere before the last record is found, at or just before the flip."""
    rng = random.Random(3)
    for _ in range(200):
        offset = rng.randrange(LAST_START)
        found = scan(tmp_path, flipped(LOG, offset, rng.randrange(8)))
        is_padding = BLOCK - offset % BLOCK < 7 and not any(LOG[offset : offset + 1])
        if is_padding and found.verdict is Verdict.CLEAN:
            continue

        assert found.verdict is Verdict.DAMAGED, offset
        assert found.first_bad_offset is not None
        assert found.resumes_at is not None
        assert found.first_bad_offset <= offset < found.first_bad_offset + BLOCK
        assert found.resumes_at > found.first_bad_offset


@pytest.mark.parametrize("bit", range(56))
def test_every_bit_of_a_header_in_the_last_block_counts(tmp_path: Path, bit: int) -> None:
    """RocksDB takes a longer length there for a torn tail, and drops the good records behind."""
    start = ENDS[-200]
    assert start // BLOCK == len(LOG) // BLOCK

    found = scan(tmp_path, flipped(LOG, start + bit // 8, bit % 8))

    assert (found.verdict, found.first_bad_offset) == (Verdict.DAMAGED, start)
    assert found.resumes_at == ENDS[-199]


def test_a_flip_in_the_last_record_is_a_tear(tmp_path: Path) -> None:
    """Nothing is behind it: it may as well never have been finished."""
    for offset in range(LAST_START, len(LOG)):
        found = scan(tmp_path, flipped(LOG, offset))

        assert (found.verdict, found.first_bad_offset) == (Verdict.TORN_TAIL, LAST_START)


@pytest.mark.parametrize("sector", [0, 4096, BLOCK - 2048, BLOCK, 3 * BLOCK - 512])
def test_a_lost_sector_is_damage(tmp_path: Path, sector: int) -> None:
    """RocksDB takes zeros for padding and goes on with the next block."""
    log = LOG[:sector] + bytes(4096) + LOG[sector + 4096 :]

    assert scan(tmp_path, log).verdict is Verdict.DAMAGED


def test_fragments_out_of_place_are_damage(tmp_path: Path) -> None:
    """A first without a last, or a last without a first, has lost its other half."""
    whole, start = fragment(FULL, batch(1, 20)), fragment(FIRST, batch(2, 20))
    headless = scan(tmp_path, whole + fragment(LAST, b"rest") + whole)
    endless = scan(tmp_path, whole + start + whole)
    unfinished = scan(tmp_path, whole + start)

    assert (headless.verdict, headless.first_bad_offset) == (Verdict.DAMAGED, len(whole))
    assert (endless.verdict, endless.first_bad_offset) == (Verdict.DAMAGED, len(whole))
    assert (unfinished.verdict, unfinished.first_bad_offset) == (Verdict.TORN_TAIL, len(whole))


def test_a_log_stored_in_a_torn_record_is_not_taken_for_records(tmp_path: Path) -> None:
    """What a caller stored must not keep the store from opening after a crash."""
    stored, _ = log_of([batch(number, 20) for number in range(50_000, 50_100)])
    torn, _ = log_of([batch(1, 50), batch(2, 50), struct.pack("<QI", 3, 1) + stored])

    assert scan(tmp_path, torn[:-10]).verdict is Verdict.TORN_TAIL


def test_a_type_of_a_later_release_is_passed_over(tmp_path: Path) -> None:
    """RocksDB adds record types; one whose checksum holds is no damage."""
    log = fragment(FULL, batch(1, 20)) + fragment(130, b"note") + fragment(FULL, batch(2, 20))
    found = scan(tmp_path, log)

    assert (found.verdict, found.record_count) == (Verdict.CLEAN, 2)


@pytest.mark.parametrize("kind", [5, 6, 7, 8, 11])
def test_a_type_that_traps_rocksdb_is_damage(tmp_path: Path, kind: int) -> None:
    """Even as the last record: RocksDB would read it for ever."""
    harmed = LOG[: LAST_START + 6] + bytes([kind]) + LOG[LAST_START + 7 :]
    found = scan(tmp_path, harmed)

    assert (found.verdict, found.first_bad_offset) == (Verdict.DAMAGED, LAST_START)
    assert found.resumes_at is None


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    """It has the form of a log, holds no batches, and CURRENT tells which one counts."""
    edits, _ = log_of([b"edit %d" % number for number in range(20)])
    (tmp_path / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (tmp_path / "MANIFEST-000001").write_bytes(flipped(edits, 30))
    (tmp_path / "MANIFEST-000005").write_bytes(edits[:-2])
    refuse_damage(tmp_path)
    (tmp_path / "MANIFEST-000005").write_bytes(flipped(edits, 30))

    with pytest.raises(CorruptStore, match="MANIFEST-000005 offset 26"):
        refuse_damage(tmp_path)


@pytest.mark.parametrize("name", [b"", b"MANIFEST-000009\n", b"MANI\0FEST", b"\xff\xfe"])
def test_a_head_that_names_no_manifest_is_refused(tmp_path: Path, name: bytes) -> None:
    """CURRENT has no checksum; that the file it names exists is all there is."""
    (tmp_path / "CURRENT").write_bytes(name)

    with pytest.raises(CorruptStore, match="CURRENT"):
        refuse_damage(tmp_path)


def test_a_torn_log_before_another_is_refused(tmp_path: Path) -> None:
    """RocksDB would go on behind the gap; an empty log behind a tear is fine."""
    (tmp_path / "000004.log").write_bytes(LOG[:-1])
    (tmp_path / "000007.log").write_bytes(b"")
    refuse_damage(tmp_path)
    (tmp_path / "000009.log").write_bytes(LOG)

    with pytest.raises(CorruptStore, match=r"000004\.log"):
        refuse_damage(tmp_path)


def test_damage_is_refused_by_name_and_offset(tmp_path: Path) -> None:
    """The error says which file and where, for a human and for a program."""
    (tmp_path / "000004.log").write_bytes(LOG)
    path = tmp_path / "000007.log"
    path.write_bytes(flipped(LOG, 50))

    with pytest.raises(CorruptStore, match=r"000007\.log offset 0") as refused:
        refuse_damage(tmp_path)
    assert (refused.value.path, refused.value.offset) == (str(path), 0)


def test_torn_logs_are_let_pass(tmp_path: Path) -> None:
    """Only RocksDB's logs are read, oldest first, and a tear is no reason to refuse."""
    (tmp_path / "000009.log").write_bytes(LOG[:-1])
    (tmp_path / "000004.log").write_bytes(LOG)
    (tmp_path / "LOG").write_bytes(b"words")

    refuse_damage(tmp_path)

    assert [found.path.name for found in scan_directory(tmp_path)] == ["000004.log", "000009.log"]
