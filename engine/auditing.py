"""Who did what, who was refused, and can it be proven?  (001 §8.10)"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from engine import merkle, policy
from engine.audit import check_trail, hash_text, row_of
from engine.rows import AuditNote, Kept
from engine.settings import Settings
from engine.state.kv import CorruptStore
from engine.state.names import TENANT
from engine.upkeep import Progress, inspected
from schemas import limits
from schemas.audit import (
    AuditChain,
    AuditPage,
    AuditRow,
    ChainReport,
    Inclusion,
    TenantReport,
    Verification,
    VerifyRequest,
)
from schemas.caller import Caller
from schemas.errors import NotFound, Overloaded, ResourceDeleted
from schemas.ids import parse_id, uuid7_instant_us
from schemas.times import from_us, to_us

if TYPE_CHECKING:
    from engine.engine import Engine

READ, READ_OTHERS = "audit.read", "audit.read.cross_actor"


class AuditSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows (001 §8.10.1); all conditions must hold."""

    scope: str | None = None
    actor: str | None = None
    capability: str | None = None
    decision: Literal["allow", "deny"] | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def list_audit(engine: "Engine", caller: Caller, request: AuditSearch) -> AuditPage:
    """A page of rows, newest first; the caller's own, unless policy opens the others'."""
    policy.require(engine, caller, READ, request.scope)
    actor = request.actor
    if actor is not None and actor != caller.actor:
        policy.require(engine, caller, READ_OTHERS, request.scope)
    elif actor is None and not _sees_others(engine, caller, request.scope):
        actor = caller.actor
    question = (caller.tenant, actor, msgspec.structs.replace(request, cursor=None, limit=0))
    position = None
    if request.cursor is not None:
        position = int.from_bytes(engine.cursors.read(request.cursor, *question), "big")
    tenant_no, trail = engine.tenant_no(caller), engine.trail
    if tenant_no is None:
        return AuditPage(items=[], next_cursor=None, has_more=False)
    after, before = 0, trail.tree(tenant_no).size
    if request.since is not None:
        after = trail.first_at(tenant_no, to_us(request.since))
    if position is not None:
        before = position
    elif request.until is not None:
        before = trail.first_at(tenant_no, to_us(request.until))
    wanted = _wanted(caller, actor, request)
    items: list[AuditRow] = []
    looked = 0
    for kept in trail.walk(tenant_no, after, before):
        looked, before = looked + 1, kept.sequence
        if kept.note is not None and wanted(kept.note):
            items.append(row_of(kept))
        if len(items) == request.limit or looked == limits.PAGE_SCAN_MAX:
            break
    more = before > after and looked > 0
    cursor = engine.cursors.make(before.to_bytes(8, "big"), *question) if more else None
    return AuditPage(items=items, next_cursor=cursor, has_more=more)


def get_audit(engine: "Engine", caller: Caller, audit_id: str) -> AuditRow:
    """One row by its id."""
    policy.require(engine, caller, READ)
    _, kept, _ = _found(engine, caller, audit_id)
    return row_of(kept)


def verify_body(engine: "Engine", caller: Caller, request: VerifyRequest) -> Verification:
    """Whether a body is the one a row was written for, and proof that the row is in the tree."""
    policy.require(engine, caller, READ)
    tenant_no, kept, note = _found(engine, caller, request.audit_id)
    if not engine.trail.keeps_pepper(note.pepper_version, engine.clock.now_us()):
        raise ResourceDeleted(
            "The pepper of that quarter is no longer kept, so no body can be compared.",
            audit_id=request.audit_id,
            tenant_pepper_version=note.pepper_version,
        )
    inclusion = _inclusion(engine, tenant_no, kept)
    is_same = engine.trail.matches(tenant_no, note, request.body.encode())
    return Verification(
        match=is_same and inclusion.holds,
        hashed_at=from_us(uuid7_instant_us(kept.raw)),
        algorithm="sha256",
        tenant_pepper_version=note.pepper_version,
        inclusion=inclusion,
    )


def get_chain(engine: "Engine", caller: Caller) -> AuditChain:
    """Head and size of the tenant's tree."""
    policy.require(engine, caller, READ)
    tenant_no = engine.tenant_no(caller)
    tree = merkle.Tree() if tenant_no is None else engine.trail.tree(tenant_no)
    return AuditChain(
        length=tree.size,
        head_hash=hash_text(merkle.head_of(tree)),
        legacy_rows=0,
        pruned_rows=0 if tenant_no is None else engine.trail.pruned(tenant_no),
    )


