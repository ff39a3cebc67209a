"""Written by scripts/client: models of forget."""

from datetime import datetime

from msgspec import Struct


class LayerCounts(Struct, frozen=True, kw_only=True):
    """How many of each layer."""

    events: int = 0
    episodes: int = 0
    facts: int = 0
    beliefs: int = 0
    understanding: int = 0


class ForgetReceipt(Struct, frozen=True, kw_only=True):
    """What was forgotten, and the row that proves it."""

    deleted: LayerCounts
    audit_id: str
    cascade: str = "derived_only"
    deleted_count: int = 0
    forgotten: int = 0
    events_under_legal_hold: int = 0
    reversible_until: datetime | None = None
    pending: bool = False


class ForgetPreview(Struct, frozen=True, kw_only=True):
    """What a forget would do now; nothing was changed."""

    preview_id: str
    scope: str
    cascade: str
    estimated_deleted: LayerCounts
    estimated_total: int
    events_under_legal_hold: int
    expires_at: datetime


class RevertReceipt(Struct, frozen=True, kw_only=True):
    """What was forgotten is derived again: views are rebuilt beside those that are read."""

    audit_id: str
    reverted: str
    restored: LayerCounts
    status: str


class RollbackReceipt(Struct, frozen=True, kw_only=True):
    """What a rollback takes out: events, and the records that rest on them alone or in part."""

    rollback_id: str | None
    dry_run: bool
    events: int
    first_event: str | None
    last_event: str | None
    records_before: LayerCounts
    records_after: LayerCounts | None
    resting_on_them: LayerCounts
    status: str


class Hold(Struct, frozen=True, kw_only=True):
    """Whether a scope and what is below it may not be erased."""

    path: str
    held: bool
    by: str | None = None
    since: datetime | None = None
    reason: str | None = None
