"""Watching experiences become memory (001 §8.9)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.decode import split_list
from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.lifecycle import job_filters
from engine.watch import (
    WatchRequest,
    cancel,
    get_lifecycle_event,
    get_memory_event,
    list_lifecycle,
    subscribe,
)
from schemas import limits
from schemas.envelope import EventRef
from schemas.errors import InvalidCursor, InvalidParameter, LifecycleExpired, NotFound, Overloaded
from schemas.lifecycle import (
    CancelReceipt,
    CancelRequest,
    LifecycleEvent,
    LifecyclePage,
    LifecycleRow,
    MemoryEventState,
)
from schemas.scope import ScopePath

BatchRef = Annotated[str, Meta(pattern=r"^batch_[A-Za-z0-9_-]{1,64}$(?!\n)")]


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which announcements; every condition given must hold. `events` is a comma-separated list."""

    scope: ScopePath | None = None
    view: Literal["local", "descend"] = "local"
    event_id: EventRef | None = None
    batch_id: BatchRef | None = None
    job_id: str | None = None
    import_id: str | None = None
    export_id: str | None = None
    erasure_id: str | None = None
    events: str | None = None
    since_lifecycle_id: str | None = None


class PageQuery(StreamQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same conditions, a page at a time."""

    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)] = 100
    cursor: str | None = None


def _watch(query: StreamQuery, since: str | None) -> WatchRequest:
    return WatchRequest(
        scope=query.scope,
        view=query.view,
        event_id=query.event_id,
        batch_id=query.batch_id,
        events=split_list(query.events),
        jobs=job_filters(query),
        since=since,
    )


def get_stream(call: Call) -> Reply:
    """Announcements as they happen."""
    query: StreamQuery = call.query
    resumed = call.headers.get(b"last-event-id", b"").decode("latin-1") or None
    request = _watch(query, resumed or query.since_lifecycle_id)
    stream = subscribe(call.engine, call.caller, request)
    return Reply(stream=stream)


def get_page(call: Call) -> Reply:
    """Announcements of the last hour."""
    query: PageQuery = call.query
    request = msgspec.structs.replace(
        _watch(query, query.since_lifecycle_id), limit=query.limit, cursor=query.cursor
    )
    return Reply(list_lifecycle(call.engine, call.caller, request))


def get_event(call: Call) -> Reply:
    """One announcement."""
    return Reply(get_lifecycle_event(call.engine, call.caller, call.path["lifecycle_id"]))


def get_memory(call: Call) -> Reply:
    """How far one memory event has come."""
    return Reply(get_memory_event(call.engine, call.caller, call.path["event_id"]))


async def post_cancel(call: Call) -> Reply:
    """Stop deriving from one memory event."""
    request = call.body or CancelRequest()
    return Reply(await cancel(call.engine, call.caller, call.path["event_id"], request))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/lifecycle/stream",
        get_stream,
        "Server-sent lifecycle events, with resume by Last-Event-ID.",
        capability="lifecycle.subscribe",
        tier=STABLE,
        query=StreamQuery,
        response=LifecycleEvent,
        media_type="text/event-stream",
        errors=(InvalidParameter, LifecycleExpired, Overloaded),
        header_names=("Last-Event-ID",),
    ),
    Endpoint(
        "GET",
        "/v1/lifecycle",
        get_page,
        "Lifecycle events of the last hour, a page at a time.",
        capability="lifecycle.subscribe",
        tier=STABLE,
        query=PageQuery,
        response=LifecyclePage,
        errors=(InvalidParameter, InvalidCursor, LifecycleExpired),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/lifecycle/event/{lifecycle_id}",
        get_event,
        "One lifecycle event by its id.",
        capability="lifecycle.subscribe",
        tier=STABLE,
        response=LifecycleRow,
        errors=(NotFound, LifecycleExpired),
    ),
    Endpoint(
        "GET",
        "/v1/lifecycle/memory-event/{event_id}",
        get_memory,
        "How far one memory event has come.",
        capability="lifecycle.subscribe",
        tier=STABLE,
        response=MemoryEventState,
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/v1/lifecycle/memory-event/{event_id}/cancel",
        post_cancel,
        "Cancel the stages that have not run and leave the event out of recall.",
        capability="scope.write",
        tier=STABLE,
        body=CancelRequest,
        body_optional=True,
        response=CancelReceipt,
        errors=(NotFound,),
    ),
)
