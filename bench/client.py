"""Who asks?  One connection that stays open, JSON in and out."""

import http.client
import json
from types import TracebackType
from typing import Any, Self

from bench.host import Broken, Host, bearer

_WAIT_S = 120.0


class Client:
    """A caller of a server, for the length of a block."""

    def __init__(self, host: Host, token: str | None = None) -> None:
        self._headers = {"content-type": "application/json"} | bearer(token or host.token)
        self._connection = http.client.HTTPConnection(host.host, host.port, timeout=_WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer; anything but success breaks the run."""
        return _read(self.post_unread(path, body))

    def post_unread(self, path: str, body: dict[str, Any]) -> bytes:
        """The same as it came, for who measures: what a client makes of it is its own affair."""
        return self._asked("POST", path, json.dumps(body))

    def get(self, path: str) -> dict[str, Any]:
        """The answer; anything but success breaks the run."""
        return _read(self._asked("GET", path, None))

    def _asked(self, method: str, path: str, body: str | None) -> bytes:
        try:
            response = self._sent(method, path, body)
        except ConnectionError:
            # A connection that was idle for long is closed by the server.
            self._connection.close()
            response = self._sent(method, path, body)
        content = response.read()
        if response.status >= 300:
            raise Broken(f"{method} {path} answered {response.status}: {content[:500]!r}")
        return content

    def _sent(self, method: str, path: str, body: str | None) -> http.client.HTTPResponse:
        self._connection.request(method, path, body, self._headers)
        return self._connection.getresponse()


def _read(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content)
    return found
