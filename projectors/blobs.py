"""Which blobs does a tenant hold, and which scopes speak of them?"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from projectors.base import Change, Drop, Projector, Put, View
from projectors.rows import Mark
from schemas.entry import Directive, DropBlob, Entry, Experience, Forget, StoreBlob
from schemas.envelope import BlobContent, Envelope
from schemas.ids import parse_id, raw_of
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


def use_key(raw: bytes, scope_no: int, event: bytes) -> bytes:
    """One row a blob, scope and event: a set, as an erased event adds nothing on replay."""
    return raw + scope_no.to_bytes(4, "big") + event


def use_scope(key: bytes) -> int:
    """The number of the scope in which a blob is cited."""
    return int.from_bytes(key[16:20], "big")


def cites(envelope: Envelope) -> bool:
    """Whether an experience cites any blob; most do not."""
    content = envelope.content
    return content.media is not UNSET or isinstance(content, BlobContent)


def cited(envelope: Envelope) -> Iterator[tuple[str, str]]:
    """(field, blob id) of every blob an experience cites."""
    content = envelope.content
    if isinstance(content, BlobContent):
        yield "content.blob_id", content.blob_id
    if content.media is not UNSET:
        for at, media in enumerate(content.media):
            yield f"content.media[{at}].blob_id", media.blob_id


def project(entry: Entry, view: View) -> Iterable[Change]:
    """What one entry changes about blobs."""
    body = entry.body
    if isinstance(body, Experience):
        return _uses(entry, body.envelope) if cites(body.envelope) else ()
    return _commanded(entry, view)


def _commanded(entry: Entry, view: View) -> Iterator[Change]:
    match entry.body:
        case Directive(command=StoreBlob() as stored):
            yield from _stored(entry, stored)
        case Directive(command=DropBlob(blob_id=blob_id)):
            raw = parse_id("blob", blob_id)
            row = None if raw is None else view.get("blobs", raw)
            if raw is not None and row is not None:
                yield Drop(table="blobs", key=raw)
                yield Drop(table="blob_digests", key=row.digest)
        case Directive(command=Forget() as forget):
            yield from _unused(forget)
        case _:
            return


def _uses(entry: Entry, envelope: Envelope) -> Iterator[Change]:
    """An event cites blobs."""
    for raw in {parse_id("blob", blob_id) for _, blob_id in cited(envelope)}:
        if raw is not None:
            key = use_key(raw, entry.scope_no, entry.id)
            yield Put(table="blob_uses", key=key, value=Mark())


def _unused(forget: Forget) -> Iterator[Change]:
    """Events whose payload goes cite nothing any more."""
    for event in forget.events if forget.cascade != "derived_only" else ():
        for blob_id in event.blobs:
            raw, by = raw_of("blob", blob_id), raw_of("evt", event.event_id)
            yield Drop(table="blob_uses", key=use_key(raw, event.scope_no, by))


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
    version=2,
    tables={"blobs": BlobRow, "blob_digests": DigestRow, "blob_uses": Mark},
    project=project,
    concerns=lambda body: cites(body.envelope),
)
