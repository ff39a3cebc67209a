"""Is a capsule's list of related documents as it must be?  (000, `related_documents`)

Of all that is wrong the gravest is said, and of equals the first.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

from api.cognirelay.errors import refuse
from schemas.limits import CAPSULE_CHARS, CAPSULE_ENTRIES

_FIELD: Final = "continuity.related_documents[]"
_REQUIRED: Final = ("path", "kind", "label")
_KEYS: Final = (*_REQUIRED, "relevance")
_EMBEDDED: Final = frozenset({"content", "body", "text", "excerpt", "markdown", "html", "payload"})
_RELEVANCE: Final = ("primary", "supporting", "background")
_PATH: Final = re.compile(r"[A-Za-z0-9._/-]+")
_KIND: Final = re.compile(r"[a-z][a-z0-9_]*")
_LENGTHS: Final = {
    "path": CAPSULE_CHARS["document_path"],
    "kind": CAPSULE_CHARS["document_kind"],
    "label": CAPSULE_CHARS["label"],
    "relevance": CAPSULE_CHARS["document_kind"],
}

Fault = tuple[tuple[int, ...], str]
"""How grave, then where; and how it is said."""


def check_documents(value: Any) -> None:
    """Refuse a list that is not one of references, with the gravest of its faults."""
    worst = min(_faults(value), default=None)
    if worst is not None:
        raise refuse(400, worst[1])


def _faults(value: Any) -> Iterator[Fault]:
    if _embeds(value):
        yield (1,), f"Embedded content is not allowed in {_FIELD}"
    if not isinstance(value, list):
        yield (3, -1), f"Invalid value type in {_FIELD}"
        return
    if len(value) > CAPSULE_ENTRIES["related_documents"]:
        yield (11,), "Too many entries in continuity.related_documents"
    seen: set[tuple[Any, ...]] = set()
    for at, entry in enumerate(value):
        if not isinstance(entry, dict):
            yield (3, at, len(_KEYS)), f"Invalid value type in {_FIELD}"
            continue
        found = list(_entry_faults(at, entry))
        yield from found
        whole = tuple(entry.get(key) for key in _KEYS)
        if not found and whole in seen:
            yield (10, at), "Duplicate related_documents entry"
        seen.add(whole if not found else ())


def _entry_faults(at: int, entry: dict[str, Any]) -> Iterator[Fault]:
    if any(key not in _KEYS and key not in _EMBEDDED for key in entry):
        yield (2, at), f"Unknown key in {_FIELD}"
    for rank, key in enumerate(_REQUIRED):
        if key not in entry:
            yield (4, at, rank), f"Missing required key in {_FIELD}"
    for rank, key in enumerate(_KEYS):
        if key in entry:
            fault = _value_fault(key, entry[key])
            if fault is not None:
                yield (fault[0], at, rank), fault[1]


def _value_fault(key: str, value: Any) -> tuple[int, str] | None:
    """What is wrong with one value: how grave it is, and how it is said."""
    if not isinstance(value, str):
        return 3, f"Invalid value type in {_FIELD}"
    if not value:
        return 7, f"Value too short in {_FIELD}"
    if value != value.strip():
        return 8, f"Leading or trailing whitespace is not allowed in {_FIELD}"
    if len(value) > _LENGTHS[key]:
        return 9, f"Value too long in {_FIELD}.{key}"
    if key == "path" and not _is_path(value):
        return 5, f"Invalid path in {_FIELD}.path"
    if key == "kind" and not _KIND.fullmatch(value):
        return 6, f"Invalid kind format in {_FIELD}"
    if key == "relevance" and value not in _RELEVANCE:
        return 6, f"Invalid relevance in {_FIELD}"
    return None


def _is_path(value: str) -> bool:
    if not _PATH.fullmatch(value) or value.startswith("/") or ".." in value:
        return False
    return not posixpath.normpath(value).startswith(("..", "/"))


def _embeds(value: Any) -> bool:
    """Whether words of the document itself came along, however deep."""
    if isinstance(value, dict):
        return any(key in _EMBEDDED or _embeds(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_embeds, value))
