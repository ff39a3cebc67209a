"""What is happening now?  Subscribing to the lifecycle, catching up on it, and calling a stop."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from engine import policy
from engine.commit import Desk
from engine.lifecycle import REVOKED, Filter, Subscription, frame
from engine.read import REQUIRED_STAGES, entry_state, find_event
from engine.rows import About
from engine.state.names import TENANT
from projectors.control import revoked_key
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Cancel, Directive, Entry
from schemas.errors import (
    InvalidParameter,
    LifecycleExpired,
    NotFound,
    Overloaded,
)
from schemas.ids import format_id, parse_id, uuid7_first, uuid7_instant_us
from schemas.lifecycle import (
    EVENT_NAMES,
    CancelReceipt,
    CancelRequest,
    Lagging,
    LifecyclePage,
    LifecycleRow,
    MemoryEventState,
    PolicyRevoked,
    row_of,
)
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_CHUNK_BYTES = 64 * limits.KIB
_REPLAY_ROWS = 512
_SETTLED_US = 60_000_000  # no announcement waits as long as that to be released


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which announcements, and from where on."""

    scope: str | None = None
    view: str = "local"
    event_id: str | None = None
    batch_id: str | None = None
    events: tuple[str, ...] = ()
    jobs: dict[str, str] = {}
    since: str | None = None
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


def _filter(engine: "Engine", caller: Caller, request: WatchRequest, tenant_no: int) -> Filter:
    unknown = [name for name in request.events if name not in EVENT_NAMES]
    if unknown:
        raise InvalidParameter(field="events", reason=f"no lifecycle event {unknown[0]!r}")
    event = None if request.event_id is None else parse_id("evt", request.event_id) or b"none"
    return Filter(
        tenant_no=tenant_no,
        scope=request.scope,
        descend=request.view == "descend",
        event=event,
        batch_id=request.batch_id,
        names=frozenset(request.events) or None,
        jobs=request.jobs,
        visible=_Eyes(engine, caller).may_see,
    )


class _Eyes:
    """What one subscriber may see, remembered until policy changes."""

    def __init__(self, engine: "Engine", caller: Caller) -> None:
        self._engine = engine
        self._caller = caller
        self._seen: dict[str, bool] = {}
        self._epoch = -1

    def may_see(self, scope: str | None) -> bool:
        """Whether the subscriber may read this scope; what has none is not for bound tokens."""
        if scope is None:
            return self._caller.scopes is None
        policies = self._engine.policies
        if self._epoch != policies.epoch:
            self._seen.clear()
            self._epoch = policies.epoch
        found = self._seen.get(scope)
        if found is None:
            found = policy.may(self._engine, self._caller, "scope.read.local", scope)
            self._seen[scope] = found
        return found


def _position(engine: "Engine", since: str | None) -> bytes | None:
    """Where to go on after a lifecycle id; older than the buffer is said, not skipped."""
    if since is None:
        return None
    raw = parse_id("lce", since)
    if raw is None:
        raise InvalidParameter(
            field="since_lifecycle_id", reason="not a lifecycle id (lce_…); event ids do not resume"
        )
    _require_buffered(engine, raw, since_lifecycle_id=since)
    return raw


def _beginning(engine: "Engine", request: WatchRequest) -> bytes | None:
    """Where the announcements of one event, batch or job begin, while the buffer has them.

    Whoever follows the address in a receipt comes after the first of them.
    """
    for one in (request.event_id, request.batch_id, *request.jobs.values()):
        raw = None if one is None else parse_id(one.partition("_")[0], one)
        if raw is not None and uuid7_instant_us(raw) >= engine.lifecycle.oldest_us():
            return uuid7_first(uuid7_instant_us(raw))
    return None


def _require_buffered(engine: "Engine", raw: bytes, **where: str) -> None:
    if uuid7_instant_us(raw) < engine.lifecycle.oldest_us():
        raise LifecycleExpired(
            **where,
            buffer_s=limits.LIFECYCLE_BUFFER_S,
            remediation="list what you missed with GET /v1/events, then subscribe without an id",
        )


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def subscribe(
    engine: "Engine", caller: Caller, request: WatchRequest
) -> AsyncGenerator[bytes, None]:
    """A stream of server-sent bytes: the buffer after `since`, and then what happens.

    That of one event, batch or job begins with it.
    """
    policy.require(engine, caller, "lifecycle.subscribe", request.scope)
    if engine.lifecycle.subscriber_count >= limits.SUBSCRIBERS_MAX:
        raise Overloaded(reason=f"{limits.SUBSCRIBERS_MAX} streams are open", retry_after_s=5)
    # A stream may be opened before the tenant's first write, and hears it.
    tenant_no = engine.names.number(TENANT, 0, caller.tenant)
    wanted = _filter(engine, caller, request, tenant_no)
    after = _position(engine, request.since) or _beginning(engine, request)
    subscription = engine.lifecycle.subscribe(wanted)
    subscription.is_allowed = lambda: _may_go_on(engine, caller, request)
    # Where the queue begins is fixed here: by the time the stream runs, the queue has moved on.
    return _stream(engine, subscription, after, subscription.last_queued_us)


