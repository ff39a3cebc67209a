"""Bearings for an agent: capsules, what was experienced, a graph, a schedule (000, context).

What is quoted beside the capsules comes from recall over the same scopes (`access.py`): what an
agent experienced there through `/v1` is found here. Without a subject it is the caller's own scope.
"""

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from api.cognirelay.access import need, own_scope
from api.cognirelay.continuity import (
    ACTIVE_MISSING,
    FALLBACK_MISSING,
    FALLBACK_USED,
    capsule_of,
    now_of,
    subject_of,
)
from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.graph import context_graph, suppressed_graph
from api.cognirelay.schedule import schedule_context
from api.cognirelay.translate import capsule as capsules
from api.cognirelay.translate import context
from api.cognirelay.translate.context import Loaded, Notes, Selected
from api.cognirelay.translate.times import said
from api.endpoint import Call, Endpoint, Reply
from api.errors import Refusal
from engine.recall import recall
from schemas import limits
from schemas.errors import Denied
from schemas.pack import Budgets, Evidence, LayerCaps, RecallRequest
from schemas.surfaces.cognirelay.context import RETRIEVE
from schemas.surfaces.cognirelay.schedule import Selector
from schemas.surfaces.document import Document

_OWNER_ONLY: Final = " (owner only)"
_SNIPPET_CHARS: Final = 280
_QUESTIONS: Final = 5
_CORE_ITEMS: Final = 8
_NOTES: Final = [
    "recent_relevant and core_memory are recalled from the scopes of the subjects.",
    "include_types leaves only events of these modalities.",
]

Asked = Mapping[str, Any]


def _retrieve(call: Call) -> Reply:
    need(call, "search")
    asked, now = RETRIEVE.filled(call.body), now_of(call)
    state, shown = _continuity(call, asked, now)
    core, recent = _recalled(call, asked, shown, now)
    bundle = {
        "task": asked["task"],
        "generated_at": said(now),
        "core_memory": core,
        "recent_relevant": recent,
        "open_questions": [one["snippet"] for one in recent if "?" in one["snippet"]][:_QUESTIONS],
        "token_budget_hint": asked["max_tokens_estimate"],
        "time_window_days": asked["time_window_days"],
        "notes": _NOTES,
        "continuity_state": state,
        "graph_context": _graph(call, asked),
    }
    about = _named(asked)
    if about:
        subjects = [Selector(subject_kind=kind, subject_id=name) for kind, name in about]
        bundle["schedule_context"] = schedule_context(call, subjects)
    return Reply({"ok": True, "bundle": bundle})


def _named(asked: Asked) -> list[tuple[str, str]]:
    """The subjects a request names, its own first."""
    selectors = [(one["subject_kind"], one["subject_id"]) for one in asked["continuity_selectors"]]
    if asked["subject_kind"] and asked["subject_id"]:
        selectors.insert(0, (asked["subject_kind"], asked["subject_id"]))
    return selectors


def _graph(call: Call, asked: Asked) -> dict[str, Any]:
    """The graph of the first subject that has one, else of the first subject."""
    if asked["continuity_mode"] == "off":
        return suppressed_graph()
    named = _named(asked)
    anchors = [one for one in named if one[0] in ("thread", "task")]
    kind, name = next(iter(anchors or named), (None, None))
    return context_graph(call, kind, name)


# ── capsules ─────────────────────────────────────────────────────────────────────────────────


def _continuity(call: Call, asked: Asked, now: datetime) -> tuple[dict[str, Any], list[Document]]:
    """What is said of capsules, and the documents they come from."""
    state = context.empty_state(asked["max_tokens_estimate"])
    if asked["continuity_mode"] == "off":
        return state, []
    selected, requested, beyond = context.selection(asked)
    notes = Notes(is_multi=bool(asked["continuity_selectors"]))
    notes.omitted += beyond
    loaded, rows = _load(call, asked, selected, notes)
    sound = context.healthy_enough(loaded, asked["continuity_verification_policy"], notes)
    kept: list[tuple[Loaded, dict[str, Any]]] = []
    if sound:
        ordered = context.by_salience(sound, now)
        kept = context.fitted(ordered, asked["max_tokens_estimate"], notes, now)
    if not kept and asked["continuity_mode"] == "required":
        raise refuse(404, "Continuity capsule not found")
    state |= {
        "requested_selectors": requested,
        "omitted_selectors": notes.omitted,
        "warnings": notes.warnings,
        "fallback_used": notes.fallback_used,
        "recovery_warnings": notes.recovery,
    }
    return (context.whole_state(state, kept, now) if kept else state), rows


