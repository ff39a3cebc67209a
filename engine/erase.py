"""How is something erased, so that it is in no file?  (001 §8.6, §11.3–§11.5)

A job of four phases; each can be done twice, so it goes on after a kill at any point: what is
erased already is not found again. It says at the end, in one audit row, what it came to.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.directives import Asked, Order, Written
from engine.erasing import Plan, plan_done, plan_of
from engine.jobs import (
    Job,
    JobCancelled,
    Telling,
    find_job,
    job_command,
    require_own,
    started_by,
    stop_job,
)
from engine.previews import check_preview, digest_of, drop_previews, find_preview, keep_preview
from engine.redaction import command_of, redact, release_blob
from engine.rotation import rotate
from engine.rows import About
from engine.selection import is_held
from engine.state.kv import StoreError
from engine.state.names import SCOPE
from engine.work.computes import SPLIT, SplitPlan, split
from projectors.forgets.rows import HoldRow
from projectors.jobs import JobRow
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Directive, Entry, Forget, SetHold
from schemas.erasures import (
    ErasureCancel,
    ErasurePreview,
    ErasureReceipt,
    ErasureRequest,
    ErasureState,
    Manifest,
    Propagation,
    RefcountBreakdown,
)
from schemas.errors import AmbiguousConfirmAll, EmptySelector, Unavailable
from schemas.forget import Hold, HoldRequest
from schemas.ids import format_id, parse_id, raw_of
from schemas.jobs import MoveJob
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

CROSS: Final = "forget.gdpr.cross_workspace"
_FAMILY: Final = "/v1/erasures"
PHASES: Final = ("enumerate", "refcount", "delete", "cleanup")
_EVENT_MS = 2
_POLL_S = 0.05


class Started(msgspec.Struct, frozen=True):
    """The erasure, and whether an earlier call with the same key began it."""

    receipt: ErasureReceipt
    is_replay: bool


class ManifestRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a plan."""

    id: str
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def preview_erasure(
    engine: "Engine", caller: Caller, request: ErasureRequest
) -> ErasurePreview:
    """What an erasure would do now; nothing changes."""
    policy.require(engine, caller, "forget.gdpr", request.scope)
    check(request)
    plan = await asyncio.to_thread(plan_of, engine, engine.tenant_no(caller), request)
    kept = keep_preview(engine, caller, said(request), plan.shown())
    spaces = plan.workspaces(engine)
    redacted = len(plan.references)
    return ErasurePreview(
        preview_id=kept.preview_id,
        scope=request.scope,
        estimated_affected=plan.found.counts(with_events=True),
        refcount_breakdown=RefcountBreakdown(
            events_to_delete=len(plan.found.events) - redacted,
            events_to_redact=redacted,
            events_under_legal_hold=len(plan.held),
        ),
        cross_scope_propagation=Propagation(
            affected_workspaces=spaces, requires_capability=CROSS if spaces else None
        ),
        legal_holds=plan.holds,
        estimated_duration_ms=len(plan.found.events) * _EVENT_MS,
        manifest_url=f"/v1/erasures/preview/{kept.preview_id}/manifest",
        expires_at=from_us(kept.expires_us),
    )


def get_manifest(engine: "Engine", caller: Caller, request: ManifestRequest) -> Manifest:
    """The plan of a preview, line by line, as it would be carried out now."""
    policy.require(engine, caller, "forget.gdpr")
    preview = find_preview(engine, caller, request.id)
    asked = msgspec.convert(preview.said, ErasureRequest)
    policy.require(engine, caller, "forget.gdpr", asked.scope)
    plan = plan_of(engine, engine.tenant_no(caller), asked)
    lines = {f"{at:08}": line for at, line in enumerate(plan.lines(engine))}
    return _page(engine, caller, request, lines, drifted=preview.digest != digest_of(plan.shown()))


