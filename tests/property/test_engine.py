"""Whatever happens, in whatever order, wherever the power fails: does the engine keep its word?

A state machine does to an engine what clients, operators, crashes and clocks do, and keeps a plain
model of what it was told. I1 to I5 of DESIGN §2 are checked against that model.
"""

import asyncio
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from engine.admin import retry_projector
from engine.capture import capture_bulk
from engine.lifecycle import Filter
from engine.rows import BulkCaptureRequest
from engine.state.kv import StoreError
from engine.state.names import TENANT
from engine.watch import CancelRequest, cancel
from schemas.caller import Caller
from schemas.entry import Cancel, Directive, Experience
from schemas.envelope import BulkItem, BulkRequest
from schemas.errors import IdempotencyConflict, WalUnavailable
from schemas.ids import parse_id
from schemas.lifecycle import STAGE_ORDER

CALLERS = [
    Caller(actor="user:alice", tenant="acme"),
    Caller(actor="user:bob", tenant="acme"),
    Caller(actor="user:alice", tenant="globex"),
]
TENANTS = ("acme", "globex")
STAGES = list(STAGE_ORDER[:4])

callers = st.sampled_from(CALLERS)
scopes = st.sampled_from(["org:acme", "org:acme/user:alice", "user:x"])
keys = st.sampled_from([f"key {number}" for number in range(8)])
texts = st.sampled_from(["hello", "world", "poison early", "poison late", "x" * 1500])
posts = st.tuples(scopes, keys, texts)
power_cuts = st.booleans()
soon = st.integers(0, 12)


@dataclass
class Written:
    """What the model knows of one key: the words, and where they were put."""

    scope: str
    text: str
    event_id: str
    offset: int


@dataclass
class Listener:
    """A client that follows one tenant, and resumes with the last id it saw."""

    tenant: str
    heard: list = field(default_factory=list)
    subscription: object = None

    def join(self, engine):
        """Go on after the last announcement heard: the buffer first, then what happens."""
        number = engine.names.number(TENANT, 0, self.tenant)
        self.subscription = engine.lifecycle.subscribe(Filter(tenant_no=number))
        until = self.subscription.last_queued_us
        after = parse_id("lce", self.heard[-1]) if self.heard else bytes(16)
        found, _ = engine.lifecycle.replay(self.subscription.wanted, after, until, 1_000_000)
        self.heard += [event.lifecycle_id for _, event in found]

    def listen(self):
        """Take what was said since."""
        queue = self.subscription.queue
        while queue:
            (line,) = [ln for ln in queue.popleft()[1].split(b"\n") if ln.startswith(b"id: ")]
            self.heard.append(line[4:].decode())


