"""What does every route have in common?

One `Endpoint` says method, path, capability, stability, types and handler; routing, documentation
and the OpenAPI page follow from it. Here is the one place for the caller, the body's limits, the
headers and the rendering of errors: a handler decodes nothing and encodes nothing.
"""

import asyncio
import contextlib
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError

from api.auth import NOBODY, recognise, verify
from api.decode import decode_body, decode_given, decode_query, decode_shaped
from api.errors import extra_headers
from api.principals import Principals
from api.surface import CORE, Dialect
from api.wire import CYCLE, Cycle
from engine.engine import Engine
from engine.metrics import RequestCounts
from engine.rows import About
from schemas import limits
from schemas.caller import Caller, Decision, Origin
from schemas.errors import (
    BodyTimeout,
    BodyTooLarge,
    Denied,
    EngineError,
    Internal,
    InvalidBody,
    NotFound,
    RateLimited,
    UnsupportedMediaType,
)
from schemas.surfaces.shapes import Shape

STABLE: Final = "stable"
BETA: Final = "beta"
EXPERIMENTAL: Final = "experimental"

Asgi = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_json = msgspec.json.Encoder().encode
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")
_REQUEST_ID_HEADERS = (b"x-cortex-request-id", b"x-request-id")
_JSON_TYPES = (b"application/json", b"")
_NO_EXTENSIONS: Final[dict[str, Any]] = {}
_NOTICE = b"may change or go without notice; see /v1/openapi.json for the shape of today"


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
    parts: AsyncIterator[bytes] | None = None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What a handler answers."""

    value: Any = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    raw: bytes | None = None
    media_type: bytes = b"application/json"
    stream: AsyncGenerator[bytes, None] | None = None
    pieces: Iterator[bytes] | None = None
    tier: str | None = None


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
    other_body: Any = None
    """A second shape that is taken when the first does not fit."""
    body_optional: bool = False
    body_max: int = limits.BODY_BYTES_MAX
    invalid: type[EngineError] = InvalidBody
    response: Any = None
    statuses: tuple[int, ...] = (200,)
    media_type: str = "application/json"
    errors: tuple[type[EngineError], ...] = ()
    off_loop: bool = False
    is_open: bool = False
    takes_bytes: bool = False
    is_read: bool = False
    """It asks with a body and changes nothing: charged as a read."""
    streams: bool = False
    """A body may ask for its answer as a stream of server-sent events."""
    is_experimental: Callable[[Any], bool] | None = None
    """Whether a body asks for a part of the endpoint that is not as settled as the rest."""
    header_names: tuple[str, ...] = ()
    dialect: Dialect = CORE
    shape: Shape | None = None
    """What a body of a dialect is checked against, every complaint at once (with `body=Any`)."""
    query_shape: Shape | None = None
    """The same for query parameters; they come as a dictionary."""
    takes_raw: bool = False
    """The body is handed over as bytes: the dialect has its own words for what is no JSON, and a
    shape says only what is published of it."""
    decoder: Any = field(init=False, default=None, compare=False)
    other_decoder: Any = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.body is not None:
            object.__setattr__(self, "decoder", msgspec.json.Decoder(self.body))
        if self.other_body is not None:
            object.__setattr__(self, "other_decoder", msgspec.json.Decoder(self.other_body))


class Served:
    """An endpoint bound to an engine: an ASGI application."""

    def __init__(
        self,
        endpoint: Endpoint,
        engine: Engine,
        counts: RequestCounts,
        table: tuple[Endpoint, ...],
        principals: Principals | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._table = table
        self._defaults: Any = None
        self._engine = engine
        self._counts = counts
        self._stability = _stability(endpoint.tier)
        self._spoken: dict[str, tuple[bytes, bytes]] = {}
        self._who: dict[str, Any] = {
            "is_open": endpoint.is_open,
            "asserts_actor": endpoint.dialect.asserts_actor,
            "principals": principals,
        }
        self._is_write = endpoint.method not in ("GET", "HEAD") and not endpoint.is_read

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong is said in the envelope."""
        clock = self._engine.clock
        started = clock.elapsed_s()
        headers = dict(scope["headers"])
        request_id = request_id_of(headers) or clock.new_id("req")
        limited: Headers = []
        try:
            reply, caller = await self._answer(scope, receive, headers, request_id, limited)
        except EngineError as error:
            status = self.endpoint.dialect.status(error)
            await self._send_error(send, error, request_id, limited)
        except Exception as error:  # the outermost handler: a bug becomes a visible 500
            status = 500
            await self._send_error(send, Internal(reason=repr(error)), request_id, limited)
            self._count(status, started)
            raise
        else:
            status = reply.status
            named = (b"x-cortex-request-id", request_id.encode())
            said = [*self._said(caller, reply.tier), *limited, *reply.headers, named]
            if reply.stream is not None:
                told = self._told(reply.stream, request_id)
                reply = msgspec.structs.replace(reply, stream=told)
            await self._send(scope, receive, send, reply, said)
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
        self,
        scope: Asgi,
        receive: Receive,
        headers: dict[bytes, bytes],
        request_id: str,
        limited: Headers,
    ) -> tuple[Reply, Caller]:
        endpoint, engine = self.endpoint, self._engine
        started_us = engine.clock.now_us()
        caller = recognise(engine, headers, **self._who)
        if caller is None:
            caller = await verify(engine, headers, asserts_actor=self._who["asserts_actor"])
        if endpoint.tier == EXPERIMENTAL:
            self._check_experimental()
        self._charge(caller, limited)
        raw = b""
        cycle = _cycle_of(scope)
        if endpoint.decoder is not None or endpoint.takes_raw:
            if endpoint.shape is None and not endpoint.takes_raw:
                check_media_type(headers)
            at_hand = None if cycle is None else cycle.body_at_hand()
            if at_hand is not None:
                raw = _within(at_hand, endpoint.body_max)
            else:
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
            headers_digest=b"" if cycle is None else cycle.headers_digest,
            started_us=started_us,
        )
        caller = msgspec.structs.replace(caller, origin=origin)
        asked = scope["query_string"]
        if endpoint.query_shape is not None:
            query: Any = decode_given(endpoint.query_shape, asked)
        else:
            query = decode_query(endpoint.query, asked) if asked else self._no_query()
        body: Any = raw if endpoint.takes_raw else None
        if endpoint.shape is not None and not endpoint.takes_raw:
            body = decode_shaped(endpoint.shape, raw)
        elif endpoint.decoder is not None and (raw or not endpoint.body_optional):
            body = decode_body(endpoint.decoder, raw, endpoint.invalid, endpoint.other_decoder)
        path = scope.get("path_params") or {}
        parts = body_parts(receive, headers, endpoint.body_max) if endpoint.takes_bytes else None
        call = Call(engine, caller, path, query, body, headers, self._counts, self._table, parts)
        if endpoint.is_experimental is None or not endpoint.is_experimental(body):
            return await self._audited(call), caller
        self._check_experimental()
        return msgspec.structs.replace(await self._audited(call), tier=EXPERIMENTAL), caller

    async def _audited(self, call: Call) -> Reply:
        """The handler's answer, and one audit row for it, whatever it is (001 §14)."""
        handler = self.endpoint.handler
        try:
            if self.endpoint.off_loop:
                reply: Reply = await asyncio.to_thread(handler, call)  # type: ignore[arg-type]
            else:
                answer = handler(call)
                reply = answer if isinstance(answer, Reply) else await answer
        except Denied as error:
            await self._record_denial(call, error)
            raise
        except EngineError as error:
            self._record(call, self.endpoint.dialect.status(error))
            raise
        except Exception:
            self._record(call, 500)
            raise
        self._record(call, reply.status)
        return reply

    def _record(self, call: Call, status: int) -> None:
        """A row that need not be durable yet, unless a verb wrote one in its own batch."""
        capability, caller = self.endpoint.capability, call.caller
        if capability is None or (caller.origin and caller.tenant in caller.origin.recorded):
            return
        scope = _scope_of(call)
        decision = self._engine.policies.decide(caller, capability, scope)
        if status < 400 and not decision.allowed:
            # The verb asked for less than the table says, and policy let it.
            decision = msgspec.structs.replace(decision, allowed=True)
        self._engine.committer.record_later(caller, decision, About(status=status, scope=scope))

    async def _record_denial(self, call: Call, error: Denied) -> None:
        """A denial is said when its row is durable, and not before."""
        details = error.details
        decision = Decision(
            capability=str(details.get("capability") or self.endpoint.capability or ""),
            allowed=False,
            tier=str(details.get("denied_by_tier") or "deployment"),
            preset=self._engine.policies.preset.name,
        )
        status = self.endpoint.dialect.status(error)
        about = About(status=status, scope=details.get("scope") or _scope_of(call))
        await self._engine.committer.record(call.caller, decision, about)

    def _charge(self, caller: Caller, limited: Headers) -> None:
        """Take a token of the actor's bucket; what is left is said on every answer (001 §6.5)."""
        # Probes without a token share no bucket: one of them could starve the others.
        allowance = (
            None if caller is NOBODY else self._engine.rates.take(caller, is_write=self._is_write)
        )
        if allowance is None:
            return
        limited += [
            (b"x-ratelimit-limit", str(allowance.limit).encode()),
            (b"x-ratelimit-remaining", str(allowance.remaining).encode()),
            (b"x-ratelimit-reset", str(allowance.reset_s).encode()),
        ]
        if not allowance.granted:
            raise RateLimited(
                reason=f"{caller.actor} may make {allowance.limit} at once",
                limit=allowance.limit,
                retry_after_s=allowance.retry_after_s,
            )

    def _check_experimental(self) -> None:
        """The experimental surface is asked for, outside presets that have it on (001 §2.4.3)."""
        engine = self._engine
        if not engine.policies.preset.experimental and not engine.settings.enable_experimental:
            raise NotFound(
                "This endpoint is experimental and not enabled here.",
                path=self.endpoint.path,
                remediation="set CORTEX_ENABLE_EXPERIMENTAL=1",
            )

    def _said(self, caller: Caller, tier: str | None) -> Headers:
        """Stability, and on a gated answer what policy said of its capability (001 §6.8)."""
        capability = self.endpoint.capability
        stability = self._stability if tier is None else _stability(tier)
        if capability is None:
            return [*stability]
        speaker = self._engine.policies.decide(caller, capability, None).tier
        said = self._spoken.get(speaker)
        if said is None:
            text = f"tier={speaker}; decision=allow; capability={capability}"
            said = self._spoken[speaker] = (b"x-cortex-policy", text.encode())
        return [*stability, said]

    async def _told(
        self, stream: AsyncGenerator[bytes, None], request_id: str
    ) -> AsyncGenerator[bytes, None]:
        """The stream; what goes wrong once it has begun gets no status: it is the last event."""
        async with contextlib.aclosing(stream):
            try:
                async for piece in stream:
                    yield piece
            except EngineError as error:
                envelope = self.endpoint.dialect.render(error, request_id)
                yield b"event: error\ndata: %b\n\n" % envelope

    async def _send(
        self,
        scope: Asgi,
        receive: Receive,
        send: Send,
        reply: Reply,
        headers: list[tuple[bytes, bytes]],
    ) -> None:
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
        if reply.pieces is not None:
            await _send_pieces(send, reply, headers)
            return
        body = reply.raw if reply.raw is not None else _json(reply.value)
        headers.append((b"content-type", reply.media_type))
        cycle = _cycle_of(scope)
        if cycle is None or not cycle.answer(reply.status, headers, body):
            await _send_whole(send, reply.status, headers, body)

    async def _send_error(
        self, send: Send, error: EngineError, request_id: str, limited: Headers
    ) -> None:
        headers = [
            *self._stability,
            (b"x-cortex-request-id", request_id.encode()),
            *limited,
            *extra_headers(error),
            (b"content-type", b"application/json"),
        ]
        dialect = self.endpoint.dialect
        body = dialect.render(error, request_id)
        await _send_whole(send, dialect.status(error), headers, body)


