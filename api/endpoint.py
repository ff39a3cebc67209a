"""What does every route have in common?

One `Endpoint` says method, path, capability, stability, types and handler; routing, documentation
and the OpenAPI page follow from it. Here is the one place for the caller, the body's limits, the
headers and the rendering of errors: a handler decodes nothing and encodes nothing.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError

from api.auth import identify
from api.decode import decode_body, decode_query
from api.errors import extra_headers, render, status_of
from engine import policy
from engine.engine import Engine
from engine.metrics import RequestCounts
from schemas import limits
from schemas.caller import Caller, Origin
from schemas.errors import (
    BodyTimeout,
    BodyTooLarge,
    EngineError,
    Internal,
    InvalidBody,
    UnsupportedMediaType,
)

STABLE: Final = "stable"
BETA: Final = "beta"
EXPERIMENTAL: Final = "experimental"

Asgi = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_json = msgspec.json.Encoder().encode
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")
_JSON_TYPES = (b"application/json", b"")


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No query parameters."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A decoded request."""

    engine: Engine
    caller: Caller
    path: dict[str, str]
    query: Any
    body: Any
    headers: dict[bytes, bytes]
    counts: RequestCounts
    table: tuple[Any, ...]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What a handler answers."""

    value: Any = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    raw: bytes | None = None
    media_type: bytes = b"application/json"
    stream: AsyncIterator[bytes] | None = None


Handler = Callable[[Call], Awaitable[Reply]] | Callable[[Call], Reply]


@dataclass(frozen=True)
class Endpoint:
    """One route, and all there is to say about it."""

    method: str
    path: str
    handler: Handler
    summary: str
    capability: str | None = None
    tier: str = STABLE
    query: type[msgspec.Struct] = Nothing
    body: Any = None
    body_optional: bool = False
    body_max: int = limits.BODY_BYTES_MAX
    invalid: type[EngineError] = InvalidBody
    response: Any = None
    statuses: tuple[int, ...] = (200,)
    media_type: str = "application/json"
    errors: tuple[type[EngineError], ...] = ()
    off_loop: bool = False
    header_names: tuple[str, ...] = ()
    decoder: Any = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.body is not None:
            object.__setattr__(self, "decoder", msgspec.json.Decoder(self.body))


class Served:
    """An endpoint bound to an engine: an ASGI application."""

    def __init__(
        self,
        endpoint: Endpoint,
        engine: Engine,
        counts: RequestCounts,
        table: tuple[Endpoint, ...],
    ) -> None:
        self.endpoint = endpoint
        self._table = table
        self._defaults: Any = None
        self._engine = engine
        self._counts = counts
        headers = [(b"x-cortex-stability", endpoint.tier.encode())]
        if endpoint.capability is not None:
            decision = policy.decide(engine.settings.preset, endpoint.capability)
            word = "allow" if decision.allowed else "deny"
            said = f"tier={decision.tier}; decision={word}; capability={endpoint.capability}"
            headers.append((b"x-cortex-policy", said.encode()))
        self._headers = headers

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong is said in the envelope."""
        clock = self._engine.clock
        started = clock.elapsed_s()
        headers = dict(scope["headers"])
        request_id = request_id_of(headers) or clock.new_id("req")
        try:
            reply = await self._answer(scope, receive, headers, request_id)
        except EngineError as error:
            status = status_of(error)
            await self._send_error(send, error, request_id)
        except Exception as error:  # the outermost handler: a bug becomes a visible 500
            status = 500
            await self._send_error(send, Internal(reason=repr(error)), request_id)
            self._count(status, started)
            raise
        else:
            status = reply.status
            await self._send(scope, receive, send, reply, request_id)
        self._count(status, started)

    def _no_query(self) -> Any:
        """Defaults of every parameter, made once; where one is required, its absence is said."""
        if self._defaults is None:
            self._defaults = decode_query(self.endpoint.query, b"")
        return self._defaults

    def _count(self, status: int, started: float) -> None:
        place = (self.endpoint.method, self.endpoint.path, status)
        counted = self._counts.get(place)
        if counted is None:
            counted = self._counts[place] = [0, 0.0]
        counted[0] += 1
        counted[1] += self._engine.clock.elapsed_s() - started

    async def _answer(
        self, scope: Asgi, receive: Receive, headers: dict[bytes, bytes], request_id: str
    ) -> Reply:
        endpoint, engine = self.endpoint, self._engine
        started_us = engine.clock.now_us()
        raw = b""
        if endpoint.decoder is not None:
            check_media_type(headers)
            raw = await read_body(receive, headers, endpoint.body_max)
        client = scope.get("client")
        origin = Origin(
            request_id=request_id,
            method=endpoint.method,
            path=scope["path"],
            client_ip=client[0] if client else None,
            user_agent=headers.get(b"user-agent", b"").decode("latin-1")[:200] or None,
            body=raw,
            headers=scope["headers"],
            started_us=started_us,
        )
        caller = identify(engine.settings, headers, origin)
        asked = scope["query_string"]
        query = decode_query(endpoint.query, asked) if asked else self._no_query()
        body = None
        if endpoint.decoder is not None and (raw or not endpoint.body_optional):
            body = decode_body(endpoint.decoder, raw, endpoint.invalid)
        path = scope.get("path_params") or {}
        call = Call(engine, caller, path, query, body, headers, self._counts, self._table)
        if endpoint.off_loop:
            return await asyncio.to_thread(endpoint.handler, call)  # type: ignore[arg-type]
        answer = endpoint.handler(call)
        return answer if isinstance(answer, Reply) else await answer

    async def _send(
        self, scope: Asgi, receive: Receive, send: Send, reply: Reply, request_id: str
    ) -> None:
        headers = [*self._headers, *reply.headers, (b"x-cortex-request-id", request_id.encode())]
        if reply.stream is not None:
            response = EventSourceResponse(
                reply.stream,
                ping=int(limits.HEARTBEAT_S),
                send_timeout=limits.LAG_S_MAX,
                headers={name.decode(): value.decode() for name, value in headers},
            )
            # A client that does not read is cut off; it resumes from its last id.
            with contextlib.suppress(SendTimeoutError):
                await response(scope, receive, send)  # type: ignore[arg-type]
            return
        body = reply.raw if reply.raw is not None else _json(reply.value)
        await _send_body(send, reply.status, reply.media_type, body, headers)

    async def _send_error(self, send: Send, error: EngineError, request_id: str) -> None:
        headers = [
            (b"x-cortex-stability", self.endpoint.tier.encode()),
            (b"x-cortex-request-id", request_id.encode()),
            *extra_headers(error),
        ]
        body = render(error, request_id)
        await _send_body(send, status_of(error), b"application/json", body, headers)


