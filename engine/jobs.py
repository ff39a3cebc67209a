"""Who does long work, and who picks it up again after a crash?

A job is a few entries: that it began, how far it came, that it ended. Whoever runs it asks nobody:
after a restart the rows that are still running are run on from their position. It runs here, where
the log is, once; what of it needs no log is a task that workers may do (docs/adr/0034).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from engine import policy
from engine.commit import Desk
from engine.rows import About
from engine.state.names import TENANT
from engine.work.board import TaskDead
from projectors.jobs import DEAD_LETTER, JobRow, job_key
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Command, Directive, Entry
from schemas.errors import Conflict, EngineError, NotFound, Unavailable, told_plainly
from schemas.jobs import PREFIX_OF, CancelJob, EndJob, JobKind, MoveJob, Problem, RetryJob, StartJob
from schemas.times import to_us
from schemas.token import Grant

if TYPE_CHECKING:
    from engine.engine import Engine


class JobCancelled(Exception):
    """The job was asked to stop, and this is a place where it can."""


class Job:
    """One run of a job: what it was asked, for whom, and how it says how far it is."""

    def __init__(self, engine: "Engine", tenant: str, row: JobRow) -> None:
        self.engine = engine
        self.row = row
        grants = None if row.grants is None else tuple(map(Grant.parse, row.grants))
        caps = None if row.capabilities is None else tuple(row.capabilities)
        self.caller = Caller(actor=row.by, tenant=tenant, capabilities=caps, scopes=grants)

    @property
    def id(self) -> str:
        """The job's id."""
        return self.row.job_id

    async def move(
        self,
        processed: int,
        total: int,
        *,
        position: str = "",
        phase: str = "",
        problems: list[Problem] | None = None,
        counts: dict[str, int] | None = None,
    ) -> None:
        """Write down how far it is, and stop here if that was asked for meanwhile."""
        command = MoveJob(
            job_id=self.id,
            kind=self.row.kind,  # type: ignore[arg-type]
            processed=processed,
            total=total,
            position=position,
            phase=phase,
            problems=problems or [],
            counts=counts or {},
        )
        await self.engine.committer.submit(Telling(self.caller, self.row.scope, command))
        self.row = find_job(self.engine, self.caller, self.id)
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        """Stop here, if that was asked for."""
        if self.row.status == "cancelling":
            raise JobCancelled


Runner = Callable[[Job], Awaitable[dict[str, Any]]]
"""Does the work from `job.row.position` on; what it returns is the job's summary."""


