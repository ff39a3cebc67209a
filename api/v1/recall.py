"""Asking memory: a pack, the same pack as a stream, and a recall tried again (001 §8.3, §10)."""

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from api.endpoint import BETA, STABLE, Call, Endpoint, Reply
from engine.recall import recall, recall_stream, replay
from schemas.envelope import IdempotencyKey
from schemas.errors import (
    IdempotencyConflict,
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
    LayerUnavailable,
    MissingField,
    PackExpired,
    UnparseableTemporal,
)
from schemas.pack import RecallRequest, ReplayAnswer, ReplayRequest, StratifiedPack

_REPLAYED: Final = (b"x-cortex-replay", b"true")
_ERRORS: Final = (
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
    UnparseableTemporal,
    IdempotencyConflict,
    PackExpired,
    LayerUnavailable,
)


def post_recall(call: Call) -> Reply:
    """A pack, or a stream of it when the body says so."""
    request = _keyed(call)
    if request.stream:
        return post_stream(call)
    recalled = recall(call.engine, call.caller, request)
    headers = [(b"x-cortex-warning", warning.encode()) for warning in recalled.kept.warnings]
    if recalled.is_replay:
        headers.append(_REPLAYED)
    return Reply(raw=recalled.kept.raw, headers=tuple(headers))


def post_stream(call: Call) -> Reply:
    """The pack as server-sent events."""
    request = msgspec.structs.replace(_keyed(call), stream=True)
    last = call.headers.get(b"last-event-id", b"").decode("latin-1") or None
    return Reply(stream=recall_stream(call.engine, call.caller, request, last))


def post_replay(call: Call) -> Reply:
    """A receipt's recall, tried again as of then."""
    return Reply(replay(call.engine, call.caller, call.body))


def _keyed(call: Call) -> RecallRequest:
    """The request, with the key of its header where the body has none (001 §6.9)."""
    request: RecallRequest = call.body
    given = call.headers.get(b"x-cortex-idempotency-key")
    if given is None or request.idempotency_key is not None:
        return request
    try:
        key = msgspec.convert(given.decode("latin-1"), IdempotencyKey)
    except msgspec.ValidationError as error:
        raise InvalidParameter(field="X-Cortex-Idempotency-Key", reason=str(error)) from error
    return msgspec.structs.replace(request, idempotency_key=key)


def _is_told(body: Any) -> bool:
    """Narratives may still change their form (001 §2.4.3)."""
    return bool(body.view == "narrative")


def _like(call: Call) -> Hashable | None:
    """What a recall is like, as far as its time goes; None for one that may wait for a model."""
    body: RecallRequest = call.body
    if body.stream or body.view == "narrative" or not call.engine.served.embedder.is_at_hand:
        return None
    is_plain = body.temporal is None and body.filters is None
    return call.caller.tenant, body.scope, body.view, body.diagnostics, is_plain


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/recall",
        post_recall,
        "A stratified, cited, budgeted pack that answers a question.",
        capability="scope.read.local",
        tier=STABLE,
        body=RecallRequest,
        response=StratifiedPack,
        errors=_ERRORS,
        off_loop=True,
        promptly=_like,
        is_read=True,
        streams=True,
        is_experimental=_is_told,
        header_names=("Last-Event-ID", "X-Cortex-Idempotency-Key"),
    ),
    Endpoint(
        "POST",
        "/v1/recall/stream",
        post_stream,
        "The same pack as server-sent events, resumable for a minute by Last-Event-ID.",
        capability="scope.read.local",
        tier=STABLE,
        body=RecallRequest,
        response=StratifiedPack,
        media_type="text/event-stream",
        errors=_ERRORS,
        off_loop=True,
        is_read=True,
        is_experimental=_is_told,
        header_names=("Last-Event-ID", "X-Cortex-Idempotency-Key"),
    ),
    Endpoint(
        "POST",
        "/v1/recall/replay",
        post_replay,
        "A recall tried again, as the engine was when its receipt was given out.",
        capability="diagnostics.read",
        tier=BETA,
        body=ReplayRequest,
        response=ReplayAnswer,
        errors=_ERRORS,
        off_loop=True,
        is_read=True,
    ),
)
