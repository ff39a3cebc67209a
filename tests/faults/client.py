"""How do the fault tests talk to a server?  HTTP/1.1 on raw sockets, kept alive, cut at will."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Self

Address = tuple[str, int]

ANSWER_S_MAX = 120.0
"""A server that says nothing for so long hangs: that is a failure of its own, not an outcome."""

_BROKEN = (ConnectionError, asyncio.IncompleteReadError, OSError)


class Unanswered(Exception):
    """The connection broke before the answer was whole: nobody knows what became of the request."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The error code, when this is an error."""
        return self.json()["error_code"] if self.status >= 400 else None


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}


def _request(method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: strata"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


class Client:
    """One connection, kept alive; opened when it is first needed and again when it was closed."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request and read its answer; Unanswered when the connection breaks."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await self._exchange(_request(method, path, body, headers or {}))
        except TimeoutError:
            self.close()
            raise AssertionError(f"{method} {path} was not answered in {ANSWER_S_MAX} s") from None
        except _BROKEN as error:
            self.close()
            raise Unanswered(repr(error)) from error

    async def _exchange(self, request: bytes) -> Answer:
        if self._writer is None or self._reader is None or self._reader.at_eof():
            self.close()
            self._reader, self._writer = await asyncio.open_connection(*self._address)
        self._writer.write(request)
        await self._writer.drain()
        status, headers = await _read_head(self._reader)
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return Answer(status, headers, body)


async def ask(address: Address, method: str, path: str, body: bytes | None = None) -> Answer:
    """One request on a connection of its own."""
    async with Client(address) as client:
        return await client.ask(method, path, body)


class Frame(NamedTuple):
    """One server-sent event."""

    id: str
    event: str
    data: Any


class Stream:
    """An open event stream. What is not read stays in the socket, and then with the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        query: str = "",
        since: str | None = None,
        buffer_bytes: int | None = None,
    ) -> Stream:
        """Subscribe; with `buffer_bytes`, from a socket that takes no more than about that."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        if buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        headers = {"accept": "text/event-stream"} | ({"last-event-id": since} if since else {})
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                await asyncio.get_running_loop().sock_connect(sock, address)
                limit = buffer_bytes or 2**16
                reader, writer = await asyncio.open_connection(sock=sock, limit=limit)
                writer.write(_request("GET", f"/v1/lifecycle/stream{query}", None, headers))
                status, _ = await _read_head(reader)
        except _BROKEN as error:
            sock.close()
            raise Unanswered(repr(error)) from error
        assert status == 200, f"the stream was refused with {status}"
        return cls(reader, writer)

    async def frames(self) -> AsyncIterator[Frame]:
        """Events as they come, comments left out, until the server ends the stream."""
        while True:
            chunk = await self._chunk()
            if not chunk:
                return
            *whole, self._rest = (self._rest + chunk.replace(b"\r\n", b"\n")).split(b"\n\n")
            for text in whole:
                lines = [line.partition(": ") for line in text.decode().split("\n")]
                found = {name: value for name, _, value in lines if name}
                if "data" in found:
                    event = found.get("event", "")
                    yield Frame(found.get("id", ""), event, json.loads(found["data"]))

    async def _chunk(self) -> bytes:
        """The next chunk of the body; empty when the stream has ended, cleanly or not."""
        try:
            size = int(await self._reader.readline() or b"0", 16)
            chunk = await self._reader.readexactly(size + 2)
        except _BROKEN:
            return b""
        return chunk[:-2]

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
