"""Written by scripts/client: asks of entry."""

from typing import Any, Literal, Required, TypedDict


class Member(TypedDict, total=False):
    """An actor's role in a scope."""

    actor: Required[str]
    role: Required[Literal["owner", "writer", "reader"]]


class ScopePolicies(TypedDict, total=False):
    """How a registered scope wants its memory treated."""

    consolidation: str | None
    conflict_resolution: str | None
    inherit_from: list[str]
    audit: str | None
    children: dict[str, Any]
