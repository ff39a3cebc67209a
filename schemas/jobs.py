"""What is long work, and how far has it come?  Jobs: their state is in the log."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.times import Instant

JobKind = Literal["import", "export", "erasure", "synthesis"]
JobStatus = Literal["running", "cancelling", "completed", "failed", "cancelled"]
PREFIX_OF: dict[str, str] = {
    "import": "imp",
    "export": "exp",
    "erasure": "erasure",
    "synthesis": "job",
}
"""The id of a job says what it is (001 §3.6)."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that could not be taken; the others were (001 §8.11.6)."""

    line: int
    error: str
    detail: str = ""


class StartJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="start_job"):
    """Long work begins, with what its caller may: it goes on when the caller is gone."""

    job_id: str
    kind: JobKind
    request: dict[str, Any]
    capabilities: list[str] | None = None
    grants: list[str] | None = None


class MoveJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="move_job"):
    """How far it has come: from `position` on it is resumed after a restart."""

    job_id: str
    kind: JobKind
    processed: int
    total: int
    position: str = ""
    phase: str = ""
    problems: list[Problem] = []
    counts: dict[str, int] = {}


class CancelJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="cancel_job"):
    """It should stop where it can."""

    job_id: str


class RetryJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="retry_job"):
    """It failed, and is to be run on from where it was."""

    job_id: str


class EndJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="end_job"):
    """It is over, one way or another."""

    job_id: str
    kind: JobKind
    status: Literal["completed", "failed", "cancelled"]
    summary: dict[str, Any] = {}


# ── for operators ────────────────────────────────────────────────────────────────────────────


class JobListRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to list."""

    status: JobStatus | None = None
    kind: JobKind | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)] = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class JobItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as an operator sees it: how far it is, and why it failed."""

    job_id: str
    kind: str
    status: str
    is_dead_letter: bool
    by: str
    processed: int
    total: int
    retries: int
    problems: int
    created_at: Instant
    scope: str = ""
    phase: str = ""
    error_code: str | None = None
    message: str | None = None
    updated_at: Instant | None = None


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    items: list[JobItem]
    next_cursor: str | None
    has_more: bool