async def _send_body(
    send: Send, status: int, media_type: bytes, body: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    headers.append((b"content-type", media_type))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_problem(send: Send, error: EngineError, request_id: str) -> None:
    """An error outside any endpoint: unknown paths and methods."""
    headers = [
        (b"x-cortex-stability", STABLE.encode()),
        (b"x-cortex-request-id", request_id.encode()),
        *extra_headers(error),
    ]
    body = render(error, request_id)
    await _send_body(send, status_of(error), b"application/json", body, headers)


def request_id_of(headers: dict[bytes, bytes]) -> str | None:
    """The client's own correlation id, when it is harmless to echo (001 §6.7)."""
    for name in (b"x-cortex-request-id", b"x-request-id"):
        value = headers.get(name)
        if value is not None and _REQUEST_ID.fullmatch(value):
            return value.decode()
    return None


def check_media_type(headers: dict[bytes, bytes]) -> None:
    """JSON in UTF-8, not compressed; anything else is said at once."""
    given = headers.get(b"content-type", b"")
    kind, _, parameters = given.partition(b";")
    kind = kind.strip().lower()
    if kind not in _JSON_TYPES and not kind.endswith(b"+json"):
        raise UnsupportedMediaType(
            field="Content-Type", reason=f"send application/json, not {kind.decode('latin-1')[:80]}"
        )
    charset = re.search(rb"charset=\"?([^\s;\"]+)", parameters.lower())
    if charset is not None and charset[1] not in (b"utf-8", b"utf8"):
        raise UnsupportedMediaType(field="Content-Type", reason="send UTF-8")
    encoding = headers.get(b"content-encoding", b"identity").lower()
    if encoding != b"identity":
        raise UnsupportedMediaType(field="Content-Encoding", reason="send it uncompressed")


async def read_body(receive: Receive, headers: dict[bytes, bytes], size_max: int) -> bytes:
    """The whole body, counted as it comes, within a deadline."""
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > size_max:
        raise _too_large(size_max)
    whole = _whole(receive, size_max)
    try:
        # Most bodies arrive with their headers: take them in one step, without a timer.
        waiting_for = whole.send(None)
    except StopIteration as done:
        return bytes(done.value)
    try:
        async with asyncio.timeout(limits.BODY_READ_S_MAX):
            return await _Resumed(whole, waiting_for)
    except TimeoutError as error:
        limit_s = limits.BODY_READ_S_MAX
        raise BodyTimeout(field="body", reason=f"{limit_s} s passed", limit_s=limit_s) from error


class _Resumed:
    """Awaits the rest of a coroutine that has taken its first step."""

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, bytes], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Generator[Any, Any, bytes]:
        while True:
            try:
                sent = yield self._waiting_for
            except BaseException as error:  # noqa: BLE001 - also a cancellation: thrown into it
                step: Callable[[Any], Any] = self._coroutine.throw
                argument: Any = error
            else:
                step, argument = self._coroutine.send, sent
            try:
                self._waiting_for = step(argument)
            except StopIteration as done:
                return bytes(done.value)


async def _whole(receive: Receive, size_max: int) -> bytes:
    message = await _part(receive)
    if not message.get("more_body"):
        return _within(message.get("body", b""), size_max)
    parts, size = [], 0
    while True:
        part = message.get("body", b"")
        size += len(part)
        if size > size_max:
            raise _too_large(size_max)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await _part(receive)


async def _part(receive: Receive) -> dict[str, Any]:
    """The next piece of the body; what a client left unfinished is not a shorter body."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise InvalidBody(field="body", reason="the connection closed before it was complete")
    return message


def _too_large(size_max: int) -> BodyTooLarge:
    return BodyTooLarge(field="body", reason=f"at most {size_max} bytes", limit_bytes=size_max)


def _within(body: bytes, size_max: int) -> bytes:
    if len(body) > size_max:
        raise _too_large(size_max)
    return body
