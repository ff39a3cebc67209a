"""Written by scripts/client: asks of jobs."""

from typing import Literal, TypedDict


class JobListRequest(TypedDict, total=False):
    """Which jobs to list."""

    status: Literal["running", "cancelling", "completed", "failed", "cancelled"] | None
    kind: Literal["import", "export", "erasure", "synthesis"] | None
    limit: int
    cursor: str | None
