"""What does a scheduled item look like?  One-shot reminders and nudges (000, schedule)."""

from typing import Any, Final, Literal

import msgspec

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
