"""What becomes of a capsule when somebody writes it?  (000: upsert, patch, lifecycle)

Pure: the capsule that is stored and what was asked give the capsule to store, or a refusal. A
capsule is a plain object as it is hashed: defaults filled in, nulls left out.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.cognirelay.access import slug
from api.cognirelay.errors import refuse
from api.cognirelay.translate.rules import Capsule, check, check_size, normalise
from api.cognirelay.translate.times import parsed, said, utc
from schemas.limits import CAPSULE_ENTRIES, CAPSULE_LISTS, CAPSULE_STANCE_CHARS_MIN
from schemas.surfaces.cognirelay.capsule import (
    CAPSULE,
    CORE_LISTS,
    MORE_LISTS,
    STRING_TARGETS,
    STRUCTURED,
)
from schemas.surfaces.document import CURRENT, Document
from schemas.surfaces.shapes import BadShape

CAPSULE_KIND: Final = "capsule"
"""The kind of document that holds a subject's capsule; its key is `<kind>-<slug>`."""
BARE: Final = "current without fallback"
ARCHIVED: Final = "archived"
DELETED: Final = "deleted"
GONE: Final = "gone"
"""States beside CURRENT: active but with no fallback, no longer active but with one, neither."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

OLDER: Final = "Incoming continuity capsule is older than the current stored capsule"
CONFLICTS: Final = "Incoming continuity capsule conflicts with the current stored capsule timestamp"
MISSING: Final = "continuity capsule not found"
_FROM: Final = {
    "active": {"suspend", "conclude", "supersede"},
    "suspended": {"resume", "conclude", "supersede"},
}
_TO: Final = {
    "suspend": "suspended",
    "resume": "active",
    "conclude": "concluded",
    "supersede": "superseded",
}
_ENTRY_LISTS: Final = {
    "stable_preferences": ("tag", ("tag", "content")),
    "rationale_entries": (
        "tag",
        (
            *("tag", "kind", "status", "summary", "reasoning"),
            *("alternatives_considered", "depends_on", "supersedes"),
        ),
    ),
    "negative_decisions": ("decision", ("decision", "rationale")),
}
"""Of entries that carry their own times: what names one, and what is its content."""


# ── what is stored ───────────────────────────────────────────────────────────────────────────


def active(document: Document | None) -> Capsule | None:
    """The capsule that stands, in the form in which it is read."""
    if document is None or document.state not in (CURRENT, BARE):
        return None
    return loaded(document.value)


def fallback(document: Document | None) -> Capsule | None:
    """The last accepted state: it outlives archiving and deleting."""
    if document is None or document.state in (BARE, GONE):
        return None
    return loaded(document.value)


def loaded(stored: Capsule) -> Capsule:
    """A copy of a stored capsule, its own times in their plain form, and times for all entries.

    What was confirmed as it came carries no times of its own: its entries came with the capsule.
    """
    # Through the form in which it is stored: a tenth of the time that `deepcopy` takes.
    capsule = plain_times(_decode(_encode(stored)))
    for name in _ENTRY_LISTS:
        for entry in _entries(capsule, name):
            entry.setdefault("created_at", capsule["updated_at"])
            entry.setdefault("updated_at", capsule["updated_at"])
    return capsule


def plain_times(stored: Capsule) -> Capsule:
    """The capsule with its own times in their plain form; its parts are the stored one's."""
    times = {name: parsed(stored[name]) for name in ("updated_at", "verified_at")}
    return stored | {name: said(moment) for name, moment in times.items() if moment is not None}


def is_adequate(capsule: Capsule) -> bool:
    """Whether somebody could go on from here (000, resume quality)."""
    held = capsule["continuity"]
    lists = ("open_loops", "top_priorities", "active_constraints")
    is_told = len(held["stance_summary"]) >= CAPSULE_STANCE_CHARS_MIN
    return is_told and all(held[name] for name in lists)


def words_of(capsule: Capsule) -> str:
    """What a capsule says, for who looks for it by words or meaning."""
    held = capsule["continuity"]
    descriptor = capsule.get("thread_descriptor") or {}
    lines = [f"{capsule['subject_kind']} {capsule['subject_id']}"]
    lines += [descriptor.get("label", ""), ", ".join(descriptor.get("keywords", []))]
    lines.append(held["stance_summary"])
    for name in (*CORE_LISTS, *MORE_LISTS):
        title = name.replace("_", " ")
        lines += [f"{title}: {item}" for item in held[name]]
    lines += [
        f"decided not to: {e['decision']}. {e['rationale']}" for e in held["negative_decisions"]
    ]
    for entry in held["rationale_entries"]:
        if entry["status"] == "active":
            lines.append(f"{entry['kind']}: {entry['summary']}. {entry['reasoning']}")
    lines += [f"prefers {e['tag']}: {e['content']}" for e in capsule["stable_preferences"]]
    return "\n".join(line for line in lines if line)


