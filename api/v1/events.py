"""Reading events: a page of a scope's, or one by its id (001 §8.7.1)."""

from api.decode import split_list
from api.endpoint import STABLE, Call, Endpoint, Reply
from api.v1.temporal import READ_ERRORS, LayerQuery, request_of, warned
from engine.read import EventsRequest, get_event, list_events
from schemas.errors import NotFound, ResourceDeleted
from schemas.layers import Event
from schemas.reads import EventPage
from schemas.times import Instant


class EventsQuery(LayerQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of events; `since` and `until` bound `observed_at`, half-open."""

    since: Instant | None = None
    until: Instant | None = None
    recorded_since: Instant | None = None
    recorded_until: Instant | None = None
    observed_actor: str | None = None
    subject: str | None = None
    modality: str | None = None
    labels: str | None = None


def get_events(call: Call) -> Reply:
    """A page of a scope's events."""
    labels = split_list(call.query.labels)
    request = request_of(EventsRequest, call.query, labels=labels)
    answer = list_events(call.engine, call.caller, request)
    return Reply(answer.value, headers=warned(answer))


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
        errors=READ_ERRORS,
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
