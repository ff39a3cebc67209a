"""Written by scripts/client: asks of understanding."""

from datetime import datetime
from typing import Literal, TypedDict


class ConceptsQuery(TypedDict, total=False):
    """Filters of a page of concepts."""

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
    topic: str | None
    depth: int
    include_deprecated: bool


class CoverageQuery(TypedDict, total=False):
    """Of what."""

    scope: str


class ConceptQuery(TypedDict, total=False):
    """Which version."""

    as_of: str | datetime | None
    version: int | None


class RelatedQuery(TypedDict, total=False):
    """By which relation, how far."""

    limit: int
    cursor: str | None
    relation: str | None
    depth: int
    as_of: str | None
    include_deprecated: bool
