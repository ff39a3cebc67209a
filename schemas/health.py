"""Is it well?  Health, version, and what the operator's commands answer."""

import msgspec

from schemas.times import Instant


class ProjectorHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One projector: how far it is, and what it could not take."""

    name: str
    version: int
    state: str
    checkpoint: int
    lag_entries: int
    parked: int
    parked_events: list[str]


class DiskHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Room on the disk, in bytes."""

    free_bytes: int
    low_water_bytes: int
    ballast_bytes: int
    data_bytes: int


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Liveness, readiness and the state of every part (001 §8.15)."""

    status: str
    live: bool
    ready: bool
    reasons: list[str]
    version: str
    preset: str
    durability: str
    extractor: str
    embedder: str
    head_offset: int
    durable_offset: int
    lag_entries: int
    loop_lag_ms: float
    queued_entries: int
    projectors: list[ProjectorHealth]
    disk: DiskHealth
    subscribers: int
    checked_at: Instant


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What is running."""

    name: str
    version: str
    api_version: str
    capabilities: list[str]
    endpoints: dict[str, int]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Whether writes and reads are served."""

    ready: bool
    reasons: list[str]
    checks: dict[str, bool]


class FlushReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every view has caught up with the log as it was when the flush was asked for."""

    flushed_to: int
    checkpoints: dict[str, int]
    elapsed_ms: float
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class CompactReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Compaction is done; the sizes say what it gave back."""

    families: list[str]
    bytes_before: int
    bytes_after: int
    elapsed_ms: float


class ProjectorList(msgspec.Struct, frozen=True, kw_only=True):
    """Every projector."""

    items: list[ProjectorHealth]


class RebuildReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A rebuild was asked for; health shows how far it is."""

    projector: str
    status: str
    unparked: list[str]
