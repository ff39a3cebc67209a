"""What may a text be found to say?  Candidates: assertions not yet resolved to entities.

They are handed on, at times to another process, and never kept.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

Cardinality = Literal["single", "multi"]
Kind = Literal["state", "event", "preference", "plan", "possession", "relation", "quantity"]


class Mention(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """Words that name something. `actor` is set when they mean a known actor: I, my, the user.

    `ref` is set when they name a record by its id: `ent_…` or `concept_…`.
    """

    text: str
    kind: Literal["person", "organisation", "place", "thing", "actor"] = "thing"
    actor: str | None = None
    ref: str | None = None


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """A literal: a number, a date, a truth, a phrase."""

    datatype: Literal["string", "integer", "number", "boolean", "date", "duration", "money", "json"]
    value: Any


class Candidate(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One assertion found in a text.

    `valid_from` None means from `observed_at` on. `ends` says that the state is over ("no longer",
    "left Acme"): `valid_to` holds when, and None there means at `observed_at`; then `valid_from`
    None means that nobody said when it began. `source` is who is quoted, when it is hearsay.
    `corrects` says that what stood before was never so ("actually, no: it was March").
    """

    subject: Mention
    predicate: str
    object: Mention | Value
    confidence: float
    polarity: Literal["positive", "negative"] = "positive"
    cardinality: Cardinality = "multi"
    kind: Kind = "state"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    ends: bool = False
    corrects: bool = False
    sentence: str = ""
    source: Mention | None = None


class Passage(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A piece of a long text that can be found and quoted by itself."""

    start: int
    end: int
    text: str


class Extraction(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """All that one text says."""

    candidates: tuple[Candidate, ...] = ()
    mentions: tuple[Mention, ...] = ()
    topics: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    extractor: str = "rules"
