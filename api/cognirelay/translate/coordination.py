"""What do agents agree to tell each other, and who may?  Pure: requests and rows in, rows out.

A row is the JSON object that clients read. The shape of a request was checked before; here are the
rules that need other rows, in the order in which they are blamed (000, coordination).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from api.cognirelay.errors import refuse
from schemas import limits

HANDOFF: Final = "handoff"
SHARED: Final = "shared"
RECONCILIATION: Final = "reconciliation"
PEER: Final = "peer"

Row = dict[str, Any]
Look = Callable[[str, str], Row | None]
"""The row of a kind under a key, as of now; None when there is none."""

_IDS: Final = {
    HANDOFF: re.compile(r"handoff_[0-9a-f]{32}"),
    SHARED: re.compile(r"shared_[0-9a-f]{32}"),
    RECONCILIATION: re.compile(r"recon_[0-9a-f]{32}"),
}
_NAMES: Final = {
    HANDOFF: ("handoff artifact", "Handoff artifact"),
    SHARED: ("shared coordination artifact", "Shared coordination artifact"),
    RECONCILIATION: ("reconciliation artifact", "Reconciliation artifact"),
}
_FOLDERS: Final = {HANDOFF: "handoffs", SHARED: "shared", RECONCILIATION: "reconciliations"}
_STATE: Final = ("constraints", "drift_signals", "coordination_alerts")


class Me(msgspec.Struct, frozen=True):
    """Who asks, by the name other peers know; an admin sees everything."""

    peer: str
    is_admin: bool


def path_of(kind: str, artifact_id: str) -> str:
    """Where the original would keep it; clients show it."""
    return f"memory/coordination/{_FOLDERS[kind]}/{artifact_id}.json"


def is_id(kind: str, artifact_id: str) -> bool:
    """Whether this can be the id of such a thing."""
    return _IDS[kind].fullmatch(artifact_id) is not None


def check_id(kind: str, artifact_id: str) -> None:
    """An id that cannot be one is said to be none."""
    if not is_id(kind, artifact_id):
        raise refuse(400, f"Invalid {_NAMES[kind][0]} id")


def found(kind: str, row: Row | None) -> Row:
    """The row, which must be there."""
    if row is None:
        raise refuse(404, f"{_NAMES[kind][1]} not found")
    return row


def visible(kind: str, row: Row, me: Me) -> Row:
    """The row, when it is any of the caller's business."""
    if not (me.is_admin or me.peer in _parties(kind, row)):
        raise refuse(403, f"{_NAMES[kind][1]} not visible to caller")
    return row


def _parties(kind: str, row: Row) -> tuple[str, ...]:
    if kind == HANDOFF:
        return row["sender_peer"], row["recipient_peer"]
    return row["owner_peer"], *row["participant_peers"]


# ── peers ────────────────────────────────────────────────────────────────────────────────────


_STEPS_OF_TRUST: Final = {
    ("untrusted", "restricted"),
    ("restricted", "trusted"),
    ("restricted", "untrusted"),
    ("trusted", "restricted"),
}
_HASH: Final = "sha256:"


def registered(asked: Row, before: Row | None, me: Me, now: str) -> Row:
    """A peer as it is known from now on; every change of trust is remembered."""
    level, reason = asked["trust_level"], asked["transition_reason"]
    was = "untrusted" if before is None else before["trust_level"]
    mark = _checked_mark(asked, before)
    if before is not None and level != was:
        if (was, level) not in _STEPS_OF_TRUST:
            raise refuse(409, f"Trust transition not allowed: {was} -> {level}")
        if not (reason or "").strip():
            raise refuse(400, "Trust transition reason is required")
    if level == "trusted" and mark is None:
        raise refuse(400, "public_key fingerprint is required for trusted peers")
    history = [] if before is None else list(before["trust_history"])
    if level != was:
        history.append(
            {
                "at": now,
                "from": was,
                "to": level,
                "reason": reason or "register_update",
                "by": me.peer,
            }
        )
    return {
        "peer_id": asked["peer_id"],
        "base_url": asked["base_url"],
        "public_key": asked["public_key"],
        "public_key_fingerprint": mark,
        "capabilities_url": asked["capabilities_url"],
        "trust_level": level,
        "allowed_scopes": asked["allowed_scopes"],
        "created_at": now if before is None else before["created_at"],
        "updated_at": now,
        "trust_history": history[-limits.PEER_CHANGES_MAX :],
    }


