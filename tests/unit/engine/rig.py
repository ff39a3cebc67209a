"""What do tests of the engine stand on?

Stores in memory on a power supply that can be cut, a clock moved by hand, a projection whose rows
depend on everything before them, and an engine over all three that is stepped, killed and reopened.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import msgspec

from engine.beside import Beside, Gone
from engine.capture import capture, capture_bulk
from engine.clock import Clock
from engine.daemon import collect_skips
from engine.embedders import Kind
from engine.engine import FAMILIES, Engine, Projection, Stores, assemble, close, start
from engine.folder import Desk, Sight
from engine.lifecycle import Filter
from engine.rebuild import replay_inline, replay_stages
from engine.rows import BulkCaptureRequest, CaptureRequest
from engine.settings import Settings
from engine.state.integrity import LogReport, verify_log
from engine.state.kv import KV, Batch, StoreWriteFailed
from engine.state.memory import MemoryKV
from engine.state.names import TENANT
from engine.state.vault import FAMILIES as VAULT_FAMILIES
from engine.state.vault import Vault
from engine.state.views import Unit, family_of
from projectors.base import Change, Close, Drop, Projector, Put, Stage, View
from projectors.control import CONTROL
from projectors.derives import DERIVES
from schemas.caller import Caller
from schemas.entry import Entry
from schemas.envelope import BulkItem, BulkRequest, Context, Envelope, PlainText
from schemas.ids import derive_id
from schemas.receipts import BulkReceipt, Receipt

MASTER = bytes(range(32))
START_US = 1_770_000_000_000_000
OBSERVED_AT = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
ALICE = Caller(actor="user:alice", tenant="acme")

# ── time ─────────────────────────────────────────────────────────────────────────────────────


class HandClock(Clock):
    """A clock moved by hand: each reading is a microsecond later, and nothing takes any time."""

    def __init__(self, now_us: int = START_US) -> None:
        self.now = now_us
        super().__init__(self._read, seed=1)

    def _read(self) -> int:
        self.now += 1
        return self.now

    def step(self, seconds: float) -> None:
        """Set the clock forward, or back."""
        self.now += int(seconds * 1_000_000)

    @staticmethod
    def elapsed_s() -> float:
        """No time passes, so no batch ends early because the machine is busy."""
        return 0.0


class Impatient(threading.Event):
    """An event nobody waits for: between two attempts no time passes."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set, at once."""
        del timeout
        return self.is_set()


# ── stores ───────────────────────────────────────────────────────────────────────────────────


class Mains:
    """The power of a set of stores. Every operation that reaches a disk draws on it."""

    def __init__(self) -> None:
        self.is_off = False
        self.drawn: list[str] = []
        self._trip: tuple[str | None, bool] | None = None
        self._left = 0

    def trip(self, after: int = 0, operation: str | None = None, *, recovers: bool = False) -> None:
        """Fail after so many more operations (of one kind); for good, unless it recovers."""
        self._trip, self._left = (operation, recovers), after

    def draw(self, operation: str) -> None:
        """One operation goes to the disk, or fails."""
        if self._trip is not None and self._trip[0] in (None, operation):
            if self._left == 0:
                self.is_off = not self._trip[1]
                self._trip = None
                raise StoreWriteFailed(f"this {operation} failed")
            self._left -= 1
        if self.is_off:
            raise StoreWriteFailed("the power is off")
        self.drawn.append(operation)


class PoweredKV(MemoryKV):
    """The in-memory twin of a store on a disk that fails when its mains do."""

    def __init__(self, mains: Mains, families: tuple[str, ...] = ()) -> None:
        self.mains = mains
        super().__init__(families)

    def write(self, batch: Batch) -> None:
        """Apply the batch, if there is power."""
        self.mains.draw("write")
        super().write(batch)

    def sync(self) -> None:
        """Make writes durable, if there is power."""
        self.mains.draw("sync")
        super().sync()

    def create_family(self, name: str) -> None:
        """Add a family, if there is power."""
        if name not in self._visible:
            self.mains.draw("family")
        super().create_family(name)

    def drop_family(self, name: str) -> None:
        """Remove a family, if there is power."""
        if name in self._visible:
            self.mains.draw("family")
        super().drop_family(name)

    def left_behind(self, mains: Mains, *, power_cut: bool) -> "PoweredKV":
        """What is found on the disk afterwards: only what was synced, or all that was written."""
        rows = self._durable if power_cut else self._visible
        found = PoweredKV(Mains(), tuple(rows))
        found._visible = {name: family.copy() for name, family in rows.items()}
        found._durable = {name: family.copy() for name, family in rows.items()}
        found.mains = mains
        return found


