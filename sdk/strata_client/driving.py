"""Who does what a conversation wants done?  One driver that blocks, and one that awaits.

These two are all of the client that is written twice: how to send, read, wait and be told.
"""

import asyncio
import contextlib
import inspect
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
)
from typing import Any, Final, TypeVar

import httpx

from strata_client.calls import Answer, Request
from strata_client.errors import ConnectionLost, StrataError, TimedOut, TransportError, Unreachable
from strata_client.talk import Action, Emit, Open, Pause, Read, Send, Talk, Token

T = TypeVar("T")
TokenProvider = Callable[[], str | None]
AsyncTokenProvider = Callable[[], str | Awaitable[str | None] | None]

STREAM_IDLE_S: Final = 45.0
"""Seconds without a byte after which a stream is taken for dead: three heartbeats of the server."""


def _translated(error: httpx.TransportError) -> TransportError:
    """Which of our errors it is: was anything sent, and may something have come of it?"""
    url = error.request.url
    said = f"{url.scheme}://{url.netloc.decode()}: {str(error) or type(error).__name__}"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return Unreachable(said)
    return TimedOut(said) if isinstance(error, httpx.TimeoutException) else ConnectionLost(said)


def _open(http: httpx.Client | httpx.AsyncClient) -> None:
    if http.is_closed:
        raise StrataError("this client was closed")


def _timeout(http: httpx.Client | httpx.AsyncClient) -> httpx.Timeout:
    """That of the client, with more patience between the events of a stream."""
    usual = http.timeout
    return httpx.Timeout(
        connect=usual.connect, read=STREAM_IDLE_S, write=usual.write, pool=usual.pool
    )


class Driver:
    """Does what conversations want, and blocks until it is done."""

    def __init__(self, http: httpx.Client, token: TokenProvider) -> None:
        self.http = http
        self._token = token

    def run(self, talk: Talk[T]) -> T:
        """What a conversation ends in."""
        _open(self.http)
        line = _Line(self.http)
        reply: Any = None
        failed: TransportError | None = None
        while True:
            try:
                action = talk.send(reply) if failed is None else talk.throw(failed)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            reply, failed = self._done(action, line)

    def each(self, talk: Talk[None]) -> Generator[Any, None, None]:
        """What a conversation hands out, until it ends or nobody wants more."""
        _open(self.http)
        line = _Line(self.http)
        reply: Any = None
        failed: TransportError | None = None
        with contextlib.closing(line):
            while True:
                try:
                    action = talk.send(reply) if failed is None else talk.throw(failed)
                except StopIteration:
                    return
                if isinstance(action, Emit):
                    yield action.value
                    reply, failed = None, None
                else:
                    reply, failed = self._done(action, line)

    def _done(self, action: Action, line: "_Line") -> tuple[Any, TransportError | None]:
        try:
            match action:
                case Send(request):
                    return line.sent(request), None
                case Token():
                    return self._token(), None
                case Open(request):
                    return line.opened(request), None
                case Read():
                    return line.read(), None
                case Pause(seconds):
                    time.sleep(seconds)
                    return None, None
        except httpx.TransportError as error:
            return None, _translated(error)
        raise AssertionError(action)


class _Line:
    """Requests of one conversation, and the answer that is open."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._open: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def sent(self, request: Request) -> Answer:
        method, url = request.method, request.url
        answer = self._http.request(method, url, headers=request.headers, content=request.content)
        return Answer(answer.status_code, answer.headers, answer.content)

    def opened(self, request: Request) -> Answer:
        self.close()
        built = self._http.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            timeout=_timeout(self._http),
        )
        answer = self._http.send(built, stream=True)
        if answer.status_code >= 400:
            with contextlib.closing(answer):
                return Answer(answer.status_code, answer.headers, answer.read())
        self._open, self._pieces = answer, answer.iter_bytes()
        return Answer(answer.status_code, answer.headers)

    def read(self) -> bytes | None:
        return next(self._pieces, None)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class AsyncDriver:
    """Does what conversations want, and awaits it."""

    def __init__(self, http: httpx.AsyncClient, token: AsyncTokenProvider) -> None:
        self.http = http
        self._token = token

    async def run(self, talk: Talk[T]) -> T:
        """What a conversation ends in."""
        _open(self.http)
        line = _AsyncLine(self.http)
        reply: Any = None
        failed: TransportError | None = None
        while True:
            try:
                action = talk.send(reply) if failed is None else talk.throw(failed)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            reply, failed = await self._done(action, line)

    async def each(self, talk: Talk[None]) -> AsyncGenerator[Any, None]:
        """What a conversation hands out, until it ends or nobody wants more."""
        _open(self.http)
        line = _AsyncLine(self.http)
        reply: Any = None
        failed: TransportError | None = None
        async with contextlib.aclosing(line):
            while True:
                try:
                    action = talk.send(reply) if failed is None else talk.throw(failed)
                except StopIteration:
                    return
                if isinstance(action, Emit):
                    yield action.value
                    reply, failed = None, None
                else:
                    reply, failed = await self._done(action, line)

    async def _done(self, action: Action, line: "_AsyncLine") -> tuple[Any, TransportError | None]:
        try:
            match action:
                case Send(request):
                    return await line.sent(request), None
                case Token():
                    token = self._token()
                    return (await token if inspect.isawaitable(token) else token), None
                case Open(request):
                    return await line.opened(request), None
                case Read():
                    return await line.read(), None
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                    return None, None
        except httpx.TransportError as error:
            return None, _translated(error)
        raise AssertionError(action)


class _AsyncLine:
    """Requests of one conversation, and the answer that is open."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._open: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def sent(self, request: Request) -> Answer:
        method, url = request.method, request.url
        answer = await self._http.request(
            method, url, headers=request.headers, content=request.content
        )
        return Answer(answer.status_code, answer.headers, answer.content)

    async def opened(self, request: Request) -> Answer:
        await self.aclose()
        built = self._http.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            timeout=_timeout(self._http),
        )
        answer = await self._http.send(built, stream=True)
        if answer.status_code >= 400:
            async with contextlib.aclosing(answer):
                return Answer(answer.status_code, answer.headers, await answer.aread())
        self._open, self._pieces = answer, answer.aiter_bytes()
        return Answer(answer.status_code, answer.headers)

    async def read(self) -> bytes | None:
        assert self._pieces is not None
        return await anext(self._pieces, None)

    async def aclose(self) -> None:
        if self._open is not None:
            await self._open.aclose()
            self._open = None
