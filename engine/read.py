"""What is in the log, and how far has it come?  Events, pages of them, and the state of a write."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from engine import policy
from engine.annotator import NAME as ANNOTATOR
from engine.daemon import stage_elapsed_ms
from engine.lifecycle import stages_key, unpack_stages
from engine.phrases import window_of
from engine.reach import Reach, View, reach_of
from engine.state.names import TENANT
from engine.state.rows import Row
from engine.temporal import Answer, Window
from engine.told import actor_of, subject_of, told_by
from projectors.derives.rows import DerivesRow
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Entry
from schemas.envelope import Envelope
from schemas.errors import InvalidParameter, NotFound, ResourceDeleted
from schemas.ids import format_id, parse_id, uuid7_instant_us
from schemas.layers import Event
from schemas.lifecycle import STAGE_ORDER
from schemas.pack import Traversed
from schemas.reads import EventPage
from schemas.receipts import WriteStatus
from schemas.temporal import TemporalBlock
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

REQUIRED_STAGES = STAGE_ORDER[:4]
VALIDITY_IGNORED: Final = "valid_during_ignored_for_view_raw"
"""001 §18.2.17: events have no validity, and the raw view does not pretend they had."""
_FAMILIES = ("/v1/experience", "/v1/experience/bulk")


class EventsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events (001 §8.7.1). `since` and `until` are about `observed_at`.

    Of the moments, `as_of` and `recorded_during` are about `recorded_at`; a window of validity is
    about `observed_at`, the one moment at which an event was so.
    """

    scope: str
    view: View = "local"
    since: datetime | None = None
    until: datetime | None = None
    recorded_since: datetime | None = None
    recorded_until: datetime | None = None
    observed_actor: str | None = None
    subject: str | None = None
    modality: str | None = None
    labels: tuple[str, ...] = ()
    temporal: TemporalBlock = TemporalBlock()
    order: Literal["newest", "oldest"] = "newest"
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class EntryState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one entry has come."""

    stages_completed: list[str]
    stages_pending: list[str]
    stages_cancelled: list[str]
    lifecycle_ids: list[str]
    derives: list[str]
    excluded: bool
    errors: list[dict[str, Any]]
    elapsed_ms: dict[str, float]
    partial_reason: str | None = None

    @property
    def status(self) -> str:
        """The last stage that was announced."""
        return self.stages_completed[-1] if self.stages_completed else "captured"


def entry_state(engine: "Engine", tenant_no: int, offset: int, entry_id: bytes) -> EntryState:
    """The stages an entry has had, those it waits for, and those it will never have."""
    # A stage counts once its announcement is public: before that a crash could take it back.
    public_us = engine.lifecycle.released_us
    raws = [
        raw if raw is not None and uuid7_instant_us(raw) <= public_us else None
        for raw in unpack_stages(engine.kv.get("stages", stages_key(tenant_no, offset)))
    ]
    done = [stage for stage, raw in zip(STAGE_ORDER, raws, strict=False) if raw is not None]
    cancel = engine.inline.get(tenant_no, "cancelled", offset.to_bytes(8, "big"))
    cancelled = [s for s in cancel.stages if s in REQUIRED_STAGES] if cancel is not None else []
    derives = engine.staged.get(tenant_no, "derives", entry_id)
    partial_reason, unread = _annotation(engine, offset)
    return EntryState(
        stages_completed=done or ["captured"],
        stages_pending=[s for s in REQUIRED_STAGES if s not in done and s not in cancelled],
        stages_cancelled=cancelled,
        lifecycle_ids=[format_id("lce", raw) for raw in raws if raw is not None],
        derives=derives.ids if derives is not None else [],
        excluded=cancel is not None,
        errors=[*_errors(engine, tenant_no, offset), *unread],
        elapsed_ms=stage_elapsed_ms(raws),
        partial_reason=partial_reason,
    )


def _annotation(engine: "Engine", offset: int) -> tuple[str | None, list[dict[str, Any]]]:
    """What is still to be heard of an entry from the model, and why it was not heard yet."""
    outlook = None if engine.annotator is None else engine.annotator.outlook(offset)
    if outlook is None:
        return None, []
    reason, failed = outlook
    if failed is None:
        return reason, []
    error: dict[str, Any] = {
        "projector": ANNOTATOR,
        "error": failed.error,
        "attempts": failed.tries,
        "_partial": True,
    }
    if not failed.given_up:
        error["next_retry_at"] = from_us(failed.next_us)
    return reason, [error]


def _errors(engine: "Engine", tenant_no: int, offset: int) -> list[dict[str, Any]]:
    parked = (row for _, row in engine.inline.scan(tenant_no, "parked"))
    return [
        {"projector": row.projector, "error": row.error, "attempts": row.attempts}
        for row in parked
        if row.offset == offset
    ]


def find_event(engine: "Engine", tenant: str, event_id: str) -> tuple[int, int, bytes]:
    """(tenant number, offset, id) of an event; another tenant's id is not found (DESIGN §8.2)."""
    raw = parse_id("evt", event_id)
    tenant_no = engine.names.known(TENANT, 0, tenant)
    offset = None if raw is None or tenant_no is None else engine.directory.find(tenant_no, raw)
    if offset is None or offset > engine.log.head():
        raise NotFound(f"There is no event {event_id[:80]!r}.", event_id=event_id[:80])
    assert raw is not None
    assert tenant_no is not None
    return tenant_no, offset, raw


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def get_event(engine: "Engine", caller: Caller, event_id: str) -> Event:
    """One event by its id; a cancelled one too, with its flag."""
    policy.require(engine, caller, "scope.read.local")
    tenant_no, offset, _ = find_event(engine, caller.tenant, event_id)
    entry = engine.entry_of(engine.log.read_many([offset])[0])
    policy.require(engine, caller, "scope.read.local", entry.scope or None)
    if entry.body is None:
        raise ResourceDeleted(event_id=event_id)
    event = event_of(engine, tenant_no, entry)
    if event is None:
        raise NotFound(f"{event_id} is not an experience.", event_id=event_id)
    return event


