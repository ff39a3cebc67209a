"""Which of two claims is to stand?  The conflict resolver of a scope (001 §7.3, §8.8.1)."""

from typing import Final, Literal

from projectors.base import View
from projectors.facts.rows import Segment
from projectors.records import name_key
from schemas import limits
from schemas.layers import ConflictReason
from schemas.scope import ancestors

LATEST: Final = "latest_wins_within_confidence_band"
SUREST: Final = "highest_confidence_wins"
BOTH: Final = frozenset({"manual", "keep_both"})

Ruling = Literal["take"] | ConflictReason


def policy_of(view: View, scope: str) -> str:
    """A scope's own policy, that of a scope it inherits from, that of the nearest above it."""
    if view.get("scope_settings", b"") is None:
        return LATEST
    for path in ancestors(scope):
        row = view.get("scope_settings", name_key(path))
        if row is None:
            continue
        if row.policies.conflict_resolution is not None:
            return str(row.policies.conflict_resolution)
        for other in row.policies.inherit_from:
            inherited = view.get("scope_settings", name_key(other))
            if inherited is not None and inherited.policies.conflict_resolution is not None:
                return str(inherited.policies.conflict_resolution)
    return LATEST


def rule(policy: str, standing: Segment, confidence: float, trust: int) -> Ruling:
    """Whether a claim takes the place of what stands, or why not. Other names mean the default."""
    if policy in BOTH:
        return "policy_keeps_both"
    margin = confidence - standing.strength
    if trust < standing.trust and margin < limits.FACT_BAND:
        return "less_trusted"
    if policy == SUREST:
        return "take" if margin >= 0 else "lower_confidence"
    return "take" if margin >= -limits.FACT_BAND else "below_confidence_band"
