"""What speaks like a language model's endpoint?  A small server that answers as a test tells it to.

It runs in a thread of the test's process, on a port of its own, and speaks real HTTP.
"""

import asyncio
import inspect
import json
import queue
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

Reply = Callable[[dict[str, Any]], Response | Awaitable[Response]]


class Endpoint:
    """Answers `POST /v1/chat/completions`; the next replies are in `replies`, then it is good."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.replies: deque[Reply] = deque()
        self.facts: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    def reset(self) -> None:
        """Forget everything."""
        self.replies.clear()
        self.asked.clear()
        self.headers.clear()
        self.facts = []

    async def serve(self, request: Request) -> Response:
        """One question."""
        asked = json.loads(await request.body())
        self.asked.append(asked)
        self.headers.append(dict(request.headers))
        reply = self.replies.popleft() if self.replies else lambda _: said({"facts": self.facts})
        answer = reply(asked)
        return await answer if inspect.isawaitable(answer) else answer


def said(content: Any, *, finish: str = "stop", **more: Any) -> Response:
    """A chat completion; what is no text is told as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    message = {"role": "assistant", "content": text} | more
    body = {
        "model": "tiny-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    return Response(json.dumps(body), media_type="application/json")


def status(code: int, text: str = "no", **headers: str) -> Reply:
    """An error."""
    return lambda _: Response(
        text, code, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def raw(content: bytes) -> Reply:
    """These very bytes."""
    return lambda _: Response(content, media_type="application/json")


def late(seconds: float) -> Reply:
    """A good answer, when nobody waits for it any more."""

    async def answer() -> Response:
        await asyncio.sleep(seconds)
        return said({"facts": []})

    return lambda _: answer()


def drip(seconds: float) -> Reply:
    """A byte now and then, and never an end in time."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for _ in range(int(seconds / 0.02)):
            yield b" "
            await asyncio.sleep(0.02)

    return lambda _: StreamingResponse(bytes_of())


def only(*formats: str | None) -> Reply:
    """Answers well to these response formats, and refuses the others as endpoints do."""

    def reply(asked: dict[str, Any]) -> Response:
        form = asked.get("response_format", {}).get("type")
        if form not in formats:
            return Response('{"error": "unknown response_format"}', 400)
        return said({"facts": []})

    return reply


# ── streams ──────────────────────────────────────────────────────────────────────────────────

DONE = b"data: [DONE]\n\n"
USAGE = b'data: {"choices": [], "usage": {"total_tokens": 31}}\n\n'


def chunk(content: str | None = None, **more: Any) -> bytes:
    """One event of a streamed completion."""
    delta = {} if content is None else {"content": content}
    body = {"model": "tiny-2026", "choices": [{"index": 0, "delta": delta} | more]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chunks(content: Any, size: int = 3) -> list[bytes]:
    """A whole answer, a few characters an event."""
    text = content if isinstance(content, str) else json.dumps(content)
    return [chunk(text[at : at + size]) for at in range(0, len(text), size)]


class Speech:
    """A stream that a test leads: its pieces are sent when the test says them."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces: queue.Queue[bytes | Exception | None] = queue.Queue()
        self.is_asked_for = threading.Event()
        self.is_left = threading.Event()
        """Whoever listened has hung up."""
        self.say(*pieces)

    def say(self, *pieces: bytes) -> "Speech":
        """These come next."""
        for piece in pieces:
            self._pieces.put(piece)
        return self

    def end(self) -> "Speech":
        """Nothing more comes, as it should be."""
        self._pieces.put(None)
        return self

    def break_off(self) -> "Speech":
        """The connection is lost in the middle."""
        self._pieces.put(ConnectionError("as the test wants it"))
        return self

    def __call__(self, _: dict[str, Any]) -> Response:
        """The stream as the reply to a question."""
        self.is_asked_for.set()
        return _Spoken(self._pieces, self.is_left)


class _Spoken(Response):
    def __init__(self, pieces: "queue.Queue[Any]", is_left: threading.Event) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._pieces, self._is_left = pieces, is_left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        while (piece := await self._next(receive)) is not None:
            if isinstance(piece, Exception):
                raise piece
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _next(self, receive: Receive) -> Any:
        """What the test says next, or nothing when nobody is there to hear it."""
        heard = asyncio.ensure_future(receive())
        try:
            while not heard.done():
                try:
                    return self._pieces.get_nowait()
                except queue.Empty:
                    await asyncio.wait([heard], timeout=0.005)
        finally:
            heard.cancel()
        self._is_left.set()
        return None


@contextmanager
def running() -> Iterator[Endpoint]:
    """An endpoint for the length of a block."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # who calls before the thread is up waits, and is not refused
    endpoint = Endpoint(listener.getsockname()[1])
    app = Starlette(routes=[Route("/v1/chat/completions", endpoint.serve, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
