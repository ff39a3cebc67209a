"""Written by scripts/client: asks of lifecycle."""

from typing import Literal, TypedDict


class StreamQuery(TypedDict, total=False):
    """Which announcements; every condition given must hold. `events` is a comma-separated list."""

    scope: str | None
    view: Literal["local", "descend"]
    event_id: str | None
    batch_id: str | None
    job_id: str | None
    import_id: str | None
    export_id: str | None
    erasure_id: str | None
    events: str | list[str] | None
    since_lifecycle_id: str | None


class LifecycleQuery(TypedDict, total=False):
    """The same conditions, a page at a time."""

    scope: str | None
    view: Literal["local", "descend"]
    event_id: str | None
    batch_id: str | None
    job_id: str | None
    import_id: str | None
    export_id: str | None
    erasure_id: str | None
    events: str | list[str] | None
    since_lifecycle_id: str | None
    limit: int
    cursor: str | None


class CancelRequest(TypedDict, total=False):
    """Why the event should not become memory."""

    audit_note: str | None
