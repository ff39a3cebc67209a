"""How does the server run, and how does it stop?"""

import asyncio
import gc
import resource
import socket
import sys
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.app import App
from api.principals import Principals
from api.surfaces import Surface
from engine.engine import open_engine
from engine.settings import Settings
from schemas import limits


class Corked:
    """A transport that sends the head of an answer together with its body.

    uvicorn writes them apart, and every write is a system call. Only an answer whose length is
    told waits: its body follows at once. A stream's head goes out by itself.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, content: bytes) -> None:
        """Send, or keep a head for the body that follows."""
        if self._head:
            content, self._head = self._head + content, b""
        elif content.startswith(b"HTTP/1.1") and b"\r\ncontent-length: " in content:
            self._head = content
            return
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


class Protocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with one write an answer and a deadline for a request's head."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is here, and has so long to say what it wants."""
        self._corked = Corked(transport)
        self._is_in_head = True
        self._deadline: asyncio.TimerHandle | None = None
        super().connection_made(cast("asyncio.Transport", self._corked))
        self._mind_the_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._is_in_head = False
        self._mind_the_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More came. A head that came whole, as nearly all do, costs no timer."""
        super().data_received(data)
        if self._is_in_head or self._deadline is not None:
            self._mind_the_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole; its body has a deadline of its own."""
        self._is_in_head = False
        super().on_headers_complete()

    def _mind_the_head(self) -> None:
        if not self._is_in_head and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif self._is_in_head and self._deadline is None:
            self._deadline = self.loop.call_later(limits.HEAD_READ_S_MAX, self._corked.close)

    def on_response_complete(self) -> None:
        """The answer is whole; that to a HEAD has no body to take its head along."""
        self._corked.flush()
        super().on_response_complete()


_GC_YOUNG = 10_000
_FILES = 4 * limits.SUBSCRIBERS_MAX


class Server(uvicorn.Server):
    """uvicorn, which says where it listens, and ends open streams when it is asked to stop."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._strata = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say the address on standard output, also for scripts that asked port 0."""
        await super().startup(sockets)
        # What is there now stays: without it every full collection walks all modules again.
        gc.freeze()
        gc.set_threshold(_GC_YOUNG, 20, 20)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                sys.stdout.write(f"listening on http://{host}:{port}\n")
        sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Streams never end by themselves: end them, so that the rest can drain."""
        engine = self._strata.engine
        if engine is not None:
            engine.lifecycle.close_all()
        super().handle_exit(sig, frame)
        # uvicorn would raise the signal again after draining, and the exit code would say we died.
        self._captured_signals.clear()


def make_server(
    settings: Settings, *, alone: Surface | None = None, principals: Principals | None = None
) -> Server:
    """A server for these settings; it opens the engine when it runs."""
    app = App(lambda: open_engine(settings), alone=alone, principals=principals)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=Protocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        backlog=4096,
        timeout_graceful_shutdown=int(limits.SHUTDOWN_S_MAX) - 2,
    )
    return Server(config, app)


def _raise_file_limit() -> None:
    """A stream is a file: as many as the system lets us have, up to what we serve at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def serve(
    settings: Settings, *, alone: Surface | None = None, principals: Principals | None = None
) -> bool:
    """Run until a signal; whether it started at all."""
    _raise_file_limit()
    server = make_server(settings, alone=alone, principals=principals)
    server.run()
    return server.started
