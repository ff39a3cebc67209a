"""Facts: pages, one by its id, the timeline of a predicate, and conflicts (001 §8.7.3)."""

import msgspec

from api.decode import PageLimit
from api.endpoint import STABLE, Call, Endpoint, Reply
from api.v1.temporal import (
    READ_ERRORS,
    AsOfQuery,
    LayerQuery,
    TemporalQuery,
    request_of,
    warned,
)
from engine.layers.facts import (
    FactsRequest,
    TimelineRequest,
    get_fact,
    get_timeline,
    list_conflicts,
    list_facts,
)
from engine.layers.pages import LayerRequest, Order
from engine.reach import View
from schemas import limits
from schemas.envelope import Fraction, Name
from schemas.errors import (
    InvalidCursor,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    NotFound,
    ResourceDeleted,
)
from schemas.layers import Fact, Polarity
from schemas.reads import ConflictPage, FactPage, FactTimeline
from schemas.scope import ScopePath


class FactsQuery(LayerQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of facts."""

    subject: Name | None = None
    predicate: Name | None = None
    object: str | None = None
    polarity: Polarity | None = None
    min_confidence: Fraction | None = None


class TimelineQuery(TemporalQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of what, where."""

    scope: ScopePath
    subject: Name
    predicate: Name
    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class ConflictsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where."""

    scope: ScopePath
    view: View = "local"
    order: Order = "newest"
    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


def get_facts(call: Call) -> Reply:
    """A page of a scope's facts."""
    answer = list_facts(call.engine, call.caller, request_of(FactsRequest, call.query))
    return Reply(answer.value, headers=warned(answer))


def get_one(call: Call) -> Reply:
    """One fact."""
    return Reply(get_fact(call.engine, call.caller, call.path["fact_id"], call.query.as_of))


def get_the_timeline(call: Call) -> Reply:
    """What was so, in the order of time."""
    answer = get_timeline(call.engine, call.caller, request_of(TimelineRequest, call.query))
    return Reply(answer.value, headers=warned(answer))


def get_conflicts(call: Call) -> Reply:
    """A page of a scope's conflicts."""
    request = LayerRequest(**msgspec.structs.asdict(call.query))
    return Reply(list_conflicts(call.engine, call.caller, request))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/facts",
        get_facts,
        "A page of a scope's facts, newest or oldest first.",
        capability="scope.read.local",
        tier=STABLE,
        query=FactsQuery,
        response=FactPage,
        errors=READ_ERRORS,
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/facts/timeline",
        get_the_timeline,
        "What was so of a subject and a predicate, in the order of time.",
        capability="scope.read.local",
        tier=STABLE,
        query=TimelineQuery,
        response=FactTimeline,
        errors=(*READ_ERRORS, NotFound),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/facts/conflicts",
        get_conflicts,
        "A page of claims in a scope that did not simply give way to each other.",
        capability="scope.read.local",
        tier=STABLE,
        query=ConflictsQuery,
        response=ConflictPage,
        errors=(InvalidScope, InvalidCursor, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/facts/{fact_id}",
        get_one,
        "One fact by its id, as it is known or was known at a moment.",
        capability="scope.read.local",
        tier=STABLE,
        query=AsOfQuery,
        response=Fact,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp),
        off_loop=True,
    ),
)
