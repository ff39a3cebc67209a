"""What does a model say while it is still speaking?  Bytes go in, words come out; nothing is read.

An endpoint streams its answer as server-sent events, each with a few characters of a JSON object;
the words are one string of that object. Where the network cuts the bytes makes no difference, be it
inside a character, an escape or a marker. What cannot be understood is never skipped: it may have
been words.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, TypeVar

import msgspec

from schemas import limits

Shape = TypeVar("Shape")

MARKER: Final = re.compile(r"\[\d{1,4}\]")
"""What a citation looks like in a text."""

_LAST_OPEN: Final = re.compile(r"\[\d{1,4}\Z")
_OPEN_REVERSED: Final = re.compile(r"(?:\d{0,4}\[)+")
"""What may yet become a marker, also when one inside it is taken out; read from its end, which
takes one pass however many brackets there are."""

_BREAK: Final = re.compile(rb"\r?\n|\r(?=[^\n])")
"""The end of a line; a last CR may be the first half of a CR LF."""

_BOM: Final = b"\xef\xbb\xbf"
_THINK, _THOUGHT = "<think>", "</think>"
_ESCAPED: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{4}")


class Unheard(Exception):
    """What came is no answer: the endpoint is in trouble, or what it said is of no use."""

    def __init__(self, kind: Literal["away", "unusable"], reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    index: int | None = 0
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None
    error: Any = None


class Hearing:
    """One stream of one answer, up to its end."""

    def __init__(self, field: str) -> None:
        self.version: str | None = None
        self.tokens: int | None = None
        """What it cost, once the endpoint has said so."""
        self.chars = 0
        """Characters heard, thoughts and all."""
        self.is_over = False
        """Nothing more will come."""
        self.body: bytearray | None = None
        """All of it, from an endpoint that does not stream and answers in one piece."""
        self._name = field
        self._field = _Field(field)
        self._events = _Events()
        self._head: bytes | None = b""
        self._bytes = 0
        self._finish: str | None = None
        self._is_refused = False

    @property
    def is_whole(self) -> bool:
        """Whether the object is complete: nothing that comes now changes the answer."""
        return self._field.is_whole

    @property
    def has_words(self) -> bool:
        """Whether any of it has been said."""
        return bool(self._field.words)

    def feed(self, piece: bytes) -> str:
        """The words that this piece adds."""
        self._bytes += len(piece)
        if self._bytes > limits.MODEL_STREAM_BYTES_MAX:
            raise Unheard("unusable", f"more than {limits.MODEL_STREAM_BYTES_MAX} bytes of stream")
        if self._head is not None:
            piece = self._begin(self._head + piece)
        if self.body is not None:
            self.body += piece
            _check(len(self.body))
            return ""
        return self._heard(piece)

    def end(self) -> str:
        """The words that only the end of the bytes sets free: of a last line that has no end."""
        words = "" if self.body is not None else self._heard(b"\n\n")
        self.is_over = True
        return words

    def value(self, shape: type[Shape]) -> Shape:
        """The whole answer as it was asked for; its words are those that were said."""
        if not self.is_whole:
            raise Unheard("unusable", self._why_not())
        value = self._field.value(shape)
        if getattr(value, self._name) != "".join(self._field.words):
            raise Unheard("unusable", f"not what was asked for: {self._name} is there twice")
        return value

    def _begin(self, head: bytes) -> bytes:
        """What an event can begin with is no brace: that is an endpoint that does not stream."""
        text = head.removeprefix(_BOM).lstrip()
        if not text or _BOM.startswith(head):
            self._head = head if _BOM.startswith(head) else b""
            return b""
        self._head = None
        if text.startswith(b"{"):
            self.body = bytearray()
        return text

    def _heard(self, piece: bytes) -> str:
        return "".join([self._chunk(data) for data in self._events.feed(piece)])

    def _chunk(self, data: bytes) -> str:
        """The words of one event."""
        if self.is_over or not data.strip():
            return ""
        if data.strip() == b"[DONE]":
            self.is_over = True
            return ""
        chunk = _understood(data, _Chunk)
        self.version = chunk.system_fingerprint or chunk.model or self.version
        if chunk.usage is not None and chunk.usage.total_tokens is not None:
            self.tokens = chunk.usage.total_tokens
        choice = next((one for one in chunk.choices or () if not one.index), None)
        self._finish = (choice.finish_reason if choice else None) or self._finish
        if chunk.error or self._finish == "error":
            raise Unheard("away", f"it broke off: {_excerpt(chunk.error)}")
        if choice is None or choice.delta is None:
            return ""
        self._is_refused |= bool(choice.delta.refusal)
        text = choice.delta.content or ""
        self.chars += len(text)
        return self._field.feed(text)

    def _why_not(self) -> str:
        if self._finish == "length":
            return "the answer was cut off"
        if self._field.is_begun:
            return "the answer broke off"
        if self._is_refused:
            return "the model refused"
        return "the answer is no JSON object" if self.chars else "an empty answer"


class _Events:
    """The data of server-sent events; comments, names and ids are nothing to us."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that this piece completes."""
        self._rest += piece
        if b"\n" not in piece and b"\r" not in piece:
            _check(len(self._rest))
            return
        *lines, rest = _BREAK.split(bytes(self._rest))
        self._rest = bytearray(rest)
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(line)
                _check(self._size)
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data.clear()
                self._size = 0


