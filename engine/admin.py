"""Is it well, and what may an operator ask of it?"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import msgspec

from engine import policy
from engine.annotator import NAME as ANNOTATOR
from engine.backlog import work_health
from engine.commit import Desk
from engine.rows import About
from engine.state.kv import StoreError
from engine.state.names import TENANT
from engine.state.views import Unit
from schemas.caller import Caller, Decision
from schemas.entry import Directive, Unpark
from schemas.errors import NotFound, WalUnavailable
from schemas.health import (
    CompactReceipt,
    DiskHealth,
    FlushReceipt,
    Health,
    ProjectorHealth,
    ProjectorList,
    RebuildReceipt,
)
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_PARKED_SHOWN = 20
_LOOP_LAG_MS_MAX = 1000.0
_NO_DISK = DiskHealth(free_bytes=0, low_water_bytes=0, ballast_bytes=0, data_bytes=0)


@cache
def package_version() -> str:
    """The version of the installed distribution; to look for it reads files, half a millisecond."""
    try:
        return version("strata-memory")
    except PackageNotFoundError:
        return "0+unknown"


def health(engine: "Engine", caller: Caller) -> Health:
    """Liveness, readiness, and the state of every part; nothing here is older than a moment."""
    policy.require(engine, caller, "admin.health")
    head = engine.log.head()
    reasons = _reasons(engine)
    live = engine.keeper.loop_lag_ms < _LOOP_LAG_MS_MAX
    ready = live and not reasons
    parked, annotator = _parked(engine), engine.annotator
    is_troubled = annotator is not None and annotator.is_troubled
    work = work_health(engine)
    is_slow = engine.daemon.beside is not None and engine.daemon.beside.failure is not None
    degraded = (
        is_troubled
        or is_slow
        or bool(parked)
        or bool(work.dead_letters)
        or engine.daemon.is_rebuilding
        or engine.indexer.is_degraded
    )
    return Health(
        status=("degraded" if degraded else "healthy") if ready else "unready",
        live=live,
        ready=ready,
        reasons=reasons,
        version=package_version(),
        preset=engine.settings.preset,
        durability=engine.settings.durability,
        extractor="rules" if engine.model is None else engine.model.name,
        embedder=engine.embedder.name,
        head_offset=engine.log.written,
        durable_offset=head,
        lag_entries=max(0, head - engine.staged.state.announced),
        loop_lag_ms=round(engine.keeper.loop_lag_ms, 3),
        queued_entries=engine.committer.queued_entries,
        projectors=_projectors(engine, parked),
        disk=engine.keeper.disk.health() if engine.keeper.disk else _NO_DISK,
        annotator=None if annotator is None else annotator.health(),
        index=engine.indexer.health(),
        work=work,
        subscribers=engine.lifecycle.subscriber_count,
        checked_at=from_us(engine.clock.now_us()),
    )


def readiness(engine: "Engine") -> list[str]:
    """Why writes or projection would not work now; empty when they would."""
    return _reasons(engine)


def _reasons(engine: "Engine") -> list[str]:
    found = (
        engine.log.failure and f"log: {engine.log.failure}",
        engine.committer.refusal and f"disk: {engine.committer.refusal}",
        engine.daemon.failure and f"daemon: {engine.daemon.failure}",
        engine.indexer.failure and f"indexer: {engine.indexer.failure}",
        engine.keeper.failure and f"keeper: {engine.keeper.failure}",
    )
    return [reason for reason in found if reason]


def _parked(engine: "Engine") -> dict[str, list[str]]:
    """Parked events by projector, over all tenants."""
    found: dict[str, list[str]] = {}
    for tenant_no, _ in engine.names.all(TENANT, 0):
        for _, row in engine.inline.scan(tenant_no, "parked"):
            found.setdefault(row.projector, []).append(row.event_id)
    return found


def _projectors(engine: "Engine", parked: dict[str, list[str]]) -> list[ProjectorHealth]:
    head = engine.log.head()
    return [
        ProjectorHealth(
            name=projector.name,
            version=projector.version,
            state=_unit_state(engine, unit),
            checkpoint=unit.cursor,
            lag_entries=max(0, head - unit.cursor),
            parked=len(parked.get(projector.name, [])),
            parked_events=parked.get(projector.name, [])[:_PARKED_SHOWN],
        )
        for unit in (engine.inline, engine.staged)
        for projector in unit.projectors
    ]


def _unit_state(engine: "Engine", unit: Unit) -> str:
    if unit is engine.staged and engine.daemon.failure is not None:
        return "stopped"
    return "rebuilding" if unit.state.building is not None else "running"


def list_projectors(engine: "Engine", caller: Caller) -> ProjectorList:
    """Every projector: version, state, lag, and what it could not take."""
    policy.require(engine, caller, "admin.health")
    return ProjectorList(items=_projectors(engine, _parked(engine)))


def rebuild_projector(engine: "Engine", caller: Caller, name: str) -> RebuildReceipt:
    """Build a staged projector's views anew beside the old ones; they swap when caught up."""
    policy.require(engine, caller, "admin.flush")
    _require_staged(engine, name)
    engine.daemon.request_rebuild()
    return RebuildReceipt(projector=name, status="rebuilding", unparked=[])