def get_erasure_manifest(engine: "Engine", caller: Caller, request: ManifestRequest) -> Manifest:
    """What an erasure has named so far, line by line: from its directives."""
    policy.require(engine, caller, "forget.gdpr")
    row = find_job(engine, caller, request.id, "erasure")
    require_own(engine, caller, "forget.gdpr", row)
    tenant_no = engine.tenant_no(caller) or 0
    done = plan_done(engine, tenant_no, row.scope, _commands(engine, tenant_no, request.id))
    lines = {f"{at:08}": line for at, line in enumerate(done.lines(engine))}
    return _page(engine, caller, request, lines, drifted=False)


async def start_erasure(engine: "Engine", caller: Caller, request: ErasureRequest) -> Started:
    """Begin an erasure; from a preview only as it was shown (001 §8.6.3)."""
    decision = policy.require(engine, caller, "forget.gdpr", request.scope)
    check(request)
    asked = Asked(
        family=_FAMILY,
        said=msgspec.structs.replace(request, idempotency_key=None),
        key=request.idempotency_key,
        status=202,
        scope=request.scope,
    )
    noted = said(request) | {"audit_note": request.audit_note or request.reason}
    command = job_command(engine, caller, "erasure", noted)
    order = Order(engine, caller, decision, asked, lambda _desk, _tenant_no: command)
    if not order.is_known():
        plan = await asyncio.to_thread(plan_of, engine, engine.tenant_no(caller), request)
        if plan.references:
            policy.require(engine, caller, CROSS, request.scope)
        if request.from_preview_id is not None:
            check_preview(engine, caller, request.from_preview_id, said(request), plan.shown())
    written: Written = await engine.committer.submit(order)
    row = find_job(engine, caller, started_by(written.entry))
    if not written.is_replay:
        engine.jobs.run(engine, caller.tenant, row)
    return Started(_receipt(row.job_id, row.status), is_replay=written.is_replay)


def get_erasure(engine: "Engine", caller: Caller, erasure_id: str) -> ErasureState:
    """How far an erasure is."""
    policy.require(engine, caller, "forget.gdpr")
    row = find_job(engine, caller, erasure_id, "erasure")
    require_own(engine, caller, "forget.gdpr", row)
    return ErasureState(
        erasure_id=row.job_id,
        status=row.status,
        phase=row.phase or PHASES[0],
        fraction_complete=round(row.fraction, 4),
        progress=row.counts,
        audit_id=_audit_id(row),
        summary=row.summary,
    )


async def cancel_erasure(engine: "Engine", caller: Caller, erasure_id: str) -> ErasureCancel:
    """Stop at the next boundary of phases; what is gone is gone."""
    policy.require(engine, caller, "forget.gdpr")
    row = find_job(engine, caller, erasure_id, "erasure")
    decision = require_own(engine, caller, "forget.gdpr", row)
    is_accepted = not row.is_over
    after = await stop_job(engine, caller, decision, row)
    return ErasureCancel(
        erasure_id=erasure_id,
        cancellation_accepted=is_accepted,
        deleted_events_before_cancel=after.counts.get("deleted_events", 0),
        audit_id=_audit_id(after),
    )


