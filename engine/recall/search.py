"""What do the indexes say?  The one place where recall meets them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.layers.naming import actor_called
from engine.recall.candidates import Candidates, Question, Reach, Sources, Window
from engine.recall.gather import gather
from engine.recall.load import events_behind
from engine.recall.native import arithmetic
from engine.recall.rank import IN_CONTEXT, WEIGHTS, rank
from engine.recall.recent import newest
from engine.recall.shapes import Ranked
from engine.state.block import Block
from engine.state.index import Layer
from engine.state.text_index import TextIndexFailed
from schemas import limits
from schemas.errors import LayerUnavailable

if TYPE_CHECKING:
    from engine.engine import Engine

_ARITHMETIC: Final = arithmetic()


class Search:
    """The indexes as one recall sees them: one generation, whatever is swapped meanwhile."""

    def __init__(self, engine: "Engine", tenant_no: int) -> None:
        self._tenant_no = tenant_no
        self._directory = engine.directory
        self.text, self.vectors, self.embedder = engine.served
        self._sources = Sources(
            arithmetic=_ARITHMETIC,
            text=self.text,
            vectors=self.vectors,
            embedder=self.embedder,
            events_behind=partial(events_behind, engine),
            actor_called=partial(actor_called, engine),
        )

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""
        return min(self.text.watermark(), self.vectors.watermark())

    def event_blocks(self, scope_nos: Sequence[int]) -> list[Block]:
        """The events of these scopes."""
        found = (self.vectors.block(self._tenant_no, no, "events") for no in scope_nos)
        return [block for block in found if block is not None]

    def count_events(self, scope_no: int, until: int | None) -> int:
        """How many events a scope has, up to an offset; beyond some everyone knows enough."""
        found = self._directory.scope_offsets(
            self._tenant_no, scope_no, after=0, newest_first=False, limit=limits.COUNTED_MAX
        )
        return len(found) if until is None else sum(offset <= until for offset in found)

    def gather(
        self,
        scope_nos: Sequence[int],
        question: Question,
        layers: Sequence[Layer],
        window: Window,
        reach: Reach,
    ) -> Candidates:
        """What may answer, from every channel."""
        try:
            return gather(
                self._sources,
                self._tenant_no,
                scope_nos,
                question,
                layers=layers,
                window=window,
                reach=reach,
            )
        except TextIndexFailed as error:
            raise LayerUnavailable(reason="the text index cannot be searched") from error

    def newest(
        self, scope_nos: Sequence[int], wanted: Mapping[Layer, int], window: Window
    ) -> Mapping[Layer, Sequence[Ranked]]:
        """What came last, when nothing in particular is asked."""
        return newest(self.vectors, self._tenant_no, scope_nos, wanted, window)

    def rank(self, candidates: Candidates) -> Mapping[Layer, Sequence[Ranked]]:
        """The candidates of each layer, best first."""
        return rank(candidates, IN_CONTEXT if self.embedder.reads_context else WEIGHTS)