def _checked_mark(asked: Row, before: Row | None) -> str | None:
    """The fingerprint of a peer's key, the one it gives or the one it had, if it is as expected."""
    key, expected = asked["public_key"], asked["expected_public_key_fingerprint"]
    given = _HASH + sha256(key.encode()).hexdigest() if key else None
    had = None if before is None else before["public_key_fingerprint"]
    if expected:
        expected = _HASH + expected.strip().removeprefix(_HASH)
        if given is not None and given != expected:
            raise refuse(400, "public_key fingerprint mismatch")
        if given is None and had is not None and had != expected:
            message = "existing peer fingerprint does not match expected fingerprint"
            raise refuse(400, message)
    return given or had


def check_peer(look: Look, peer: str) -> None:
    """Only peers that are known, and trusted a little, are told anything."""
    row = look(PEER, peer)
    if row is None:
        raise refuse(404, f"Peer not found: {peer}")
    if row["trust_level"] == "untrusted":
        raise refuse(409, f"Peer is untrusted: {peer}")


# ── handoffs ─────────────────────────────────────────────────────────────────────────────────


def check_handoff(asked: Row) -> None:
    """The texts of a handoff."""
    _check_text("handoff", "commit_message", asked["commit_message"])


def new_handoff(asked: Row, capsule: Mapping[str, Any], path: str, me: Me) -> Row:
    """What crosses over: constraints and signs of drift, and nothing else of the capsule."""
    held = capsule["continuity"]
    most = limits.HANDOFF_ITEMS_MAX
    return {
        "schema_type": "continuity_handoff",
        "schema_version": "1.0",
        "created_by": me.peer,
        "sender_peer": me.peer,
        "recipient_peer": asked["recipient_peer"],
        "source_selector": {
            "subject_kind": asked["subject_kind"],
            "subject_id": asked["subject_id"],
        },
        "source_summary": {
            "path": path,
            "updated_at": capsule["updated_at"],
            "verified_at": capsule["verified_at"],
            "verification_status": _status(capsule.get("verification_state"), "unverified"),
            "health_status": _status(capsule.get("capsule_health"), "healthy"),
        },
        "task_id": asked["task_id"],
        "thread_id": asked["thread_id"],
        "note": asked["note"],
        # A capsule may have more constraints than cross over (docs/deviations.md).
        "shared_continuity": {
            "active_constraints": held["active_constraints"][:most],
            "drift_signals": held["drift_signals"][:most],
        },
        "recipient_status": "pending",
        "recipient_reason": None,
        "recipient_note": None,
        "consumed_at": None,
        "consumed_by": None,
    }


def _status(part: Mapping[str, Any] | None, default: str) -> str:
    return default if part is None else str(part["status"])


def consumed(row: Row, asked: Row, me: Me, now: str) -> Row | None:
    """The handoff with its recipient's answer; None when that was the answer already."""
    if me.peer != row["recipient_peer"]:
        raise refuse(403, "Only the intended recipient may consume this handoff")
    if row["recipient_status"] != "pending":
        said = (row["recipient_status"], row["recipient_reason"])
        if said == (asked["status"], asked["reason"]):
            return None
        raise refuse(409, "Handoff has already been consumed")
    return row | {
        "recipient_status": asked["status"],
        "recipient_reason": asked["reason"],
        "recipient_note": asked["note"],
        "consumed_at": now,
        "consumed_by": me.peer,
    }


def check_handoff_query(asked: Row, me: Me) -> None:
    """Someone's handoffs; other people's only for an admin."""
    named = [asked[name] for name in ("recipient_peer", "sender_peer") if asked[name]]
    if not named:
        raise refuse(400, "recipient_peer or sender_peer is required")
    if not me.is_admin and any(peer != me.peer for peer in named):
        raise refuse(403, "Non-admin callers may query only their own handoff identity")


# ── shared state ─────────────────────────────────────────────────────────────────────────────


def check_state(asked: Row) -> None:
    """The texts of shared state, of which there is at least one."""
    _check_text("shared", "title", asked["title"])
    _check_text("shared", "summary", asked["summary"])
    for name in _STATE:
        for text in asked[name]:
            _check_text("shared", name, text)
    if not any(asked[name] for name in _STATE):
        raise refuse(400, "Shared coordination state must include at least one shared item")
    _check_text("shared", "commit_message", asked["commit_message"])


