"""Written by scripts/client: asks of entities."""

from typing import Literal, TypedDict


class EntitiesQuery(TypedDict, total=False):
    """Where, and what it is called."""

    scope: str
    view: Literal["local", "holistic", "descend", "raw", "granular", "narrative", "structured"]
    name: str | None
    limit: int
    cursor: str | None


class EntityQuery(TypedDict, total=False):
    """Where."""

    scope: str
