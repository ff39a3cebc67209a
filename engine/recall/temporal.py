"""Which candidates lie in the moments that are meant?  Both times, half-open; pure.

Records are seen by the rule of `engine/temporal.py`. An event has one moment on each axis: it is
seen when it was recorded by then, and a window of validity is about when it was observed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.recall import candidates
from engine.recall.filters import column_mask
from engine.recall.plan import Plan
from engine.state.block import Block
from engine.state.index import Layer
from schemas.intervals import Interval
from schemas.layers import Event
from schemas.times import to_us


def reach_of(plan: Plan) -> candidates.Window:
    """What gathering may leave out beforehand: what was recorded later than is asked about."""
    return candidates.Window(
        recorded_until_us=to_us(plan.window.known_at) + 1 if plan.is_past else None,
        admits=_mask(plan),
    )


def _mask(plan: Plan) -> Callable[[Layer, Block], Any] | None:
    """Which rows of a block can be in the pack, by its columns: events only, see `filters`."""
    by_filters = column_mask(plan.filters)
    spans = () if plan.view == "raw" else plan.window.valid_during
    if not spans and not plan.window.recorded_during:
        return by_filters

    def mask(layer: Layer, block: Block) -> Any:
        admitted = np.ones(len(block.raws), np.bool_)
        if layer != "events":
            return admitted
        for span in spans:
            admitted &= _inside(block.observed_us, span)
        for span in plan.window.recorded_during:
            admitted &= _inside(block.recorded_us, span)
        return admitted if by_filters is None else admitted & by_filters(layer, block)

    return mask


def sees_event(event: Event, plan: Plan) -> bool:
    """Whether an event is among what is asked about."""
    context, window = event.context, plan.window
    return (
        context.recorded_at <= window.known_at
        and all(span.contains(context.recorded_at) for span in window.recorded_during)
        and (
            plan.view == "raw"
            or all(span.contains(context.observed_at) for span in window.valid_during)
        )
    )


def _inside(column: Any, span: Interval) -> Any:
    start = np.iinfo(np.int64).min if span.start is None else to_us(span.start)
    rows = column >= start
    return rows if span.end is None else rows & (column < to_us(span.end))
