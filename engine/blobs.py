"""How do bytes that are no text come in, out, and away?  (001 §8.13)"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from engine import policy
from engine.commit import Desk
from engine.intake import UploadRequest, keep_upload, record_of
from engine.rows import About
from engine.state.names import SCOPE
from projectors.blobs import BlobRow, use_scope
from schemas.blobs import BlobRecord
from schemas.caller import Caller, Decision
from schemas.entry import Directive, DropBlob, StoreBlob
from schemas.errors import BlobInUse, NotFound
from schemas.ids import parse_id

if TYPE_CHECKING:
    from engine.engine import Engine


class BlobReading(NamedTuple):
    """A blob about to be read."""

    record: BlobRecord
    sniffed: str | None
    parts: Iterator[bytes]


async def upload_blob(engine: "Engine", caller: Caller, request: UploadRequest) -> BlobRecord:
    """Keep bytes for the tenant, encrypted; the same bytes again are the blob there is."""
    policy.require(engine, caller, "blob.upload")
    return await keep_upload(engine, caller, request)


def get_blob(engine: "Engine", caller: Caller, blob_id: str) -> BlobReading:
    """A blob's bytes: for who brought it, and for who may read a scope that cites it."""
    policy.require(engine, caller, "blob.read")
    tenant_no, raw, row = _find(engine, caller, blob_id)
    _require_sight(engine, caller, tenant_no, raw, row)
    entry = engine.entry_of(engine.log.read_many([row.offset])[0])
    command = entry.body.command if isinstance(entry.body, Directive) else None
    assert isinstance(command, StoreBlob), "a blob's row leads to the entry that stored it"
    return BlobReading(
        record_of(blob_id, row), row.sniffed, engine.blobs.read(tenant_no, raw, command.key)
    )


async def drop_blob(engine: "Engine", caller: Caller, blob_id: str) -> None:
    """Take a blob away that nothing cites: its bytes, and the key they were sealed with."""
    decision = policy.require(engine, caller, "blob.upload")
    tenant_no, raw, row = _find(engine, caller, blob_id)
    if row.by != caller.actor:
        policy.require(engine, caller, "policy.administer.tenant")
    await engine.committer.submit(Dropping(engine, caller, decision, blob_id))
    await asyncio.to_thread(destroy, engine, tenant_no, raw, row.offset)


def destroy(engine: "Engine", tenant_no: int, raw: bytes, offset: int) -> None:
    """The key first, then the file: what a crash leaves between them cannot be read."""
    engine.log.erase([offset])
    engine.blobs.remove(tenant_no, raw)


def sweep(engine: "Engine") -> int:
    """At start: take away files that no entry speaks of; how many there were."""
    lost = [
        (tenant_no, raw)
        for tenant_no, raw in engine.blobs.all()
        if engine.inline.get(tenant_no, "blobs", raw) is None
    ]
    for tenant_no, raw in lost:
        engine.blobs.remove(tenant_no, raw)
    return len(lost)


class Dropping:
    """A proposal to take a blob away."""

    entry_count = 1
    byte_count = 512

    def __init__(self, engine: "Engine", caller: Caller, decision: Decision, blob_id: str) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._blob_id = blob_id

    def decide(self, desk: Desk) -> None:
        """Refuse while an event cites it, one of this batch included."""
        tenant_no = desk.tenant_no(self._caller)
        raw = parse_id("blob", self._blob_id) or b""
        if desk.overlay.get(tenant_no, "blobs", raw) is None:
            raise _not_found(self._blob_id)
        uses = sum(1 for _ in desk.overlay.scan(tenant_no, "blob_uses", raw))
        if uses:
            raise BlobInUse(blob_id=self._blob_id, events=uses)
        desk.add(self._caller, Directive(command=DropBlob(blob_id=self._blob_id)))
        desk.audit(self._caller, self._decision, About(status=204))


# ── who may see it ───────────────────────────────────────────────────────────────────────────


def _find(engine: "Engine", caller: Caller, blob_id: str) -> tuple[int, bytes, BlobRow]:
    raw, tenant_no = parse_id("blob", blob_id), engine.tenant_no(caller)
    row = None
    if raw is not None and tenant_no is not None:
        row = engine.inline.get(tenant_no, "blobs", raw)
    if row is None or raw is None or tenant_no is None:
        raise _not_found(blob_id)
    return tenant_no, raw, row


def _not_found(blob_id: str) -> NotFound:
    return NotFound(f"There is no blob {blob_id[:80]!r}.", blob_id=blob_id[:80])


def _require_sight(
    engine: "Engine", caller: Caller, tenant_no: int, raw: bytes, row: BlobRow
) -> None:
    """A blob is in no scope itself: the events that cite it are, and the first brought it."""
    if row.by == caller.actor and caller.scopes is None:
        return
    numbers = {use_scope(key) for key, _ in engine.inline.scan(tenant_no, "blob_uses", raw)}
    scopes = [engine.names.name(SCOPE, tenant_no, number) for number in sorted(numbers)]
    if any(policy.may(engine, caller, "scope.read.local", scope) for scope in scopes):
        return
    if row.by == caller.actor and not scopes:
        return
    policy.require(engine, caller, "policy.administer.tenant")
