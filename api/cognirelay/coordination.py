"""/v1/coordination: what do agents hand to each other?  (000, coordination)

Handoffs lie in the scope of their subject, the rest in that of its thread or task, else of its
owner; who may see one is decided by the peers it names, after policy has had its say.
"""

from collections.abc import Callable
from typing import Any, Final

from api.cognirelay.access import SURFACE, is_admin, need, peer_of
from api.cognirelay.continuity import subject_of
from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.homes import commit_of, home_of
from api.cognirelay.translate import coordination as translate
from api.cognirelay.translate.capsule import CAPSULE_KIND, active
from api.cognirelay.translate.coordination import (
    HANDOFF,
    RECONCILIATION,
    SHARED,
    Look,
    Me,
    Row,
)
from api.cognirelay.translate.schedule import stamp
from api.endpoint import Call, Endpoint, Handler, Reply
from engine.surface import (
    Address,
    Change,
    Changed,
    Held,
    Outcome,
    Shelf,
    Write,
    change_documents,
    list_documents,
    read_document,
)
from schemas.ids import uuid7
from schemas.surfaces.cognirelay import coordination as shapes
from schemas.surfaces.document import Document
from schemas.surfaces.shapes import Shape, Table

_READ: Final = "read:files"
_WRITE: Final = "write:projects"
_PREFIXES: Final = {HANDOFF: "handoff", SHARED: "shared", RECONCILIATION: "recon"}
_ID_NAMES: Final = {
    HANDOFF: "handoff_id",
    SHARED: "shared_id",
    RECONCILIATION: "reconciliation_id",
}

Making = Callable[[Held], Row]
"""A new row, without id and times; it may refuse."""
Stepping = Callable[[Row, str], Row | None]
"""A row and the time to the row that follows; None when nothing changes. It may refuse."""


# ── handoffs ─────────────────────────────────────────────────────────────────────────────────


async def _create_handoff(call: Call) -> Reply:
    need(call, _WRITE)
    asked, me = shapes.CREATE_HANDOFF.filled(call.body), _me(call)
    subject = subject_of(asked)

    def make(held: Held) -> Row:
        translate.check_peer(_look(held), asked["recipient_peer"])
        translate.check_handoff(asked)
        capsule = active(held.get(CAPSULE_KIND, subject.key))
        if capsule is None:
            raise refuse(404, "Continuity capsule not found")
        return translate.new_handoff(asked, capsule, subject.path, me)

    return await _made(call, HANDOFF, subject.scope, make)


async def _consume_handoff(call: Call) -> Reply:
    asked, me = shapes.CONSUME_HANDOFF.filled(call.body), _me(call)
    translate.check_id(HANDOFF, call.path["handoff_id"])
    return await _stepped(call, HANDOFF, lambda row, now: translate.consumed(row, asked, me, now))


def _read_handoff(call: Call) -> Reply:
    return _shown(call, HANDOFF)


def _query_handoffs(call: Call) -> Reply:
    need(call, _READ)
    asked, me = shapes.QUERY_HANDOFFS.filled(call.query), _me(call)
    translate.check_handoff_query(asked, me)
    rows = [row.value for row in _rows(call, HANDOFF, asked)]
    rows.sort(key=lambda row: str(row["handoff_id"]), reverse=True)
    meant = [row for row in rows if translate.is_handoff_meant(row, asked)]
    return Reply(translate.page(meant, asked, "handoffs"))


# ── shared state ─────────────────────────────────────────────────────────────────────────────


async def _create_shared(call: Call) -> Reply:
    need(call, _WRITE)
    # Left out, the list is as empty as `[]`, which is said to be too short.
    body = shapes.CREATE_SHARED.parse({"participant_peers": []} | call.body)
    asked, me = shapes.CREATE_SHARED.filled(body), _me(call)

    def make(held: Held) -> Row:
        translate.check_participants(asked, me, _look(held))
        translate.check_state(asked)
        return translate.new_shared(asked, me)

    return await _made(call, SHARED, home_of(asked, me.peer), make)