@cache
def _laid_vault() -> PoweredKV:
    """A vault with keys laid ahead, made once: every engine's begins as a copy of it."""
    kv = PoweredKV(Mains(), VAULT_FAMILIES)
    Vault(kv, MASTER).lay_ahead(0)
    return kv


# ── one that folds beside the server, in this process ────────────────────────────────────────


class Inside:
    """The twin of the folding process: it too sees only what was written when it looked."""

    def __init__(self, unit: Unit, generation: int, stages: tuple[Stage, ...]) -> None:
        self.is_ready, self.has_ended = True, False
        self.is_held = False

        def look() -> Sight:
            base, own = MemoryKV(()), MemoryKV(())
            rows = unit.kv._visible
            base._visible = {name: family.copy() for name, family in rows.items()}
            for projector in unit.projectors:
                own.create_family(family_of(projector.name, generation))
            return Sight(base, own, unit.projectors, generation)

        self._desk = Desk(stages, look, lambda: None)

    def ask(self, message: bytes) -> "Future[bytes]":
        """Answer at once; or never, for one that was killed."""
        answer: Future[bytes] = Future()
        if self.has_ended:
            answer.set_exception(Gone("killed"))
        else:
            answer.set_result(self._desk.answer(message))
        return answer

    def hold(self) -> None:
        """It is kept still; what answers at once has nothing to stop."""
        self.is_held = True

    def let_go(self) -> None:
        """It goes on."""
        self.is_held = False

    def close(self) -> None:
        """End it."""
        self.has_ended = True


# ── an engine that can be left and come back to ──────────────────────────────────────────────


class Site:
    """A data directory in memory, and the engine that lives there now."""

    def __init__(
        self,
        projection: Projection | None = None,
        *,
        clock: Clock | None = None,
        batch_entries: int | None = None,
        durability: str = "fsync",
        index: Path | None = None,
        embedder: Kind = "hashing",
    ) -> None:
        self.projection = projection or Projection()
        self.clock = clock or HandClock()
        self.batch_entries = batch_entries
        self.settings = Settings(durability=durability, embedder=embedder)
        self.index = index
        self.mains = Mains()
        self.kv = PoweredKV(self.mains, FAMILIES)
        self.vault_kv = _laid_vault().left_behind(self.mains, power_cut=True)
        self._engine: Engine | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.kill(power_cut=False)

    @property
    def engine(self) -> Engine:
        """The engine that is open."""
        assert self._engine is not None, "nothing is open here"
        return self._engine

    async def open(
        self, projection: Projection | None = None, *, run_daemon: bool = False
    ) -> Engine:
        """Open what is here, perhaps with other projectors; the daemon is stepped by hand."""
        assert self._engine is None, "an engine is open already"
        self.projection = projection or self.projection
        stores = Stores(kv=self.kv, vault_kv=self.vault_kv, master=MASTER, index=self.index)
        self._engine = assemble(
            self.settings,
            stores,
            clock=self.clock,
            projection=self.projection,
            batch_entries=self.batch_entries,
        )
        if not run_daemon:
            self._engine.daemon._stopping = Impatient()
        await start(self._engine, run_daemon=run_daemon)
        return self._engine

    def fold_beside(self, batch_entries: int) -> Beside:
        """Have everything folded as a process beside the server would, by batches of this size."""
        engine, stages = self.engine, self.projection.stages
        beside = Beside(
            engine.staged,
            lambda generation, is_read_first: Inside(engine.staged, generation, stages),
            engine.daemon.foldable,
            self.clock,
        )
        beside.worth_entries, beside.batch_entries = 1, batch_entries
        beside.again_entries = batch_entries
        engine.daemon.beside = beside
        return beside

    async def stop(self) -> None:
        """Close as an operator would; everything is still there."""
        engine, self._engine = self.engine, None
        await close(engine)
        self._inherit(power_cut=False)

    async def kill(self, *, power_cut: bool) -> None:
        """End everything at this instant; the disk keeps what it has."""
        self.mains.is_off = True
        engine, self._engine = self._engine, None
        if engine is not None:
            task = engine.keeper._task
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(engine.daemon.stop)
            await asyncio.to_thread(engine.indexer.stop)
            engine.log.close()
        self._inherit(power_cut=power_cut)

    def _inherit(self, *, power_cut: bool) -> None:
        self.mains = Mains()
        self.kv = self.kv.left_behind(self.mains, power_cut=power_cut)
        self.vault_kv = self.vault_kv.left_behind(self.mains, power_cut=power_cut)

    async def step(self) -> bool:
        """One step of the daemon, in a thread as in life: a park goes through the event loop."""
        return await asyncio.to_thread(self.engine.daemon.step)

    async def settle(self) -> int:
        """Step until there is nothing to do; how many steps that took."""
        steps = 0
        while await self.step():
            steps += 1
            assert steps < 10_000, "the daemon never comes to rest"
        return steps

    async def index_all(self) -> int:
        """Step the indexer until there is nothing to do; how many steps that took."""
        steps = 0
        while await asyncio.to_thread(self.engine.indexer.step):
            steps += 1
            assert steps < 10_000, "the indexer never comes to rest"
        return steps


