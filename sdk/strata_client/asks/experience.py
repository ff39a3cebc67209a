"""Written by scripts/client: asks of experience."""

from typing import Literal, TypedDict


class WriteQuery(TypedDict, total=False):
    """How far to wait before answering."""

    wait: Literal["captured", "indexed", "consolidated", "settled"] | None
    wait_ms: int


class StatusQuery(TypedDict, total=False):
    """Which write: by key or by id."""

    idempotency_key: str | None
    event_id: str | None