# ── upsert ───────────────────────────────────────────────────────────────────────────────────


def check_request(asked: Mapping[str, Any]) -> Capsule:
    """The capsule that is asked to be stored, checked before anything stored is looked at."""
    given = asked["capsule"]
    if given["continuity"].get("related_documents", ()) is None:
        raise refuse(400, "Invalid value type in continuity.related_documents[]")
    capsule = CAPSULE.stored(given)
    capsule.pop("verification_state", None)
    capsule.pop("capsule_health", None)
    if any(capsule[name] != asked[name] for name in ("subject_kind", "subject_id")):
        raise refuse(400, "Capsule subject does not match request subject")
    snapshot = asked.get("session_end_snapshot")
    if snapshot is not None:
        capsule["continuity"].update(_snapped(snapshot))
    slug(asked["subject_id"])
    _check_transition(asked)
    _unmanaged(capsule)
    check(capsule)
    return capsule


def _snapped(snapshot: Mapping[str, Any]) -> Capsule:
    """What a snapshot at the end of a session says; what is null there says nothing."""
    said_so = {name: value for name, value in snapshot.items() if value is not None}
    for name in ("negative_decisions", "rationale_entries"):
        if name in said_so:
            said_so[name] = [STRUCTURED[name].stored(entry) for entry in said_so[name]]
    return said_so


def _check_transition(asked: Mapping[str, Any]) -> None:
    transition, heir = asked.get("lifecycle_transition"), asked.get("superseded_by")
    if heir is not None and transition != "supersede":
        raise refuse(400, "superseded_by is only allowed when lifecycle_transition is 'supersede'")
    if transition is not None and asked["subject_kind"] not in ("thread", "task"):
        raise refuse(400, "lifecycle_transition is only allowed for thread and task capsules")
    if transition == "supersede" and heir is None:
        raise refuse(400, "superseded_by is required when lifecycle_transition is 'supersede'")


def _unmanaged(capsule: Capsule) -> None:
    """A caller does not say where in its life a thread is."""
    for name in ("lifecycle", "superseded_by"):
        capsule.get("thread_descriptor", {}).pop(name, None)


def upserted(
    asked: Mapping[str, Any], capsule: Capsule, stored: Capsule | None
) -> tuple[Capsule, list[str]]:
    """The capsule to store, made of the one that `check_request` gave, and what was made plain."""
    if stored is not None and utc(capsule["updated_at"], "updated_at") < _moment(stored):
        raise refuse(409, OLDER)
    is_merged = stored is not None and asked.get("merge_mode") == "preserve"
    if stored is not None and is_merged:
        _preserve(asked, capsule, loaded(stored))
    done = normalise(capsule)
    _stamp(capsule, stored)
    if is_merged or done:
        check(capsule)  # else it is as it was when it was checked
    check_size(capsule)
    _transition(asked, capsule, stored)
    check_size(capsule)
    return capsule, done


def check_conflict(updated_at: str, stored: Capsule) -> None:
    """Refuse what is not strictly newer than what is stored."""
    moment = utc(updated_at, "updated_at")
    if moment < _moment(stored):
        raise refuse(409, OLDER)
    if moment == _moment(stored):
        raise refuse(409, CONFLICTS)


def _moment(stored: Capsule) -> Any:
    return utc(stored["updated_at"], "updated_at")


def _preserve(asked: Mapping[str, Any], capsule: Capsule, stored: Capsule) -> None:
    """What was not given stays as it is stored; null has cleared what may be null."""
    given = asked["capsule"]
    snapshot = asked.get("session_end_snapshot") or {}
    touched = {name for name, value in snapshot.items() if value is not None}
    held, was = capsule["continuity"], stored["continuity"]
    for name in CORE_LISTS:
        if name not in touched and given["continuity"][name] == [] and name in was:
            held[name] = was[name]
    lists = (*MORE_LISTS, "negative_decisions", "rationale_entries", "related_documents")
    for name in (*lists, "relationship_model", "retrieval_hints"):
        if name not in touched and name not in given["continuity"] and name in was:
            held[name] = was[name]
    parts = ("attention_policy", "freshness", "canonical_sources", "metadata", "stable_preferences")
    for name in (*parts, "thread_descriptor"):
        if name not in given and name in stored:
            capsule[name] = stored[name]
    descriptor = given.get("thread_descriptor")
    if descriptor is not None:
        known = stored.get("thread_descriptor", {})
        for name in ("keywords", "scope_anchors", "identity_anchors"):
            if name not in descriptor and name in known:
                capsule["thread_descriptor"][name] = known[name]


