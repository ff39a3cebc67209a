"""What will prove, later, that this call was made, what was decided, and that nobody touched it?

One row a policy-gated call (001 §14), each a leaf of its tenant's Merkle tree, in the order of
their ids (docs/adr/0017). Rows of writes and denials are in the batch of what they record; rows of
allowed reads wait here, for less than a second, for a batch to ride on.
"""

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Final

import msgspec

from engine import merkle
from engine.clock import Clock, Stamps
from engine.merkle import Node, Tree
from engine.rows import About, AuditNote, Kept, Mark
from engine.state.kv import KV, Batch, CorruptStore
from engine.state.names import TENANT, Names
from engine.state.vault import TenantKeys, Vault
from schemas import limits
from schemas.audit import AuditRequest, AuditRow, ChainReport
from schemas.caller import Caller, Decision, Origin
from schemas.ids import format_id, uuid7, uuid7_first, uuid7_instant_us
from schemas.times import EPOCH, from_us, to_us

FAMILIES = ("audit", "audit_nodes")
_HASH_BYTES: Final = 32
_ID_BYTES: Final = 16
_STUB_BYTES: Final = _HASH_BYTES + _ID_BYTES
_MAC_BYTES: Final = 16
_DAY_US: Final = 86_400_000_000
_CHUNK_ROWS: Final = 1024
_HEAD_PREFIX: Final = b"audit.head."
_NOWHERE = Origin(request_id="", method="", path="")
_pack = msgspec.msgpack.Encoder().encode
_fresh: Final = sha256().copy
"""A hash to begin with: to copy one costs less than to ask the library for it."""

_unpack = msgspec.msgpack.Decoder(AuditNote).decode


def peppered(pepper: bytes, digest: bytes) -> bytes:
    """A hash of a hash that only who holds the tenant's pepper can compare."""
    made = _fresh()
    made.update(pepper + digest)
    return made.digest()


