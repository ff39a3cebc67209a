"""What does HTTP alone cost here?  The same server and answer, with nothing behind it.

Run as `python -m bench.floor serve …`: the product's own uvicorn, and an application that reads the
body and answers 202. What the product reaches of its rate is a ratio that a noisy machine spares.
"""

import sys

import click
import msgspec

from api.bodies import Receive
from api.endpoint import Asgi, Send
from api.server import make_server
from api.wire import CYCLE, lines_of
from engine.settings import load_settings

_ANSWER = (
    b'{"event_id":"evt_%032x","status":"captured","wal_offset":%d,"scope":"user:anna/project:floor"'
    b',"durability":"none","lifecycle_stream":"/v1/lifecycle/stream?event_id=evt_%032x"}'
)


class Floor:
    """Counts, and answers as a capture would."""

    def __init__(self) -> None:
        self._offset = 0

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/v1/experience":
            self._offset += 1
            await _send(scope, send, 202, _ANSWER % (self._offset, self._offset, self._offset))
        elif scope["path"] == "/v1/admin/metrics":
            names = ("log_head_offset", "log_entries_total", "log_commits_total")
            text = "".join(f"strata_{name} {self._offset}\n" for name in names)
            await _send(scope, send, 200, text.encode())
        else:
            found = {"durable_offset": self._offset, "lag_entries": 0}
            await _send(scope, send, 200, msgspec.json.encode(found))


async def _send(scope: Asgi, send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    cycle = scope.get("extensions", {}).get(CYCLE)
    if cycle is not None and cycle.answer(status, lines_of(headers), body):
        return
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@click.command()
@click.argument("serve")
@click.option("--port")
@click.option("--data")
def main(**flags: str) -> None:
    """Serve the floor with the product's own server."""
    server = make_server(load_settings(flags=flags))
    server.config.app = Floor()
    server.run()


if __name__ == "__main__":
    sys.exit(main())
