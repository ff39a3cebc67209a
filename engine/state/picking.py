"""Which of what an index found is the best?  By score, and where scores are equal by layer and id.

So the same question finds the same, whatever the layout of rows and segments. Here in Python, and
for where there is a compiler in picks.c, without an object for each that is looked at (ADR 0046).
"""

import struct
import sys
from array import array
from typing import Any, Final

import numpy as np

Part = tuple[int, Any, Any, list[bytes]]
"""What was compared of a block: the layer's place among the names, its rows (int64[k], or None for
all from the first), a score each (float32[k]), and the ids by row."""

LAYER_MASK: Final = 0xFF
"""Of the number that says layer and passage."""

_halves: Final = struct.Struct(">QQ").pack


def picker() -> Any:
    """Who picks here: C, or this module where nothing is compiled."""
    try:
        from engine.state import picks  # noqa: PLC0415 - it may not be there
    except ImportError:
        return sys.modules[__name__]
    return picks


def nearest(parts: list[Part], limit: int) -> list[tuple[bytes, bytes]]:
    """The best of all parts together, best first: for each part rows and scores, as bytes.

    A row without a vector is like nothing, and takes nobody's place.
    """
    every = np.concatenate([scores for _, _, scores, _ in parts] or [np.empty(0, np.float32)])
    from_here = least(every[every != 0], limit)
    found: list[tuple[float, int, bytes, int, int]] = []
    for number, (layer, rows, scores, raws) in enumerate(parts):
        chosen = ((scores >= from_here) & (scores != 0)).nonzero()[0]
        places = (chosen if rows is None else rows[chosen]).tolist()
        pairs = zip(places, scores[chosen].tolist(), strict=True)
        found += [(-score, layer, raws[row], number, row) for row, score in pairs]
    picked: list[tuple[array[int], array[float]]] = [(array("q"), array("f")) for _ in parts]
    for less, _, _, number, row in sorted(found)[:limit]:
        picked[number][0].append(row)
        picked[number][1].append(-less)
    return [(rows.tobytes(), scores.tobytes()) for rows, scores in picked]


def least(scores: Any, limit: int) -> Any:
    """What the last of the best scores; it may have equals."""
    if len(scores) <= limit:
        return -np.inf
    return np.partition(scores, len(scores) - limit)[len(scores) - limit]


def ordered(
    found: list[tuple[float, Any]],
    kinds: list[int],
    highs: list[int],
    lows: list[int],
    layers: tuple[str, ...],
) -> list[tuple[float, str, bytes, int]]:
    """Hits, best first, of what the text index found and has of each."""
    return sorted(
        [
            (-score, layers[kind & LAYER_MASK], raw, kind >> 8)
            for (score, _), kind, raw in zip(found, kinds, map(_halves, highs, lows), strict=True)
        ]
    )
