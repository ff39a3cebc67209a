"""Which scopes exist, which events were cancelled, which entries are parked?"""

from collections.abc import Iterator

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from schemas.entry import Cancel, Directive, Entry, Experience, Park, Unpark
from schemas.times import Instant


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """An actor's role in a scope."""

    actor: str
    role: str


class ScopeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A registered scope. The first write registers it, with the caller as owner (001 §3.4.4)."""

    path: str
    members: list[Member]
    auto_provisioned: bool
    created_at: Instant
    created_by: str


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


def scope_key(scope_no: int) -> bytes:
    """Scopes are kept by number: names are personal and stay out of keys."""
    return scope_no.to_bytes(4, "big")


def park_key(projector: str, offset: int) -> bytes:
    """Parked entries by projector, in log order."""
    return projector.encode() + b"\0" + offset.to_bytes(8, "big")


def project(entry: Entry, view: View) -> Iterator[Change]:
    """Control state that follows from one entry."""
    match entry.body:
        case Experience():
            yield from _registration(entry, view)
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
        case _:
            return


def _registration(entry: Entry, view: View) -> Iterator[Change]:
    key = scope_key(entry.scope_no)
    if view.get("scopes", key) is not None:
        return
    row = ScopeRow(
        path=entry.scope,
        members=[Member(actor=entry.caller, role="owner")],
        auto_provisioned=True,
        created_at=entry.recorded_at,
        created_by=entry.event_id,
    )
    yield Put(table="scopes", key=key, value=row)


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
    version=1,
    tables={"scopes": ScopeRow, "cancelled": CancelRow, "parked": ParkRow},
    project=project,
)
