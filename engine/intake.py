"""How do bytes come to lie on the shelf?  Counted, hashed and sealed as they come; then the log.

For every verb that keeps bytes: an upload, a file to import, an export. Each has asked policy for
its own work before.
"""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from engine.commit import Desk
from engine.media import perceptual_hash, sniffed
from engine.rows import About
from engine.state.blob_files import new_key
from engine.state.kv import StoreWriteFailed
from engine.state.names import TENANT
from projectors.blobs import BlobRow
from schemas import limits
from schemas.blobs import BlobRecord
from schemas.caller import Caller, Decision
from schemas.entry import Directive, StoreBlob
from schemas.errors import BodyTooLarge, InvalidParameter, WalUnavailable
from schemas.ids import format_id, parse_id

if TYPE_CHECKING:
    from engine.engine import Engine

_HEAD_BYTES = 64


class UploadRequest(NamedTuple):
    """Bytes as they come, and what the client says they are."""

    parts: AsyncIterator[bytes]
    content_type: str = "application/octet-stream"
    filename: str | None = None
    may_be_empty: bool = False


async def keep_upload(engine: "Engine", caller: Caller, request: UploadRequest) -> BlobRecord:
    """Keep bytes as they come."""
    decision = engine.policies.decide(caller, "blob.upload", None)
    tenant_no = engine.names.number(TENANT, 0, caller.tenant)
    raw = parse_id("blob", engine.clock.new_id("blob"))
    assert raw is not None
    stored = await _receive(engine, request, tenant_no, raw, new_key())
    try:
        kept: BlobRecord = await engine.committer.submit(Storing(engine, caller, decision, stored))
    except BaseException:
        engine.blobs.remove(tenant_no, raw)
        raise
    if kept.blob_id != stored.blob_id:
        await asyncio.to_thread(engine.blobs.remove, tenant_no, raw)
    return kept


async def keep_bytes(engine: "Engine", caller: Caller, data: bytes, kind: str) -> BlobRecord:
    """Keep bytes that are here already."""

    async def whole() -> AsyncIterator[bytes]:
        yield data

    return await keep_upload(engine, caller, UploadRequest(whole(), kind))


async def _receive(
    engine: "Engine", request: UploadRequest, tenant_no: int, raw: bytes, key: bytes
) -> StoreBlob:
    """Count, hash and seal the bytes as they come; the file has its name when this returns."""
    digest, size, head, picture = sha256(), 0, b"", bytearray()
    upload = await asyncio.to_thread(engine.blobs.begin, tenant_no, raw, key)
    try:
        async for part in request.parts:
            size += len(part)
            if size > limits.BLOB_BYTES_MAX:
                limit = limits.BLOB_BYTES_MAX
                raise BodyTooLarge(field="body", reason=f"at most {limit} bytes", limit_bytes=limit)
            head = (head + part)[:_HEAD_BYTES] if len(head) < _HEAD_BYTES else head
            digest.update(part)
            if size <= limits.IMAGE_BYTES_MAX:
                picture += part
            await asyncio.to_thread(upload.write, part)
        if size == 0 and not request.may_be_empty:
            raise InvalidParameter(field="file", reason="no bytes came")
        await asyncio.to_thread(upload.keep)
    except StoreWriteFailed as error:
        upload.drop()
        raise WalUnavailable(reason=str(error)) from error
    except BaseException:
        upload.drop()
        raise
    kind = sniffed(head)
    whole = bytes(picture) if size <= limits.IMAGE_BYTES_MAX else b""
    return StoreBlob(
        blob_id=format_id("blob", raw),
        size_bytes=size,
        sha256=digest.hexdigest(),
        content_type=request.content_type,
        sniffed=kind,
        digest=engine.vault.tenant(tenant_no).mac(b"blob", digest.digest()),
        key=key,
        filename=request.filename,
        perceptual_hash=await asyncio.to_thread(perceptual_hash, kind, whole),
    )


class Storing:
    """A proposal to enter a blob into the log."""

    entry_count = 1
    byte_count = 1024

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, stored: StoreBlob
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._stored = stored

    def decide(self, desk: Desk) -> BlobRecord:
        """The blob that holds these bytes: the one there is, or this one."""
        tenant_no = desk.tenant_no(self._caller)
        known = desk.overlay.get(tenant_no, "blob_digests", self._stored.digest)
        raw = known.raw if known is not None else parse_id("blob", self._stored.blob_id)
        assert raw is not None
        if known is None:
            desk.add(self._caller, Directive(command=self._stored))
        desk.audit(self._caller, self._decision, About(status=201))
        row = desk.overlay.get(tenant_no, "blobs", raw)
        assert row is not None, "a digest leads to a blob"
        return record_of(format_id("blob", raw), row)


def record_of(blob_id: str, row: BlobRow) -> BlobRecord:
    """A blob as its row tells."""
    return BlobRecord(
        blob_id=blob_id,
        size_bytes=row.size_bytes,
        content_type=row.content_type,
        sha256=row.sha256,
        created_at=row.at,
        filename=row.filename,
        perceptual_hash=row.perceptual_hash,
    )
