"""Capsules: what an agent must know to go on after a reset (000, continuity)."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from api.cognirelay.access import SURFACE, need, scope_of, slug
from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.graph import startup_graph
from api.cognirelay.homes import FOLDER, commit_of
from api.cognirelay.schedule import schedule_context
from api.cognirelay.translate import capsule as capsules
from api.cognirelay.translate import listing, trust, verify
from api.cognirelay.translate.listing import Listed
from api.cognirelay.translate.rules import Capsule, canonical
from api.cognirelay.translate.times import compact, second, utc
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
from schemas.surfaces.cognirelay import capsule as shapes
from schemas.surfaces.cognirelay.schedule import Selector
from schemas.surfaces.document import CURRENT, Document
from schemas.surfaces.shapes import Shape
from schemas.times import from_us

ARCHIVE: Final = "archive"
"""The kind of document that holds one archived capsule; its key is its path."""
COLD: Final = "cold"
ACTIVE_MISSING: Final = "continuity_active_missing"
FALLBACK_USED: Final = "continuity_fallback_used"
FALLBACK_MISSING: Final = "continuity_fallback_missing"
_AS_GIVEN: Final = ("capsule", "session_end_snapshot")
_NOT_FOUND: Final = "Continuity capsule not found"

Asked = Mapping[str, Any]


class Subject(NamedTuple):
    """Whose capsule is meant: its key, its scope, and where the original would keep it."""

    key: str
    scope: str

    @property
    def path(self) -> str:
        """The file of the active capsule."""
        return f"{FOLDER}/{self.key}.json"

    @property
    def fallback_path(self) -> str:
        """The file of its fallback."""
        return f"{FOLDER}/fallback/{self.key}.json"


def subject_of(asked: Asked) -> Subject:
    """The subject of a request."""
    kind, name = asked["subject_kind"], slug(asked["subject_id"])
    return Subject(f"{kind}-{name}", scope_of(kind, name))


def now_of(call: Call) -> datetime:
    """The one moment of a request."""
    return from_us(call.engine.clock.now_us())


def capsule_of(call: Call, subject: Subject, as_of: datetime | None = None) -> Document | None:
    """The document of a subject's capsule, in whatever state."""
    address = Address(
        surface=SURFACE,
        kind=capsules.CAPSULE_KIND,
        key=subject.key,
        scope=subject.scope,
        as_of=as_of,
    )
    return read_document(call.engine, call.caller, address)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


async def _change(call: Call, subject: Subject, decide: Callable[[Held], Outcome]) -> Changed:
    change = Change(surface=SURFACE, scopes=(subject.scope,), decide=decide)
    return await change_documents(call.engine, call.caller, change)


def _stored(held: Held, subject: Subject) -> Capsule | None:
    """The active capsule as it was written."""
    row = held.get(capsules.CAPSULE_KIND, subject.key)
    is_active = row is not None and row.state in (CURRENT, capsules.BARE)
    return row.value if row is not None and is_active else None


def _written(subject: Subject, capsule: Capsule) -> Write:
    return Write(
        kind=capsules.CAPSULE_KIND,
        key=subject.key,
        scope=subject.scope,
        words=capsules.words_of(capsule),
        value=capsule,
        labels=listing.labels_of(capsule),
    )


def _durable(call: Call, changed: Changed, subject: Subject) -> dict[str, Any]:
    """What every answer to a write ends with."""
    seen = None if changed.documents else capsule_of(call, subject)
    return {"durable": True, **commit_of(changed, seen), "warnings": [], "recovery_warnings": []}


def _sha256(capsule: Capsule) -> str:
    return sha256(canonical(capsule).encode()).hexdigest()


