"""What must hold of a capsule besides its shape?  (000: lengths of items, dates, paths, tags)

The order is part of the contract: the first rule that is broken is the one that is said.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from api.cognirelay.errors import refuse
from api.cognirelay.translate.documents import check_documents
from api.cognirelay.translate.times import utc
from schemas.limits import CAPSULE_BYTES_MAX, CAPSULE_CHARS, CAPSULE_ENTRIES, CAPSULE_LISTS, KIB

Capsule = dict[str, Any]

_LONG_LISTS: Final = (
    "top_priorities",
    "active_concerns",
    "active_constraints",
    "open_loops",
    "drift_signals",
    "working_hypotheses",
    "long_horizon_commitments",
)
_NON_EMPTY: Final = ("trailing_notes", "curiosity_queue")
_STAMPS: Final = ("created_at", "updated_at", "last_confirmed_at")
_BOUNDARIES: Final = frozenset(
    {"person_switch", "thread_switch", "task_switch", "public_reply", "manual_checkpoint"}
)
_PATH: Final = re.compile(r"[A-Za-z0-9._/\-]+")
_FOLDERS: Final = frozenset(
    {
        *("journal", "essays", "projects", "memory", "messages", "peers", "snapshots", "tasks"),
        *("patches", "runs", "index", "archive", "config", "logs", "backups"),
    }
)
"""The folders of a CogniRelay repository: nothing else is a canonical source."""
_SCOPE_ANCHOR: Final = re.compile(r"(user|peer|thread|task):[a-z0-9._-]{1,120}")
_encode: Final = msgspec.json.Encoder().encode
_ANCHOR_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def canonical(value: Any) -> str:
    """JSON as it is hashed and measured."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def check_size(capsule: Capsule) -> None:
    """Refuse more than the write cap."""
    # Two encoders differ in how they write a float: near the cap the canonical one is asked.
    if len(_encode(capsule)) <= CAPSULE_BYTES_MAX - KIB:
        return
    if len(canonical(capsule).encode()) > CAPSULE_BYTES_MAX:
        raise refuse(
            400, f"Continuity capsule exceeds {CAPSULE_BYTES_MAX // KIB} KB serialized UTF-8"
        )


def check(capsule: Capsule) -> None:
    """Refuse a capsule that breaks a rule; keywords and anchors come out in their plain form."""
    capsule["schema_version"] = "1.1"
    _check_times(capsule)
    held = capsule["continuity"]
    _check_lengths("source.inputs", capsule["source"]["inputs"], CAPSULE_CHARS["reference"])
    for name in _LONG_LISTS:
        _check_lengths(name, held[name], CAPSULE_LISTS[name][1])
    trajectory = held["session_trajectory"]
    _check_lengths(
        "continuity.session_trajectory", trajectory, CAPSULE_LISTS["session_trajectory"][1]
    )
    for name in _NON_EMPTY:
        _check_lengths(f"continuity.{name}", held[name], CAPSULE_LISTS[name][1], 1)
    _check_decisions(held["negative_decisions"])
    _check_rationales(held["rationale_entries"])
    _check_hints(capsule)
    _check_metadata(capsule)
    _check_preferences(capsule)
    _check_tags(held["rationale_entries"])
    if "related_documents" in held:
        check_documents(held["related_documents"])
    _check_descriptor(capsule)
    check_size(capsule)


def _check_times(capsule: Capsule) -> None:
    utc(capsule["updated_at"], "updated_at")
    utc(capsule["verified_at"], "verified_at")
    expires = capsule.get("freshness", {}).get("expires_at")
    if expires:
        utc(expires, "freshness.expires_at")


def _check_lengths(field: str, items: Iterable[str], most: int, least: int = 0) -> None:
    for item in items:
        if len(item) < least:
            raise refuse(400, f"Value too short in {field}")
        if len(item) > most:
            raise refuse(400, f"Value too long in {field}")


def _check_stamps(field: str, entry: Capsule) -> None:
    for name in _STAMPS:
        if entry.get(name) is not None:
            utc(entry[name], f"{field}.{name}")


def _check_decisions(decisions: list[Capsule]) -> None:
    field, seen = "continuity.negative_decisions", set[str]()
    for entry in decisions:
        most = {
            "decision": CAPSULE_CHARS["decision"],
            "rationale": CAPSULE_CHARS["decision_rationale"],
        }
        for name, chars in most.items():
            _check_lengths(f"{field}.{name}", [entry[name]], chars, 1)
        _check_stamps(f"{field}[]", entry)
        if entry["decision"] in seen:
            raise refuse(400, f"Duplicate negative_decisions decision: {entry['decision']}")
        seen.add(entry["decision"])