async def _update_shared(call: Call) -> Reply:
    need(call, _WRITE)
    asked, me = shapes.UPDATE_SHARED.filled(call.body), _me(call)
    translate.check_id(SHARED, call.path["shared_id"])
    return await _stepped(
        call, SHARED, lambda row, now: translate.updated_shared(row, asked, me, now)
    )


def _read_shared(call: Call) -> Reply:
    return _shown(call, SHARED)


def _query_shared(call: Call) -> Reply:
    need(call, _READ)
    asked, me = shapes.QUERY_SHARED.filled(call.query), _me(call)
    translate.check_shared_query(asked, me)
    meant = [row for row in _newest(call, SHARED, asked) if translate.is_shared_meant(row, asked)]
    return Reply(translate.page(meant, asked, "shared_artifacts"))


# ── reconciliations ──────────────────────────────────────────────────────────────────────────


async def _open_reconciliation(call: Call) -> Reply:
    need(call, _WRITE)
    asked, me = shapes.OPEN_RECONCILIATION.filled(call.body), _me(call)
    translate.check_reconciliation(asked)

    def make(held: Held) -> Row:
        translate.check_sources(asked["claims"], me, _look(held))
        return translate.new_reconciliation(asked, me)

    return await _made(call, RECONCILIATION, home_of(asked, me.peer), make)


async def _resolve_reconciliation(call: Call) -> Reply:
    need(call, _WRITE)
    asked, me = shapes.RESOLVE_RECONCILIATION.filled(call.body), _me(call)
    translate.check_id(RECONCILIATION, call.path["reconciliation_id"])
    return await _stepped(
        call, RECONCILIATION, lambda row, now: translate.resolved(row, asked, me, now)
    )


def _read_reconciliation(call: Call) -> Reply:
    return _shown(call, RECONCILIATION)


def _query_reconciliations(call: Call) -> Reply:
    need(call, _READ)
    asked, me = shapes.QUERY_RECONCILIATIONS.filled(call.query), _me(call)
    translate.check_reconciliation_query(asked, me)
    rows = _newest(call, RECONCILIATION, asked)
    meant = [row for row in rows if translate.is_reconciliation_meant(row, asked)]
    return Reply(translate.page(meant, asked, "reconciliations"))


# ── documents ────────────────────────────────────────────────────────────────────────────────


async def _made(call: Call, kind: str, home: str, make: Making) -> Reply:
    """A new row under a new id, decided where nobody else writes."""
    clock = call.engine.clock
    artifact_id = f"{_PREFIXES[kind]}_{uuid7(clock.now_us(), clock.entropy()).hex()}"

    def decide(held: Held) -> Outcome:
        now = stamp(int(held.now.timestamp()))
        made = make(held)
        times = {"created_at": now} if kind == HANDOFF else {"created_at": now, "updated_at": now}
        row = {_ID_NAMES[kind]: artifact_id, **times, **made}
        return Outcome(answer=row, writes=[_write(kind, row, home)])

    changed = await _changed(call, home, decide)
    return Reply(_told(kind, changed.answer) | {"created": True, **commit_of(changed)})


async def _stepped(call: Call, kind: str, step: Stepping) -> Reply:
    """The row after one step."""
    artifact_id = call.path[_ID_NAMES[kind]]
    seen = _read(call, kind, artifact_id)
    home = "" if seen is None else seen.scope

    def decide(held: Held) -> Outcome:
        before = translate.found(kind, _look(held)(kind, artifact_id))
        after = step(before, stamp(int(held.now.timestamp())))
        row = after or before
        writes = [] if after is None else [_write(kind, row, home)]
        return Outcome(answer=(row, after is not None), writes=writes)

    translate.found(kind, None if seen is None else seen.value)
    changed = await _changed(call, home, decide)
    row, is_new = changed.answer
    warnings: Row = {"warnings": []} if kind == SHARED else {}
    return Reply(_told(kind, row) | {"updated": is_new, **commit_of(changed, seen), **warnings})


def _shown(call: Call, kind: str) -> Reply:
    artifact_id = call.path[_ID_NAMES[kind]]
    if kind != HANDOFF:
        translate.check_id(kind, artifact_id)
    seen = _read(call, kind, artifact_id)
    row = translate.found(kind, None if seen is None else seen.value)
    return Reply(_told(kind, translate.visible(kind, row, _me(call))))


