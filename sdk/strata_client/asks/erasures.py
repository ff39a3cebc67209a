"""Written by scripts/client: asks of erasures."""

from typing import Required, TypedDict


class ErasureSelector(TypedDict, total=False):
    """Single memories instead of a whole scope."""

    memory_ids: list[str]


class ErasureRequest(TypedDict, total=False):
    """What is to be erased: a scope and all below it, or single memories there."""

    scope: str
    selector: ErasureSelector | None
    confirm_all: bool
    audit_note: str | None
    reason: str | None
    from_preview_id: str | None
    idempotency_key: str | None


class ManifestQuery(TypedDict, total=False):
    """Which page."""

    limit: int
    cursor: str | None


class HoldQuery(TypedDict, total=False):
    """Which scope."""

    path: Required[str]
