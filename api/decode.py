"""What did the client send, and if it makes no sense, which field is to blame?"""

import contextlib
import json
import re
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.errors import (
    EngineError,
    InvalidBody,
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
    MissingField,
)
from schemas.surfaces.shapes import BadShape, Complaint, Shape
from schemas.times import Instant, as_utc

_AT = re.compile(r" - at `(?:key in )?\$?(?P<path>[^`]*)`$")
_NAMED = re.compile(r"(?P<what>missing required|contains unknown) field `(?P<field>[^`]*)`")
_SCOPE_FIELD = re.compile(r"(^|\.)(scope|path|consolidate_into|inherit_from\[[^]]*\])$")
_TIME_WORDS = ("datetime", "RFC3339")
_TIME_PARAMETERS = frozenset({"since", "until", "recorded_since", "recorded_until"})

PageLimit = Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)]


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a listing without filters."""

    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


def decode_body(
    decoder: "msgspec.json.Decoder[Any]",
    body: bytes,
    invalid: type[EngineError],
    other: "msgspec.json.Decoder[Any] | None" = None,
) -> Any:
    """The body as its type, or as another that is taken too; else an error that names the field."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if other is not None:
            with contextlib.suppress(msgspec.ValidationError):
                return other.decode(body)
        raise blame(str(error), invalid) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidBody(field="body", reason=reason.rstrip(".")) from error


def blame(message: str, invalid: type[EngineError]) -> EngineError:
    """Turn msgspec's sentence into the error of 001 §16, with field and reason."""
    found = _AT.search(message)
    path = found["path"].lstrip(".") if found else ""
    reason = _AT.sub("", message)
    named = _NAMED.search(reason)
    if named is not None:
        field = f"{path}.{named['field']}" if path else named["field"]
        if named["what"].startswith("missing"):
            return MissingField(field=field, reason="required")
        if path == "selector":
            # A selector that was meant otherwise must not forget more (001 §8.5): 422 by name.
            return InvalidParameter(field=field, reason="unknown field")
        return invalid(field=field, reason="unknown field")
    if any(word in reason for word in _TIME_WORDS):
        return InvalidTimestamp(field=path, reason=reason)
    if _SCOPE_FIELD.search(path):
        return InvalidScope(field=path, reason="not a path of type:id segments")
    return invalid(field=path or "body", reason=reason)


def decode_query(kind: type[Any], raw: bytes) -> Any:
    """Query parameters as a struct: unknown, repeated or malformed ones are named."""
    if len(raw) > limits.QUERY_STRING_BYTES_MAX:
        reason = f"longer than {limits.QUERY_STRING_BYTES_MAX} bytes"
        raise InvalidParameter(field="query", reason=reason)
    values: dict[str, Any] = {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidParameter(field="query", reason=str(error)) from error
    for name, value in pairs:
        if name in values:
            raise InvalidParameter(field=name, reason="given more than once")
        is_time = name in _TIME_PARAMETERS and name in kind.__struct_fields__
        values[name] = _instant(name, value) if is_time else value
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise blame(str(error), InvalidParameter) from error


def decode_shaped(shape: Shape, raw: bytes) -> Any:
    """A body as a shape reads it; what is no JSON is complained of where it stops being it."""
    try:
        value = msgspec.json.decode(raw) if raw.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        wrong = Complaint("json_invalid", ("body", _broken_at(raw)), "JSON decode error")
        raise BadShape([wrong]) from error
    if value is None:
        raise BadShape([Complaint("missing", ("body",), "Field required")])
    return shape.parse(value)


def _broken_at(raw: bytes) -> int:
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return error.pos
    except (UnicodeDecodeError, RecursionError):
        pass
    return 0


def decode_given(shape: Shape, raw: bytes) -> Any:
    """Query parameters as a shape reads them: of one given twice the last, unknown ones ignored."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidParameter(field="query", reason=str(error)) from error
    return shape.parse(dict(pairs), ("query",))


def _instant(name: str, value: str) -> datetime:
    """A time, strictly: the lax reading of numbers would take `since=2026` for seconds of 1970."""
    try:
        # A `+` in a query means a space; in a time with an offset it was meant as a plus.
        return as_utc(msgspec.convert(value.replace(" ", "+"), Instant), name)
    except msgspec.ValidationError as error:
        raise InvalidTimestamp(field=name, reason=str(error)) from error


def split_list(text: str | None) -> tuple[str, ...]:
    """A comma-separated parameter."""
    return tuple(part for part in (text or "").split(",") if part)