def _told(kind: str, row: Row) -> Row:
    return {"ok": True, kind: row, "path": translate.path_of(kind, row[_ID_NAMES[kind]])}


def _me(call: Call) -> Me:
    return Me(peer_of(call.caller), is_admin(call))


def _look(held: Held) -> Look:
    def look(kind: str, key: str) -> Row | None:
        row = held.get(kind, key)
        return None if row is None else row.value

    return look


def _read(call: Call, kind: str, key: str) -> Document | None:
    return read_document(call.engine, call.caller, Address(surface=SURFACE, kind=kind, key=key))


def _rows(call: Call, kind: str, asked: Row) -> list[Document]:
    shelf = Shelf(surface=SURFACE, kind=kind, labels=(translate.label_meant(kind, asked),))
    return list_documents(call.engine, call.caller, shelf)


def _newest(call: Call, kind: str, asked: Row) -> list[Row]:
    """The rows that changed last come first."""
    rows = sorted(_rows(call, kind, asked), key=lambda row: row.offset, reverse=True)
    return [row.value for row in rows]


async def _changed(call: Call, home: str, decide: Callable[[Held], Outcome]) -> Changed:
    change = Change(surface=SURFACE, scopes=(home,), decide=decide)
    return await change_documents(call.engine, call.caller, change)


def _write(kind: str, row: Row, home: str) -> Write:
    return Write(
        kind=kind,
        key=row[_ID_NAMES[kind]],
        scope=home,
        words=translate.words_of(kind, row),
        value=row,
        labels=translate.labels_of(kind, row),
    )


# ── routes ───────────────────────────────────────────────────────────────────────────────────

_PATH: Final = "/v1/coordination"


def _post(path: str, handler: Handler, summary: str, shape: Shape) -> Endpoint:
    capability, place = "scope.write", _PATH + path
    return Endpoint(
        "POST", place, handler, summary, capability, body=Any, shape=shape, dialect=DIALECT
    )


def _get(path: str, handler: Handler, summary: str, shape: Shape | None = None) -> Endpoint:
    capability, place = "scope.read.local", _PATH + path
    asked = shape or Table()
    return Endpoint("GET", place, handler, summary, capability, query_shape=asked, dialect=DIALECT)


ENDPOINTS = (
    _post("/handoff/create", _create_handoff, "Hand a subject over.", shapes.CREATE_HANDOFF),
    _get("/handoff/{handoff_id}", _read_handoff, "A handoff."),
    _get(
        "/handoffs/query",
        _query_handoffs,
        "Handoffs of a sender or recipient.",
        shapes.QUERY_HANDOFFS,
    ),
    _post(
        "/handoff/{handoff_id}/consume",
        _consume_handoff,
        "The recipient's answer to a handoff.",
        shapes.CONSUME_HANDOFF,
    ),
    _post("/shared/create", _create_shared, "Share state with peers.", shapes.CREATE_SHARED),
    _get("/shared/query", _query_shared, "Shared state, filtered.", shapes.QUERY_SHARED),
    _get("/shared/{shared_id}", _read_shared, "Shared state."),
    _post(
        "/shared/{shared_id}/update",
        _update_shared,
        "The next version of shared state.",
        shapes.UPDATE_SHARED,
    ),
    _post(
        "/reconciliation/open",
        _open_reconciliation,
        "Put a disagreement on record.",
        shapes.OPEN_RECONCILIATION,
    ),
    _get("/reconciliation/{reconciliation_id}", _read_reconciliation, "A reconciliation."),
    _get(
        "/reconciliations/query",
        _query_reconciliations,
        "Reconciliations, filtered.",
        shapes.QUERY_RECONCILIATIONS,
    ),
    _post(
        "/reconciliation/{reconciliation_id}/resolve",
        _resolve_reconciliation,
        "Say how a disagreement ended; the first to say so wins.",
        shapes.RESOLVE_RECONCILIATION,
    ),
)
