"""Written by scripts/client: models of temporal."""

from datetime import datetime

import msgspec
from msgspec import Struct


class Between(Struct, frozen=True, kw_only=True):
    """From one moment on, before another; what is left out is open."""

    start: str | None = msgspec.field(default=None, name="from")
    end: str | None = msgspec.field(default=None, name="to")


class PhraseResolution(Struct, frozen=True, kw_only=True):
    """What a phrase stands for: exactly one of these."""

    valid_during: Between | list[str | None] | None = None
    recorded_during: Between | list[str | None] | None = None
    as_of: str | None = None


class PhraseRecord(Struct, frozen=True, kw_only=True):
    """A phrase as readers get it."""

    name: str
    pattern: str | None = None
    resolves_to: PhraseResolution | None = None
    anchor: str | None = None
    expression: str | None = None
    created_at: datetime | None = None


class PhrasePage(Struct, frozen=True, kw_only=True):
    """A page of phrases, in the order of their names."""

    items: list[PhraseRecord]
    next_cursor: str | None = None
    has_more: bool = False
