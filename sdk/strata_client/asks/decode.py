"""Written by scripts/client: asks of decode."""

from typing import TypedDict


class PageQuery(TypedDict, total=False):
    """Which page of a listing without filters."""

    limit: int
    cursor: str | None
