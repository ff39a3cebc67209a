"""How does HTTP travel?  uvicorn's protocol, at less cost where an answer is whole.

An answer of known length goes out in one write, without the two messages of ASGI; a connection
has one timer for its idle time, not one a request; a target asked for lately is not taken apart
again, and neither is a head that came before on the same connection, byte for byte: programs send
the same headers with every request. Whatever is not like most requests goes uvicorn's own way.
"""

import asyncio
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from engine.audit import headers_digest
from schemas import limits

CYCLE: Final = "strata.cycle"
"""The extension of a request's scope that gives a body at hand and takes a whole answer."""

Headers = list[tuple[bytes, bytes]]

_END_OF_HEAD: Final = b"\r\n\r\n"
_UNUSUAL: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection"})
"""Headers with which a request is no matter of its length alone."""


@dataclass(slots=True)
class Head:
    """A request's head as the parser read it: the same bytes are read the same the next time."""

    scope: dict[str, Any]
    body_bytes: int
    digest: bytes
    """The hash of its headers for the audit."""
    app: Any
    """Who answers such requests."""
    asked: Any = None
    """What they made of it the last time."""


class Moment:
    """An `asyncio.Event` that is made when somebody waits for it, which hardly anyone does."""

    _is_set = False
    _event: asyncio.Event | None = None

    def set(self) -> None:
        """It has come."""
        self._is_set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        """The next one is waited for."""
        self._is_set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        """Until it comes."""
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


class Corked:
    """A transport that sends the head of an answer together with its body.

    uvicorn writes them apart, and every write is a system call. Only an answer whose length is
    told waits: its body follows at once. A stream's head goes out by itself.
    """

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_closing = transport.is_closing
        self._head = b""

    def write(self, content: bytes) -> None:
        """Send, or keep a head for the body that follows."""
        if self._head:
            content, self._head = self._head + content, b""
        elif content.startswith(b"HTTP/1.1") and b"\r\ncontent-length: " in content:
            self._head = content
            return
        self._transport.write(content)

    def write_whole(self, content: bytes) -> None:
        """Send an answer that has its head and its body."""
        self._transport.write(content)

    def flush(self) -> None:
        """Send what was kept: no body follows."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Close, after what was kept."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Cycle(RequestResponseCycle):
    """A request and its answer."""

    head: Head | None = None
    """Its head, where it is known from before."""

    def body_at_hand(self) -> bytes | None:
        """The body, when all of it has come with its head, as most do; None when to wait for it."""
        if self.more_body or self.disconnected or self.response_started:
            return None
        body, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        return body

    def answer(self, status: int, lines: bytes | None, body: bytes) -> bool:
        """Send a whole answer at once; False when it has to go the long way.

        The lines are those of its head, as `lines_of` makes them, without its length.
        """
        if lines is None or self.response_started or self.disconnected or self.flow.write_paused:
            return False
        if self.scope["method"] == "HEAD" or not self.keep_alive:
            return False
        said = _default_lines(self.default_headers)
        if said is None:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        # The scope leads here and this to the scope: left so, only the collector would find them.
        self.scope.pop("extensions", None)
        start = STATUS_LINE[status]
        whole = b"%b%b%bcontent-length: %d\r\n\r\n%b" % (start, said, lines, len(body), body)
        cast("Corked", self.transport).write_whole(whole)
        self.message_event.set()
        self.on_response()
        return True


def _nobody_minds() -> None:
    """An application that need not hear who comes."""


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Headers as they are sent; None when they are not for us to send."""
    said = [b"%b: %b\r\n" % pair for pair in headers]
    lines = b"".join(said)
    # More ends of lines than headers: a value brought one along.
    if lines.count(b"\n") != len(said) or lines.count(b"\r") != len(said):
        return None
    return None if any(line.startswith(b"connection: ") for line in said) else lines


_defaults: tuple[Headers, bytes | None] = ([], b"")


def _default_lines(headers: Headers) -> bytes | None:
    """What the server itself says on every answer: another list every second, for the date."""
    global _defaults  # noqa: PLW0603 - one pair, replaced as a whole
    known, lines = _defaults
    if known is not headers:
        lines = lines_of(headers)
        _defaults = (headers, lines)
    return lines


@lru_cache(maxsize=limits.TARGETS_KEPT_MAX)
def _short_target(target: bytes) -> tuple[str, bytes, bytes]:
    """Path, path as it came and query of a request's target."""
    parsed = httptools.parse_url(target)
    path = parsed.path.decode("ascii")
    return urllib.parse.unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


class Protocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with one write an answer and a deadline for a request's head."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is here, and has so long to say what it wants."""
        self._corked = Corked(transport)
        self._is_in_head = True
        self._deadline: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._answered_s = 0.0
        self._heads: dict[bytes, Head] = {}
        self._begun = self._ended = 0
        self._came: Callable[[], None] = getattr(self.app, "came", _nobody_minds)
        super().connection_made(cast("asyncio.Transport", self._corked))
        self._mind_the_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._is_in_head = False
        self._mind_the_head()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More came. A head that came whole, as nearly all do, costs no timer."""
        self._came()
        begun, before = self._begun, self.cycle
        if begun != self._ended or (before is not None and not before.response_complete):
            super().data_received(data)
        else:
            end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
            known = self._heads.get(data[:end])
            if known is not None and end + known.body_bytes == len(data):
                self._take_known(known, data, end)
                return
            super().data_received(data)
            if self._begun == self._ended == begun + 1:
                self._keep_head(data, end)
        if self._is_in_head or self._deadline is not None:
            self._mind_the_head()

    def _take_known(self, known: Head, data: bytes, end: int) -> None:
        """A whole request whose head was read before: the parser need not see it."""
        scope: Any = known.scope.copy()
        scope["state"] = self.app_state.copy()
        cycle = self._begin(scope, is_expecting=False, keep_alive=True)
        cycle.head = known
        cycle.body = data[end:]  # type: ignore[assignment]
        cycle.more_body = False
        cycle.message_event.set()
        self._start_asgi_task(cycle, known.app)

    def _keep_head(self, data: bytes, end: int) -> None:
        """One request came, whole and by itself: keep its head, unless there is more to it."""
        cycle, scope = self.cycle, cast("dict[str, Any]", self.scope)
        if not isinstance(cycle, Cycle) or not cycle.keep_alive or end > limits.HEAD_BYTES_KEPT:
            return
        headers: Headers = scope["headers"]
        named, body_bytes = dict(headers), len(data) - end
        declared = named.get(b"content-length", b"0")
        if not _UNUSUAL.isdisjoint(named) or declared != b"%d" % body_bytes:
            return
        if len(self._heads) >= limits.HEADS_KEPT_MAX:
            self._heads.clear()
        kept = {name: value for name, value in scope.items() if name not in ("state", "extensions")}
        app: Any = self.app
        found = app.find(scope) if hasattr(app, "find") else None
        self._heads[data[:end]] = Head(kept, body_bytes, headers_digest(headers), found or app)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head = True
        self._begun += 1
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._ended += 1
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Its head is whole; its body has a deadline of its own."""
        self._is_in_head = False
        parser, target = self.parser, self.url
        version = parser.get_http_version()
        if version != "1.1" or parser.should_upgrade() or len(target) > limits.TARGET_BYTES_KEPT:
            super().on_headers_complete()
            return
        scope: Any = self.scope
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"], scope["raw_path"], scope["query_string"] = _short_target(target)
        before = self.cycle
        is_expecting, keep_alive = self.expect_100_continue, parser.should_keep_alive()
        cycle = self._begin(scope, is_expecting=is_expecting, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            # Asked before the answer to the one before: it waits its turn.
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _begin(self, scope: Any, *, is_expecting: bool, keep_alive: bool) -> Cycle:
        # By place: a name for each of them costs as much again.
        cycle = self.cycle = Cycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            self.server_state.default_headers,
            cast("asyncio.Event", Moment()),
            is_expecting,
            keep_alive,
            self.on_response_complete,
        )
        scope["extensions"] = {CYCLE: cycle}
        return cycle

    def on_response_complete(self) -> None:
        """The answer is whole; that to a HEAD has no body to take its head along."""
        self._corked.flush()
        self.server_state.total_requests += 1
        if self._corked.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._answered_s = self.loop.time()
        if self._rest is None:
            self._rest = self.loop.call_later(self.timeout_keep_alive, self._mind_the_rest)

    def _mind_the_head(self) -> None:
        if not self._is_in_head and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif self._is_in_head and self._deadline is None:
            self._deadline = self.loop.call_later(limits.HEAD_READ_S_MAX, self._corked.close)

    def _mind_the_rest(self) -> None:
        """Close what has been idle for long; the timer looks again while there are requests."""
        self._rest = None
        if self._is_in_head or not self.cycle.response_complete:
            return
        left_s = self._answered_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._rest = self.loop.call_later(left_s, self._mind_the_rest)
        elif not self._corked.is_closing():
            self._corked.close()
