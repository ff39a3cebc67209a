"""What does the understanding remember between two entries?

For everything that facts speak of, a tally: how much there is, the strongest of it, what it hangs
together with, and how much came since its concept was last made. So an entry costs a few lookups,
however much is known, and a concept is made anew when a quarter more came in: its versions grow
with the logarithm of its inputs.

`concept_inputs` has a row for every entry that moved a concept's inputs, in the order of time: how
stale a version was at a moment can be counted there, and no later entry changes the answer.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from projectors.records import tables_of
from projectors.rows import Mark, Moved
from schemas import limits

THING: Final = 0
PREDICATE: Final = 1
"""What a tally is of: an entity, or all that is said with one predicate."""


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fact among the strongest: those that hold now first, then by confidence."""

    fact: bytes
    score: int


class Near(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Another tally that facts join this one to, by which relation, and how many do."""

    key: bytes
    relation: str
    vocabulary: str
    count: int


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """What there is about one thing in one scope (`concept_tallies`).

    `live` facts and `episode_count` episodes are its inputs; `fresh` of their changes came since
    the last synthesis, which saw `base`. Of the `cited` that version rests on, `lost` were closed
    since. `into` is the tally of what it turned out to be the same as.
    """

    kind: int
    what: str
    name: str
    concept: bytes | None = None
    live: int = 0
    episode_count: int = 0
    fresh: int = 0
    base: int = 0
    cited: int = 0
    lost: int = 0
    kept: tuple[Kept, ...] = ()
    episodes: tuple[bytes, ...] = ()
    near: tuple[Near, ...] = ()
    predicates: dict[str, int] = {}
    aliases: tuple[str, ...] = ()
    subjects: tuple[bytes, ...] = ()
    into: bytes | None = None

    @property
    def inputs(self) -> int:
        """How much there is."""
        return self.live + self.episode_count

    @property
    def is_enough(self) -> bool:
        """Whether there is enough for a concept."""
        if self.kind == THING:
            is_much = self.live >= limits.CONCEPT_FACTS_MIN
            return is_much or (self.live > 0 and self.episode_count >= limits.CONCEPT_EPISODES_MIN)
        return (
            self.live >= limits.CONCEPT_PREDICATE_FACTS_MIN
            and len(self.subjects) >= limits.CONCEPT_SUBJECTS_MIN
        )

    @property
    def is_stale(self) -> bool:
        """Whether enough came since the last synthesis for another one."""
        return self.fresh >= max(limits.CONCEPT_FRESH_MIN, self.base // limits.CONCEPT_FRESH_SHARE)


class Counted(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The tallies in which a fact is counted (`concept_facts`, by its id)."""

    keys: tuple[bytes, ...]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's policy says of concepts (`concept_rules`, one row)."""

    invalidation_threshold: float = limits.INVALIDATION_THRESHOLD


class Synthesis(msgspec.Struct, frozen=True, kw_only=True):
    """What a directive to synthesise came to (`concept_syntheses`, by its entry's id).

    `next` is the concept after which another directive would go on; None: that was all.
    """

    looked_at: int
    made: int
    next: str | None


TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    **tables_of("concepts"),
    "concepts_moved": Moved,
    "concept_tallies": Tally,
    "concept_facts": Counted,
    "concept_episodes": Mark,
    "concept_inputs": Mark,
    "concept_rules": Rules,
    "concept_syntheses": Synthesis,
}
