"""Understanding: concepts, what they are related to, and how much they cover (001 §8.7.7)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from api.decode import PageQuery
from api.endpoint import BETA, EXPERIMENTAL, Call, Endpoint, Reply
from api.v1.temporal import READ_ERRORS, AsOfQuery, LayerQuery, request_of, warned
from engine.layers.synthesis import get_synthesis, synthesize
from engine.layers.understanding import (
    ConceptRequest,
    ConceptsRequest,
    RelatedRequest,
    get_concept,
    get_coverage,
    list_concepts,
    list_related,
)
from schemas import limits
from schemas.envelope import Name
from schemas.errors import (
    IdempotencyConflict,
    InvalidCursor,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    NotFound,
    ResourceDeleted,
    WalUnavailable,
)
from schemas.layers import Concept
from schemas.reads import (
    ConceptPage,
    Coverage,
    RelatedPage,
    SynthesisState,
    SynthesizeReceipt,
    SynthesizeRequest,
)
from schemas.scope import ScopePath

Depth = Annotated[int, Meta(ge=0, le=limits.RELATED_DEPTH_MAX)]
Steps = Annotated[int, Meta(ge=1, le=limits.RELATED_DEPTH_MAX)]


class ConceptsQuery(LayerQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of concepts."""

    topic: Name | None = None
    depth: Depth = 0
    include_deprecated: bool = False


class ConceptQuery(AsOfQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version."""

    version: Annotated[int, Meta(ge=1)] | None = None


class RelatedQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By which relation, how far."""

    relation: Name | None = None
    depth: Steps = 1
    as_of: str | None = None
    include_deprecated: bool = False


class CoverageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of what."""

    scope: ScopePath


def get_concepts(call: Call) -> Reply:
    """A page of a scope's concepts."""
    answer = list_concepts(call.engine, call.caller, request_of(ConceptsRequest, call.query))
    return Reply(answer.value, headers=warned(answer))


def get_one(call: Call) -> Reply:
    """One concept."""
    fields = msgspec.structs.asdict(call.query)
    request = ConceptRequest(concept_id=call.path["concept_id"], **fields)
    return Reply(get_concept(call.engine, call.caller, request))


def get_related(call: Call) -> Reply:
    """A page of what a concept is related to."""
    fields = msgspec.structs.asdict(call.query)
    request = RelatedRequest(concept_id=call.path["concept_id"], **fields)
    return Reply(list_related(call.engine, call.caller, request))


def get_the_coverage(call: Call) -> Reply:
    """How much is understood."""
    return Reply(get_coverage(call.engine, call.caller, call.query.scope))


async def post_synthesize(call: Call) -> Reply:
    """Begin a synthesis."""
    started = await synthesize(call.engine, call.caller, call.body)
    replay = ((b"x-cortex-replay", b"true"),) if started.is_replay else ()
    return Reply(started.receipt, 202, replay)


def get_the_synthesis(call: Call) -> Reply:
    """How far a synthesis is."""
    return Reply(get_synthesis(call.engine, call.caller, call.path["job_id"]))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/understanding/synthesize",
        post_synthesize,
        "Make the concepts of a scope anew, as a job.",
        capability="understanding.synthesize",
        tier=EXPERIMENTAL,
        body=SynthesizeRequest,
        response=SynthesizeReceipt,
        statuses=(202,),
        errors=(InvalidScope, MissingField, IdempotencyConflict, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/understanding/synthesize/{job_id}",
        get_the_synthesis,
        "How far a synthesis is.",
        capability="understanding.synthesize",
        tier=EXPERIMENTAL,
        response=SynthesisState,
        errors=(NotFound,),
    ),
    Endpoint(
        "GET",
        "/v1/understanding",
        get_concepts,
        "A page of a scope's concepts, newest or oldest first.",
        capability="understanding.read",
        tier=BETA,
        query=ConceptsQuery,
        response=ConceptPage,
        errors=READ_ERRORS,
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/understanding/coverage",
        get_the_coverage,
        "How many concepts a scope has, about what, and how far they are behind.",
        capability="understanding.read",
        tier=BETA,
        query=CoverageQuery,
        response=Coverage,
        errors=(InvalidScope, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/understanding/{concept_id}",
        get_one,
        "One concept by its id: as it is, as it was known at a moment, or one of its versions.",
        capability="understanding.read",
        tier=BETA,
        query=ConceptQuery,
        response=Concept,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/understanding/{concept_id}/related",
        get_related,
        "A page of the concepts that relations lead to from one, nearest first.",
        capability="understanding.read",
        tier=BETA,
        query=RelatedQuery,
        response=RelatedPage,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp, InvalidCursor),
        off_loop=True,
    ),
)