class Jobs:
    """The queue in this process: a bounded number of jobs at a time, the rest wait."""

    def __init__(self, runners: dict[str, Runner]) -> None:
        self._runners = runners
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began_us: dict[str, int] = {}
        self._slots = asyncio.Semaphore(limits.JOBS_AT_ONCE)
        self.failures = 0

    def resume(self, engine: "Engine") -> int:
        """At start: run on what was running; how many there were."""
        found = 0
        for number, tenant in engine.names.all(TENANT, 0):
            for _, row in engine.inline.scan(number, "jobs"):
                if not row.is_over:
                    self.run(engine, tenant, row)
                    found += 1
        return found

    def run(self, engine: "Engine", tenant: str, row: JobRow) -> None:
        """Take a job on."""
        task = asyncio.get_running_loop().create_task(self._run(Job(engine, tenant, row)))
        self._tasks[row.job_id] = task
        self._began_us[row.job_id] = to_us(row.at)
        task.add_done_callback(lambda _: self._over(row.job_id))

    def _over(self, job_id: str) -> None:
        self._tasks.pop(job_id, None)
        self._began_us.pop(job_id, None)

    @property
    def running(self) -> int:
        """Jobs at hand, those that wait for a place among them."""
        return len(self._tasks)

    def oldest_s(self, now_us: int) -> float:
        """Age of the job at hand that began first."""
        began = min(self._began_us.values(), default=now_us)
        return max(0.0, (now_us - began) / 1_000_000)

    async def stop(self) -> None:
        """The process ends: jobs stop where they are, and are run on by the next."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job) -> None:
        async with self._slots:
            try:
                summary = await self._runners[job.row.kind](job)
                end = _end(job, "completed", summary)
            except JobCancelled:
                end = _end(job, "cancelled", dict(job.row.counts))
            except EngineError as error:
                end = _end(job, "failed", {"error_code": error.code, "message": error.message})
            except TaskDead as error:
                end = _end(job, "failed", {"error_code": DEAD_LETTER, "message": str(error)})
            except Exception as error:  # noqa: BLE001 - the job's own row says what went wrong
                self.failures += 1
                said = told_plainly(error)[:500]
                end = _end(job, "failed", {"error_code": "INTERNAL", "message": said})
            # A log that takes nothing now has the job still running: the next start runs it on.
            with contextlib.suppress(Unavailable):
                await job.engine.committer.submit(Telling(job.caller, job.row.scope, end))


def _end(job: Job, status: Any, summary: dict[str, Any]) -> EndJob:
    kind: Any = job.row.kind
    return EndJob(job_id=job.id, kind=kind, status=status, summary=summary)


class Telling:
    """A proposal that only says something of a job."""

    entry_count = 1
    byte_count = 4096

    def __init__(self, caller: Caller, scope: str, command: Command) -> None:
        self._caller = caller
        self._scope = scope
        self._command = command

    def decide(self, desk: Desk) -> None:
        """Nothing can stand in the way."""
        desk.add(self._caller, Directive(command=self._command, scope=self._scope or None))


class Start:
    """A proposal to begin a job."""

    entry_count = 1

    def __init__(
        self, caller: Caller, decision: Decision, scope: str | None, command: StartJob
    ) -> None:
        self._caller = caller
        self._decision = decision
        self._scope = scope
        self._command = command
        self.byte_count = limits.BODY_BYTES_MAX

    def decide(self, desk: Desk) -> JobRow:
        """Begin it; the row as the log now has it."""
        desk.add(self._caller, Directive(command=self._command, scope=self._scope))
        desk.audit(self._caller, self._decision, About(status=202, scope=self._scope))
        tenant_no = desk.tenant_no(self._caller)
        row: JobRow | None = desk.overlay.get(tenant_no, "jobs", job_key(self._command.job_id))
        assert row is not None, "a job that began has a row"
        return row


def job_command(
    engine: "Engine", caller: Caller, kind: JobKind, request: dict[str, Any]
) -> StartJob:
    """The beginning of a job, with what its caller may."""
    return StartJob(
        job_id=engine.clock.new_id(PREFIX_OF[kind]),
        kind=kind,
        request=request,
        capabilities=None if caller.capabilities is None else list(caller.capabilities),
        grants=None if caller.scopes is None else [str(grant) for grant in caller.scopes],
    )


def started_by(entry: Entry | None) -> str:
    """The id of the job that an entry began."""
    assert entry is not None, "a job always begins"
    assert isinstance(entry.body, Directive), "the key's family holds jobs only"
    assert isinstance(entry.body.command, StartJob), "the key's family holds jobs only"
    return entry.body.command.job_id


async def start_job(
    engine: "Engine",
    caller: Caller,
    decision: Decision,
    kind: JobKind,
    request: dict[str, Any],
    *,
    scope: str | None = None,
) -> JobRow:
    """Write down that a job begins, and run it. A verb has asked policy before."""
    command = job_command(engine, caller, kind, request)
    row: JobRow = await engine.committer.submit(Start(caller, decision, scope, command))
    engine.jobs.run(engine, caller.tenant, row)
    return row


async def stop_job(engine: "Engine", caller: Caller, decision: Decision, row: JobRow) -> JobRow:
    """Ask a job to stop where it can; one that is over stays as it is. Policy was asked before."""
    if not row.is_over:
        await engine.committer.submit(Stop(caller, decision, row))
    return find_job(engine, caller, row.job_id)


async def retry_job(engine: "Engine", caller: Caller, decision: Decision, row: JobRow) -> JobRow:
    """Run a job on that failed, from where it was. Policy was asked before."""
    if row.status != "failed":
        raise Conflict(f"The job {row.job_id} has not failed: it is {row.status}.")
    again: JobRow = await engine.committer.submit(Retry(caller, decision, row))
    engine.jobs.run(engine, caller.tenant, again)
    return again


class Retry:
    """A proposal that a failed job is run on."""

    entry_count = 1
    byte_count = 512

    def __init__(self, caller: Caller, decision: Decision, row: JobRow) -> None:
        self._caller = caller
        self._decision = decision
        self._row = row

    def decide(self, desk: Desk) -> JobRow:
        """The row as it is now; somebody may have been quicker."""
        tenant_no, key = desk.tenant_no(self._caller), job_key(self._row.job_id)
        known: JobRow | None = desk.overlay.get(tenant_no, "jobs", key)
        if known is None or known.status != "failed":
            raise Conflict(f"The job {self._row.job_id} is running again.")
        scope = self._row.scope or None
        desk.add(self._caller, Directive(command=RetryJob(job_id=self._row.job_id), scope=scope))
        desk.audit(self._caller, self._decision, About(status=202, scope=scope))
        row: JobRow | None = desk.overlay.get(tenant_no, "jobs", key)
        assert row is not None, "it was there a line before"
        return row


class Stop:
    """A proposal that a job should stop."""

    entry_count = 1
    byte_count = 512

    def __init__(self, caller: Caller, decision: Decision, row: JobRow) -> None:
        self._caller = caller
        self._decision = decision
        self._row = row

    def decide(self, desk: Desk) -> None:
        """Nothing can stand in the way."""
        scope = self._row.scope or None
        desk.add(self._caller, Directive(command=CancelJob(job_id=self._row.job_id), scope=scope))
        desk.audit(self._caller, self._decision, About(status=202, scope=scope))


def find_job(engine: "Engine", caller: Caller, job_id: str, kind: str | None = None) -> JobRow:
    """One of the tenant's jobs; another tenant's is not found (DESIGN §8.2)."""
    tenant_no, key = engine.tenant_no(caller), job_key(job_id)
    row: JobRow | None = None
    if tenant_no is not None and key:
        row = engine.inline.get(tenant_no, "jobs", key)
    if row is None or kind not in (None, row.kind) or row.job_id != job_id:
        raise NotFound(f"There is no job {job_id[:80]!r}.", job_id=job_id[:80])
    return row


def require_own(engine: "Engine", caller: Caller, capability: str, row: JobRow) -> Decision:
    """A job is its caller's; another's takes the administration of the tenant."""
    if row.by != caller.actor:
        policy.require(engine, caller, "policy.administer.tenant")
    return policy.require(engine, caller, capability, row.scope or None)
