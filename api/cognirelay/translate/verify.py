"""Do two capsules say the same, and what follows from who says so?  (000: compare, revalidate)"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api.cognirelay.access import slug
from api.cognirelay.errors import refuse
from api.cognirelay.translate.capsule import loaded
from api.cognirelay.translate.rules import Capsule, check, check_verification
from api.cognirelay.translate.times import utc
from schemas.limits import CAPSULE_ENTRIES
from schemas.surfaces.cognirelay.capsule import CAPSULE

_STRENGTH: Final = (
    "self_review",
    "external_observation",
    "peer_confirmation",
    "user_confirmation",
    "system_check",
)
"""Who says so, from the weakest to the strongest."""
_STATUS: Final = dict(
    zip(
        _STRENGTH,
        (
            *("self_attested", "externally_supported", "peer_confirmed"),
            *("user_confirmed", "system_confirmed"),
        ),
        strict=True,
    )
)
_ORDER: Final = (
    *("subject_kind", "subject_id", "schema_version", "updated_at", "source", "continuity"),
    *("confidence", "attention_policy", "freshness", "canonical_sources", "metadata"),
    "thread_descriptor",
)
_ORDERS: Final = {
    "source": ("producer", "update_reason", "inputs"),
    "confidence": ("continuity", "relationship_model"),
    "freshness": ("freshness_class", "expires_at", "stale_after_seconds"),
    "attention_policy": ("early_load", "presence_bias_overrides"),
    "continuity": (
        *("top_priorities", "active_concerns", "active_constraints", "open_loops"),
        *("stance_summary", "drift_signals", "working_hypotheses", "long_horizon_commitments"),
        *("session_trajectory", "negative_decisions", "trailing_notes", "curiosity_queue"),
        *("rationale_entries", "related_documents", "relationship_model", "retrieval_hints"),
    ),
    "relationship_model": ("trust_level", "preferred_style", "sensitivity_notes"),
    "retrieval_hints": ("must_include", "avoid", "load_next"),
    "thread_descriptor": (
        *("label", "keywords", "scope_anchors", "identity_anchors"),
        *("lifecycle", "superseded_by"),
    ),
}
"""In which order the parts of a capsule are compared; its verification is not."""


def strength_of(kind: object) -> int:
    """How strong a verification is; what is unknown is weak."""
    return _STRENGTH.index(kind) if kind in _STRENGTH else 0


def strongest(signals: Sequence[Mapping[str, Any]]) -> str:
    """The strongest kind of signal."""
    return str(max((one["kind"] for one in signals), key=_STRENGTH.index))


def check_signals(signals: Sequence[Mapping[str, Any]]) -> None:
    """Signals say when they were seen, in UTC."""
    for one in signals:
        utc(one["observed_at"], "signals.observed_at")


def candidate_of(asked: Mapping[str, Any]) -> Capsule:
    """The capsule that is held against the stored one, checked like a stored one."""
    candidate = CAPSULE.stored(asked["candidate_capsule"])
    is_same = candidate["subject_kind"] == asked["subject_kind"]
    if not is_same or slug(candidate["subject_id"]) != slug(asked["subject_id"]):
        raise refuse(400, "Candidate capsule subject does not match request subject")
    check(candidate)
    check_verification(candidate)
    return candidate


def changed_fields(stored: Capsule, candidate: Capsule) -> list[str]:
    """The shallowest paths at which two capsules differ."""
    return [
        path
        for name in _ORDER
        for path in _differences(name, name, stored.get(name), candidate.get(name))
    ]


def _differences(path: str, name: str, left: Any, right: Any) -> Iterator[str]:
    if left == right:
        return
    if not (isinstance(left, dict) and isinstance(right, dict)):
        yield path
        return
    known = _ORDERS.get(name, ())
    for key in (*known, *sorted((left.keys() | right.keys()) - set(known))):
        yield from _differences(f"{path}.{key}", key, left.get(key), right.get(key))


def recommended(changed: Sequence[str], signal: str) -> str:
    """What to do about a difference: only one's own word is no reason to correct."""
    if not changed:
        return "confirm"
    return "conflict" if signal == "self_review" else "correct"


def check_revalidation(asked: Mapping[str, Any]) -> Capsule | None:
    """The candidate of a correction; what does not belong to the outcome is refused."""
    check_signals(asked["signals"])
    outcome, given, reason = asked["outcome"], asked["candidate_capsule"], asked["reason"]
    candidate = None
    if outcome == "correct":
        if given is None:
            raise refuse(400, "candidate_capsule is required for outcome=correct")
        candidate = candidate_of(asked)
    elif given is not None:
        raise refuse(400, f"candidate_capsule is not allowed for outcome={outcome}")
    if outcome == "confirm" and reason is not None:
        raise refuse(400, "reason is not allowed for outcome=confirm")
    if outcome in ("degrade", "conflict") and not reason:
        raise refuse(400, f"reason is required for outcome={outcome}")
    return candidate


def revalidated(
    asked: Mapping[str, Any], stored: Capsule | None, candidate: Capsule | None, now: str
) -> tuple[Capsule, str, bool]:
    """The capsule after a revalidation, its outcome, and whether its content changed."""
    if stored is None:
        raise refuse(404, "Continuity capsule not found")
    outcome, capsule, is_changed = asked["outcome"], loaded(stored), False
    if candidate is not None:
        is_changed = bool(changed_fields(capsule, candidate))
        outcome = "correct" if is_changed else "confirm"
        capsule = copy.deepcopy(candidate) if is_changed else capsule
    signal, reason = strongest(asked["signals"]), asked["reason"]
    refs = [one["source_ref"] for one in asked["signals"][: CAPSULE_ENTRIES["evidence_refs"]]]
    state = {
        "status": "conflicted" if outcome == "conflict" else _STATUS[signal],
        "last_revalidated_at": now,
        "strongest_signal": signal,
        "evidence_refs": refs,
    }
    if outcome == "conflict":
        state["conflict_summary"] = reason
    health = {"degrade": "degraded", "conflict": "conflicted"}.get(outcome, "healthy")
    reasons = [] if health == "healthy" else [reason]
    capsule["verified_at"] = now
    capsule["verification_kind"] = signal
    capsule["verification_state"] = state
    capsule["capsule_health"] = {"status": health, "reasons": reasons, "last_checked_at": now}
    check(capsule)
    check_verification(capsule)
    return capsule, outcome, is_changed
