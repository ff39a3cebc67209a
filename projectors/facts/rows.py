"""What do facts remember between two entries?

A fact's record shows what is known; beside it stand who told it, and where it lies on its line: the
order in time of all that was said about one thing. Keys hold numbers and hashes only.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from projectors.records import tables_of
from projectors.rows import Mark, Moved
from schemas.layers import Conflict

TOLD: Final = 0
ENDED: Final = 1
CORRECTED: Final = 2
"""How an entry spoke of a fact: said it, said when it was over, said when it really began."""

SAID: Final = b"+"
DENIED: Final = b"-"
"""The two values on the line of a single object."""

BESIDE: Final = 1
OPPOSED: Final = 2
"""Marks of a line: other facts stand beside it; some of its facts have a contrary elsewhere."""


class Telling(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one entry said about a fact."""

    event: str
    role: int
    confidence: float
    trust: int
    is_first_speaker: bool
    from_us: int
    to_us: int | None = None
    expires_us: int | None = None


class Rival(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fact in conflict with another: a claim that did not get past it, and what it claimed.

    Without a value it is the other way round: that fact stands, and this one did not get past it.
    """

    fact: bytes
    value: bytes | None
    conflict: bytes


class Contrary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where, and as which value, the contrary of a fact lies: on the line of a predicate that holds
    one value at a time lie all its values, and what is denied of each lies on a line of its own.
    """

    line: bytes
    value: bytes


class Basis(msgspec.Struct, frozen=True, array_like=True):
    """What a fact rests on (`facts_basis`, by its id), and where it lies: a line and a start."""

    line: bytes
    start_us: int
    value: bytes
    tellings: list[Telling]
    contrary: Contrary | None = None
    rivals: list[Rival] = []


class Segment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fact on its line: from `start_us` on, until `own_to_us` or the start of the next.

    `strength` is the surest single telling: what is often repeated must not become unshakeable.
    """

    start_us: int
    own_to_us: int | None
    fact: bytes
    value: bytes
    strength: float
    trust: int
    expires_us: int | None = None


class Twig(msgspec.Struct, frozen=True, array_like=True):
    """A row of a line (`facts_lines`): at level 0 segments, above it the numbers of further rows.

    `starts` are those of the segments, or lower bounds of what the further rows hold. `last_no` and
    `marks` are the root's.
    """

    level: int = 0
    marks: int = 0
    last_no: int = 0
    starts: list[int] = []
    segments: list[Segment] = []
    rows: list[int] = []


class Heard(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fact that an entry spoke of, and how surely."""

    fact: str
    confidence: float


class HeardRow(msgspec.Struct, frozen=True, array_like=True):
    """Every fact that the last entry of a tenant spoke of (`facts_heard`), also those it left as
    they were: a repetition beyond the supports a fact may cite is weighed by beliefs alone.
    """

    offset: int
    facts: list[Heard]


TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    **tables_of("facts"),
    "facts_moved": Moved,
    "facts_heard": HeardRow,
    "facts_about": Mark,
    "facts_basis": Basis,
    "facts_lines": Twig,
    "conflicts": Conflict,
    "conflicts_in": Mark,
}
