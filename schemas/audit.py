"""What does the audit log remember of a call, and how is it proven?  (001 §14, §8.10)"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from schemas.times import Instant

Hash = Annotated[str, Meta(description="sha256: and hexadecimal digits")]


class AuditRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request, by hashes under the tenant's pepper."""

    method: str
    path: str
    body_hash: Hash
    headers_hash: Hash
    body_bytes: int | None = None


class AuditRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One policy-gated call."""

    id: str
    ts: Instant
    actor: str
    tenant_id: str
    endpoint: str
    capability: str
    decision: Literal["allow", "deny"]
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
    """The row's leaf in the tenant's tree, from 0."""
    damaged: bool = False
    """The row is not the one that was written: `POST /v1/audit/chain/verify` tells more."""


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of rows, newest first."""

    items: list[AuditRow]
    next_cursor: str | None
    has_more: bool


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Was this the body of that call?"""

    audit_id: str
    body: str


class Inclusion(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a row is a leaf of the tree with this root (RFC 9162 §2.1.3)."""

    leaf_index: int
    leaf_hash: Hash
    tree_size: int
    root: Hash
    path: list[Hash]
    holds: bool


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a body is the one that was sent, and whether the row that says so is untouched."""

    match: bool
    hashed_at: Instant
    algorithm: Literal["sha256"]
    tenant_pepper_version: int
    inclusion: Inclusion


class AuditChain(msgspec.Struct, frozen=True, kw_only=True):
    """The head of the tenant's tree: whoever keeps it can tell later that nothing was changed."""

    length: int
    head_hash: Hash
    legacy_rows: int
    pruned_rows: int
    algorithm: Literal["sha256"] = "sha256"


class ChainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What reading every row again has shown."""

    valid: bool
    length: int
    head_hash: Hash
    legacy_rows: int
    pruned_rows: int
    first_broken_index: int | None
    reason: str | None


class TenantReport(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant's rows, for an operator."""

    tenant: str
    report: ChainReport
