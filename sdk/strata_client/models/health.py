"""Written by scripts/client: models of health."""

from datetime import datetime

import msgspec
from msgspec import Struct


class RebuildReceipt(Struct, frozen=True, kw_only=True):
    """A rebuild was asked for; health shows how far it is."""

    projector: str
    status: str
    unparked: list[str]


class ProjectorHealth(Struct, frozen=True, kw_only=True):
    """One projector: how far it is, and what it could not take."""

    name: str
    version: int
    state: str
    checkpoint: int
    lag_entries: int
    parked: int
    parked_events: list[str]


class DiskHealth(Struct, frozen=True, kw_only=True):
    """Room on the disk, in bytes."""

    free_bytes: int
    low_water_bytes: int
    ballast_bytes: int
    data_bytes: int


class AnnotatorHealth(Struct, frozen=True, kw_only=True):
    """The model that reads events: what waits for it, what it failed on, and when it goes on."""

    model: str
    state: str
    waiting_entries: int
    failed: int
    given_up: int
    failed_events: list[str]
    error: str | None = None
    next_retry_at: datetime | None = None


class IndexHealth(Struct, frozen=True, kw_only=True):
    """The indexes: which generation is read, how far it is, and what does not work just now."""

    generation: int
    embedder: str
    documents: int
    watermark: int
    lag_entries: int
    segments: int
    blocks_bytes: int
    unreadable: int
    building: int | None = None
    trouble: str | None = None


class WorkerHealth(Struct, frozen=True, kw_only=True):
    """A worker process that beats: what it can do, what it has at hand, when it was last heard."""

    name: str
    host: str
    pid: int
    version: str
    queues: list[str]
    tasks: int
    done: int
    seen_s: float


class ChoreHealth(Struct, frozen=True, kw_only=True):
    """Something that is done again and again: how often it was, and when it is due."""

    name: str
    every_s: float
    ran: int
    took_ms: float
    due_s: float


class WorkHealth(Struct, frozen=True, kw_only=True):
    """Long work: jobs under way, dead letters, and what workers have of it."""

    queue: str
    waiting: int
    taken: int
    oldest_s: float
    retries: int
    dead: int
    workers: list[WorkerHealth]
    trouble: str | None = None
    jobs: int = 0
    dead_letters: int = 0
    dead_letter_jobs: list[str] = []
    chores: list[ChoreHealth] = []


class Health(Struct, frozen=True, kw_only=True):
    """Liveness, readiness and the state of every part."""

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
    annotator: AnnotatorHealth | None = None
    index: IndexHealth | None = None
    work: WorkHealth | None = None
    subscribers: int
    checked_at: datetime


class Ready(Struct, frozen=True, kw_only=True):
    """Whether writes and reads are served."""

    ready: bool
    reasons: list[str]
    checks: dict[str, bool]


class Version(Struct, frozen=True, kw_only=True):
    """What is running."""

    name: str
    version: str
    api_version: str
    capabilities: list[str]
    endpoints: dict[str, int]


class FlushReceipt(Struct, frozen=True, kw_only=True):
    """Every view has caught up with the log as it was when the flush was asked for."""

    flushed_to: int
    checkpoints: dict[str, int]
    elapsed_ms: float
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class CompactReceipt(Struct, frozen=True, kw_only=True):
    """Compaction is done; the sizes say what it gave back."""

    families: list[str]
    bytes_before: int
    bytes_after: int
    elapsed_ms: float


class ProjectorList(Struct, frozen=True, kw_only=True):
    """Every projector."""

    items: list[ProjectorHealth]