class Clients(RuleBasedStateMachine):
    """An engine, everything that can befall it, and a model of what it promised."""

    def __init__(self, rig):
        super().__init__()
        self.rig = rig
        self.runner = asyncio.Runner()
        self.is_healed = False
        self.version = 1
        self.site = rig.Site(self._projection())
        self.model: dict[tuple, Written] = {}
        self.unsure: dict[tuple, tuple[str, str]] = {}
        self.cancelled: dict[str, list[str]] = {}
        self.unsure_cancels: set[str] = set()
        self.power_cut = True
        self.listeners = [Listener(tenant) for tenant in TENANTS]
        self._open()

    def _projection(self):
        rig = self.rig
        early = rig.ledger(
            version=self.version,
            refuses=lambda text: text == "poison early" and not self.is_healed,
        )
        late = rig.opinions(refuses=lambda text: text == "poison late" and not self.is_healed)
        return rig.projection(early, late)

    # ── doing ────────────────────────────────────────────────────────────────────────────────

    def _open(self):
        engine = self.runner.run(self.site.open(self._projection()))
        for listener in self.listeners:
            listener.join(engine)

    def _attempt(self, work):
        """Do something; when the power failed meanwhile, its outcome is unknown: None."""
        try:
            answer = self.runner.run(work)
        except (WalUnavailable, StoreError):
            if not self.site.mains.is_off:
                raise
            return None
        for listener in self.listeners:
            listener.listen()
        return answer

    def _recover(self):
        """If the power failed: what is left is opened, and must be everything promised."""
        if self.site.mains.is_off:
            self._crash(power_cut=self.power_cut)

    def _crash(self, *, power_cut, again=None):
        for listener in self.listeners:
            listener.listen()
        self.runner.run(self.site.kill(power_cut=power_cut))
        if again is not None:
            self.site.mains.trip(again)
            try:
                self.runner.run(self.site.open(self._projection()))
            except StoreError:
                assert self.site.mains.is_off
            self.runner.run(self.site.kill(power_cut=power_cut))
        self._open()
        self._check_log()

    # ── clients ──────────────────────────────────────────────────────────────────────────────

    @rule(caller=callers, post=posts)
    def capture(self, caller, post):
        """One key, one event; the same words replay, other words conflict."""
        scope, key, text = post
        place = (caller.tenant, caller.actor, "single", key)
        head = self.site.engine.log.head()
        known = self.model.get(place)
        try:
            receipt = self._attempt(
                self.rig.post(self.site.engine, text, key=key, scope=scope, caller=caller)
            )
        except IdempotencyConflict:
            assert known is not None
            assert (known.scope, known.text) != (scope, text)
            return
        if receipt is None:
            if known is None:
                self.unsure[place] = (scope, text)
        elif known is None:
            assert head + 1 == receipt.wal_offset == self.site.engine.log.head()
            assert not receipt.replayed_from_idempotency
            self.model[place] = Written(scope, text, receipt.event_id, receipt.wal_offset)
        else:
            assert receipt.replayed_from_idempotency
            assert (known.scope, known.text) == (scope, text)
            assert (known.event_id, known.offset) == (receipt.event_id, receipt.wal_offset)
        self._recover()

    @rule(caller=callers, items=st.lists(posts, min_size=1, max_size=6))
    def capture_many(self, caller, items):
        """All of them or none, in their order."""
        made = [self.rig.envelope(text, key, scope) for scope, key, text in items]
        bulk = BulkRequest(
            items=[
                BulkItem(
                    scope=one.scope,
                    modality=one.modality,
                    content=one.content,
                    context=one.context,
                    idempotency_key=one.idempotency_key,
                )
                for one in made
            ]
        )
        fresh, is_conflict = {}, False
        for scope, key, text in items:
            place = (caller.tenant, caller.actor, "bulk", key)
            known = self.model.get(place) or fresh.get(place)
            if known is None:
                fresh[place] = Written(scope, text, "", 0)
            elif (known.scope, known.text) != (scope, text):
                is_conflict = True
        engine = self.site.engine
        head = engine.log.head()
        request = BulkCaptureRequest(bulk=bulk)
        try:
            receipt = self._attempt(capture_bulk(engine, caller, request))
        except IdempotencyConflict:
            assert is_conflict
            assert head == engine.log.head()
            return
        if receipt is None:
            for place, written in fresh.items():
                self.unsure[place] = (written.scope, written.text)
        else:
            assert not is_conflict
            assert (len(items), len(items) - len(fresh)) == (receipt.accepted, receipt.replayed)
            rows = engine.log.read(head + 1, 100)
            assert len(fresh) == len(rows)
            for (place, written), row in zip(fresh.items(), rows, strict=True):
                entry = engine.entry_of(row)
                written.event_id, written.offset = entry.event_id, entry.offset
                self.model[place] = written
        self._recover()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def cancel(self, data):
        """What an answer says was cancelled never runs; a repeat says the same."""
        place, written = data.draw(st.sampled_from(sorted(self.model.items(), key=repr)))
        caller = Caller(actor=place[1], tenant=place[0])
        engine = self.site.engine
        receipt = self._attempt(cancel(engine, caller, written.event_id, CancelRequest()))
        if receipt is None:
            self.unsure_cancels.add(written.event_id)
        else:
            stages = receipt.stages_cancelled
            assert stages in ([], STAGES[1:])
            assert self.cancelled.setdefault(written.event_id, stages) == stages
        self._recover()

    # ── operators ────────────────────────────────────────────────────────────────────────────

    @rule(batch_entries=st.integers(1, 9), times=st.integers(1, 4))
    def step(self, batch_entries, times):
        """The daemon carries a batch of some size."""
        self.site.engine.daemon._batch_entries = batch_entries
        for _ in range(times):
            if self._attempt(self.site.step()) is None:
                break
        self._recover()

    @rule(batch_entries=st.integers(1, 9))
    def fold_beside(self, batch_entries):
        """From now on another process folds."""
        self.site.fold_beside(batch_entries)

    @rule()
    def kill_the_folder(self):
        """It dies, whatever it has folded and not handed over."""
        beside = self.site.engine.daemon.beside
        if beside is not None and beside._process is not None:
            beside._process.close()

    @rule()
    def fold_inside(self):
        """From now on the server folds by itself."""
        self.site.engine.daemon.beside = None

    @rule(batch_entries=st.integers(1, 9), after=st.integers(0, 3), power_cut=power_cuts)
    def step_into_a_crash(self, batch_entries, after, power_cut):
        """The daemon is cut off at its work: before its write, before its sync, or behind it."""
        self.crash_soon(power_cut, after)
        self.step(batch_entries, 2)

    @rule()
    def settle(self):
        """The daemon catches up."""
        self._attempt(self.site.settle())
        self._recover()

    @rule()
    def rebuild(self):
        """An operator asks for the views to be built anew."""

        async def ask():
            self.site.engine.daemon.request_rebuild()

        self._attempt(ask())
        self._recover()

    @rule(name=st.sampled_from(["ledger", "opinions"]), heals=st.booleans(), is_cut_off=power_cuts)
    def retry(self, name, heals, is_cut_off):
        """Parked entries are taken back in, by projectors that may have learnt to take them."""
        self.is_healed |= heals
        self._attempt(retry_projector(self.site.engine, CALLERS[0], name))
        self._recover()
        if is_cut_off:
            self._crash(power_cut=True)

    @rule(power_cut=power_cuts, steps=st.integers(0, 3))
    def upgrade(self, power_cut, steps):
        """A new version of a projector is installed, and begins to build its views."""
        self.version += 1
        self._crash(power_cut=power_cut)
        self.step(2, steps)

    @rule(seconds=st.sampled_from([-3600, -1, 1, 86_400]))
    def set_clock(self, seconds):
        """The wall clock steps."""
        self.site.clock.step(seconds)

    @rule(at=st.integers(0, 1))
    def reconnect(self, at):
        """A client loses its stream and resumes it."""
        listener = self.listeners[at]
        self.site.engine.lifecycle.unsubscribe(listener.subscription)
        listener.join(self.site.engine)

    # ── faults ───────────────────────────────────────────────────────────────────────────────

    @rule(power_cut=power_cuts, again=st.none() | soon)
    def crash(self, power_cut, again):
        """The power fails, or the process is killed; perhaps once more while it starts again."""
        self._crash(power_cut=power_cut, again=again)

    @rule(power_cut=power_cuts, after=soon)
    def crash_soon(self, power_cut, after):
        """It will happen between two operations on the disk, whoever makes them."""
        self.power_cut = power_cut
        self.site.mains.trip(after)

    # ── what must hold ───────────────────────────────────────────────────────────────────────

    def _check_log(self):
        """I1, I2, I3: everything acknowledged is there, once, without a gap."""
        engine = self.site.engine
        entries = [engine.entry_of(row) for row in engine.log.read(1, 1_000_000)]
        assert list(range(1, engine.log.head() + 1)) == [entry.offset for entry in entries]
        ids = [entry.id for entry in entries]
        assert sorted(set(ids)) == ids
        found: dict[tuple, Written] = {}
        cancels: dict[str, list[str]] = {}
        for entry in entries:
            if isinstance(entry.body, Experience):
                family = "bulk" if entry.body.batch_id else "single"
                key = entry.body.envelope.idempotency_key
                place = (entry.tenant, entry.caller, family, key)
                assert place not in found, f"{place} was stored twice"
                text = entry.body.envelope.content.text
                found[place] = Written(entry.scope, text, entry.event_id, entry.offset)
            elif isinstance(entry.body, Directive) and isinstance(entry.body.command, Cancel):
                command = entry.body.command
                assert command.event_id not in cancels, "cancelled twice"
                cancels[command.event_id] = [s for s in command.stages if s in STAGES]
        for place, written in found.items():
            if place not in self.model:
                assert (written.scope, written.text) == self.unsure.pop(place)
                self.model[place] = written
        self.unsure.clear()
        assert self.model == found
        for event_id, stages in cancels.items():
            if event_id not in self.cancelled:
                assert event_id in self.unsure_cancels
                self.cancelled[event_id] = stages
        self.unsure_cancels.clear()
        assert self.cancelled == cancels

    def _check_views(self):
        """I4 and I5: the chain verifies, and every view follows from the log, byte for byte."""
        engine = self.site.engine
        assert engine.log.head() == self.rig.verify(engine).entries
        assert engine.log.head() == engine.staged.state.checkpoint
        assert self.rig.replayed(engine, self.site.projection) == self.rig.kept(engine)
        served = [name for name in engine.kv.families() if name.startswith("view.")]
        assert 5 == len(served), served

    def _check_announcements(self):
        """Each stage of each event once, in order; nobody missed or heard twice."""
        engine = self.site.engine
        for listener in self.listeners:
            public = self.rig.announcements(engine, listener.tenant)
            assert [event.lifecycle_id for event in public] == listener.heard
            assert sorted(set(listener.heard)) == listener.heard
            said: dict[str, list] = {}
            for event in public:
                name = self.rig.names_of([event])[0]
                if name in STAGES:
                    said.setdefault(event.event_id, []).append((name, event.sequence))
            mine = {p: w for p, w in self.model.items() if p[0] == listener.tenant}
            expected = {}
            for written in mine.values():
                left_out = self.cancelled.get(written.event_id, [])
                expected[written.event_id] = [
                    (stage, at) for at, stage in enumerate(STAGES, 1) if stage not in left_out
                ]
            assert expected == said

    def teardown(self):
        """Let it come to rest, check everything, cut the power, and check again."""
        try:
            if self.site.mains.is_off:
                self._crash(power_cut=self.power_cut)
            self.site.mains.trip(10**9)
            self._attempt(self.site.settle())
            for _ in range(2):
                self._check_log()
                self._check_views()
                self._check_announcements()
                self._crash(power_cut=True)
        finally:
            self.runner.run(self.site.kill(power_cut=False))
            self.runner.close()


def test_an_engine_keeps_its_word(rig):
    """Random clients, operators, clocks and crashes against a plain model (I1 to I5)."""
    run_state_machine_as_test(
        lambda: Clients(rig),
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
