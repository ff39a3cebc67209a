"""Written by scripts/client: asks of facts."""

from datetime import datetime
from typing import Literal, TypedDict


class FactsQuery(TypedDict, total=False):
    """Filters of a page of facts."""

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
    subject: str | None
    predicate: str | None
    object: str | None
    polarity: Literal["positive", "negative"] | None
    min_confidence: float | None


class TimelineQuery(TypedDict, total=False):
    """Of what, where."""

    as_of: str | datetime | None
    valid_during: str | tuple[str | datetime | None, str | datetime | None] | None
    recorded_during: str | tuple[str | datetime | None, str | datetime | None] | None
    natural: str | None
    reference_date: str | datetime | None
    timezone: str | None
    natural_mode: Literal["strict", "lenient"]
    include_superseded: bool
    scope: str
    limit: int
    cursor: str | None


class ConflictsQuery(TypedDict, total=False):
    """Where."""

    scope: str
    view: Literal["local", "holistic", "descend", "raw", "granular", "narrative", "structured"]
    order: Literal["newest", "oldest"]
    limit: int
    cursor: str | None
