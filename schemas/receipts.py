"""What does a write answer?  (001 §8.1, §8.2)"""

import msgspec
from msgspec import UNSET, UnsetType


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The event is durable; with `?wait=` also how far it came."""

    event_id: str
    status: str
    wal_offset: int
    # Always sent; optional in the schema, because the seed's own examples leave them out.
    scope: str | UnsetType = UNSET
    durability: str | UnsetType = UNSET
    lifecycle_stream: str | UnsetType = UNSET
    stages_completed: list[str] | UnsetType = UNSET
    derives: list[str] | UnsetType = UNSET
    elapsed_ms: dict[str, float] | UnsetType = UNSET
    replayed_from_idempotency: bool = False
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class BulkReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """All items are durable."""

    batch_id: str
    accepted: int
    lifecycle_stream: str
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    status: str | UnsetType = UNSET
    durability: str | UnsetType = UNSET
    replayed: int = 0
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class WriteStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
