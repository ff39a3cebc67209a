"""Scopes: register, look up, list, members, delete, prune (001 §8.8)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.endpoint import EXPERIMENTAL, STABLE, Call, Endpoint, Reply
from engine.pruning import prune_scopes
from engine.scopes import (
    ScopesRequest,
    drop_scope,
    get_scope,
    list_scopes,
    register_scope,
    set_members,
)
from schemas import limits
from schemas.errors import (
    IdempotencyConflict,
    InvalidCursor,
    InvalidParameter,
    InvalidScope,
    MissingField,
    NotFound,
    ScopeExists,
    ScopeHasRecords,
    UnregisteredScopeType,
    WalUnavailable,
)
from schemas.scope import ScopePath
from schemas.scopes import (
    MembersReceipt,
    MembersRequest,
    PruneReceipt,
    PruneRequest,
    RegisterRequest,
    ScopePage,
    ScopeRecord,
)

Prefix = Annotated[str, Meta(max_length=limits.SCOPE_CHARS_MAX)]
PageLimit = Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)]


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of scopes."""

    prefix: Prefix | None = None
    auto_provisioned: bool | None = None
    limit: PageLimit | None = None
    cursor: str | None = None


class ScopesQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scope by its path, or a page of them: paths hold slashes, so they are parameters."""

    path: ScopePath | None = None


class PathQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which scope."""

    path: ScopePath


class DeleteQuery(PathQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which scope, and what becomes of its records."""

    records: Literal["keep", "forget"] | None = None


def _page(call: Call) -> ScopePage:
    query: ListQuery = call.query
    request = ScopesRequest(
        prefix=query.prefix or "",
        auto_provisioned=query.auto_provisioned,
        limit=query.limit or limits.PAGE_ITEMS_DEFAULT,
        cursor=query.cursor,
    )
    return list_scopes(call.engine, call.caller, request)


async def post_scope(call: Call) -> Reply:
    """Register a scope."""
    registered = await register_scope(call.engine, call.caller, call.body)
    replay = ((b"x-cortex-replay", b"true"),) if registered.replayed else ()
    return Reply(registered.record, 201, replay)


def get_scopes(call: Call) -> Reply:
    """One scope, or a page of them."""
    query: ScopesQuery = call.query
    if query.path is None:
        return Reply(_page(call))
    for name in ListQuery.__struct_fields__:
        if getattr(query, name) is not None:
            raise InvalidParameter(field=name, reason="`path` asks for one scope, not for a page")
    return Reply(get_scope(call.engine, call.caller, query.path))


def get_list(call: Call) -> Reply:
    """A page of scopes."""
    return Reply(_page(call))


async def put_members(call: Call) -> Reply:
    """Replace a scope's members."""
    members = call.body.members
    return Reply(await set_members(call.engine, call.caller, call.query.path, members))


async def delete_scope(call: Call) -> Reply:
    """Drop a scope's registration."""
    query: DeleteQuery = call.query
    await drop_scope(call.engine, call.caller, query.path, query.records)
    return Reply(status=204, raw=b"")


async def post_prune(call: Call) -> Reply:
    """Find, and perhaps drop, scopes that nobody writes to."""
    return Reply(await prune_scopes(call.engine, call.caller, call.body))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/scopes",
        post_scope,
        "Register a scope with members and policies.",
        capability="policy.administer.scope",
        tier=STABLE,
        body=RegisterRequest,
        response=ScopeRecord,
        statuses=(201,),
        errors=(
            InvalidScope,
            MissingField,
            UnregisteredScopeType,
            ScopeExists,
            IdempotencyConflict,
            WalUnavailable,
        ),
    ),
    Endpoint(
        "GET",
        "/v1/scopes",
        get_scopes,
        "One scope by its path, or a page of registered scopes.",
        capability="scope.read.local",
        tier=STABLE,
        query=ScopesQuery,
        response=(ScopeRecord, ScopePage),
        errors=(InvalidScope, InvalidCursor, NotFound),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/scopes/list",
        get_list,
        "A page of registered scopes.",
        capability="scope.read.local",
        tier=STABLE,
        query=ListQuery,
        response=ScopePage,
        errors=(InvalidCursor,),
        off_loop=True,
    ),
    Endpoint(
        "PUT",
        "/v1/scopes/members",
        put_members,
        "Replace a scope's members, all at once.",
        capability="policy.administer.scope",
        tier=STABLE,
        query=PathQuery,
        body=MembersRequest,
        response=MembersReceipt,
        errors=(InvalidScope, MissingField, NotFound, WalUnavailable),
    ),
    Endpoint(
        "DELETE",
        "/v1/scopes",
        delete_scope,
        "Drop a scope's registration and policy.",
        capability="policy.administer.scope",
        tier=STABLE,
        query=DeleteQuery,
        statuses=(204,),
        errors=(InvalidScope, MissingField, NotFound, ScopeHasRecords, WalUnavailable),
    ),
    Endpoint(
        "POST",
        "/v1/scopes/prune",
        post_prune,
        "Find auto-provisioned scopes without recent writes, and drop them when asked to.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        body=PruneRequest,
        response=PruneReceipt,
        errors=(InvalidCursor, MissingField, WalUnavailable),
    ),
)
