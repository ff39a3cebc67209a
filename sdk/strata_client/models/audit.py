"""Written by scripts/client: models of audit."""

from datetime import datetime

from msgspec import Struct


class AuditRequest(Struct, frozen=True, kw_only=True):
    """The request, by hashes under the tenant's pepper."""

    method: str
    path: str
    body_hash: str
    headers_hash: str
    body_bytes: int | None = None


class AuditRow(Struct, frozen=True, kw_only=True):
    """One policy-gated call."""

    id: str
    ts: datetime
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
    gdpr: bool
    scope: str | None = None
    event_id: str | None = None
    token_jti: str | None = None
    client_ip: str | None = None
    user_agent: str | None = None
    note: str | None = None
    tenant_pepper_version: int | None = None
    sequence: int | None = None
    damaged: bool = False


class AuditPage(Struct, frozen=True, kw_only=True):
    """A page of rows, newest first."""

    items: list[AuditRow]
    next_cursor: str | None
    has_more: bool


class AuditChain(Struct, frozen=True, kw_only=True):
    """The head of the tenant's tree: whoever keeps it can tell later that nothing was changed."""

    length: int
    head_hash: str
    legacy_rows: int
    pruned_rows: int
    algorithm: str = "sha256"


class ChainReport(Struct, frozen=True, kw_only=True):
    """What reading every row again has shown."""

    valid: bool
    length: int
    head_hash: str
    legacy_rows: int
    pruned_rows: int
    first_broken_index: int | None
    reason: str | None


class Inclusion(Struct, frozen=True, kw_only=True):
    """Proof that a row is a leaf of the tree with this root (RFC 9162 §2.1.3)."""

    leaf_index: int
    leaf_hash: str
    tree_size: int
    root: str
    path: list[str]
    holds: bool


class Verification(Struct, frozen=True, kw_only=True):
    """Whether a body is the one that was sent, and whether the row that says so is untouched."""

    match: bool
    hashed_at: datetime
    algorithm: str
    tenant_pepper_version: int
    inclusion: Inclusion