def list_lifecycle(engine: "Engine", caller: Caller, request: WatchRequest) -> LifecyclePage:
    """A page of the buffer, for clients that cannot hold a stream (001 §8.9.4)."""
    policy.require(engine, caller, "lifecycle.subscribe", request.scope)
    # Nothing has number 0: a mere read of a tenant that never wrote gives it no number.
    wanted = _filter(engine, caller, request, engine.tenant_no(caller) or 0)
    question = (caller.tenant, msgspec.structs.replace(request, cursor=None, limit=0))
    after = _position(engine, request.since) or uuid7_first(engine.lifecycle.oldest_us())
    if request.cursor is not None:
        after = engine.cursors.read(request.cursor, *question)
        _require_buffered(engine, after, cursor=request.cursor)
    items: list[LifecycleRow] = []
    until = engine.lifecycle.released_us
    going: bytes | None = after
    looked = 0
    while going is not None and len(items) < request.limit and looked < limits.PAGE_SCAN_MAX:
        want = request.limit - len(items)
        found, going = engine.lifecycle.replay(wanted, going, until, want)
        looked += want
        items += [row_of(event) for _, event in found]
    cursor = engine.cursors.make(going, *question) if going is not None else None
    return LifecyclePage(items=items, next_cursor=cursor, has_more=cursor is not None)


def get_lifecycle_event(engine: "Engine", caller: Caller, lifecycle_id: str) -> LifecycleRow:
    """One announcement by its id (001 §8.9.2)."""
    policy.require(engine, caller, "lifecycle.subscribe")
    raw = parse_id("lce", lifecycle_id)
    tenant_no = engine.tenant_no(caller)
    event = None
    if raw is not None and tenant_no is not None:
        event = engine.lifecycle.find(tenant_no, raw)
    scope = None if event is None else event.scope
    if scope is not None and not policy.may(engine, caller, "scope.read.local", scope):
        event = None
    if event is None:
        if raw is not None and uuid7_instant_us(raw) < engine.lifecycle.oldest_us():
            raise LifecycleExpired(lifecycle_id=lifecycle_id, buffer_s=limits.LIFECYCLE_BUFFER_S)
        raise NotFound("There is no such lifecycle event.", lifecycle_id=lifecycle_id[:80])
    return row_of(event)


def get_memory_event(engine: "Engine", caller: Caller, event_id: str) -> MemoryEventState:
    """How far one memory event has come (001 §8.9.3)."""
    policy.require(engine, caller, "lifecycle.subscribe")
    tenant_no, offset, raw = find_event(engine, caller.tenant, event_id)
    scope = engine.entry_of(engine.log.read_many([offset])[0]).scope
    policy.require(engine, caller, "scope.read.local", scope or None)
    state = entry_state(engine, tenant_no, offset, raw)
    return MemoryEventState(
        event_id=event_id,
        status=state.status,
        stages_completed=state.stages_completed,
        stages_pending=state.stages_pending,
        stages_cancelled=state.stages_cancelled,
        lifecycle_event_ids=state.lifecycle_ids,
        derives=state.derives,
        excluded_from_recall=state.excluded,
        errors=state.errors,
        partial=UNSET if state.partial_reason is None else True,
        partial_reason=UNSET if state.partial_reason is None else state.partial_reason,
    )


async def cancel(
    engine: "Engine", caller: Caller, event_id: str, request: CancelRequest
) -> CancelReceipt:
    """Drop the stages that have not run, and leave the event out of recall (001 §8.9.5)."""
    decision = policy.require(engine, caller, "scope.write")
    tenant_no, offset, raw = find_event(engine, caller.tenant, event_id)
    entry = engine.entry_of(engine.log.read_many([offset])[0])
    if entry.envelope is None:
        raise NotFound(f"{event_id} is not an experience.", event_id=event_id)
    policy.require(engine, caller, "scope.write", entry.scope)
    if entry.caller != caller.actor:
        policy.require(engine, caller, "scope.administer", entry.scope)
    proposal = Cancellation(engine, caller, decision, entry, request.audit_note)
    audit_id: str = await engine.committer.submit(proposal)
    state = entry_state(engine, tenant_no, offset, raw)
    return CancelReceipt(
        event_id=event_id,
        stages_cancelled=state.stages_cancelled,
        # What was not cancelled has run, though its announcement may still be on its way.
        stages_already_completed=[s for s in REQUIRED_STAGES if s not in state.stages_cancelled],
        excluded_from_recall=True,
        audit_id=audit_id,
    )