def headers_digest(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The hash of headers as they came, without the credential; nobody's pepper is in it yet."""
    joined = b"\n".join(map(b":".join, headers))
    if b"authorization:" in joined:
        joined = b"\n".join([b"%b:%b" % pair for pair in headers if pair[0] != b"authorization"])
    return sha256(joined).digest()


def quarter_of(instant_us: int) -> int:
    """Quarters since 1970: the version of the pepper of this moment."""
    moment = from_us(instant_us)
    return (moment.year - 1970) * 4 + (moment.month - 1) // 3


def quarter_end_us(version: int) -> int:
    """When that quarter ended."""
    year, quarter = divmod(version + 1, 4)
    return to_us(EPOCH.replace(year=1970 + year, month=1 + 3 * quarter))


def days_of(duration: str) -> int:
    """An ISO 8601 duration of years, months, weeks and days; a year has 365, a month 30."""
    found = re.fullmatch(r"P(?=\d)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?", duration)
    assert found is not None, f"{duration!r} is not a duration of whole days"
    years, months, weeks, days = (int(part or 0) for part in found.groups())
    return 365 * years + 30 * months + 7 * weeks + days


def hash_text(digest: bytes) -> str:
    """A hash as the world sees it."""
    return "sha256:" + digest.hex()


def row_of(kept: Kept) -> AuditRow:
    """A kept row as the world sees it."""
    note = kept.note
    assert note is not None, "what was pruned is not shown"
    return AuditRow(
        id=format_id("audit", kept.raw),
        ts=from_us(uuid7_instant_us(kept.raw)),
        actor=note.actor,
        tenant_id=note.tenant,
        scope=note.scope,
        endpoint=f"{note.method} {note.path}",
        capability=note.capability,
        decision="allow" if note.allowed else "deny",
        decided_by_tier=note.tier,
        request=AuditRequest(
            method=note.method,
            path=note.path,
            body_hash=hash_text(note.body_hash),
            headers_hash=hash_text(note.headers_hash),
            body_bytes=note.body_bytes,
        ),
        response_status=note.status,
        event_id=None if note.event is None else format_id("evt", note.event),
        client_ip=note.client_ip,
        user_agent=note.user_agent,
        request_id=note.request_id,
        elapsed_ms=note.elapsed_us / 1000,
        token_jti=note.token_id,
        gdpr=note.gdpr,
        note=note.note,
        tenant_pepper_version=note.pepper_version,
        sequence=kept.sequence,
        damaged=not kept.is_intact,
    )


# ── places ───────────────────────────────────────────────────────────────────────────────────


def _tenant(tenant_no: int) -> bytes:
    return tenant_no.to_bytes(4, "big")


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _node_key(tenant_no: int, node: Node) -> bytes:
    return b"%b%c%b" % (_tenant(tenant_no), node[0], _number(node[1]))


def _head_key(tenant_no: int) -> bytes:
    return _HEAD_PREFIX + _tenant(tenant_no)


def _mark_key(tenant_no: int) -> bytes:
    return b"audit.pruned." + _tenant(tenant_no)


def _read_row(key: bytes, value: bytes) -> Kept:
    """A stored row: leaf hash, id, and what was noted unless it was pruned."""
    leaf, content = value[:_HASH_BYTES], value[_HASH_BYTES:]
    raw, noted = content[:_ID_BYTES], content[_ID_BYTES:]
    note: AuditNote | None = None
    try:
        note = _unpack(noted) if noted else None
    except msgspec.MsgspecError:
        note = None
    is_intact = not noted or merkle.leaf_hash(content) == leaf
    sequence = int.from_bytes(key[4:], "big")
    return Kept(sequence, leaf, raw, note, is_intact, len(value) == _STUB_BYTES)


def _pack_head(keys: TenantKeys, tree: Tree) -> bytes:
    """Size and peaks, under the tenant's key: whoever has the files alone cannot make another."""
    said = _number(tree.size) + b"".join(tree.peaks)
    return keys.mac(b"audit head", said) + said


def read_head(kv: KV, keys: TenantKeys, tenant_no: int) -> Tree:
    """The tenant's tree as it was last written; CorruptStore when it was not by us."""
    row = kv.get("meta", _head_key(tenant_no))
    if row is None:
        start = _tenant(tenant_no)
        if any(True for _ in kv.scan("audit", start, _tenant(tenant_no + 1), limit=1)):
            raise CorruptStore("there are audit rows and no head of their tree")
        return Tree()
    mac, said = row[:_MAC_BYTES], row[_MAC_BYTES:]
    if keys.mac(b"audit head", said) != mac:
        raise CorruptStore("the head of the audit tree is not the one written")
    peaks = [said[at : at + _HASH_BYTES] for at in range(8, len(said), _HASH_BYTES)]
    return Tree(int.from_bytes(said[:8], "big"), tuple(peaks))


def read_mark(kv: KV, keys: TenantKeys, tenant_no: int) -> Mark:
    """How far pruning has come; CorruptStore when someone else moved the mark."""
    row = kv.get("meta", _mark_key(tenant_no))
    if row is None:
        return Mark()
    mac, said = row[:_MAC_BYTES], row[_MAC_BYTES:]
    if keys.mac(b"audit pruned", said) != mac:
        raise CorruptStore("the mark of what was pruned is not the one written")
    return Mark(int.from_bytes(said[:8], "big"), int.from_bytes(said[8:], "big"))


# ── the trail ────────────────────────────────────────────────────────────────────────────────


class Pending:
    """A row that is not written yet: its id, and its content, of which that is the beginning."""

    __slots__ = ("content", "raw", "tenant_no")

    def __init__(self, tenant_no: int, raw: bytes, content: bytes) -> None:
        self.tenant_no = tenant_no
        self.raw = raw
        self.content = content


class Trail:
    """The audit rows of every tenant. The committer writes them; anyone may read."""

    def __init__(
        self, kv: KV, vault: Vault, names: Names, clock: Clock, *, retention_days: int
    ) -> None:
        self._kv = kv
        self._vault = vault
        self._names = names
        self._clock = clock
        self.retention_us = retention_days * _DAY_US
        self.stores_body_bytes: Callable[[str], bool] = lambda _: True
        self._stamps = Stamps(clock.wall)
        self._quarter = self._quarter_end_us = 0
        self._written: dict[int, Tree] = {}
        self._durable: dict[int, Tree] = {}
        self._touched: set[int] = set()
        self._headers: dict[tuple[bytes, bytes], bytes] = {}
        self._met: dict[str, tuple[int, TenantKeys]] = {}
        self._queue: list[Pending] = []
        self._queued_at = 0.0
        self.lost = 0
        self.walking = threading.Lock()
        """Held by who reads or prunes a whole tree, so that one does not see half of the other."""

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def make(self, caller: Caller, decision: Decision, about: About) -> Pending:
        """The row of one call. Rows are written in the order they are made: ids sort as leaves."""
        tenant_no, keys = self._met.get(caller.tenant) or self._meet(caller.tenant)
        origin = caller.origin or _NOWHERE
        headers = origin.headers_digest or headers_digest(origin.headers)
        now_us, stamp_us = self._clock.now_us(), self._stamps.next_us()
        if stamp_us >= self._quarter_end_us:
            self._quarter = quarter_of(stamp_us)
            self._quarter_end_us = quarter_end_us(self._quarter)
        pepper = keys.pepper_of(self._quarter)
        raw = uuid7(stamp_us, self._clock.entropy())
        # The fields of an AuditNote in their order: nobody needs the struct before it is read.
        note = (
            caller.actor,
            caller.tenant,
            about.scope,
            origin.method,
            origin.path,
            decision.capability,
            decision.allowed,
            decision.tier,
            peppered(pepper, sha256(origin.body).digest()),
            self._peppered_headers(pepper, headers),
            len(origin.body) if self.stores_body_bytes(caller.tenant) else None,
            about.status,
            about.event,
            origin.client_ip,
            origin.user_agent,
            origin.request_id,
            max(0, now_us - origin.started_us) if origin.started_us else 0,
            caller.token_id,
            about.note,
            self._quarter,
            about.gdpr,
        )
        return Pending(tenant_no, raw, raw + _pack(note))

    def _peppered_headers(self, pepper: bytes, digest: bytes) -> bytes:
        """The same programs send the same headers again and again."""
        found = self._headers.get((pepper, digest))
        if found is None:
            if len(self._headers) >= limits.HEADER_HASHES_KEPT_MAX:
                self._headers.clear()
            found = self._headers[pepper, digest] = peppered(pepper, digest)
        return found

    def _meet(self, tenant: str) -> tuple[int, TenantKeys]:
        """A tenant's number, and the keys that have its pepper, which never changes."""
        tenant_no = self._names.number(TENANT, 0, tenant)
        keys = self._vault.tenant(tenant_no)
        if tenant_no not in self._written:
            self._open(tenant_no, keys)
        self._met[tenant] = found = (tenant_no, keys)
        return found

    def _open(self, tenant_no: int, keys: TenantKeys) -> None:
        """Go on where the tenant's tree ends; never from a head that is not ours."""
        tree = read_head(self._kv, keys, tenant_no)
        if tree.size:
            last = self.read(tenant_no, tree.size - 1)
            last_us = 0 if last is None else uuid7_instant_us(last.raw)
            self._stamps.last_us = max(self._stamps.last_us, last_us)
        self._written[tenant_no] = self._durable[tenant_no] = tree

    def write(self, batch: Batch, rows: list[Pending]) -> None:
        """The rows go into the batch of what they record, with their tree: all, or nothing."""
        by_tenant: dict[int, list[Pending]] = {}
        for row in rows:
            by_tenant.setdefault(row.tenant_no, []).append(row)
        for tenant_no, mine in by_tenant.items():
            place, tree = _tenant(tenant_no), self._written[tenant_no]
            leaves = [merkle.leaf_hash(row.content) for row in mine]
            kept = [
                (place + at.to_bytes(8, "big"), leaf + row.content)
                for at, (leaf, row) in enumerate(zip(leaves, mine, strict=True), tree.size)
            ]
            batch.put_many("audit", kept)
            tree, made = merkle.grow(tree, leaves)
            nodes = [
                (b"%b%c%b" % (place, level, index.to_bytes(8, "big")), digest)
                for (level, index), digest in made
            ]
            batch.put_many("audit_nodes", nodes)
            batch.put("meta", _head_key(tenant_no), _pack_head(self._vault.tenant(tenant_no), tree))
            self._written[tenant_no] = tree
            self._touched.add(tenant_no)

    def written(self) -> dict[int, Tree]:
        """The trees of those who had rows in the batch just written, for `settle`."""
        touched, self._touched = self._touched, set()
        return {tenant_no: self._written[tenant_no] for tenant_no in touched}

    def settle(self, trees: dict[int, Tree]) -> None:
        """What was written is durable: only now may a head be told."""
        self._durable.update(trees)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────

    def queue(self, row: Pending) -> None:
        """Keep the row of an allowed read until a batch takes it along."""
        if len(self._queue) >= limits.AUDIT_QUEUE_ROWS_MAX:
            self.lost += 1
            return
        if not self._queue:
            self._queued_at = self._clock.elapsed_s()
        self._queue.append(row)

    @property
    def queued(self) -> int:
        """Rows that wait."""
        return len(self._queue)

    def is_due(self, now_s: float) -> bool:
        """Whether rows have waited long enough."""
        return bool(self._queue) and now_s - self._queued_at >= limits.AUDIT_FLUSH_S

    def take(self) -> list[Pending]:
        """All rows that wait, oldest first: rows made later must come after every one of them."""
        rows, self._queue = self._queue, []
        return rows

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def tree(self, tenant_no: int) -> Tree:
        """The tenant's tree, as far as it is durable."""
        found = self._durable.get(tenant_no)
        if found is None:
            found = read_head(self._kv, self._vault.tenant(tenant_no), tenant_no)
        return found

    def tenants(self) -> list[int]:
        """Everyone who has a tree."""
        start, end = _HEAD_PREFIX, _HEAD_PREFIX + b"\xff" * 5
        keys = (key for key, _ in self._kv.scan("meta", start, end))
        return [int.from_bytes(key[len(_HEAD_PREFIX) :], "big") for key in keys]

    def pruned(self, tenant_no: int) -> int:
        """How many rows have lost their content to retention."""
        return read_mark(self._kv, self._vault.tenant(tenant_no), tenant_no).pruned

    def read(self, tenant_no: int, sequence: int) -> Kept | None:
        """The row at a leaf."""
        key = _tenant(tenant_no) + _number(sequence)
        value = self._kv.get("audit", key)
        return None if value is None else _read_row(key, value)

    def walk(self, tenant_no: int, after: int, before: int) -> Iterator[Kept]:
        """Rows from `after` on and below `before`, newest first."""
        place = _tenant(tenant_no)
        start, end = place + _number(after), place + _number(before)
        for key, value in self._kv.scan("audit", start, end, reverse=True):
            yield _read_row(key, value)

    def find(self, tenant_no: int, raw: bytes) -> Kept | None:
        """The durable row with this id."""
        sequence = self._first(tenant_no, raw)
        found = self.read(tenant_no, sequence) if sequence < self.tree(tenant_no).size else None
        return found if found is not None and found.raw == raw else None

    def first_at(self, tenant_no: int, instant_us: int) -> int:
        """The first leaf at or after a moment."""
        return self._first(tenant_no, uuid7_first(max(0, instant_us)))

    def _first(self, tenant_no: int, raw: bytes) -> int:
        """Ids sort as leaves do, so halving finds the first that is not smaller."""
        size = self.tree(tenant_no).size
        place = _tenant(tenant_no)
        end = place + _number(size)

        def id_from(sequence: int) -> bytes:
            # Where a row is missing, the next one stands for it: the order is the same.
            for _, value in self._kv.scan("audit", place + _number(sequence), end, limit=1):
                return value[_HASH_BYTES:_STUB_BYTES]
            return b"\xff" * _ID_BYTES

        return bisect_left(range(size), raw, key=id_from)

    def path(self, tenant_no: int, sequence: int, size: int) -> list[bytes]:
        """The inclusion path of a leaf in the tree of this size."""

        def digest(node: Node) -> bytes:
            level, index = node
            if level == 0:
                row = self._kv.get("audit", _tenant(tenant_no) + _number(index))
            else:
                row = self._kv.get("audit_nodes", _node_key(tenant_no, node))
            if row is None:
                raise CorruptStore(f"node {index} of level {level} of an audit tree is missing")
            return row[:_HASH_BYTES]

        return merkle.inclusion_path(sequence, size, digest)

    def keeps_pepper(self, version: int, now_us: int) -> bool:
        """Whether rows of this quarter may still be compared: retention and a quarter more."""
        kept_us = self.retention_us + limits.PEPPER_KEPT_DAYS * _DAY_US
        return quarter_end_us(version) + kept_us > now_us

    def matches(self, tenant_no: int, note: AuditNote, body: bytes) -> bool:
        """Whether this was the body of the call."""
        pepper = self._vault.tenant(tenant_no).pepper_of(note.pepper_version)
        return peppered(pepper, sha256(body).digest()) == note.body_hash

    # ── keeping ──────────────────────────────────────────────────────────────────────────────

    def prune(self) -> int:
        """Take the content out of rows past their retention; how many. Their leaves stay."""
        if not self.walking.acquire(blocking=False):
            return 0  # someone reads a whole tree: the next hour will do
        try:
            cutoff_us = self._clock.now_us() - self.retention_us
            return sum(
                self._prune(tenant_no, cutoff_us) for tenant_no, _ in self._names.all(TENANT, 0)
            )
        finally:
            self.walking.release()

    def _prune(self, tenant_no: int, cutoff_us: int) -> int:
        keys, place = self._vault.tenant(tenant_no), _tenant(tenant_no)
        try:
            end = place + _number(self.tree(tenant_no).size)
            first = mark = read_mark(self._kv, keys, tenant_no)
        except CorruptStore:
            return 0  # what was tampered with is left as it is, for who verifies it
        while True:
            start = place + _number(mark.before)
            rows = [
                _read_row(key, value)
                for key, value in self._kv.scan("audit", start, end, limit=_CHUNK_ROWS)
            ]
            due = list(takewhile(lambda row: uuid7_instant_us(row.raw) < cutoff_us, rows))
            if not due:
                break
            batch = self._kv.batch()
            # GDPR rows outlive every retention (001 §11.2); an edited row is evidence.
            gone = [row for row in due if row.note and not row.note.gdpr and row.is_intact]
            for row in gone:
                batch.put("audit", place + _number(row.sequence), row.leaf + row.raw)
            mark = Mark(due[-1].sequence + 1, mark.pruned + len(gone))
            said = _number(mark.before) + _number(mark.pruned)
            batch.put("meta", _mark_key(tenant_no), keys.mac(b"audit pruned", said) + said)
            self._kv.write(batch)
        if mark.pruned > first.pruned:
            start, end = place + _number(first.before), place + _number(mark.before)
            self._kv.compact("audit", start, end)
        return mark.pruned - first.pruned


# ── proving ──────────────────────────────────────────────────────────────────────────────────


class _Broken(Exception):
    """The first row that is not as it was written."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


Progress = Callable[[int, int], None]


def check_trail(kv: KV, keys: TenantKeys, tenant_no: int, progress: Progress) -> ChainReport:
    """Read every row of a tenant again, and hold the tree they give against the one kept."""
    head, stubs = Tree(), 0
    index: int | None = None
    reason: str | None = None
    try:
        head = read_head(kv, keys, tenant_no)
        mark = read_mark(kv, keys, tenant_no)
        stubs = _check_rows(kv, tenant_no, head, mark, progress)
        _check_end(kv, keys, tenant_no, head)
    except CorruptStore as error:
        index, reason = 0, str(error)
    except _Broken as error:
        index, reason = error.index, error.reason
    return ChainReport(
        valid=reason is None,
        length=head.size,
        head_hash=hash_text(merkle.head_of(head)),
        legacy_rows=0,
        pruned_rows=stubs,
        first_broken_index=index,
        reason=reason,
    )


def _check_rows(kv: KV, tenant_no: int, head: Tree, mark: Mark, progress: Progress) -> int:
    """Every leaf and every node below the head; how many rows are pruned."""
    place, tree, stubs = _tenant(tenant_no), Tree(), 0
    for key, value in kv.scan("audit", place, place + _number(head.size)):
        at = tree.size
        if key != place + _number(at):
            raise _Broken(at, "the row is missing")
        row = _read_row(key, value)
        if len(value) < _STUB_BYTES or not row.is_intact:
            raise _Broken(at, "the row is not the one written")
        if row.is_pruned:
            stubs += 1
            if at >= mark.before:
                raise _Broken(at, "the row's content is gone, and its retention did not take it")
        tree, made = merkle.grow(tree, (row.leaf,))
        for (level, index), digest in made:
            if kv.get("audit_nodes", _node_key(tenant_no, (level, index))) != digest:
                reason = f"rows {index << level} to {at} do not give the hash kept of them"
                raise _Broken(index << level, reason)
        if tree.size % _CHUNK_ROWS == 0 or tree.size == head.size:
            progress(tree.size, head.size)
    if tree.size != head.size:
        raise _Broken(tree.size, "the row is missing")
    for (level, index), mine, kept in zip(
        merkle.peaks_of(head.size), tree.peaks, head.peaks, strict=True
    ):
        if mine != kept:
            raise _Broken(index << level, "the rows from here on do not give the head")
    if stubs != mark.pruned:
        raise _Broken(0, f"{stubs} rows have no content, and {mark.pruned} were pruned")
    return stubs


def _check_end(kv: KV, keys: TenantKeys, tenant_no: int, head: Tree) -> None:
    """Nothing lies beyond the head, unless a commit has put it there since it was read."""
    start, end = _tenant(tenant_no) + _number(head.size), _tenant(tenant_no + 1)
    for key, _ in kv.scan("audit", start, end, reverse=True, limit=1):
        # Rows and head are written as one: who sees a row sees a head that has it.
        if len(key) != 12 or int.from_bytes(key[4:], "big") >= read_head(kv, keys, tenant_no).size:
            raise _Broken(head.size, "there are rows beyond the head")
