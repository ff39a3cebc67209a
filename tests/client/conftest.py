"""What do tests of the client share?  Clients of the shared server, closed in the end."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from strata_client import Client, Retries

PATIENT = Retries(count=6, first_s=0.01, bound_s=0.05)


@pytest.fixture
def connect(server, scope) -> Iterator[Callable[..., Client]]:
    """Clients of the shared server or of another address, in the test's scope."""
    with contextlib.ExitStack() as stack:

        def connected(url: str | None = None, **options: Any) -> Client:
            options = {"scope": scope, "allow_unstable": True, "retries": PATIENT} | options
            return stack.enter_context(Client(url or server.url, **options))

        yield connected


@pytest.fixture
def memory(connect) -> Client:
    """A client of the shared server."""
    return connect()


class Proxy:
    """A TCP proxy that can cut: now, or after so many bytes of an answer have gone through."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.cut_after: list[int] = []
        """How many bytes the next connections may answer; those that come later, all."""
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return "http://{}:{}".format(*self._listener.getsockname())

    def cut(self) -> None:
        """End every connection that is open, in the middle of whatever it says."""
        for end in self._open:
            _end(end)
        self._open.clear()

    def close(self) -> None:
        """Take no more, and end what is open."""
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self._listener.accept()
                self.connections += 1
                outer = socket.create_connection(self._target)
                self._open += [inner, outer]
                left = self.cut_after.pop(0) if self.cut_after else None
                for source, sink, most in ((inner, outer, None), (outer, inner, left)):
                    threading.Thread(target=_carry, args=(source, sink, most), daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket, most: int | None) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece if most is None else piece[:most])
            if most is not None:
                most -= len(piece)
                if most <= 0:
                    break
    _end(source)
    _end(sink)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@pytest.fixture
def proxy(server) -> Iterator[Proxy]:
    """A proxy to the shared server."""
    opened = Proxy(server.address)
    yield opened
    opened.close()


class Stub:
    """A small HTTP server that answers what it is told, in order, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle_one_request()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                stub.heard.append((self.path, dict(self.headers.items()), body))
                status, headers, content = stub.answers.pop(0)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the library

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return "http://{}:{}".format(*self._server.server_address)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server that answers as it is told."""
    opened = Stub()
    yield opened
    opened.close()
