"""What is one item on its way into the pack?  Ranked, found, offered at a price, shown."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.recall.render import Thing
from engine.state.index import Layer
from schemas.pack import LayerName

if TYPE_CHECKING:
    from engine.recall.sheet import Sheet


class Ranked(msgspec.Struct, frozen=True, gc=False):
    """One candidate with its place. `score` lies in (0, 1) and is comparable between layers."""

    layer: Layer
    raw: bytes
    offset: int
    score: float
    parts: Mapping[str, float]
    """What each feature added, before it was squeezed into (0, 1): for diagnostics."""
    vector: Any
    """float32[d], unit length: for the choice under the budget."""
    duplicates: tuple[bytes, ...] = ()
    """Candidates that say the same and were collapsed into this one."""


class Marks(msgspec.Struct, frozen=True, gc=False):
    """What a reader should know before relying on an item."""

    superseded_by: tuple[str, ...] = ()
    is_superseded: bool = False
    is_stale: bool = False
    is_low_trust: bool = False

    def names(self) -> tuple[str, ...]:
        """The marks as a line says them."""
        if self is UNMARKED:
            return ()
        named = (
            ("superseded", self.is_superseded),
            ("stale", self.is_stale),
            ("low trust", self.is_low_trust),
        )
        return tuple(name for name, holds in named if holds)


UNMARKED: Final = Marks()
"""Nothing to know of it: most items."""


class Found(msgspec.Struct, frozen=True, gc=False):
    """A candidate that is really there, and may be shown."""

    layer: LayerName
    thing: Thing
    sheet: "Sheet"
    ranked: Ranked
    marks: Marks


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A record that could be shown, and what that would cost."""

    layer: LayerName
    id: str
    score: float
    tokens: int
    vector: Any
    """float32[d], unit length, or None: then it is like nothing else."""


class Shown(Offer, frozen=True, gc=False):
    """A record as it would stand in the pack."""

    thing: Thing
    sheet: "Sheet"
    marks: Marks
    line: str
    excerpt: tuple[int, int] | None = None
    parts: Mapping[str, float] | None = None
    withheld: int = 0
    """Events it rests on that the caller may not read."""
