"""What does the weighing of beliefs remember between two entries?

A belief's record shows the two sides as they were last revised; a scale beside it holds them as
they are. What every fact brings, and every telling of it, is written down by itself, so that it can
be taken away exactly when it is closed, cancelled or forgotten. Names and values stand in values,
never in keys.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from projectors.records import tables_of
from projectors.rows import Mark, Moved
from schemas import limits
from schemas.times import Instant


class Telling(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one event brings to a belief by a fact it told: a mass, on the word of a source."""

    event: bytes
    source: bytes
    mass: int


class Weighed(msgspec.Struct, frozen=True, array_like=True):
    """What one fact brings to a belief (`belief_evidence`, by the fact's id).

    `turn` counts the lives of the scale it lies on: what lapsed with a TTL weighs nothing later.
    `rest` is the mass of tellings beyond those listed; `cited` how many events the fact named.
    """

    belief: bytes
    turn: int
    against: bool
    lasting: bool
    redacted: bool
    refused: bool
    cited: int
    tellings: tuple[Telling, ...] = ()
    rest: int = 0

    @property
    def mass(self) -> int:
        """All that it brings."""
        return self.rest + sum(telling.mass for telling in self.tellings)


class Shown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fact that the record names among its supports."""

    fact: bytes
    mass: int
    against: bool


class Rival(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Another belief that cannot be true at the same time; `tension` in hundredths.

    `resolution` is that of the record, or `refused`: the facts let one of the two stand.
    """

    belief: bytes
    tension: int
    resolution: str


class Scale(msgspec.Struct, frozen=True, array_like=True):
    """The two sides of a belief as they weigh now (`belief_scales`, by the belief's id).

    `pros` of its `facts` speak for the claim, and say from when to when it is so; `lasting` ones
    have no TTL. `shown` names the newest and the heaviest; the sums are over all. `sources` counts
    the live reports by source and side. `revised_us` are the latest revisions, `held` the facts
    that wait for the next. A `refused` claim never got past what stood.
    """

    claim: bytes
    family: bytes
    valid_from_us: int
    valid_to_us: int | None = None
    refused: bool = False
    turn: int = 0
    pro: int = 0
    con: int = 0
    facts: int = 0
    pros: int = 0
    redacted: int = 0
    lasting: int = 0
    known_to_us: int | None = None
    shown: tuple[Shown, ...] = ()
    sources: dict[bytes, int] = {}
    rivals: tuple[Rival, ...] = ()
    revised_us: tuple[int, ...] = ()
    held: tuple[bytes, ...] = ()
    held_us: int | None = None
    confirmed: bool = False
    resolved: bool = False

    @property
    def scope_no(self) -> int:
        """The scope it lives in."""
        return int.from_bytes(self.claim[:4], "big")


class Period(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """From when to when a belief holds its claim true."""

    belief: bytes
    from_us: int
    to_us: int | None


class Periods(msgspec.Struct, frozen=True, array_like=True):
    """The beliefs in one claim (`belief_claims`): one for each time that it was so."""

    periods: tuple[Period, ...] = ()


class Values(msgspec.Struct, frozen=True, array_like=True):
    """The latest beliefs about one subject and predicate (`belief_values`)."""

    beliefs: tuple[bytes, ...] = ()


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A belief with evidence that its revision policy keeps waiting (`beliefs_held`, by its id)."""

    since: Instant
    due_s: int


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A thing that a fact says is the same."""

    other: str
    fact: bytes


class Sense(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of what the beliefs about a thing were held, from when to when that was known."""

    root: str
    from_us: int
    to_us: int | None = None


class Identity(msgspec.Struct, frozen=True, array_like=True):
    """A thing that was said to be another in a scope (`belief_identity`, by scope and thing).

    A row under no key says that there is such a thing in the tenant.
    """

    root: str = ""
    links: tuple[Link, ...] = ()
    senses: tuple[Sense, ...] = ()

    def at(self, known_us: int) -> str:
        """Of what its beliefs were held, as known at a moment."""
        found = self.root
        for sense in self.senses:
            if sense.from_us <= known_us and (sense.to_us is None or known_us < sense.to_us):
                found = sense.root
        return found

    @property
    def now(self) -> str:
        """Of what its beliefs are held."""
        last = self.senses[-1] if self.senses else None
        return self.root if last is None or last.to_us is not None else last.root


class Sameness(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a fact says is one (`belief_sameness`, by the fact's id), to be undone without it."""

    scope_no: int
    one: str
    other: str


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """A belief that fell below the floor (`beliefs_deleted`): 410 by id, in no list (001 §7.4)."""

    at: Instant
    by: str
    forgotten: bool = False


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's policy says of beliefs (`belief_rules`, one row)."""

    confidence_floor: float = limits.CONFIDENCE_FLOOR
    redaction_factor: float = limits.REDACTION_FACTOR


class Day(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The claims resolved on one day: how many, and their squared errors in units of 1e-8."""

    day: int
    samples: int
    errors: int


class Days(msgspec.Struct, frozen=True, array_like=True):
    """The claims of a family resolved lately (`belief_calibration`): by day, and in all."""

    days: tuple[Day, ...] = ()
    last_us: int = 0
    samples: int = 0
    errors: int = 0


TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    **tables_of("beliefs"),
    "beliefs_moved": Moved,
    "beliefs_about": Mark,
    "beliefs_held": Held,
    "belief_due": Mark,
    "beliefs_deleted": Deleted,
    "belief_scales": Scale,
    "belief_evidence": Weighed,
    "belief_claims": Periods,
    "belief_values": Values,
    "belief_terms": Mark,
    "belief_rules": Rules,
    "belief_calibration": Days,
    "belief_identity": Identity,
    "belief_sameness": Sameness,
}
