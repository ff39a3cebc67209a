"""Written by scripts/client: models of entry."""

from typing import Any

from msgspec import Struct


class Member(Struct, frozen=True, kw_only=True):
    """An actor's role in a scope."""

    actor: str
    role: str


class ScopePolicies(Struct, frozen=True, kw_only=True):
    """How a registered scope wants its memory treated."""

    consolidation: str | None = None
    conflict_resolution: str | None = None
    inherit_from: list[str] = []
    audit: str | None = None
    children: dict[str, Any] = {}
