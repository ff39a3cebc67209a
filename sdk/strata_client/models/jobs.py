"""Written by scripts/client: models of jobs."""

from datetime import datetime

from msgspec import Struct


class JobProblem(Struct, frozen=True, kw_only=True):
    """A row that could not be taken; the others were."""

    line: int
    error: str
    detail: str = ""


class JobItem(Struct, frozen=True, kw_only=True):
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
    created_at: datetime
    scope: str = ""
    phase: str = ""
    error_code: str | None = None
    message: str | None = None
    updated_at: datetime | None = None


class JobList(Struct, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    items: list[JobItem]
    next_cursor: str | None
    has_more: bool
