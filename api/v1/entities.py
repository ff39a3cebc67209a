"""Entities: what the facts of a scope speak of, and under which id."""

from typing import Annotated

import msgspec
from msgspec import Meta

from api.decode import PageLimit
from api.endpoint import BETA, Call, Endpoint, Reply
from engine.layers.entities import EntitiesRequest, get_entity, list_entities
from engine.reach import View
from schemas import limits
from schemas.errors import InvalidCursor, InvalidScope, MissingField, NotFound
from schemas.reads import Entity, EntityPage
from schemas.scope import ScopePath

SaidName = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]


class EntitiesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where, and what it is called."""

    scope: ScopePath
    view: View = "local"
    name: SaidName | None = None
    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class EntityQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where."""

    scope: ScopePath


def get_entities(call: Call) -> Reply:
    """A page of entities."""
    request = EntitiesRequest(**msgspec.structs.asdict(call.query))
    return Reply(list_entities(call.engine, call.caller, request))


def get_one(call: Call) -> Reply:
    """One entity."""
    return Reply(get_entity(call.engine, call.caller, call.path["entity_id"], call.query.scope))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/entities",
        get_entities,
        "A page of the things that a scope's facts are about; with a name, what is called so.",
        capability="scope.read.local",
        tier=BETA,
        query=EntitiesQuery,
        response=EntityPage,
        errors=(InvalidScope, InvalidCursor, MissingField),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/entities/{entity_id}",
        get_one,
        "One entity by its id, an actor or a name, as a scope knows it.",
        capability="scope.read.local",
        tier=BETA,
        query=EntityQuery,
        response=Entity,
        errors=(InvalidScope, NotFound, MissingField),
        off_loop=True,
    ),
)
