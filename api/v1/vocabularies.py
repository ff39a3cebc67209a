"""Vocabularies: a tenant's own terms for predicates and relations (001 §8.14)."""

from api.decode import PageQuery
from api.endpoint import BETA, Call, Endpoint, Reply
from engine.cursor import PageRequest
from engine.vocabularies import (
    Registered,
    drop_vocabulary,
    get_vocabulary,
    list_vocabularies,
    register_vocabulary,
    replace_vocabulary,
)
from schemas.errors import (
    Conflict,
    IdempotencyConflict,
    InvalidCursor,
    InvalidScope,
    MissingField,
    NotFound,
    WalUnavailable,
)
from schemas.vocabularies import (
    VocabularyPage,
    VocabularyRecord,
    VocabularyRequest,
    VocabularyUpdate,
)


def _reply(registered: Registered, status: int) -> Reply:
    replay = ((b"x-cortex-replay", b"true"),) if registered.is_replay else ()
    return Reply(registered.record, status, replay)


async def post_vocabulary(call: Call) -> Reply:
    """Register a vocabulary."""
    return _reply(await register_vocabulary(call.engine, call.caller, call.body), 201)


async def put_vocabulary(call: Call) -> Reply:
    """Replace a vocabulary."""
    name = call.path["name"]
    return _reply(await replace_vocabulary(call.engine, call.caller, name, call.body), 200)


async def delete_vocabulary(call: Call) -> Reply:
    """Drop a vocabulary."""
    await drop_vocabulary(call.engine, call.caller, call.path["name"])
    return Reply(status=204, raw=b"")


def get_one(call: Call) -> Reply:
    """One vocabulary."""
    return Reply(get_vocabulary(call.engine, call.caller, call.path["name"]))


def get_page(call: Call) -> Reply:
    """A page of vocabularies."""
    request = PageRequest(limit=call.query.limit, cursor=call.query.cursor)
    return Reply(list_vocabularies(call.engine, call.caller, request))


_WRITING = (MissingField, InvalidScope, Conflict, IdempotencyConflict, WalUnavailable)

ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/vocabularies",
        post_vocabulary,
        "Register a vocabulary of predicates or relations.",
        capability="policy.administer.tenant",
        tier=BETA,
        body=VocabularyRequest,
        response=VocabularyRecord,
        statuses=(201,),
        errors=_WRITING,
    ),
    Endpoint(
        "GET",
        "/v1/vocabularies",
        get_page,
        "A page of the tenant's vocabularies, in the order of their names.",
        capability="vocabulary.read",
        tier=BETA,
        query=PageQuery,
        response=VocabularyPage,
        errors=(InvalidCursor,),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/vocabularies/{name}",
        get_one,
        "One vocabulary by its name.",
        capability="vocabulary.read",
        tier=BETA,
        response=VocabularyRecord,
        errors=(NotFound,),
    ),
    Endpoint(
        "PUT",
        "/v1/vocabularies/{name}",
        put_vocabulary,
        "Replace a vocabulary; facts keep the terms they have.",
        capability="policy.administer.tenant",
        tier=BETA,
        body=VocabularyUpdate,
        response=VocabularyRecord,
        errors=(NotFound, *_WRITING),
    ),
    Endpoint(
        "DELETE",
        "/v1/vocabularies/{name}",
        delete_vocabulary,
        "Take a vocabulary out of use; facts keep the terms they have.",
        capability="policy.administer.tenant",
        tier=BETA,
        statuses=(204,),
        errors=(NotFound, WalUnavailable),
    ),
)