# ── things to say ────────────────────────────────────────────────────────────────────────────


def envelope(text: str, key: str | None = None, scope: str = "org:acme/user:alice") -> Envelope:
    """An experience; without a key of its own, its text is its key."""
    return Envelope(
        scope=scope,
        modality="conversation",
        content=PlainText(text=text),
        context=Context(observed_at=OBSERVED_AT),
        idempotency_key=key or text[:64],
    )


async def post(engine: Engine, text: str, *, caller: Caller = ALICE, **more: Any) -> Receipt:
    """Capture one experience."""
    return await capture(engine, caller, CaptureRequest(envelope=envelope(text, **more)))


async def post_many(engine: Engine, texts: list[str], caller: Caller = ALICE) -> BulkReceipt:
    """Capture experiences in one bulk call."""
    items = [
        BulkItem(
            scope=made.scope,
            modality=made.modality,
            content=made.content,
            context=made.context,
            idempotency_key=made.idempotency_key,
        )
        for made in map(envelope, texts)
    ]
    return await capture_bulk(engine, caller, BulkCaptureRequest(bulk=BulkRequest(items=items)))


def announcements(engine: Engine, tenant: str = "acme", **conditions: Any) -> list[Any]:
    """Everything public in the buffer, in order."""
    number = engine.names.number(TENANT, 0, tenant)
    wanted = Filter(tenant_no=number, **conditions)
    found, _ = engine.lifecycle.replay(wanted, bytes(16), engine.lifecycle.released_us, 1_000_000)
    return [event for _, event in found]


def names_of(events: list[Any], event_id: str | None = None) -> list[str]:
    """The names of announcements, perhaps only those of one event."""
    return [
        str(event.__struct_config__.tag)
        for event in events
        if event_id is None or event.event_id == event_id
    ]


# ── a projection whose rows depend on everything before them ─────────────────────────────────


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What an inline projector was shown, to the last detail."""

    digest: bytes


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A running count of one scope, and a digest of how it came about."""

    entries: int
    last: str
    digest: bytes


class Saying(msgspec.Struct, frozen=True, kw_only=True):
    """A record that lasts until the next one of its scope."""

    id: str
    text: str
    follows: str | None
    recorded_from: datetime
    recorded_to: datetime | None = None


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What a late stage makes of an early one's rows."""

    id: str
    strength: int
    earlier: str | None


def _text(entry: Entry) -> str:
    content = entry.envelope.content if entry.envelope is not None else None
    return content.text if isinstance(content, PlainText) else ""


def _witness(entry: Entry, view: View) -> Iterator[Change]:
    before = view.get("seen", b"last")
    digest = sha256((before.digest if before else b"") + repr(entry).encode()).digest()
    yield Put(table="seen", key=b"last", value=Seen(digest=digest))
    yield Put(table="seen", key=entry.offset.to_bytes(8, "big"), value=Seen(digest=digest))


WITNESS = Projector(name="witness", version=1, tables={"seen": Seen}, project=_witness)
"""Inline: chains a digest of every entry exactly as it was shown."""