def _stamp(capsule: Capsule, stored: Capsule | None) -> None:
    """Entries know when they came and when their content changed last; the caller says neither."""
    now = capsule["updated_at"]
    for name, (key, fields) in _ENTRY_LISTS.items():
        entries = _entries(capsule, name)
        known = {e[key]: e for e in _entries(stored, name)} if stored is not None else {}
        for entry in entries:
            old = known.get(entry[key])
            is_new = old is None or any(entry.get(f) != old.get(f) for f in fields)
            old = old or {}
            began = old.get("created_at") or old.get("updated_at") or now
            entry["created_at"] = began
            entry["updated_at"] = now if is_new else old.get("updated_at") or began
            confirmed = entry.get("last_confirmed_at") or old.get("last_confirmed_at")
            if confirmed is not None:
                entry["last_confirmed_at"] = confirmed


def _entries(capsule: Capsule, name: str) -> list[Capsule]:
    place = capsule if name == "stable_preferences" else capsule["continuity"]
    found: list[Capsule] = place.get(name, [])
    return found


def _transition(asked: Mapping[str, Any], capsule: Capsule, stored: Capsule | None) -> None:
    """Where in its life the thread is after this."""
    transition = asked.get("lifecycle_transition")
    descriptor = capsule.get("thread_descriptor")
    before = (stored or {}).get("thread_descriptor")
    if transition is not None and (descriptor is None or before is None):
        raise refuse(400, "no thread_descriptor to transition; create one first")
    if descriptor is None:
        return
    for name in ("lifecycle", "superseded_by"):
        descriptor.pop(name, None)
    if before is None:
        descriptor["lifecycle"] = "active"
    elif transition is None:
        descriptor["lifecycle"] = before.get("lifecycle", "active")
        if before.get("superseded_by") is not None:
            descriptor["superseded_by"] = before["superseded_by"]
    else:
        _move(descriptor, before.get("lifecycle", "active"), transition, asked)


def _move(descriptor: Capsule, before: str, transition: str, asked: Mapping[str, Any]) -> None:
    if before not in _FROM:
        raise refuse(400, f"lifecycle transition not allowed from terminal state '{before}'")
    if transition not in _FROM[before]:
        raise refuse(400, f"lifecycle transition '{transition}' not allowed from '{before}'")
    descriptor["lifecycle"] = _TO[transition]
    descriptor.pop("superseded_by", None)
    if transition == "supersede":
        descriptor["superseded_by"] = asked["superseded_by"]


# ── lifecycle ────────────────────────────────────────────────────────────────────────────────


def check_lifecycle(asked: Mapping[str, Any]) -> None:
    """What is wrong with a transition whatever is stored."""
    utc(asked["updated_at"], "updated_at")
    is_supersede, heir = asked["transition"] == "supersede", asked.get("superseded_by")
    if is_supersede and heir is None:
        raise refuse(400, "superseded_by is required when transition is 'supersede'")
    if not is_supersede and heir is not None:
        raise refuse(400, "superseded_by is only allowed when transition is 'supersede'")


def moved(asked: Mapping[str, Any], stored: Capsule | None) -> tuple[Capsule, str]:
    """The capsule after a transition, and where it was before."""
    if stored is None:
        raise refuse(404, MISSING)
    check_conflict(asked["updated_at"], stored)
    capsule = loaded(stored)
    descriptor = capsule.get("thread_descriptor")
    if descriptor is None:
        raise refuse(400, "no thread_descriptor to transition")
    before = str(descriptor.get("lifecycle") or "active")
    _move(descriptor, before, asked["transition"], asked)
    capsule["updated_at"] = asked["updated_at"]
    check_size(capsule)
    return capsule, before


# ── patch ────────────────────────────────────────────────────────────────────────────────────

