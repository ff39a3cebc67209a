"""What is open while the engine runs, and how is it opened and closed?"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine import announcer, audit, daemon, follow, lifecycle
from engine.admin import package_version
from engine.annotator import Annotator
from engine.announcer import Announcer
from engine.audit import Trail, days_of
from engine.beside import Beside, Process
from engine.blobs import sweep
from engine.clock import Clock
from engine.commit import Committer, Desk
from engine.courtesy import SWITCH_S, Hush
from engine.cursor import Cursors
from engine.daemon import Daemon, run_in_loop
from engine.disk import Disk
from engine.embedders import load_embedder, load_past
from engine.entries import EntryReader
from engine.erase import run_erasure
from engine.exports import run_export
from engine.imports import run_import
from engine.indexer import Indexer, Served
from engine.issuers import load_issuers
from engine.jobs import Jobs, Runner
from engine.keeper import Keeper
from engine.layers.synthesis import run_synthesis
from engine.lifecycle import Lifecycle
from engine.models import Model
from engine.packs import Packs
from engine.policy import Policies
from engine.rates import Rates
from engine.rebuild import rebuild_inline
from engine.redaction import resume as resume_redactions
from engine.settings import Settings, embedder_of, preset_of
from engine.shared_rates import SharedRates
from engine.state import log as log_state
from engine.state import names as names_state
from engine.state.anchors import Anchors
from engine.state.aside import come_soon
from engine.state.blob_files import Blobs, FileBlobs, MemoryBlobs
from engine.state.directory import Directory
from engine.state.generations import Generations
from engine.state.index import Embedder, TextIndex, VectorIndex
from engine.state.integrity import check_tail
from engine.state.keyring import FOLDER, Keyring
from engine.state.keys import load_secret, sync_directory, write_durably
from engine.state.kv import KV, StoreError
from engine.state.log import KvLog
from engine.state.names import TENANT, Names
from engine.state.rocks import RocksKV
from engine.state.rows import Row
from engine.state.scratch import clear_scratch
from engine.state.syncer import Syncer
from engine.state.vault import FAMILIES as VAULT_FAMILIES
from engine.state.vault import Vault
from engine.state.views import Unit
from engine.tokens import Verified, Verifier
from engine.told import Told
from engine.work.board import Board
from engine.work.embedding import SharedEmbedder, is_slow
from engine.work.queue import ArqQueue
from projectors import INLINE, STAGES
from projectors.base import Projector, Stage
from projectors.control import revoked_key
from projectors.fold import ProjectorFailed
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Directive, Entry, Park
from schemas.errors import told_plainly

FAMILIES = (
    *log_state.FAMILIES,
    *names_state.FAMILIES,
    *lifecycle.FAMILIES,
    *daemon.FAMILIES,
    *announcer.FAMILIES,
    *audit.FAMILIES,
    *follow.FAMILIES,
)
__all__ = ["Engine", "Projection", "StoreError", "Stores", "assemble", "open_engine", "open_stores"]

FORMAT = "strata data 1\n"
_GATES = frozenset({"policies", "actor_policies", "revoked", "scopes"})
SYSTEM_ACTOR = "system:strata"
_RUNNERS: dict[str, Runner] = {
    "import": run_import,
    "export": run_export,
    "synthesis": run_synthesis,
    "erasure": run_erasure,
}


@dataclass(frozen=True)
class Projection:
    """Which projectors run; the engine's own unless a test brings others."""

    inline: tuple[Projector, ...] = INLINE
    stages: tuple[Stage, ...] = STAGES

    @property
    def staged(self) -> tuple[Projector, ...]:
        """The projectors of every stage, in order."""
        return tuple(projector for stage in self.stages for projector in stage.projectors)


@dataclass(frozen=True)
class Stores:
    """The two databases and the secrets of a data directory."""

    kv: KV
    vault_kv: KV
    master: bytes
    anchors: Anchors | None = None
    disk: Disk | None = None
    blobs: Blobs = field(default_factory=MemoryBlobs)
    keyring: Keyring | None = None
    """The wrapping keys of tenants; None wraps them by the master key alone."""
    index: Path | None = None
    """Where the files of the indexes lie; None keeps them in memory."""
    worker_token: str | None = None
    """What a worker shows when it asks for work; None lets nobody ask."""

    def close(self) -> None:
        """Release both databases."""
        try:
            self.kv.close()
        finally:
            self.vault_kv.close()


