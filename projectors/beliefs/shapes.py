"""What is made of a scale?  Handed from one to the other, and never kept."""

import msgspec

from schemas.layers import BeliefPartial, ConfidenceInterval, Stance


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a scale says, in the words of the record."""

    stance: Stance
    confidence: float
    interval: ConfidenceInterval
    redacted_fraction: float
    partial_reason: BeliefPartial | None
