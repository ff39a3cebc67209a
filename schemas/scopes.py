"""What is said to and of a scope?  Registering, members, listing and pruning (001 §8.8)."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.entry import Member, ScopePolicies
from schemas.envelope import Duration, IdempotencyKey
from schemas.scope import ActorId, ScopePath
from schemas.times import Instant

BUILTIN_TYPES: Final = frozenset(
    {
        "org",
        "user",
        "agent",
        "service",
        "ws",
        "project",
        "team",
        "dept",
        "app",
        "global",
        "system",
    }
)
"""Types that may be registered by name: the closed set of 001 §18.2.19, and `app` of §3.4.1."""


class RegisterRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A scope to register; `owner` is how the published client names the one member it gives."""

    path: ScopePath
    members: list[Member] | None = None
    policies: ScopePolicies | None = None
    owner: ActorId | None = None
    idempotency_key: IdempotencyKey | None = None


class ScopeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A scope as it stands. `created_by` is the entry that made it.

    What was written to and is registered no more has no members, and `registered` is false.
    """

    path: ScopePath
    owner: ActorId | None
    members: list[Member]
    member_count: int
    policies: ScopePolicies | None
    registered: bool
    auto_provisioned: bool
    created_at: Instant
    created_by: str
    updated_at: Instant | None


class ScopePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of registered scopes, in the order in which they came to be."""

    items: list[ScopeRecord]
    next_cursor: str | None
    has_more: bool


class MembersRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole list of members; the server works out what changed."""

    members: list[Member]


class RoleChange(msgspec.Struct, frozen=True, kw_only=True):
    """A member whose role is another now."""

    actor: ActorId
    role: str
    role_before: str


class MembersReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The members now, and how that differs from before."""

    path: ScopePath
    members: list[Member]
    added: list[Member]
    removed: list[Member]
    changed: list[RoleChange]


class PruneRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Auto-provisioned scopes without a write for so long; asked only, unless `dry_run` is off."""

    older_than: Duration
    dry_run: bool = True
    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ITEMS_MAX)] = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class RecordCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much a scope holds; very many are not counted to the end, and `at_least` says so."""

    events: int
    at_least: bool = False


class PruneCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A scope that nobody has written to for long."""

    path: ScopePath
    last_write: Instant | None
    records: RecordCounts


class PruneReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One page of candidates: `total` of them, `pruned` of which lost their registration."""

    candidates: list[PruneCandidate]
    total: int
    pruned: int
    next_cursor: str | None
    has_more: bool
