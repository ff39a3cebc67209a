"""Who keeps what happened, in order, for good?

The port has six methods: append, read, tail, erase, truncate, head. `KvLog` keeps the log in a
key-value store: RocksDB on disk, or its in-memory twin. One conformance suite holds for every
implementation. Offsets start at 1 and have no gaps (docs/adr/0013).
"""

import asyncio
import hmac
import os
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.state import directory
from engine.state.directory import Directory, index_entries
from engine.state.drafts import Draft
from engine.state.kv import KV, Batch, CorruptStore, StoreError
from engine.state.rows import Header, Row
from engine.state.syncer import Syncer
from engine.state.vault import Vault, commitment, offset_key
from schemas import limits
from schemas.errors import WalUnavailable

FAMILIES = ("log", "payload", "erased", *directory.FAMILIES, "meta")
HEADER_VERSION = 1
GENESIS = bytes(32)
_CHAIN_BYTES = 32
_PLAIN, _DEFLATED = b"\0", b"\1"
_NONCE_BYTES = 12
# Hashes that have taken in their prefix: to copy one costs less than to ask the library for it.
_header = sha256(b"\0").copy
_link = sha256(b"\1").copy
_CACHE_ROWS = 8192
_CACHE_BYTES = 32 * limits.MIB


class Fenced(Exception):
    """The head is not where the writer thought: decide again."""

    def __init__(self, head: int) -> None:
        super().__init__(f"the head is {head}")
        self.head = head


RowsHook = Callable[[Batch, int], None]
"""Adds rows to the batch of an append, given its first offset: all or nothing of it is seen."""


class Log(Protocol):
    """The whole contract of a log; nothing above it knows who keeps it."""

    async def append(
        self, drafts: Sequence[Draft], *, expect: int, rows: RowsHook | None = None
    ) -> int:
        """Append all or nothing, contiguous, durable on return; the first offset."""

    def read(self, start: int, limit: int) -> list[Row]:
        """Durable rows from `start` on, at most `limit`."""

    def tail(self, start: int) -> AsyncIterator[Row]:
        """Rows from `start` on, and then each new one as it becomes durable."""

    def erase(self, offsets: Sequence[int]) -> None:
        """Destroy the bodies: out of every file when it returns. Headers and chain stay."""

    def truncate(self, before: int) -> None:
        """Drop whole entries below an offset, once they are safe elsewhere."""

    def head(self) -> int:
        """The last durable offset; 0 when the log is empty."""


class Reads:
    """Reading in other ways than from an offset on, for any log: all of it by `read` alone.

    A log overrides what it can do better; nothing above needs more than the six methods.
    """

    read: Callable[[int, int], list[Row]]
    head: Callable[[], int]

    def read_many(self, offsets: Sequence[int]) -> list[Row]:
        """Durable rows at these offsets, in their order."""
        return [row for offset in offsets for row in self.read(offset, 1)]

    def headers(self, start: int, end: int | None = None) -> Iterator[tuple[Header, bytes, bytes]]:
        """(header, its raw bytes, its chain) from `start` on, below `end`; no body is looked at."""
        last = self.head() if end is None else min(self.head(), end - 1)
        while start <= last:
            rows = self.read(start, min(limits.PROJECT_ENTRIES_MAX, last - start + 1))
            if not rows:
                return
            for row in rows:
                yield row.header, _encode_header(row.header), row.chain
            start = rows[-1].header.offset + 1


_encode_header = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header).decode


def erasure_due(offset: int) -> bytes:
    """The row that says that a directive's payloads are still to be erased; it rides with it."""
    return b"erase." + offset_key(offset)


def chain_link(previous: bytes, header: bytes) -> bytes:
    """The next link of the hash chain, over the header's exact bytes."""
    inner, link = _header(), _link()
    inner.update(header)
    link.update(previous + inner.digest())
    return link.digest()


def split_row(value: bytes) -> tuple[bytes, bytes]:
    """A stored row is the header's bytes and then the chain."""
    return value[:-_CHAIN_BYTES], value[-_CHAIN_BYTES:]


