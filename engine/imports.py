"""How do memories come over from elsewhere?  A job that maps rows and captures them (001 §8.11)."""

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from engine import policy
from engine.capture import Experiences, Written
from engine.importers import IMPORTERS, Importer
from engine.importers.mapping import MapPart, Mapped, MappedRow, Ready, problem_of
from engine.intake import keep_bytes
from engine.jobs import Job, find_job, require_own, start_job, stop_job
from engine.sources import SourceFailed, allowed_path, check_url, read_source
from engine.work.board import TaskDead
from engine.work.computes import MAP, Refused
from projectors.jobs import JobRow
from schemas import limits
from schemas.caller import Caller
from schemas.envelope import Envelope
from schemas.errors import EngineError, InvalidParameter, RateLimited
from schemas.jobs import Problem
from schemas.transfer import ImportReceipt, ImportRequest, ImportState

if TYPE_CHECKING:
    from engine.engine import Engine

_json = msgspec.json.Encoder().encode
_SOURCES = ("inline", "blob_id", "path", "url")


class ImportCall(NamedTuple):
    """Which system the request is for."""

    system: str
    request: ImportRequest


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def start_import(engine: "Engine", caller: Caller, call: ImportCall) -> ImportReceipt:
    """Begin an import; what cannot be read at all is said now."""
    decision = policy.require(engine, caller, IMPORTERS[call.system].capability)
    importer, request = IMPORTERS[call.system], call.request
    _check(engine, importer, request)
    _charge(engine, caller)
    source, estimated = await _kept(engine, caller, request)
    what = {
        "system": importer.name,
        "scope_template": request.scope_template,
        "source": source,
        "options": msgspec.to_builtins(request.options),
    }
    row = await start_job(engine, caller, decision, "import", what)
    return ImportReceipt(
        import_id=row.job_id,
        status=row.status,
        estimated_items=estimated,
        lifecycle_stream=f"/v1/lifecycle/stream?import_id={row.job_id}",
    )


def get_import(engine: "Engine", caller: Caller, import_id: str) -> ImportState:
    """How far an import is; its caller asks, or who administers the tenant."""
    policy.require(engine, caller, "scope.read.local")
    row = find_job(engine, caller, import_id, "import")
    require_own(engine, caller, IMPORTERS[row.request["system"]].capability, row)
    return _state(row)


async def cancel_import(engine: "Engine", caller: Caller, import_id: str) -> ImportState:
    """Ask an import to stop; what it has captured stays."""
    policy.require(engine, caller, "scope.read.local")
    row = find_job(engine, caller, import_id, "import")
    decision = require_own(engine, caller, IMPORTERS[row.request["system"]].capability, row)
    return _state(await stop_job(engine, caller, decision, row))


# ── before it begins ─────────────────────────────────────────────────────────────────────────


def _check(engine: "Engine", importer: Importer, request: ImportRequest) -> None:
    source = request.source
    given = [name for name in _SOURCES if getattr(source, name) is not None]
    if len(given) != 1:
        reason = f"exactly one of {', '.join(_SOURCES)}"
        raise InvalidParameter(field="source", reason=reason)
    if source.format is not None and source.format not in importer.formats:
        reason = f"one of {', '.join(importer.formats)}"
        raise InvalidParameter(field="source.format", reason=reason)
    if source.credentials_ref is not None:
        reason = "this server keeps no credentials for other stores"
        raise InvalidParameter(field="source.credentials_ref", reason=reason)
    if not request.scope_template and not importer.by_line:
        reason = "the scope the rows go to, with names in braces"
        raise InvalidParameter(field="scope_template", reason=reason)
    if source.path is not None:
        allowed_path(engine, source.path)
    if source.url is not None:
        check_url(engine, source.url)


def _charge(engine: "Engine", caller: Caller) -> None:
    """The importer's bucket pays, not the caller's (001 §18.2.6)."""
    allowance = engine.rates.take_import(caller.tenant)
    if allowance is not None and not allowance.granted:
        raise RateLimited(
            reason=f"{allowance.limit} imports at once", retry_after_s=allowance.retry_after_s
        )


async def _kept(
    engine: "Engine", caller: Caller, request: ImportRequest
) -> tuple[dict[str, str], int]:
    """Where the job will find its bytes: what came inline is kept as a blob until it is read."""
    source = request.source
    if source.inline is None:
        named = {"blob_id": source.blob_id, "path": source.path, "url": source.url}
        return {name: value for name, value in named.items() if value is not None}, 0
    inline = source.inline
    data = inline.encode() if isinstance(inline, str) else _json(inline)
    blob = await keep_bytes(engine, caller, data, "application/json")
    return {"blob_id": blob.blob_id}, len(inline) if isinstance(inline, list) else 0


def _state(row: JobRow) -> ImportState:
    return ImportState(
        import_id=row.job_id,
        status=row.status,
        fraction_complete=round(row.fraction, 4),
        processed=row.processed,
        total=row.total,
        errors=row.problems,
        error_count=row.problem_count,
        summary=row.summary,
        created_at=row.at,
        updated_at=row.updated_at,
    )


# ── the job ──────────────────────────────────────────────────────────────────────────────────


class _Ready(NamedTuple):
    """One experience of an import, which its caller may write."""

    line: int
    at: int
    envelope: Envelope
    follows: int | None


