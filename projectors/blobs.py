"""Which blobs does a tenant hold, and which scopes speak of them?"""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from projectors.base import Change, Drop, Projector, Put, View
from schemas.entry import Directive, DropBlob, Entry, Experience, StoreBlob
from schemas.envelope import BlobContent, Envelope
from schemas.ids import parse_id
from schemas.times import Instant


class BlobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stored blob; its key is in the payload at `offset`, and nowhere else."""

    offset: int
    size_bytes: int
    sha256: str
    content_type: str
    sniffed: str | None
    digest: bytes
    by: str
    at: Instant
    filename: str | None = None
    perceptual_hash: str | None = None


class DigestRow(msgspec.Struct, frozen=True, kw_only=True):
    """The blob that holds these bytes already."""

    raw: bytes


class BlobUse(msgspec.Struct, frozen=True, kw_only=True):
    """How many events of one scope cite a blob."""

    count: int


def use_key(raw: bytes, scope_no: int) -> bytes:
    """One row a blob and scope."""
    return raw + scope_no.to_bytes(4, "big")


def cited(envelope: Envelope) -> Iterator[tuple[str, str]]:
    """(field, blob id) of every blob an experience cites."""
    content = envelope.content
    if isinstance(content, BlobContent):
        yield "content.blob_id", content.blob_id
    if content.media is not UNSET:
        for at, media in enumerate(content.media):
            yield f"content.media[{at}].blob_id", media.blob_id


def project(entry: Entry, view: View) -> Iterator[Change]:
    """What one entry changes about blobs."""
    match entry.body:
        case Experience(envelope=envelope):
            yield from uses(entry, envelope, view, by=1)
        case Directive(command=StoreBlob() as stored):
            yield from _stored(entry, stored)
        case Directive(command=DropBlob(blob_id=blob_id)):
            raw = parse_id("blob", blob_id)
            row = None if raw is None else view.get("blobs", raw)
            if raw is not None and row is not None:
                yield Drop(table="blobs", key=raw)
                yield Drop(table="blob_digests", key=row.digest)
        case _:
            return


def uses(entry: Entry, envelope: Envelope, view: View, *, by: int) -> Iterator[Change]:
    """An event cites blobs, or (by -1) does so no more."""
    for raw in {parse_id("blob", blob_id) for _, blob_id in cited(envelope)}:
        if raw is None:
            continue
        key = use_key(raw, entry.scope_no)
        known = view.get("blob_uses", key)
        count = (known.count if known is not None else 0) + by
        if count > 0:
            yield Put(table="blob_uses", key=key, value=BlobUse(count=count))
        elif known is not None:
            yield Drop(table="blob_uses", key=key)


def _stored(entry: Entry, stored: StoreBlob) -> Iterator[Change]:
    raw = parse_id("blob", stored.blob_id)
    assert raw is not None, "the engine makes the ids of blobs"
    row = BlobRow(
        offset=entry.offset,
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        content_type=stored.content_type,
        sniffed=stored.sniffed,
        digest=stored.digest,
        by=entry.caller,
        at=entry.recorded_at,
        filename=stored.filename,
        perceptual_hash=stored.perceptual_hash,
    )
    yield Put(table="blobs", key=raw, value=row)
    yield Put(table="blob_digests", key=stored.digest, value=DigestRow(raw=raw))


BLOBS = Projector(
    name="blobs",
    version=1,
    tables={"blobs": BlobRow, "blob_digests": DigestRow, "blob_uses": BlobUse},
    project=project,
)
