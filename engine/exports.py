"""How are memories taken out?  A job that writes a file, sealed until it is fetched (001 §8.12)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from engine import policy
from engine.intake import UploadRequest, keep_upload
from engine.jobs import Job, find_job, require_own, start_job
from engine.reach import reach_of
from engine.read import EventsRequest, list_events
from engine.records import present, visible_version
from engine.temporal import Window
from engine.work.computes import RENDER, Rendered, RenderPart, records_of
from schemas import limits
from schemas.caller import Caller
from schemas.layers import Event, Record
from schemas.transfer import ExportReceipt, ExportRequest, ExportState

if TYPE_CHECKING:
    from engine.engine import Engine

_json = msgspec.json.Encoder().encode
_TABLES = {
    "episodes": "episodes",
    "facts": "facts",
    "beliefs": "beliefs",
    "understanding": "concepts",
}
_EVENT_BYTES = 600
"""Roughly what an event takes in a file: an estimate is for people."""


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def start_export(engine: "Engine", caller: Caller, request: ExportRequest) -> ExportReceipt:
    """Begin an export of a scope and of all below it that the caller may read."""
    decision = policy.require(engine, caller, f"export.format.{request.format}", request.scope)
    policy.require(engine, caller, "scope.read.descend", request.scope)
    row = await start_job(
        engine, caller, decision, "export", msgspec.to_builtins(request), scope=request.scope
    )
    tenant_no = engine.tenant_no(caller)
    reach = reach_of(engine, caller, tenant_no, request.scope, "descend")
    events = sum(_count(engine, tenant_no or 0, number) for number in reach.numbers)
    return ExportReceipt(
        export_id=row.job_id,
        status=row.status,
        estimated_size_bytes=events * _EVENT_BYTES,
        lifecycle_stream=f"/v1/lifecycle/stream?export_id={row.job_id}",
    )


def get_export(engine: "Engine", caller: Caller, export_id: str) -> ExportState:
    """How far an export is, and where its file is once it is done."""
    policy.require(engine, caller, "scope.read.local")
    row = find_job(engine, caller, export_id, "export")
    require_own(engine, caller, f"export.format.{row.request['format']}", row)
    return ExportState(
        export_id=row.job_id,
        status=row.status,
        fraction_complete=round(row.fraction, 4),
        processed=row.processed,
        total=row.total,
        url=row.summary.get("url"),
        size_bytes=row.summary.get("size_bytes"),
        sha256=row.summary.get("sha256"),
        summary=row.summary,
        created_at=row.at,
        updated_at=row.updated_at,
    )


def _count(engine: "Engine", tenant_no: int, scope_no: int) -> int:
    found = engine.directory.scope_offsets(
        tenant_no, scope_no, after=0, newest_first=False, limit=limits.PAGE_SCAN_MAX
    )
    return len(found)


# ── the job ──────────────────────────────────────────────────────────────────────────────────


async def run_export(job: Job) -> dict[str, Any]:
    """Write the file from its first line: one that was not finished was never there."""
    job.stop_if_asked()
    request = msgspec.convert(job.row.request, ExportRequest)
    counts: dict[str, int] = dict.fromkeys(request.layers, 0)
    upload = UploadRequest(
        _written(job, request, counts), "application/x-ndjson", may_be_empty=True
    )
    blob = await keep_upload(job.engine, job.caller, upload)
    return {
        "url": f"/v1/blobs/{blob.blob_id}",
        "blob_id": blob.blob_id,
        "size_bytes": blob.size_bytes,
        "sha256": blob.sha256,
        "counts": counts,
    }


async def _written(
    job: Job, request: ExportRequest, counts: dict[str, int]
) -> AsyncIterator[bytes]:
    """The file's bytes, a step at a time, with its progress told in between."""
    engine, known_at = job.engine, request.as_of or present(job.engine)
    header = {"export": job.id, "scope": request.scope, "as_of": known_at, "format": request.format}
    yield _json(header) + b"\n" if request.format == "jsonl" else b""
    done = 0
    reach = reach_of(engine, job.caller, engine.tenant_no(job.caller), request.scope, "descend")
    numbers = reach.numbers
    total = sum(_count(engine, engine.tenant_no(job.caller) or 0, number) for number in numbers)
    for layer in request.layers:
        steps = _steps(job, request, layer, numbers, known_at)
        async for size, rendered in _rendered(job, request.format, layer, steps):
            counts[layer] += rendered.count
            done += size
            yield rendered.lines
            await job.move(done, max(total, done), counts=dict(counts))


async def _rendered(
    job: Job, form: str, layer: str, steps: Iterator[list[Any]]
) -> AsyncIterator[tuple[int, Rendered]]:
    """Lines, in order, of the records that are read here; a few steps are written at once."""
    out: deque[tuple[int, asyncio.Task[Rendered]]] = deque()
    try:
        while True:
            part = await asyncio.to_thread(_some, steps)
            if part:
                asked = RenderPart(format=form, layer=layer, records=records_of(part))
                task = asyncio.create_task(job.engine.board.compute(RENDER, asked))
                out.append((len(part), task))
            while out and (not part or len(out) >= limits.TASKS_AHEAD):
                size, task = out.popleft()
                yield size, await task
            if not part:
                return
    finally:
        for _, task in out:
            task.cancel()


def _some(steps: Iterator[list[Any]]) -> list[Any]:
    """Records enough for a task; none when there are no more."""
    part: list[Any] = []
    for step in steps:
        part += step
        if len(part) >= limits.TASK_ROWS:
            break
    return part


def _steps(
    job: Job, request: ExportRequest, layer: str, numbers: list[int], known_at: datetime
) -> Iterator[list[Any]]:
    if layer == "events":
        return _events(job, request, known_at)
    return _records(job, layer, numbers, known_at)


def _events(job: Job, request: ExportRequest, known_at: datetime) -> Iterator[list[Event]]:
    """Events of the scope and of those below it, oldest first, as the caller may read them."""
    cursor: str | None = None
    while True:
        asked = EventsRequest(
            scope=request.scope,
            view="descend",
            order="oldest",
            limit=limits.JOB_STEP_ROWS,
            cursor=cursor,
        )
        page = list_events(job.engine, job.caller, asked).value
        yield [event for event in page.items if event.context.recorded_at <= known_at]
        cursor = page.next_cursor
        if cursor is None:
            return


def _records(
    job: Job, layer: str, numbers: list[int], known_at: datetime
) -> Iterator[list[Record]]:
    """What was known then of a layer: every record once, in the version of that moment."""
    engine, table = job.engine, _TABLES[layer]
    tenant_no = engine.tenant_no(job.caller) or 0
    window = Window(known_at=known_at, valid_at=None)
    if table not in engine.staged.owner:
        return
    for number in numbers:
        rows = engine.staged.scan(tenant_no, f"{table}_in", number.to_bytes(4, "big"))
        for at in range(0, len(rows), limits.JOB_STEP_ROWS):
            step = rows[at : at + limits.JOB_STEP_ROWS]
            found = (visible_version(engine, tenant_no, table, key[4:], window) for key, _ in step)
            yield [record for record in found if record is not None]
