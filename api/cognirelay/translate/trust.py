"""How far can a capsule be trusted, and what does an agent need of it first?  (000, trust signals)

Pure, and never a score: ages, states and counts that the reader weighs.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from api.cognirelay.translate.capsule import is_adequate
from api.cognirelay.translate.rules import Capsule
from api.cognirelay.translate.times import age_s, parsed
from schemas.limits import CAPSULE_STANCE_CHARS_MIN

Signals = dict[str, Any]

STALE_S: Final = {
    "persistent": None,
    "durable": 180 * 86_400,
    "situational": 30 * 86_400,
    "ephemeral": 3 * 86_400,
}
"""After how long each class of freshness is stale, where the capsule itself says nothing."""
PHASES: Final = ("fresh", "stale_soft", "stale_hard", "expired_by_age", "expired")
"""From best to worst."""
HEALTH: Final = ("healthy", "degraded", "conflicted")
"""From best to worst."""
_WARNINGS: Final = {
    "stale_soft": "continuity_stale_soft",
    "stale_hard": "continuity_stale_hard",
    "expired_by_age": "continuity_expired",
    "expired": "continuity_expired",
}
_SOFT, _HARD = 1.5, 2.0
_ORIENTATION: Final = (
    "top_priorities",
    "active_constraints",
    "open_loops",
    "active_concerns",
    "stance_summary",
    "drift_signals",
)


def stale_after_s(capsule: Capsule) -> int | None:
    """After how many seconds without verification a capsule is stale; None for never."""
    freshness = capsule.get("freshness", {})
    own = freshness.get("stale_after_seconds")
    if own is not None:
        return int(own)
    return STALE_S[freshness.get("freshness_class") or "situational"]


def phase_of(capsule: Capsule, now: datetime) -> str:
    """How fresh a capsule is at a moment."""
    expires = parsed(capsule.get("freshness", {}).get("expires_at") or "")
    if expires is not None and now > expires:
        return "expired"
    verified, limit = parsed(capsule["verified_at"]), stale_after_s(capsule)
    if verified is None:
        return "expired"
    age = max(0.0, (now - verified).total_seconds())
    if limit is None or age <= limit:
        return "fresh"
    if age <= limit * _SOFT:
        return "stale_soft"
    return "stale_hard" if age <= limit * _HARD else "expired_by_age"


def phase_warnings(capsule: Capsule, now: datetime) -> list[str]:
    """What a reader is warned of when a capsule is not fresh."""
    found = _WARNINGS.get(phase_of(capsule, now))
    return [] if found is None else [found]


def health_of(capsule: Capsule) -> tuple[str, list[str]]:
    """A capsule's health, healthy until somebody says otherwise, and why."""
    health = capsule.get("capsule_health")
    return ("healthy", []) if health is None else (health["status"], list(health["reasons"]))


def verification_of(capsule: Capsule) -> str:
    """How a capsule was verified."""
    state = capsule.get("verification_state")
    return "unverified" if state is None else str(state["status"])


def trust_signals(
    capsule: Capsule, now: datetime, source: str, trimmed: Sequence[str] = ()
) -> Signals:
    """The four dimensions of trust in a capsule as it is delivered."""
    held = capsule["continuity"]
    health, reasons = health_of(capsule)
    empty = [
        name
        for name in _ORIENTATION
        if (
            len(held[name]) < CAPSULE_STANCE_CHARS_MIN
            if name == "stance_summary"
            else not held[name]
        )
    ]
    return {
        "recency": {
            "updated_age_seconds": age_s(capsule["updated_at"], now),
            "verified_age_seconds": age_s(capsule["verified_at"], now),
            "phase": phase_of(capsule, now),
            "freshness_class": capsule.get("freshness", {}).get("freshness_class"),
            "stale_threshold_seconds": stale_after_s(capsule),
        },
        "completeness": {
            "orientation_adequate": is_adequate(capsule),
            "empty_orientation_fields": empty,
            "trimmed": bool(trimmed),
            "trimmed_fields": list(trimmed),
        },
        "integrity": {
            "source_state": source,
            "health_status": health,
            "health_reasons": reasons,
            "verification_status": verification_of(capsule),
        },
        "scope_match": {"exact": source == "active"},
    }


