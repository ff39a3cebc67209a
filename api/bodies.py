"""How does a request's body come in?  Counted, within a deadline, and only in a form we read."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

from schemas import limits
from schemas.errors import BodyTimeout, BodyTooLarge, InvalidBody, UnsupportedMediaType

Receive = Callable[[], Awaitable[dict[str, Any]]]

_JSON_TYPES: Final = (b"application/json", b"")


def check_media_type(headers: dict[bytes, bytes]) -> None:
    """JSON in UTF-8, not compressed; anything else is said at once."""
    given = headers.get(b"content-type", b"")
    if given == b"application/json" and b"content-encoding" not in headers:
        return  # what nearly everyone sends
    kind, _, parameters = given.partition(b";")
    kind = kind.strip().lower()
    if kind not in _JSON_TYPES and not kind.endswith(b"+json"):
        raise UnsupportedMediaType(
            field="Content-Type", reason=f"send application/json, not {kind.decode('latin-1')[:80]}"
        )
    charset = re.search(rb"charset=\"?([^\s;\"]+)", parameters.lower())
    if charset is not None and charset[1] not in (b"utf-8", b"utf8"):
        raise UnsupportedMediaType(field="Content-Type", reason="send UTF-8")
    encoding = headers.get(b"content-encoding", b"identity").lower()
    if encoding != b"identity":
        raise UnsupportedMediaType(field="Content-Encoding", reason="send it uncompressed")


async def read_body(receive: Receive, headers: dict[bytes, bytes], size_max: int) -> bytes:
    """The whole body, counted as it comes, within a deadline."""
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > size_max:
        raise _too_large(size_max)
    whole = _whole(receive, size_max)
    try:
        # Most bodies arrive with their headers: take them in one step, without a timer.
        waiting_for = whole.send(None)
    except StopIteration as done:
        return bytes(done.value)
    try:
        async with asyncio.timeout(limits.BODY_READ_S_MAX):
            return await _Resumed(whole, waiting_for)
    except TimeoutError as error:
        limit_s = limits.BODY_READ_S_MAX
        raise BodyTimeout(field="body", reason=f"{limit_s} s passed", limit_s=limit_s) from error


async def body_parts(
    receive: Receive, headers: dict[bytes, bytes], size_max: int
) -> AsyncIterator[bytes]:
    """The body as it comes, for who does not want to hold it; the reader counts."""
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > size_max:
        raise _too_large(size_max)
    more = True
    while more:
        try:
            coming = asyncio.ensure_future(receive())
            message = _arrived(await asyncio.wait_for(coming, limits.BLOB_IDLE_S_MAX))
        except TimeoutError as error:
            limit_s = limits.BLOB_IDLE_S_MAX
            reason = f"nothing came for {limit_s} s"
            raise BodyTimeout(field="body", reason=reason, limit_s=limit_s) from error
        more = bool(message.get("more_body"))
        yield message.get("body", b"")


class _Resumed:
    """Awaits the rest of a coroutine that has taken its first step."""

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, bytes], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Generator[Any, Any, bytes]:
        while True:
            try:
                sent = yield self._waiting_for
            except BaseException as error:  # noqa: BLE001 - also a cancellation: thrown into it
                step: Callable[[Any], Any] = self._coroutine.throw
                argument: Any = error
            else:
                step, argument = self._coroutine.send, sent
            try:
                self._waiting_for = step(argument)
            except StopIteration as done:
                return bytes(done.value)


async def _whole(receive: Receive, size_max: int) -> bytes:
    message = _arrived(await receive())
    if not message.get("more_body"):
        return within(message.get("body", b""), size_max)
    parts, size = [], 0
    while True:
        part = message.get("body", b"")
        size += len(part)
        if size > size_max:
            raise _too_large(size_max)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = _arrived(await receive())


def _arrived(message: dict[str, Any]) -> dict[str, Any]:
    """The next piece of the body; what a client left unfinished is not a shorter body."""
    if message["type"] == "http.disconnect":
        raise InvalidBody(field="body", reason="the connection closed before it was complete")
    return message


def _too_large(size_max: int) -> BodyTooLarge:
    return BodyTooLarge(field="body", reason=f"at most {size_max} bytes", limit_bytes=size_max)


def within(body: bytes, size_max: int) -> bytes:
    """The body, unless it is longer than that."""
    if len(body) > size_max:
        raise _too_large(size_max)
    return body
