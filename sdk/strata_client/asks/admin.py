"""Written by scripts/client: asks of admin."""

from typing import TypedDict


class FlushQuery(TypedDict, total=False):
    """How long to wait for the views."""

    wait_ms: int
