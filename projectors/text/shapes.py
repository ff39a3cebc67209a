"""What do the parts of a text mean to one another?  Times, speakers, predicates and terms."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from projectors.text.candidates import Cardinality, Kind, Mention

Role = Literal["at", "since", "until", "between", "for"]


class Interval(msgspec.Struct, frozen=True, gc=False):
    """From `start` on, before `end`; None means open on that side."""

    start: datetime | None
    end: datetime | None


class TimePhrase(msgspec.Struct, frozen=True, gc=False):
    """Where words of time stand in a text, what they mean, and how they bind it."""

    first: int
    last: int
    interval: Interval
    role: Role


class Speakers(msgspec.Struct, frozen=True):
    """The ones a text's pronouns and its `the user` mean; None when nobody can tell.

    `serves` says that I is an assistant, most of whose words are service (`replies`).
    """

    me: Mention | None
    you: Mention | None
    user: Mention | None = None
    serves: bool = False


class Predicate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a predicate behaves: how many objects at once, what kind, and whether they are things."""

    name: str
    cardinality: Cardinality = "multi"
    kind: Kind = "state"
    names_things: bool = False


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A predicate or relation as a vocabulary defines it."""

    id: str
    datatype: str | None = None
    values: tuple[Any, ...] = ()
    cardinality: str | None = None
    aliases: tuple[str, ...] = ()


class TermMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The term found, how surely, and the object as the vocabulary spells it."""

    term: Term
    confidence: float
    value: Any = None
