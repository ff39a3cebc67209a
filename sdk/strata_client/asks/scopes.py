"""Written by scripts/client: asks of scopes."""

from typing import Literal, Required, TypedDict

from strata_client.asks.entry import Member, ScopePolicies


class RegisterRequest(TypedDict, total=False):
    """A scope to register; `owner` is how the published client names the one member it gives."""

    members: list[Member] | None
    policies: ScopePolicies | None
    owner: str | None
    idempotency_key: str | None


class ScopesQuery(TypedDict, total=False):
    """One scope by its path, or a page of them: paths hold slashes, so they are parameters."""

    prefix: str | None
    auto_provisioned: bool | None
    limit: int | None
    cursor: str | None
    path: str | None


class ListQuery(TypedDict, total=False):
    """Filters of a page of scopes."""

    prefix: str | None
    auto_provisioned: bool | None
    limit: int | None
    cursor: str | None


class PathQuery(TypedDict, total=False):
    """Which scope."""

    path: Required[str]


class MembersRequest(TypedDict, total=False):
    """The whole list of members; the server works out what changed."""

    members: Required[list[Member]]


class DeleteQuery(TypedDict, total=False):
    """Which scope, and what becomes of its records."""

    path: Required[str]
    records: Literal["keep", "forget"] | None


class PruneRequest(TypedDict, total=False):
    """Auto-provisioned scopes without a write for so long; asked only, unless `dry_run` is off."""

    older_than: Required[str]
    dry_run: bool
    limit: int
    cursor: str | None
