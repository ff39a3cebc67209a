"""How do memories come over from elsewhere?  A job that maps rows and captures them (001 §8.11)."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from engine import policy
from engine.capture import Experiences, Written
from engine.importers import IMPORTERS, Draft, Importer, Options, Row
from engine.importers.rows import BadRow
from engine.intake import keep_bytes
from engine.jobs import Job, find_job, require_own, start_job, stop_job
from engine.sources import SourceFailed, allowed_path, check_url, read_source
from projectors.jobs import JobRow
from schemas import limits
from schemas.caller import Caller
from schemas.envelope import Envelope, checked
from schemas.errors import EngineError, IdempotencyConflict, InvalidParameter, RateLimited
from schemas.jobs import Problem
from schemas.transfer import ImportOptions, ImportReceipt, ImportRequest, ImportState

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
    """One experience of an import, checked."""

    line: int
    at: int
    envelope: Envelope
    follows: int | None


async def run_import(job: Job) -> dict[str, Any]:
    """Map the rows and capture them in batches, from where the last run stopped."""
    importer = IMPORTERS[job.row.request["system"]]
    try:
        data = await asyncio.to_thread(
            read_source, job.engine, job.caller, job.row.request["source"]
        )
    except SourceFailed as error:
        raise InvalidParameter(field="source", reason=str(error)) from error
    options = _options(job)
    ordering = job.row.request["options"].get("ordering")
    rows = await asyncio.to_thread(_rows, importer, data, options, ordering)
    counts = dict(job.row.counts) or {"imported": 0, "repeated": 0, "failed": 0, "skipped": 0}
    start = int(job.row.position or 0)
    await job.move(start, len(rows), position=str(start), counts=counts)
    for at in range(start, len(rows), limits.JOB_STEP_ROWS):
        step = rows[at : at + limits.JOB_STEP_ROWS]
        problems = await _captured(job, importer, step, options, counts)
        done = at + len(step)
        await job.move(done, len(rows), position=str(done), problems=problems, counts=counts)
    return {"total": len(rows), **counts}


def _options(job: Job) -> Options:
    given = msgspec.convert(job.row.request["options"], ImportOptions)
    names = set(Options.__struct_fields__) & set(ImportOptions.__struct_fields__)
    return Options(
        scope_template=job.row.request["scope_template"],
        imported_at=job.row.at,
        **{name: getattr(given, name) for name in names},
    )


def _rows(importer: Importer, data: bytes, options: Options, ordering: str | None) -> list[Row]:
    found = list(importer.rows(_parsed(importer, data)))
    if ordering != "strict_temporal":
        return found
    return sorted(found, key=lambda row: _time_of(importer, row, options))


def _time_of(importer: Importer, row: Row, options: Options) -> str:
    """When a row happened, for sorting; one that cannot be mapped comes first, and says why."""
    try:
        drafts = importer.drafts(row, options)
        return str(drafts[0].envelope["context"]["observed_at"]) if drafts else ""
    except (BadRow, KeyError, TypeError):
        return ""


def _parsed(importer: Importer, data: bytes) -> Any:
    """One JSON value, or lines of JSON; a line that is none of it becomes its own problem."""
    if importer.by_line:
        return _lines(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [value for _, value in _lines(data)]


def _lines(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        if len(line) > limits.EXPERIENCE_BODY_BYTES_MAX:
            yield number, f"line {number} is longer than an experience may be"
            continue
        try:
            yield number, msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            yield number, f"line {number} is not JSON: {error}"


async def _captured(
    job: Job, importer: Importer, rows: list[Row], options: Options, counts: dict[str, int]
) -> list[Problem]:
    """Capture a step of rows; those that cannot be are told, and the others go in."""
    problems: list[Problem] = []
    ready: list[_Ready] = []
    for row in rows:
        try:
            drafts = importer.drafts(row, options)
            made = [_checked(job, row.line, at, draft) for at, draft in enumerate(drafts)]
        except (BadRow, EngineError) as error:
            problems.append(_problem(row.line, error))
            counts["failed"] += 1
            continue
        counts["skipped"] += not made
        ready += made
    first = [each for each in ready if each.follows is None]
    ids = await _submitted(job, importer, first, counts, problems)
    later = [_linked(each, ids) for each in ready if each.follows is not None]
    await _submitted(job, importer, [each for each in later if each], counts, problems)
    return problems


def _checked(job: Job, line: int, at: int, draft: Draft) -> _Ready:
    """An envelope like any that is posted, and only where the caller may write."""
    try:
        envelope = checked(msgspec.convert(draft.envelope, Envelope))
    except msgspec.ValidationError as error:
        raise BadRow(str(error)) from error
    policy.require(job.engine, job.caller, "scope.write", envelope.scope)
    policy.require_identities(job.engine, job.caller, envelope)
    return _Ready(line, at, envelope, draft.follows)


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
    except EngineError:
        if len(ready) == 1:
            raise
        written = []
        for each in ready:
            try:
                written += await _write(job, importer, [each])
            except IdempotencyConflict as error:
                counts["failed"] += 1
                problems.append(_problem(each.line, error))
        ready = [each for each in ready if all(each.line != p.line for p in problems)]
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


def _problem(line: int, error: Exception) -> Problem:
    if isinstance(error, EngineError):
        return Problem(line=line, error=error.code.lower(), detail=error.message[:500])
    return Problem(line=line, error="invalid_envelope", detail=str(error)[:500])
