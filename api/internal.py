"""How do workers reach the owner of the log?  Four routes that are there for their token alone.

They are no part of any contract: to everybody else there is nothing at these paths.
"""

import asyncio
import hmac
import re
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

import msgspec

from api.bodies import Receive, read_body
from api.endpoint import Asgi, Send
from engine.engine import Engine
from engine.sources import SourceFailed
from engine.work.board import Stale
from engine.work.wire import Beat, Given, Take, encode
from schemas import limits
from schemas.errors import EngineError

PREFIX: Final = "/internal/"
_TASK: Final = re.compile(r"/internal/tasks/([0-9a-f]{16}-[0-9]{1,18})/(take|source|give)")
_PIECE: Final = limits.MIB
Shape = TypeVar("Shape")


def is_worker(engine: Engine, scope: Asgi) -> bool:
    """Whether it shows the token of our workers; the comparing takes as long whatever it is."""
    token = engine.stores.worker_token
    given = dict(scope["headers"]).get(b"authorization", b"")
    return token is not None and hmac.compare_digest(given, f"Bearer {token}".encode())


async def serve_worker(engine: Engine, scope: Asgi, receive: Receive, send: Send) -> None:
    """Answer one request of a worker; what it sends is data from outside all the same."""
    try:
        await _answer(engine, scope, receive, send)
    except Stale as stale:
        await _send(send, 409, str(stale).encode())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        await _send(send, 400, str(error).encode())
    except SourceFailed as error:
        await _send(send, 422, str(error).encode())
    except EngineError as error:
        await _send(send, 400, error.message.encode())


async def _answer(engine: Engine, scope: Asgi, receive: Receive, send: Send) -> None:
    path, board = scope["path"], engine.board
    if path == "/internal/beat":
        await _send(send, 200, encode(board.beat(await _body(scope, receive, Beat))))
        return
    found = _TASK.fullmatch(path)
    if found is None:
        await _send(send, 404, b"no such path")
        return
    task_id, wanted = found.groups()
    if wanted == "take":
        await _send(send, 200, encode(board.take(task_id, await _body(scope, receive, Take))))
    elif wanted == "give":
        board.give(task_id, await _body(scope, receive, Given))
        await _send(send, 200, b"")
    else:
        asked = parse_qs(scope["query_string"].decode())
        take = Take(asked.get("worker", [""])[0], int(asked.get("epoch", ["0"])[0]))
        await _send(send, 200, await asyncio.to_thread(board.source(task_id, take)))


async def _body(scope: Asgi, receive: Receive, shape: type[Shape]) -> Shape:
    raw = await read_body(receive, dict(scope["headers"]), limits.TASK_BYTES_MAX)
    return msgspec.msgpack.decode(raw, type=shape)


async def _send(send: Send, status: int, body: bytes) -> None:
    headers: Any = [
        (b"content-type", b"application/msgpack" if status == 200 else b"text/plain"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for at in range(0, len(body), _PIECE):
        piece = {"body": body[at : at + _PIECE], "more_body": True}
        await send({"type": "http.response.body", **piece})
    await send({"type": "http.response.body", "body": b""})