_ANCHORS: Final = "thread_descriptor.identity_anchors"
_STRINGS: Final = (*STRING_TARGETS, "thread_descriptor.keywords", "thread_descriptor.scope_anchors")


def check_operations(operations: list[Mapping[str, Any]]) -> None:
    """What is wrong with operations whatever is stored; the first fault is said."""
    for operation in operations:
        fault = _operation_fault(operation)
        if fault is not None:
            raise refuse(400, f"invalid operation: {fault}")


def _operation_fault(operation: Mapping[str, Any]) -> str | None:
    target, action = operation["target"], operation["action"]
    value, match, index = (operation.get(name) for name in ("value", "match", "index"))
    is_string = target in _STRINGS
    kind = "string-list" if is_string else "structured-list"
    if action == "remove":
        faults = [
            (value is not None, f"remove must not specify value on {target}"),
            (match is None, f"remove requires match on {kind} target {target}"),
            (index is not None, f"remove must not specify index on {target}"),
        ]
    else:
        is_place = match is not None or index is not None
        wants, bars = ("index", "match") if is_string else ("match", "index")
        is_append = action == "append"
        faults = [
            (is_append and is_place, f"append must not specify match or index on {target}"),
            (value is None, f"{action} requires value on {target}"),
            (
                is_string and not isinstance(value, str),
                f"value must be a string for string-list target {target}",
            ),
        ]
        if not is_append:
            placed = f"replace_at requires {wants} on {kind} target {target}"
            barred = f"replace_at must not specify {bars} on {kind} target {target}"
            faults.append((operation.get(wants) is None, placed))
            faults.append((operation.get(bars) is not None, barred))
    return next((said_so for is_so, said_so in faults if is_so), None)


def patched(asked: Mapping[str, Any], stored: Capsule | None) -> tuple[Capsule, list[str]]:
    """The capsule after all operations, and what was brought into plain form."""
    if stored is None:
        raise refuse(404, MISSING)
    check_conflict(asked["updated_at"], stored)
    capsule = loaded(stored)
    for operation in asked["operations"]:
        _operate(capsule, operation)
    capsule["updated_at"] = asked["updated_at"]
    done = normalise(capsule)
    _stamp(capsule, stored)
    check(capsule)
    return capsule, done


def _operate(capsule: Capsule, operation: Mapping[str, Any]) -> None:
    target, action = operation["target"], operation["action"]
    items = _items(capsule, target)
    if action == "append":
        most = _most(target)
        if len(items) >= most:
            raise refuse(400, f"append would exceed max length ({most}) for {target}")
        items.append(_item(target, operation["value"]))
        return
    at = _place(items, operation)
    if action == "remove":
        items.pop(at)
    else:
        items[at] = _item(target, operation["value"])


def _items(capsule: Capsule, target: str) -> list[Any]:
    place, _, name = target.rpartition(".")
    if place and place not in capsule:
        raise refuse(400, f"capsule has no {place} for target '{target}'")
    owner = capsule[place] if place else capsule
    found: list[Any] = owner[name]
    return found


def _most(target: str) -> int:
    name = target.rpartition(".")[2]
    return CAPSULE_LISTS[name][0] if name in CAPSULE_LISTS else CAPSULE_ENTRIES[name]


def _item(target: str, value: Any) -> Any:
    if target in _STRINGS:
        return value
    shape = STRUCTURED[target.rpartition(".")[2]]
    try:
        return shape.stored(shape.parse(value, ("value",)))
    except BadShape as error:
        # The original breaks on these (docs/deviations.md).
        where = ".".join(map(str, error.complaints[0].loc))
        why = error.complaints[0].msg
        raise refuse(400, f"invalid operation: {where}: {why} on {target}") from error


def _place(items: list[Any], operation: Mapping[str, Any]) -> int:
    target, action, match = operation["target"], operation["action"], operation.get("match")
    if target in _STRINGS and action == "replace_at":
        index: int = operation["index"]
        if not 0 <= index < len(items):
            size = len(items)
            raise refuse(404, f"index {index} out of bounds for {target} (length {size})")
        return index
    for at, item in enumerate(items):
        if _name_of(target, item) == match:
            return at
    raise refuse(404, f"no matching item for {action} on {target}")


def _name_of(target: str, item: Any) -> str:
    """By what an item of a list is meant."""
    if target in _STRINGS:
        return str(item)
    if target == _ANCHORS:
        return f"{item['kind']}:{item['value']}"
    return str(item["decision" if target.endswith("negative_decisions") else "tag"])
