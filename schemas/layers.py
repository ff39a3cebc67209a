"""What do readers get?  The event as a record (001 §7.1); the derived layers join it here."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas.envelope import Actor, Content, Directives
from schemas.times import Instant

DerivedRef = Annotated[
    str, Meta(pattern=r"^(evt_|ep_|fact_|belief_|concept_|redacted:[a-z]+_)[A-Za-z0-9_-]+$(?!\n)")
]
"""A back-pointer of an event; what was erased stays visible as `redacted:<id>` (001 §18.2.2)."""


class EventContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The submitted context, with the server's own time of recording."""

    observed_at: Instant
    recorded_at: Instant
    source_recorded_at: Instant | None = None
    location: str | dict[str, Any] | None = None
    preceded_by: list[str] = []
    intent: str | None = None
    labels: list[str] = []
    timezone: str | None = None
    refers_to: list[dict[str, Any]] = []


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One memory event. Immutable; `content` is as it was submitted."""

    id: str
    scope: str
    actor: str
    modality: str
    content: Content
    context: EventContext
    derives: list[DerivedRef]
    wal_offset: int
    tenant_id: str | UnsetType = UNSET
    caller: str | UnsetType = UNSET
    observed_actor: Actor | UnsetType = UNSET
    subject: Actor | UnsetType = UNSET
    directives: Directives | None = None
    idempotency_key: str | UnsetType = UNSET
    batch_id: str | None = None
    language: str | None = None
    scripts: list[str] = []
    source: dict[str, Any] | None = None
    excluded_from_recall: bool = False


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events."""

    items: list[Event]
    next_cursor: str | None
    has_more: bool
