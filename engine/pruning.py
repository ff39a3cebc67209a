"""Which scopes has everybody left, and may they go?  (001 §8.8.6)"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from engine import policy
from engine.commit import Desk
from engine.rows import About
from engine.scopes import ScopeWalk, count_events, is_write_to, row_of
from engine.state.names import SCOPE
from projectors.control import policy_key
from projectors.control.rows import ScopeRow
from schemas.caller import Caller, Decision
from schemas.entry import Directive, DropScope
from schemas.errors import InvalidParameter
from schemas.scopes import PruneCandidate, PruneReceipt, PruneRequest
from schemas.times import from_us, seconds_of, to_us

if TYPE_CHECKING:
    from engine.engine import Engine


async def prune_scopes(engine: "Engine", caller: Caller, request: PruneRequest) -> PruneReceipt:
    """Find auto-provisioned scopes nobody writes to any more, and drop them when asked to.

    One call looks at a bounded number of scopes; `has_more` and the cursor lead on (001 §8.8.6).
    """
    decision = policy.require(engine, caller, "policy.administer.tenant")
    before_us = _cut(engine, request.older_than)
    question = (caller.tenant, "prune", request.older_than)
    after = b"" if request.cursor is None else engine.cursors.read(request.cursor, *question)
    walk = ScopeWalk(engine, caller, after)
    candidates = await asyncio.to_thread(_stale, engine, caller, walk, before_us, request.limit)
    pruned = 0
    if candidates and not request.dry_run:
        paths = [candidate.path for candidate in candidates]
        pruned = await engine.committer.submit(Pruning(engine, caller, decision, paths, before_us))
    more = walk.has_more()
    return PruneReceipt(
        candidates=candidates,
        total=len(candidates),
        pruned=pruned,
        next_cursor=engine.cursors.make(walk.after, *question) if more else None,
        has_more=more,
    )


class Pruning:
    """A proposal to drop the registrations of scopes that were found stale."""

    def __init__(
        self,
        engine: "Engine",
        caller: Caller,
        decision: Decision,
        paths: list[str],
        before_us: int,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._paths = paths
        self._before_us = before_us
        self.entry_count = len(paths)
        self.byte_count = 512 * len(paths)

    def decide(self, desk: Desk) -> int:
        """How many were dropped: what was written to or claimed since they were found stays."""
        tenant_no = desk.tenant_no(self._caller)
        dropped = 0
        for path in self._paths:
            row = row_of(self._engine, desk, tenant_no, path)
            if row is not None and _is_stale(self._engine, desk, tenant_no, row, self._before_us):
                command = DropScope(records="keep")
                desk.add(self._caller, Directive(command=command, scope=path))
                dropped += 1
        note = f"pruned {dropped} scopes"
        desk.audit(self._caller, self._decision, About(status=200, note=note))
        return dropped


def _cut(engine: "Engine", older_than: str) -> int:
    """The moment before which a last write is too long ago."""
    try:
        length_us = timedelta(seconds=seconds_of(older_than)) // timedelta(microseconds=1)
    except OverflowError as error:
        reason = "longer than any calendar"
        raise InvalidParameter(field="older_than", reason=reason) from error
    return engine.clock.now_us() - length_us


def _stale(
    engine: "Engine", caller: Caller, walk: ScopeWalk, before_us: int, limit: int
) -> list[PruneCandidate]:
    tenant_no = engine.tenant_no(caller)
    found: list[PruneCandidate] = []
    while tenant_no is not None and len(found) < limit and (row := walk.next()) is not None:
        if _is_stale(engine, None, tenant_no, row, before_us):
            scope_no = engine.names.known(SCOPE, tenant_no, row.path) or 0
            last_us = _last_write_us(engine, tenant_no, scope_no)
            found.append(
                PruneCandidate(
                    path=row.path,
                    last_write=None if last_us is None else from_us(last_us),
                    records=count_events(engine, tenant_no, scope_no),
                )
            )
    return found


def _is_stale(
    engine: "Engine", desk: Desk | None, tenant_no: int, row: ScopeRow, before_us: int
) -> bool:
    """Auto-provisioned, with no policy of its own, and not written to since."""
    scope_no = engine.names.known(SCOPE, tenant_no, row.path) or 0
    views = engine.inline if desk is None else desk.overlay
    said = views.get(tenant_no, "policies", policy_key(scope_no))
    if not row.auto_provisioned or said is not None:
        return False
    fresh = [] if desk is None else desk.entries
    if any(is_write_to(entry, tenant_no, scope_no) for entry in fresh):
        return False
    last_us = _last_write_us(engine, tenant_no, scope_no)
    return (to_us(row.created_at) if last_us is None else last_us) < before_us


def _last_write_us(engine: "Engine", tenant_no: int, scope_no: int) -> int | None:
    log = engine.log
    newest = engine.directory.scope_offsets(
        tenant_no, scope_no, after=log.written + 1, newest_first=True, limit=1
    )
    return next(log.headers(newest[0]))[0].recorded_us if newest else None
