"""What will prove, later, that this call was made and what was decided?  (001 §14)"""

import hmac

import msgspec

from engine.clock import Clock
from engine.state.kv import Batch
from engine.state.vault import TenantKeys
from schemas.audit import AuditRequest, AuditRow
from schemas.caller import Caller, Decision, Origin
from schemas.ids import format_id, uuid7
from schemas.times import from_us

FAMILIES = ("audit",)
_pack = msgspec.msgpack.Encoder().encode
_NOWHERE = Origin(request_id="", method="", path="")


def peppered(keys: TenantKeys, content: bytes) -> str:
    """A hash that only who holds the tenant's pepper can compare."""
    return "sha256:" + hmac.digest(keys.pepper, content, "sha256").hex()


def make_row(
    clock: Clock,
    keys: TenantKeys,
    caller: Caller,
    decision: Decision,
    *,
    status: int,
    scope: str | None = None,
    note: str | None = None,
) -> tuple[bytes, AuditRow]:
    """The audit row of one call, and the sixteen bytes of its id."""
    origin = caller.origin or _NOWHERE
    now_us = clock.now_us()
    raw = uuid7(now_us, clock.entropy())
    row = AuditRow(
        id=format_id("audit", raw),
        ts=from_us(now_us),
        actor=caller.actor,
        tenant_id=caller.tenant,
        scope=scope,
        endpoint=f"{origin.method} {origin.path}",
        capability=decision.capability,
        decision="allow" if decision.allowed else "deny",
        decided_by_tier=decision.tier,
        request=AuditRequest(
            method=origin.method,
            path=origin.path,
            body_hash=peppered(keys, origin.body),
            headers_hash=peppered(keys, origin.headers),
            body_bytes=len(origin.body),
        ),
        response_status=status,
        client_ip=origin.client_ip,
        user_agent=origin.user_agent,
        request_id=origin.request_id,
        elapsed_ms=max(0, now_us - origin.started_us) / 1000 if origin.started_us else 0.0,
        token_jti=caller.token_id,
        note=note,
    )
    return raw, row


def put_row(batch: Batch, tenant_no: int, raw: bytes, row: AuditRow) -> None:
    """The row goes into the batch of what it records: both are there, or neither."""
    batch.put("audit", tenant_no.to_bytes(4, "big") + raw, _pack(row))
