"""Written by scripts/client: models of scopes."""

from datetime import datetime

from msgspec import Struct

from strata_client.models.entry import Member, ScopePolicies


class ScopeRecord(Struct, frozen=True, kw_only=True):
    """A scope as it stands. `created_by` is the entry that made it."""

    path: str
    owner: str | None
    members: list[Member]
    member_count: int
    policies: ScopePolicies | None
    registered: bool
    auto_provisioned: bool
    created_at: datetime
    created_by: str
    updated_at: datetime | None


class ScopePage(Struct, frozen=True, kw_only=True):
    """A page of registered scopes, in the order in which they came to be."""

    items: list[ScopeRecord]
    next_cursor: str | None
    has_more: bool


class RoleChange(Struct, frozen=True, kw_only=True):
    """A member whose role is another now."""

    actor: str
    role: str
    role_before: str


class MembersReceipt(Struct, frozen=True, kw_only=True):
    """The members now, and how that differs from before."""

    path: str
    members: list[Member]
    added: list[Member]
    removed: list[Member]
    changed: list[RoleChange]


class RecordCounts(Struct, frozen=True, kw_only=True):
    """How much a scope holds; very many are not counted to the end, and `at_least` says so."""

    events: int
    at_least: bool = False


class PruneCandidate(Struct, frozen=True, kw_only=True):
    """A scope that nobody has written to for long."""

    path: str
    last_write: datetime | None
    records: RecordCounts


class PruneReceipt(Struct, frozen=True, kw_only=True):
    """One page of candidates: `total` of them, `pruned` of which lost their registration."""

    candidates: list[PruneCandidate]
    total: int
    pruned: int
    next_cursor: str | None
    has_more: bool