def check_participants(asked: Row, me: Me, look: Look) -> None:
    """Others than the owner, each once, each known."""
    seen: set[str] = set()
    for peer in asked["participant_peers"]:
        if peer == me.peer:
            raise refuse(400, "participant_peers must not include owner_peer")
        if peer in seen:
            raise refuse(400, "participant_peers must not contain duplicates")
        seen.add(peer)
        check_peer(look, peer)


def new_shared(asked: Row, me: Me) -> Row:
    """Shared state of its owner's making."""
    return {
        "schema_type": "coordination_shared_state",
        "schema_version": "1.0",
        "created_by": me.peer,
        "owner_peer": me.peer,
        "participant_peers": asked["participant_peers"],
        "task_id": asked["task_id"],
        "thread_id": asked["thread_id"],
        **_content(asked),
        "version": 1,
        "last_updated_by": me.peer,
    }


def _content(asked: Row) -> Row:
    state = {name: asked[name] for name in _STATE}
    return {"title": asked["title"], "summary": asked["summary"], "shared_state": state}


def updated_shared(row: Row, asked: Row, me: Me, now: str) -> Row:
    """The next version: the owner's alone, and only over the one that was read."""
    if me.peer != row["owner_peer"]:
        raise refuse(403, "Only the owner may update this shared coordination artifact")
    check_state(asked)
    if asked["expected_version"] != row["version"]:
        raise refuse(409, "Shared coordination version conflict")
    return row | _content(asked) | _stepped(row, me, now)


def _stepped(row: Row, me: Me, now: str) -> Row:
    return {"version": row["version"] + 1, "updated_at": now, "last_updated_by": me.peer}


def check_shared_query(asked: Row, me: Me) -> None:
    """At least one filter; who is no admin is among those asked about, and alone."""
    if not any(asked[name] for name in ("owner_peer", "participant_peer", "task_id", "thread_id")):
        reason = "owner_peer, participant_peer, task_id, or thread_id is required"
        raise refuse(400, f"Invalid shared coordination query: {reason}")
    named = [asked[name] for name in ("owner_peer", "participant_peer") if asked[name]]
    if me.is_admin:
        return
    if me.peer not in named:
        raise refuse(403, "Non-admin callers must include their own shared coordination identity")
    if any(peer != me.peer for peer in named):
        raise refuse(403, "Non-admin callers may query only their own shared coordination identity")


# ── reconciliations ──────────────────────────────────────────────────────────────────────────


def check_reconciliation(asked: Row) -> None:
    """Texts and claims by themselves, before anything they speak of is looked at."""
    for name in ("title", "summary", "commit_message"):
        _check_text("reconciliation", name, asked[name])
    claims = asked["claims"]
    for claim in claims:
        _check_text("reconciliation", "claim_summary", claim["claim_summary"])
        for reference in claim["evidence_refs"]:
            _check_text("reconciliation", "evidence_refs", reference)
    if len(claims) < limits.COORDINATION_CLAIMS_MIN:
        raise refuse(400, "Reconciliation must include at least two claims")
    if asked["task_id"] is None and asked["thread_id"] is None:
        raise refuse(400, "task_id or thread_id is required")
    seen: set[tuple[str, str, str]] = set()
    for claim in claims:
        said = (claim["source_kind"], claim["source_id"], claim["claimant_peer"])
        if said in seen:
            raise refuse(400, "Reconciliation claims must be unique")
        seen.add(said)
        _check_observed(claim)
    if {claim["source_kind"] for claim in claims} != _MEANT[asked["trigger"]]:
        raise refuse(400, "trigger does not match claim source kinds")


_MEANT: Final = {
    "handoff_vs_handoff": {HANDOFF},
    "shared_vs_shared": {SHARED},
    "handoff_vs_shared": {HANDOFF, SHARED},
    "concurrent_mutation_race": {SHARED},
}
"""Which kinds of things disagree; only what has versions can be raced for."""


