"""How is the engine reached without a server?  A transport that hands requests to it in process.

The engine's application runs on an event loop of its own, in a thread. A request crosses over to
that loop, and its answer comes back piece by piece, so that streams work as they do over a socket.
"""

import asyncio
import atexit
import contextlib
import importlib
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Self

import httpx

from strata_client.errors import EmbeddedError

URL: Final = "http://embedded.invalid"
"""What addresses of an engine in process begin with; nobody looks it up."""

_CLOSE_S: Final = 30.0
_Piece = tuple[str, Any]
"""What comes back of a request: its `head`, `body` after body, the `end`, or an `error`."""
_END: Final[_Piece] = ("end", None)
_AHEAD_MAX: Final = 64
"""Pieces that may wait for a reader; after that the application waits, as it would on a socket."""
_LOOK_S: Final = 0.005


class Host:
    """The engine over one data directory, running in a thread until it is closed."""

    def __init__(self, path: str | Path, settings: dict[str, Any]) -> None:
        self._path = Path(path)
        self._settings = settings
        self._stopping = asyncio.Event()
        self._opened: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="strata-embedded", daemon=True)
        self._lock = threading.Lock()
        self._state = "new"

    def open(self) -> None:
        """Open the data directory, once; a clear word when that cannot be."""
        with self._lock:
            if self._state == "closed":
                raise EmbeddedError(f"{self._path} was closed")
            if self._state == "open":
                return
            self._app = _application(self._path, self._settings)
            self._loop = asyncio.new_event_loop()
            self._thread.start()
            refusal = self._opened.get()
            if refusal is not None:
                self._state = "closed"
                self._thread.join()
                raise EmbeddedError(_remedy(self._path, refusal))
            self._state = "open"
            _at_exit(self.close)

    def close(self) -> None:
        """Drain, close, and let go of the data directory."""
        with self._lock:
            is_open, self._state = self._state == "open", "closed"
        if is_open:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(_CLOSE_S)

    def begin(
        self, request: httpx.Request, body: bytes, put: Callable[[_Piece], None]
    ) -> "Exchange":
        """Hand a request over; pieces of its answer are put as they come."""
        self.open()
        exchange = Exchange(self._loop, put)
        coroutine = exchange.run(self._app, _scope(request), body)
        self._loop.call_soon_threadsafe(exchange.start, coroutine)
        return exchange

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._live())

    async def _live(self) -> None:
        """The lifespan of the application, from its start to its end."""
        inbox: asyncio.Queue[str] = asyncio.Queue()

        async def receive() -> dict[str, str]:
            return {"type": await inbox.get()}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._opened.put(None)
            elif message["type"] == "lifespan.startup.failed":
                self._opened.put(message.get("message") or "it did not start")

        inbox.put_nowait("lifespan.startup")
        living = asyncio.ensure_future(self._app({"type": "lifespan"}, receive, send))
        living.add_done_callback(lambda _: self._stopping.set())
        await self._stopping.wait()
        inbox.put_nowait("lifespan.shutdown")
        try:
            await living
        except Exception as error:
            self._opened.put(str(error) or repr(error))
            raise
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


