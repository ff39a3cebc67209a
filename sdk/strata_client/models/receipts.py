"""Written by scripts/client: models of receipts."""

import msgspec
from msgspec import Struct


class Receipt(Struct, frozen=True, kw_only=True):
    """The event is durable; with `?wait=` also how far it came."""

    event_id: str
    status: str
    wal_offset: int
    scope: str | None = None
    durability: str | None = None
    lifecycle_stream: str | None = None
    stages_completed: list[str] = []
    derives: list[str] = []
    elapsed_ms: dict[str, float] | None = None
    replayed_from_idempotency: bool = False
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class BulkReceipt(Struct, frozen=True, kw_only=True):
    """All items are durable."""

    batch_id: str
    accepted: int
    lifecycle_stream: str
    status: str | None = None
    durability: str | None = None
    replayed: int = 0
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class WriteStatus(Struct, frozen=True, kw_only=True):
    """What became of a write, found by its key or its id."""

    event_id: str
    status: str
    wal_offset: int
    scope: str
    stages_completed: list[str]
    stages_pending: list[str]
    lifecycle_stream: str
    idempotency_key: str | None = None
    batch_id: str | None = None
    excluded_from_recall: bool = False
