"""How does the server run, and how does it stop?"""

import ctypes
import resource
import socket
import sys
from types import FrameType

import uvicorn

from api.app import App
from api.principals import Principals
from api.surfaces import Surface
from api.wire import Protocol
from engine import garbage
from engine.engine import open_engine
from engine.settings import Settings
from schemas import limits

_FILES = 4 * limits.SUBSCRIBERS_MAX
_M_ARENA_MAX = -8
_ARENAS = 2


class Server(uvicorn.Server):
    """uvicorn, which says where it listens, and ends open streams when it is asked to stop."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._strata = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say the address on standard output, also for scripts that asked port 0."""
        await super().startup(sockets)
        garbage.in_small_lots()
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
        timeout_keep_alive=limits.KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(limits.SHUTDOWN_S_MAX) - 2,
    )
    return Server(config, app)


def _raise_file_limit() -> None:
    """A stream is a file: as many as the system lets us have, up to what we serve at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _share_memory() -> None:
    """All threads take memory from two heaps: the C library would give nearly each its own.

    What one thread gave back another does not get then: 200 MB after the first 10,000 events.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _ARENAS)


def serve(
    settings: Settings, *, alone: Surface | None = None, principals: Principals | None = None
) -> bool:
    """Run until a signal; whether it started at all."""
    _raise_file_limit()
    _share_memory()
    server = make_server(settings, alone=alone, principals=principals)
    server.run()
    return server.started