def read_header(place: bytes, value: bytes) -> tuple[Header, bytes, bytes]:
    """(header, its raw bytes, its chain) of a stored row; what cannot be is named by its place."""
    raw, chain = split_row(value)
    offset = int.from_bytes(place, "big")
    try:
        header = _decode_header(raw)
    except msgspec.MsgspecError as error:
        raise CorruptStore(f"the header of entry {offset} cannot be read: {error}") from error
    if header.offset != offset:
        raise CorruptStore(f"entry {offset} says it is entry {header.offset}")
    return header, raw, chain


class _Fresh:
    """A row as it was just written: most are read once, and later."""

    __slots__ = ("body", "chain", "raw")

    def __init__(self, raw: bytes, chain: bytes, body: bytes) -> None:
        self.raw = raw
        self.chain = chain
        self.body = body

    def row(self) -> Row:
        """The row as it is read."""
        return Row(_decode_header(self.raw), self.chain, self.body)


class KvLog(Reads):
    """The log over a key-value store and a vault. One instance owns the data directory."""

    def __init__(
        self,
        kv: KV,
        vault: Vault,
        *,
        order: "threading.Lock | None" = None,
        syncer: Syncer | None = None,
        buffered: bool = False,
    ) -> None:
        self._kv = kv
        self._vault = vault
        self._order = order or threading.Lock()
        self.buffered = buffered
        self.directory = Directory(kv)
        self.syncer = syncer or Syncer(kv.sync)
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="log-sync")
        self._key_layer = ThreadPoolExecutor(1, thread_name_prefix="vault-fill")
        self._waiters: list[asyncio.Future[None]] = []
        self.on_erased: list[Callable[[], None]] = []
        """Called when bodies are gone and before that is durable: who keeps words lets them go."""
        self._cache: dict[int, _Fresh] = {}
        self._cache_bytes = 0
        self._cache_first = 1
        self.failure: str | None = None
        self.commit_count = 0
        self.base_offset, self.base_chain = 0, GENESIS
        self.written, self.chain, self.last_recorded_us = self._load_head()
        self._durable = self.written
        self._anchor_point = (self.written, self.chain)

    # ── opening ──────────────────────────────────────────────────────────────────────────────

    def _load_base(self) -> tuple[int, bytes, int]:
        row = self._kv.get("meta", b"log.base")
        if row is None:
            return 0, GENESIS, 0
        chain, recorded = row[8 : 8 + _CHAIN_BYTES], row[8 + _CHAIN_BYTES :]
        return int.from_bytes(row[:8], "big"), chain, int.from_bytes(recorded, "big")

    def _load_head(self) -> tuple[int, bytes, int]:
        base = self._load_base()
        self.base_offset, self.base_chain, _ = base
        for key, value in self._kv.scan("log", reverse=True, limit=1):
            header, _, chain = read_header(key, value)
            return header.offset, chain, header.recorded_us
        return base

    def prepare(self) -> None:
        """Make ready for appends: keys for the next entries are laid, and none is missing."""
        if self._vault.end < self.written:
            raise CorruptStore(
                f"the vault ends at key {self._vault.end}, before the log's head {self.written}: "
                "they are not of the same data directory, or of the same backup"
            )
        self._vault.lay_ahead(self.written)

    # ── append ───────────────────────────────────────────────────────────────────────────────

    async def append(
        self, drafts: Sequence[Draft], *, expect: int, rows: RowsHook | None = None
    ) -> int:
        """Append all or nothing, contiguous, durable on return; the first offset."""
        first = await self.write(drafts, expect=expect, rows=rows)
        await self.flush()
        return first

    async def write(
        self, drafts: Sequence[Draft], *, expect: int, rows: RowsHook | None = None
    ) -> int:
        """The first half of an append: in the store, and not durable before `flush` says so."""
        if self._vault.end < self.written + len(drafts):
            # A key is used once it is durable, not before: wait for more (docs/adr/0011).
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._key_layer, self._lay_keys, len(drafts))
        first = self._write(drafts, expect, rows)
        self.commit_count += 1
        if self._vault.wants_keys(self.written):
            asyncio.get_running_loop().run_in_executor(self._key_layer, self._lay_keys)
        return first

    def flush(self) -> Awaitable[None]:
        """The second half: begins now, and is awaited until what is written by now is durable."""
        return self._begin_sync() if not self.buffered else self._kept_back()

    async def _kept_back(self) -> None:
        self._advance(self.written)

    def _write(self, drafts: Sequence[Draft], expect: int, rows: RowsHook | None) -> int:
        if self.failure is not None:
            raise WalUnavailable(reason=self.failure)
        if expect != self.written:
            raise Fenced(self.written)
        first = self.written + 1
        try:
            batch = self._kv.batch()
            fresh = self._seal(batch, first, drafts)
            with self._order:
                if rows is not None:
                    rows(batch, first)
                self._kv.write(batch)
        except StoreError as error:
            self.fail(f"a write failed: {error}")
            raise WalUnavailable(reason=self.failure) from error
        if fresh:
            self.written, self.chain = first + len(drafts) - 1, fresh[-1].chain
            self.last_recorded_us = drafts[-1].recorded_us
            self._remember(first, fresh)
        return first

    def _seal(self, batch: Batch, first: int, drafts: Sequence[Draft]) -> "list[_Fresh]":
        """Encrypt bodies and chain their headers into the batch."""
        take, chain = self._vault.take, self.chain
        fresh: list[_Fresh] = []
        headers: list[tuple[bytes, bytes]] = []
        payloads: list[tuple[bytes, bytes]] = []
        # Nonces are random and not the offsets: an offset whose batch was lost in a power cut is
        # used again, with the same key (docs/adr/0011). The system is asked once for all of them.
        nonces = os.urandom(_NONCE_BYTES * len(drafts))
        for index, draft in enumerate(drafts):
            offset, tenant_no, body = first + index, draft.tenant_no, draft.body
            nonce = nonces[index * _NONCE_BYTES : (index + 1) * _NONCE_BYTES]
            key = self._vault.tenant(tenant_no).derive(take(offset))
            bound = tenant_no.to_bytes(4, "big") + draft.id
            cipher: bytes = nonce + AESGCM(key).encrypt(nonce, _pack(body), bound)
            # The fields of a Header in their order: nobody needs the struct before it is read.
            raw = _encode_header(
                (
                    HEADER_VERSION,
                    offset,
                    draft.id,
                    tenant_no,
                    draft.scope_no,
                    draft.actor_no,
                    draft.kind,
                    draft.schema_version,
                    draft.recorded_us,
                    len(body),
                    len(cipher),
                    sha256(cipher).digest(),
                    commitment(key),
                    draft.idem,
                    draft.body_mac,
                )
            )
            chain = chain_link(chain, raw)
            place = offset.to_bytes(8, "big")
            headers.append((place, raw + chain))
            payloads.append((place, cipher))
            fresh.append(_Fresh(raw, chain, body))
        batch.put_many("log", headers)
        batch.put_many("payload", payloads)
        index_entries(batch, first, drafts)
        return fresh

    def _begin_sync(self) -> Awaitable[None]:
        # A handover to a thread and back costs more than a quick disk takes.
        under_way: asyncio.Future[None] | None = None
        if not self.syncer.is_quick():
            loop = asyncio.get_running_loop()
            under_way = loop.run_in_executor(self._flusher, self.syncer.sync)
        return self._synced(self.written, self.chain, under_way)

    async def _synced(
        self, target: int, chain: bytes, under_way: "asyncio.Future[None] | None"
    ) -> None:
        try:
            if under_way is None:
                self.syncer.sync()
            else:
                await under_way
        except StoreError as error:
            self.fail(f"an fsync failed: {error}")
            raise WalUnavailable(reason=self.failure) from error
        if target >= self._anchor_point[0]:
            self._anchor_point = (target, chain)
        self._advance(target)

    async def sync_buffered(self) -> None:
        """Bring what buffered appends left in the page cache to the disk."""
        if self.buffered and self.failure is None:
            await self._begin_sync()

    def _lay_keys(self, entries: int = 0) -> None:
        try:
            self._vault.lay_ahead(self.written + entries)
        except StoreError as error:
            self.fail(f"the vault does not take keys: {error}")

    def fail(self, reason: str) -> None:
        """Stop writes for good: after one failed write nothing more is acknowledged."""
        self.failure = self.failure or reason

    def _advance(self, offset: int) -> None:
        self._durable = max(self._durable, offset)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _remember(self, first: int, rows: "list[_Fresh]") -> None:
        """Keep the newest bodies in the clear for a while: the daemon reads each once, soon."""
        cache = self._cache
        if not cache:
            self._cache_first = first
        for offset, row in enumerate(rows, first):
            cache[offset] = row
            self._cache_bytes += len(row.body)
        while cache and (len(cache) > _CACHE_ROWS or self._cache_bytes > _CACHE_BYTES):
            # Offsets are dense: counting up finds the oldest, where a dict would walk its gaps.
            self._forget(self._cache_first)
            self._cache_first += 1

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def head(self) -> int:
        """The last durable offset; 0 when the log is empty."""
        return self._durable

    def anchor_point(self) -> tuple[int, bytes]:
        """The durable head and its chain."""
        return self._anchor_point

    def read(self, start: int, limit: int) -> list[Row]:
        """Durable rows from `start` on, at most `limit`."""
        start = max(start, self.base_offset + 1)
        last = min(self._durable, start + limit - 1)
        rows: list[Row] = []
        for offset in range(start, last + 1):
            cached = self._cache.get(offset)
            if cached is None:
                rows.extend(self._load(list(range(offset, last + 1))))
                break
            rows.append(cached.row())
        return rows

    def read_many(self, offsets: Sequence[int]) -> list[Row]:
        """Durable rows at these offsets, in their order."""
        known = [(offset, self._cache.get(offset)) for offset in offsets]
        loaded = iter(self._load([offset for offset, row in known if row is None]))
        return [next(loaded) if row is None else row.row() for _, row in known]

    def _load(self, offsets: list[int]) -> list[Row]:
        places = [offset_key(offset) for offset in offsets]
        headers = self._kv.get_many("log", places)
        ciphers = self._kv.get_many("payload", places)
        secrets = self._vault.slots(offsets)
        return [
            self._open(offset, *found)
            for offset, *found in zip(offsets, headers, ciphers, secrets, strict=True)
        ]

    def _open(
        self, offset: int, value: bytes | None, cipher: bytes | None, secret: bytes | None
    ) -> Row:
        if value is None:
            raise CorruptStore(f"entry {offset} is missing from the log")
        header, _, chain = read_header(offset_key(offset), value)
        if cipher is None or secret is None:
            if self._kv.get("erased", offset_key(offset)) is None:
                lost = "payload" if cipher is None else "key"
                raise CorruptStore(f"the {lost} of entry {offset} is missing and was not erased")
            return Row(header, chain, None)
        return Row(header, chain, self._decrypt(header, cipher, secret))

    def _decrypt(self, header: Header, cipher: bytes, secret: bytes) -> bytes:
        if sha256(cipher).digest() != header.cipher_sha256:
            raise CorruptStore(f"the payload of entry {header.offset} is not the one written")
        key = self._vault.key(header.tenant_no, secret, header.key_commitment)
        if not hmac.compare_digest(commitment(key), header.key_commitment):
            raise CorruptStore(f"the key of entry {header.offset} is not the one written")
        nonce, sealed = cipher[:_NONCE_BYTES], cipher[_NONCE_BYTES:]
        bound = header.tenant_no.to_bytes(4, "big") + header.id
        try:
            return _unpack(AESGCM(key).decrypt(nonce, sealed, bound))
        except InvalidTag as error:
            raise CorruptStore(f"the payload of entry {header.offset} does not open") from error

    def headers(self, start: int, end: int | None = None) -> Iterator[tuple[Header, bytes, bytes]]:
        """(header, its raw bytes, its chain) from `start` on, below `end`; no body is opened."""
        stop = None if end is None else offset_key(end)
        for key, value in self._kv.scan("log", offset_key(start), stop):
            yield read_header(key, value)

    def tail(self, start: int) -> AsyncIterator[Row]:
        """Rows from `start` on, and then each new one as it becomes durable."""
        return _Tail(self, start)

    async def grown(self) -> None:
        """Wait until more is durable than now."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    # ── taking out ───────────────────────────────────────────────────────────────────────────

    def erase(self, offsets: Sequence[int]) -> None:
        """Destroy the bodies: out of every file when it returns. Headers and chain stay.

        The keys under which they were written can be used again.
        """
        doomed = sorted(offset for offset in offsets if self.base_offset < offset <= self.written)
        if not doomed:
            return
        batch = self._kv.batch()
        for offset in doomed:
            self._forget(offset)
            batch.put("erased", offset_key(offset), b"")
            batch.delete("payload", offset_key(offset))
            self.directory.free(batch, next(self.headers(offset, offset + 1))[0])
        # The mark is durable before the key dies: a crash between them must not look like damage.
        self._kv.write(batch)
        self._let_go()
        self.syncer.sync()
        self._vault.destroy(doomed)
        self._kv.compact("payload", offset_key(doomed[0]), offset_key(doomed[-1] + 1))

    def truncate(self, before: int) -> None:
        """Drop whole entries below an offset, once they are safe elsewhere."""
        before = min(before, self._durable + 1)
        if before <= self.base_offset + 1:
            return
        gone = [header for header, _, _ in self.headers(self.base_offset + 1, before)]
        chain = next(self.headers(before - 1))[2]
        batch = self._kv.batch()
        for header in gone:
            self._forget(header.offset)
            self.directory.leave(batch, header)
        for family in ("log", "payload", "erased"):
            batch.delete_range(family, b"", offset_key(before))
        # The last time recorded stays too: it may not go back when no entry is left to tell it.
        recorded = gone[-1].recorded_us.to_bytes(8, "big")
        batch.put("meta", b"log.base", offset_key(before - 1) + chain + recorded)
        self._kv.write(batch)
        self._let_go()
        self.syncer.sync()
        self.base_offset, self.base_chain = before - 1, chain
        self._vault.destroy([header.offset for header in gone])
        self._kv.compact("payload", None, offset_key(before))

    def _let_go(self) -> None:
        for let_go in self.on_erased:
            let_go()

    def _forget(self, offset: int) -> None:
        gone = self._cache.pop(offset, None)
        self._cache_bytes -= len(gone.body) if gone is not None else 0

    def close(self) -> None:
        """Stop the threads; what was acknowledged is on the disk already."""
        self._flusher.shutdown()
        self._key_layer.shutdown()


class _Tail:
    """Rows of a log, one after the other, for as long as somebody asks."""

    def __init__(self, log: KvLog, start: int) -> None:
        self._log = log
        self._start = start
        self._rows: deque[Row] = deque()

    def __aiter__(self) -> "_Tail":
        return self

    async def __anext__(self) -> Row:
        while not self._rows:
            self._rows.extend(self._log.read(self._start, limits.PROJECT_ENTRIES_MAX))
            if not self._rows:
                await self._log.grown()
        row = self._rows.popleft()
        self._start = row.header.offset + 1
        return row


def _pack(body: bytes) -> bytes:
    """Compress where that pays; the first byte says which."""
    if len(body) >= limits.COMPRESS_BYTES_MIN:
        small = zlib.compress(body, 1)
        if len(small) < len(body):
            return _DEFLATED + small
    return _PLAIN + body


def _unpack(packed: bytes) -> bytes:
    return zlib.decompress(packed[1:]) if packed[:1] == _DEFLATED else packed[1:]
