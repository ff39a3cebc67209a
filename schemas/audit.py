"""What does the audit log remember of a call?  (001 §14)"""

import msgspec

from schemas.times import Instant


class AuditRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request, by hashes under the tenant's pepper."""

    method: str
    path: str
    body_hash: str
    headers_hash: str
    body_bytes: int | None = None


class AuditRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One policy-gated call."""

    id: str
    ts: Instant
    actor: str
    tenant_id: str
    endpoint: str
    capability: str
    decision: str
    decided_by_tier: str
    request: AuditRequest
    response_status: int
    request_id: str
    elapsed_ms: float
    scope: str | None = None
    event_id: str | None = None
    token_jti: str | None = None
    client_ip: str | None = None
    user_agent: str | None = None
    gdpr: bool = False
    note: str | None = None