@dataclass(frozen=True)
class Engine:
    """A frozen bag of open resources. It does no work itself: verbs do."""

    settings: Settings
    clock: Clock
    stores: Stores
    kv: KV
    vault: Vault
    names: Names
    log: KvLog
    inline: Unit
    staged: Unit
    lifecycle: Lifecycle
    committer: Committer
    trail: Trail
    daemon: Daemon
    indexer: Indexer
    jobs: Jobs
    board: Board
    keeper: Keeper
    model: Model | None
    annotator: Annotator | None
    policies: Policies
    rates: Rates
    shared_rates: SharedRates | None
    verifier: Verifier | None
    cursors: Cursors
    packs: Packs
    entries: EntryReader
    told: Told

    @property
    def directory(self) -> Directory:
        """Where in the log things are."""
        return self.log.directory

    @property
    def blobs(self) -> Blobs:
        """Where bytes lie that are no text."""
        return self.stores.blobs

    @property
    def served(self) -> Served:
        """Text, vectors and embedder of one generation: ask once a request, for they may swap."""
        return self.indexer.served()

    @property
    def text(self) -> TextIndex:
        """Documents by their words."""
        return self.served.text

    @property
    def vectors(self) -> VectorIndex:
        """Documents by their meaning."""
        return self.served.vectors

    @property
    def embedder(self) -> Embedder:
        """The model that made the vectors."""
        return self.served.embedder

    def entry_of(self, row: Row) -> Entry:
        """A row of the log as an entry."""
        return self.entries.read(row)

    def tenant_no(self, caller: Caller) -> int | None:
        """The caller's tenant's number; None when it has never written."""
        return self.names.known(TENANT, 0, caller.tenant)


# ── opening ──────────────────────────────────────────────────────────────────────────────────


def open_stores(settings: Settings, *, read_only: bool = False) -> Stores:
    """Open a data directory: made when it is not there, refused when it is damaged."""
    data = settings.data
    if read_only and not (data / "format").exists():
        raise StoreError(f"{data} is not a data directory")
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_format(data)
    disk = Disk(data, settings.disk_low_water_mb, settings.ballast_mb)
    if not read_only and disk.is_tight():
        disk.make_room()
    master = load_secret(data / "keys" / "master.key")
    keyring = Keyring(data / "keys" / FOLDER)
    anchors = Anchors(data / "anchors.log", load_secret(data / "keys" / "anchor.key"))
    # Before the databases: an anchor read later could vouch for more than an earlier snapshot has.
    anchors.load(repair=not read_only)
    if not read_only:
        clear_scratch(data / "store")  # of one that folded when the server was killed
    kv = RocksKV.open(data / "store", FAMILIES, read_only=read_only)
    try:
        vault_kv = RocksKV.open(data / "vault", VAULT_FAMILIES, read_only=read_only)
        if not read_only:
            # The names of the databases, and of the directory itself, may be new.
            sync_directory(data)
            sync_directory(data.absolute().parent)
    except BaseException:
        kv.close()
        raise
    blobs = FileBlobs(data / "blobs")
    return Stores(
        kv=kv,
        vault_kv=vault_kv,
        master=master,
        anchors=anchors,
        disk=disk,
        blobs=blobs,
        keyring=keyring,
        index=data / "index",
        worker_token=None if read_only else _worker_token(settings),
    )


def _worker_token(settings: Settings) -> str | None:
    """The token that is set, else one that is made for this directory; none without a Redis."""
    if settings.redis_url is None:
        return None
    if settings.worker_token is not None:
        return settings.worker_token.value
    return load_secret(settings.data / "keys" / "worker.key").hex()


def _check_format(data: Path) -> None:
    mark = data / "format"
    if not mark.exists():
        write_durably(mark, FORMAT.encode())
    elif mark.read_text() != FORMAT:
        found = mark.read_text().strip()
        raise StoreError(f"{data} holds {found!r}; this version reads {FORMAT.strip()!r}")


