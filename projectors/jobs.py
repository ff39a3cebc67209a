"""Which long work is under way, and how did it end?"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from projectors.base import Change, Projector, Put, View
from schemas import limits
from schemas.entry import Directive, Entry
from schemas.ids import parse_id
from schemas.jobs import PREFIX_OF, CancelJob, EndJob, MoveJob, Problem, RetryJob, StartJob
from schemas.times import Instant

DEAD_LETTER: Final = "DEAD_LETTER"
"""The error code of a job whose task failed wherever it was tried."""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job, as far as the log knows."""

    job_id: str
    kind: str
    status: str
    request: dict[str, Any]
    scope: str
    by: str
    at: Instant
    capabilities: list[str] | None = None
    grants: list[str] | None = None
    processed: int = 0
    total: int = 0
    position: str = ""
    phase: str = ""
    problems: list[Problem] = []
    problem_count: int = 0
    counts: dict[str, int] = {}
    summary: dict[str, Any] = {}
    updated_at: Instant | None = None
    retries: int = 0

    @property
    def is_dead_letter(self) -> bool:
        """Whether it was tried as often as it may be, and waits for a person."""
        return self.status == "failed" and self.summary.get("error_code") == DEAD_LETTER

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def fraction(self) -> float:
        """How much of it is done."""
        if self.status == "completed":
            return 1.0
        return min(1.0, self.processed / self.total) if self.total else 0.0


def job_key(job_id: str) -> bytes:
    """Jobs by their raw id; empty when the text is no job's id."""
    for prefix in PREFIX_OF.values():
        raw = parse_id(prefix, job_id)
        if raw is not None:
            return raw
    return b""


def project(entry: Entry, view: View) -> Iterator[Change]:
    """What one entry says of jobs."""
    command = entry.body.command if isinstance(entry.body, Directive) else None
    if isinstance(command, StartJob):
        row = JobRow(
            job_id=command.job_id,
            kind=command.kind,
            status="running",
            request=command.request,
            scope=entry.scope,
            by=entry.caller,
            at=entry.recorded_at,
            capabilities=command.capabilities,
            grants=command.grants,
        )
        yield Put(table="jobs", key=job_key(command.job_id), value=row)
        return
    if not isinstance(command, (MoveJob, CancelJob, EndJob, RetryJob)):
        return
    key = job_key(command.job_id)
    known = view.get("jobs", key)
    if known is None:
        return
    if known.status == "failed" if isinstance(command, RetryJob) else not known.is_over:
        moved = _moved(known, command)
        value = msgspec.structs.replace(moved, updated_at=entry.recorded_at)
        yield Put(table="jobs", key=key, value=value)


def _moved(row: JobRow, command: MoveJob | CancelJob | EndJob | RetryJob) -> JobRow:
    if isinstance(command, RetryJob):
        again = row.retries + 1
        return msgspec.structs.replace(row, status="running", summary={}, retries=again)
    if isinstance(command, CancelJob):
        return msgspec.structs.replace(row, status="cancelling")
    if isinstance(command, EndJob):
        return msgspec.structs.replace(row, status=command.status, summary=command.summary)
    kept = [*row.problems, *command.problems][: limits.JOB_PROBLEMS_MAX]
    return msgspec.structs.replace(
        row,
        processed=command.processed,
        total=command.total,
        position=command.position,
        phase=command.phase or row.phase,
        problems=kept,
        problem_count=row.problem_count + len(command.problems),
        counts=command.counts or row.counts,
    )


JOBS = Projector(
    name="jobs", version=2, tables={"jobs": JobRow}, project=project, reads_experiences=False
)
