"""What is remembered of scopes, policies, cancellations, parked entries and revoked tokens?"""

import msgspec

from schemas.entry import Member, ScopePolicies
from schemas.policy import PolicyDocument
from schemas.times import Instant


class ScopeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A registered scope. The first write registers it, with the caller as owner (001 §3.4.4).

    `detached` is what a dropped registration leaves where events were kept: no members, so that
    they are reached from the scopes above it only, and not by whoever writes there next.
    """

    path: str
    members: list[Member]
    auto_provisioned: bool
    created_at: Instant
    created_by: str
    policies: ScopePolicies | None = None
    updated_at: Instant | None = None
    detached: bool = False


class CancelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cancelled event: left out of recall, and of the stages that had not run."""

    offset: int
    stages: list[str]
    by: str
    at: Instant
    note: str | None = None


class ParkRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a projector could not take."""

    projector: str
    offset: int
    event_id: str
    error: str
    attempts: int
    at: Instant


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a tier says, and who said it."""

    document: PolicyDocument
    by: str
    at: Instant


class ActorPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """Every actor's document of a tenant, in one row: actors are personal and stay out of keys."""

    actors: dict[str, PolicyRow]


class RevokedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A revoked token, until it would have expired anyway."""

    jti: str
    expires_at: Instant
    by: str
    at: Instant
    reason: str | None = None
