"""Is the log whole?  The cheap check at every start, and the full one on demand."""

from collections.abc import Callable, Iterator

import msgspec

from engine.state.anchors import Anchors
from engine.state.directory import expected_rows
from engine.state.kv import KV, CorruptStore
from engine.state.log import KvLog, chain_link

Progress = Callable[[int, int], None]
_READ_ROWS = 512


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a full verification saw."""

    entries: int
    erased: int
    anchors: int
    head: int
    chain: str
    index_rows: int


def check_tail(log: KvLog, anchors: Anchors) -> None:
    """At start: the head is at or beyond the last anchor, and what follows it chains and opens."""
    last = anchors.last
    if last is None:
        start, chain = log.base_offset, log.base_chain
    else:
        if log.head() < last.size:
            raise CorruptStore(
                f"the log ends at entry {log.head()}, but {anchors.path} vouches for {last.size}: "
                f"{last.size - log.head()} acknowledged entries are gone; restore a backup",
                str(anchors.path),
            )
        if last.size <= log.base_offset:
            start, chain = log.base_offset, log.base_chain
        else:
            start, chain = last.size, _chain_at(log, last.size)
            if chain != last.chain:
                raise CorruptStore(f"entry {last.size} is not the one {anchors.path} vouches for")
    for _ in check_chain(log, start, chain):
        pass


def check_stretch(log: KvLog, start: int, count: int) -> int:
    """Check some entries after an offset, beside whoever writes; the last that was found good."""
    end = min(start + count, log.head())
    chain = log.base_chain if start == log.base_offset else _chain_at(log, start)
    offsets: list[int] = []
    for header, raw, link in log.headers(start + 1, end + 1):
        chain = chain_link(chain, raw)
        if header.offset != start + 1 + len(offsets) or chain != link:
            raise CorruptStore(f"the chain breaks at entry {header.offset}")
        offsets.append(header.offset)
    if len(offsets) != end - start:
        raise CorruptStore(f"entry {start + 1 + len(offsets)} is missing from the log")
    log.read_many(offsets)
    return end


def _chain_at(log: KvLog, offset: int) -> bytes:
    for header, _, chain in log.headers(offset, offset + 1):
        if header.offset == offset:
            return chain
    raise CorruptStore(f"entry {offset} is missing from the log")


def check_chain(log: KvLog, start: int, chain: bytes) -> Iterator[int]:
    """Walk headers and bodies after an offset; yields each offset found good."""
    expected = start + 1
    pending: list[int] = []
    for header, raw, link in log.headers(start + 1):
        if header.offset != expected:
            raise CorruptStore(f"entry {expected} is missing: the log goes on at {header.offset}")
        chain = chain_link(chain, raw)
        if chain != link:
            raise CorruptStore(f"the chain breaks at entry {header.offset}")
        pending.append(header.offset)
        expected += 1
        if len(pending) >= _READ_ROWS:
            yield from _bodies(log, pending)
            pending = []
    yield from _bodies(log, pending)
    if expected - 1 != log.head():
        raise CorruptStore(f"the log ends at entry {expected - 1}, its head says {log.head()}")


def _bodies(log: KvLog, offsets: list[int]) -> Iterator[int]:
    log.read_many(offsets)
    yield from offsets


def verify_log(log: KvLog, kv: KV, anchors: Anchors | None, progress: Progress) -> LogReport:
    """Chain, anchors, gaps, bodies, counts and the rows by which entries are found."""
    total = log.head() - log.base_offset
    for seen, _ in enumerate(check_chain(log, log.base_offset, log.base_chain), start=1):
        if seen % _READ_ROWS == 0:
            progress(seen, total)
    progress(total, total)
    anchored = _check_anchors(log, anchors)
    index_rows = _check_indexes(log, kv)
    erased = sum(1 for _ in kv.scan("erased"))
    return LogReport(
        entries=total,
        erased=erased,
        anchors=anchored,
        head=log.head(),
        chain=log.chain.hex(),
        index_rows=index_rows,
    )


def _check_anchors(log: KvLog, anchors: Anchors | None) -> int:
    if anchors is None:
        return 0
    found = anchors.known
    wanted = {a.size: a.chain for a in found if log.base_offset < a.size}
    for header, _, chain in log.headers(log.base_offset + 1):
        expected = wanted.pop(header.offset, chain)
        if expected != chain:
            raise CorruptStore(f"entry {header.offset} is not the one {anchors.path} vouches for")
    beyond = [size for size in wanted if size > log.head()]
    if beyond:
        raise CorruptStore(f"{anchors.path} vouches for {max(beyond)} entries, {log.head()} remain")
    return len(found)


def _check_indexes(log: KvLog, kv: KV) -> int:
    """Every entry is found by its id, its scope and its key, and nothing else is."""
    wanted = {"ids": 0, "scope_log": 0}
    for header, _, _ in log.headers(log.base_offset + 1):
        for (family, key), value in expected_rows(header).items():
            row = kv.get(family, key)
            if family in wanted:
                wanted[family] += 1
            elif row is not None and row[:8] > value[:8]:
                continue  # the key was used again: a later entry holds it
            elif row is None and kv.get("erased", value[:8]) is not None:
                continue  # the key is free again, with the payload it was used for
            if row != value:
                raise CorruptStore(f"entry {header.offset} is missing from {family}")
    for family, count in wanted.items():
        found = sum(1 for _ in kv.scan(family))
        if found != count:
            raise CorruptStore(f"{family} holds {found} rows, the log says {count}")
    return sum(wanted.values())