def _load(
    call: Call, asked: Asked, selected: Iterable[Selected], notes: Notes
) -> tuple[list[Loaded], list[Document]]:
    loaded, rows = list[Loaded](), list[Document]()
    is_strict = asked["continuity_resilience_policy"] == "require_active"
    for one in selected:
        subject = subject_of({"subject_kind": one.kind, "subject_id": one.subject_id})
        try:
            row = capsule_of(call, subject)
        except Denied:
            notes.recovery.append(notes.of(one, ACTIVE_MISSING) + _OWNER_ONLY)
            notes.omitted.append(one.label)
            continue
        capsule, source = capsules.active(row), "active"
        if capsule is None:
            notes.recover(one, ACTIVE_MISSING)
            capsule, source = None if is_strict else capsules.fallback(row), "fallback"
            if not is_strict:
                notes.recover(one, FALLBACK_MISSING if capsule is None else FALLBACK_USED)
        if capsule is None or row is None:
            notes.omitted.append(one.label)
            continue
        notes.fallback_used |= source == "fallback"
        found = Loaded(one, capsule, source)
        if context.is_fresh(found, notes, now_of(call)):
            loaded.append(found)
            rows.append(row)
    return loaded, rows


# ── what was experienced ─────────────────────────────────────────────────────────────────────


def _recalled(
    call: Call, asked: Asked, shown: Iterable[Document], now: datetime
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What is known and what was experienced where the subjects live, best first."""
    seen = {row.event_id for row in shown}
    since = now - timedelta(days=asked["time_window_days"])
    core, recent = list[tuple[float, dict[str, Any]]](), list[tuple[float, dict[str, Any]]]()
    for scope in _scopes(call, asked):
        for one, kind in _evidence(call, asked, scope):
            row = _row(one, scope)
            if one.layer != "events":
                core.append((one.score, row))
            elif one.id not in seen and one.when >= since:
                recent.append((one.score, row | {"type": kind, "score": round(one.score, 4)}))
    wanted = set(asked["include_types"])
    quoted = [row for row in _best(recent) if not wanted or row["type"] in wanted]
    return _best(core)[:_CORE_ITEMS], quoted[: asked["limit"]]


def _scopes(call: Call, asked: Asked) -> list[str]:
    """Where the subjects live; a name that is no subject's lives nowhere."""
    named = _named(asked)
    if not named and asked["continuity_mode"] != "off":
        named = [(one.kind, one.subject_id) for one in context.selection(asked)[0]]
    scopes: dict[str, None] = {}
    for kind, name in named:
        with contextlib.suppress(Refusal):
            scopes[subject_of({"subject_kind": kind, "subject_id": name}).scope] = None
    return list(scopes) or [own_scope(call.caller)]


def _evidence(call: Call, asked: Asked, scope: str) -> list[tuple[Evidence, str]]:
    """What recall finds for the task in a scope, each with its modality; none where it may not."""
    caps = LayerCaps(
        events=min(2 * asked["limit"], limits.PACK_LAYER_ITEMS_MAX), understanding=_CORE_ITEMS
    )
    request = RecallRequest(
        scope=scope,
        view="local",
        query=asked["task"].strip()[: limits.QUERY_CHARS_MAX] or None,
        budgets=Budgets(per_layer_limits=caps),
        citation_mode="structured_only",
    )
    try:
        kept = recall(call.engine, call.caller, request).kept
    except Denied:
        return []
    kinds = {item["id"]: str(item.get("modality", "")) for item in kept.pack().layers.events}
    return [(one, kinds.get(one.id, "")) for one in kept.proof()]


def _row(one: Evidence, scope: str) -> dict[str, Any]:
    line = " ".join(one.text.split())
    snippet = line[:_SNIPPET_CHARS] + ("..." if len(line) > _SNIPPET_CHARS else "")
    path = f"/v1/{one.layer}/{one.id}"
    return {"path": path, "type": one.layer, "snippet": snippet, "scope": scope}


def _best(rows: list[tuple[float, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/context/retrieve",
        _retrieve,
        "Capsules, and what else an agent needs to go on with a task.",
        capability="scope.read.local",
        body=Any,
        shape=RETRIEVE,
        dialect=DIALECT,
        is_read=True,
        off_loop=True,
    ),
)
