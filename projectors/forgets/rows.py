"""What is remembered of what was forgotten, rolled back or held?"""

import msgspec

from schemas.times import Instant


class ForgetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call that forgot something (`forgets`, by its audit id): its entries, and its state."""

    audit_id: str
    cascade: str
    scope: str
    by: str
    at: Instant
    offsets: list[int]
    counts: dict[str, int]
    reverted: bool = False


class GoneRow(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was forgotten (`gone`, by its sixteen bytes): asked for by id, it says so."""

    audit_id: str


class RollbackRow(msgspec.Struct, frozen=True, kw_only=True):
    """Events that were taken out of derivation together (`rollbacks`, by id)."""

    rollback_id: str
    by: str
    at: Instant
    offsets: list[int]
    note: str | None = None
    reverted: bool = False


class HoldRow(msgspec.Struct, frozen=True, kw_only=True):
    """A legal hold (`holds`, by the scope's number)."""

    path: str
    by: str
    at: Instant
    reason: str | None = None
