"""Reading events: a page of a scope's, or one by its id (001 §8.7.1)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.decode import split_list
from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.read import EventsRequest, View, get_event, list_events
from schemas import limits
from schemas.errors import (
    InvalidCursor,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    NotFound,
    ResourceDeleted,
)
from schemas.layers import Event, EventPage
from schemas.scope import ScopePath
from schemas.times import Instant

PageLimit = Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)]


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of events; `since` and `until` bound `observed_at`, half-open."""

    scope: ScopePath
    view: View = "local"
    since: Instant | None = None
    until: Instant | None = None
    recorded_since: Instant | None = None
    recorded_until: Instant | None = None
    observed_actor: str | None = None
    subject: str | None = None
    modality: str | None = None
    labels: str | None = None
    order: Literal["newest", "oldest"] = "newest"
    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


def get_events(call: Call) -> Reply:
    """A page of a scope's events."""
    query: EventsQuery = call.query
    fields = msgspec.structs.asdict(query) | {"labels": split_list(query.labels)}
    return Reply(list_events(call.engine, call.caller, EventsRequest(**fields)))


def get_one(call: Call) -> Reply:
    """One event."""
    return Reply(get_event(call.engine, call.caller, call.path["event_id"]))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/events",
        get_events,
        "A page of a scope's events, newest or oldest first.",
        capability="scope.read.local",
        tier=STABLE,
        query=EventsQuery,
        response=EventPage,
        errors=(InvalidScope, InvalidTimestamp, InvalidCursor, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/events/{event_id}",
        get_one,
        "One event by its id.",
        capability="scope.read.local",
        tier=STABLE,
        response=Event,
        errors=(NotFound, ResourceDeleted),
    ),
)
