"""Who hears about it?  Announcements in order, a one-hour replay buffer, and those who wait.

Rows are keyed by their own id, whose time bits are the strictly increasing moment of arrival
(docs/adr/0012): listing, resuming and pruning are ranges of keys. An announcement is written in the
batch of what it announces, and made public only when that batch is durable.
"""

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.clock import Clock, Stamps
from engine.rows import Note
from engine.state.drafts import Draft
from engine.state.kv import KV, Batch
from schemas import limits
from schemas.entry import Experience
from schemas.ids import format_id, uuid7, uuid7_first, uuid7_instant_us
from schemas.lifecycle import JOB_FIELDS, LifecycleEvent
from schemas.times import from_us

FAMILIES = ("lifecycle", "stages")
pack_note = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode
_BEGUN_MAX = 16_384
REVOKED = "revoked"
"""Why a stream was closed: its subscriber may not watch any more."""


_unpack = msgspec.msgpack.Decoder(Note).decode
_KINDS: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in LifecycleEvent.__args__}


_Said = tuple[int, int, bytes, Note | bytes]
"""An announcement on its way: arrival, tenant, id, and what it says or the bytes that are kept."""


def captured_row(entry: Draft, offset: int, body: Experience, caller: str) -> bytes:
    """The announcement of an experience as it is kept: the fields of a Note, in their order."""
    envelope = body.envelope
    actor = envelope.observed_actor
    payload = {
        "actor": actor.id if actor is not None else caller,
        "modality": envelope.modality,
        "wal_offset": offset,
    }
    return pack_note(("captured", envelope.scope, entry.id, 1, body.batch_id, payload))


def announcement(raw: bytes, note: Note) -> LifecycleEvent:
    """The announcement as the world sees it (001 §13)."""
    shared = {
        "event": note.name,
        "lifecycle_id": format_id("lce", raw),
        "timestamp": from_us(uuid7_instant_us(raw)),
        "scope": note.scope,
        "event_id": None if note.event is None else format_id("evt", note.event),
        "sequence": note.sequence,
        "batch_id": note.batch_id,
    }
    made: LifecycleEvent = msgspec.convert(note.payload | shared, _KINDS[note.name])
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which announcements a subscriber wants (001 §8.9.1); all conditions must hold."""

    tenant_no: int
    scope: str | None = None
    descend: bool = False
    event: bytes | None = None
    batch_id: str | None = None
    names: frozenset[str] | None = None
    jobs: dict[str, str] = field(default_factory=dict)
    visible: Callable[[str | None], bool] | None = None

    def matches(self, note: Note) -> bool:
        """Whether the announcement passes every condition, and the subscriber may see its scope."""
        if self.visible is not None and not self.visible(note.scope):
            return False
        if self.event is not None and note.event != self.event:
            return False
        if self.batch_id is not None and note.batch_id != self.batch_id:
            return False
        if self.names is not None and note.name not in self.names:
            return False
        if self.scope is not None and note.scope != self.scope:
            below = self.descend and (note.scope or "").startswith(self.scope + "/")
            if not below:
                return False
        return all(note.payload.get(name) == wanted for name, wanted in self.jobs.items())


def frame(event: LifecycleEvent) -> bytes:
    """An announcement as server-sent bytes, encoded once for all who hear it."""
    name = event.__struct_config__.tag
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.lifecycle_id.encode(),
        str(name).encode(),
        _json(event),
    )


class Subscription:
    """One open stream: a bounded queue, and the position from which the disk continues it."""

    def __init__(self, wanted: Filter, from_us: int) -> None:
        self.wanted = wanted
        self.queue: deque[tuple[int, bytes]] = deque()
        self.ready = asyncio.Event()
        self.overflow_from: int | None = None
        self.last_queued_us = from_us
        self.closed: str | None = None
        self.is_allowed: Callable[[], bool] = lambda: True

    def push(self, us: int, encoded: bytes) -> None:
        """Queue one announcement; when full, leave the rest to the buffer on disk."""
        if self.overflow_from is not None:
            return
        if len(self.queue) >= limits.SUBSCRIBER_ROWS_MAX:
            self.overflow_from = self.last_queued_us
        else:
            self.queue.append((us, encoded))
            self.last_queued_us = us
        self.ready.set()

    def close(self, reason: str) -> None:
        """End the stream from the server's side."""
        self.closed = reason
        self.ready.set()


