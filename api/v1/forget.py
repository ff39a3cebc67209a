"""Forgetting, taking it back, and taking out what a poisoned source brought (001 §8.5)."""

import msgspec

from api.endpoint import EXPERIMENTAL, STABLE, Call, Endpoint, Reply
from engine.forget import ForgetCall, forget, preview_forget, rebuild_all, revert_forget
from engine.rollback import get_rollback, roll_back, undo_rollback
from schemas.errors import (
    AmbiguousConfirmAll,
    Conflict,
    EmptySelector,
    IdempotencyConflict,
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
    NotFound,
    WalUnavailable,
)
from schemas.forget import (
    ForgetPreview,
    ForgetReceipt,
    ForgetRequest,
    RevertReceipt,
    RollbackReceipt,
    RollbackRequest,
)
from schemas.health import RebuildReceipt


class RebuildQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether what was forgotten is derived again."""

    ignore_forgets: bool = False


async def post_forget(call: Call) -> Reply:
    """Forget."""
    return Reply(await forget(call.engine, call.caller, ForgetCall(body=call.body)))


async def post_preview(call: Call) -> Reply:
    """Show what would be forgotten."""
    return Reply(await preview_forget(call.engine, call.caller, call.body))


async def post_revert(call: Call) -> Reply:
    """Take one back."""
    return Reply(await revert_forget(call.engine, call.caller, call.path["audit_id"]))


async def post_rebuild(call: Call) -> Reply:
    """Build every view anew."""
    ignores = call.query.ignore_forgets
    return Reply(await rebuild_all(call.engine, call.caller, ignore_forgets=ignores), 202)


async def post_rollback(call: Call) -> Reply:
    """Take events out of derivation, or count what that would do."""
    return Reply(await roll_back(call.engine, call.caller, call.body))


def read_rollback(call: Call) -> Reply:
    """One rollback."""
    return Reply(get_rollback(call.engine, call.caller, call.path["rollback_id"]))


async def post_undo(call: Call) -> Reply:
    """Let the events count again."""
    return Reply(await undo_rollback(call.engine, call.caller, call.path["rollback_id"]))


_ERRORS = (
    EmptySelector,
    AmbiguousConfirmAll,
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
)

ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/forget",
        post_forget,
        "Forget what was derived in a scope, or blank its events.",
        capability="forget.cascade.derived_only",
        tier=STABLE,
        body=ForgetRequest,
        response=ForgetReceipt,
        errors=(*_ERRORS, NotFound, Conflict, IdempotencyConflict, WalUnavailable),
    ),
    Endpoint(
        "POST",
        "/v1/forget/preview",
        post_preview,
        "What a forget would do now; nothing changes.",
        capability="forget.cascade.derived_only",
        tier=STABLE,
        body=ForgetRequest,
        response=ForgetPreview,
        errors=_ERRORS,
        is_read=True,
    ),
    Endpoint(
        "POST",
        "/v1/forget/{audit_id}/revert",
        post_revert,
        "Take back a forget of derived records, within a day.",
        capability="forget.cascade.derived_only",
        tier=EXPERIMENTAL,
        response=RevertReceipt,
        errors=(NotFound, Conflict, WalUnavailable),
    ),
    Endpoint(
        "POST",
        "/v1/admin/rebuild",
        post_rebuild,
        "Build every staged view anew; with ignore_forgets also what was forgotten.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        query=RebuildQuery,
        response=RebuildReceipt,
        statuses=(202,),
        errors=(WalUnavailable,),
    ),
    Endpoint(
        "POST",
        "/v1/admin/rollback",
        post_rollback,
        "Take the events of a caller, an actor or a time out of derivation.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        body=RollbackRequest,
        response=RollbackReceipt,
        errors=(InvalidParameter, InvalidScope, InvalidTimestamp, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/admin/rollback/{rollback_id}",
        read_rollback,
        "A rollback, and how many records there are now.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        response=RollbackReceipt,
        errors=(NotFound,),
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/admin/rollback/{rollback_id}/revert",
        post_undo,
        "Let the events of a rollback count again.",
        capability="policy.administer.tenant",
        tier=EXPERIMENTAL,
        response=RollbackReceipt,
        errors=(NotFound, WalUnavailable),
    ),
)
