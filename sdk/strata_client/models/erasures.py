"""Written by scripts/client: models of erasures."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from strata_client.models.forget import LayerCounts


class RefcountBreakdown(Struct, frozen=True, kw_only=True):
    """What becomes of the events."""

    events_to_delete: int
    events_to_redact: int
    events_under_legal_hold: int


class AffectedWorkspace(Struct, frozen=True, kw_only=True):
    """Another scope that refers to what is erased, and who owns it too."""

    scope: str
    events_referenced: int
    co_owners: list[str]


class Propagation(Struct, frozen=True, kw_only=True):
    """Who else is concerned."""

    affected_workspaces: list[AffectedWorkspace]
    requires_capability: str | None


class ErasurePreview(Struct, frozen=True, kw_only=True):
    """What an erasure would do now."""

    preview_id: str
    scope: str
    estimated_affected: LayerCounts
    refcount_breakdown: RefcountBreakdown
    cross_scope_propagation: Propagation
    legal_holds: list[str]
    estimated_duration_ms: int
    manifest_url: str
    expires_at: datetime


class ManifestLine(Struct, frozen=True, kw_only=True):
    """One thing, and what becomes of it."""

    kind: str
    id: str
    action: str
    scope: str
    wal_offset: int | None = None
    references: list[str] = []
    events_referenced: int | None = None
    co_owners: list[str] = []


class Manifest(Struct, frozen=True, kw_only=True):
    """The whole plan, line by line."""

    id: str
    items: list[ManifestLine]
    next_cursor: str | None
    has_more: bool
    drifted: bool


class ErasureReceipt(Struct, frozen=True, kw_only=True):
    """An erasure has begun."""

    erasure_id: str
    status: str
    manifest_url: str
    lifecycle_stream: str


class ErasureState(Struct, frozen=True, kw_only=True):
    """How far an erasure is."""

    erasure_id: str
    status: str
    phase: str
    fraction_complete: float
    progress: dict[str, int]
    audit_id: str | None
    summary: dict[str, Any]


class ErasureCancel(Struct, frozen=True, kw_only=True):
    """It stops at the next boundary of phases; what is gone is gone."""

    erasure_id: str
    cancellation_accepted: bool
    deleted_events_before_cancel: int
    audit_id: str | None
