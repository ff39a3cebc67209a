"""What can go wrong, grouped by what to do about it?

Every error the server answers is an `ApiError` with its `code`, `request_id` and `details`; each
code has a class of its own (`strata_client.codes`) under one of the groups here. What never reached
the server, or never came back from it, is a `TransportError`.
"""

from typing import Any


class StrataError(Exception):
    """Anything this client raises on purpose."""


class ApiError(StrataError):
    """The server said no. `code` is for programs, the message for people."""

    def __init__(self, message: str, **said: Any) -> None:
        super().__init__(message)
        self.message = message
        self.status: int = said.get("status", 0)
        self.code: str = said.get("code", "")
        self.request_id: str | None = said.get("request_id")
        self.details: dict[str, Any] = said.get("details") or {}
        self.retriable: bool = bool(said.get("retriable"))
        self.retry_after_s: float = said.get("retry_after_s", 0.0)
        self.documentation: str | None = said.get("documentation")

    def __str__(self) -> str:
        named = f" [{self.code}]" if self.code else ""
        asked = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.message}{named}{asked}"


class InvalidRequest(ApiError):
    """Change the request: the details name the field and the reason."""


class Unauthenticated(ApiError):
    """Present a valid token, and an actor that matches it."""


class Denied(ApiError):
    """Ask for the capability that the details name, at the tier that denied it."""


class NotFound(ApiError):
    """It is not here: check the id, or list what there is."""


class Conflict(ApiError):
    """Read the current state again, then decide; a retry as is fails again."""


class RateLimited(ApiError):
    """Too many requests, also after waiting as often as was allowed."""


class Unavailable(ApiError):
    """The server cannot do it right now, also after waiting as often as was allowed."""


class Internal(ApiError):
    """A bug of the server's: report it with the request id."""


class TransportError(StrataError):
    """The request or its answer did not get through."""


class Unreachable(TransportError):
    """No connection: nothing was sent."""


class TimedOut(TransportError):
    """No answer in time; whether the request was carried out is not known."""


class ConnectionLost(TransportError):
    """The connection ended in the middle; whether the request was carried out is not known."""


class StreamLost(TransportError):
    """A stream ended early and could not be taken up again."""


class BadAnswer(StrataError):
    """The server answered something that is not what the endpoint answers."""


class EmbeddedError(StrataError):
    """The engine could not be opened in this process."""


class UnstableEndpoint(UserWarning):
    """An endpoint that is not stable yet was called; `allow_unstable=True` says that is fine."""
