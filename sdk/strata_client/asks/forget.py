"""Written by scripts/client: asks of forget."""

from datetime import datetime
from typing import Literal, TypedDict

from strata_client.asks.temporal import Between


class Selector(TypedDict, total=False):
    """Which records are meant: all filters that are set must match."""

    about_subject: str | None
    about_entity: str | None
    predicate: str | None
    memory_ids: list[str]
    valid_during: Between | list[str | datetime | None] | None
    recorded_during: Between | list[str | datetime | None] | None
    created_during: Between | list[str | datetime | None] | None


class ForgetRequest(TypedDict, total=False):
    """What is to be forgotten in one scope. `reason` is the published client's `audit_note`."""

    scope: str
    layers: list[Literal["events", "episodes", "facts", "beliefs", "understanding"]]
    selector: Selector
    cascade: Literal["derived_only", "redact_events"]
    confirm_all: bool
    audit_note: str | None
    reason: str | None
    from_preview_id: str | None
    idempotency_key: str | None


class RebuildQuery(TypedDict, total=False):
    """Whether what was forgotten is derived again."""

    ignore_forgets: bool


class RollbackRequest(TypedDict, total=False):
    """Whose events are not to be derived from: all that is said must hold of an event."""

    scope: str | None
    caller: str | None
    actor: str | None
    recorded_from: str | datetime | None
    recorded_to: str | datetime | None
    dry_run: bool
    audit_note: str | None


class HoldRequest(TypedDict, total=False):
    """A legal hold begins or ends."""

    held: bool
    reason: str | None
