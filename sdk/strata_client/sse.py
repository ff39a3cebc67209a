"""How do bytes become server-sent events?  A parser that is fed and never reads."""

from collections.abc import Iterator

from msgspec import Struct


class Frame(Struct, frozen=True):
    """One server-sent event as it came."""

    event: str
    data: bytes
    id: str | None = None


class Parser:
    """Fed with pieces of any size, it gives the events that are complete.

    Lines may end in LF, CR LF or CR; a CR at the end of a piece may be the first half of a CR LF.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self.last_id: str | None = None
        """The id to resume from; one may come without an event."""

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The events that this piece completes."""
        text = (self._rest + piece).replace(b"\r\n", b"\n")
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(b"\r").replace(b"\r", b"\n")
        *lines, last = text.split(b"\n")
        self._rest = last + held
        for line in lines:
            frame = self._line(line)
            if frame is not None:
                yield frame

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._end()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode()
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode()
        return None

    def _end(self) -> Frame | None:
        frame = None
        self.last_id = self._id or self.last_id
        if self._data:
            frame = Frame(self._event or "message", b"\n".join(self._data), self._id)
        self._event, self._data, self._id = "", [], None
        return frame