async def _upsert(call: Call) -> Reply:
    need(call, "write:projects")
    # What is absent from a capsule or a snapshot means something: they are taken as they came.
    asked = shapes.UPSERT.filled({k: v for k, v in call.body.items() if k not in _AS_GIVEN})
    asked |= {name: call.body.get(name) for name in _AS_GIVEN}
    given = capsules.check_request(asked)
    subject = subject_of(asked)

    def decide(held: Held) -> Outcome:
        stored = _stored(held, subject)
        capsule, done = capsules.upserted(asked, given, stored)
        # Python calls 1 and True equal, JSON does not.
        is_same = stored == capsule and canonical(stored) == canonical(capsule)
        if stored is not None and not is_same:
            capsules.check_conflict(capsule["updated_at"], stored)
        answer = (capsule, done, stored is None, stored is not None and not is_same)
        return Outcome(answer=answer, writes=() if is_same else [_written(subject, capsule)])

    changed = await _change(call, subject, decide)
    capsule, done, created, updated = changed.answer
    answer = {
        "ok": True,
        "path": subject.path,
        "created": created,
        "updated": updated,
        **_durable(call, changed, subject),
        "capsule_sha256": _sha256(capsule),
        "normalizations_applied": done,
        "fallback_warning_detail": None,
    }
    if asked["session_end_snapshot"] is not None:
        answer["session_end_snapshot_applied"] = True
        answer["resume_quality"] = {"adequate": capsules.is_adequate(capsule)}
    if "thread_descriptor" in capsule:
        answer["lifecycle"] = capsule["thread_descriptor"]["lifecycle"]
    return Reply(answer)


async def _patch(call: Call) -> Reply:
    need(call, "write:projects")
    asked, subject = call.body, subject_of(call.body)
    capsules.check_operations(asked["operations"])

    def decide(held: Held) -> Outcome:
        capsule, done = capsules.patched(asked, _stored(held, subject))
        return Outcome(answer=(capsule, done), writes=[_written(subject, capsule)])

    changed = await _change(call, subject, decide)
    capsule, done = changed.answer
    return Reply(
        {
            "ok": True,
            "path": subject.path,
            "updated": True,
            **_durable(call, changed, subject),
            "capsule_sha256": _sha256(capsule),
            "operations_applied": len(asked["operations"]),
            "normalizations_applied": done,
        }
    )


async def _lifecycle(call: Call) -> Reply:
    need(call, "write:projects")
    asked = shapes.LIFECYCLE.filled(call.body)
    capsules.check_lifecycle(asked)
    subject = subject_of(asked)

    def decide(held: Held) -> Outcome:
        capsule, before = capsules.moved(asked, _stored(held, subject))
        return Outcome(answer=(capsule, before), writes=[_written(subject, capsule)])

    changed = await _change(call, subject, decide)
    capsule, before = changed.answer
    return Reply(
        {
            "ok": True,
            "path": subject.path,
            "lifecycle": capsule["thread_descriptor"]["lifecycle"],
            "previous_lifecycle": before,
            **_durable(call, changed, subject),
            "capsule_sha256": _sha256(capsule),
        }
    )


async def _revalidate(call: Call) -> Reply:
    need(call, "write:projects")
    asked = shapes.REVALIDATE.filled(call.body)
    asked["candidate_capsule"] = call.body.get("candidate_capsule")
    candidate = verify.check_revalidation(asked)
    subject = subject_of(asked)

    def decide(held: Held) -> Outcome:
        stored, now = _stored(held, subject), second(held.now)
        answer = verify.revalidated(asked, stored, candidate, now)
        return Outcome(answer=answer, writes=[_written(subject, answer[0])])

    changed = await _change(call, subject, decide)
    capsule, outcome, is_changed = changed.answer
    return Reply(
        {
            "ok": True,
            "path": subject.path,
            "outcome": outcome,
            "updated": is_changed,
            "verification_state": capsule["verification_state"],
            "capsule_health": capsule["capsule_health"],
            **_durable(call, changed, subject),
            "fallback_warning_detail": None,
        }
    )