def assemble(
    settings: Settings,
    stores: Stores,
    *,
    clock: Clock | None = None,
    projection: Projection | None = None,
    batch_entries: int | None = None,
) -> Engine:
    """Wire the organs together over open stores. Nothing runs yet."""
    clock, projection = clock or Clock(), projection or Projection()
    kv = stores.kv
    vault = Vault(stores.vault_kv, stores.master, stores.keyring)
    bus = Lifecycle(kv, clock)
    buffered = settings.durability == "buffered"
    syncer = Syncer(kv.sync)
    log = KvLog(kv, vault, order=bus.order, syncer=syncer, buffered=buffered)
    names = Names(kv, stores.master)
    entries = EntryReader(names)
    inline, staged = _units(kv, projection)
    policies = Policies(preset_of(settings), inline, names)
    trail = _trail(kv, vault, names, clock, policies)
    committer = Committer(
        log=log, trail=trail, names=names, inline=inline, lifecycle=bus, clock=clock
    )
    shared_rates = _shared_rates(settings, clock)
    rates = Rates(policies, clock, shared=shared_rates)
    committer.on_control = _control_listener(policies, rates, bus)
    runner = Daemon(
        log=log,
        unit=staged,
        stages=projection.stages,
        announcer=Announcer(kv, bus, (lambda _: None) if buffered else syncer.sync, committer.way),
        clock=clock,
        entry_of=entries.read,
        batch_entries=batch_entries or limits.PROJECT_ENTRIES_MAX,
    )
    runner.beside = _beside(settings, kv, runner, projection)
    keeper = Keeper(committer, runner, anchors=stores.anchors, disk=stores.disk)
    model, board = _model(settings, clock), _board(settings, clock, stores.worker_token)
    sources = follow.Sources(kv, log, staged, names, vault, clock, committer.way)
    return Engine(
        settings=settings,
        clock=clock,
        stores=stores,
        kv=kv,
        vault=vault,
        names=names,
        log=log,
        inline=inline,
        staged=staged,
        lifecycle=bus,
        committer=committer,
        trail=trail,
        daemon=runner,
        jobs=Jobs(_RUNNERS),
        board=board,
        indexer=_indexer(settings, stores, sources, board),
        keeper=keeper,
        model=model,
        annotator=None if model is None else Annotator(model, kv, committer, vault, board),
        policies=policies,
        rates=rates,
        shared_rates=shared_rates,
        verifier=_verifier(settings, clock, inline, names),
        cursors=Cursors(stores.master),
        packs=Packs(stores.master, clock),
        entries=entries,
        told=Told(log, entries.read),
    )


def _units(kv: KV, projection: Projection) -> tuple[Unit, Unit]:
    # Inline rows are committed before their batch is written: those are not kept for readers.
    inline = Unit(kv, "inline", projection.inline)
    return inline, Unit(kv, "staged", projection.staged, keeps_recent=True)


def _beside(settings: Settings, kv: KV, runner: Daemon, projection: Projection) -> Beside | None:
    """Another process to fold a backlog, where it can see the store and knows the projectors."""
    can_see = isinstance(kv, RocksKV) and projection.stages is STAGES
    if settings.projection == "thread" or not can_see:
        return None
    start = partial(Process, settings.data / "store", embedder_of(settings))
    beside, way = Beside(runner.unit, start, runner.foldable, runner.clock), runner.announcer.way
    way.on_came = Hush(way, beside.hold, beside.let_go).came
    return beside


def _trail(kv: KV, vault: Vault, names: Names, clock: Clock, policies: Policies) -> Trail:
    kept_days = days_of(policies.preset.audit_retention)
    trail = Trail(kv, vault, names, clock, retention_days=kept_days)
    trail.stores_body_bytes = policies.stores_body_bytes
    return trail


def _shared_rates(settings: Settings, clock: Clock) -> SharedRates | None:
    redis_url = settings.redis_url
    return None if redis_url is None else SharedRates(redis_url.secret, clock)


def _board(settings: Settings, clock: Clock, token: str | None) -> Board:
    """Tasks for workers, when there is a Redis to tell them by."""
    if settings.redis_url is None or token is None:
        return Board(clock)
    return Board(clock, ArqQueue(settings.redis_url.secret, token), package_version())


def _indexer(settings: Settings, stores: Stores, sources: follow.Sources, board: Board) -> Indexer:
    kind, key = embedder_of(settings), settings.embed_key

    def load() -> Embedder:
        secret = None if key is None else key.value
        own = load_embedder(kind, settings.embed_url, settings.embed_model or "", secret)
        return SharedEmbedder(own, board) if is_slow(kind) else own

    return Indexer(sources, Generations(stores.kv, stores.index), load, kind)


def _control_listener(
    policies: Policies, rates: Rates, bus: Lifecycle
) -> Callable[[Mapping[tuple[int, str, bytes], Any]], None]:
    """What must hear of control rows: what is remembered of policy, and open streams."""

    def listen(pending: Mapping[tuple[int, str, bytes], Any]) -> None:
        policies.changed(pending)
        rates.changed(pending)
        if any(table in _GATES for _, table, _ in pending):
            bus.recheck()

    return listen


def _model(settings: Settings, clock: Clock) -> Model | None:
    """The language model, when one is set."""
    if settings.llm_url is None or settings.llm_model is None:
        return None
    key = settings.llm_key.value if settings.llm_key is not None else None
    return Model(settings.llm_url, settings.llm_model, key, clock)


