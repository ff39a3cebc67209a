"""Which capsules are there, and which matters most?  (000: list, salience)"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from api.cognirelay.translate.capsule import is_adequate
from api.cognirelay.translate.rules import Capsule
from api.cognirelay.translate.times import UNKNOWN_AGE_S, age_s, utc
from api.cognirelay.translate.trust import (
    HEALTH,
    PHASES,
    health_of,
    phase_of,
    verification_of,
)
from api.cognirelay.translate.verify import strength_of
from schemas.surfaces.cognirelay.capsule import LIFECYCLES
from schemas.surfaces.document import Document

Row = dict[str, Any]
NO_LIFECYCLE: Final = 99
"""A capsule without a thread of its own comes after all that have one."""
STATES: Final = ("active", "fallback", "archived", "cold")
_CLOSEST: Final = (
    "label_exact",
    "anchor_value",
    "scope_anchor",
    "keyword",
    "anchor_kind",
    "lifecycle",
)
"""The filters over a thread's descriptor: what is likely to leave the fewest comes first."""
_PLAIN: Final = ("scope_anchor", "keyword", "anchor_kind")
"""Filters that are read as they are stored: in lower case, without spaces around them."""


class Listed(NamedTuple):
    """A capsule that a listing may show: where it is, in which state, and what holds it."""

    path: str
    state: str
    capsule: Capsule
    document: Document


def labels_of(capsule: Capsule) -> tuple[str, ...]:
    """By what a listing finds a capsule without looking at the others: each of its filters."""
    labels = [f"subject_kind/{capsule['subject_kind']}"]
    descriptor = capsule.get("thread_descriptor")
    if descriptor is not None:
        labels += [f"lifecycle/{descriptor.get('lifecycle')}", f"label_exact/{descriptor['label']}"]
        labels += [f"keyword/{word}" for word in descriptor["keywords"]]
        labels += [f"scope_anchor/{anchor}" for anchor in descriptor["scope_anchors"]]
        for pin in descriptor["identity_anchors"]:
            labels += [f"anchor_kind/{pin['kind']}", f"anchor_value/{pin['value']}"]
    return tuple(dict.fromkeys(labels))


def labels_meant(asked: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The label of every capsule that is meant, of the closest filter; None without a filter."""
    for name in (*_CLOSEST, "subject_kind"):
        if asked[name] is not None:
            wanted = asked[name].lower().strip() if name in _PLAIN else asked[name]
            return (f"{name}/{wanted}",)
    return None


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


def retention_class(archived_at: str, now: datetime, stale_days: int) -> str:
    """How an archive is kept: one that is older than the setting says could be put away."""
    is_stale = now - utc(archived_at, "archived_at") > timedelta(days=stale_days)
    return "archive_stale" if is_stale else "archive_recent"


def listed(
    found: Iterable[Listed], asked: Mapping[str, Any], now: datetime, row: Callable[[Listed], Row]
) -> dict[str, Any]:
    """The capsules that are asked for, in order; and whether a filter found exactly one.

    Rows are made of those alone that are shown.
    """
    kind, most = asked["subject_kind"], asked["limit"]
    meant = [one for one in found if kind in (None, one.capsule["subject_kind"])]
    is_filtered = any(asked[name] is not None for name in _CLOSEST)
    if is_filtered:
        meant = [one for one in meant if _matches(_descriptor(one), asked)]
    answer: dict[str, Any] = {"unique_match": is_filtered and len(meant) == 1}
    meant.sort(key=_place)
    if asked["sort"] == "salience":
        shown = _ranked(meant, now, most, row)
        each = [one["salience"]["sort_key"] for one in shown if one["salience"] is not None]
        answer["salience_metadata"] = salience_metadata(each)
    else:
        shown = [row(one) for one in meant[:most]]
    return {"ok": True, "count": len(shown), "capsules": shown} | answer


def _ranked(
    meant: list[Listed], now: datetime, most: int, row: Callable[[Listed], Row]
) -> list[Row]:
    """What stands by its salience, and then what no longer does."""
    active = [(salience(one.capsule, now), one) for one in meant if one.state == "active"]
    active.sort(key=lambda pair: salience_key(pair[0], *_subject(pair[1])))
    ranked = [
        row(one) | {"salience_rank": rank, "salience": {"rank": rank, "sort_key": signals}}
        for rank, (signals, one) in enumerate(active[:most], start=1)
    ]
    others = [one for one in meant if one.state != "active"][: most - len(ranked)]
    return [*ranked, *(row(one) | {"salience_rank": None, "salience": None} for one in others)]


def _subject(one: Listed) -> tuple[str, str]:
    return one.capsule["subject_kind"], one.capsule["subject_id"]


def _place(one: Listed) -> tuple[str, str, int, str, str]:
    # Several archives of a subject name one path: then the oldest is first.
    return *_subject(one), STATES.index(one.state), one.path, one.document.key


def _descriptor(one: Listed) -> Mapping[str, Any] | None:
    """The thread of a capsule, as its row shows it: the stub of a cold one shows none."""
    return None if one.state == "cold" else one.capsule.get("thread_descriptor")


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
