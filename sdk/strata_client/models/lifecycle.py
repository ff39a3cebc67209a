"""Written by scripts/client: models of lifecycle."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec
from msgspec import Struct


class Captured(Struct, frozen=True, kw_only=True, tag_field="event", tag="captured"):
    """The entry is in the log, on the disk."""

    event: ClassVar[str] = "captured"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    actor: str
    modality: str
    wal_offset: int


class Derived(Struct, frozen=True, kw_only=True):
    """How many records of each layer followed from one entry."""

    facts: int = 0
    entities: int = 0
    beliefs: int = 0
    episodes: int = 0


class Extracted(Struct, frozen=True, kw_only=True, tag_field="event", tag="extracted"):
    """The extract stage has run."""

    event: ClassVar[str] = "extracted"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    derived: Derived
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Indexed(Struct, frozen=True, kw_only=True, tag_field="event", tag="indexed"):
    """The indexes hold what was extracted; `layers_indexed` names the layers they took."""

    event: ClassVar[str] = "indexed"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    layers_indexed: list[str]
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Consolidated(Struct, frozen=True, kw_only=True, tag_field="event", tag="consolidated"):
    """Beliefs and conflicts have been weighed."""

    event: ClassVar[str] = "consolidated"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    beliefs_updated: int
    conflicts_resolved: int
    superseded_facts: int
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Compressed(Struct, frozen=True, kw_only=True, tag_field="event", tag="compressed"):
    """An episode was sealed or a concept got a version."""

    event: ClassVar[str] = "compressed"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    episode_id: str | None = None
    understanding_ids: list[str] = []
    job_id: str | None = None
    status: str | None = None


class Cancelled(Struct, frozen=True, kw_only=True, tag_field="event", tag="cancelled"):
    """The remaining stages of an event will not run."""

    event: ClassVar[str] = "cancelled"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    stages_cancelled: list[str]


class Parked(Struct, frozen=True, kw_only=True, tag_field="event", tag="parked"):
    """A projector could not take the entry; the rest goes on."""

    event: ClassVar[str] = "parked"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    projector: str
    error: str
    attempts: int


class Forgotten(Struct, frozen=True, kw_only=True, tag_field="event", tag="forgotten"):
    """Records were deleted."""

    event: ClassVar[str] = "forgotten"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    layer: str
    count: int
    by_actor: str
    cascade: str


class PolicyChanged(Struct, frozen=True, kw_only=True, tag_field="event", tag="policy_changed"):
    """A policy mutation affected this stream."""

    event: ClassVar[str] = "policy_changed"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    tier: str
    scope_or_actor: str
    capability_diff: dict[str, Any]


class PolicyRevoked(Struct, frozen=True, kw_only=True, tag_field="event", tag="policy_revoked"):
    """The subscription is no longer allowed; the stream closes."""

    event: ClassVar[str] = "policy_revoked"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    reason: str


class ImportProgress(Struct, frozen=True, kw_only=True, tag_field="event", tag="import_progress"):
    """An import goes on."""

    event: ClassVar[str] = "import_progress"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    import_id: str
    fraction_complete: float
    processed: int
    total: int


class ImportComplete(Struct, frozen=True, kw_only=True, tag_field="event", tag="import_complete"):
    """An import is done."""

    event: ClassVar[str] = "import_complete"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    import_id: str
    summary: dict[str, Any]


class ImportFailed(Struct, frozen=True, kw_only=True, tag_field="event", tag="import_error"):
    """A row of an import failed."""

    event: ClassVar[str] = "import_error"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    import_id: str
    line: int
    error: str


class ExportProgress(Struct, frozen=True, kw_only=True, tag_field="event", tag="export_progress"):
    """An export goes on."""

    event: ClassVar[str] = "export_progress"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    export_id: str
    fraction_complete: float


class ExportComplete(Struct, frozen=True, kw_only=True, tag_field="event", tag="export_complete"):
    """An export is done."""

    event: ClassVar[str] = "export_complete"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    export_id: str
    url: str
    size_bytes: int


class ErasureProgress(Struct, frozen=True, kw_only=True, tag_field="event", tag="erasure_progress"):
    """An erasure goes on."""

    event: ClassVar[str] = "erasure_progress"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    erasure_id: str
    phase: str
    fraction_complete: float
    deleted_events: int | None = None
    redacted_events: int | None = None


class ErasureComplete(Struct, frozen=True, kw_only=True, tag_field="event", tag="erasure_complete"):
    """An erasure is done."""

    event: ClassVar[str] = "erasure_complete"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    erasure_id: str
    summary: dict[str, Any]
    audit_id: str | None = None


class Lagging(Struct, frozen=True, kw_only=True, tag_field="event", tag="lagging"):
    """The client is too slow; the stream closes. Resume from the last id received."""

    event: ClassVar[str] = "lagging"
    lifecycle_id: str
    timestamp: datetime
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None
    behind_by: float


class LifecycleRow(Struct, frozen=True, kw_only=True):
    """One announcement as the polling endpoints answer it."""

    lifecycle_id: str
    event_id: str | None
    stage: str
    ts: datetime
    payload: dict[str, Any]
    scope: str | None = None
    sequence: int | None = None


class LifecyclePage(Struct, frozen=True, kw_only=True):
    """A page of announcements in the order they were made."""

    items: list[LifecycleRow]
    next_cursor: str | None
    has_more: bool


class MemoryEventState(Struct, frozen=True, kw_only=True):
    """How far one memory event has come."""

    event_id: str
    stages_completed: list[str]
    stages_pending: list[str]
    lifecycle_event_ids: list[str]
    derives: list[str]
    errors: list[dict[str, Any]]
    status: str | None = None
    stages_cancelled: list[str] = []
    excluded_from_recall: bool = False
    partial: bool | None = msgspec.field(default=None, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class CancelReceipt(Struct, frozen=True, kw_only=True):
    """What the cancellation stopped, and what it came too late for."""

    event_id: str
    stages_cancelled: list[str]
    stages_already_completed: list[str]
    excluded_from_recall: bool
    audit_id: str
