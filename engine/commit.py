"""How do many writers become one durable batch?

Proposals queue on the event loop. One at a time, a batch of them is decided in order against the
state as of the head, written, and made durable by one fsync that runs off the loop; then everyone
is answered. When all who write would wait for one fsync and leave the loop idle, they go in two
batches, of which the second is decided while the first becomes durable.

Being the only writer, it is also where every precondition is checked: idempotency first of all
(docs/adr/0013).
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from engine.audit import Pending, Trail
from engine.clock import Clock, Stamps
from engine.courtesy import Way
from engine.lifecycle import Lifecycle, captured_row
from engine.merkle import Tree
from engine.notices import notes_of
from engine.rows import About, Replay
from engine.state.directory import idem_place
from engine.state.drafts import Draft, Numbers
from engine.state.kv import Batch, StoreError, StoreWriteFailed
from engine.state.log import KvLog, erasure_due
from engine.state.names import ACTOR, SCOPE, TENANT, Names
from engine.state.views import Unit, build_request, packed
from projectors.fold import fold_inline
from projectors.overlay import Overlay
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import (
    KINDS,
    SCHEMA_VERSION,
    Body,
    Directive,
    Entry,
    Exclude,
    Experience,
    Forget,
    Include,
    Unforget,
    Unpark,
    into_scope_of,
    scope_of,
)
from schemas.errors import EngineError, Internal, Overloaded, WalUnavailable
from schemas.ids import format_id, fresh_id, uuid7
from schemas.times import from_us

encode_body = msgspec.msgpack.Encoder().encode


class Proposal(Protocol):
    """Something that may become entries, once the one writer has looked at the head.

    One that will ask for idempotency keys may name in `keys` where they are kept: those of a whole
    batch are looked up at once.
    """

    entry_count: int
    byte_count: int

    def decide(self, desk: "Desk") -> Any:
        """Add entries to the desk and answer, or raise an EngineError and add nothing."""


_Queued = tuple[Proposal, asyncio.Future[Any]]


class Named(Numbers):
    """The scopes of an entry, and the numbers of its tenant, its scopes and its actor."""

    __slots__ = ("into", "into_no", "scope")

    def __init__(self, names: Names, caller: Caller, scope: str, into: str) -> None:
        tenant_no = names.number(TENANT, 0, caller.tenant)
        scope_no = names.number(SCOPE, tenant_no, scope) if scope else 0
        self.scope, self.into = scope, into
        self.into_no = names.number(SCOPE, tenant_no, into) if into else 0
        super().__init__(tenant_no, scope_no, names.number(ACTOR, tenant_no, caller.actor))


class Sealed:
    """A body ready to be written: its bytes, and what tells it from another.

    `place` is where the use of its idempotency key is kept; one without a key has none.
    """

    __slots__ = ("body_mac", "encoded", "idem", "place", "said")

    def __init__(
        self, said: Body, encoded: bytes, idem: bytes, body_mac: bytes, place: bytes
    ) -> None:
        self.said = said
        self.encoded = encoded
        self.idem = idem
        self.body_mac = body_mac
        self.place = place


class Made(Draft):
    """An entry of the batch, and all that it takes to show it to who asks for it."""

    __slots__ = ("_entry", "caller", "named", "offset", "said")

    def __init__(
        self, offset: int, stamp: tuple[bytes, int], named: Named, caller: Caller, sealed: Sealed
    ) -> None:
        said = sealed.said
        super().__init__(
            stamp,
            named,
            (KINDS[type(said)], SCHEMA_VERSION),
            sealed.encoded,
            idem=sealed.idem,
            body_mac=sealed.body_mac,
        )
        self.offset = offset
        self.named = named
        self.caller = caller
        self.said = said
        self._entry: Entry | None = None

    def entry(self) -> Entry:
        """As projectors and other proposals see it; of most experiences nobody asks for it."""
        found = self._entry
        if found is None:
            named, caller = self.named, self.caller
            found = self._entry = Entry(
                offset=self.offset,
                id=self.id,
                event_id=fresh_id("evt", self.id),
                tenant=caller.tenant,
                tenant_no=named.tenant_no,
                scope=named.scope,
                scope_no=named.scope_no,
                caller=caller.actor,
                recorded_at=from_us(self.recorded_us),
                kind=self.kind,
                body=self.said,
                into_scope=named.into,
                into_scope_no=named.into_no,
            )
        return found


class Desk:
    """What a proposal sees and fills: the state as of the head, plus the batch so far."""

    def __init__(self, committer: "Committer") -> None:
        self._committer = committer
        self.first = committer.log.written + 1
        self.drafts: list[Made] = []
        # First the rows that waited: their ids are older than any made from here on.
        self.audit_rows: list[Pending] = committer.trail.take()
        self.overlay = Overlay(committer.inline.remembering())
        self._keys: dict[bytes, Made] = {}
        self._unused: set[bytes] = set()
        self._named: dict[tuple[str, str, str, str], Named] = {}
        self._settled: set[tuple[int, int]] = set()
        """Scopes, by tenant and number, of which an experience had nothing to say inline."""

    def replayed(self, tenant_no: int, idem: bytes) -> Replay | None:
        """The earlier use of an idempotency key, in the log or in this very batch."""
        return self.replayed_at(idem_place(tenant_no, idem))

    def replayed_at(self, place: bytes) -> Replay | None:
        """The same, by where the key is kept."""
        made = self._keys.get(place)
        if made is not None:
            return Replay(made.offset, made.body_mac)
        if place in self._unused:
            return None
        row = self._committer.directory.replayed_many([place])[0]
        return None if row is None else Replay(*row)

    def look_up(self, places: Sequence[bytes]) -> None:
        """Ask the log for many keys at once, for who will ask for each of them."""
        rows = self._committer.directory.replayed_many(places)
        for place, row in zip(places, rows, strict=True):
            if row is None:
                self._unused.add(place)

    def tenant_no(self, caller: Caller) -> int:
        """The number of the caller's tenant, given now if it is new."""
        return self._committer.names.number(TENANT, 0, caller.tenant)

    def event(self, offset: int) -> bytes:
        """The sixteen bytes of the event at an offset, in the log or in this batch."""
        if offset >= self.first:
            return self.drafts[offset - self.first].id
        return next(self._committer.log.headers(offset, offset + 1))[0].id

    def entry(self, offset: int) -> Entry:
        """An entry of this batch."""
        return self.drafts[offset - self.first].entry()

    @property
    def entries(self) -> list[Entry]:
        """All entries of this batch."""
        return [made.entry() for made in self.drafts]

    def _names_of(self, caller: Caller, body: Body) -> Named:
        if isinstance(body, Experience):
            # Nearly all are: what `scope_of` and `into_scope_of` say, without the way there.
            envelope = body.envelope
            directives = envelope.directives
            scope: str = envelope.scope
            into: str = "" if directives is None else directives.consolidate_into or ""
        else:
            scope, into = scope_of(body), into_scope_of(body)
        place = (caller.tenant, caller.actor, scope, into)
        found = self._named.get(place)
        if found is None:
            found = self._named[place] = Named(self._committer.names, caller, scope, into)
        return found

    def add(self, caller: Caller, body: Body, *, idem: bytes = b"", body_mac: bytes = b"") -> Entry:
        """Make one entry of the batch: number, stamp, inline changes."""
        named = self._names_of(caller, body)
        place = idem_place(named.tenant_no, idem) if idem else b""
        sealed = Sealed(body, encode_body(body), idem, body_mac, place)
        return self._make(caller, named, sealed).entry()

    def put(self, caller: Caller, sealed: Sealed) -> Made:
        """The same, of a body that is ready."""
        return self._make(caller, self._names_of(caller, sealed.said), sealed)

    def _make(self, caller: Caller, named: Named, sealed: Sealed) -> Made:
        committer = self._committer
        recorded_us = committer.stamps.next_us()
        stamp = (uuid7(recorded_us, committer.clock.entropy()), recorded_us)
        made = Made(self.first + len(self.drafts), stamp, named, caller, sealed)
        self._fold(made, sealed.said)
        self.drafts.append(made)
        if sealed.place:
            self._keys[sealed.place] = made
        return made

    def _fold(self, made: Made, body: Body) -> None:
        """The inline changes of an entry; of most experiences it is known that there are none."""
        committer = self._committer
        if not isinstance(body, Experience):
            self._settled.clear()
            fold_inline(made.entry(), committer.inline.projectors, self.overlay)
            return
        scope = (made.tenant_no, made.scope_no)
        if scope in self._settled and not committer.concerns(body):
            return
        if not fold_inline(made.entry(), committer.told_experiences, self.overlay):
            self._settled.add(scope)

    def audit(self, caller: Caller, decision: Decision, about: About) -> str:
        """Record the call in the same batch; the id of its audit row."""
        return format_id("audit", self.record(caller, decision, about))

    def record(self, caller: Caller, decision: Decision, about: About) -> bytes:
        """Record the call in the same batch; the sixteen bytes of its audit row."""
        row = self._committer.note(caller, decision, about)
        self.audit_rows.append(row)
        if caller.origin is not None:
            caller.origin.recorded.append(caller.tenant)
        return row.raw

    def attempt(self, proposal: Proposal) -> Any:
        """Let a proposal decide; when it raises, the desk is as it was before."""
        before, rows = len(self.drafts), len(self.audit_rows)
        self.overlay.mark()
        try:
            answer = proposal.decide(self)
        except BaseException:
            for made in self.drafts[before:]:
                self._keys.pop(idem_place(made.tenant_no, made.idem), None)
            del self.drafts[before:], self.audit_rows[rows:]
            self.overlay.take_back()
            self._settled.clear()
            raise
        return answer


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch that is written and on its way to the disk, and who waits for it."""

    desk: Desk
    answers: list[tuple[asyncio.Future[Any], Any]]
    token: int
    trees: dict[int, Tree]
    durable: Awaitable[None]


class Committer:
    """The one writer of the log, owned by the event loop."""

    def __init__(
        self,
        *,
        log: KvLog,
        trail: Trail,
        names: Names,
        inline: Unit,
        lifecycle: Lifecycle,
        clock: Clock,
        entries_max: int = limits.COMMIT_ENTRIES_MAX,
    ) -> None:
        self.log = log
        self.directory = log.directory
        self.trail = trail
        self.names = names
        self.inline = inline
        self.told_experiences = tuple(p for p in inline.projectors if p.reads_experiences)
        """The inline projectors that are asked about nearly all entries."""
        self._concerns = [p.concerns for p in self.told_experiences]
        self.lifecycle = lifecycle
        self.clock = clock
        self.way = Way(clock.elapsed_s)
        """Taken while a batch is on its way: those who derive stand back."""
        self.stamps = Stamps(clock.wall, log.last_recorded_us)
        self.refusal: str | None = None
        self.committed_entries = 0
        self.on_durable: Callable[[], None] = lambda: None
        self.on_control: Callable[[Mapping[tuple[int, str, bytes], Any]], None] = lambda _: None
        self._entries_max = entries_max
        self._queue: deque[tuple[Proposal, asyncio.Future[Any]]] = deque()
        self._queued_entries = self._queued_bytes = 0
        self._running: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.submitted = 0
        """Proposals that ever came: who sees it unchanged knows that nobody wrote."""
        self._came_meanwhile = limits.COMMIT_ENTRIES_MAX

    def concerns(self, body: Experience) -> bool:
        """Whether an inline projector may say more of an experience than of its scope."""
        return any(concerns is None or concerns(body) for concerns in self._concerns)

    def submit(self, proposal: Proposal) -> asyncio.Future[Any]:
        """Queue a proposal; the future has its answer when the batch is durable."""
        reason = self.log.failure or self.refusal
        if reason is not None:
            raise WalUnavailable(reason=reason)
        self._queued_entries += proposal.entry_count
        self._queued_bytes += proposal.byte_count
        if (
            self._queued_entries > limits.COMMIT_QUEUE_ENTRIES_MAX
            or self._queued_bytes > limits.COMMIT_QUEUE_BYTES_MAX
        ):
            self._queued_entries -= proposal.entry_count
            self._queued_bytes -= proposal.byte_count
            raise Overloaded(reason="the commit queue is full", retry_after_s=1)
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.append((proposal, future))
        self.submitted += 1
        if self._running is None:
            self._running = loop.create_task(self._run())
        return future

    # ── the audit ────────────────────────────────────────────────────────────────────────────

    def note(self, caller: Caller, decision: Decision, about: About) -> Pending:
        """The audit row of a call; without one there is no answer but that the store is unwell."""
        try:
            return self.trail.make(caller, decision, about)
        except StoreError as error:
            if isinstance(error, StoreWriteFailed):
                self.log.fail(f"the vault does not take keys: {error}")
            raise WalUnavailable(reason=str(error)) from error

    async def record(self, caller: Caller, decision: Decision, about: About) -> str:
        """Record a call that changed nothing, durably; the row's id. A denial is said after it."""
        audit_id: str = await self.submit(_Record(caller, decision, about))
        return audit_id

    def record_later(self, caller: Caller, decision: Decision, about: About) -> None:
        """Record an allowed read: the row rides on the next commit, or on the keeper's flush."""
        self.trail.queue(self.note(caller, decision, about))
        if self.trail.queued >= limits.AUDIT_QUEUE_ROWS:
            self.flush()

    def flush(self) -> None:
        """Begin a commit for the audit rows that wait; they wait on while the store is unwell."""
        is_well = self.log.failure is None and self.refusal is None
        if self.trail.queued and self._running is None and is_well:
            self._running = asyncio.get_running_loop().create_task(self._run())

    # ── committing ───────────────────────────────────────────────────────────────────────────

    @property
    def queued_entries(self) -> int:
        """Entries waiting for the next commit."""
        return self._queued_entries

    async def drained(self) -> None:
        """Wait until nothing is queued or being written."""
        while self._running is not None:
            await asyncio.shield(self._running)

    async def _run(self) -> None:
        self.way.take()
        try:
            await self._commit(self._take())
            while self._queue or self.trail.queued >= limits.AUDIT_QUEUE_ROWS:
                await self._commit(self._take())
        finally:
            self._running = None
            # Those who have their answers now are next on the loop, and have still to send them.
            asyncio.get_running_loop().call_soon(self.way.leave)

    def _take(self) -> list[_Queued]:
        taken: list[_Queued] = []
        entries = size = 0
        while self._queue:
            proposal, _ = self._queue[0]
            if taken and (
                entries + proposal.entry_count > self._entries_max
                or size + proposal.byte_count > limits.COMMIT_BYTES_MAX
            ):
                break
            entries += proposal.entry_count
            size += proposal.byte_count
            taken.append(self._queue.popleft())
        self._queued_entries -= entries
        self._queued_bytes -= size
        return taken

    async def _commit(self, taken: list[_Queued]) -> None:
        begun: list[Begun] = []
        for part in self._parts(taken):
            one = await self._begin(part, is_first=not begun)
            if one is not None:
                begun.append(one)
        for one in begun:
            await self._finish(one)

    def _parts(self, taken: list[_Queued]) -> list[list[_Queued]]:
        """One batch; or two, when hardly anyone else came while the last one became durable."""
        is_alone = self._came_meanwhile * 4 < len(taken)
        if len(taken) < limits.COMMIT_SPLIT_MIN or not is_alone or self.log.syncer.is_quick():
            return [taken]
        half = len(taken) // 2
        return [taken[:half], taken[half:]]

    async def _begin(self, taken: list[_Queued], *, is_first: bool) -> Begun | None:
        """Decide and write a batch; None when there is nothing to wait for.

        What was decided on top of a batch that is not durable yet is answered no sooner than that.
        """
        desk = Desk(self)
        keys = [key for proposal, _ in taken for key in getattr(proposal, "keys", ())]
        with contextlib.suppress(StoreError):  # then each asks alone, and its caller is told
            desk.look_up(keys)
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for proposal, future in taken:
            try:
                answers.append((future, desk.attempt(proposal)))
            except EngineError as error:
                _fail(future, error)
            except Exception as error:  # noqa: BLE001 - a bug in one proposal fails that caller only
                _fail(future, Internal(reason=repr(error)))
        is_empty = not desk.drafts and not desk.audit_rows
        if is_empty and is_first:
            _answer(answers)
            return None
        try:
            token = 0 if is_empty else await self._write(desk)
            return Begun(desk, answers, token, self.trail.written(), self.log.flush())
        except Exception as error:  # noqa: BLE001 - nobody is left waiting for an answer
            self._fail_all(answers, error)
            return None

    async def _write(self, desk: Desk) -> int:
        token = 0

        def rows(batch: Batch, first: int) -> None:
            nonlocal token
            assert first == desk.first, "the head moved under the only writer"
            token = self._fill(batch, desk)

        await self.log.write(desk.drafts, expect=desk.first - 1, rows=rows)
        # The next batch may be decided before this one is durable, and is never durable before it.
        self.inline.remembering().written(desk.overlay.pending)
        return token

    async def _finish(self, begun: Begun) -> None:
        """Wait until a batch is durable, tell everyone, and answer."""
        before = self.submitted
        try:
            await begun.durable
            self._came_meanwhile = self.submitted - before
            self.trail.settle(begun.trees)
            self.on_control(begun.desk.overlay.pending)
            self.committed_entries += len(begun.desk.drafts)
            self.lifecycle.release(begun.token, {"captured": self.log.head()})
            self.on_durable()
        except Exception as error:  # noqa: BLE001 - nobody is left waiting for an answer
            self._fail_all(begun.answers, error)
            return
        _answer(begun.answers)

    def _fail_all(self, answers: list[tuple[asyncio.Future[Any], Any]], error: Exception) -> None:
        """A batch is not durable: an error of ours says why, any other stops the log."""
        if not isinstance(error, EngineError):
            self.log.fail(f"a commit failed: {error!r}")
            error = WalUnavailable(reason=self.log.failure)
        for future, _ in answers:
            _fail(future, error)

    def _fill(self, batch: Batch, desk: Desk) -> int:
        """Everything that rides with the entries: one batch, all of it or none."""
        self.names.write_fresh(batch)
        self.trail.write(batch, desk.audit_rows)
        self._announce(batch, desk.drafts)
        last = desk.first + len(desk.drafts) - 1
        self.inline.commit(self.inline.write(batch, packed(desk.overlay.pending), last))
        return self.lifecycle.seal(batch)

    def _announce(self, batch: Batch, drafts: Sequence[Made]) -> None:
        """Say of every entry that it is captured, in the order of the log."""
        begun: list[tuple[int, int, bytes]] = []
        for made in drafts:
            body = made.said
            if isinstance(body, Experience):
                packed = captured_row(made, made.offset, body, made.caller.actor)
                begun.append((made.tenant_no, made.offset, packed))
            elif isinstance(body, Directive):
                self.lifecycle.captured(batch, begun)
                begun = []
                self._announce_directive(batch, made.entry(), body)
        self.lifecycle.captured(batch, begun)

    def _announce_directive(self, batch: Batch, entry: Entry, body: Directive) -> None:
        if isinstance(body.command, (Unpark, Unforget, Exclude, Include)):
            # What is taken back in and the rebuild that takes it are durable together.
            batch.put("meta", build_request("staged"), b"1")
        elif isinstance(body.command, Forget) and body.command.cascade != "derived_only":
            # So is the erasure of payloads that is still to be done: it is picked up after a crash.
            batch.put("meta", erasure_due(entry.offset), b"")
        for note in notes_of(body, entry.caller):
            self.lifecycle.add(batch, entry.tenant_no, note)


class _Record:
    """A proposal with nothing but an audit row."""

    entry_count = 1
    byte_count = 512

    def __init__(self, caller: Caller, decision: Decision, about: About) -> None:
        self._row = (caller, decision, about)

    def decide(self, desk: Desk) -> str:
        """Nothing can stand in the way."""
        return desk.audit(*self._row)


def _answer(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        if not future.done():
            future.set_result(answer)


def _fail(future: asyncio.Future[Any], error: EngineError) -> None:
    if not future.done():
        future.set_exception(error)
