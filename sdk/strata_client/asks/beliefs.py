"""Written by scripts/client: asks of beliefs."""

from datetime import datetime
from typing import Literal, TypedDict


class BeliefsQuery(TypedDict, total=False):
    """Filters of a page of beliefs."""

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
    about: str | None
    predicate: str | None
    stance: Literal["supported", "contradicted", "uncertain", "deprecated"] | None
    min_confidence: float | None
    include_deprecated: bool


class WhyQuery(TypedDict, total=False):
    """Which belief."""

    as_of: str | datetime | None


class HistoryQuery(TypedDict, total=False):
    """Whose history."""

    limit: int
    cursor: str | None