def _verifier(settings: Settings, clock: Clock, inline: Unit, names: Names) -> Verifier | None:
    """Checks tokens, when there are issuers to believe."""
    if settings.issuers_file is None:
        return None

    def is_revoked(verified: Verified) -> bool:
        tenant_no = names.known(TENANT, 0, verified.tenant)
        if tenant_no is None:
            return False
        return inline.get(tenant_no, "revoked", revoked_key(verified.token_id)) is not None

    tenants = frozenset(settings.tenants) or None
    return Verifier(load_issuers(settings.issuers_file), tenants, clock, is_revoked)


async def start(engine: Engine, *, run_daemon: bool = True) -> None:
    """Check the tail, bring inline views up to date, and set everything running."""
    if engine.stores.anchors is not None:
        check_tail(engine.log, engine.stores.anchors)
    engine.vault.tidy()
    engine.log.prepare()
    rebuild_inline(engine.inline, engine.log, engine.entry_of)
    sweep(engine)
    engine.daemon.prepare()
    engine.indexer.prepare(load_past)
    loop = asyncio.get_running_loop()
    engine.lifecycle.bind(loop)
    engine.lifecycle.reached("captured", engine.log.head())
    engine.daemon.park = lambda entry, failed, attempts: run_in_loop(
        loop, lambda: engine.committer.submit(_ParkProposal(entry, failed, attempts))
    )
    engine.committer.on_durable = engine.daemon.wake
    engine.daemon.on_folded = engine.indexer.wake
    engine.daemon.on_described = engine.indexer.described.put
    engine.indexer.on_indexed = engine.daemon.announcer.indexed
    # The daemon is a thread of pure Python: with the default of 5 ms it would hold the event loop
    # up for that long whenever both have work.
    sys.setswitchinterval(SWITCH_S)
    if run_daemon:
        engine.daemon.announcer.waits_for_index = True
        engine.indexer.start()
        engine.daemon.start()
    # After those whom nobody waits for: a thread is as soon there as the one that started it.
    come_soon()
    engine.keeper.start(loop)
    engine.board.start(loop)
    await resume_redactions(engine)
    if run_daemon:
        engine.jobs.resume(engine)
    if engine.annotator is not None:
        engine.annotator.prepare()
        if run_daemon:
            engine.annotator.start(loop)
    if engine.shared_rates is not None:
        engine.shared_rates.start(loop)


async def close(engine: Engine) -> None:
    """Drain, stop, anchor, close: what was acknowledged is on the disk, the lock is free."""
    engine.lifecycle.close_all()
    await engine.jobs.stop()
    if engine.annotator is not None:
        await engine.annotator.stop()
    await engine.board.stop()
    if engine.shared_rates is not None:
        await engine.shared_rates.stop()
    await engine.committer.drained()
    await asyncio.to_thread(engine.daemon.stop)
    await asyncio.to_thread(engine.indexer.stop)
    await engine.committer.drained()
    engine.committer.flush()
    await engine.committer.drained()
    await engine.keeper.stop()
    engine.log.close()
    engine.stores.close()


@contextlib.asynccontextmanager
async def open_engine(
    settings: Settings,
    *,
    clock: Clock | None = None,
    stores: Stores | None = None,
    projection: Projection | None = None,
    batch_entries: int | None = None,
) -> AsyncIterator[Engine]:
    """The engine, running, for the length of a block."""
    opened = stores if stores is not None else await asyncio.to_thread(open_stores, settings)
    try:
        engine = assemble(
            settings, opened, clock=clock, projection=projection, batch_entries=batch_entries
        )
        await start(engine)
    except BaseException:
        opened.close()
        raise
    try:
        yield engine
    finally:
        await close(engine)


class _ParkProposal:
    """A directive that parks an entry, in the tenant and scope of the entry."""

    entry_count = 1
    byte_count = 512

    def __init__(self, entry: Entry, failed: ProjectorFailed, attempts: int) -> None:
        self._entry = entry
        self._command = Park(
            projector=failed.projector,
            offset=entry.offset,
            event_id=entry.event_id,
            error=told_plainly(failed.cause)[:500],
            attempts=attempts,
        )

    def decide(self, desk: Desk) -> None:
        """Park it; nothing can stand in the way."""
        caller = Caller(actor=SYSTEM_ACTOR, tenant=self._entry.tenant)
        desk.add(caller, Directive(command=self._command, scope=self._entry.scope or None))