async def set_hold(engine: "Engine", caller: Caller, path: str, request: HoldRequest) -> Hold:
    """Begin or end a legal hold on a scope and all below it: what is held is not erased."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    await engine.committer.submit(_Holding(caller, decision, path, request))
    return get_hold(engine, caller, path)


def get_hold(engine: "Engine", caller: Caller, path: str) -> Hold:
    """Whether a scope is held, by itself or from above."""
    policy.require(engine, caller, "policy.administer.tenant")
    tenant_no = engine.tenant_no(caller)
    number = None if tenant_no is None else engine.names.known(SCOPE, tenant_no, path)
    row: HoldRow | None = None
    if tenant_no is not None and number is not None:
        row = engine.inline.get(tenant_no, "holds", number.to_bytes(4, "big"))
    if row is None:
        return Hold(path=path, held=tenant_no is not None and is_held(engine, tenant_no, path))
    return Hold(path=path, held=True, by=row.by, since=row.at, reason=row.reason)


# ── what is meant ────────────────────────────────────────────────────────────────────────────


def check(request: ErasureRequest) -> None:
    """Refuse a selector that says nothing: it would mean the whole scope."""
    selector = request.selector
    if selector is not None and not selector.memory_ids and not request.confirm_all:
        raise EmptySelector(field="selector", reason="it names no memory")
    if selector is not None and selector.memory_ids and request.confirm_all:
        raise AmbiguousConfirmAll(
            field="confirm_all", reason="a selector and confirm_all contradict each other"
        )


def said(request: ErasureRequest) -> dict[str, Any]:
    """What decides what is erased."""
    ids = request.selector.memory_ids if request.selector is not None else []
    chosen = {"selector": {"memory_ids": ids}} if ids else {}
    return {"scope": request.scope, **chosen}


def _audit_id(row: JobRow) -> str | None:
    """The one row that says what it came to; its id is where the job stands once it is written."""
    return row.position if row.position.startswith("audit_") else None


def _receipt(erasure_id: str, status: str) -> ErasureReceipt:
    return ErasureReceipt(
        erasure_id=erasure_id,
        status=status,
        manifest_url=f"/v1/erasures/{erasure_id}/manifest",
        lifecycle_stream=f"/v1/lifecycle/stream?erasure_id={erasure_id}",
    )


def _page(
    engine: "Engine",
    caller: Caller,
    request: ManifestRequest,
    lines: dict[str, Any],
    *,
    drifted: bool,
) -> Manifest:
    items, cursor = engine.cursors.page(request, lines, caller.tenant, "manifest", request.id)  # type: ignore[arg-type]
    return Manifest(
        id=request.id, items=items, next_cursor=cursor, has_more=cursor is not None, drifted=drifted
    )


# ── the job ──────────────────────────────────────────────────────────────────────────────────


async def run_erasure(job: Job) -> dict[str, Any]:
    """Enumerate, refcount, delete, clean up, say so: from wherever it was left."""
    tenant_no = job.engine.tenant_no(job.caller) or 0
    if _commands(job.engine, tenant_no, job.id):
        job.engine.daemon.request_rebuild()  # of what an earlier run erased
    try:
        await _erase(job, tenant_no)
    except JobCancelled:
        # What was named is erased like anything else: it leaves the files, and is told.
        if _commands(job.engine, tenant_no, job.id):
            await _ended(job, tenant_no)
        raise
    return await _ended(job, tenant_no)


async def _erase(job: Job, tenant_no: int) -> None:
    engine, asked = job.engine, job.row.request
    meant = {name: asked[name] for name in ("scope", "selector") if name in asked}
    await job.move(1, 100, phase="enumerate", position=job.row.position)
    plan = await asyncio.to_thread(
        plan_of, engine, tenant_no, msgspec.convert(meant, ErasureRequest)
    )
    await job.move(30, 100, phase="refcount", position=job.row.position)
    await _delete(job, plan)
    counts = _counts(engine, tenant_no, job.id)
    await job.move(70, 100, phase="cleanup", counts=counts, position=job.row.position)


async def _ended(job: Job, tenant_no: int) -> dict[str, Any]:
    """Clean up after what was named, and write the one audit row, once."""
    engine = job.engine
    await clean_up(job, tenant_no)
    summary = summary_of(engine, tenant_no, job.id)
    job.row = find_job(engine, job.caller, job.id)
    if _audit_id(job.row) is None:
        await engine.committer.submit(_Closing(job, summary))
        job.row = find_job(engine, job.caller, job.id)
    return {**summary, "audit_id": _audit_id(job.row)}


async def _delete(job: Job, plan: Plan) -> None:
    """A directive for a part, then its payloads, part by part: a kill leaves whole parts."""
    engine = job.engine
    events, records = list(plan.events(engine)), list(plan.found.records.values())
    step, most = limits.FORGET_STEP, max(len(events), len(records))
    counts = msgspec.to_builtins(plan.found.counts(with_events=True))
    parts = await _parts(job, plan, [event.event_id for event in events])
    try:
        for at, kept in parts:
            command = Forget(
                cascade="gdpr",
                audit_id=_internal_id(job.id),
                records=records[at : at + step],
                events=events[at : at + step],
                kept=[plan.kept[number] for number in kept],
                demoted=plan.demoted if at == 0 else [],
                counts=counts if at == 0 else {},
                erasure_id=job.id,
            )
            entry: Entry = await engine.committer.submit(_Naming(job, command))
            await engine.lifecycle.wait("extracted", entry.offset, limits.FORGET_WAIT_S)
            await redact(engine, job.caller, entry, is_last=False)
            done = _counts(engine, entry.tenant_no, job.id)
            share = 30 + 40 * (at + step) // most
            place = job.row.position
            await job.move(min(share, 70), 100, phase="delete", counts=done, position=place)
    finally:
        # Once for all parts, also when it ends early: what was named leaves every view.
        if parts:
            engine.daemon.request_rebuild()


async def _parts(job: Job, plan: Plan, events: list[str]) -> list[tuple[int, list[int]]]:
    """Where each part begins, and which facts lose evidence by it: decided by names alone."""
    asked = SplitPlan(
        events=events,
        records=len(plan.found.records),
        kept=[one.fact.supports for one in plan.kept],
        step=limits.FORGET_STEP,
    )
    parts = await job.engine.board.compute(SPLIT, asked)
    wanted = [*range(0, max(len(events), asked.records), asked.step)]
    if wanted != [part.start for part in parts]:
        parts = split(asked)  # an erasure that left a part out would be none
    return [(part.start, part.kept) for part in parts]


async def clean_up(job: Job, tenant_no: int) -> None:
    """Everything that was made from the payloads, out: views, indexes, caches, files, exports."""
    engine = job.engine
    for blob_id in _loose_blobs(engine, tenant_no, job.row.scope):
        await release_blob(engine, job.caller, tenant_no, blob_id)
    drop_previews(engine, tenant_no)
    engine.packs.drop(lambda tenant, _: tenant == job.caller.tenant)
    while engine.daemon.is_rebuilding:
        _require_working(engine)
        await asyncio.sleep(_POLL_S)
    while not engine.indexer.is_clear(engine.staged.state.generation):
        _require_working(engine)
        engine.indexer.wake()
        await asyncio.sleep(_POLL_S)
    await rotate(engine, tenant_no)
    await asyncio.to_thread(compact_all, engine)


def compact_all(engine: "Engine") -> None:
    """Rewrite every family of both stores: what was deleted leaves the files."""
    for kv in (engine.kv, engine.stores.vault_kv):
        for family in kv.families():
            try:
                kv.compact(family)
            except StoreError:
                if family in kv.families():
                    raise  # it was not dropped meanwhile: the store is broken
    if engine.daemon.beside is not None:
        engine.daemon.beside.release()  # it still has the files open that were deleted just now


def _require_working(engine: "Engine") -> None:
    trouble = engine.daemon.failure or engine.indexer.failure or engine.log.failure
    if trouble is not None:
        raise Unavailable(reason=trouble)


def _loose_blobs(engine: "Engine", tenant_no: int, scope: str) -> list[str]:
    """Files of exports that may hold what was erased, and what imports that are over had read."""
    found: list[str] = []
    for _, row in engine.inline.scan(tenant_no, "jobs"):
        is_over = row.is_over and row.kind in ("export", "import")
        source = row.request.get("source", {}) if row.kind == "import" else row.summary
        blob_id = source.get("blob_id") if is_over and isinstance(source, dict) else None
        where = f"{row.scope}/"
        concerned = (
            row.kind == "import" or f"{scope}/".startswith(where) or where.startswith(f"{scope}/")
        )
        if blob_id is not None and concerned and parse_id("blob", blob_id) is not None:
            found.append(blob_id)
    return found


# ── what it came to ──────────────────────────────────────────────────────────────────────────


def _internal_id(erasure_id: str) -> str:
    """Under which an erasure's directives are gathered: no audit row, that comes at the end."""
    return format_id("audit", raw_of("erasure", erasure_id))


