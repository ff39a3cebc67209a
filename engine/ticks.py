"""When must the log be told that time has passed?

Projectors know time from entries only (docs/adr/0003), so an episode that nothing follows would
stay open for ever, and evidence that a belief holds back would wait for ever. Here someone looks
whether one is due, and writes a tick that names it; when none is, nothing is written, and an idle
engine stays idle.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from engine.commit import Committer, Desk
from engine.state.names import TENANT
from engine.state.views import Unit
from projectors import beliefs, episodes
from schemas import limits
from schemas.caller import SYSTEM
from schemas.entry import Directive, Tick
from schemas.errors import Unavailable
from schemas.ids import format_id

_Due = tuple[str, Callable[[int], bytes], Callable[[bytes], bytes]]
_TABLES: Final[dict[str, _Due]] = {
    "episode_due": ("ep", episodes.due_before, episodes.due_episode),
    "belief_due": ("belief", beliefs.due_before, beliefs.due_belief),
}
"""Rows in the order of time: (prefix of the id, end of those whose time has come, whose a row is).
"""


class Ticks:
    """Looks for records whose time has come. What it needs to know is in the views and the log."""

    def __init__(self, committer: Committer, staged: Unit) -> None:
        self._committer = committer
        self._staged = staged
        self._names = committer.names
        self._last: int | None = None
        self.written = 0
        """How many this process has written."""

    async def look(self) -> int:
        """Write ticks for what is due, unless the views have yet to take earlier ones; how many."""
        if self._last is None:
            # After a restart: what the log holds and the views do not may be ticks already.
            self._last = self._committer.log.head()
        if self._staged.state.checkpoint < self._last:
            return 0
        found = await asyncio.to_thread(lambda: list(self._due()))
        written = 0
        try:
            for tenant, due in found:
                self._last = await self._committer.submit(_TickProposal(tenant, due))
                written += 1
                self.written += 1
        except Unavailable:
            # Nothing is lost by waiting: what is due now is due at the next look as well.
            return written
        return written

    def _due(self) -> Iterator[tuple[str, list[str]]]:
        """What is due by now, a tenant and a tick's worth at a time."""
        now_us = self._committer.clock.now_us()
        most = limits.TICK_RECORDS_MAX * limits.TICKS_MAX
        for tenant_no, tenant in self._names.all(TENANT, 0):
            named: list[str] = []
            for table, (prefix, due_before, due_of) in _TABLES.items():
                if table in self._staged.owner:
                    rows = self._staged.page(tenant_no, table, b"", most)
                    end = due_before(now_us)
                    named += [format_id(prefix, due_of(key)) for key, _ in rows if key < end]
            for at in range(0, len(named), limits.TICK_RECORDS_MAX):
                yield tenant, named[at : at + limits.TICK_RECORDS_MAX]


class _TickProposal:
    """A directive that says that time has passed, and for whom."""

    entry_count = 1

    def __init__(self, tenant: str, due: list[str]) -> None:
        self._caller = msgspec.structs.replace(SYSTEM, tenant=tenant)
        self._due = due
        self.byte_count = 64 * len(due)

    def decide(self, desk: Desk) -> int:
        """Where it stands; nothing can stand in its way."""
        return desk.add(self._caller, Directive(command=Tick(due=self._due))).offset