async def _archive(call: Call) -> Reply:
    need(call, "write:projects")
    asked, subject = call.body, subject_of(call.body)

    def decide(held: Held) -> Outcome:
        row = held.get(capsules.CAPSULE_KIND, subject.key)
        stored = capsules.active(row)
        if row is None or stored is None:
            raise refuse(404, _NOT_FOUND)
        path = f"{FOLDER}/archive/{subject.key}-{compact(held.now)}.json"
        words = f"{subject.key} was archived: {asked['reason']}"
        kept = {
            "archived_at": second(held.now),
            "archived_by": call.caller.actor.partition(":")[2],
            "reason": asked["reason"],
            "active_path": subject.path,
            "capsule": stored,
        }
        left = capsules.GONE if row.state == capsules.BARE else capsules.ARCHIVED
        writes = [
            _left(subject, row, left, words),
            Write(
                kind=ARCHIVE,
                key=path,
                scope=subject.scope,
                words=words,
                value=kept,
                state=capsules.ARCHIVED,
                labels=(subject.path, *listing.labels_of(stored)),
            ),
        ]
        return Outcome(answer=path, writes=writes)

    changed = await _change(call, subject, decide)
    durable = _durable(call, changed, subject)
    del durable["recovery_warnings"]
    answer = {"ok": True, "archived_path": changed.answer, "removed_active_path": subject.path}
    return Reply(answer | durable)


def _left(subject: Subject, row: Document, state: str, words: str) -> Write:
    """What is left of a subject's capsule when it no longer stands."""
    return Write(
        kind=capsules.CAPSULE_KIND,
        key=subject.key,
        scope=subject.scope,
        words=words,
        value=None if state == capsules.GONE else row.value,
        state=state,
        labels=() if state == capsules.GONE else row.labels,
    )


async def _delete(call: Call) -> Reply:
    need(call, "write:projects")
    asked, subject = shapes.DELETE.filled(call.body), subject_of(call.body)
    words = f"{subject.key} was deleted: {asked['reason']}"

    def decide(held: Held) -> Outcome:
        row = held.get(capsules.CAPSULE_KIND, subject.key)
        is_active, is_backed = capsules.active(row) is not None, capsules.fallback(row) is not None
        parts = [
            (asked["delete_active"], is_active, subject.path),
            (asked["delete_fallback"], is_backed, subject.fallback_path),
        ]
        gone = [path for is_meant, is_there, path in parts if is_meant and is_there]
        missing = [path for is_meant, is_there, path in parts if is_meant and not is_there]
        writes = []
        if gone and row is not None:
            is_active = is_active and not asked["delete_active"]
            is_backed = is_backed and not asked["delete_fallback"]
            writes.append(_kept(subject, row, words, is_active=is_active, is_backed=is_backed))
        archives = _archives(held, subject) if asked["delete_archive"] else []
        for archive in sorted(archives, key=lambda one: one.key):
            gone.append(archive.key)
            writes.append(_dropped(archive, words))
        return Outcome(answer=(gone, missing), writes=writes)

    changed = await _change(call, subject, decide)
    gone, missing = changed.answer
    durable = _durable(call, changed, subject)
    del durable["recovery_warnings"]
    return Reply({"ok": True, "deleted_paths": gone, "missing_paths": missing} | durable)


def _kept(
    subject: Subject, row: Document, words: str, *, is_active: bool, is_backed: bool
) -> Write:
    """A subject's capsule after one of its two parts was deleted."""
    if is_active:
        state = CURRENT if is_backed else capsules.BARE
        return Write(
            kind=capsules.CAPSULE_KIND,
            key=subject.key,
            scope=subject.scope,
            words=capsules.words_of(row.value),
            value=row.value,
            state=state,
            labels=row.labels,
        )
    return _left(subject, row, capsules.DELETED if is_backed else capsules.GONE, words)


def _archives(held: Held, subject: Subject) -> list[Document]:
    """The archived capsules of a subject that are still at hand."""
    rows = held.labelled(ARCHIVE, subject.path)
    return [row for row in rows if row.state == capsules.ARCHIVED]


def _dropped(archive: Document, words: str) -> Write:
    return Write(
        kind=ARCHIVE, key=archive.key, scope=archive.scope, words=words, state=capsules.GONE
    )


# ── reading ──────────────────────────────────────────────────────────────────────────────────


async def _read(call: Call) -> Reply:
    need(call, "read:files")
    asked, subject = shapes.READ.filled(call.body), subject_of(call.body)
    as_of = None if asked["as_of"] is None else utc(asked["as_of"], "as_of")
    now = now_of(call) if as_of is None else as_of
    answer = found(capsule_of(call, subject, as_of), subject, now, asked["allow_fallback"])
    if answer is None:
        raise refuse(404, _NOT_FOUND)
    if asked["view"] == "startup":
        answer["startup_summary"] = trust.startup_summary(answer)
        # Tasks and the schedule are looked through whole: that is not for the loop.
        answer |= await asyncio.to_thread(_bearings, call, asked)
    return Reply(answer)


