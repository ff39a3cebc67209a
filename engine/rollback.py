"""What if a source was poisoned?  Its events are taken out of derivation, and can be put back.

A directive names the events; replay passes over them, and every view is built anew without them.
They stay in the log and can be read by who may: an incident is looked into, not hidden.
"""

import asyncio
from typing import TYPE_CHECKING

from engine import policy
from engine.commit import Desk
from engine.rows import About
from engine.selection import TABLES, Selection, latest
from projectors.forgets.rows import RollbackRow
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Directive, Entry, Exclude, Include
from schemas.errors import InvalidParameter, NotFound
from schemas.forget import LayerCounts, RollbackReceipt, RollbackRequest
from schemas.ids import format_id, parse_id

if TYPE_CHECKING:
    from engine.engine import Engine

_STEP = 512


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def roll_back(engine: "Engine", caller: Caller, request: RollbackRequest) -> RollbackReceipt:
    """Take the events of a caller, an actor or a time out of derivation; a dry run only counts."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    said = (request.caller, request.actor, request.recorded_from, request.recorded_to)
    if all(one is None for one in said):
        raise InvalidParameter(field="caller", reason="say whose events, or from when to when")
    found = await asyncio.to_thread(_events, engine, caller, request)
    before = await asyncio.to_thread(_counts, engine, caller)
    resting = await asyncio.to_thread(_resting, engine, found)
    rollback_id = None
    if found and not request.dry_run:
        rollback_id = engine.clock.new_id("job")
        command = Exclude(
            rollback_id=rollback_id,
            offsets=[entry.offset for entry in found],
            note=request.audit_note,
        )
        await engine.committer.submit(_Ruling(caller, decision, request, command))
        engine.packs.drop(lambda tenant, _: tenant == caller.tenant)
        engine.daemon.request_rebuild()
    return RollbackReceipt(
        rollback_id=rollback_id,
        dry_run=request.dry_run,
        events=len(found),
        first_event=found[0].event_id if found else None,
        last_event=found[-1].event_id if found else None,
        records_before=before,
        records_after=None,
        resting_on_them=resting,
        status="rebuilding" if rollback_id is not None else "preview",
    )


def get_rollback(engine: "Engine", caller: Caller, rollback_id: str) -> RollbackReceipt:
    """A rollback, and how many records there are now."""
    policy.require(engine, caller, "policy.administer.tenant")
    return _state(engine, caller, _find(engine, caller, rollback_id))


async def undo_rollback(engine: "Engine", caller: Caller, rollback_id: str) -> RollbackReceipt:
    """Let the events count again."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    row = _find(engine, caller, rollback_id)
    if not row.reverted:
        command = Include(rollback_id=rollback_id, offsets=row.offsets)
        await engine.committer.submit(_Ruling(caller, decision, RollbackRequest(), command))
        engine.daemon.request_rebuild()
    return _state(engine, caller, _find(engine, caller, rollback_id))


# ── finding ──────────────────────────────────────────────────────────────────────────────────


def _events(engine: "Engine", caller: Caller, request: RollbackRequest) -> list[Entry]:
    """The events that are meant, oldest first."""
    tenant_no, found = engine.tenant_no(caller), []
    for row in engine.log.headers(engine.log.base_offset + 1):
        header = row[0]
        if header.tenant_no != tenant_no or header.kind != 1:
            continue
        entry = engine.entry_of(engine.log.read_many([header.offset])[0])
        if _is_meant(entry, request):
            found.append(entry)
        if len(found) > limits.ROLLBACK_EVENTS_MAX:
            reason = f"more than {limits.ROLLBACK_EVENTS_MAX} events are meant"
            raise InvalidParameter(field="recorded_from", reason=reason)
    return found


def _is_meant(entry: Entry, request: RollbackRequest) -> bool:
    envelope = entry.envelope
    if envelope is None:
        return False
    actor = envelope.observed_actor.id if envelope.observed_actor is not None else entry.caller
    is_inside = request.scope is None or (entry.scope + "/").startswith(request.scope + "/")
    start, end = request.recorded_from, request.recorded_to
    return (
        is_inside
        and request.caller in (None, entry.caller)
        and request.actor in (None, actor)
        and (start is None or entry.recorded_at >= start)
        and (end is None or entry.recorded_at < end)
    )


def _counts(engine: "Engine", caller: Caller) -> LayerCounts:
    """How many records the tenant has now."""
    tenant_no = engine.tenant_no(caller) or 0
    found = {}
    for layer, table in TABLES.items():
        after, total = b"", 0
        while rows := engine.staged.page(tenant_no, table, after, _STEP):
            total += len(rows)
            after = rows[-1][0]
        found[layer] = total
    return LayerCounts(**found)


def _resting(engine: "Engine", entries: list[Entry]) -> LayerCounts:
    """How many records rest on these events, alone or in part."""
    found = Selection()
    for entry in entries:
        row = engine.staged.get(entry.tenant_no, "derives", entry.id)
        for name in row.ids if row is not None else ():
            record = latest(engine, entry.tenant_no, name)
            if record is not None:
                found.add(record, entry.scope_no)
    return found.counts(with_events=False)


def _find(engine: "Engine", caller: Caller, rollback_id: str) -> RollbackRow:
    raw, tenant_no = parse_id("job", rollback_id), engine.tenant_no(caller)
    row: RollbackRow | None = None
    if raw is not None and tenant_no is not None:
        row = engine.inline.get(tenant_no, "rollbacks", raw)
    if row is None:
        raise NotFound(f"There is no rollback {rollback_id[:80]!r}.", rollback_id=rollback_id[:80])
    return row


def _state(engine: "Engine", caller: Caller, row: RollbackRow) -> RollbackReceipt:
    now = _counts(engine, caller)
    ends = [next(engine.log.headers(at, at + 1))[0] for at in (row.offsets[0], row.offsets[-1])]
    is_done = not engine.daemon.is_rebuilding
    ended = "reverted" if row.reverted else "done"
    return RollbackReceipt(
        rollback_id=row.rollback_id,
        dry_run=False,
        events=len(row.offsets),
        first_event=format_id("evt", ends[0].id),
        last_event=format_id("evt", ends[1].id),
        records_before=now,
        records_after=now if is_done else None,
        resting_on_them=LayerCounts(),
        status=ended if is_done else "rebuilding",  # type: ignore[arg-type]
    )


class _Ruling:
    """A proposal to leave events out, or to take them in again."""

    entry_count = 1

    def __init__(
        self,
        caller: Caller,
        decision: Decision,
        request: RollbackRequest,
        command: Exclude | Include,
    ) -> None:
        self._caller = caller
        self._decision = decision
        self._note = request.audit_note
        self._command = command
        self.byte_count = limits.KIB + 9 * len(command.offsets)

    def decide(self, desk: Desk) -> None:
        """Nothing can stand in the way."""
        desk.add(self._caller, Directive(command=self._command))
        desk.audit(self._caller, self._decision, About(status=200, note=self._note))