def compact_signals(
    capsule: Capsule, now: datetime, source: str, trimmed: Sequence[str] = ()
) -> Signals:
    """The least that tells how far to trust, where the whole would not fit."""
    return {
        "compact": True,
        "recency": {"phase": phase_of(capsule, now)},
        "completeness": {"orientation_adequate": is_adequate(capsule), "trimmed": bool(trimmed)},
        "integrity": {"source_state": source, "health_status": health_of(capsule)[0]},
        "scope_match": {"exact": source == "active"},
    }


def aggregate_signals(
    each: Sequence[Signals], requested: int, returned: int, omitted: int
) -> Signals | None:
    """All capsules of an answer together; None when none has signals."""
    if not each:
        return None
    adequate = [one["completeness"]["orientation_adequate"] for one in each]
    health = [one["integrity"]["health_status"] for one in each]
    return {
        "recency": {
            "worst_phase": max((one["recency"]["phase"] for one in each), key=PHASES.index),
            "oldest_updated_age_seconds": _oldest(each, "updated_age_seconds"),
            "oldest_verified_age_seconds": _oldest(each, "verified_age_seconds"),
        },
        "completeness": {
            "all_adequate": all(adequate),
            "adequate_count": sum(adequate),
            "total_count": len(each),
            "any_trimmed": any(one["completeness"]["trimmed"] for one in each),
        },
        "integrity": {
            "worst_health": max(health, key=HEALTH.index),
            "any_fallback": any(one["integrity"]["source_state"] == "fallback" for one in each),
            "any_degraded": "degraded" in health,
            "any_conflicted": "conflicted" in health,
        },
        "scope_match": {
            "selectors_requested": requested,
            "selectors_returned": returned,
            "selectors_omitted": omitted,
            "all_returned": requested == returned and requested > 0,
        },
    }


def _oldest(each: Sequence[Signals], name: str) -> int | None:
    known = [one["recency"][name] for one in each if one["recency"].get(name) is not None]
    return max(known, default=None)


def startup_summary(answer: dict[str, Any]) -> dict[str, Any]:
    """What an agent needs first, in the order of the contract."""
    capsule, warnings = answer["capsule"], list(answer["recovery_warnings"])
    health = {} if capsule is None else capsule.get("capsule_health", {})
    if capsule is not None and _lacks_descriptor(capsule):
        warnings.append(f"continuity_thread_descriptor_missing:thread:{capsule['subject_id']}")
    held = None if capsule is None else capsule["continuity"]
    return {
        "recovery": {
            "source_state": answer["source_state"],
            "recovery_warnings": warnings,
            "capsule_health_status": health.get("status"),
            "capsule_health_reasons": list(health.get("reasons", [])),
        },
        "orientation": None
        if held is None
        else {
            "top_priorities": held["top_priorities"],
            "active_constraints": held["active_constraints"],
            "open_loops": held["open_loops"],
            "negative_decisions": held["negative_decisions"],
            "rationale_entries": [e for e in held["rationale_entries"] if e["status"] == "active"],
        },
        "context": None
        if held is None
        else {
            "session_trajectory": held["session_trajectory"],
            "stance_summary": held["stance_summary"],
            "active_concerns": held["active_concerns"],
        },
        "updated_at": None if capsule is None else capsule["updated_at"],
        "trust_signals": answer["trust_signals"],
        "stable_preferences": None if capsule is None else capsule["stable_preferences"],
    }


def _lacks_descriptor(capsule: Capsule) -> bool:
    return capsule["subject_kind"] in ("thread", "task") and not capsule.get("thread_descriptor")


def superseded_warning(capsule: Capsule) -> str | None:
    """That a thread has an heir, and which."""
    descriptor = capsule.get("thread_descriptor", {})
    if descriptor.get("lifecycle") != "superseded":
        return None
    heir = descriptor.get("superseded_by", "unknown")
    return f"continuity_capsule_superseded:thread:{capsule['subject_id']}→{heir}"