def _cycle_of(scope: Asgi) -> Cycle | None:
    """The server's own hold on the request, where the server is ours."""
    found: Cycle | None = scope.get("extensions", _NO_EXTENSIONS).get(CYCLE)
    return found


def _stability(tier: str) -> Headers:
    """How settled an answer's shape is (001 §2.4.4)."""
    said = [(b"x-cortex-stability", tier.encode())]
    return [*said, (b"x-cortex-experimental-notice", _NOTICE)] if tier == EXPERIMENTAL else said


def _scope_of(call: Call) -> str | None:
    """The scope a request names, in its query or its body."""
    for part in (call.query, call.body):
        scope = getattr(part, "scope", None)
        if isinstance(scope, str):
            return scope
    return None


async def _send_whole(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_pieces(send: Send, reply: Reply, headers: list[tuple[bytes, bytes]]) -> None:
    """Bytes that are too many to hold; the handler has said how many."""
    assert reply.pieces is not None
    headers.append((b"content-type", reply.media_type))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    while (piece := await asyncio.to_thread(next, reply.pieces, None)) is not None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def send_problem(
    send: Send, error: EngineError, request_id: str, dialect: Dialect = CORE
) -> None:
    """An error outside any endpoint: unknown paths and methods."""
    headers = [
        (b"x-cortex-stability", STABLE.encode()),
        (b"x-cortex-request-id", request_id.encode()),
        *extra_headers(error),
        (b"content-type", b"application/json"),
    ]
    body = dialect.render(error, request_id)
    await _send_whole(send, dialect.status(error), headers, body)


def request_id_of(headers: dict[bytes, bytes]) -> str | None:
    """The client's own correlation id, when it is harmless to echo (001 §6.7)."""
    for name in _REQUEST_ID_HEADERS:
        if name in headers and _REQUEST_ID.fullmatch(headers[name]):
            return headers[name].decode()
    return None


def check_media_type(headers: dict[bytes, bytes]) -> None:
    """JSON in UTF-8, not compressed; anything else is said at once."""
    given = headers.get(b"content-type", b"")
    if given == b"application/json" and b"content-encoding" not in headers:
        return  # what nearly everyone sends
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


async def body_parts(
    receive: Receive, headers: dict[bytes, bytes], size_max: int
) -> AsyncIterator[bytes]:
    """The body as it comes, for who does not want to hold it; the reader counts."""
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > size_max:
        raise _too_large(size_max)
    more = True
    while more:
        try:
            coming = asyncio.ensure_future(receive())
            message = _arrived(await asyncio.wait_for(coming, limits.BLOB_IDLE_S_MAX))
        except TimeoutError as error:
            limit_s = limits.BLOB_IDLE_S_MAX
            reason = f"nothing came for {limit_s} s"
            raise BodyTimeout(field="body", reason=reason, limit_s=limit_s) from error
        more = bool(message.get("more_body"))
        yield message.get("body", b"")


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
    message = _arrived(await receive())
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
        message = _arrived(await receive())


def _arrived(message: dict[str, Any]) -> dict[str, Any]:
    """The next piece of the body; what a client left unfinished is not a shorter body."""
    if message["type"] == "http.disconnect":
        raise InvalidBody(field="body", reason="the connection closed before it was complete")
    return message


def _too_large(size_max: int) -> BodyTooLarge:
    return BodyTooLarge(field="body", reason=f"at most {size_max} bytes", limit_bytes=size_max)


def _within(body: bytes, size_max: int) -> bytes:
    if len(body) > size_max:
        raise _too_large(size_max)
    return body
