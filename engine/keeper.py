"""Who does the recurring chores?  Anchors, disk, syncs, ticks, pruning, retention, a scrub."""

import asyncio
import ctypes

from engine import garbage
from engine.commit import Committer
from engine.daemon import Daemon
from engine.disk import Disk
from engine.schedule import Chore, Schedule
from engine.state.anchors import Anchor, Anchors
from engine.state.integrity import check_stretch
from engine.state.kv import CorruptStore, StoreError
from engine.state.names import TENANT
from engine.ticks import Ticks
from schemas import limits

_TICK_S = 0.05


class Keeper:
    """One task on the event loop; what blocks runs off it."""

    def __init__(
        self,
        committer: Committer,
        daemon: Daemon,
        *,
        anchors: Anchors | None,
        disk: Disk | None,
    ) -> None:
        self._committer = committer
        self._daemon = daemon
        self._log = committer.log
        self._lifecycle = committer.lifecycle
        self._trail = committer.trail
        self._names = committer.names
        self._clock = committer.clock
        self.anchors = anchors
        self.disk = disk
        self.ticks = Ticks(committer, daemon.unit)
        self.scrubbed = 0
        """How far the log was read again, since it was last begun from its first entry."""
        self.schedule = Schedule(self._clock, self._chores())
        self.loop_lag_ms = 0.0
        self.failure: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._anchored = (anchors.last.size if anchors and anchors.last else 0, 0.0)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin ticking."""
        if self.disk is not None:
            self.disk.lay_ballast()
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        """Stop ticking, with a last anchor over everything acknowledged."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._log.sync_buffered()
        await self._anchor(force=True)

    def _chores(self) -> list[Chore]:
        async def watch_disk() -> None:
            self._watch_disk()

        async def look_at_garbage() -> None:
            garbage.look_at_all()

        return [
            Chore("disk", limits.DISK_LOOK_S, watch_disk),
            Chore("ticks", limits.TICK_S, self.ticks.look),
            Chore("prune", limits.PRUNE_S, lambda: asyncio.to_thread(self.prune)),
            # A server that never runs for an hour keeps its retention all the same.
            Chore(
                "retention",
                limits.RETAIN_S,
                lambda: asyncio.to_thread(self._trail.prune),
                first_s=limits.PRUNE_S,
            ),
            Chore("garbage", limits.RETAIN_S, look_at_garbage),
            Chore("scrub", limits.SCRUB_S, lambda: asyncio.to_thread(self.scrub)),
        ]

    async def _run(self) -> None:
        self.schedule.start()
        while True:
            before = self._clock.elapsed_s()
            await asyncio.sleep(_TICK_S)
            now = self._clock.elapsed_s()
            self.loop_lag_ms = max(0.0, (now - before - _TICK_S) * 1000)
            if self._trail.is_due(now):
                self._committer.flush()
            try:
                await self._log.sync_buffered()
                await self._anchor()
                await self.schedule.run_due()
            except (StoreError, OSError) as error:
                # Anchors and pruning are chores, but a store that fails them is not to be trusted.
                self.failure = f"a chore failed: {error}"
                self._log.fail(self.failure)

    async def _anchor(self, *, force: bool = False) -> None:
        """Sign where the log ends, every second or thousand entries."""
        size, at = self._anchored
        head, chain = self._log.anchor_point()
        now = self._clock.elapsed_s()
        if self.anchors is None or head == size:
            return
        if force or head - size >= limits.ANCHOR_ENTRIES or now - at >= limits.ANCHOR_S:
            anchor = Anchor(size=head, chain=chain, at_us=self._clock.now_us())
            await asyncio.to_thread(self.anchors.write, anchor)
            self._anchored = (head, now)

    def _watch_disk(self) -> None:
        if self.disk is None:
            return
        low = self.disk.is_low()
        self._committer.refusal = "the disk is nearly full" if low else None
        if not low:
            self.disk.lay_ballast()

    def scrub(self) -> None:
        """Read the next stretch of the log again: damage to what nobody reads is found, too."""
        start = max(self.scrubbed, self._log.base_offset)
        start = start if start < self._log.head() else self._log.base_offset
        try:
            self.scrubbed = check_stretch(self._log, start, limits.SCRUB_ENTRIES)
        except CorruptStore:
            # Somebody may just have been erasing it; damage is there the second time, too.
            self.scrubbed = check_stretch(self._log, start, limits.SCRUB_ENTRIES)

    def prune(self) -> None:
        """Drop announcements older than the buffer, and the far end of the change feed."""
        self._lifecycle.prune([number for number, _ in self._names.all(TENANT, 0)])
        self._daemon.trim_feed()
        _give_back()


def _give_back() -> None:
    """Hand memory that nothing uses back to the system: the C library would keep it for itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
