"""What do many measurements say together?"""

import math
from collections.abc import Sequence

import msgspec

_STEPS = 200


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution: how many, its usual figures, and its quantiles in half-percent steps."""

    count: int
    p50: float
    p99: float
    most: float
    quantiles: list[float]


def spread(values: Sequence[float]) -> Spread:
    """Summarise; without values, nothing is a number."""
    if not values:
        return Spread(count=0, p50=math.nan, p99=math.nan, most=math.nan, quantiles=[])
    ordered = sorted(values)
    return Spread(
        count=len(ordered),
        p50=_quantile(ordered, 0.5),
        p99=_quantile(ordered, 0.99),
        most=ordered[-1],
        quantiles=[_quantile(ordered, step / _STEPS) for step in range(_STEPS + 1)],
    )


def _quantile(ordered: list[float], fraction: float) -> float:
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]
