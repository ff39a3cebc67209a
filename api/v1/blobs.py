"""Blobs: bytes that are no text (001 §8.13)."""

from collections.abc import Iterator
from itertools import chain

from api.endpoint import STABLE, Call, Endpoint, Reply
from api.multipart import file_part
from engine.blobs import BlobReading, drop_blob, get_blob, upload_blob
from engine.intake import UploadRequest
from schemas import limits
from schemas.blobs import BlobRecord
from schemas.errors import (
    BlobInUse,
    BodyTimeout,
    BodyTooLarge,
    InvalidBody,
    InvalidParameter,
    NotFound,
    UnsupportedMediaType,
    WalUnavailable,
)

_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"private, no-cache"),
)
_TYPE_MAX = 127


async def post_blob(call: Call) -> Reply:
    """Upload one blob: raw bytes with their type, or a form with the part `file`."""
    assert call.parts is not None
    given = call.headers.get(b"content-type", b"application/octet-stream")
    if given.lower().startswith(b"multipart/form-data"):
        part = await file_part(given, call.parts)
        request = UploadRequest(part.parts, _plain(part.content_type), _named(part.filename))
    else:
        request = UploadRequest(call.parts, _plain(given.decode("latin-1")))
    return Reply(await upload_blob(call.engine, call.caller, request), 201)


def read_blob(call: Call) -> Reply:
    """The bytes, with headers under which a browser runs nothing of them."""
    reading = get_blob(call.engine, call.caller, call.path["blob_id"])
    record = reading.record
    tag = f'"{record.sha256}"'.encode()
    headers = (*_SAFE, (b"etag", tag), (b"content-disposition", _disposition(reading)))
    if tag in [each.strip() for each in call.headers.get(b"if-none-match", b"").split(b",")]:
        return Reply(raw=b"", status=304, headers=headers)
    # The first piece now: bytes that cannot be read are an error while it can still be said.
    pieces: Iterator[bytes] = chain([next(reading.parts)], reading.parts)
    size = (b"content-length", str(record.size_bytes).encode())
    return Reply(
        pieces=pieces, headers=(*headers, size), media_type=record.content_type.encode("latin-1")
    )


async def delete_blob(call: Call) -> Reply:
    """Take away a blob that no event cites."""
    await drop_blob(call.engine, call.caller, call.path["blob_id"])
    return Reply(raw=b"", status=204)


def _plain(content_type: str) -> str:
    """The type as the client says it, if it can be one; it is sent back, and never trusted."""
    kind = content_type.split(";", maxsplit=1)[0].strip().lower()
    parts = kind.split("/")
    allowed = all(char.isalnum() or char in "!#$&-^_.+" for part in parts for char in part)
    if len(parts) != 2 or not all(parts) or not allowed or len(kind) > _TYPE_MAX:
        raise UnsupportedMediaType(field="Content-Type", reason="not a media type")
    return kind


def _named(filename: str | None) -> str | None:
    """The last part of a path, without what no file name should hold."""
    if filename is None:
        return None
    last = filename.replace("\\", "/").rpartition("/")[2]
    clean = "".join(char for char in last if char.isprintable())
    return clean[: limits.NAME_CHARS_MAX] or None


def _disposition(reading: BlobReading) -> bytes:
    """Shown in a page only when the bytes are of a type that cannot run."""
    shown = reading.sniffed is not None and reading.sniffed == reading.record.content_type
    return b"inline" if shown else b"attachment"


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/blobs",
        post_blob,
        "Upload a blob: raw bytes with their type, or multipart with the field file.",
        capability="blob.upload",
        tier=STABLE,
        takes_bytes=True,
        body_max=limits.BLOB_BYTES_MAX + limits.MIB,
        response=BlobRecord,
        statuses=(201,),
        errors=(
            BodyTooLarge,
            BodyTimeout,
            InvalidBody,
            InvalidParameter,
            UnsupportedMediaType,
            WalUnavailable,
        ),
    ),
    Endpoint(
        "GET",
        "/v1/blobs/{blob_id}",
        read_blob,
        "The bytes of a blob.",
        capability="blob.read",
        tier=STABLE,
        media_type="application/octet-stream",
        statuses=(200, 304),
        errors=(NotFound,),
        off_loop=True,
    ),
    Endpoint(
        "DELETE",
        "/v1/blobs/{blob_id}",
        delete_blob,
        "Take away a blob that no event cites.",
        capability="blob.upload",
        tier=STABLE,
        statuses=(204,),
        errors=(NotFound, BlobInUse, WalUnavailable),
    ),
)
