"""Is a RocksDB log whole, torn at its end, or damaged in the middle?

A torn tail is what a crash leaves: a last record cut short, and nothing behind it.
Damage is a bad record with a good one behind it: something that was written, and maybe
acknowledged, is lost. RocksDB's own recovery takes some damage in the last block for a torn tail
(a flipped length, a zeroed sector), loops for ever over some other (a type turned into that of a
recycled log), and never names the log. So every log is read here before RocksDB sees it, and so
is the MANIFEST, which has the same form.

The format is blocks of 32 KiB that hold records, each a masked CRC32C (4 bytes), a length (2),
a type (1) and the payload; the CRC covers type and payload. No record crosses a block: a long one
is split into a first, some middle and a last fragment. A block's end too short for a header is
padding.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import google_crc32c

from engine.state.kv import CorruptStore

_BLOCK_BYTES = 32 * 1024
_HEADER = Struct("<IHB")
_HEADER_BYTES = _HEADER.size
# A batch starts with its sequence number and the count of its changes.
_BATCH_HEADER = Struct("<QI")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# The types of recycled logs, which our stores never have, and on which a bad record is a trap.
_RECYCLED = frozenset((5, 6, 7, 8, 11))
_CRC_MASK_DELTA = 0xA282EAD8
_AT_THE_END = (
    ", and nothing behind it: a power cut leaves that of what was not yet acknowledged, a bad disk "
    "of anything; `strata mend` shows and cuts it off"
)

_Log = mmap.mmap


class Verdict(StrEnum):
    """What a log's records say about it."""

    CLEAN = "clean"
    TORN_TAIL = "torn_tail"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class WalScan:
    """What one log holds: the whole records up to the first bad one, and what lies behind it."""

    path: Path
    size_bytes: int
    record_count: int
    first_bad_offset: int | None = None
    resumes_at: int | None = None
    is_trap: bool = False
    whole_bytes: int = 0
    """Where the last record ends that is whole, all its fragments there."""

    @property
    def verdict(self) -> Verdict:
        """Clean, torn at the end, or damaged in the middle."""
        if self.first_bad_offset is None:
            return Verdict.CLEAN
        # RocksDB would never come back from a trap, so that no tail is to be taken for one.
        is_tail = self.resumes_at is None and not self.is_trap
        return Verdict.TORN_TAIL if is_tail else Verdict.DAMAGED


class _Walk(NamedTuple):
    """How far the records are good, and which of them last began a batch."""

    record_count: int
    first_bad_offset: int | None = None
    resumes_at: int | None = None
    batch_at: int | None = None
    ends_open: bool = False
    whole_bytes: int = 0


def scan_wal(path: Path) -> WalScan:
    """Read one log and say whether it is whole, torn or damaged."""
    return _scan(path, holds_batches=True)


def scan_directory(path: Path) -> list[WalScan]:
    """Read every log of a store, oldest first."""
    scans = []
    for log in sorted(path.glob("*.log")):
        try:
            scans.append(scan_wal(log))
        except FileNotFoundError:  # Its owner is alive and done with it.
            continue
    return scans


def refuse_damage(path: Path) -> None:
    """Raise CorruptStore if a record is lost that has good ones behind it; a torn tail is fine."""
    _refuse_damaged_manifest(path)
    scans = scan_directory(path)
    for number, scan in enumerate(scans):
        if scan.verdict is Verdict.DAMAGED:
            raise _corrupt(scan)
        # Only the last log may end torn: RocksDB would go on with the next one over the gap.
        if scan.verdict is Verdict.TORN_TAIL and any(s.record_count for s in scans[number + 1 :]):
            raise _corrupt(scan)


def damaged_tail(path: Path) -> WalScan | None:
    """The log of a store that ends in something else than a record; damage elsewhere is raised."""
    refuse_damage(path)
    return next((scan for scan in scan_directory(path) if scan.first_bad_offset is not None), None)


def find_first_bad(path: Path) -> CorruptStore | None:
    """The first bad record of any log of this store, be it a torn tail, as an error to raise."""
    for scan in scan_directory(path):
        if scan.verdict is Verdict.DAMAGED:
            return _corrupt(scan)
        if scan.verdict is Verdict.TORN_TAIL:
            return _corrupt(scan, _AT_THE_END)
    return None


def _refuse_damaged_manifest(path: Path) -> None:
    current = path / "CURRENT"
    if not current.exists():
        return
    name = current.read_bytes().decode("ascii", "replace").strip().replace("\0", "?")
    try:
        scan = _scan(path / name, holds_batches=False)
    except OSError as error:
        raise CorruptStore(
            f"Corruption: {current} names {name!r}: {error}", str(current)
        ) from error
    if scan.verdict is Verdict.DAMAGED:
        raise _corrupt(scan)