def _check_observed(claim: Row) -> None:
    """Only what is shared has versions, and there one must be named."""
    is_shared, observed = claim["source_kind"] == SHARED, claim["observed_version"]
    if is_shared and observed is None:
        raise refuse(400, "observed_version is required for shared claims")
    if not is_shared and observed is not None:
        raise refuse(400, "observed_version is not allowed for handoff claims")


def check_sources(claims: list[Row], me: Me, look: Look) -> None:
    """A claim is a known peer's, about what the caller sees and the claimant is party to.

    Peers are looked at first, then whether all that is spoken of is there, then each claim.
    """
    for claim in claims:
        check_peer(look, claim["claimant_peer"])
    rows = [_source(claim, look) for claim in claims]
    for claim, row in zip(claims, rows, strict=True):
        kind, peer = claim["source_kind"], claim["claimant_peer"]
        parties = _parties(kind, row)
        if not (me.is_admin or me.peer in parties):
            raise refuse(403, "Referenced source artifact not visible to caller")
        if peer not in parties:
            raise refuse(400, f"Claimant peer is not recognized on referenced {kind} artifact")
        if kind == SHARED and claim["observed_version"] > row["version"]:
            raise refuse(400, "observed_version exceeds stored shared version")


def _source(claim: Row, look: Look) -> Row:
    kind, source_id = claim["source_kind"], claim["source_id"]
    if not is_id(kind, source_id):
        raise refuse(400, f"Referenced source artifact is invalid: {source_id}")
    row = look(kind, source_id)
    if row is None:
        raise refuse(404, "Referenced source artifact not found")
    return row


def new_reconciliation(asked: Row, me: Me) -> Row:
    """A disagreement on record; who claims takes part, in the order they are named."""
    claimants = dict.fromkeys(claim["claimant_peer"] for claim in asked["claims"])
    return {
        "schema_type": "coordination_reconciliation_record",
        "schema_version": "1.0",
        "opened_by": me.peer,
        "owner_peer": me.peer,
        "participant_peers": [peer for peer in claimants if peer != me.peer],
        "task_id": asked["task_id"],
        "thread_id": asked["thread_id"],
        "title": asked["title"],
        "summary": asked["summary"],
        "classification": asked["classification"],
        "trigger": asked["trigger"],
        "claims": asked["claims"],
        "status": "open",
        "resolution_outcome": None,
        "resolution_summary": None,
        "resolved_at": None,
        "resolved_by": None,
        "version": 1,
        "last_updated_by": me.peer,
    }


def resolved(row: Row, asked: Row, me: Me, now: str) -> Row | None:
    """The record with its outcome; None when that was the outcome already. The first one wins."""
    if not (me.is_admin or me.peer == row["owner_peer"]):
        raise refuse(403, "Only the owner may resolve this reconciliation artifact")
    summary = asked["resolution_summary"]
    if summary is None:
        raise refuse(400, "resolution_summary is required for reconciliation resolve")
    _check_text("reconciliation", "resolution_summary", summary)
    _check_text("reconciliation", "commit_message", asked["commit_message"])
    if row["status"] == "resolved":
        if (row["resolution_outcome"], row["resolution_summary"]) == (asked["outcome"], summary):
            return None
        raise refuse(409, "Reconciliation has already been resolved")
    if asked["expected_version"] != row["version"]:
        raise refuse(409, "Reconciliation version conflict")
    return row | {
        "status": "resolved",
        "resolution_outcome": asked["outcome"],
        "resolution_summary": summary,
        "resolved_at": now,
        "resolved_by": me.peer,
        **_stepped(row, me, now),
    }


def check_reconciliation_query(asked: Row, me: Me) -> None:
    """At least one filter; who is no admin asks about themselves."""
    filters = (*_RECONCILIATION_FILTERS, "claimant_peer")
    if not any(asked[name] for name in filters):
        raise refuse(400, "At least one reconciliation query filter is required")
    named = [asked[name] for name in ("owner_peer", "claimant_peer") if asked[name]]
    if not me.is_admin and set(named) != {me.peer}:
        raise refuse(403, "Non-admin callers may query only their own reconciliation identity")


# ── words ────────────────────────────────────────────────────────────────────────────────────


