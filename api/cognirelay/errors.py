"""How does CogniRelay say that something is wrong?  `{"detail": …}`, as its framework does."""

from typing import Any, Final

import msgspec

from api.errors import Refusal, status_of
from api.surface import Dialect
from schemas import errors
from schemas.errors import EngineError
from schemas.surfaces.shapes import BadShape

_json: Final = msgspec.json.Encoder().encode


def refuse(status: int, detail: Any) -> Refusal:
    """The error to raise, in the words of the original."""
    return Refusal(status, detail)


def status(error: EngineError) -> int:
    """What is malformed is 422 here; a scope that is missing reads as policy says."""
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, errors.BodyTooLarge | errors.BodyTimeout | errors.MethodNotAllowed):
        return status_of(error)
    return 422 if isinstance(error, errors.InvalidRequest) else status_of(error)


def detail_of(error: EngineError) -> Any:
    """The detail: a sentence, or the complaints of a validator, each with its place."""
    match error:
        case Refusal(detail=detail):
            return detail
        case BadShape(complaints=complaints):
            return [{"type": one.type, "loc": list(one.loc), "msg": one.msg} for one in complaints]
        case errors.MethodNotAllowed():
            return "Method Not Allowed"
        case errors.InvalidParameter(details=details):
            return [
                {"type": "value_error", "loc": ["query", details.get("field")], "msg": _why(error)}
            ]
        case errors.InvalidRequest(details=details):
            loc = ["body"] if details.get("field") in (None, "body") else ["body", details["field"]]
            return [{"type": "value_error", "loc": loc, "msg": _why(error)}]
        case errors.MissingToken(details=details):
            kind = "Invalid" if details.get("header") == "invalid" else "Missing"
            return f"{kind} Authorization header"
        case errors.Unauthenticated():
            return "Invalid token"
        case errors.NotFound(details=details) if "path" in details:
            return "Not Found"
    return error.message


def _why(error: EngineError) -> str:
    return str(error.details.get("reason") or error.message)


def _render(error: EngineError, request_id: str) -> bytes:
    del request_id
    return _json({"detail": detail_of(error)})


DIALECT: Final = Dialect(_render, status, asserts_actor=False)