def _bearings(call: Call, asked: Asked) -> dict[str, Any]:
    """What an agent that starts is told besides its capsule."""
    kind, name = asked["subject_kind"], asked["subject_id"]
    about = [Selector(subject_kind=kind, subject_id=name)]
    return {
        "graph_summary": startup_graph(call, kind, name),
        "schedule_context": schedule_context(call, about),
    }


def found(
    row: Document | None,
    subject: Subject,
    now: datetime,
    is_lenient: bool,
) -> dict[str, Any] | None:
    """What a read answers; None when there is no capsule and nothing else will do."""
    warnings: list[str] = []
    capsule, source = capsules.active(row), "active"
    if capsule is None:
        if not is_lenient:
            return None
        capsule, source = capsules.fallback(row), "fallback"
        warnings = [ACTIVE_MISSING, FALLBACK_MISSING if capsule is None else FALLBACK_USED]
    signals = None
    if capsule is None:
        source = "missing"
    else:
        signals = trust.trust_signals(capsule, now, source)
        heir = trust.superseded_warning(capsule)
        warnings += [] if heir is None else [heir]
    return {
        "ok": True,
        "path": subject.path,
        "capsule": capsule,
        "archived": False,
        "source_state": source,
        "recovery_warnings": warnings,
        "trust_signals": signals,
    }


def _compare(call: Call) -> Reply:
    need(call, "read:files")
    verify.check_signals(call.body["signals"])
    candidate = verify.candidate_of(call.body)
    subject = subject_of(call.body)
    stored = capsules.active(capsule_of(call, subject))
    if stored is None:
        raise refuse(404, _NOT_FOUND)
    changed, signal = (
        verify.changed_fields(stored, candidate),
        verify.strongest(call.body["signals"]),
    )
    return Reply(
        {
            "ok": True,
            "path": subject.path,
            "identical": not changed,
            "changed_fields": changed,
            "strongest_signal": signal,
            "recommended_outcome": verify.recommended(changed, signal),
        }
    )


def _list(call: Call) -> Reply:
    need(call, "read:files")
    asked, now = shapes.LIST.filled(call.body), now_of(call)
    found: list[Listed] = []
    for document in _shelf(call, capsules.CAPSULE_KIND, asked):
        if document.state in (CURRENT, capsules.BARE):
            path = f"{FOLDER}/{document.key}.json"
            found.append(Listed(path, "active", document.value, document))
        if asked["include_fallback"] and document.state not in (capsules.BARE, capsules.GONE):
            spare = f"{FOLDER}/fallback/{document.key}.json"
            found.append(Listed(spare, "fallback", document.value, document))
    if asked["include_archived"] or asked["include_cold"]:
        found += _archived(call, asked)
    stale_days = call.engine.settings.continuity_retention_archive_days
    return Reply(listing.listed(found, asked, now, lambda one: _row(one, now, stale_days)))


def _shelf(call: Call, kind: str, asked: Asked) -> list[Document]:
    shelf = Shelf(surface=SURFACE, kind=kind, labels=listing.labels_meant(asked))
    return list_documents(call.engine, call.caller, shelf)


def _archived(call: Call, asked: Asked) -> Iterator[Listed]:
    for document in _shelf(call, ARCHIVE, asked):
        kept = document.value
        if document.state == capsules.ARCHIVED and asked["include_archived"]:
            yield Listed(kept["active_path"], "archived", kept["capsule"], document)
        elif document.state == COLD and asked["include_cold"]:
            yield Listed(cold_paths(document.key)[1], "cold", kept["capsule"], document)