def ledger(
    version: int = 1,
    refuses: Callable[[str], bool] = lambda text: False,
    make_id: Callable[[str, bytes, int], str] = derive_id,
) -> Projector:
    """Staged: counts, closes the record before, drops old ones, and looks at its own rows."""

    def project(entry: Entry, view: View) -> Iterator[Change]:
        text = _text(entry)
        if refuses(text):
            raise ValueError(f"cannot take {text!r}")
        scope = entry.scope_no.to_bytes(4, "big")
        before = view.get("counts", scope)
        number = before.entries if before is not None else 0
        in_force = [key for key, row in view.scan("facts", scope) if row.recorded_to is None]
        digest = sha256(repr((before, in_force, entry, version)).encode()).digest()
        count = Count(entries=number + 1, last=entry.event_id, digest=digest)
        yield Put(table="counts", key=scope, value=count)
        if before is not None:
            place = scope + number.to_bytes(4, "big")
            yield Close(table="facts", key=place, recorded_to=entry.recorded_at)
        record_id = make_id("fact", entry.id, 0)
        saying = Saying(
            id=record_id,
            text=text,
            follows=before.last if before is not None else None,
            recorded_from=entry.recorded_at,
        )
        yield Put(
            table="facts",
            key=scope + (number + 1).to_bytes(4, "big"),
            value=saying,
            record_id=record_id,
            supports=tuple(filter(None, (saying.follows, entry.event_id))),
        )
        if number >= 4:
            yield Drop(table="facts", key=scope + (number - 3).to_bytes(4, "big"))

    tables = {"counts": Count, "facts": Saying}
    return Projector(name="ledger", version=version, tables=tables, project=project)


def opinions(refuses: Callable[[str], bool] = lambda text: False) -> Projector:
    """Staged, late: what it says depends on what the early stage made of the same entry."""

    def project(entry: Entry, view: View) -> Iterator[Change]:
        if refuses(_text(entry)):
            raise RuntimeError(f"no opinion on {_text(entry)!r}")
        scope = entry.scope_no.to_bytes(4, "big")
        count, before = view.get("counts", scope), view.get("beliefs", scope)
        made = Opinion(
            id=derive_id("belief", entry.id, 0),
            strength=count.entries if count is not None else 0,
            earlier=before.id if before is not None else None,
        )
        yield Put(
            table="beliefs",
            key=scope,
            value=made,
            record_id=made.id,
            supports=(entry.event_id,),
        )

    return Projector(name="opinions", version=1, tables={"beliefs": Opinion}, project=project)


def projection(
    early: Projector | None = None,
    late: Projector | None = None,
    inline: tuple[Projector, ...] = (CONTROL, WITNESS),
) -> Projection:
    """The whole of it: every stage of the engine's own, with these projectors in two of them."""
    return Projection(
        inline=inline,
        stages=(
            Stage("extracted", (early or ledger(), DERIVES)),
            Stage("indexed", ()),
            Stage("consolidated", (late or opinions(),)),
            Stage("compressed", ()),
        ),
    )


# ── do the views follow from the log? ────────────────────────────────────────────────────────

Views = dict[str, list[tuple[bytes, bytes]]]


def views_of(kv: KV, *units: Unit) -> Views:
    """Every row that is served, by projector."""
    return {
        projector.name: list(kv.scan(family_of(projector.name, unit.state.generation)))
        for unit in units
        for projector in unit.projectors
    }


def kept(engine: Engine) -> Views:
    """The views as they were kept, entry by entry."""
    return views_of(engine.kv, engine.inline, engine.staged)


def replayed(engine: Engine, projection: Projection) -> Views:
    """The views as they follow from the log, as far as the kept ones have come."""
    kv = MemoryKV(FAMILIES)
    inline, staged = Unit(kv, "inline", projection.inline), Unit(kv, "staged", projection.staged)
    inline.begin_build()
    staged.begin_build()
    silent: Callable[[int, int], None] = lambda done, total: None  # noqa: E731
    replay_inline(inline, engine.log, engine.entry_of, engine.inline.state.checkpoint, silent)
    skips = frozenset(collect_skips(engine.log, engine.entry_of, 1))
    until = engine.staged.state.checkpoint
    replay_stages(
        staged,
        projection.stages,
        engine.log,
        engine.entry_of,
        skips=skips,
        until=until,
        progress=silent,
    )
    inline.swap()
    staged.swap()
    return views_of(kv, inline, staged)


def verify(engine: Engine) -> LogReport:
    """Chain, gaps, bodies and indexes of the log as the store has it."""
    fresh = assemble(engine.settings, engine.stores)
    with contextlib.closing(fresh.log):
        return verify_log(fresh.log, engine.kv, None, lambda done, total: None)
