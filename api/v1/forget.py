"""Forgetting, and taking it back (001 §8.5)."""

from api.endpoint import EXPERIMENTAL, STABLE, Call, Endpoint, Reply
from engine.forget import ForgetCall, forget, preview_forget, revert_forget
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
from schemas.forget import ForgetPreview, ForgetReceipt, ForgetRequest, RevertReceipt


async def post_forget(call: Call) -> Reply:
    """Forget."""
    return Reply(await forget(call.engine, call.caller, ForgetCall(body=call.body)))


async def post_preview(call: Call) -> Reply:
    """Show what would be forgotten."""
    return Reply(await preview_forget(call.engine, call.caller, call.body))


async def post_revert(call: Call) -> Reply:
    """Take one back."""
    return Reply(await revert_forget(call.engine, call.caller, call.path["audit_id"]))


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
)
