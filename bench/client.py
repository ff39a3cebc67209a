"""Who asks while it is measured?  One connection, kept alive, a request after the other.

A request is one write and an answer is only cut out of the stream: a library that takes heads apart
costs as much as a tenth of a recall, and would be measured with it.
"""

import json
import re
import socket
from types import TracebackType
from typing import Any, Final, Self

from bench.host import Broken, Host, bearer

_WAIT_S: Final = 120.0
_PART: Final = 1 << 18
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class Client:
    """A caller of a server, for the length of a block."""

    def __init__(self, host: Host, token: str | None = None) -> None:
        self._address = (host.host, host.port)
        fields = {
            "host": f"{host.host}:{host.port}",
            "content-type": "application/json",
        } | bearer(token or host.token)
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer; anything but success breaks the run."""
        return _read(self.post_unread(path, body))

    def post_unread(self, path: str, body: dict[str, Any]) -> bytes:
        """The same as it came, for who measures: what a client makes of it is its own affair."""
        return self._asked("POST", path, json.dumps(body).encode())

    def get(self, path: str) -> dict[str, Any]:
        """The answer; anything but success breaks the run."""
        return _read(self._asked("GET", path, b""))

    def _asked(self, method: str, path: str, body: bytes) -> bytes:
        begun = f"{method} {path} HTTP/1.1\r\n{self._head}content-length: {len(body)}\r\n\r\n"
        request = begun.encode() + body
        try:
            status, content = self._sent(request)
        except ConnectionError:
            # A connection that was idle for long is closed by the server.
            self._close()
            status, content = self._sent(request)
        if status >= 300:
            raise Broken(f"{method} {path} answered {status}: {content[:500]!r}")
        return content

    def _sent(self, request: bytes) -> tuple[int, bytes]:
        """The answer's status and its body."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_WAIT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        head, end, begun = self._part().partition(_END)
        while not end:
            head, end, begun = (head + self._part()).partition(_END)
        length = _LENGTH.search(head)
        if length is None:
            raise Broken(f"an answer without its length: {head[:500]!r}")
        parts, left = [begun], int(length[1]) - len(begun)
        while left > 0:
            parts.append(self._part())
            left -= len(parts[-1])
        return int(head[9:12]), b"".join(parts)

    def _part(self) -> bytes:
        """What has come."""
        assert self._socket is not None
        part = self._socket.recv(_PART)
        if not part:
            raise ConnectionResetError("the server hung up")
        return part

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _read(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content)
    return found