def list_events(engine: "Engine", caller: Caller, request: EventsRequest) -> Answer:
    """A page of a scope's events, newest or oldest first."""
    policy.require_view(engine, caller, request.scope, request.view)
    question = (caller.tenant, msgspec.structs.replace(request, cursor=None, limit=0))
    newest = request.order == "newest"
    head = engine.log.head()
    position = head + 1 if newest else 0
    if request.cursor is not None:
        position = int.from_bytes(engine.cursors.read(request.cursor, *question), "big")
    tenant_no = engine.tenant_no(caller)
    window = window_of(engine, tenant_no, request.temporal, at="")
    reach = reach_of(engine, caller, tenant_no, request.scope, request.view)
    walk = _Walk(engine, tenant_no or 0, reach.numbers, newest=newest, head=head, position=position)
    items = walk.collect(request.limit, _wanted(request, window))
    more = walk.has_more()
    page = EventPage(
        items=items,
        next_cursor=engine.cursors.make(walk.position.to_bytes(8, "big"), *question)
        if more
        else None,
        has_more=more,
        scopes_traversed=_traversed(engine, tenant_no, reach, request.view, items),
    )
    is_ignored = request.view == "raw" and bool(window.valid_during)
    return Answer(page, (*window.warnings, *((VALIDITY_IGNORED,) if is_ignored else ())))


def get_write_status(
    engine: "Engine", caller: Caller, idempotency_key: str | None, event_id: str | None
) -> WriteStatus:
    """What became of a write, by the caller's own key or by the event's id."""
    policy.require(engine, caller, "scope.read.local")
    if (idempotency_key is None) == (event_id is None):
        raise InvalidParameter(
            field="idempotency_key", reason="give either idempotency_key or event_id"
        )
    if event_id is not None:
        tenant_no, offset, raw = find_event(engine, caller.tenant, event_id)
    else:
        tenant_no, offset, raw = _by_key(engine, caller, str(idempotency_key))
    entry = engine.entry_of(engine.log.read_many([offset])[0])
    policy.require(engine, caller, "scope.read.local", entry.scope or None)
    state = entry_state(engine, tenant_no, offset, raw)
    return WriteStatus(
        event_id=entry.event_id,
        status=state.status,
        wal_offset=offset,
        scope=entry.scope,
        stages_completed=state.stages_completed,
        stages_pending=state.stages_pending,
        lifecycle_stream=f"/v1/lifecycle/stream?event_id={entry.event_id}",
        idempotency_key=entry.envelope.idempotency_key if entry.envelope else None,
        batch_id=getattr(entry.body, "batch_id", None),
        excluded_from_recall=state.excluded,
    )


def _by_key(engine: "Engine", caller: Caller, key: str) -> tuple[int, int, bytes]:
    tenant_no = engine.tenant_no(caller)
    if tenant_no is not None:
        keys = engine.vault.tenant(tenant_no)
        for family in _FAMILIES:
            idem = keys.mac(caller.actor.encode(), family.encode(), key.encode())
            found = engine.directory.replayed(tenant_no, idem)
            if found is not None and found[0] <= engine.log.head():
                header = next(engine.log.headers(found[0], found[0] + 1))[0]
                return tenant_no, found[0], header.id
    raise NotFound("No write of this caller has that key.", idempotency_key=key[:80])


# ── pages ────────────────────────────────────────────────────────────────────────────────────


def _traversed(
    engine: "Engine", tenant_no: int | None, reach: Reach, view: View, items: list[Event]
) -> list[Traversed] | UnsetType:
    """What each scope on the way gave, and how much lies where the caller may not look."""
    if view not in policy.TRAVERSALS:
        return UNSET
    gave = Counter(item.scope for item in items)
    read = [Traversed(scope=place.path, items=gave.get(place.path, 0)) for place in reach.places]
    closed = [
        Traversed(
            scope=barred.path,
            denied=True,
            item_count=_count(engine, tenant_no or 0, barred.number),
            denied_reason=barred.reason,
        )
        for barred in reach.barred
    ]
    return read + closed


