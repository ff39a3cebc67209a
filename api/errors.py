"""Which status does an error get, and how is it said?  One table, one renderer a surface."""

from typing import Any, Final

import msgspec

from schemas import errors
from schemas.errors import EngineError
from schemas.problem import ErrorEnvelope

STATUS: Final[dict[type[EngineError], int]] = {
    errors.EngineError: 500,
    errors.InvalidRequest: 422,
    errors.InvalidBody: 400,
    errors.MissingField: 400,
    errors.BodyTooLarge: 413,
    errors.BodyTimeout: 408,
    errors.UnsupportedMediaType: 415,
    errors.MethodNotAllowed: 405,
    errors.Unauthenticated: 401,
    errors.Denied: 403,
    errors.NotFound: 404,
    errors.ResourceDeleted: 410,
    errors.LifecycleExpired: 410,
    errors.PackExpired: 410,
    errors.Conflict: 409,
    errors.RateLimited: 429,
    errors.Unavailable: 503,
    errors.Internal: 500,
}
"""A class not listed has the status of its nearest ancestor."""


class Refusal(EngineError):
    """A surface's own answer to what it does not take: its status, and its words."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail


DOCUMENTATION = "/v1/errors/"
"""Every server explains its own codes; a link that needs the network would not do offline."""
_json = msgspec.json.Encoder().encode


def status_of(error: EngineError | type[EngineError]) -> int:
    """The HTTP status of an error, by its class or the nearest ancestor in the table."""
    if isinstance(error, Refusal):
        return error.status
    kind = error if isinstance(error, type) else type(error)
    return next(STATUS[base] for base in kind.__mro__ if base in STATUS)


def render(error: EngineError, request_id: str) -> bytes:
    """The error envelope of 001 §6.6."""
    envelope = ErrorEnvelope(
        error_code=error.code,
        message=error.message,
        request_id=request_id,
        details=_plain(error.details),
        retriable=error.retriable,
        documentation=DOCUMENTATION + error.code,
    )
    return _json(envelope)


def extra_headers(error: EngineError) -> list[tuple[bytes, bytes]]:
    """What some errors say in headers as well."""
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, errors.Unavailable | errors.RateLimited):
        wait = str(error.details.get("retry_after_s", 1))
        headers.append((b"retry-after", wait.encode()))
    if isinstance(error, errors.MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.details.get("allowed", [])).encode()))
    if isinstance(error, errors.BodyTooLarge | errors.BodyTimeout | errors.Internal):
        # The rest of the body is still on its way, or a bug ends the connection: it cannot be
        # used again.
        headers.append((b"connection", b"close"))
    return headers


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Details as JSON can say them."""
    plain: dict[str, Any] = msgspec.to_builtins(details)
    return plain
