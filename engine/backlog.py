"""Which long work is there, how far is it, and what becomes of what failed?  For operators."""

from typing import TYPE_CHECKING

import msgspec

from engine import policy
from engine.jobs import find_job, retry_job, stop_job
from engine.state.names import TENANT
from projectors.jobs import JobRow
from schemas import limits
from schemas.caller import Caller
from schemas.health import WorkHealth
from schemas.jobs import JobItem, JobList, JobListRequest

if TYPE_CHECKING:
    from engine.engine import Engine


def list_jobs(engine: "Engine", caller: Caller, request: JobListRequest) -> JobList:
    """The tenant's jobs, newest first."""
    policy.require(engine, caller, "admin.health")
    tenant_no = engine.tenant_no(caller)
    rows = [] if tenant_no is None else [row for _, row in engine.inline.scan(tenant_no, "jobs")]
    chosen = [
        row
        for row in sorted(rows, key=lambda row: (row.at, row.job_id), reverse=True)
        if request.status in (None, row.status) and request.kind in (None, row.kind)
    ]
    lines = {f"{at:08}": _item(row) for at, row in enumerate(chosen)}
    question = (caller.tenant, "jobs", request.status or "", request.kind or "")
    items, cursor = engine.cursors.page(request, lines, *question)  # type: ignore[arg-type]
    return JobList(items=items, next_cursor=cursor, has_more=cursor is not None)


def show_job(engine: "Engine", caller: Caller, job_id: str) -> JobItem:
    """One job of the tenant's."""
    policy.require(engine, caller, "admin.health")
    return _item(find_job(engine, caller, job_id))


async def rerun_job(engine: "Engine", caller: Caller, job_id: str) -> JobItem:
    """Run a job on that failed, from where it was."""
    decision = policy.require(engine, caller, "admin.flush")
    return _item(await retry_job(engine, caller, decision, find_job(engine, caller, job_id)))


async def cancel_job(engine: "Engine", caller: Caller, job_id: str) -> JobItem:
    """Ask a job to stop where it can."""
    decision = policy.require(engine, caller, "admin.flush")
    return _item(await stop_job(engine, caller, decision, find_job(engine, caller, job_id)))


def work_health(engine: "Engine") -> WorkHealth:
    """What workers have, and the jobs of all tenants: how many run, which are dead letters."""
    found = engine.board.health()
    rows = list(_rows(engine))
    dead = [row.job_id for row in rows if row.is_dead_letter]
    return msgspec.structs.replace(
        found,
        jobs=sum(not row.is_over for row in rows),
        dead_letters=len(dead),
        dead_letter_jobs=dead[: limits.DEAD_LETTERS_SHOWN],
        chores=engine.keeper.schedule.health(),
    )


def _rows(engine: "Engine") -> list[JobRow]:
    tenants = [number for number, _ in engine.names.all(TENANT, 0)]
    return [row for number in tenants for _, row in engine.inline.scan(number, "jobs")]


def _item(row: JobRow) -> JobItem:
    """A job without what it was asked: that may be what somebody wrote."""
    return JobItem(
        job_id=row.job_id,
        kind=row.kind,
        status=row.status,
        is_dead_letter=row.is_dead_letter,
        scope=row.scope,
        by=row.by,
        processed=row.processed,
        total=row.total,
        phase=row.phase,
        retries=row.retries,
        problems=row.problem_count,
        error_code=row.summary.get("error_code"),
        message=row.summary.get("message"),
        created_at=row.at,
        updated_at=row.updated_at,
    )