class Lifecycle:
    """The bus. `order` is held while marks are taken and their batch is written."""

    def __init__(self, kv: KV, clock: Clock) -> None:
        self._kv = kv
        self._clock = clock
        self.order = threading.Lock()
        self._stamps = Stamps(clock.wall, self._last_arrival_us())
        self._release_lock = threading.Lock()
        # What was added together is released together.
        self._pending: deque[list[_Said]] = deque()
        self._public: deque[list[_Said]] = deque()
        self.released_us = self._stamps.last_us
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscribers: dict[int, set[Subscription]] = {}
        self._watermarks: dict[str, int] = {}
        self._marks_due: deque[tuple[str, int]] = deque()
        self._waiting: dict[str, list[tuple[int, int, asyncio.Future[None]]]] = {}
        self._tickets = 0
        self._begun: dict[int, bytes] = {}

    def _last_arrival_us(self) -> int:
        row = self._kv.get("meta", b"lifecycle.last_us")
        return int.from_bytes(row, "big") if row else 0

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on announcements are delivered on this loop."""
        self._loop = loop

    # ── announcing ───────────────────────────────────────────────────────────────────────────

    def add(self, batch: Batch, tenant_no: int, note: Note) -> bytes:
        """Put an announcement into a batch; its id. The caller holds `order` until the write."""
        us = self._stamps.next_us()
        raw = uuid7(us, self._clock.entropy())
        batch.put("lifecycle", tenant_no.to_bytes(4, "big") + raw, pack_note(note))
        self._pending.append([(us, tenant_no, raw, note)])
        return raw

    def captured(self, batch: Batch, begun: Sequence[tuple[int, int, bytes]]) -> None:
        """Announce entries, by tenant and offset, and remember what each of them began with."""
        stamps, entropy = self._stamps, self._clock.entropy
        group: list[_Said] = []
        told: list[tuple[bytes, bytes]] = []
        stages: list[tuple[bytes, bytes]] = []
        for tenant_no, offset, packed in begun:
            us = stamps.next_us()
            raw = uuid7(us, entropy())
            tenant = tenant_no.to_bytes(4, "big")
            told.append((tenant + raw, packed))
            stages.append((tenant + offset.to_bytes(8, "big"), raw))
            group.append((us, tenant_no, raw, packed))
            self._begun[offset] = raw
        if group:
            self._pending.append(group)
        batch.put_many("lifecycle", told)
        batch.put_many("stages", stages)
        if len(self._begun) > _BEGUN_MAX:
            self._begun.clear()  # the rows on disk say the same

    def told(self, batch: Batch, said: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """Put announcements into a batch, each by its tenant and packed; their ids in order.

        The caller holds `order` until the write, and packed them before: captures wait for it.
        """
        stamps, entropy = self._stamps, self._clock.entropy
        group: list[_Said] = []
        rows: list[tuple[bytes, bytes]] = []
        ids: list[bytes] = []
        for tenant_no, packed in said:
            us = stamps.next_us()
            raw = uuid7(us, entropy())
            group.append((us, tenant_no, raw, packed))
            rows.append((tenant_no.to_bytes(4, "big") + raw, packed))
            ids.append(raw)
        if group:
            self._pending.append(group)
        batch.put_many("lifecycle", rows)
        return ids

    def first_of(self, tenant_no: int, offset: int) -> bytes | None:
        """The id of the announcement that an entry began with."""
        known = self._begun.get(offset)
        return known or (self._kv.get("stages", stages_key(tenant_no, offset)) or b"")[:16] or None

    def staged(
        self, batch: Batch, rows: Sequence[tuple[int, int, list[bytes | None]]], *, is_last: bool
    ) -> None:
        """The announcements that entries have had, by tenant and offset, in stage order.

        After the last of them nobody asks any more what an entry began with.
        """
        kept = [(stages_key(tenant, offset), pack_stages(raws)) for tenant, offset, raws in rows]
        batch.put_many("stages", kept)
        for _, offset, _ in rows if is_last else ():
            self._begun.pop(offset, None)

    def seal(self, batch: Batch) -> int:
        """Finish a batch: remember the last arrival; the token that `release` takes."""
        batch.put("meta", b"lifecycle.last_us", self._stamps.last_us.to_bytes(8, "big"))
        return self._stamps.last_us

    def release(self, token: int, watermarks: dict[str, int] | None = None) -> None:
        """Everything written up to the token is durable: make it public, in order."""
        with self._release_lock:
            while self._pending and self._pending[0][-1][0] <= token:
                self._public.append(self._pending.popleft())
            for stage, offset in (watermarks or {}).items():
                self._marks_due.append((stage, offset))
        loop = self._loop
        if loop is None:
            self._drain()
            return
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self._drain()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        """Deliver what is public: to subscribers, then to those who wait for a stage.

        A commit of the indexes lets thousands go: the loop serves others in between.
        """
        left, is_heard = limits.RELEASE_ROWS, self.subscriber_count > 0
        while self._public and (left > 0 or self._loop is None):
            group = self._public.popleft()
            if not is_heard:
                self.released_us = group[-1][0]
                continue
            if len(group) > left and self._loop is not None:
                self._public.appendleft(group[left:])
                group = group[:left]
            left -= len(group)
            self._tell(group)
        if self._public:
            assert self._loop is not None, "without a loop all of it has gone"
            self._loop.call_soon(self._drain)
            return
        while self._marks_due:
            stage, offset = self._marks_due.popleft()
            self._watermarks[stage] = max(self._watermarks.get(stage, 0), offset)
            waiting = self._waiting.get(stage, [])
            while waiting and waiting[0][0] <= offset:
                future = heapq.heappop(waiting)[2]
                if not future.done():
                    future.set_result(None)

    def _tell(self, group: list[_Said]) -> None:
        """Whoever wants to hear of it hears of it, in order."""
        for us, tenant_no, raw, said in group:
            self.released_us = us
            subscribers = self._subscribers.get(tenant_no)
            if not subscribers:
                continue
            note = _unpack(said) if isinstance(said, bytes) else said
            encoded: bytes | None = None
            for subscription in subscribers:
                if subscription.wanted.matches(note):
                    encoded = encoded or frame(announcement(raw, note))
                    subscription.push(us, encoded)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────

    async def wait(self, stage: str, offset: int, timeout_s: float) -> bool:
        """Wait until a stage has passed an offset; False when the time is up first."""
        if self._watermarks.get(stage, 0) >= offset:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tickets += 1
        heapq.heappush(self._waiting.setdefault(stage, []), (offset, self._tickets, future))
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            return False
        return True

    def reached(self, stage: str, offset: int) -> None:
        """Set a stage's watermark at start, from the checkpoints on disk."""
        self._watermarks[stage] = max(self._watermarks.get(stage, 0), offset)

    # ── subscribing ──────────────────────────────────────────────────────────────────────────

    @property
    def subscriber_count(self) -> int:
        """Open streams."""
        return sum(len(group) for group in self._subscribers.values())

    def subscribe(self, wanted: Filter) -> Subscription:
        """Hear everything released from now on."""
        subscription = Subscription(wanted, self.released_us)
        self._subscribers.setdefault(wanted.tenant_no, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop hearing; harmless when repeated."""
        self._subscribers.get(subscription.wanted.tenant_no, set()).discard(subscription)

    def recheck(self) -> None:
        """Policy has changed: streams that would no longer be opened are ended (001 §5.4)."""
        for group in list(self._subscribers.values()):
            for subscription in list(group):
                if not subscription.is_allowed():
                    subscription.close(REVOKED)

    def resume(self, subscription: Subscription) -> int:
        """After an overflow: hear again from now on; the position the disk must continue from."""
        position = subscription.overflow_from
        assert position is not None, "nothing was missed"
        subscription.overflow_from = None
        subscription.last_queued_us = self.released_us
        return position

    def close_all(self) -> None:
        """The server is going: end every stream."""
        for group in list(self._subscribers.values()):
            for subscription in list(group):
                subscription.close("shutdown")

    # ── the buffer ───────────────────────────────────────────────────────────────────────────

    def oldest_us(self) -> int:
        """Where the one-hour buffer begins (001 §18.2.10)."""
        return self._clock.now_us() - limits.LIFECYCLE_BUFFER_S * 1_000_000

    def replay(
        self, wanted: Filter, after: bytes, until_us: int, limit: int
    ) -> tuple[list[tuple[int, LifecycleEvent]], bytes | None]:
        """Rows of the buffer after an id, and where to go on when `limit` rows were looked at."""
        prefix = wanted.tenant_no.to_bytes(4, "big")
        start, end = prefix + after + b"\0", prefix + uuid7_first(until_us + 1)
        found: list[tuple[int, LifecycleEvent]] = []
        last: bytes | None = None
        looked = 0
        for key, value in self._kv.scan("lifecycle", start, end, limit=limit):
            looked += 1
            last = key[4:]
            note = _unpack(value)
            if wanted.matches(note):
                found.append((uuid7_instant_us(last), announcement(last, note)))
        return found, last if looked == limit else None

    def find(self, tenant_no: int, raw: bytes) -> LifecycleEvent | None:
        """One announcement by its id, while the buffer holds it and once it is public."""
        if uuid7_instant_us(raw) > self.released_us:
            return None
        value = self._kv.get("lifecycle", tenant_no.to_bytes(4, "big") + raw)
        return None if value is None else announcement(raw, _unpack(value))

    def prune(self, tenant_numbers: Iterator[int] | list[int]) -> None:
        """Drop what is older than the buffer."""
        batch = self._kv.batch()
        for tenant_no in tenant_numbers:
            prefix = tenant_no.to_bytes(4, "big")
            batch.delete_range("lifecycle", prefix, prefix + uuid7_first(self.oldest_us()))
        self._kv.write(batch)


def job_filters(parameters: Any) -> dict[str, str]:
    """The job conditions among a request's parameters."""
    return {
        name: getattr(parameters, name)
        for name in JOB_FIELDS
        if getattr(parameters, name, None) is not None
    }


# ── the stages row: which announcements an entry has had ─────────────────────────────────────


def stages_key(tenant_no: int, offset: int) -> bytes:
    """One row an entry."""
    return tenant_no.to_bytes(4, "big") + offset.to_bytes(8, "big")


def pack_stages(raws: list[bytes | None]) -> bytes:
    """The ids of an entry's announcements in stage order; sixteen zeros where there is none."""
    return b"".join(raw or bytes(16) for raw in raws).rstrip(b"\0" * 16) if raws else b""


def unpack_stages(row: bytes | None) -> list[bytes | None]:
    """The ids in stage order, None where the stage has not been announced."""
    if not row:
        return []
    chunks = [row[at : at + 16].ljust(16, b"\0") for at in range(0, len(row), 16)]
    return [chunk if any(chunk) else None for chunk in chunks]
