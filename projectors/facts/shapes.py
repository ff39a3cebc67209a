"""What does an entry claim, and on whose word?  Handed from one to the other, and never kept."""

from datetime import datetime

import msgspec

from projectors.facts.keys import line_key
from projectors.facts.rows import Contrary
from schemas.layers import Cardinality, Node, Polarity


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One assertion of an entry, resolved.

    `main` is the line it lies on, as `value`; `contrary` says where what cannot be so together with
    it lies.
    """

    subject: Node
    root: str
    predicate: str
    object: Node
    polarity: Polarity
    cardinality: Cardinality
    kind: str
    confidence: float
    trust: int
    from_us: int
    to_us: int | None
    is_dated: bool
    ends: bool
    is_end_dated: bool
    corrects: bool
    scope_no: int
    said: str
    main: bytes
    value: bytes
    contrary: Contrary | None
    vocabulary: str | None = None
    vocabulary_confidence: float | None = None

    @property
    def beside(self) -> bytes:
        """The line for what stands beside the main one."""
        return self._beside(self.polarity)

    @property
    def beside_contrary(self) -> bytes:
        """The line on which its contrary stands beside its own."""
        return self._beside("negative" if self.polarity == "positive" else "positive")

    def _beside(self, polarity: Polarity) -> bytes:
        return line_key(self.scope_no, "beside", self.root, self.predicate, self.said, polarity)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where claims come from: the event, who speaks in it, and what its sender asked for."""

    event_id: str
    scope: str
    scope_no: int
    observed_at: datetime
    speaker: str | None
    is_exact: bool
    is_machine: bool
    extractor: str
    floor: float = 0.0
    no_supersede: bool = False
    ttl_s: float | None = None


class Shape(msgspec.Struct, frozen=True):
    """A predicate and its object as a vocabulary spells them, or as they were said."""

    predicate: str
    object: Node
    cardinality: Cardinality
    vocabulary: str | None = None
    confidence: float | None = None
