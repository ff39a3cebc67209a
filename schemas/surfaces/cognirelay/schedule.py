"""What does a scheduled item look like?  One-shot reminders and nudges (000, schedule)."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from schemas import limits
from schemas.surfaces.shapes import Table

Kind = Literal["reminder", "task_nudge"]
Status = Literal["pending", "acknowledged", "done", "retired"]

KINDS: Final = ("reminder", "task_nudge")
STATUSES: Final = ("pending", "acknowledged", "done", "retired")
ENDINGS: Final = ("acknowledged", "done")
"""What acknowledging may make of an item."""
SUBJECT_KINDS: Final = ("user", "peer", "thread", "task")


class ScheduledItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item as it is kept. `identity` is the hash of what it was created from, for ever."""

    schedule_id: str
    kind: Kind
    status: Status = "pending"
    title: str
    note: str | None = None
    due_at: str
    created_at: str
    updated_at: str
    created_by: str
    updated_by: str
    terminal_at: str | None = None
    terminal_by: str | None = None
    terminal_reason: str | None = None
    task_id: str | None = None
    thread_id: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    idempotency_key: str | None = None
    metadata: dict[str, Any] = {}
    version: int = 1
    identity: str


class CreateItem(msgspec.Struct, frozen=True, kw_only=True):
    """A new item as it was asked for, checked and in its normal form."""

    kind: Kind
    title: str
    due_at: str
    schedule_id: str | None = None
    idempotency_key: str | None = None
    note: str | None = None
    task_id: str | None = None
    thread_id: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    metadata: dict[str, Any] = {}


class ChangeItem(msgspec.Struct, frozen=True, kw_only=True):
    """Which fields of a pending item are to be what; those not named stay as they are."""

    expected_version: int
    fields: dict[str, Any]


class EndItem(msgspec.Struct, frozen=True, kw_only=True):
    """How an item ends. While it is pending the version must be named."""

    status: Status
    reason: str | None = None
    expected_version: int | None = None


class ListItems(msgspec.Struct, frozen=True, kw_only=True):
    """Which items to list."""

    status: str | None = None
    due: bool | None = None
    task_id: str | None = None
    thread_id: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    include_retired: bool = False
    limit: int
    offset: int = 0


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """What an orientation is about: items of this subject, thread or task are told with it."""

    subject_kind: str
    subject_id: str


# ── what is published ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Declared(Table):
    """An object that is checked elsewhere, field by field; here is how it is described."""

    said: tuple[tuple[str, Any], ...] = ()
    required: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """A closed object of these fields."""
        made = {"type": "object", "additionalProperties": False, "properties": dict(self.said)}
        return made | ({"required": list(self.required)} if self.required else {})


def _texts(most: int, least: int = 0, *, or_null: bool = True) -> dict[str, Any]:
    bounds = {"minLength": least} if least else {}
    kind = ["string", "null"] if or_null else "string"
    return {"type": kind, **bounds, "maxLength": most}


def _one_of(words: tuple[str, ...], *, or_null: bool = False) -> dict[str, Any]:
    if or_null:
        return {"type": ["string", "null"], "enum": [*words, None]}
    return {"type": "string", "enum": list(words)}


_STRING: Final = {"type": "string"}
_LINK: Final = _texts(limits.COGNIRELAY_ID_CHARS_MAX, 1)
_FILTER: Final = _texts(limits.COGNIRELAY_ID_CHARS_MAX, 1, or_null=False)
_VERSION: Final = {"type": "integer", "minimum": 1}
_REASON: Final = ("reason", _texts(limits.SCHEDULE_REASON_CHARS_MAX))
_SCALARS: Final = {"type": ["string", "number", "boolean", "null"]}
_FIELDS: Final[tuple[tuple[str, Any], ...]] = (
    ("kind", _one_of(KINDS)),
    ("title", _texts(limits.SCHEDULE_TITLE_CHARS_MAX, 1, or_null=False)),
    ("note", _texts(limits.SCHEDULE_NOTE_CHARS_MAX)),
    ("due_at", _STRING),
    ("task_id", _LINK),
    ("thread_id", _LINK),
    ("subject_kind", _one_of(SUBJECT_KINDS, or_null=True)),
    ("subject_id", _LINK),
    ("metadata", {"type": ["object", "null"], "additionalProperties": _SCALARS}),
)

CREATE: Final = Declared(
    (("schedule_id", _STRING), ("idempotency_key", _STRING), *_FIELDS), ("kind", "title", "due_at")
)
UPDATE: Final = Declared((*_FIELDS, ("expected_version", _VERSION)), ("expected_version",))
ACKNOWLEDGE: Final = Declared(
    (
        ("expected_version", _VERSION),
        ("status", _one_of(ENDINGS) | {"default": ENDINGS[0]}),
        _REASON,
    )
)
RETIRE: Final = Declared((("expected_version", _VERSION), _REASON))
LIST: Final = Declared(
    (
        ("status", _one_of(STATUSES)),
        ("due", {"type": "boolean"}),
        ("task_id", _FILTER),
        ("thread_id", _FILTER),
        ("subject_kind", _one_of(SUBJECT_KINDS)),
        ("subject_id", _FILTER),
        ("include_retired", {"type": "boolean", "default": False}),
        (
            "limit",
            {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.SCHEDULE_PAGE_ITEMS_MAX,
                "default": limits.SCHEDULE_PAGE_ITEMS_DEFAULT,
            },
        ),
        (
            "offset",
            {
                "type": "integer",
                "minimum": 0,
                "maximum": limits.SCHEDULE_OFFSET_MAX,
                "default": 0,
            },
        ),
    )
)