def _commands(engine: "Engine", tenant_no: int, erasure_id: str) -> list[Forget]:
    """What an erasure has named so far, part by part."""
    row = engine.inline.get(tenant_no, "forgets", raw_of("erasure", erasure_id))
    offsets = [] if row is None else row.offsets
    return [command_of(engine.entry_of(found)) for found in engine.log.read_many(offsets)]


def _counts(engine: "Engine", tenant_no: int, erasure_id: str) -> dict[str, int]:
    """How much is gone, from the directives themselves: a kill loses no count."""
    commands = _commands(engine, tenant_no, erasure_id)
    events = [event for command in commands for event in command.events]
    redacted = sum(1 for event in events if event.references)
    return {
        "deleted_events": len(events) - redacted,
        "redacted_events": redacted,
        "demoted_beliefs": len({one.id for command in commands for one in command.demoted}),
    }


def summary_of(engine: "Engine", tenant_no: int, erasure_id: str) -> dict[str, int]:
    """The summary of the audit row (001 §11.3)."""
    counts = _counts(engine, tenant_no, erasure_id)
    commands = _commands(engine, tenant_no, erasure_id)
    names = [record.id for command in commands for record in command.records]
    for layer, prefix in (("facts", "fact_"), ("beliefs", "belief_"), ("episodes", "ep_")):
        counts[f"deleted_{layer}"] = sum(name.startswith(prefix) for name in names)
    counts["demoted_facts"] = len({one.fact.id for command in commands for one in command.kept})
    counts["deleted_concepts"] = sum(name.startswith("concept_") for name in names)
    return counts