class Exchange:
    """One request on its way through the application."""

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Callable[[_Piece], None]) -> None:
        self._loop = loop
        self._put = put
        self._gone = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._sent = 0
        self.taken = 0
        """How many pieces the reader has had; the reader counts."""

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Begin, on the loop of the engine."""
        self._task = self._loop.create_task(coroutine)

    def leave(self) -> None:
        """Nobody wants the rest."""
        with contextlib.suppress(RuntimeError):  # the engine was closed before its stream was
            self._loop.call_soon_threadsafe(self._gone.set)

    def _is_far_ahead(self) -> bool:
        return self._sent - self.taken >= _AHEAD_MAX and not self._gone.is_set()

    async def run(self, app: Any, scope: dict[str, Any], body: bytes) -> None:
        """Let the application answer, and put what it says."""
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if unread:
                return unread.pop()
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._put(("head", (message["status"], message.get("headers", []))))
            elif message.get("body"):
                while self._is_far_ahead():  # noqa: ASYNC110 - the reader is in another thread
                    await asyncio.sleep(_LOOK_S)
                self._sent += 1
                self._put(("body", message["body"]))

        try:
            await app(scope, receive, send)
        except Exception as error:
            self._put(("error", error))
            raise
        finally:
            self._put(_END)


# ── transports ───────────────────────────────────────────────────────────────────────────────


class InProcess(httpx.BaseTransport):
    """The transport of a `Client`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the engine; wait for the head of its answer."""
        pieces: queue.SimpleQueue[_Piece] = queue.SimpleQueue()
        exchange = self._host.begin(request, request.read(), pieces.put)
        read_s = request.extensions.get("timeout", {}).get("read")

        def take() -> _Piece:
            try:
                return pieces.get(timeout=read_s)
            except queue.Empty:
                exchange.leave()
                raise httpx.ReadTimeout(f"no answer within {read_s} s", request=request) from None

        return _response(take(), request, _Answer(take, exchange))

    def close(self) -> None:
        """Close the engine."""
        self._host.close()


class _Answer(httpx.SyncByteStream):
    def __init__(self, take: Callable[[], _Piece], exchange: Exchange) -> None:
        self._take = take
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        while True:
            kind, value = self._take()
            if kind != "body":
                return
            self._exchange.taken += 1
            yield value

    def close(self) -> None:
        self._exchange.leave()


class AsyncInProcess(httpx.AsyncBaseTransport):
    """The transport of an `AsyncClient`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._host.open)
        return self

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the engine; await the head of its answer."""
        await self.__aenter__()
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[_Piece] = asyncio.Queue()

        def put(piece: _Piece) -> None:
            with contextlib.suppress(RuntimeError):  # the loop that asked has ended
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        exchange = self._host.begin(request, await request.aread(), put)
        read_s = request.extensions.get("timeout", {}).get("read")

        async def take() -> _Piece:
            try:
                return await asyncio.wait_for(pieces.get(), read_s)
            except TimeoutError:
                exchange.leave()
                raise httpx.ReadTimeout(f"no answer within {read_s} s", request=request) from None

        return _response(await take(), request, _AsyncAnswer(take, exchange))

    async def aclose(self) -> None:
        """Close the engine."""
        await asyncio.to_thread(self._host.close)


class _AsyncAnswer(httpx.AsyncByteStream):
    def __init__(self, take: Callable[[], Coroutine[Any, Any, _Piece]], exchange: Exchange) -> None:
        self._take = take
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            kind, value = await self._take()
            if kind != "body":
                return
            self._exchange.taken += 1
            yield value

    async def aclose(self) -> None:
        self._exchange.leave()


def _response(
    first: _Piece, request: httpx.Request, stream: httpx.SyncByteStream | httpx.AsyncByteStream
) -> httpx.Response:
    kind, value = first
    if kind != "head":
        raise httpx.RemoteProtocolError(f"no answer: {value!r}", request=request)
    status, headers = value
    return httpx.Response(status, headers=headers, stream=stream, request=request)


def _at_exit(close: Callable[[], None]) -> None:
    """Close before the interpreter stops lending threads, which the engine needs for that.

    Plain `atexit` comes too late. The standard library's own executors use this one too.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(close)


# ── the server's package ─────────────────────────────────────────────────────────────────────


def _application(path: Path, settings: dict[str, Any]) -> Any:
    try:
        server = importlib.import_module("api.embedded")
    except ModuleNotFoundError as error:
        said = "the engine is not installed here; the distribution strata-memory has it"
        raise EmbeddedError(f"{said} ({error})") from error
    try:
        return server.application(str(path), settings)
    except server.SettingsError as error:
        raise EmbeddedError(str(error)) from error


def _remedy(path: Path, refusal: str) -> str:
    if "lock" in refusal.lower():
        return f"{path} is in use: close what holds it, or talk to that server ({refusal})"
    return f"{path} could not be opened: {refusal}"


def _scope(request: httpx.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": None,
        "server": None,
    }
