"""Beliefs: pages, one by its id, why it is held, and how it came about (001 §8.7.5)."""

import msgspec

from api.decode import PageQuery
from api.endpoint import BETA, Call, Endpoint, Reply
from api.v1.temporal import READ_ERRORS, AsOfQuery, LayerQuery, request_of, warned
from engine.layers.beliefs import (
    BeliefsRequest,
    HistoryRequest,
    get_belief,
    get_history,
    list_beliefs,
)
from engine.layers.reasons import explain_belief
from schemas.envelope import Fraction, Name
from schemas.errors import (
    InvalidCursor,
    InvalidTimestamp,
    MissingField,
    NotFound,
    ResourceDeleted,
)
from schemas.layers import Belief, Stance
from schemas.reads import BeliefHistory, BeliefPage, Why


class BeliefsQuery(LayerQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of beliefs."""

    about: Name | None = None
    predicate: Name | None = None
    stance: Stance | None = None
    min_confidence: Fraction | None = None
    include_deprecated: bool = False


class HistoryQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose history."""

    belief_id: Name


class WhyQuery(AsOfQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which belief."""

    belief_id: Name


def get_beliefs(call: Call) -> Reply:
    """A page of a scope's beliefs."""
    answer = list_beliefs(call.engine, call.caller, request_of(BeliefsRequest, call.query))
    return Reply(answer.value, headers=warned(answer))


def get_one(call: Call) -> Reply:
    """One belief."""
    return Reply(get_belief(call.engine, call.caller, call.path["belief_id"], call.query.as_of))


def get_why(call: Call) -> Reply:
    """Why a belief is held."""
    query: WhyQuery = call.query
    return Reply(explain_belief(call.engine, call.caller, query.belief_id, query.as_of))


def get_the_history(call: Call) -> Reply:
    """How a belief came about."""
    request = HistoryRequest(**msgspec.structs.asdict(call.query))
    return Reply(get_history(call.engine, call.caller, request))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/beliefs",
        get_beliefs,
        "A page of a scope's beliefs, newest or oldest first.",
        capability="scope.read.local",
        tier=BETA,
        query=BeliefsQuery,
        response=BeliefPage,
        errors=READ_ERRORS,
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/beliefs/why",
        get_why,
        "What a belief rests on, down to the events, and what that comes to in words.",
        capability="scope.read.local",
        tier=BETA,
        query=WhyQuery,
        response=Why,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/beliefs/history",
        get_the_history,
        "Every version of a belief, newest first.",
        capability="scope.read.local",
        tier=BETA,
        query=HistoryQuery,
        response=BeliefHistory,
        errors=(NotFound, ResourceDeleted, InvalidCursor, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/beliefs/{belief_id}",
        get_one,
        "One belief by its id, as it is known or was known at a moment.",
        capability="scope.read.local",
        tier=BETA,
        query=AsOfQuery,
        response=Belief,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp),
        off_loop=True,
    ),
)