async def run_import(job: Job) -> dict[str, Any]:
    """Map the rows, here or by workers, and capture them from where the last run stopped.

    While a part is captured, the next one is being mapped.
    """
    job.stop_if_asked()
    with job.engine.board.file_of(job.id):
        start = int(job.row.position or 0)
        coming = asyncio.create_task(_part(job, start))
        try:
            while True:
                part = await coming
                if start + len(part.rows) < part.total:
                    coming = asyncio.create_task(_part(job, start + len(part.rows)))
                start = await _take_part(job, part, start)
                if start >= part.total:
                    return {"total": part.total, **_counts(job)}
        finally:
            coming.cancel()


def _counts(job: Job) -> dict[str, int]:
    return dict(job.row.counts) or {"imported": 0, "repeated": 0, "failed": 0, "skipped": 0}


async def _part(job: Job, start: int) -> Mapped:
    """Some rows as checked envelopes: they follow from the file, whoever maps them."""
    engine, request = job.engine, job.row.request
    asked = MapPart(
        job_id=job.id,
        system=request["system"],
        scope_template=request["scope_template"],
        imported_at=job.row.at,
        options=request["options"],
        source=request["source"],
        start=start,
        count=limits.TASK_ROWS,
    )

    def source() -> bytes:
        try:
            return read_source(engine, job.caller, request["source"])
        except EngineError as error:
            raise SourceFailed(error.message) from error

    try:
        part = await engine.board.compute(MAP, asked, source)
    except Refused as error:
        raise InvalidParameter(field="source", reason=str(error)) from error
    if len(part.rows) != min(asked.count, max(0, part.total - start)):
        raise TaskDead(f"import: {len(part.rows)} rows from {start} of {part.total}")
    return part


async def _take_part(job: Job, part: Mapped, start: int) -> int:
    """Capture a part step by step; where the next one begins."""
    importer, counts = IMPORTERS[job.row.request["system"]], _counts(job)
    await job.move(start, part.total, position=str(start), counts=counts)
    for at in range(0, len(part.rows), limits.JOB_STEP_ROWS):
        step = part.rows[at : at + limits.JOB_STEP_ROWS]
        problems = await _captured(job, importer, step, counts)
        start += len(step)
        await job.move(start, part.total, position=str(start), problems=problems, counts=counts)
    return start


async def _captured(
    job: Job, importer: Importer, rows: list[MappedRow], counts: dict[str, int]
) -> list[Problem]:
    """Capture a step of rows; those that cannot be are told, and the others go in."""
    problems: list[Problem] = []
    ready: list[_Ready] = []
    for row in rows:
        try:
            made = [_allowed(job, row.line, at, each) for at, each in enumerate(row.ready)]
        except EngineError as error:
            problems.append(problem_of(row.line, error))
            counts["failed"] += 1
            continue
        if row.problem is not None:
            problems.append(row.problem)
            counts["failed"] += 1
            continue
        counts["skipped"] += not made
        ready += made
    first = [each for each in ready if each.follows is None]
    ids = await _submitted(job, importer, first, counts, problems)
    later = [_linked(each, ids) for each in ready if each.follows is not None]
    await _submitted(job, importer, [each for each in later if each], counts, problems)
    return problems


def _allowed(job: Job, line: int, at: int, ready: Ready) -> _Ready:
    """An experience goes only where the caller may write: the owner of the log sees to that."""
    policy.require(job.engine, job.caller, "scope.write", ready.envelope.scope)
    policy.require_identities(job.engine, job.caller, ready.envelope)
    return _Ready(line, at, ready.envelope, ready.follows)


def _linked(later: _Ready, ids: dict[tuple[int, int], str]) -> _Ready | None:
    """An update comes after what it updates; None when that could not be captured."""
    assert later.follows is not None
    before = ids.get((later.line, later.follows))
    if before is None:
        return None
    context = msgspec.structs.replace(later.envelope.context, preceded_by=[before])
    return later._replace(envelope=msgspec.structs.replace(later.envelope, context=context))


async def _submitted(
    job: Job,
    importer: Importer,
    ready: list[Any],
    counts: dict[str, int],
    problems: list[Problem],
) -> dict[tuple[int, int], str]:
    """Event ids by (line, draft). One batch; when something of it is refused, one by one."""
    try:
        written = await _write(job, importer, ready) if ready else []
    except EngineError as error:
        if error.retriable:
            raise
        written, taken = [], []
        for each in ready:
            try:
                written += await _write(job, importer, [each])
                taken.append(each)
            except EngineError as refused:
                if refused.retriable:
                    raise
                counts["failed"] += 1
                problems.append(problem_of(each.line, refused))
        ready = taken
    counts["imported"] += sum(1 for each in written if not each.replayed)
    counts["repeated"] += sum(1 for each in written if each.replayed)
    pairs = zip(ready, written, strict=True)
    return {(each.line, each.at): done.event_id for each, done in pairs}


async def _write(job: Job, importer: Importer, ready: list[_Ready]) -> list[Written]:
    decision = policy.require(job.engine, job.caller, importer.capability)
    proposal = Experiences(
        job.engine,
        job.caller,
        decision,
        family=importer.family,
        envelopes=[each.envelope for each in ready],
    )
    written: list[Written] = await job.engine.committer.submit(proposal)
    return written
