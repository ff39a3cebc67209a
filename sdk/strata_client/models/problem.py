"""Written by scripts/client: models of problem."""

from msgspec import Struct


class Problem(Struct, frozen=True, kw_only=True):
    """What an error code means."""

    error_code: str
    status: int
    retriable: bool
    meaning: str
    remedy: str


class ProblemList(Struct, frozen=True, kw_only=True):
    """The error catalogue."""

    items: list[Problem]