def _check_rationales(entries: list[Capsule]) -> None:
    field = "continuity.rationale_entries[]"
    for entry in entries:
        for name in ("tag", "summary", "reasoning"):
            _check_lengths(f"{field}.{name}", [entry[name]], CAPSULE_CHARS[name], 1)
        alternatives, dependencies = entry["alternatives_considered"], entry["depends_on"]
        chars = CAPSULE_CHARS["alternative"]
        _check_lengths(f"{field}.alternatives_considered", alternatives, chars, 1)
        _check_lengths(f"{field}.depends_on", dependencies, CAPSULE_CHARS["dependency"], 1)
        _check_stamps(field, entry)


def _check_hints(capsule: Capsule) -> None:
    model = capsule["continuity"].get("relationship_model", {})
    hints = capsule["continuity"].get("retrieval_hints", {})
    biases = capsule.get("attention_policy", {}).get("presence_bias_overrides", [])
    styles, notes = model.get("preferred_style", []), model.get("sensitivity_notes", [])
    _check_lengths("relationship_model.preferred_style", styles, CAPSULE_CHARS["style"])
    _check_lengths("relationship_model.sensitivity_notes", notes, CAPSULE_CHARS["sensitivity"])
    _check_lengths("attention_policy.presence_bias_overrides", biases, CAPSULE_CHARS["hint"])
    for name in ("must_include", "avoid"):
        _check_lengths(f"retrieval_hints.{name}", hints.get(name, []), CAPSULE_CHARS["hint"])
    _check_paths("retrieval_hints.load_next", hints.get("load_next", []))
    _check_paths("canonical_sources", capsule["canonical_sources"])


def _check_paths(field: str, paths: list[str]) -> None:
    for path in paths:
        if not _PATH.fullmatch(path):
            raise refuse(400, f"Invalid repo-relative path in {field}")
        wrong = _path_fault(path)
        if wrong is not None:
            raise refuse(400, f"Invalid repo-relative path in {field}: {wrong}")


def _path_fault(path: str) -> str | None:
    if path.startswith("/"):
        return "Path must be a non-empty relative path"
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and parts[0] not in _FOLDERS:
        return f"Top-level path not allowed: {parts[0]}"
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return "Path escapes repository root"
    return None


def _check_metadata(capsule: Capsule) -> None:
    metadata = capsule["metadata"]
    if len(metadata) > CAPSULE_ENTRIES["metadata"]:
        raise refuse(400, "Too many metadata keys")
    if any(isinstance(value, dict | list) for value in metadata.values()):
        raise refuse(400, "Metadata values must be scalar")
    kind, field = metadata.get("interaction_boundary_kind"), "metadata.interaction_boundary_kind"
    is_boundary = capsule["source"]["update_reason"] == "interaction_boundary"
    reason = "source.update_reason=interaction_boundary"
    if kind is None and is_boundary:
        raise refuse(400, f"{field} is required when {reason}")
    if kind is not None and not is_boundary:
        raise refuse(400, f"{field} requires {reason}")
    if kind is not None and kind not in _BOUNDARIES:
        raise refuse(400, f"Invalid {field}")


def _check_preferences(capsule: Capsule) -> None:
    preferences, seen = capsule["stable_preferences"], set[str]()
    if preferences and capsule["subject_kind"] not in ("user", "peer"):
        raise refuse(400, "stable_preferences is only allowed for user and peer capsules")
    for entry in preferences:
        _check_stamps("stable_preferences[]", entry)
        if entry["tag"] in seen:
            raise refuse(400, f"Duplicate stable_preferences tag: {entry['tag']}")
        seen.add(entry["tag"])


def _check_tags(entries: list[Capsule]) -> None:
    statuses: dict[str, str] = {}
    for entry in entries:
        if entry["tag"] in statuses:
            raise refuse(400, f"Duplicate rationale_entries tag: {entry['tag']}")
        statuses[entry["tag"]] = entry["status"]
    field = "rationale_entries[].supersedes"
    for entry in entries:
        replaced = entry.get("supersedes")
        if replaced is None:
            continue
        if replaced == entry["tag"]:
            raise refuse(400, f"{field} must not reference its own tag '{replaced}'")
        if statuses.get(replaced) != "superseded":
            said = f"tag '{replaced}' which does not exist with status 'superseded'"
            raise refuse(400, f"{field} references {said}")


