"""How far behind is a concept?  Pure, for readers: as of any moment, whatever came later.

`concept_inputs` holds a row for every entry that moved a concept's inputs, under the concept's
tally (`tally_key`) and the entry's id, which carries its time. The rows after `last_synthesized_at`
and not after the moment asked about are the updates that a version has not seen.
"""

from datetime import datetime

import msgspec

from schemas.ids import uuid7_first
from schemas.layers import Concept
from schemas.times import to_us


def unseen_range(tally: bytes, concept: Concept, at: datetime) -> tuple[bytes, bytes]:
    """The keys of `concept_inputs` from which, and before which, a version's unseen inputs lie."""
    first = uuid7_first(to_us(concept.last_synthesized_at) + 1)
    return tally + first, tally + uuid7_first(to_us(at) + 1)


def staleness(concept: Concept, new_inputs: int) -> tuple[float, str | None]:
    """The fraction of input updates not yet incorporated, and in words why (001 §7.5.1)."""
    if new_inputs <= 0:
        return 0.0, None
    score = round(new_inputs / (concept.input_count + new_inputs), 4)
    updates = "update" if new_inputs == 1 else "updates"
    return score, f"{new_inputs} {updates} of its inputs since it was last synthesised"


def as_known(concept: Concept, new_inputs: int) -> Concept:
    """A version with how stale it was when so many updates had come since it was made."""
    score, reason = staleness(concept, new_inputs)
    return msgspec.structs.replace(concept, staleness_score=score, staleness_reason=reason)
