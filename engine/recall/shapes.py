"""What is one item on its way into the pack?  Ranked, found, offered at a price, shown.

Plain classes, and not structs: most of a recall is reading their attributes, which in a compiled
class lie at a known place (ADR 0040). Nobody changes one but the recall that made it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.recall.render import Thing
from engine.state.index import Layer
from schemas.pack import LayerName

if TYPE_CHECKING:
    from engine.recall.sheet import Sheet


class Ranking:
    """Candidates in their order: what few ask of one of them is worked out when it is asked."""

    def parts(self, place: int) -> Mapping[str, float]:
        """What each feature added to a candidate, before it was squeezed into (0, 1)."""
        raise NotImplementedError

    def vector(self, place: int) -> Any:
        """float32[d], unit length."""
        raise NotImplementedError


class Ranked:
    """One candidate with its place. `score` lies in (0, 1) and is comparable between layers."""

    __slots__ = ("_place", "_ranking", "duplicates", "layer", "offset", "raw", "score")

    def __init__(
        self, layer: Layer, raw: bytes, offset: int, score: float, *, ranking: Ranking, place: int
    ) -> None:
        self.layer = layer
        self.raw = raw
        self.offset = offset
        self.score = score
        self._ranking = ranking
        self._place = place
        self.duplicates: tuple[bytes, ...] = ()
        """Candidates that say the same and were collapsed into this one."""

    @property
    def parts(self) -> Mapping[str, float]:
        """What each feature added: for diagnostics."""
        return self._ranking.parts(self._place)

    @property
    def vector(self) -> Any:
        """float32[d], unit length: for the choice under the budget."""
        return self._ranking.vector(self._place)


class Marks:
    """What a reader should know before relying on an item."""

    __slots__ = ("is_low_trust", "is_stale", "is_superseded", "superseded_by")

    def __init__(
        self,
        superseded_by: tuple[str, ...] = (),
        is_superseded: bool = False,
        is_stale: bool = False,
        is_low_trust: bool = False,
    ) -> None:
        self.superseded_by = superseded_by
        self.is_superseded = is_superseded
        self.is_stale = is_stale
        self.is_low_trust = is_low_trust

    def names(self) -> tuple[str, ...]:
        """The marks as a line says them."""
        if self is UNMARKED:
            return ()
        named = (
            ("superseded", self.is_superseded),
            ("stale", self.is_stale),
            ("low trust", self.is_low_trust),
        )
        return tuple([name for name, holds in named if holds])


UNMARKED: Final = Marks()
"""Nothing to know of it: most items."""


class Found:
    """A candidate that is really there, and may be shown."""

    __slots__ = ("layer", "marks", "ranked", "sheet", "thing")

    def __init__(
        self, layer: LayerName, thing: Thing, sheet: "Sheet", ranked: Ranked, marks: Marks
    ) -> None:
        self.layer = layer
        self.thing = thing
        self.sheet = sheet
        self.ranked = ranked
        self.marks = marks


class Offer:
    """A record that could be shown, and what that would cost."""

    __slots__ = ("_vector", "id", "layer", "score", "tokens")

    def __init__(
        self, layer: LayerName, name: str, score: float, tokens: int, vector: Any = None
    ) -> None:
        self.layer = layer
        self.id = name
        self.score = score
        self.tokens = tokens
        self._vector = vector

    @property
    def vector(self) -> Any:
        """float32[d], unit length, or None: then it is like nothing else."""
        return self._vector


class Shown(Offer):
    """A record as it would stand in the pack."""

    __slots__ = ("_ranked", "excerpt", "line", "marks", "sheet", "thing", "withheld")

    def __init__(
        self,
        found: Found,
        score: float,
        tokens: int,
        line: str,
        excerpt: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(found.layer, found.thing.id, score, tokens)
        self.thing = found.thing
        self.sheet = found.sheet
        self.marks = found.marks
        self.line = line
        self.excerpt = excerpt
        self.withheld = 0
        """Events it rests on that the caller may not read."""
        self._ranked = found.ranked

    @property
    def vector(self) -> Any:
        """As it was ranked."""
        return self._ranked.vector

    @property
    def parts(self) -> Mapping[str, float]:
        """What each feature added to its score."""
        return self._ranked.parts
