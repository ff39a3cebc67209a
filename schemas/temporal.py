"""Which moments does a reader ask about?  The `temporal` block and registered phrases (001 §12)."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas import limits
from schemas.envelope import IdempotencyKey
from schemas.times import Instant

Moment = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.MOMENT_CHARS_MAX,
        description="RFC 3339 with a zone, or a date: its start, in UTC or in `timezone`.",
    ),
]
Natural = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.NAME_CHARS_MAX,
        description="e.g. last 30 days, in April, since March, or a registered phrase.",
    ),
]
ZoneName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$(?!\n)", max_length=64),
]
NaturalMode = Literal["strict", "lenient"]


class Between(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """From one moment on, before another; what is left out is open."""

    start: Moment | None = msgspec.field(default=None, name="from")
    end: Moment | None = msgspec.field(default=None, name="to")


Pair = Annotated[list[Moment | None], Meta(min_length=2, max_length=2)]
During = Between | Pair
"""A half-open window, as `[from, to]` or as `{from, to}`."""


class TemporalBlock(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The moments a read is about; all that is said must hold (001 §12.2, §18.2.1).

    `as_of` pins what was known and what was valid; a window of validity takes the place of the
    second pin. `natural` is read against `reference_date`, which is now when left out.
    """

    as_of: Moment | None = None
    valid_during: During | None = None
    recorded_during: During | None = None
    natural: Natural | None = None
    reference_date: Moment | None = None
    timezone: ZoneName | None = None
    natural_mode: NaturalMode = "strict"
    include_superseded: bool = False
    refers_during: During | None = None


# ── phrases (001 §8.17) ──────────────────────────────────────────────────────────────────────

PhraseName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.PHRASE_CHARS_MAX,
        pattern=r"^[^\x00-\x1f\x7f/]*[^\s\x00-\x1f\x7f/][^\x00-\x1f\x7f/]*$(?!\n)",
    ),
]
Pattern = Annotated[str, Meta(min_length=1, max_length=limits.PHRASE_CHARS_MAX)]
_LENGTH = r"[+-]?P(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?"
Expression = Annotated[
    str,
    Meta(
        pattern=rf"^{_LENGTH}\.\.{_LENGTH}$(?!\n)",
        max_length=limits.PHRASE_CHARS_MAX,
        description="Two ISO 8601 durations after the anchor: +P6M..+P9M.",
    ),
]


class Resolution(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a phrase stands for: exactly one of these."""

    valid_during: During | None = None
    recorded_during: During | None = None
    as_of: Moment | None = None


class Phrase(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Words of a tenant's own for a stretch of time.

    Either `resolves_to` says which, or `expression` does, counted from `anchor`, or from the
    reader's reference date when there is none. `pattern` is what readers write; the name if absent.
    """

    name: PhraseName
    pattern: Pattern | None = None
    resolves_to: Resolution | None = None
    anchor: Moment | None = None
    expression: Expression | None = None


class PhraseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A phrase as it stands."""

    phrase: Phrase
    created_at: Instant
    by: str


class PhraseRequest(
    Phrase, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A phrase to register."""

    idempotency_key: IdempotencyKey | None = None


class PhraseRecord(
    Phrase, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A phrase as readers get it."""

    # Always sent; optional in the schema, because the seed's own example leaves it out.
    created_at: Instant | UnsetType = UNSET


class PhrasePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of phrases, in the order of their names."""

    items: list[PhraseRecord]
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    next_cursor: str | None = None
    has_more: bool = False