def words_of(kind: str, row: Row) -> str:
    """The row in words, as recall finds it."""
    if kind == HANDOFF:
        held = row["shared_continuity"]
        parties = f"from {row['sender_peer']} to {row['recipient_peer']}"
        said = [
            f"handoff {parties}, {row['recipient_status']}",
            row["note"],
            *held["active_constraints"],
            *held["drift_signals"],
            row["recipient_reason"],
        ]
    elif kind == SHARED:
        texts = [text for name in _STATE for text in row["shared_state"][name]]
        said = [f"shared by {row['owner_peer']}: {row['title']}", row["summary"], *texts]
    else:
        claims = [f"{one['claimant_peer']}: {one['claim_summary']}" for one in row["claims"]]
        said = [
            f"reconciliation, {row['status']}: {row['title']}",
            row["summary"],
            *claims,
            row["resolution_summary"],
        ]
    return "\n".join(line for line in said if line)


# ── queries ──────────────────────────────────────────────────────────────────────────────────

_RECONCILIATION_FILTERS: Final = (
    "task_id",
    "thread_id",
    "owner_peer",
    "classification",
    "status",
)
_LABELLED: Final = {
    HANDOFF: ("recipient_peer", "sender_peer"),
    SHARED: ("task_id", "thread_id", "owner_peer", "participant_peer"),
    RECONCILIATION: ("claimant_peer", *_RECONCILIATION_FILTERS),
}
"""The filters of which a query names at least one: what is likely to leave the fewest first."""


def labels_of(kind: str, row: Row) -> tuple[str, ...]:
    """By what a row is found without looking at the others: each of its filters."""
    many = {
        "participant_peer": row.get("participant_peers", ()),
        "claimant_peer": [claim["claimant_peer"] for claim in row.get("claims", ())],
    }
    labels = [
        f"{name}/{value}"
        for name in _LABELLED[kind]
        for value in many.get(name, [row.get(name)])
        if value
    ]
    return tuple(dict.fromkeys(labels))


def label_meant(kind: str, asked: Row) -> str:
    """The label of every row that is meant, of the closest filter."""
    name = next(name for name in _LABELLED[kind] if asked[name])
    return f"{name}/{asked[name]}"


def is_handoff_meant(row: Row, asked: Row) -> bool:
    """Whether a handoff passes the filters."""
    return _equal(row, asked, ("recipient_peer", "sender_peer")) and asked["status"] in (
        None,
        row["recipient_status"],
    )


def is_shared_meant(row: Row, asked: Row) -> bool:
    """Whether shared state passes the filters."""
    peer = asked["participant_peer"]
    takes_part = not peer or peer in row["participant_peers"]
    return takes_part and _equal(row, asked, ("owner_peer", "task_id", "thread_id"))


def is_reconciliation_meant(row: Row, asked: Row) -> bool:
    """Whether a reconciliation passes the filters."""
    peer = asked["claimant_peer"]
    claims = not peer or any(claim["claimant_peer"] == peer for claim in row["claims"])
    return claims and _equal(row, asked, _RECONCILIATION_FILTERS)


def _equal(row: Row, asked: Row, names: Iterable[str]) -> bool:
    return all(not asked[name] or asked[name] == row[name] for name in names)


def page(rows: list[Row], asked: Row, name: str) -> Row:
    """The rows of one page, newest first, and how many there are."""
    shown = rows[asked["offset"] : asked["offset"] + asked["limit"]]
    counts = {"count": len(shown), "total_matches": len(rows)}
    return {"ok": True, **counts, "warnings": [], name: shown}


_TEXT_MAX: Final = {
    "title": limits.COORDINATION_TITLE_CHARS_MAX,
    "commit_message": limits.COORDINATION_TITLE_CHARS_MAX,
    "summary": limits.COORDINATION_NOTE_CHARS_MAX,
    "claim_summary": limits.COORDINATION_NOTE_CHARS_MAX,
    "resolution_summary": limits.COORDINATION_NOTE_CHARS_MAX,
}


def _check_text(family: str, name: str, text: str | None) -> None:
    """A text that is there has at least one character, and no more than its limit.

    A message is for a history that is not ours: an empty one is as good as none.
    """
    if text is None:
        return
    if not text and name != "commit_message":
        raise refuse(400, f"Value too short in coordination_{family}.{name}")
    if len(text) > _TEXT_MAX.get(name, limits.COORDINATION_TEXT_CHARS_MAX):
        raise refuse(400, f"Value too long in coordination_{family}.{name}")
