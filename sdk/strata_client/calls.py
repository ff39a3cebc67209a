"""What is said to the server, and how is its answer read?  No connection is opened here.

A `Route` is one endpoint; an `Ask` what a method of the client makes of its arguments. Together
with the `Session`, which knows who is asking, they make a `Request`; an `Answer` gives back a typed
result or an error.
"""

import inspect
import warnings
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from strata_client.codes import BY_CODE
from strata_client.errors import (
    ApiError,
    BadAnswer,
    Conflict,
    Denied,
    Internal,
    InvalidRequest,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    UnstableEndpoint,
)

T = TypeVar("T")

_encode: Final = msgspec.json.Encoder().encode
_UTF8: Final[dict[Any, tuple[str, ...]]] = {bytes: (), str: ("utf-8",)}
_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


class Route(Struct, Generic[T], frozen=True):
    """One endpoint, and what it answers."""

    method: str
    path: str
    result: Any = None
    """The type of the answer; None for no content, bytes for the bytes themselves."""
    is_safe: bool = False
    """It changes nothing, or nothing twice: it may be sent again when no answer came."""
    also: frozenset[int] = frozenset()
    """Statuses that are no success and answer all the same, as health does when it is not well."""

    def is_answered(self, status: int) -> bool:
        """Whether an answer with this status says what was asked."""
        return status < 400 or status in self.also


class Ask(Struct, frozen=True):
    """What one call of a method asks for."""

    place: tuple[str, ...] = ()
    """The parts of the path, in their order."""
    query: Mapping[str, Any] = {}
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    patience_s: float = 600.0
    """How long to wait for a job at most."""


class Request(Struct, frozen=True):
    """A request as any HTTP library could send it."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None = None


class Answer(Struct, frozen=True):
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""


class Session:
    """Who is asking, from which scope, and what has been warned of already."""

    def __init__(self, scope: str, actor: str | None, *, allow_unstable: bool) -> None:
        self.scope = scope
        self.actor = actor
        self.allow_unstable = allow_unstable
        self._warned: set[tuple[str, str]] = set()

    def request(self, route: Route[Any], ask: Ask, token: str | None) -> Request:
        """The request of a call."""
        headers = dict(ask.headers)
        if self.actor is not None:
            headers["X-Cortex-Actor"] = self.actor
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        content = ask.content
        if ask.body is not None:
            headers["Content-Type"] = "application/json"
            content = _encode(ask.body)
        return Request(route.method, _url(route.path, ask), headers, content)

    def result(self, route: Route[T], answer: Answer) -> T:
        """What an answer says, or the error that it is."""
        if not route.is_answered(answer.status):
            raise error_of(answer)
        self.note_stability(route, answer)
        if route.result is None:
            return None  # type: ignore[return-value]
        if route.result in (bytes, str):
            return route.result(answer.content, *_UTF8[route.result])  # type: ignore[no-any-return]
        try:
            read: T = decoder(route.result).decode(answer.content)
        except msgspec.DecodeError as error:
            raise BadAnswer(f"{route.method} {route.path} answered otherwise: {error}") from error
        return read

    def note_stability(self, route: Route[Any], answer: Answer) -> None:
        """Warn once of an endpoint that may still change (001 §2.4.4)."""
        tier = answer.headers.get("x-cortex-stability", "stable")
        place = (route.method, route.path)
        if tier == "stable" or self.allow_unstable or place in self._warned:
            return
        self._warned.add(place)
        said = f"{route.method} {route.path} is {tier} and may change; allow_unstable=True accepts"
        warnings.warn(f"{said} that", UnstableEndpoint, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the code is that called this client: a warning points there."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level - 1


@cache
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made once."""
    return msgspec.json.Decoder(kind)


def error_of(answer: Answer) -> ApiError:
    """The error that an answer is: by its code where it is known, else by its status."""
    try:
        said = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        # Not ours: a proxy's page, most likely.
        said = {}
    code = str(said.get("error_code", ""))
    kind = BY_CODE.get(code) or _STATUS.get(answer.status)
    if kind is None:
        kind = Internal if answer.status >= 500 else InvalidRequest
    return kind(
        str(said.get("message") or f"The server answered {answer.status}."),
        status=answer.status,
        code=code,
        request_id=said.get("request_id") or answer.headers.get("x-cortex-request-id"),
        details=said.get("details"),
        retriable=said.get("retriable", answer.status in (429, 502, 503, 504)),
        retry_after_s=_seconds(answer.headers.get("retry-after", "")),
        documentation=said.get("documentation"),
    )


def _seconds(said: str) -> float:
    """`Retry-After` in seconds; a date is as good as nothing, the wait is drawn then."""
    return float(said) if said.isdigit() else 0.0


def present(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, without what is None: a server reads absence, and not always null."""
    return {name: value for name, value in given.items() if value is not None}


def _url(path: str, ask: Ask) -> str:
    places = iter(ask.place)
    parts = [
        quote(next(places), safe="") if part.startswith("{") else part for part in path.split("/")
    ]
    query = urlencode([(name, _plain(value)) for name, value in present(ask.query).items()])
    return "/".join(parts) + (f"?{query}" if query else "")


def _plain(value: Any) -> str:
    """A query parameter as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return "..".join("" if one is None else _plain(one) for one in value)  # a window
    return ",".join(map(_plain, value)) if isinstance(value, list) else str(value)
