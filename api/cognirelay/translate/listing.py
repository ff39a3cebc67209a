"""Which capsules are there, and which matters most?  (000: list, salience)"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from api.cognirelay.translate.capsule import is_adequate
from api.cognirelay.translate.rules import Capsule
from api.cognirelay.translate.times import UNKNOWN_AGE_S, age_s
from api.cognirelay.translate.trust import (
    HEALTH,
    PHASES,
    health_of,
    phase_of,
    verification_of,
)
from api.cognirelay.translate.verify import strength_of
from schemas.surfaces.cognirelay.capsule import LIFECYCLES

Row = dict[str, Any]
NO_LIFECYCLE: Final = 99
"""A capsule without a thread of its own comes after all that have one."""
STATES: Final = ("active", "fallback", "archived", "cold")
_FILTERS: Final = (
    "lifecycle",
    "scope_anchor",
    "keyword",
    "label_exact",
    "anchor_kind",
    "anchor_value",
)


def summary_row(capsule: Capsule, path: str, state: str, now: datetime) -> Row:
    """A capsule as a listing shows it."""
    health, reasons = health_of(capsule)
    return {
        "subject_kind": capsule["subject_kind"],
        "subject_id": capsule["subject_id"],
        "path": path,
        "updated_at": capsule["updated_at"],
        "verified_at": capsule["verified_at"],
        "verification_kind": capsule.get("verification_kind"),
        "freshness_class": capsule.get("freshness", {}).get("freshness_class"),
        "phase": phase_of(capsule, now),
        "verification_status": verification_of(capsule),
        "health_status": health,
        "health_reasons": reasons,
        "artifact_state": state,
        "retention_class": state,
        "stable_preference_count": len(capsule["stable_preferences"]),
        "rationale_entry_count": len(capsule["continuity"]["rationale_entries"]),
        "thread_descriptor": capsule.get("thread_descriptor"),
        "resume_adequate": is_adequate(capsule),
    }


def listed(
    rows: list[Row], signals: Mapping[str, Mapping[str, Any]], asked: Mapping[str, Any]
) -> dict[str, Any]:
    """The rows that are asked for, in order; and whether a filter found exactly one.

    `signals` are the salience of the active ones, by path.
    """
    is_filtered = any(asked[name] is not None for name in _FILTERS)
    if is_filtered:
        rows = [row for row in rows if _matches(row["thread_descriptor"], asked)]
    answer: dict[str, Any] = {"unique_match": is_filtered and len(rows) == 1}
    rows = sorted(rows, key=_place)
    if asked["sort"] == "salience":
        rows = _ranked(rows, signals)
    shown = rows[: asked["limit"]]
    if asked["sort"] == "salience":
        each = [row["salience"]["sort_key"] for row in shown if row["salience"] is not None]
        answer["salience_metadata"] = salience_metadata(each)
    return {"ok": True, "count": len(shown), "capsules": shown} | answer


def _ranked(rows: list[Row], signals: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """What stands by its salience, and then what no longer does."""
    active = [row for row in rows if row["artifact_state"] == "active"]
    active.sort(
        key=lambda row: salience_key(signals[row["path"]], row["subject_kind"], row["subject_id"])
    )
    ranked = [
        row | {"salience_rank": rank, "salience": {"rank": rank, "sort_key": signals[row["path"]]}}
        for rank, row in enumerate(active, start=1)
    ]
    others = [row for row in rows if row["artifact_state"] != "active"]
    return [*ranked, *(row | {"salience_rank": None, "salience": None} for row in others)]


def _place(row: Row) -> tuple[str, str, int, str]:
    state = STATES.index(row["artifact_state"])
    return row["subject_kind"], row["subject_id"], state, row["path"]


def _matches(descriptor: Mapping[str, Any] | None, asked: Mapping[str, Any]) -> bool:
    """Whether a thread is as all filters say."""
    if descriptor is None:
        return False
    kind, value = asked["anchor_kind"], asked["anchor_value"]
    kind = None if kind is None else kind.lower().strip()
    is_pinned = any(
        (kind is None or pin["kind"] == kind) and (value is None or pin["value"] == value)
        for pin in descriptor["identity_anchors"]
    )
    return (
        asked["lifecycle"] in (None, descriptor.get("lifecycle"))
        and asked["label_exact"] in (None, descriptor["label"])
        and _has(descriptor["scope_anchors"], asked["scope_anchor"])
        and _has(descriptor["keywords"], asked["keyword"])
        and (is_pinned or (kind is None and value is None))
    )


def _has(items: list[str], wanted: str | None) -> bool:
    return wanted is None or wanted.lower().strip() in items


# ── salience ─────────────────────────────────────────────────────────────────────────────────


def salience(capsule: Capsule, now: datetime) -> dict[str, Any]:
    """The six signals by which a capsule matters, each in its natural direction."""
    lifecycle = capsule.get("thread_descriptor", {}).get("lifecycle")
    age = age_s(capsule["updated_at"], now)
    return {
        "lifecycle_rank": LIFECYCLES.index(lifecycle) if lifecycle in LIFECYCLES else NO_LIFECYCLE,
        "health_rank": HEALTH.index(health_of(capsule)[0]),
        "freshness_rank": PHASES.index(phase_of(capsule, now)),
        "resume_adequate": is_adequate(capsule),
        "verification_rank": strength_of(capsule.get("verification_kind")),
        "updated_age_seconds": UNKNOWN_AGE_S if age is None else age,
    }


def salience_key(signals: Mapping[str, Any], kind: str, subject_id: str) -> tuple[Any, ...]:
    """What capsules are sorted by; no two have the same."""
    return (
        signals["lifecycle_rank"],
        signals["health_rank"],
        signals["freshness_rank"],
        not signals["resume_adequate"],
        -signals["verification_rank"],
        signals["updated_age_seconds"],
        kind,
        subject_id,
    )


def salience_metadata(each: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """All capsules of an answer together; None when there are none."""
    if not each:
        return None
    return {
        "sort_applied": True,
        "capsule_count": len(each),
        "best_lifecycle_rank": min(one["lifecycle_rank"] for one in each),
        "worst_health_rank": max(one["health_rank"] for one in each),
        "worst_freshness_rank": max(one["freshness_rank"] for one in each),
        "all_resume_adequate": all(one["resume_adequate"] for one in each),
    }
