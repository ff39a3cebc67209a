"""How sure may we be of a claim, given what speaks for it and against it?

Evidence is mass on either side of a Beta distribution. The prior is Beta(1, 3): a claim that nobody
made is held at a quarter, below the floor at which beliefs are kept (001 §7.4), and weighs as much
as one faint hint. One report of confidence c brings exactly the mass that lifts the prior to c, so
one report leaves us as sure as the report; agreement of others raises it, dissent brings it down.
A source that repeats itself adds half as much each time.

Masses are whole millionths: adding and taking away is exact, and replay on another machine gives
the same bytes. The quantile is ours (docs/adr/0021).
"""

from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt
from typing import Final

from schemas.layers import ConfidenceInterval, Stance, Trust

UNIT: Final = 1_000_000
"""One pseudo-observation."""

PRIOR_PRO: Final = 1 * UNIT
PRIOR_CON: Final = 3 * UNIT

REPORT_MAX: Final = 0.95
"""No single report is surer than this, not even an exact triple: somebody typed it."""

NEAR_EVEN: Final = 0.05
"""Within this distance of one half the evidence is mixed or too little (001 §7.4.1)."""

LEVEL: Final = 0.90
_TAIL: Final = (1 - LEVEL) / 2
_REPEATS_MAX: Final = 40

TRUST: Final[dict[Trust, float]] = {"high": 1.0, "low": 0.5}
"""How much of a report's mass counts, by how far its source is believed about it."""

REFUSED: Final = 4
"""What did not get past what stood weighs a quarter."""

MASS_MIN: Final = UNIT // 1000
"""What weighs less is a repetition of repetitions, and nothing at all."""


def mass_of(confidence: float, trust: Trust, repeats: int = 0) -> int:
    """What one report brings to its side, when its source has made so many of the same before."""
    sure = min(confidence, REPORT_MAX)
    needed = (PRIOR_PRO + PRIOR_CON) * sure - PRIOR_PRO
    mass = max(0, round(needed * TRUST[trust] / (1 - sure))) >> min(repeats, _REPEATS_MAX)
    return mass if mass >= MASS_MIN else 0


def confidence_of(pro: int, con: int) -> float:
    """The mean of the posterior."""
    pro += PRIOR_PRO
    return round(pro / (pro + con + PRIOR_CON), 4)


def stance_of(confidence: float, pro: int, con: int) -> Stance:
    """What the evidence says of the claim; it is overturned by what speaks against it alone."""
    if confidence >= 0.5 + NEAR_EVEN:
        return "supported"
    if confidence <= 0.5 - NEAR_EVEN and con > pro:
        return "contradicted"
    return "uncertain"


def interval_of(pro: int, con: int) -> ConfidenceInterval:
    """The middle nine tenths of the posterior."""
    return _interval(_coarse(pro + PRIOR_PRO), _coarse(con + PRIOR_CON))


def _coarse(mass: int) -> int:
    """Three significant digits, so that alike beliefs share one computation."""
    step = 1
    while mass // step >= 1000:
        step *= 10
    return round(mass / step) * step


@lru_cache(maxsize=8192)
def _interval(pro: int, con: int) -> ConfidenceInterval:
    a, b = pro / UNIT, con / UNIT
    lower, upper = beta_quantile(_TAIL, a, b), beta_quantile(1 - _TAIL, a, b)
    return ConfidenceInterval(lower=round(lower, 4), upper=round(upper, 4), level=LEVEL)


# ── the Beta distribution ────────────────────────────────────────────────────────────────────

_TINY: Final = 1e-300
_CLOSE: Final = 1e-12
_NEAR: Final = 1e-8
_TERMS_MAX: Final = 500
_STEPS_MAX: Final = 60


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # The fraction converges quickly left of the mode; right of it the mirror image does.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluated from the front, with both partial denominators kept from zero."""
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _nonzero(1.0 + even * d)
        c = _nonzero(1.0 + even / c)
        value *= c * d
        d = 1.0 / _nonzero(1.0 + odd * d)
        c = _nonzero(1.0 + odd / c)
        step = c * d
        value *= step
        if abs(step - 1.0) < _CLOSE:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """Where the distribution function reaches p: Newton's steps, kept inside a halving bracket."""
    assert 0.0 < p < 1.0, "a quantile of an open interval"
    assert a > 0.0, "a shape is positive"
    assert b > 0.0, "a shape is positive"
    low, high = 0.0, 1.0
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    mean = a / (a + b)
    spread = sqrt(mean * (1 - mean) / (a + b + 1))
    x = min(max(mean + spread * (3.3 * p - 1.65), mean / 10), 1 - (1 - mean) / 10)
    for _ in range(_STEPS_MAX):
        off = beta_cdf(x, a, b) - p
        if off > 0:
            high = x
        else:
            low = x
        density = exp(scale + (a - 1) * log(x) + (b - 1) * log1p(-x))
        after = x - off / density if density > _TINY else -1.0
        if not low < after < high:
            after = (low + high) / 2
        is_close = abs(after - x) <= _NEAR * x
        x = after
        if is_close:
            break
    return x
