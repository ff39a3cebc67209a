"""How is something erased for good, and how is that shown?  (001 §8.6, §11.3)"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.envelope import IdempotencyKey
from schemas.forget import LayerCounts, MemoryId, Note
from schemas.scope import ScopePath
from schemas.times import Instant


class ErasureSelector(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Single memories instead of a whole scope."""

    memory_ids: Annotated[list[MemoryId], Meta(max_length=limits.FORGET_IDS_MAX)] = []


class ErasureRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What is to be erased: a scope and all below it, or single memories there."""

    scope: ScopePath
    selector: ErasureSelector | None = None
    confirm_all: bool = False
    audit_note: Note | None = None
    reason: Note | None = None
    from_preview_id: str | None = None
    idempotency_key: IdempotencyKey | None = None


class RefcountBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the events."""

    events_to_delete: int
    events_to_redact: int
    events_under_legal_hold: int


class AffectedWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """Another scope that refers to what is erased, and who owns it too."""

    scope: str
    events_referenced: int
    co_owners: list[str]


class Propagation(msgspec.Struct, frozen=True, kw_only=True):
    """Who else is concerned."""

    affected_workspaces: list[AffectedWorkspace]
    requires_capability: str | None


class ErasurePreview(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure would do now (001 §8.6.1)."""

    preview_id: str
    scope: str
    estimated_affected: LayerCounts
    refcount_breakdown: RefcountBreakdown
    cross_scope_propagation: Propagation
    legal_holds: list[str]
    estimated_duration_ms: int
    manifest_url: str
    expires_at: Instant


class ManifestLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing, and what becomes of it.

    A `workspace` is another scope that refers to what goes; its co-owners are who to tell.
    """

    kind: Literal["event", "record", "workspace"]
    id: str
    action: Literal["delete", "redact", "hold", "demote", "refer"]
    scope: str
    wal_offset: int | None = None
    references: list[str] = []
    events_referenced: int | None = None
    co_owners: list[str] = []


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The whole plan, line by line."""

    id: str
    items: list[ManifestLine]
    next_cursor: str | None
    has_more: bool
    drifted: bool


class ErasureReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure has begun (001 §8.6.3)."""

    erasure_id: str
    status: str
    manifest_url: str
    lifecycle_stream: str


class ErasureState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an erasure is (001 §8.6.4)."""

    erasure_id: str
    status: str
    phase: str
    fraction_complete: float
    progress: dict[str, int]
    audit_id: str | None
    summary: dict[str, Any]


class ErasureCancel(msgspec.Struct, frozen=True, kw_only=True):
    """It stops at the next boundary of phases; what is gone is gone (001 §8.6.5)."""

    erasure_id: str
    cancellation_accepted: bool
    deleted_events_before_cancel: int
    audit_id: str | None
