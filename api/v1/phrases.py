"""Temporal phrases: a tenant's own words for a stretch of time (001 §8.17)."""

from api.decode import PageQuery
from api.endpoint import BETA, Call, Endpoint, Reply
from engine.cursor import PageRequest
from engine.phrases import drop_phrase, list_phrases, register_phrase
from schemas.errors import (
    Conflict,
    IdempotencyConflict,
    InvalidCursor,
    InvalidTimestamp,
    MissingField,
    NotFound,
    WalUnavailable,
)
from schemas.temporal import PhrasePage, PhraseRecord, PhraseRequest


async def post_phrase(call: Call) -> Reply:
    """Register a phrase."""
    registered = await register_phrase(call.engine, call.caller, call.body)
    replay = ((b"x-cortex-replay", b"true"),) if registered.is_replay else ()
    return Reply(registered.record, 201, replay)


def get_phrases(call: Call) -> Reply:
    """A page of phrases."""
    request = PageRequest(limit=call.query.limit, cursor=call.query.cursor)
    return Reply(list_phrases(call.engine, call.caller, request))


async def delete_phrase(call: Call) -> Reply:
    """Drop a phrase."""
    await drop_phrase(call.engine, call.caller, call.path["name"])
    return Reply(status=204, raw=b"")


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/temporal/phrases",
        post_phrase,
        "Register words for a stretch of time.",
        capability="temporal.phrases.write",
        tier=BETA,
        body=PhraseRequest,
        response=PhraseRecord,
        statuses=(201,),
        errors=(MissingField, InvalidTimestamp, Conflict, IdempotencyConflict, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/temporal/phrases",
        get_phrases,
        "A page of the tenant's phrases, in the order of their names.",
        capability="temporal.phrases.read",
        tier=BETA,
        query=PageQuery,
        response=PhrasePage,
        errors=(InvalidCursor,),
        off_loop=True,
    ),
    Endpoint(
        "DELETE",
        "/v1/temporal/phrases/{name}",
        delete_phrase,
        "Take a phrase out of use.",
        capability="temporal.phrases.write",
        tier=BETA,
        statuses=(204,),
        errors=(NotFound, WalUnavailable),
    ),
)
