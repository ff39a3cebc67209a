"""Written by scripts/client: asks of temporal."""

from datetime import datetime
from typing import Literal, TypedDict


class AsOfQuery(TypedDict, total=False):
    """When one record is meant as it was known at a moment."""

    as_of: str | datetime | None


Between = TypedDict(
    "Between", {"from": str | datetime | None, "to": str | datetime | None}, total=False
)
"""From one moment on, before another; what is left out is open."""


class TemporalBlock(TypedDict, total=False):
    """The moments a read is about; all that is said must hold."""

    as_of: str | datetime | None
    valid_during: Between | list[str | datetime | None] | None
    recorded_during: Between | list[str | datetime | None] | None
    natural: str | None
    reference_date: str | datetime | None
    timezone: str | None
    natural_mode: Literal["strict", "lenient"]
    include_superseded: bool
    refers_during: Between | list[str | datetime | None] | None


class PhraseResolution(TypedDict, total=False):
    """What a phrase stands for: exactly one of these."""

    valid_during: Between | list[str | datetime | None] | None
    recorded_during: Between | list[str | datetime | None] | None
    as_of: str | datetime | None


class PhraseRequest(TypedDict, total=False):
    """A phrase to register."""

    pattern: str | None
    resolves_to: PhraseResolution | None
    anchor: str | datetime | None
    expression: str | None
    idempotency_key: str | None