def _row(one: Listed, now: datetime, stale_days: int) -> listing.Row:
    """A capsule as a listing shows it; one that is no longer active tells where it is."""
    if one.state == "cold":
        return _cold_row(one.document)
    is_kept = one.state == "archived"
    row = listing.summary_row(capsules.plain_times(one.capsule), one.path, one.state, now)
    if not is_kept:
        return row
    archived_at = one.document.value["archived_at"]
    row["retention_class"] = listing.retention_class(archived_at, now, stale_days)
    return row | {"archive_path": one.document.key, "archived_at": archived_at}


# ── cold storage ─────────────────────────────────────────────────────────────────────────────


def cold_paths(archive_path: str) -> tuple[str, str]:
    """Where the original would keep a cold capsule, and the stub that finds it."""
    name = archive_path.rpartition("/")[2]
    stub = f"{FOLDER}/cold/index/{name.removesuffix('.json')}.md"
    return f"{FOLDER}/cold/{name}.gz", stub


def _cold_row(document: Document) -> listing.Row:
    kept, (cold_path, stub) = document.value, cold_paths(document.key)
    said = kept["stub"]
    return {
        "subject_kind": kept["capsule"]["subject_kind"],
        "subject_id": kept["capsule"]["subject_id"],
        "path": stub,
        "source_archive_path": document.key,
        "updated_at": None,
        "verified_at": None,
        **said,
        "health_reasons": [],
        "artifact_state": "cold",
        "retention_class": "cold",
        "cold_stub_path": stub,
        "cold_storage_path": cold_path,
        "archived_at": kept["archived_at"],
        "cold_stored_at": kept["cold_stored_at"],
        "stable_preference_count": None,
        "rationale_entry_count": None,
        "thread_descriptor": None,
    }


def cold_stored(held: Held, archive_path: str) -> Outcome:
    """Put an archived capsule away: a listing shows its stub, and only to who asks for it."""
    if not archive_path.startswith(f"{FOLDER}/archive/") or not archive_path.endswith(".json"):
        raise refuse(400, f"source_archive_path must be under {FOLDER}/archive/")
    row = held.get(ARCHIVE, archive_path)
    if row is not None and row.state == COLD:
        return Outcome(answer=row.value["cold_stored_at"])
    if row is None or row.state != capsules.ARCHIVED:
        raise refuse(404, "Continuity archive envelope not found")
    capsule, now = row.value["capsule"], second(held.now)
    stub = {
        "verification_kind": capsule.get("verification_kind"),
        "freshness_class": capsule.get("freshness", {}).get("freshness_class"),
        "phase": trust.phase_of(capsule, held.now),
        "verification_status": trust.verification_of(capsule),
        "health_status": trust.health_of(capsule)[0],
    }
    value = row.value | {"stub": stub, "cold_stored_at": now}
    words = f"{archive_path} was put into cold storage"
    write = Write(
        kind=ARCHIVE,
        key=archive_path,
        scope=row.scope,
        words=words,
        value=value,
        state=COLD,
        labels=row.labels,
    )
    return Outcome(answer=now, writes=[write])


# ── routes ───────────────────────────────────────────────────────────────────────────────────


def _route(name: str, handler: Handler, summary: str, shape: Shape, **more: Any) -> Endpoint:
    return Endpoint(
        "POST",
        f"/v1/continuity/{name}",
        handler,
        summary,
        capability="scope.read.local" if more.get("is_read") else "scope.write",
        body=Any,
        shape=shape,
        dialect=DIALECT,
        **more,
    )


ENDPOINTS = (
    _route("upsert", _upsert, "Store a subject's capsule.", shapes.UPSERT),
    _route("patch", _patch, "Change items of a capsule's lists.", shapes.PATCH),
    _route("lifecycle", _lifecycle, "Move a thread or task in its life.", shapes.LIFECYCLE),
    _route("read", _read, "Read a subject's capsule.", shapes.READ, is_read=True),
    _route("compare", _compare, "Hold a capsule against another.", shapes.COMPARE, is_read=True),
    _route("revalidate", _revalidate, "Confirm, correct or doubt a capsule.", shapes.REVALIDATE),
    _route("list", _list, "List capsules.", shapes.LIST, is_read=True, off_loop=True),
    _route("archive", _archive, "Archive a capsule.", shapes.ARCHIVE),
    _route("delete", _delete, "Delete a capsule, its fallback, its archives.", shapes.DELETE),
)
