"""Who makes a scope's concepts anew, and how does one hear of it?  (001 §8.7.11)

A job: it writes directives, each for a bounded number of concepts, and waits for the projection to
have followed one before it writes the next. After a restart it goes on from where it was.
"""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.directives import Asked, Order, Written
from engine.jobs import Job, find_job, job_command, require_own, started_by
from projectors.jobs import JobRow
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Command, Directive, Entry, Synthesize
from schemas.reads import SynthesisState, SynthesizeReceipt, SynthesizeRequest

if TYPE_CHECKING:
    from engine.engine import Engine

_FAMILY: Final = "/v1/understanding/synthesize"
_KIND: Final = "synthesis"


class Started(msgspec.Struct, frozen=True):
    """The job, and whether an earlier call with the same key began it."""

    receipt: SynthesizeReceipt
    is_replay: bool


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def synthesize(engine: "Engine", caller: Caller, request: SynthesizeRequest) -> Started:
    """Begin to make the concepts of a scope anew, those with inputs they have not seen, or all."""
    decision = policy.require(engine, caller, "understanding.synthesize", request.scope)
    said = msgspec.structs.replace(request, idempotency_key=None)

    def choose(desk: Desk, tenant_no: int) -> Command:
        del desk, tenant_no
        asked = {"topics": list(request.topics), "force": request.force}
        return job_command(engine, caller, _KIND, asked)

    asked = Asked(
        family=_FAMILY, said=said, key=request.idempotency_key, status=202, scope=request.scope
    )
    order = Order(engine, caller, decision, asked, choose)
    written: Written = await engine.committer.submit(order)
    row = find_job(engine, caller, started_by(written.entry), _KIND)
    if not written.is_replay:
        engine.jobs.run(engine, caller.tenant, row)
    receipt = SynthesizeReceipt(
        job_id=row.job_id,
        status=row.status,
        lifecycle_stream=f"/v1/lifecycle/stream?job_id={row.job_id}",
    )
    return Started(receipt, is_replay=written.is_replay)


def get_synthesis(engine: "Engine", caller: Caller, job_id: str) -> SynthesisState:
    """How far a synthesis is; its caller asks, or who administers the tenant."""
    policy.require(engine, caller, "understanding.read")
    row = find_job(engine, caller, job_id, _KIND)
    require_own(engine, caller, "understanding.synthesize", row)
    return _state(row)


def _state(row: JobRow) -> SynthesisState:
    return SynthesisState(
        job_id=row.job_id,
        scope=row.scope,
        status=row.status,
        looked_at=row.counts.get("looked_at", 0),
        made=row.counts.get("made", 0),
        started_at=row.at,
        updated_at=row.updated_at,
    )


# ── the work ─────────────────────────────────────────────────────────────────────────────────


async def run_synthesis(job: Job) -> dict[str, Any]:
    """One directive after the other, until no concept of the scope is left."""
    job.stop_if_asked()
    engine, after = job.engine, job.row.position or None
    counts = {name: job.row.counts.get(name, 0) for name in ("looked_at", "made")}
    tenant_no = engine.tenant_no(job.caller)
    assert tenant_no is not None, "who has begun a job has a number"
    while True:
        entry: Entry = await engine.committer.submit(_Round(job, after))
        while not await engine.lifecycle.wait("compressed", entry.offset, limits.LAG_S_MAX):
            pass  # the projection is far behind, or being rebuilt
        row = engine.staged.get(tenant_no, "concept_syntheses", entry.id)
        if row is None:
            return counts  # it was parked, which its own announcement says
        counts = {
            "looked_at": counts["looked_at"] + row.looked_at,
            "made": counts["made"] + row.made,
        }
        after = row.next
        total = counts["looked_at"] if after is None else counts["looked_at"] + 1
        await job.move(counts["looked_at"], total, position=after or "", counts=counts)
        if after is None:
            return counts


class _Round:
    """A proposal of one directive of a synthesis."""

    entry_count = 1
    byte_count = limits.KIB

    def __init__(self, job: Job, after: str | None) -> None:
        self._job = job
        self._after = after

    def decide(self, desk: Desk) -> Entry:
        """Nothing can stand in the way."""
        asked = self._job.row.request
        command = Synthesize(
            topics=asked["topics"], force=asked["force"], after=self._after, job_id=self._job.id
        )
        return desk.add(self._job.caller, Directive(command=command, scope=self._job.row.scope))
