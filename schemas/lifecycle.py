"""What is announced while an experience becomes memory?  (001 §13)

A union, told apart by `event`.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas import limits
from schemas.times import Instant

STAGE_ORDER: Final = ("captured", "extracted", "indexed", "consolidated", "compressed")
"""For one memory event the stages are announced strictly in this order (001 §18.2.3)."""


class _Announcement(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"
):
    """What every announcement carries."""

    lifecycle_id: str
    timestamp: Instant
    scope: str | None = None
    event_id: str | None = None
    sequence: int | None = None
    batch_id: str | None = None


class Captured(_Announcement, frozen=True, kw_only=True, tag="captured"):
    """The entry is in the log, on the disk."""

    actor: str
    modality: str
    wal_offset: int


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """How many records of each layer followed from one entry."""

    facts: int = 0
    entities: int = 0
    beliefs: int = 0
    episodes: int = 0


class Extracted(_Announcement, frozen=True, kw_only=True, tag="extracted"):
    """The extract stage has run."""

    derived: Derived
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Indexed(_Announcement, frozen=True, kw_only=True, tag="indexed"):
    """The indexes hold what was extracted; `layers_indexed` names the layers they took."""

    layers_indexed: list[str]
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Consolidated(_Announcement, frozen=True, kw_only=True, tag="consolidated"):
    """Beliefs and conflicts have been weighed."""

    beliefs_updated: int
    conflicts_resolved: int
    superseded_facts: int
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class Compressed(_Announcement, frozen=True, kw_only=True, tag="compressed"):
    """An episode was sealed or a concept got a version.

    What a synthesis made has its job's id; the last of a job says how it ended.
    """

    episode_id: str | None = None
    understanding_ids: list[str] = []
    job_id: str | None = None
    status: str | None = None


class Cancelled(_Announcement, frozen=True, kw_only=True, tag="cancelled"):
    """The remaining stages of an event will not run (001 §8.9.5)."""

    stages_cancelled: list[str]


class Parked(_Announcement, frozen=True, kw_only=True, tag="parked"):
    """A projector could not take the entry; the rest goes on."""

    projector: str
    error: str
    attempts: int


class Forgotten(_Announcement, frozen=True, kw_only=True, tag="forgotten"):
    """Records were deleted."""

    layer: str
    count: int
    by_actor: str
    cascade: str


class PolicyChanged(_Announcement, frozen=True, kw_only=True, tag="policy_changed"):
    """A policy mutation affected this stream."""

    tier: str
    scope_or_actor: str
    capability_diff: dict[str, Any]


class PolicyRevoked(_Announcement, frozen=True, kw_only=True, tag="policy_revoked"):
    """The subscription is no longer allowed; the stream closes."""

    reason: str


class ImportProgress(_Announcement, frozen=True, kw_only=True, tag="import_progress"):
    """An import goes on."""

    import_id: str
    fraction_complete: float
    processed: int
    total: int


class ImportComplete(_Announcement, frozen=True, kw_only=True, tag="import_complete"):
    """An import is done."""

    import_id: str
    summary: dict[str, Any]


class ImportFailed(_Announcement, frozen=True, kw_only=True, tag="import_error"):
    """A row of an import failed."""

    import_id: str
    line: int
    error: str


class ExportProgress(_Announcement, frozen=True, kw_only=True, tag="export_progress"):
    """An export goes on."""

    export_id: str
    fraction_complete: float


class ExportComplete(_Announcement, frozen=True, kw_only=True, tag="export_complete"):
    """An export is done."""

    export_id: str
    url: str
    size_bytes: int


class ErasureProgress(_Announcement, frozen=True, kw_only=True, tag="erasure_progress"):
    """An erasure goes on."""

    erasure_id: str
    phase: Literal["enumerate", "refcount", "delete", "cleanup"]
    fraction_complete: float
    deleted_events: int | None = None
    redacted_events: int | None = None


class ErasureComplete(_Announcement, frozen=True, kw_only=True, tag="erasure_complete"):
    """An erasure is done."""

    erasure_id: str
    summary: dict[str, Any]
    audit_id: str | None = None


class Lagging(_Announcement, frozen=True, kw_only=True, tag="lagging"):
    """The client is too slow; the stream closes. Resume from the last id received."""

    behind_by: float


LifecycleEvent = (
    Captured
    | Extracted
    | Indexed
    | Consolidated
    | Compressed
    | Cancelled
    | Parked
    | Forgotten
    | PolicyChanged
    | PolicyRevoked
    | ImportProgress
    | ImportComplete
    | ImportFailed
    | ExportProgress
    | ExportComplete
    | ErasureProgress
    | ErasureComplete
    | Lagging
)

EVENT_NAMES: Final[tuple[str, ...]] = tuple(
    str(kind.__struct_config__.tag) for kind in LifecycleEvent.__args__
)
"""The catalogue, in the order of 001 §13, with our two additions `cancelled` and `parked`."""

JOB_FIELDS: Final = ("job_id", "import_id", "export_id", "erasure_id")
"""Fields by which a stream may be narrowed to one job (001 §8.9.1)."""


class LifecycleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One announcement as the polling endpoints answer it (001 §8.9.2)."""

    lifecycle_id: str
    event_id: str | None
    stage: str
    ts: Instant
    payload: dict[str, Any]
    scope: str | None = None
    sequence: int | None = None


class LifecyclePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of announcements in the order they were made."""

    items: list[LifecycleRow]
    next_cursor: str | None
    has_more: bool


class MemoryEventState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one memory event has come (001 §8.9.3)."""

    event_id: str
    stages_completed: list[str]
    stages_pending: list[str]
    lifecycle_event_ids: list[str]
    derives: list[str]
    errors: list[dict[str, Any]]
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    status: str | UnsetType = UNSET
    stages_cancelled: list[str] = []
    excluded_from_recall: bool = False
    partial: bool | UnsetType = msgspec.field(default=UNSET, name="_partial")
    partial_reason: str | UnsetType = msgspec.field(default=UNSET, name="_partial_reason")


class CancelRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Why the event should not become memory."""

    audit_note: Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)] | None = None


class CancelReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What the cancellation stopped, and what it came too late for (001 §8.9.5)."""

    event_id: str
    stages_cancelled: list[str]
    stages_already_completed: list[str]
    excluded_from_recall: bool
    audit_id: str


def row_of(event: LifecycleEvent) -> LifecycleRow:
    """The polling form of an announcement: the shared fields outside, its own in `payload`."""
    fields: dict[str, Any] = msgspec.to_builtins(event, builtin_types=())
    for shared in ("event", "lifecycle_id", "timestamp", "scope", "event_id", "sequence"):
        fields.pop(shared, None)
    return LifecycleRow(
        lifecycle_id=event.lifecycle_id,
        event_id=event.event_id,
        stage=str(event.__struct_config__.tag),
        ts=event.timestamp,
        scope=event.scope,
        sequence=event.sequence,
        payload=fields,
    )
