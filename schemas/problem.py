"""What does an error look like on the wire?  (001 §6.6)"""

from typing import Any

import msgspec


class ErrorEnvelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One shape for every failure; clients match on `error_code`."""

    error_code: str
    message: str
    request_id: str
    details: dict[str, Any] = {}
    retriable: bool
    documentation: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What an error code means."""

    error_code: str
    status: int
    retriable: bool
    meaning: str
    remedy: str


class ProblemList(msgspec.Struct, frozen=True, kw_only=True):
    """The error catalogue."""

    items: list[Problem]
