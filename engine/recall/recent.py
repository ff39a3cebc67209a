"""What is newest?  What recall gives when it is asked nothing in particular."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.recall.candidates import Ranked, Window
from engine.state.index import Block, Layer, VectorIndex


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
            [(no, vectors.block(tenant_no, no, layer)) for no in scope_nos], layer, limit, window
        )
        for layer, limit in limits.items()
    }


def _newest(
    blocks: Sequence[tuple[int, Block | None]], layer: Layer, limit: int, window: Window
) -> list[Ranked]:
    found: list[tuple[int, int, Block, int]] = []
    for scope_no, block in blocks:
        if block is not None and limit > 0:
            rows = np.flatnonzero(_admitted(layer, block, window))[-limit:]
            found += [(int(block.offsets[row]), int(row), block, scope_no) for row in rows]
    found.sort(key=lambda one: one[:2], reverse=True)
    count = min(limit, len(found))
    return [
        Ranked(
            layer=layer,
            raw=block.raws[row],
            scope_no=scope_no,
            offset=offset,
            observed_us=int(block.observed_us[row]),
            recorded_us=int(block.recorded_us[row]),
            score=1 - place / (count + 1),
            parts={"recency": 1 - place / (count + 1)},
            vector=block.vectors[row],
        )
        for place, (offset, row, block, scope_no) in enumerate(found[:limit], start=1)
    ]


def _admitted(layer: Layer, block: Block, window: Window) -> Any:
    admitted = np.ones(len(block.raws), np.bool_)
    if window.recorded_until_us is not None:
        admitted &= block.recorded_us < window.recorded_until_us
    if window.admits is not None:
        admitted &= window.admits(layer, block)
    return admitted
