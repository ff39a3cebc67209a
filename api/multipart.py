"""Which part of a form is the file?  Read as it comes: nothing is spooled to the disk in clear."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from schemas.errors import InvalidBody

_FIELD = "file"
_HEADERS_MAX = 16


class FilePart(NamedTuple):
    """The part that holds the file, its bytes still on their way."""

    content_type: str
    filename: str | None
    parts: AsyncIterator[bytes]


class _Form:
    """What the parser has found so far."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.name = self.value = b""
        self.is_file = self.seen = self.ended = False
        self.header_count = 0
        self.content_type = "application/octet-stream"
        self.filename: str | None = None
        self.data: list[bytes] = []

    def on_part_begin(self) -> None:
        self.headers, self.header_count = {}, 0

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self.name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self.value += data[start:end]

    def on_header_end(self) -> None:
        self.header_count += 1
        if self.header_count > _HEADERS_MAX:
            raise FormParserError("too many headers in one part")
        self.headers[self.name.lower()] = self.value
        self.name = self.value = b""

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self.headers.get(b"content-disposition", b""))
        self.is_file = not self.seen and options.get(b"name") == _FIELD.encode()
        if not self.is_file:
            return
        self.seen = True
        kind = self.headers.get(b"content-type")
        self.content_type = kind.decode("latin-1") if kind else self.content_type
        name = options.get(b"filename")
        self.filename = name.decode("utf-8", "replace") if name else None

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self.is_file:
            self.data.append(data[start:end])

    def on_part_end(self) -> None:
        self.is_file = False

    def on_end(self) -> None:
        self.ended = True

    def taken(self) -> bytes:
        """The file's bytes found since the last call."""
        found, self.data = b"".join(self.data), []
        return found


_CALLBACKS = (
    "on_part_begin",
    "on_header_field",
    "on_header_value",
    "on_header_end",
    "on_headers_finished",
    "on_part_data",
    "on_part_end",
    "on_end",
)


async def file_part(content_type: bytes, body: AsyncIterator[bytes]) -> FilePart:
    """The part named `file` of a multipart form."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidBody(field="Content-Type", reason="a multipart form names its boundary")
    form = _Form()
    callbacks: Any = {name: getattr(form, name) for name in _CALLBACKS}
    parser = MultipartParser(boundary, callbacks)
    async for data in body:
        _feed(parser, data)
        if form.seen:
            return FilePart(form.content_type, form.filename, _rest(form, parser, body))
    raise InvalidBody(field=_FIELD, reason=f"the form has no part named {_FIELD}")


async def _rest(
    form: _Form, parser: MultipartParser, body: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    yield form.taken()
    async for data in body:
        _feed(parser, data)
        yield form.taken()
    if not form.ended:
        raise InvalidBody(field="body", reason="the form ends in the middle of a part")


def _feed(parser: MultipartParser, data: bytes) -> None:
    try:
        parser.write(data)
    except FormParserError as error:
        raise InvalidBody(field="body", reason=f"not a multipart form: {error}"[:200]) from error
