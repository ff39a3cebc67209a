"""Writing: one experience, many, and what became of them (001 §8.1, §8.2)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.capture import capture, capture_bulk
from engine.read import get_write_status
from engine.rows import BulkCaptureRequest, CaptureRequest
from schemas import limits
from schemas.envelope import BulkRequest, Envelope, Note
from schemas.errors import (
    IdempotencyConflict,
    InvalidEnvelope,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    NotFound,
    WalUnavailable,
)
from schemas.receipts import BulkReceipt, Receipt, WriteStatus
from schemas.times import from_us

Wait = Literal["captured", "indexed", "consolidated", "settled"]
WaitMs = Annotated[int, Meta(ge=1, le=limits.WAIT_MS_MAX)]


class WriteQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far to wait before answering."""

    wait: Wait | None = None
    wait_ms: WaitMs = limits.WAIT_MS_DEFAULT


class StatusQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which write: by key or by id."""

    idempotency_key: str | None = None
    event_id: str | None = None


async def post_experience(call: Call) -> Reply:
    """Capture one experience."""
    query: WriteQuery = call.query
    envelope: Envelope | Note = call.body
    if isinstance(envelope, Note):
        clock = call.engine.clock
        envelope = envelope.stated(from_us(clock.now_us()), clock.new_id("req"))
    request = CaptureRequest(envelope=envelope, wait=query.wait, wait_ms=query.wait_ms)
    receipt = await capture(call.engine, call.caller, request)
    replay = ((b"x-cortex-replay", b"true"),) if receipt.replayed_from_idempotency else ()
    waited = query.wait is not None and not receipt.partial
    return Reply(receipt, 200 if waited else 202, replay)


async def post_bulk(call: Call) -> Reply:
    """Capture many experiences at once."""
    query: WriteQuery = call.query
    request = BulkCaptureRequest(bulk=call.body, wait=query.wait, wait_ms=query.wait_ms)
    receipt = await capture_bulk(call.engine, call.caller, request)
    replayed = receipt.replayed == receipt.accepted
    return Reply(receipt, 202, ((b"x-cortex-replay", b"true"),) if replayed else ())


def get_by_key(call: Call) -> Reply:
    """What became of the write with this key."""
    return Reply(get_write_status(call.engine, call.caller, call.path["key"], None))


def get_status(call: Call) -> Reply:
    """What became of a write, by its key or its event id."""
    query: StatusQuery = call.query
    found = get_write_status(call.engine, call.caller, query.idempotency_key, query.event_id)
    return Reply(found)


_WRITE_ERRORS = (
    InvalidEnvelope,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    IdempotencyConflict,
    WalUnavailable,
)

ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/experience",
        post_experience,
        "Capture one experience durably.",
        capability="scope.write",
        tier=STABLE,
        query=WriteQuery,
        body=Envelope,
        other_body=Note,
        body_max=limits.EXPERIENCE_BODY_BYTES_MAX,
        invalid=InvalidEnvelope,
        response=Receipt,
        statuses=(202, 200),
        errors=_WRITE_ERRORS,
    ),
    Endpoint(
        "POST",
        "/v1/experience/bulk",
        post_bulk,
        "Capture up to 1,000 experiences in one atomic batch.",
        capability="scope.write",
        tier=STABLE,
        query=WriteQuery,
        body=BulkRequest,
        body_max=limits.BULK_BODY_BYTES_MAX,
        invalid=InvalidEnvelope,
        response=BulkReceipt,
        statuses=(202,),
        errors=_WRITE_ERRORS,
    ),
    Endpoint(
        "GET",
        "/v1/experience/status",
        get_status,
        "What became of a write, by its idempotency key or its event id.",
        capability="scope.read.local",
        tier=STABLE,
        query=StatusQuery,
        response=WriteStatus,
        errors=(NotFound,),
    ),
    Endpoint(
        "GET",
        "/v1/experience/by-idempotency-key/{key:path}",
        get_by_key,
        "What became of the write with this idempotency key.",
        capability="scope.read.local",
        tier=STABLE,
        response=WriteStatus,
        errors=(NotFound,),
    ),
)
