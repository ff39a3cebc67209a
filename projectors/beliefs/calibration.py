"""How good did confidences turn out to be?  The Brier score over claims that were resolved.

A claim is resolved when somebody else says the same, or the world moves on from it (it was right),
and when it is overturned, withdrawn or replaced as never true (it was wrong). The score is the mean
of (confidence − outcome)², over 30 days of the log's own time, by family: the vocabulary of the
predicate, or the predicate itself; with few samples, over the whole tenant. A row a family holds
one small bucket a day, so it never grows.
"""

from datetime import datetime, timedelta
from typing import Final

from projectors.beliefs.rows import Day, Days
from projectors.overlay import Draft
from schemas import limits
from schemas.layers import Calibration
from schemas.times import from_us

MODEL: Final = "beta_v1"
TENANT: Final = b""
"""The row that counts every family."""

_DAY_US: Final = 86_400 * 1_000_000
_ERROR_UNIT: Final = 10**8


def resolve(draft: Draft, family: bytes, confidence: float, *, at_us: int, outcome: int) -> None:
    """Count a claim that turned out true (1) or not (0), against what was last said of it."""
    error = round((confidence - outcome) ** 2 * _ERROR_UNIT)
    for key in (family, TENANT):
        known: Days = draft.get("belief_calibration", key) or Days()
        draft.put("belief_calibration", key, _counted(known, error, at_us))


def _counted(known: Days, error: int, at_us: int) -> Days:
    today = at_us // _DAY_US
    kept = tuple(one for one in known.days if one.day > today - limits.CALIBRATION_DAYS)
    if kept and kept[-1].day == today:
        last = kept[-1]
        kept = (*kept[:-1], Day(today, last.samples + 1, last.errors + error))
    else:
        kept = (*kept, Day(today, 1, error))
    return _summed(kept, at_us)


def _summed(days: tuple[Day, ...], last_us: int) -> Days:
    return Days(days, last_us, sum(one.samples for one in days), sum(one.errors for one in days))


def block_of(draft: Draft, family: bytes, at_us: int) -> Calibration:
    """What a version of a belief says of the confidences of its kind."""
    own: Days | None = draft.get("belief_calibration", family)
    found = _score(own, at_us)
    if found.samples < limits.CALIBRATION_SAMPLES_MIN:
        whole: Days | None = draft.get("belief_calibration", TENANT)
        found = _score(whole, at_us)
    return found


def _score(known: Days | None, at_us: int) -> Calibration:
    since = at_us // _DAY_US - limits.CALIBRATION_DAYS
    if known is not None and known.days[0].day <= since:
        known = _summed(tuple(one for one in known.days if one.day > since), known.last_us)
    if known is None or not known.samples:
        return _NONE
    return Calibration(
        model=MODEL,
        brier_score_30d=round(known.errors / (known.samples * _ERROR_UNIT), 4),
        samples=known.samples,
        last_calibrated_at=from_us(known.last_us),
    )


_NONE: Final = Calibration(model=MODEL, brier_score_30d=None, samples=0, last_calibrated_at=None)


def is_stale(block: Calibration, at: datetime) -> bool:
    """Whether a score is older than the window that it speaks of."""
    last = block.last_calibrated_at
    return last is not None and last + timedelta(days=limits.CALIBRATION_DAYS) <= at