# ── proposals ────────────────────────────────────────────────────────────────────────────────


class _Naming:
    """A proposal to erase a part."""

    entry_count = 1

    def __init__(self, job: Job, command: Forget) -> None:
        self._job = job
        self._command = command
        self.byte_count = 512 * (len(command.events) + len(command.records) + 1)

    def decide(self, desk: Desk) -> Entry:
        """Nothing can stand in the way."""
        return desk.add(
            self._job.caller, Directive(command=self._command, scope=self._job.row.scope)
        )


class _Closing:
    """A proposal of the one audit row, and of the place that says that it was written."""

    entry_count = 1
    byte_count = 2048

    def __init__(self, job: Job, summary: dict[str, int]) -> None:
        self._job = job
        self._summary = summary

    def decide(self, desk: Desk) -> str:
        """The id of the row."""
        job = self._job
        note = job.row.request.get("audit_note") or ""
        told = msgspec.json.encode({"erasure_id": job.id, "note": note, **self._summary}).decode()
        decision = Decision(capability="forget.gdpr", allowed=True, tier="deployment", preset="")
        about = About(status=200, scope=job.row.scope, note=told, gdpr=True)
        audit_id = desk.audit(job.caller, decision, about)
        moved = MoveJob(
            job_id=job.id,
            kind="erasure",
            processed=99,
            total=100,
            phase="cleanup",
            position=audit_id,
            counts=self._summary,
        )
        Telling(job.caller, job.row.scope, moved).decide(desk)
        return audit_id


class _Holding:
    """A proposal to begin or end a legal hold."""

    entry_count = 1
    byte_count = 1024

    def __init__(self, caller: Caller, decision: Decision, path: str, request: HoldRequest) -> None:
        self._caller = caller
        self._decision = decision
        self._path = path
        self._request = request

    def decide(self, desk: Desk) -> None:
        """Nothing can stand in the way."""
        command = SetHold(held=self._request.held, reason=self._request.reason)
        desk.add(self._caller, Directive(command=command, scope=self._path))
        about = About(status=200, scope=self._path, note=self._request.reason)
        desk.audit(self._caller, self._decision, about)