class Cancellation:
    """A proposal to cancel one event."""

    entry_count = 1
    byte_count = 512

    def __init__(
        self,
        engine: "Engine",
        caller: Caller,
        decision: Decision,
        entry: Entry,
        note: str | None,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._entry = entry
        self._note = note

    def decide(self, desk: Desk) -> str:
        """Cancel once; a repeat answers as the first did and writes no entry."""
        engine, entry = self._engine, self._entry
        place = entry.offset.to_bytes(8, "big")
        if desk.overlay.get(entry.tenant_no, "cancelled", place) is None:
            # From here on the daemon will not run these stages: the directive says what is true.
            stages = engine.daemon.hold(entry.offset)
            command = Cancel(
                event_id=entry.event_id, offset=entry.offset, stages=stages, note=self._note
            )
            desk.add(self._caller, Directive(command=command, scope=entry.scope))
        about = About(status=200, scope=entry.scope, event=entry.id, note=self._note)
        return desk.audit(self._caller, self._decision, about)


# ── the stream ───────────────────────────────────────────────────────────────────────────────


async def _stream(
    engine: "Engine", subscription: Subscription, after: bytes | None, until_us: int
) -> AsyncGenerator[bytes, None]:
    """First the buffer, then the queue; after an overflow the buffer again. Nothing is lost."""
    lifecycle = engine.lifecycle
    try:
        yield _start(engine, after, until_us)
        if after is not None:
            async for chunk in _from_buffer(engine, subscription, after, until_us):
                yield chunk
        while True:
            while subscription.queue:
                behind_s = (engine.clock.now_us() - subscription.queue[0][0]) / 1_000_000
                if behind_s > limits.LAG_S_MAX:
                    yield _lagging(engine, behind_s)
                    return
                yield _take(subscription)
            if subscription.overflow_from is not None:
                position = uuid7_first(lifecycle.resume(subscription) + 1)
                until = subscription.last_queued_us
                async for chunk in _from_buffer(engine, subscription, position, until, live=True):
                    yield chunk
                    if subscription.closed == "lagging":
                        return
                continue
            if subscription.closed == REVOKED:
                yield _revoked(engine)
            if subscription.closed is not None:
                return
            subscription.ready.clear()
            await subscription.ready.wait()
    finally:
        lifecycle.unsubscribe(subscription)


def _may_go_on(engine: "Engine", caller: Caller, request: WatchRequest) -> bool:
    """Whether an open stream would be allowed if it were opened now (001 §5.4)."""
    tenant_no = engine.tenant_no(caller)
    if caller.token_id is not None and tenant_no is not None:
        place = revoked_key(caller.token_id)
        if engine.inline.get(tenant_no, "revoked", place) is not None:
            return False
    return policy.may(engine, caller, "lifecycle.subscribe", request.scope)


def _start(engine: "Engine", after: bytes | None, until_us: int) -> bytes:
    """An id and no event: who loses the connection before the first event resumes from here.

    Where nothing was announced for long it is a moment ago, for ids as old as that have expired.
    """
    if after is None:
        after = uuid7_first(max(until_us + 1, engine.clock.now_us() - _SETTLED_US))
    return b"id: %b\n\n" % format_id("lce", after).encode()


def _revoked(engine: "Engine") -> bytes:
    event = PolicyRevoked(
        lifecycle_id=engine.clock.new_id("lce"),
        timestamp=from_us(engine.clock.now_us()),
        reason="the subscription is no longer allowed",
    )
    return b"event: policy_revoked\ndata: %b\n\n" % msgspec.json.encode(event)


def _take(subscription: Subscription) -> bytes:
    """As many queued announcements as fit in one chunk."""
    queue, parts, size = subscription.queue, [], 0
    while queue and size < _CHUNK_BYTES:
        encoded = queue.popleft()[1]
        parts.append(encoded)
        size += len(encoded)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _from_buffer(
    engine: "Engine",
    subscription: Subscription,
    after: bytes,
    until_us: int,
    *,
    live: bool = False,
) -> AsyncIterator[bytes]:
    """Announcements from the disk, in order, up to where the queue begins."""
    going: bytes | None = after
    while going is not None:
        found, going = engine.lifecycle.replay(subscription.wanted, going, until_us, _REPLAY_ROWS)
        if not found:
            continue
        behind_s = (engine.clock.now_us() - found[0][0]) / 1_000_000
        if live and behind_s > limits.LAG_S_MAX:
            subscription.close("lagging")
            yield _lagging(engine, behind_s)
            return
        yield b"".join(frame(event) for _, event in found)


def _lagging(engine: "Engine", behind_s: float) -> bytes:
    """The last word to a client that is too slow. It has no id: resuming uses the last real one."""
    event = Lagging(
        lifecycle_id=engine.clock.new_id("lce"),
        timestamp=from_us(engine.clock.now_us()),
        behind_by=round(behind_s, 1),
    )
    return b"event: lagging\ndata: %b\n\n" % msgspec.json.encode(event)
