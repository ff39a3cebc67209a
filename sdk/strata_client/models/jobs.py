"""Written by scripts/client: models of jobs."""

from msgspec import Struct


class JobProblem(Struct, frozen=True, kw_only=True):
    """A row that could not be taken; the others were."""

    line: int
    error: str
    detail: str = ""
