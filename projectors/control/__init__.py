"""Which scopes exist, what does policy say, what was cancelled, parked, revoked?"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from projectors.control.rows import (
    ActorPolicies,
    CancelRow,
    ParkRow,
    PolicyRow,
    RevokedRow,
    ScopeRow,
)
from schemas.entry import (
    KINDS,
    Cancel,
    Directive,
    DropScope,
    Entry,
    Experience,
    Member,
    Park,
    RegisterScope,
    Revoke,
    SetMembers,
    SetPolicy,
    Unpark,
)

_EXPERIENCE: Final = KINDS[Experience]
DEPLOYMENT_KEY: Final = b"deployment"
TENANT_KEY: Final = b"tenant"


def policy_key(scope_no: int) -> bytes:
    """A scope's document, by the scope's number."""
    return b"scope" + scope_no.to_bytes(4, "big")


def revoked_key(jti: str) -> bytes:
    """Token ids are an issuer's: any text, so they are kept by hash."""
    return sha256(jti.encode()).digest()[:16]


def scope_key(scope_no: int) -> bytes:
    """Scopes are kept by number: names are personal and stay out of keys."""
    return scope_no.to_bytes(4, "big")


def park_key(projector: str, offset: int) -> bytes:
    """Parked entries by projector, in log order."""
    return projector.encode() + b"\0" + offset.to_bytes(8, "big")


def project(entry: Entry, view: View) -> Iterable[Change]:
    """Control state that follows from one entry."""
    # Of an erased experience the header still says who wrote where first: the scope was theirs, and
    # stays so.
    return _registration(entry, view) if entry.kind == _EXPERIENCE else _commanded(entry, view)


def _commanded(entry: Entry, view: View) -> Iterator[Change]:
    match entry.body:
        case Directive(command=Cancel() as cancel):
            yield _cancellation(entry, cancel)
        case Directive(command=Park() as park):
            row = ParkRow(
                projector=park.projector,
                offset=park.offset,
                event_id=park.event_id,
                error=park.error,
                attempts=park.attempts,
                at=entry.recorded_at,
            )
            yield Put(table="parked", key=park_key(park.projector, park.offset), value=row)
        case Directive(command=Unpark() as unpark):
            for offset in unpark.offsets:
                yield Drop(table="parked", key=park_key(unpark.projector, offset))
        case Directive(command=(RegisterScope() | SetMembers() | DropScope()) as change):
            yield from _scope_change(entry, change, view)
        case Directive(command=SetPolicy() as said):
            yield from _policy_change(entry, said, view)
        case Directive(command=Revoke() as revoke):
            revoked = RevokedRow(
                jti=revoke.jti,
                expires_at=revoke.expires_at,
                by=entry.caller,
                at=entry.recorded_at,
                reason=revoke.reason,
            )
            yield Put(table="revoked", key=revoked_key(revoke.jti), value=revoked)
        case _:
            return


def _scope_change(
    entry: Entry, command: RegisterScope | SetMembers | DropScope, view: View
) -> Iterator[Change]:
    key = scope_key(entry.scope_no)
    known = view.get("scopes", key)
    if isinstance(command, DropScope):
        if known is not None:
            yield _dropped(entry, command, key, known)
        if view.get("policies", policy_key(entry.scope_no)) is not None:
            yield Drop(table="policies", key=policy_key(entry.scope_no))
        return
    row = known or ScopeRow(
        path=entry.scope,
        members=[],
        auto_provisioned=True,
        created_at=entry.recorded_at,
        created_by=entry.event_id,
    )
    policies = command.policies if isinstance(command, RegisterScope) else row.policies
    yield Put(
        table="scopes",
        key=key,
        value=msgspec.structs.replace(
            row,
            members=command.members,
            policies=policies,
            auto_provisioned=False,
            updated_at=entry.recorded_at,
            detached=False,
        ),
    )


def _dropped(entry: Entry, command: DropScope, key: bytes, known: ScopeRow) -> Change:
    """What was its members' does not become anyone's when the registration goes (001 §8.8.4)."""
    if command.records == "none" or (known.auto_provisioned and not known.detached):
        return Drop(table="scopes", key=key)
    left = msgspec.structs.replace(
        known, members=[], policies=None, detached=True, updated_at=entry.recorded_at
    )
    return Put(table="scopes", key=key, value=left)


def _policy_change(entry: Entry, change: SetPolicy, view: View) -> Iterator[Change]:
    row = PolicyRow(document=change.document, by=entry.caller, at=entry.recorded_at)
    if change.tier == "actor":
        known = view.get("actor_policies", b"")
        actors = dict(known.actors) if known is not None else {}
        actors[change.target] = row
        yield Put(table="actor_policies", key=b"", value=ActorPolicies(actors=actors))
        return
    keys = {"deployment": DEPLOYMENT_KEY, "tenant": TENANT_KEY}
    key = keys.get(change.tier) or policy_key(entry.scope_no)
    yield Put(table="policies", key=key, value=row)


def _registration(entry: Entry, view: View) -> tuple[Change, ...]:
    key = scope_key(entry.scope_no)
    if view.get("scopes", key) is not None:
        return ()
    row = ScopeRow(
        path=entry.scope,
        members=[Member(actor=entry.caller, role="owner")],
        auto_provisioned=True,
        created_at=entry.recorded_at,
        created_by=entry.event_id,
    )
    return (Put(table="scopes", key=key, value=row),)


def _cancellation(entry: Entry, cancel: Cancel) -> Change:
    row = CancelRow(
        offset=cancel.offset,
        stages=cancel.stages,
        by=entry.caller,
        at=entry.recorded_at,
        note=cancel.note,
    )
    return Put(table="cancelled", key=cancel.offset.to_bytes(8, "big"), value=row)


CONTROL = Projector(
    name="control",
    version=2,
    tables={
        "scopes": ScopeRow,
        "cancelled": CancelRow,
        "parked": ParkRow,
        "policies": PolicyRow,
        "actor_policies": ActorPolicies,
        "revoked": RevokedRow,
    },
    project=project,
    concerns=lambda _: False,  # the first of a scope registers it, whatever it says
)
