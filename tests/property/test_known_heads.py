"""Is a request whose head came before read as it would be the first time?"""

import asyncio
from typing import Any

import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState

from api.wire import CYCLE, Protocol
from engine.audit import headers_digest

HEADERS = (
    b"X-Cortex-Actor: user:anna\r\n",
    b"Content-Type: application/json\r\n",
    b"Authorization: Bearer abc\r\n",
    b"X-Padded:   two words  \r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: keep-alive\r\n",
)


class Transport:
    """The far end of a connection that takes everything."""

    def is_closing(self) -> bool:
        """It stays."""
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """It has no address."""
        del name
        return default

    def write(self, content: bytes) -> None:
        """It reads nothing of it."""

    pause_reading = resume_reading = close = lambda self: None


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request like the others: few targets, few headers, bodies of a few lengths."""
    target = draw(st.sampled_from([b"/v1/experience", b"/v1/experience?wait=indexed", b"/a%20b"]))
    headers = b"".join(draw(st.lists(st.sampled_from(HEADERS), unique=True, max_size=2)))
    body = draw(st.sampled_from([b"", b"a", b"b", b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"]))
    kind = draw(st.sampled_from(["length", "chunked"]))
    if kind == "chunked":
        pieces = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        headers += b"Transfer-Encoding: chunked\r\n"
        body = pieces + b"0\r\n\r\n"
    else:
        headers += b"Content-Length: %d\r\n" % len(body)
    return b"POST " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n" + body


async def heard(
    requests: list[bytes], cuts: list[int], *, by_one: bool, kind: type[Protocol] = Protocol
) -> list[Any]:
    """What the application is told, by one connection or by a new one for every request."""
    found: list[Any] = []
    answered = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        shown = ("method", "path", "raw_path", "query_string", "headers", "http_version")
        head = scope["extensions"][CYCLE].head
        digest = b"" if head is None else head.digest
        found.append(({name: scope[name] for name in shown}, body, digest))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        answered.set()

    config = uvicorn.Config(app, lifespan="off", log_config=None)
    config.load()
    protocol = None
    for request, cut in zip(requests, cuts, strict=True):
        if protocol is None or not by_one:
            protocol = kind(config, ServerState(), {})
            protocol.connection_made(Transport())  # type: ignore[arg-type]
        answered.clear()
        at = cut % len(request)
        for piece in (request[:at], request[at:]) if by_one and at else (request,):
            protocol.data_received(piece)
        await answered.wait()
    return found


@given(st.lists(st.tuples(requests(), st.sampled_from([0, 0, 0, 7, 40])), min_size=1, max_size=12))
def test_a_known_head_is_read_as_a_new_one(asked: list[tuple[bytes, int]]) -> None:
    """The application hears the same of a connection's requests as of each on one of its own."""
    sent, cuts = [one for one, _ in asked], [cut for _, cut in asked]

    async def both() -> None:
        anew = [told[:2] for told in await heard(sent, cuts, by_one=False)]
        assert [told[:2] for told in await heard(sent, cuts, by_one=True)] == anew

    asyncio.run(both())


class Counting(Protocol):
    """Counts what the parser reads."""

    read = 0

    def on_url(self, url: bytes) -> None:
        """A head went through the parser."""
        Counting.read += 1
        super().on_url(url)


def test_a_head_that_came_before_is_known() -> None:
    """The second of two like requests does not go through the parser, and is audited alike."""
    request = b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    found = asyncio.run(heard([request, request], [0, 0], by_one=True, kind=Counting))
    assert [body for _, body, _ in found] == [b"{}", b"{}"]
    assert [digest for _, _, digest in found] == [b"", headers_digest(found[0][0]["headers"])]
    assert Counting.read == 1
