"""Erasing for good: previews, manifests, jobs, and legal holds (001 §8.6)."""

import msgspec

from api.decode import PageLimit
from api.endpoint import EXPERIMENTAL, Call, Endpoint, Reply
from engine.erase import (
    ManifestRequest,
    cancel_erasure,
    get_erasure,
    get_erasure_manifest,
    get_hold,
    get_manifest,
    preview_erasure,
    set_hold,
    start_erasure,
)
from schemas import limits
from schemas.erasures import (
    ErasureCancel,
    ErasurePreview,
    ErasureReceipt,
    ErasureRequest,
    ErasureState,
    Manifest,
)
from schemas.errors import (
    AmbiguousConfirmAll,
    Conflict,
    EmptySelector,
    IdempotencyConflict,
    InvalidCursor,
    InvalidParameter,
    InvalidScope,
    MissingField,
    NotFound,
    WalUnavailable,
)
from schemas.forget import Hold, HoldRequest
from schemas.scope import ScopePath

GDPR = "forget.gdpr"


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page."""

    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class HoldQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which scope."""

    path: ScopePath


def _asked(call: Call, name: str) -> ManifestRequest:
    return ManifestRequest(id=call.path[name], limit=call.query.limit, cursor=call.query.cursor)


async def post_preview(call: Call) -> Reply:
    """Show what would be erased."""
    return Reply(await preview_erasure(call.engine, call.caller, call.body))


def read_plan(call: Call) -> Reply:
    """A page of a preview's plan."""
    return Reply(get_manifest(call.engine, call.caller, _asked(call, "preview_id")))


def read_manifest(call: Call) -> Reply:
    """A page of what an erasure has named."""
    return Reply(get_erasure_manifest(call.engine, call.caller, _asked(call, "erasure_id")))


async def post_erasure(call: Call) -> Reply:
    """Begin one."""
    started = await start_erasure(call.engine, call.caller, call.body)
    replay = ((b"x-cortex-replay", b"true"),) if started.is_replay else ()
    return Reply(started.receipt, 202, replay)


def read_erasure(call: Call) -> Reply:
    """How far it is."""
    return Reply(get_erasure(call.engine, call.caller, call.path["erasure_id"]))


async def post_cancel(call: Call) -> Reply:
    """Stop it where it can."""
    return Reply(await cancel_erasure(call.engine, call.caller, call.path["erasure_id"]), 202)


async def put_hold(call: Call) -> Reply:
    """Begin or end a hold."""
    return Reply(await set_hold(call.engine, call.caller, call.query.path, call.body))


def read_hold(call: Call) -> Reply:
    """Whether a scope is held."""
    return Reply(get_hold(call.engine, call.caller, call.query.path))


_ERRORS = (EmptySelector, AmbiguousConfirmAll, InvalidParameter, InvalidScope)

ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/erasures/preview",
        post_preview,
        "What an erasure would do now; nothing changes.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        body=ErasureRequest,
        response=ErasurePreview,
        errors=_ERRORS,
    ),
    Endpoint(
        "GET",
        "/v1/erasures/preview/{preview_id}/manifest",
        read_plan,
        "The plan of a preview, line by line.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        query=PageQuery,
        response=Manifest,
        errors=(NotFound, InvalidCursor),
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/erasures",
        post_erasure,
        "Erase a scope and all below it, or single memories there.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        body=ErasureRequest,
        response=ErasureReceipt,
        statuses=(202,),
        errors=(*_ERRORS, NotFound, Conflict, IdempotencyConflict, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/erasures/{erasure_id}",
        read_erasure,
        "How far an erasure is.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        response=ErasureState,
        errors=(NotFound,),
    ),
    Endpoint(
        "GET",
        "/v1/erasures/{erasure_id}/manifest",
        read_manifest,
        "What an erasure has named so far, line by line.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        query=PageQuery,
        response=Manifest,
        errors=(NotFound, InvalidCursor),
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/erasures/{erasure_id}/cancel",
        post_cancel,
        "Stop an erasure at the next boundary of its phases.",
        capability=GDPR,
        tier=EXPERIMENTAL,
        response=ErasureCancel,
        statuses=(202,),
        errors=(NotFound, WalUnavailable),
    ),
    Endpoint(
        "PUT",
        "/v1/scopes/hold",
        put_hold,
        "Begin or end a legal hold on a scope and all below it.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        query=HoldQuery,
        body=HoldRequest,
        response=Hold,
        errors=(InvalidScope, MissingField, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/scopes/hold",
        read_hold,
        "Whether a scope may not be erased.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        query=HoldQuery,
        response=Hold,
        errors=(InvalidScope, MissingField),
    ),
)
