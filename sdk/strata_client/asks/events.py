"""Written by scripts/client: asks of events."""

from datetime import datetime
from typing import Literal, TypedDict


class EventsQuery(TypedDict, total=False):
    """Filters of a page of events; `since` and `until` bound `observed_at`, half-open."""

    as_of: str | datetime | None
    valid_during: str | tuple[str | datetime | None, str | datetime | None] | None
    recorded_during: str | tuple[str | datetime | None, str | datetime | None] | None
    natural: str | None
    reference_date: str | datetime | None
    timezone: str | None
    natural_mode: Literal["strict", "lenient"]
    include_superseded: bool
    scope: str
    view: Literal["local", "holistic", "descend", "raw", "granular", "narrative", "structured"]
    order: Literal["newest", "oldest"]
    limit: int
    cursor: str | None
    since: str | datetime | None
    until: str | datetime | None
    recorded_since: str | datetime | None
    recorded_until: str | datetime | None
    observed_actor: str | None
    subject: str | None
    modality: str | None
    labels: str | list[str] | None