def _check_descriptor(capsule: Capsule) -> None:
    descriptor = capsule.get("thread_descriptor")
    if descriptor is None:
        return
    if capsule["subject_kind"] not in ("thread", "task"):
        raise refuse(400, "thread_descriptor is only allowed for thread and task capsules")
    keywords = dict.fromkeys(word.lower().strip() for word in descriptor["keywords"])
    descriptor["keywords"] = [word for word in keywords if word]
    most = CAPSULE_CHARS["keyword"]
    if any(len(word) > most for word in descriptor["keywords"]):
        raise refuse(400, f"Keyword must be 1-{most} characters")
    for anchor in descriptor["scope_anchors"]:
        if not _SCOPE_ANCHOR.fullmatch(anchor):
            raise refuse(400, f"Invalid scope_anchor format: {anchor}")
    seen: set[tuple[str, str]] = set()
    for pin in descriptor["identity_anchors"]:
        pin["kind"], pin["value"] = pin["kind"].lower().strip(), pin["value"].strip()
        if not _ANCHOR_KIND.fullmatch(pin["kind"]):
            raise refuse(400, f"Invalid identity_anchor kind: {pin['kind']}")
        if not 1 <= len(pin["value"]) <= CAPSULE_CHARS["reference"]:
            most = CAPSULE_CHARS["reference"]
            raise refuse(400, f"identity_anchor value must be 1-{most} characters")
        place = (pin["kind"], pin["value"])
        if place in seen:
            raise refuse(400, f"Duplicate identity_anchor: ({place[0]}, {place[1]})")
        seen.add(place)


def check_verification(capsule: Capsule) -> None:
    """What must hold of how a capsule was verified."""
    state, health = capsule.get("verification_state"), capsule.get("capsule_health")
    if state is not None:
        field = "verification_state"
        utc(state["last_revalidated_at"], f"{field}.last_revalidated_at")
        _check_lengths(f"{field}.evidence_refs", state["evidence_refs"], CAPSULE_CHARS["reference"])
        if state["status"] == "conflicted" and not state.get("conflict_summary"):
            raise refuse(400, f"{field}.conflict_summary is required when status=conflicted")
    if health is not None:
        field = "capsule_health"
        utc(health["last_checked_at"], f"{field}.last_checked_at")
        _check_lengths(f"{field}.reasons", health["reasons"], CAPSULE_CHARS["health_reason"])
        if health["status"] != "healthy" and not health["reasons"]:
            said = "is required when status is degraded or conflicted"
            raise refuse(400, f"{field}.reasons {said}")


# ── plain form ───────────────────────────────────────────────────────────────────────────────


def normalise(capsule: Capsule) -> list[str]:
    """Trim, drop what is empty, keep one of equals; what was done, in the order it was done."""
    done: list[str] = []
    held = capsule["continuity"]
    for name in CAPSULE_LISTS_IN_ORDER:
        held[name] = _plain(held[name], f"continuity.{name}", done)
    sources = capsule["canonical_sources"]
    capsule["canonical_sources"] = _plain(sources, "canonical_sources", done)
    preferences, fields = capsule["stable_preferences"], ("tag", "content")
    _strip(preferences, fields, "stable_preferences", done)
    capsule["stable_preferences"] = _last(preferences, "tag", "stable_preferences", done)
    rationales = held["rationale_entries"]
    _strip(rationales, ("tag",), "rationale_entries.tag", done)
    held["rationale_entries"] = _last(rationales, "tag", "rationale_entries", done)
    decisions = held["negative_decisions"]
    _strip(decisions, ("decision", "rationale"), "negative_decisions", done)
    held["negative_decisions"] = _last(decisions, "decision", "negative_decisions", done)
    return done


CAPSULE_LISTS_IN_ORDER: Final = (*_LONG_LISTS, "session_trajectory", *_NON_EMPTY)


def _plain(items: list[str], field: str, done: list[str]) -> list[str]:
    stripped = [item.strip() for item in items]
    if stripped == items and all(items) and len(set(items)) == len(items):
        return items
    filled = [item for item in stripped if item]
    single = list(dict.fromkeys(filled))
    steps = {
        "strip": (items, stripped),
        "drop_empty": (stripped, filled),
        "dedup": (filled, single),
    }
    done += [f"{act}:{field}" for act, (before, after) in steps.items() if before != after]
    return single


def _strip(entries: list[Capsule], names: tuple[str, ...], field: str, done: list[str]) -> None:
    before = [[entry[name] for name in names] for entry in entries]
    for entry in entries:
        entry.update((name, entry[name].strip()) for name in names)
    if before != [[entry[name] for name in names] for entry in entries]:
        done.append(f"strip:{field}")


def _last(entries: list[Capsule], name: str, field: str, done: list[str]) -> list[Capsule]:
    """Of entries of one name the last, where it stands."""
    places = {entry[name]: at for at, entry in enumerate(entries)}
    if len(places) == len(entries):
        return entries
    done.append(f"dedup:{field}")
    return [entries[at] for at in sorted(places.values())]
