"""The audit log: reading it, and proving that nobody touched it (001 §8.10, §14)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.auditing import AuditSearch, get_audit, get_chain, list_audit, verify_body, verify_chain
from schemas import limits
from schemas.audit import AuditChain, AuditPage, AuditRow, ChainReport, Verification, VerifyRequest
from schemas.errors import (
    InvalidCursor,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    NotFound,
    Overloaded,
    ResourceDeleted,
    WalUnavailable,
)
from schemas.scope import ScopePath
from schemas.times import Instant


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of audit rows; `since` and `until` bound `ts`, half-open."""

    scope: ScopePath | None = None
    actor: str | None = None
    capability: str | None = None
    decision: Literal["allow", "deny"] | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)] = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class Empty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command without arguments."""


def get_rows(call: Call) -> Reply:
    """A page of rows."""
    request = AuditSearch(**msgspec.structs.asdict(call.query))
    return Reply(list_audit(call.engine, call.caller, request))


def get_row(call: Call) -> Reply:
    """One row."""
    return Reply(get_audit(call.engine, call.caller, call.path["audit_id"]))


def post_verify(call: Call) -> Reply:
    """Hold a body against a row."""
    return Reply(verify_body(call.engine, call.caller, call.body))


def get_head(call: Call) -> Reply:
    """Head and size of the tree."""
    return Reply(get_chain(call.engine, call.caller))


def post_verify_chain(call: Call) -> Reply:
    """Read every row again."""
    return Reply(verify_chain(call.engine, call.caller))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/audit",
        get_rows,
        "A page of audit rows, newest first: the caller's own, or others' by capability.",
        capability="audit.read",
        tier=STABLE,
        query=AuditQuery,
        response=AuditPage,
        errors=(InvalidScope, InvalidTimestamp, InvalidCursor, WalUnavailable),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/audit/chain",
        get_head,
        "Size and head of the tenant's tree of audit rows.",
        capability="audit.read",
        tier=STABLE,
        response=AuditChain,
        errors=(WalUnavailable,),
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/audit/chain/verify",
        post_verify_chain,
        "Read every audit row again and find the first that was touched.",
        capability="audit.read",
        tier=STABLE,
        body=Empty,
        body_optional=True,
        response=ChainReport,
        errors=(Overloaded, WalUnavailable),
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/audit/verify",
        post_verify,
        "Whether a body is the one a row was written for, with proof that the row is in the tree.",
        capability="audit.read",
        tier=STABLE,
        body=VerifyRequest,
        body_max=limits.AUDIT_BODY_BYTES_MAX,
        response=Verification,
        errors=(MissingField, NotFound, ResourceDeleted, WalUnavailable),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/audit/{audit_id}",
        get_row,
        "One audit row by its id.",
        capability="audit.read",
        tier=STABLE,
        response=AuditRow,
        errors=(NotFound, ResourceDeleted, WalUnavailable),
        off_loop=True,
    ),
)