def _corrupt(scan: WalScan, hint: str = "") -> CorruptStore:
    message = f"Corruption: bad record in {scan.path} offset {scan.first_bad_offset}"
    if scan.resumes_at is not None:
        message += f", with good ones again from {scan.resumes_at}"
    message += hint
    return CorruptStore(message, str(scan.path), scan.first_bad_offset)


def _scan(path: Path, *, holds_batches: bool) -> WalScan:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return WalScan(path, 0, 0)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            walk = _walk(log)
            bad, resumes_at = walk.first_bad_offset, walk.resumes_at
            # A long record whose last fragment was never written is torn: nothing is behind it.
            if bad is None or walk.ends_open:
                return WalScan(path, len(log), walk.record_count, bad, whole_bytes=walk.whole_bytes)
            if resumes_at is None:
                batch_at = walk.batch_at if holds_batches else None
                resumes_at = _find_good_record(log, bad, batch_at)
            is_trap = log[bad + 6 : bad + 7] != b"" and log[bad + 6] in _RECYCLED
            return WalScan(
                path, len(log), walk.record_count, bad, resumes_at, is_trap, walk.whole_bytes
            )


def _walk(log: _Log) -> _Walk:
    """Follow the records from the start to the first one that is bad or out of place."""
    size, position, record_count, whole = len(log), 0, 0, 0
    batch_at: int | None = None
    open_at: int | None = None
    while position < size:
        if _BLOCK_BYTES - position % _BLOCK_BYTES < _HEADER_BYTES:
            position += _BLOCK_BYTES - position % _BLOCK_BYTES
            continue
        end = _end_of_record(log, position, size)
        if end is None:
            return _Walk(record_count, position, None, batch_at, whole_bytes=whole)
        kind = log[position + 6]
        if kind in (_FULL, _FIRST):
            if open_at is not None:
                return _Walk(record_count, open_at, position, batch_at)
            batch_at = position
        elif kind in (_MIDDLE, _LAST) and open_at is None:
            return _Walk(record_count, position, position, batch_at)
        if kind in (_FULL, _LAST):
            record_count += 1
            open_at, whole = None, end
        elif kind == _FIRST:
            open_at = position
        position = end
    is_open = open_at is not None
    return _Walk(record_count, open_at, None, batch_at, ends_open=is_open, whole_bytes=whole)


def _end_of_record(log: _Log, position: int, size: int) -> int | None:
    """Where the record at this position ends, or None if it is not a good one."""
    if size - position < _HEADER_BYTES:
        return None
    stored, length, _ = _HEADER.unpack_from(log, position)
    end: int = position + _HEADER_BYTES + length
    if end > size or end - position > _BLOCK_BYTES - position % _BLOCK_BYTES:
        return None
    crc = google_crc32c.value(log[position + 6 : end])
    # A CRC stored among the bytes it covers is masked: rotated right by 15, plus a constant.
    masked = ((crc >> 15 | crc << 17) + _CRC_MASK_DELTA) & 0xFFFFFFFF
    return end if masked == stored else None


def _find_good_record(log: _Log, bad: int, batch_at: int | None) -> int | None:
    """The first good record behind a bad one, whose own length is not to be trusted."""
    size = len(log)
    # Byte by byte to the end of the next block, as the damage may lie across the border.
    searched_to = min(size, bad - bad % _BLOCK_BYTES + 2 * _BLOCK_BYTES)
    for position in range(bad + 1, searched_to):
        if position % _BLOCK_BYTES == 0:
            is_good = _end_of_record(log, position, size) is not None
        else:
            is_good = _is_later_batch(log, position, bad, batch_at)
        if is_good:
            return position
    for position in range(searched_to, size, _BLOCK_BYTES):
        if _end_of_record(log, position, size) is not None:
            return position
    return None


def _is_later_batch(log: _Log, position: int, bad: int, batch_at: int | None) -> bool:
    """Whether a good record starts here that continues the log's own sequence."""
    size = len(log)
    batch = position + _HEADER_BYTES
    if size - batch < _BATCH_HEADER.size or log[position + 6] not in (_FULL, _FIRST):
        return False
    # A torn record's payload may hold what looks like a record: a stored log, or a prank.
    # It would also have to guess the number of the next change: each takes a byte or more.
    if batch_at is not None:
        sequence, count = _BATCH_HEADER.unpack_from(log, batch_at + _HEADER_BYTES)
        found, _ = _BATCH_HEADER.unpack_from(log, batch)
        if not 0 <= found - (sequence + count) <= position - bad:
            return False
    return _end_of_record(log, position, size) is not None
