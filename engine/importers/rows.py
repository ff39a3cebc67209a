"""What do all importers share?  Rows, drafts of envelopes, times and names made presentable."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from schemas import limits

Mapping = dict[str, Any]
_FIELD: Final = re.compile(r"\{(\w+)\}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")
CUT_OFF: Final = b"\0cut off"
"""The line that stands for all that could not be unpacked: no JSON, and no text anyone writes."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class BadRow(Exception):
    """A row that cannot be taken; the message says why."""


class Broken(str):
    """What is wrong with a line that could not even be read, in its place; the others can."""

    __slots__ = ()


class Row(msgspec.Struct, frozen=True):
    """One thing of an export, and where it stood: a line, or its place in a list from 1 on."""

    line: int
    kind: str
    value: Any
    context: Mapping = {}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the request says about how to map (001 §8.11)."""

    scope_template: str
    imported_at: datetime
    extract: list[str] | None = None
    embed: str | None = None
    map_categories_to: str = "understanding"
    map_core_blocks_to: str = "understanding"
    map_archival_to: str = "events"
    preserve_timestamps: bool = True
    preserve_bi_temporal: bool = True
    ontology_mapping: dict[str, str] = {}


class Draft(msgspec.Struct, frozen=True):
    """An envelope before it is checked. `follows` is the draft of the same row it comes after."""

    envelope: Mapping
    follows: int | None = None


def scope_of(options: Options, **names: Any) -> str:
    """The scope a row belongs to: the template with the row's own names in it."""

    def filled(found: re.Match[str]) -> str:
        value = names.get(found[1])
        if value is None or not str(value).strip():
            raise BadRow(f"the scope template asks for {found[1]}, which the row does not have")
        return id_of(value)

    return _FIELD.sub(filled, options.scope_template)


def id_of(value: Any) -> str:
    """A foreign id as a segment of ours: what does not fit is replaced, and a digest keeps it
    apart from others that look alike then.
    """
    text = str(value)
    fit = _UNFIT.sub("_", text)
    if fit == text and len(text) <= limits.SCOPE_ID_CHARS_MAX:
        return text
    return f"{fit[:100]}_{sha256(text.encode()).hexdigest()[:8]}"


def instant(value: Any) -> datetime | None:
    """A time in any of the forms exports use; a zone that is missing is UTC. None for no time."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        raise BadRow("what is given as a time is none")
    if isinstance(value, (int, float)):
        return _from_seconds(float(value))
    try:
        found = datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise BadRow("what is given as a time is none") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


_MILLISECONDS_FROM: Final = 1e11


def _from_seconds(value: float) -> datetime:
    seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise BadRow("what is given as a time is none") from None


def key_of(*parts: Any) -> str:
    """An idempotency key: the same row imported again is the same experience."""
    return "imp-" + sha256(_canonical(parts)).hexdigest()[:56]


def label(name: str, value: Any) -> str:
    """`name:value`, short enough for a label."""
    text = value if isinstance(value, str) else _canonical(value).decode()
    return f"{name}:{text}"[: limits.NAME_CHARS_MAX]


def text_of(value: Any, what: str) -> str:
    """Words that are there."""
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"{what} is missing or empty")
    return value


def envelope(
    options: Options, *, scope: str, content: Mapping, key: str, at: datetime | None, **more: Any
) -> Mapping:
    """An envelope of an imported row; when nothing tells its time, that of the import."""
    when = at if at is not None and options.preserve_timestamps else options.imported_at
    context: Mapping = {"observed_at": when.isoformat()}
    labels = list(dict.fromkeys(more.pop("labels", [])))[: limits.LABELS_MAX]
    if labels:
        context["labels"] = labels
    for name in ("source_recorded_at", "refers_to"):
        value = more.pop(name, None)
        if value:
            context[name] = value.isoformat() if isinstance(value, datetime) else value
    directives: Mapping = more.pop("directives", {})
    if options.extract is not None:
        directives = directives | {"extract": options.extract}
    if options.embed is not None:
        directives = directives | {"embed": options.embed}
    made: Mapping = {
        "scope": scope,
        "modality": "imported",
        "content": content,
        "context": context,
        "idempotency_key": key_of(scope, key),
    } | more
    return made | ({"directives": directives} if directives else {})


def duration(length: timedelta) -> str:
    """A time to live, in ISO 8601; never less than a second."""
    return f"PT{max(1, int(length.total_seconds()))}S"


def object_of(value: Any) -> Mapping:
    """The object there is, or an empty one."""
    return value if isinstance(value, dict) else {}


def items_of(data: Any, *names: str) -> list[Any]:
    """The rows of an export: a list, or what an object holds under one of these names."""
    if isinstance(data, list):
        return data
    if isinstance(data, dict):
        for name in names:
            found = data.get(name)
            if isinstance(found, list):
                return found
            if isinstance(found, dict):
                return items_of(found, *names)
    return []
