"""What will prove, later, that this call was made and what was decided?  (001 §14)"""

from hashlib import sha256

import msgspec

from engine.clock import Clock
from engine.state.kv import Batch
from engine.state.vault import TenantKeys
from schemas.audit import AuditRequest, AuditRow
from schemas.caller import Caller, Decision, Origin
from schemas.ids import format_id, uuid7, uuid7_instant_us
from schemas.times import from_us

FAMILIES = ("audit",)
_pack = msgspec.msgpack.Encoder().encode
_NOWHERE = Origin(request_id="", method="", path="")


class AuditNote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row as it is kept: its id and time are in its key, hashes and ids are bytes."""

    actor: str
    tenant: str
    scope: str | None
    method: str
    path: str
    capability: str
    allowed: bool
    tier: str
    body_hash: bytes
    headers_hash: bytes
    body_bytes: int
    status: int
    event: bytes | None
    client_ip: str | None
    user_agent: str | None
    request_id: str
    elapsed_us: int
    token_id: str | None
    note: str | None


_unpack = msgspec.msgpack.Decoder(AuditNote).decode


def peppered(keys: TenantKeys, content: bytes) -> bytes:
    """A hash that only who holds the tenant's pepper can compare."""
    return sha256(keys.pepper + sha256(content).digest()).digest()


def _headers(origin: Origin) -> bytes:
    """The headers as they came, without the credential."""
    return b"\n".join([b"%b:%b" % pair for pair in origin.headers if pair[0] != b"authorization"])


class About(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call was about, and how it is answered."""

    status: int
    scope: str | None = None
    event: bytes | None = None
    note: str | None = None


def make_note(
    clock: Clock, keys: TenantKeys, caller: Caller, decision: Decision, about: About
) -> tuple[bytes, AuditNote]:
    """The audit row of one call, and the sixteen bytes of its id."""
    origin = caller.origin or _NOWHERE
    now_us = clock.now_us()
    kept = AuditNote(
        caller.actor,
        caller.tenant,
        about.scope,
        origin.method,
        origin.path,
        decision.capability,
        decision.allowed,
        decision.tier,
        peppered(keys, origin.body),
        peppered(keys, _headers(origin)),
        len(origin.body),
        about.status,
        about.event,
        origin.client_ip,
        origin.user_agent,
        origin.request_id,
        max(0, now_us - origin.started_us) if origin.started_us else 0,
        caller.token_id,
        about.note,
    )
    return uuid7(now_us, clock.entropy()), kept


def put_note(batch: Batch, tenant_no: int, raw: bytes, note: AuditNote) -> None:
    """The row goes into the batch of what it records: both are there, or neither."""
    batch.put("audit", tenant_no.to_bytes(4, "big") + raw, _pack(note))


def row_of(raw: bytes, value: bytes) -> AuditRow:
    """A kept row as the world sees it."""
    note = _unpack(value)
    return AuditRow(
        id=format_id("audit", raw),
        ts=from_us(uuid7_instant_us(raw)),
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
            body_hash="sha256:" + note.body_hash.hex(),
            headers_hash="sha256:" + note.headers_hash.hex(),
            body_bytes=note.body_bytes,
        ),
        response_status=note.status,
        event_id=None if note.event is None else format_id("evt", note.event),
        client_ip=note.client_ip,
        user_agent=note.user_agent,
        request_id=note.request_id,
        elapsed_ms=note.elapsed_us / 1000,
        token_jti=note.token_id,
        note=note.note,
    )