def _count(engine: "Engine", tenant_no: int, scope_no: int) -> int:
    found = engine.directory.scope_offsets(
        tenant_no, scope_no, after=0, newest_first=False, limit=limits.COUNTED_MAX
    )
    return len(found)


class _Walk:
    """Reads scopes' entries merged in log order, from a position on."""

    def __init__(
        self,
        engine: "Engine",
        tenant_no: int,
        scopes: list[int],
        *,
        newest: bool,
        head: int,
        position: int,
    ) -> None:
        self._engine = engine
        self._tenant_no = tenant_no
        self._scopes = scopes
        self._newest = newest
        self._head = head
        self.position = position

    def _next(self, count: int) -> list[int]:
        """The next offsets after the position, over all scopes, in reading order."""
        merged: list[int] = []
        for scope_no in self._scopes:
            merged += self._engine.directory.scope_offsets(
                self._tenant_no,
                scope_no,
                after=self.position,
                newest_first=self._newest,
                limit=count,
            )
        merged.sort(reverse=self._newest)
        return [offset for offset in merged if offset <= self._head][:count]

    def collect(self, limit: int, wanted: Callable[[Entry, Envelope], bool]) -> list[Event]:
        """Up to `limit` events that are wanted; stops early after looking at very many."""
        items: list[Event] = []
        looked = 0
        while len(items) < limit and looked < limits.PAGE_SCAN_MAX:
            offsets = self._next(min(limit, 256))
            if not offsets:
                break
            for entry in self._entries(offsets):
                looked += 1
                self.position = entry.offset
                if entry.envelope is None or not wanted(entry, entry.envelope):
                    continue
                event = event_of(self._engine, self._tenant_no, entry)
                if event is not None and not event.excluded_from_recall:
                    items.append(event)
                    if len(items) == limit:
                        break
        return items

    def _entries(self, offsets: list[int]) -> Iterator[Entry]:
        rows: list[Row] = self._engine.log.read_many(offsets)
        return (self._engine.entry_of(row) for row in rows)

    def has_more(self) -> bool:
        """Whether anything lies beyond the position."""
        return bool(self._next(1))


def _wanted(request: EventsRequest, window: Window) -> Callable[[Entry, Envelope], bool]:
    """The filters of one request as a test of an entry; a filter not set is not tested."""
    tests: list[Callable[[Entry, Envelope], bool]] = []
    if request.temporal.as_of is not None or window.recorded_during:
        tests.append(
            lambda entry, _: (
                entry.recorded_at <= window.known_at
                and all(span.contains(entry.recorded_at) for span in window.recorded_during)
            )
        )
    if window.valid_during and request.view != "raw":
        tests.append(
            lambda _, envelope: all(
                span.contains(envelope.context.observed_at) for span in window.valid_during
            )
        )
    since, until = request.since, request.until
    if since is not None:
        tests.append(lambda _, envelope: envelope.context.observed_at >= since)
    if until is not None:
        tests.append(lambda _, envelope: envelope.context.observed_at < until)
    recorded_since, recorded_until = request.recorded_since, request.recorded_until
    if recorded_since is not None:
        tests.append(lambda entry, _: entry.recorded_at >= recorded_since)
    if recorded_until is not None:
        tests.append(lambda entry, _: entry.recorded_at < recorded_until)
    if request.observed_actor is not None:
        tests.append(lambda entry, e: actor_of(entry, e).id == request.observed_actor)
    if request.subject is not None:
        tests.append(lambda entry, e: subject_of(entry, e).id == request.subject)
    if request.modality is not None:
        tests.append(lambda _, envelope: envelope.modality == request.modality)
    if request.labels:
        labels = set(request.labels)
        tests.append(lambda _, envelope: labels <= set(envelope.context.labels))
    return lambda entry, envelope: all(test(entry, envelope) for test in tests)


def event_of(engine: "Engine", tenant_no: int, entry: Entry) -> Event | None:
    """The record of an experience (001 §7.1), and what has become of it."""
    event = told_by(entry)
    return None if event is None else as_it_stands(engine, tenant_no, entry.id, event)


def as_it_stands(engine: "Engine", tenant_no: int, raw: bytes, event: Event) -> Event:
    """An event with what followed from it, and whether it was cancelled."""
    derives = engine.staged.get(tenant_no, "derives", raw)
    place = event.wal_offset.to_bytes(8, "big")
    return with_news(event, derives, engine.inline.get(tenant_no, "cancelled", place) is not None)


def with_news(event: Event, derives: DerivesRow | None, is_cancelled: bool) -> Event:
    """An event with the row of what followed from it, if there is one, and its cancellation."""
    if derives is None and not is_cancelled:
        return event
    return msgspec.structs.replace(
        event,
        derives=event.derives if derives is None else derives.ids,
        excluded_from_recall=is_cancelled,
    )