class _Field:
    """One string of the first object in a text, as far as it is known."""

    def __init__(self, name: str) -> None:
        self.words: list[str] = []
        self.is_begun = False
        self.is_whole = False
        self._name = name
        self._raw: list[str] = []
        self._before = ""
        self._is_thinking = False
        self._depth = 0
        self._key: str | None = None
        self._is_value = False
        self._has_spoken = False
        self._string: list[str] | None = None
        """Characters of the string that is open."""
        self._escape = ""
        self._half = ""

    def feed(self, text: str) -> str:
        """The words that this piece adds."""
        known = len(self.words)
        for char in text if self.is_begun else self._found(text):
            if self.is_whole:
                break
            self._raw.append(char)
            self._read(char)
        _check(len(self._raw))
        return "".join(self.words[known:])

    def value(self, shape: type[Shape]) -> Shape:
        """The object; a line may break inside a string, as models let it."""
        return _understood("".join(self._raw), shape)

    def _found(self, text: str) -> str:
        """The text from the object on; what is thought aloud before it is not looked at."""
        text, self._before = self._before + text, ""
        while True:
            if self._is_thinking:
                closed, text = _after(text, _THOUGHT)
                if not closed:
                    self._before = text
                    return ""
            before, brace, rest = text.partition("{")
            self._is_thinking, before = _after(before, _THINK)
            if self._is_thinking:
                text = before + brace + rest
            elif brace:
                self.is_begun = True
                return brace + rest
            else:
                self._before = before
                return ""

    def _read(self, char: str) -> None:
        """One character of the object; whether it is JSON at all is seen when it is whole."""
        if self._string is not None:
            self._read_string(self._string, char)
        elif char == '"':
            is_wanted = self._depth == 1 and self._is_value and self._key == self._name
            self._string = self.words if is_wanted and not self._has_spoken else []
            self._has_spoken |= is_wanted
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            self.is_whole = self._depth == 0
        elif self._depth == 1 and char in ":,":
            self._is_value = char == ":"

    def _read_string(self, string: list[str], char: str) -> None:
        if self._escape:
            self._escape += char
            self._unescape(string)
        elif char == "\\":
            self._escape = char
        elif char != '"':
            self._say(string, char)
        elif self._half:
            raise Unheard("unusable", "half a character")
        else:
            if self._depth == 1 and not self._is_value:
                self._key = "".join(string)
            self._string = None

    def _unescape(self, string: list[str]) -> None:
        kind, digits = self._escape[1], self._escape[2:]
        if kind == "u" and len(digits) < 4:
            return
        if kind in _ESCAPED:
            char = _ESCAPED[kind]
        elif kind == "u" and _HEX.fullmatch(digits):
            char = chr(int(digits, 16))
        else:
            raise Unheard("unusable", "no such escape in a string")
        self._escape = ""
        self._say(string, char)

    def _say(self, string: list[str], char: str) -> None:
        """A character; one beyond the first 65,536 comes in two halves, and leaves in one piece."""
        is_second = "\udc00" <= char <= "\udfff"
        if bool(self._half) != is_second:
            raise Unheard("unusable", "half a character")
        if "\ud800" <= char <= "\udbff":
            self._half = char
            return
        string.append(_joined(self._half + char) if is_second else char)
        self._half = ""


class Gate:
    """Words on their way out: only with markers that may leave, and without blanks around them."""

    def __init__(self, markers: Collection[str]) -> None:
        self._markers = markers
        self._held: list[str] = []
        self._has_spoken = False

    def feed(self, words: str) -> str:
        """What may leave now; what may yet become a marker is held back."""
        for char in words:
            opened = _LAST_OPEN.search("".join(self._held[-5:])) if char == "]" else None
            if opened is None or opened[0] + char in self._markers:
                self._held.append(char)
            else:
                del self._held[-len(opened[0]) :]
        text = "".join(self._held)
        still_open = _OPEN_REVERSED.match(text[::-1])
        return self._leave(text, len(text) - (0 if still_open is None else still_open.end()))

    def end(self) -> str:
        """What was held back and is no marker after all."""
        text = "".join(self._held)
        return self._leave(text, len(text))

    def _leave(self, text: str, end: int) -> str:
        """The text up to there; whether blanks at its end leave is seen when more comes."""
        leaving = text[:end].rstrip()
        self._held = list(text[len(leaving) :])
        if not self._has_spoken:
            leaving = leaving.lstrip()
        self._has_spoken |= bool(leaving)
        return leaving


def _after(text: str, mark: str) -> tuple[bool, str]:
    """Whether the mark is there, and what follows it; else the end that may begin one."""
    _, found, rest = text.partition(mark)
    if found:
        return True, rest
    sizes = range(min(len(mark) - 1, len(text)), 0, -1)
    return False, next((text[-size:] for size in sizes if mark.startswith(text[-size:])), "")


def _understood(text: bytes | str, shape: type[Shape]) -> Shape:
    """JSON as some write it: with breaks inside strings, and characters cut in two halves."""
    try:
        told = json.loads(text if isinstance(text, bytes) else _joined(text), strict=False)
        return msgspec.convert(told, shape)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise Unheard("unusable", f"not what was asked for: {error}"[:300]) from error


def _joined(halves: str) -> str:
    """Two halves as the one character they are."""
    return halves.encode("utf-16", "surrogatepass").decode("utf-16")


def _check(size: int) -> None:
    if size > limits.MODEL_ANSWER_BYTES_MAX:
        reason = f"more than {limits.MODEL_ANSWER_BYTES_MAX} bytes of answer"
        raise Unheard("unusable", reason)


def _excerpt(error: Any) -> str:
    said = error.get("message", error) if isinstance(error, dict) else error
    return " ".join(str(said).split())[:200]