async def retry_projector(engine: "Engine", caller: Caller, name: str) -> RebuildReceipt:
    """Take parked entries back in: the projector's views are rebuilt with them."""
    decision = policy.require(engine, caller, "admin.flush")
    if name == ANNOTATOR and engine.annotator is not None:
        again = engine.annotator.retry()
        status = "retrying" if again else "nothing failed"
        return RebuildReceipt(projector=name, status=status, unparked=again)
    _require_staged(engine, name)
    freed: list[str] = []
    for _, tenant in engine.names.all(TENANT, 0):
        freed += await engine.committer.submit(_Retry(engine, caller, decision, tenant, name))
    if freed:
        engine.daemon.request_rebuild()
    return RebuildReceipt(
        projector=name, status="rebuilding" if freed else "nothing parked", unparked=freed
    )


def _require_staged(engine: "Engine", name: str) -> None:
    if name not in engine.staged.versions:
        known = ", ".join(engine.staged.versions)
        raise NotFound(f"There is no staged projector {name[:80]!r}; there are: {known}.")


class _Retry:
    """A proposal to unpark everything one projector has parked in one tenant."""

    entry_count = 1
    byte_count = 512

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, tenant: str, name: str
    ) -> None:
        self._engine = engine
        self._caller = msgspec.structs.replace(caller, tenant=tenant)
        self._decision = decision
        self._name = name

    def decide(self, desk: Desk) -> list[str]:
        """The event ids that are taken back in."""
        tenant_no = self._engine.names.number(TENANT, 0, self._caller.tenant)
        rows = [row for _, row in desk.overlay.scan(tenant_no, "parked", b"")]
        mine = [row for row in rows if row.projector == self._name]
        if not mine:
            return []
        command = Unpark(projector=self._name, offsets=[row.offset for row in mine])
        desk.add(self._caller, Directive(command=command))
        desk.audit(self._caller, self._decision, About(status=202))
        return [row.event_id for row in mine]


async def flush_views(engine: "Engine", caller: Caller, wait_ms: int) -> FlushReceipt:
    """Wait until every view has caught up with the log as it is now."""
    policy.require(engine, caller, "admin.flush")
    started = engine.clock.elapsed_s()
    head = engine.log.head()
    engine.daemon.wake()
    done = await engine.lifecycle.wait("consolidated", head, wait_ms / 1000)
    units = (engine.inline, engine.staged)
    return FlushReceipt(
        flushed_to=min(head, engine.staged.state.announced),
        checkpoints={p.name: unit.cursor for unit in units for p in unit.projectors},
        elapsed_ms=round((engine.clock.elapsed_s() - started) * 1000, 3),
        partial=not done,
        partial_reason=None if done else "wait_deadline",
    )


def compact(engine: "Engine", caller: Caller) -> CompactReceipt:
    """Rewrite every family, so that what was deleted leaves the files."""
    policy.require(engine, caller, "admin.compact")
    if engine.log.failure is not None:
        raise WalUnavailable(reason=engine.log.failure)
    started = engine.clock.elapsed_s()
    before = engine.kv.stats()["size_bytes"]
    families = [family for family in engine.kv.families() if _compacted(engine, family)]
    return CompactReceipt(
        families=families,
        bytes_before=before,
        bytes_after=engine.kv.stats()["size_bytes"],
        elapsed_ms=round((engine.clock.elapsed_s() - started) * 1000, 3),
    )


def _compacted(engine: "Engine", family: str) -> bool:
    """Rewrite one family; False when a rebuild that ended meanwhile has dropped it."""
    while family in (there := engine.kv.families()):
        try:
            engine.kv.compact(family)
        except StoreError:
            if there == engine.kv.families():
                raise
        else:
            return True
    return False
