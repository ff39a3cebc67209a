"""Watching experiences become memory (001 §8.9, §13)."""

from typing import Any, Final, Unpack

import msgspec

from strata_client import asks, models
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, listing, method, streaming
from strata_client.models import (
    CancelReceipt,
    LifecyclePage,
    LifecycleRow,
    MemoryEventState,
    WriteStatus,
)
from strata_client.sse import Frame
from strata_client.talk import Ending


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """An announcement of a kind that this client does not know yet."""

    event: str
    lifecycle_id: str = ""
    event_id: str | None = None
    scope: str | None = None
    payload: dict[str, Any] = {}


LifecycleEvent = (
    models.Captured
    | models.Extracted
    | models.Indexed
    | models.Consolidated
    | models.Compressed
    | models.Cancelled
    | models.Parked
    | models.Forgotten
    | models.PolicyChanged
    | models.PolicyRevoked
    | models.ImportProgress
    | models.ImportComplete
    | models.ImportFailed
    | models.ExportProgress
    | models.ExportComplete
    | models.ErasureProgress
    | models.ErasureComplete
    | models.Lagging
    | Announcement
)

_KINDS: Final[dict[str, Any]] = {
    kind.event: kind for kind in LifecycleEvent.__args__ if kind is not Announcement
}
_JOBS: Final = {
    "import_id": "import_complete",
    "export_id": "export_complete",
    "erasure_id": "erasure_complete",
}
"""The announcement after which there is nothing more to hear of a job."""


def _announcement(frame: Frame) -> LifecycleEvent:
    kind = _KINDS.get(frame.event)
    if kind is not None:
        known: LifecycleEvent = msgspec.json.decode(frame.data, type=kind)
        return known
    payload = msgspec.json.decode(frame.data, type=dict[str, Any])
    named = {name: payload.get(name) for name in ("event_id", "scope")}
    return Announcement(event=frame.event, lifecycle_id=frame.id or "", payload=payload, **named)


class Lifecycle(Group[M_co]):
    """What becomes of what was written."""

    @streaming("GET /v1/lifecycle/stream", _announcement)
    def stream(self, **query: Unpack[asks.StreamQuery]) -> tuple[Ask, Ending]:
        """Announcements as they happen, also across lost connections.

        That of an import, an export or an erasure ends when the job does; others go on until they
        are closed. Without a scope or a job it is the client's scope that is heard.
        """
        narrowed = any(name in query for name in ("event_id", "batch_id", "job_id", *_JOBS))
        said = dict(query) if narrowed else self._scoped(query)
        last = {end for name, end in _JOBS.items() if name in query} | {"policy_revoked"}
        return Ask(query=said), Ending(frozenset(last))

    @listing("GET /v1/lifecycle", LifecyclePage)
    def list(self, **query: Unpack[asks.LifecycleQuery]) -> Ask:
        """Announcements of the last hour."""
        return Ask(query=query)

    @method("GET /v1/lifecycle/event/{lifecycle_id}", LifecycleRow)
    def get(self, lifecycle_id: str) -> Ask:
        """One announcement."""
        return Ask((lifecycle_id,))

    @method("GET /v1/lifecycle/memory-event/{event_id}", MemoryEventState)
    def memory_event(self, event_id: str) -> Ask:
        """How far one event has come."""
        return Ask((event_id,))

    @method("POST /v1/lifecycle/memory-event/{event_id}/cancel", CancelReceipt, is_safe=True)
    def cancel(self, event_id: str, **body: Unpack[asks.CancelRequest]) -> Ask:
        """Derive nothing more from an event, and leave it out of recall."""
        return Ask((event_id,), body=present(body))


class Writes(Group[M_co]):
    """What became of a write whose answer was lost."""

    @method("GET /v1/experience/status", WriteStatus)
    def status(self, **query: Unpack[asks.StatusQuery]) -> Ask:
        """By its idempotency key or its event id."""
        return Ask(query=query)

    @method("GET /v1/experience/by-idempotency-key/{key:path}", WriteStatus)
    def by_key(self, key: str) -> Ask:
        """By its idempotency key."""
        return Ask((key,))
