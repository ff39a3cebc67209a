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
    Hashable,
    Iterator,
)
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError

from api.auth import NOBODY, recognise, verify
from api.bodies import Receive, body_parts, check_media_type, read_body, within
from api.decode import decode_body, decode_given, decode_query, decode_shaped
from api.errors import extra_headers
from api.principals import Principals
from api.promptly import Promptness
from api.surface import CORE, Dialect
from api.wire import CYCLE, Cycle, lines_of
from engine.engine import Engine
from engine.metrics import RequestCounts
from engine.rows import About
from schemas import limits
from schemas.caller import Caller, Decision, Origin
from schemas.errors import (
    Denied,
    EngineError,
    Internal,
    InvalidBody,
    NotFound,
    RateLimited,
)
from schemas.surfaces.shapes import Shape

STABLE: Final = "stable"
BETA: Final = "beta"
EXPERIMENTAL: Final = "experimental"

Asgi = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_json = msgspec.json.Encoder().encode
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")
_REQUEST_ID_HEADERS = (b"x-cortex-request-id", b"x-request-id")
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


class Said(msgspec.Struct, frozen=True, gc=False):
    """The headers that answers of a kind share: as they are, and as lines where those can be."""

    headers: Headers
    lines: bytes | None


class Asked:
    """What follows from a request's head alone, for an endpoint: the same head asks the same."""

    __slots__ = (
        "_client_ip",
        "_digest",
        "_given",
        "_method",
        "_path",
        "_user_agent",
        "by",
        "headers",
        "is_readable",
        "query",
        "request_id",
    )

    def __init__(self, by: "Served", scope: Asgi, digest: bytes) -> None:
        self.by = by
        self._given: Headers = scope["headers"]
        self._digest = digest
        self._method, self._path = by.endpoint.method, scope["path"]
        self.headers = dict(self._given)
        client = scope.get("client")
        self._client_ip: str | None = client[0] if client else None
        agent = self.headers.get(b"user-agent", b"").decode("latin-1")
        self._user_agent = agent[:200] or None
        self.request_id = request_id_of(self.headers)
        self.is_readable = False
        """Whether its body is known to be of a type that is read here."""
        self.query: Any = None

    def calling(self, caller: Caller, request_id: str, body: bytes, started_us: int) -> Caller:
        """The caller, with where the call came from."""
        origin = Origin(
            request_id=request_id,
            method=self._method,
            path=self._path,
            client_ip=self._client_ip,
            user_agent=self._user_agent,
            body=body,
            headers=self._given,
            headers_digest=self._digest,
            started_us=started_us,
        )
        return msgspec.structs.replace(caller, origin=origin)


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
    promptly: "Callable[[Call], Hashable | None] | None" = None
    """What a request off the loop is like, where its like may be answered on it once that is known
    to be quick; None for one that may wait for others (ADR 0050)."""
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
        self._spoken: dict[tuple[Any, ...], Said] = {}
        self._principals = principals
        self._asserts_actor = endpoint.dialect.asserts_actor
        self._promptness = Promptness(
            engine.clock.elapsed_s, lambda: engine.committer.submitted, lambda: _is_settled(engine)
        )
        self._is_write = endpoint.method not in ("GET", "HEAD") and not endpoint.is_read

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong is said in the envelope."""
        clock = self._engine.clock
        started = clock.elapsed_s()
        cycle = _cycle_of(scope)
        asked = self._asked(scope, cycle)
        request_id = asked.request_id or clock.new_id("req")
        limited: Headers = []
        try:
            started_us = clock.now_us()
            caller = recognise(
                self._engine,
                asked.headers,
                is_open=self.endpoint.is_open,
                asserts_actor=self._asserts_actor,
                principals=self._principals,
            )
            if caller is None:
                asserts_actor = self._asserts_actor
                caller = await verify(self._engine, asked.headers, asserts_actor=asserts_actor)
            self._admit(caller, limited)
            raw = self._at_hand(asked, cycle)
            if raw is None:
                raw = await read_body(receive, asked.headers, self.endpoint.body_max)
            caller = asked.calling(caller, request_id, raw, started_us)
            call = self._call(scope, receive, asked, caller, raw)
            reply = await self._audited(call)
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
            limited.append((b"x-cortex-request-id", request_id.encode()))
            if reply.stream is not None or reply.pieces is not None:
                await self._send_on((scope, receive, send), call, reply, limited)
            else:
                await self._send(send, cycle, call, reply, limited)
        self._count(status, started)

    def _asked(self, scope: Asgi, cycle: Cycle | None) -> "Asked":
        """What a request's head says; one that came before says what it said then."""
        head = None if cycle is None else cycle.head
        if head is None:
            return Asked(self, scope, b"")
        asked: Asked | None = head.asked
        if asked is None or asked.by is not self:
            asked = head.asked = Asked(self, scope, head.digest)
        return asked

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

    def _admit(self, caller: Caller, limited: Headers) -> None:
        """Whether there is such an endpoint here, and the caller has not called too often."""
        if self.endpoint.tier == EXPERIMENTAL:
            self._check_experimental()
        self._charge(caller, limited)

    def _at_hand(self, asked: "Asked", cycle: Cycle | None) -> bytes | None:
        """The body where it is wanted and has come already; None where it is still to be read."""
        endpoint = self.endpoint
        if endpoint.decoder is None and not endpoint.takes_raw:
            return b""
        if not asked.is_readable and endpoint.shape is None and not endpoint.takes_raw:
            check_media_type(asked.headers)
            asked.is_readable = True
        at_hand = None if cycle is None else cycle.body_at_hand()
        return None if at_hand is None else within(at_hand, endpoint.body_max)

    def _call(
        self, scope: Asgi, receive: Receive, asked: "Asked", caller: Caller, raw: bytes
    ) -> Call:
        """The request, decoded."""
        endpoint, headers = self.endpoint, asked.headers
        if endpoint.query_shape is not None:
            query: Any = decode_given(endpoint.query_shape, scope["query_string"])
        else:
            query = asked.query
            if query is None:
                given = scope["query_string"]
                query = decode_query(endpoint.query, given) if given else self._no_query()
                asked.query = query
        body: Any = raw if endpoint.takes_raw else None
        if endpoint.shape is not None and not endpoint.takes_raw:
            body = decode_shaped(endpoint.shape, raw)
        elif endpoint.decoder is not None and (raw or not endpoint.body_optional):
            body = decode_body(endpoint.decoder, raw, endpoint.invalid, endpoint.other_decoder)
        if endpoint.is_experimental is not None and endpoint.is_experimental(body):
            self._check_experimental()
        path = scope.get("path_params") or {}
        parts = body_parts(receive, headers, endpoint.body_max) if endpoint.takes_bytes else None
        engine, counts, table = self._engine, self._counts, self._table
        return Call(engine, caller, path, query, body, headers, counts, table, parts)

    async def _audited(self, call: Call) -> Reply:
        """The handler's answer, and one audit row for it, whatever it is (001 §14)."""
        reply: Reply
        try:
            if self.endpoint.off_loop:
                reply = await self._aside(call)
            else:
                answer = self.endpoint.handler(call)
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

    async def _aside(self, call: Call) -> Reply:
        """A handler's answer from a thread, or from here where it is quick and nobody waits."""
        handler: Any = self.endpoint.handler
        promptly, clock = self.endpoint.promptly, self._engine.clock
        place = None if promptly is None else promptly(call)
        if place is None:
            reply: Reply = await asyncio.to_thread(handler, call)
            return reply
        way = self._engine.committer.way
        way.take()
        try:
            started = clock.elapsed_s()
            is_due = self._promptness.is_due(place)
            reply = handler(call) if is_due else await asyncio.to_thread(handler, call)
            self._promptness.took(place, clock.elapsed_s() - started)
        finally:
            # Sent before the loop comes to that.
            asyncio.get_running_loop().call_soon(way.leave)
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

    def _said(self, call: Call, reply: Reply) -> "Said":
        """Stability, on a gated answer what policy said of its capability (001 §6.8), and more."""
        endpoint, tier = self.endpoint, reply.tier
        if endpoint.is_experimental is not None and endpoint.is_experimental(call.body):
            tier = EXPERIMENTAL
        capability, speaker = endpoint.capability, ""
        if capability is not None:
            speaker = self._engine.policies.decide(call.caller, capability, None).tier
        place = (speaker, tier, reply.media_type, reply.headers)
        said = self._spoken.get(place)
        if said is None:
            headers = _stability(endpoint.tier if tier is None else tier)
            if capability is not None:
                text = f"tier={speaker}; decision=allow; capability={capability}"
                headers = [*headers, (b"x-cortex-policy", text.encode())]
            headers = [*headers, *reply.headers]
            if len(self._spoken) >= limits.SAID_KEPT_MAX:
                self._spoken.clear()
            typed = (b"content-type", reply.media_type)
            said = self._spoken[place] = Said(headers, lines_of([*headers, typed]))
        return said

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
        self, send: Send, cycle: Cycle | None, call: Call, reply: Reply, more: Headers
    ) -> None:
        """A whole answer: at once where the server is ours."""
        said = self._said(call, reply)
        body = reply.raw if reply.raw is not None else _json(reply.value)
        if cycle is not None and said.lines is not None:
            # Nobody but we made these values, and they have no ends of lines.
            lines = b"".join([said.lines, *[b"%b: %b\r\n" % pair for pair in more]])
            if cycle.answer(reply.status, lines, body):
                return
        headers = [*said.headers, *more, (b"content-type", reply.media_type)]
        await _send_whole(send, reply.status, headers, body)

    async def _send_on(
        self, to: tuple[Asgi, Receive, Send], call: Call, reply: Reply, more: Headers
    ) -> None:
        """An answer that goes on: events, or pieces of what is too much to hold."""
        headers = [*self._said(call, reply).headers, *more]
        if reply.stream is None:
            await _send_pieces(to[2], reply, headers)
            return
        response = EventSourceResponse(
            self._told(reply.stream, more[-1][1].decode()),
            ping=int(limits.HEARTBEAT_S),
            send_timeout=limits.LAG_S_MAX,
            headers={name.decode(): value.decode() for name, value in headers},
        )
        # A client that does not read is cut off; it resumes from its last id.
        with contextlib.suppress(SendTimeoutError):
            await response(*to)  # type: ignore[arg-type]

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


def _is_settled(engine: Engine) -> bool:
    """Whether all that was written is derived and can be found: nobody is at work."""
    text, vectors, _ = engine.served
    return min(text.watermark(), vectors.watermark()) >= engine.log.written


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