def verify_chain(engine: "Engine", caller: Caller) -> ChainReport:
    """Read every row again and find the first that is not as it was written."""
    policy.require(engine, caller, READ)
    # It reads everything a tenant has: one at a time is enough for a server that does other work.
    if not engine.trail.walking.acquire(blocking=False):
        raise Overloaded(reason="the audit rows are being read already", retry_after_s=5)
    try:
        tenant_no = engine.names.number(TENANT, 0, caller.tenant)
        keys = engine.vault.tenant(tenant_no)
        return check_trail(engine.kv, keys, tenant_no, lambda _, __: None)
    finally:
        engine.trail.walking.release()


# ── whose rows ───────────────────────────────────────────────────────────────────────────────


def _sees_others(engine: "Engine", caller: Caller, scope: str | None) -> bool:
    return engine.policies.decide(caller, READ_OTHERS, scope).allowed


def _wanted(caller: Caller, actor: str | None, request: AuditSearch) -> Callable[[AuditNote], bool]:
    """The conditions of a search as a test; a token bound to scopes sees no row of another's."""

    def test(note: AuditNote) -> bool:
        return (
            (actor is None or note.actor == actor)
            and (request.scope is None or note.scope == request.scope)
            and (request.capability is None or note.capability == request.capability)
            and (request.decision is None or note.allowed == (request.decision == "allow"))
            and _within_token(caller, note)
        )

    return test


def _within_token(caller: Caller, note: AuditNote) -> bool:
    if caller.scopes is None:
        return True
    if note.scope is None:
        return note.actor == caller.actor
    return policy.grants(caller.scopes, READ, note.scope)


def _found(engine: "Engine", caller: Caller, audit_id: str) -> tuple[int, Kept, AuditNote]:
    """A row of the caller's tenant; another actor's needs its capability."""
    raw = parse_id("audit", audit_id)
    tenant_no = engine.tenant_no(caller)
    kept = None if raw is None or tenant_no is None else engine.trail.find(tenant_no, raw)
    if kept is None or tenant_no is None:
        raise NotFound(f"There is no audit row {audit_id[:80]!r}.", audit_id=audit_id[:80])
    if kept.note is None:
        reason = "past its retention" if kept.is_pruned else "it cannot be read"
        raise ResourceDeleted(audit_id=audit_id, reason=reason)
    policy.require(engine, caller, READ, kept.note.scope)
    if kept.note.actor != caller.actor:
        policy.require(engine, caller, READ_OTHERS, kept.note.scope)
    return tenant_no, kept, kept.note


# ── proofs ───────────────────────────────────────────────────────────────────────────────────


def _inclusion(engine: "Engine", tenant_no: int, kept: Kept) -> Inclusion:
    tree = engine.trail.tree(tenant_no)
    head, path = merkle.head_of(tree), []
    led: bytes | None = None
    if kept.is_intact:
        try:
            path = engine.trail.path(tenant_no, kept.sequence, tree.size)
            led = merkle.head_by_path(kept.sequence, tree.size, kept.leaf, path)
        except CorruptStore:
            led = None  # a node is gone: nothing can be proven, which is what is said
    return Inclusion(
        leaf_index=kept.sequence,
        leaf_hash=hash_text(kept.leaf),
        tree_size=tree.size,
        root=hash_text(head),
        path=[hash_text(digest) for digest in path],
        holds=led == head,
    )


def verify_trails(settings: Settings, progress: Progress) -> list[TenantReport]:
    """Check the audit rows of every tenant of a data directory; safe beside a running server."""
    with inspected(settings) as engine:
        # A tenant whose name was taken away still has its rows.
        named = dict(engine.names.all(TENANT, 0))
        numbers = sorted({*named, *engine.trail.tenants()})
        return [_report(engine, at, named.get(at) or f"tenant {at}", progress) for at in numbers]


def _report(engine: "Engine", tenant_no: int, tenant: str, progress: Progress) -> TenantReport:
    keys = engine.vault.tenant(tenant_no)
    report = check_trail(
        engine.kv, keys, tenant_no, lambda done, total: progress(tenant, done, total)
    )
    return TenantReport(tenant=tenant, report=report)
