"""What is newest?  What recall gives when it is asked nothing in particular."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.recall.candidates import Window
from engine.recall.shapes import Ranked, Ranking
from engine.state.block import Block
from engine.state.index import Layer, VectorIndex


def newest(
    vectors: VectorIndex,
    tenant_no: int,
    scope_nos: Sequence[int],
    limits: Mapping[Layer, int],
    window: Window,
) -> dict[Layer, list[Ranked]]:
    """The last documents of each layer, newest first, as if they had been ranked so."""
    return {
        layer: _newest(
            [vectors.block(tenant_no, no, layer) for no in scope_nos], layer, limit, window
        )
        for layer, limit in limits.items()
    }


def _newest(
    blocks: Sequence[Block | None], layer: Layer, limit: int, window: Window
) -> list[Ranked]:
    found: list[tuple[int, int, Block]] = []
    for block in blocks:
        if block is not None and limit > 0:
            rows = np.flatnonzero(_admitted(layer, block, window))[-limit:]
            found += [(int(block.offsets[row]), int(row), block) for row in rows]
    found.sort(key=lambda one: one[:2], reverse=True)
    ranking = _Newest(found[:limit])
    return [
        Ranked(layer, block.raws[row], offset, ranking.score(place), ranking=ranking, place=place)
        for place, (offset, row, block) in enumerate(found[:limit])
    ]


class _Newest(Ranking):
    """Documents, the newest first."""

    def __init__(self, found: Sequence[tuple[int, int, Block]]) -> None:
        self._found = found

    def score(self, place: int) -> float:
        """The newer, the nearer to 1."""
        return 1 - (place + 1) / (len(self._found) + 1)

    def parts(self, place: int) -> Mapping[str, float]:
        """There is no other reason than that it is new."""
        return {"recency": self.score(place)}

    def vector(self, place: int) -> Any:
        """float32[d], unit length."""
        _, row, block = self._found[place]
        return block.vectors[row]


def _admitted(layer: Layer, block: Block, window: Window) -> Any:
    admitted = np.ones(len(block.raws), np.bool_)
    if window.recorded_until_us is not None:
        admitted &= block.recorded_us < window.recorded_until_us
    if window.admits is not None:
        admitted &= window.admits(layer, block)
    return admitted
