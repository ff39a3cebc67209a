"""Who carries the log to the projectors?

A thread reads the log from its checkpoint, folds a bounded batch, and writes changes, change feed,
checkpoint and announcements in one batch. It can be killed anywhere: what it had not written it
does again, with the same result (I4).
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Final

from engine.announcer import Announcer
from engine.beside import Beside, Stretch
from engine.clock import Clock
from engine.courtesy import Courtesy
from engine.folding import fold_entry
from engine.pace import LOOK_S, Pace, Posts, entries_beside
from engine.rows import Folded, Step
from engine.state.aside import push_nobody
from engine.state.kv import KV, Batch, StoreError
from engine.state.log import KvLog
from engine.state.rows import Row
from engine.state.views import Unit, build_request, packed
from projectors.base import Stage
from projectors.fold import ProjectorFailed, Skips
from projectors.overlay import Overlay
from schemas import limits
from schemas.entry import (
    KINDS,
    Cancel,
    Directive,
    Entry,
    Exclude,
    Include,
    Park,
    Unforget,
    Unpark,
)
from schemas.errors import Unavailable
from schemas.ids import uuid7_instant_us
from schemas.lifecycle import STAGE_ORDER

FAMILIES = ("feed",)
_DIRECTIVE: Final = KINDS[Directive]
_IDLE_S: Final = 0.5
EntryOf = Callable[[Row], Entry]
Parker = Callable[[Entry, ProjectorFailed, int], None]
Failed = ProjectorFailed | None


class Daemon:
    """The runner of the staged projectors."""

    def __init__(
        self,
        *,
        log: KvLog,
        unit: Unit,
        stages: tuple[Stage, ...],
        announcer: Announcer,
        clock: Clock,
        entry_of: EntryOf,
        batch_entries: int = limits.PROJECT_ENTRIES_MAX,
    ) -> None:
        self._kv: KV = unit.kv
        self._log = log
        self.unit = unit
        self._stages = stages
        self._lifecycle = announcer.lifecycle
        self.announcer = announcer
        self.clock = clock
        self._entry_of = entry_of
        self._courtesy = Courtesy(announcer.way)
        self._batch_entries = batch_entries
        self.park: Parker | None = None
        self.beside: Beside | None = None
        self.on_folded: Callable[[], None] | None = None
        self.on_described: Callable[[int, int, bytes], None] = _nobody
        self.failure: str | None = None
        self._lock = threading.Lock()
        self._skips: set[tuple[str, int]] = set()
        self._held: dict[int, int] = {}
        self._attempts: dict[tuple[str, int], int] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._rebuild = threading.Event()
        self._rebuild_after = 0
        self._running: threading.Thread | None = None
        self.processed_entries = 0
        self._batch_ended_s = 0.0
        self._pace = Pace()
        self._posts = Posts(log.written)
        self._rest_s = 0.0
        self._beside_entries = 0
        self._seen = log.written
        self._loop_thread: int | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """Decide what to build, and learn what to skip."""
        if self.unit.needs_build() and self.unit.is_current() and self.unit.state.building is None:
            # Asked for, not forced: what a directive takes out of the rows that are read comes
            # first, and is not put off until the others are built.
            self.unit.ensure_families()
            self._rebuild_after = self._log.written
            self._rebuild.set()
        elif self.unit.needs_build():
            self.unit.begin_build()
        else:
            self.unit.ensure_families()
        if self.unit.state.generation == 0 and self.unit.state.announced == 0:
            # Nothing was ever derived: readers get the empty views at once.
            self._finish_build()
        self._learn_skips()
        self.unit.drop_leftovers()
        self.announcer.load(self.unit.state.announced)

    def start(self) -> None:
        """Run in a thread of its own until `stop`, beside the event loop that called."""
        self._loop_thread = threading.get_ident()
        self._running = threading.Thread(target=self._run, name="projection", daemon=True)
        self._running.start()

    def wake(self) -> None:
        """The log has grown."""
        self._wake.set()

    def stop(self) -> None:
        """Finish the batch at hand and return."""
        self._stopping.set()
        self._wake.set()
        if self.beside is not None:
            self.beside.hold_no_more()
        if self._running is not None:
            self._running.join()
        if self.beside is not None:
            self.beside.close()

    def request_rebuild(self) -> None:
        """Build every staged view anew beside the old rows, then swap. Survives a restart.

        It begins when the rows that are read have all that is written now: what a directive took
        away is gone from them at once, and not when the new ones are ready.
        """
        batch = self._kv.batch()
        batch.put("meta", build_request(self.unit.name), b"1")
        self._kv.write(batch)
        self._rebuild_after = self._log.written
        self._rebuild.set()
        self._wake.set()

    @property
    def is_rebuilding(self) -> bool:
        """Whether a generation is being built beside the one that is read."""
        return self._rebuild.is_set() or self.unit.state.building is not None

    def _run(self) -> None:
        push_nobody()
        while not self._stopping.is_set():
            self._wake.clear()
            self._rest()
            meter = self._meter()
            began = meter()
            try:
                moved = self.step()
            except StoreError as error:
                # The store is broken, not the entry: stop here, visibly, and let reads go on.
                self.failure = f"projection stopped: {error}"
                return
            except Exception as error:  # the guard of the daemon: health goes red
                self.failure = f"projection stopped: {error!r}"
                raise
            worked_s = meter() - began
            is_busy = self._posts.saw(self._log.written, self.clock.elapsed_s())
            self._mind_others(is_busy=is_busy)
            self._rest_s = self._pace.rest_s(
                worked_s, is_busy=is_busy, behind=self._log.written - self.unit.cursor
            )
            if not moved:
                self._wake.wait(_IDLE_S)

    def _mind_others(self, *, is_busy: bool) -> None:
        """While others post: batches are small, their fsyncs are waited for, and they go first."""
        before, self._seen = self._seen, self._log.written
        self.announcer.way.mind_posts(is_busy=is_busy)
        self._beside_entries = entries_beside(self._seen - before) if is_busy else 0
        self.announcer.patience_s = limits.SYNC_PATIENCE_S if is_busy else 0.0

    def _meter(self) -> Callable[[], float]:
        """What a batch takes of the interpreter; who waits for another process takes nothing.

        In a rush what that process takes is counted as well: the processor is what is short.
        """
        is_beside = self.beside is not None and self.beside.is_at_work
        is_own = is_beside and not self._pace.is_pressed
        return self._own_cpu_s if is_own else self.clock.elapsed_s

    def _own_cpu_s(self) -> float:
        return self.clock.thread_cpu_s(threading.get_ident()) or 0.0

    def _rest(self) -> None:
        """Leave the interpreter to the event loop, as long as it has use for it.

        When nothing happened lately the first entry does not wait.
        """
        rest_s = self._batch_ended_s + self._rest_s - self.clock.elapsed_s()
        while rest_s > 0 and not self._stopping.is_set():
            self._look(min(rest_s, LOOK_S))
            # A rush that is over is over: nobody waits for the rest of it.
            rest_s = rest_s - LOOK_S if self._pace.is_pressed else 0.0

    def _look(self, rest_s: float) -> None:
        """See what the event loop does with all of the interpreter."""
        began, before = self.clock.elapsed_s(), self._loop_cpu_s()
        self._stopping.wait(rest_s)
        after, rested_s = self._loop_cpu_s(), self.clock.elapsed_s() - began
        if before is None or after is None or rested_s <= 0:
            self._pace.saw(None, rested_s)
        else:
            self._pace.saw((after - before) / rested_s, rested_s)

    def _loop_cpu_s(self) -> float | None:
        return None if self._loop_thread is None else self.clock.thread_cpu_s(self._loop_thread)

    # ── one batch ────────────────────────────────────────────────────────────────────────────

    def step(self) -> bool:
        """Carry one batch, or finish a rebuild; False when there is nothing to do."""
        if self._log.failure is not None:
            # A batch of the log may be lost: nothing that could follow from it is announced.
            raise StoreError(f"the log has failed: {self._log.failure}")
        is_idle = self.unit.state.building is None and self.unit.cursor >= self._rebuild_after
        if self._rebuild.is_set() and is_idle:
            self.unit.keeps_up = False
            self.unit.begin_build()
            self._rebuild.clear()
            if self.unit.needs_build():
                self._rebuild.set()  # asked for again meanwhile
            self._learn_skips()
        head = self._choose()
        cursor, is_building = self.unit.cursor, self.unit.target == self.unit.state.building
        if is_building and cursor >= min(self.unit.state.announced, head):
            self._finish_build()
            return True
        if cursor >= head:
            if self.beside is not None:
                self.beside.rest()
            return False
        folded, overlay, failed = self._folded(cursor, head)
        if folded.steps and not self._write(folded, overlay):
            if self.beside is not None:
                self.beside.discard()
            return True
        if failed is not None:
            self._retry_or_park(failed)
        return bool(folded.steps) or failed is not None

    def _choose(self) -> int:
        """Which generation moves now, and up to where.

        While rows are built anew by the same projectors, those that are read keep up, and come
        first: a rebuild after a redaction delays nobody. The new ones never pass them, so that
        every stage is announced by what can be read.
        """
        unit, head = self.unit, self._log.head()
        is_beside = unit.state.building is not None and unit.is_current()
        unit.keeps_up = is_beside and unit.state.checkpoint < head
        return min(head, unit.state.checkpoint) if is_beside and not unit.keeps_up else head

    def _folded(self, cursor: int, head: int) -> tuple[Folded, Overlay | None, Failed]:
        """The next batch: from the process beside the server, or folded here.

        An entry that fails there fails here as well, where it is tried again and parked.
        """
        if self.beside is not None:
            is_indexed = self.announcer.waits_for_index
            again_until = self._again_until()
            few = self._beside_entries
            stretch = Stretch(cursor, head, self.skips(), is_indexed, few, again_until)
            folded = self.beside.fold(stretch)
            if folded is not None:
                return folded, None, None
        most = self._beside_entries or self._batch_entries
        return self._fold(self._log.read(cursor + 1, min(most, head - cursor)))

    def _again_until(self) -> int:
        """How far entries are folded once more: beside rows by the same projectors, and told."""
        unit = self.unit
        is_again = unit.target == unit.state.building and unit.is_current()
        return unit.state.announced if is_again else 0

    def foldable(self, start: int, count: int) -> list[Entry]:
        """Entries from an offset on that may be folded ahead, bounded by count and by bytes."""
        found: list[Entry] = []
        size = 0
        for row in self._log.read(start, count):
            if size >= limits.PROJECT_BYTES_MAX or self._is_undecided(row.header.offset):
                break
            self._courtesy.give_way()
            found.append(self._entry_of(row))
            size += row.header.body_bytes
        return found

    def _fold(self, rows: list[Row]) -> tuple[Folded, Overlay | None, Failed]:
        """Fold rows until one fails or the batch is full by bytes or time."""
        overlay = Overlay(self.unit.remembering())
        steps: list[Step] = []
        failed: Failed = None
        skips, indexed = self.skips(), self.announcer.waits_for_index
        again_until = self._again_until()
        size, started = 0, self.clock.elapsed_s()
        for row in rows:
            if self._is_undecided(row.header.offset):
                break
            entry = self._entry_of(row)
            self._courtesy.give_way()
            try:
                step = fold_entry(
                    entry,
                    self._stages,
                    overlay,
                    skips,
                    indexed=indexed,
                    is_again=entry.offset <= again_until,
                )
                steps.append(step)
            except ProjectorFailed as error:
                failed = error
                break
            size += row.header.body_bytes
            spent_ms = (self.clock.elapsed_s() - started) * 1000
            if size >= limits.PROJECT_BYTES_MAX or spent_ms >= limits.PROJECT_MS_MAX:
                break
        return Folded(packed(overlay.pending), steps), overlay, failed

    def _write(self, folded: Folded, overlay: Overlay | None) -> bool:
        """One batch: changes, feed, checkpoint, announcements. False: cancelled meanwhile, redo."""
        announced = self.unit.state.announced
        checkpoint = folded.steps[-1].offset
        self._courtesy.give_way()
        batch = self._kv.batch()
        after = self.unit.write(batch, folded.rows, checkpoint, self._courtesy.give_way)
        if not self._again_until():
            _feed(batch, folded.steps)
        fresh = [step for step in folded.steps if step.offset > announced]
        self._courtesy.give_way()
        ready = self.announcer.ready(fresh)
        self._courtesy.give_way()
        # Nobody gives way who holds this: one who cancels may wait for it while it is answered.
        with self._lock:
            if any(self._is_stale(step) for step in folded.steps):
                return False
            # Captures wait for the order: it is held for what needs it and not for the rows.
            with self._lifecycle.order:
                waiting = self.announcer.told(batch, fresh, ready) if fresh else None
                token = self._lifecycle.seal(batch)
                self._kv.write(batch)
            self._hand_over(folded)
            self.unit.commit(after)
        self._courtesy.give_way()
        if overlay is not None:
            self.unit.remembering().written(overlay.pending)
        elif self.beside is not None:
            self.beside.wrote(folded)
        self.announcer.sync()
        self.processed_entries += len(folded.steps)
        self._batch_ended_s = self.clock.elapsed_s()
        building = self.unit.state.building
        self._drop_skips(checkpoint if building is None else self.unit.state.building_checkpoint)
        self._lifecycle.release(token, self.announcer.marks(self.unit.state.announced))
        if waiting is not None:
            self.announcer.written(waiting, checkpoint)
        if self.on_folded is not None:
            self.on_folded()
        return True

    def _hand_over(self, folded: Folded) -> None:
        """What was said of these entries, before whoever follows them can see them written.

        Not of rows that are built: the indexes follow those that are read.
        """
        if folded.described is not None and self.unit.target != self.unit.state.building:
            first, last = folded.steps[0].offset, folded.steps[-1].offset
            self.on_described(first, last, folded.described)

    def trim_feed(self) -> None:
        """The feed is for indexes that follow it; one that was not there for long rebuilds."""
        end = self.unit.state.checkpoint - limits.FEED_ENTRIES_KEPT
        if self.announcer.waits_for_index:
            end = min(end, self.announcer.followed)
        if end > 0:
            batch = self._kv.batch()
            batch.delete_range("feed", b"", end.to_bytes(8, "big"))
            self._kv.write(batch)

    def _finish_build(self) -> None:
        # What the indexes have not followed they still need: the rows that were read kept up.
        is_followed = self.announcer.waits_for_index and self.unit.is_current()
        end = (self.announcer.followed + 1).to_bytes(8, "big") if is_followed else b"\xff" * 9
        batch = self._kv.batch()
        batch.delete_range("feed", b"", end)
        self._kv.write(batch)
        self.unit.swap()

    # ── skips ────────────────────────────────────────────────────────────────────────────────

    def skips(self) -> Skips:
        """What to leave out, as of now."""
        with self._lock:
            return frozenset(self._skips)

    def _learn_skips(self) -> None:
        """Read every directive after the cursor: a park or a cancel lies after what it skips."""
        found = collect_skips(self._log, self._entry_of, self.unit.cursor + 1)
        with self._lock:
            held = {(stage.name, offset) for offset in self._held for stage in self._stages}
            self._skips = found | held

    def hold(self, offset: int) -> list[str]:
        """Cancel what has not run for an entry: the stages that now never will."""
        with self._lock:
            if offset <= self.unit.state.announced:
                return []
            stages = [stage.name for stage in self._stages]
            self._skips.update((name, offset) for name in stages)
            self._held[offset] = self._log.written
            return stages

    def _is_undecided(self, offset: int) -> bool:
        """Whether a cancellation was decided that the log does not hold yet: a crash would undo it.

        The writer decides on its head, so the directive is in the batch that moves it.
        """
        decided_at = self._held.get(offset)
        return decided_at is not None and self._log.written <= decided_at

    def _is_stale(self, step: Step) -> bool:
        return any((stage, step.offset) in self._skips for stage in step.stages)

    def _drop_skips(self, checkpoint: int) -> None:
        if self._skips:
            with self._lock:
                self._skips = {skip for skip in self._skips if skip[1] > checkpoint}
                self._held = {at: head for at, head in self._held.items() if at > checkpoint}

    # ── poison ───────────────────────────────────────────────────────────────────────────────

    def _retry_or_park(self, failed: ProjectorFailed) -> None:
        """Try again a few times, further apart; then park the entry by a directive in the log."""
        if isinstance(failed.cause, StoreError):
            raise failed.cause  # the store is broken, not the entry
        place = (failed.projector, failed.entry.offset)
        attempts = self._attempts[place] = self._attempts.get(place, 0) + 1
        if attempts < limits.PARK_ATTEMPTS:
            self._stopping.wait(0.01 * 2**attempts)
            return
        if self.park is None:
            raise failed
        try:
            self.park(failed.entry, failed, attempts)
        except Unavailable:
            # The log takes nothing now; the entry is tried again, and parked when it does.
            self._stopping.wait(min(0.01 * 2**attempts, _IDLE_S))
            return
        del self._attempts[place]
        with self._lock:
            self._skips.add(place)


def _feed(batch: Batch, steps: Sequence[Step]) -> None:
    """What the indexes follow."""
    for step in steps:
        if step.feed is not None:
            batch.put("feed", step.offset.to_bytes(8, "big"), step.feed)


def collect_skips(log: KvLog, entry_of: EntryOf, start: int) -> set[tuple[str, int]]:
    """What replay from an offset must leave out, by the directives in the log."""
    # Also what is written and not yet durable: nothing written after it outlives it.
    offsets = [header.offset for header, _, _ in log.headers(start) if header.kind == _DIRECTIVE]
    skips: set[tuple[str, int]] = set()
    for row in log.read_many(offsets):
        body = entry_of(row).body
        match body.command if isinstance(body, Directive) else None:
            case Cancel(offset=offset, stages=stages):
                skips.update((stage, offset) for stage in stages)
            case Park(projector=projector, offset=offset):
                skips.add((projector, offset))
            case Unpark(projector=projector, offsets=freed):
                skips.difference_update((projector, offset) for offset in freed)
            case Unforget(offsets=lifted) | Exclude(offsets=lifted):
                skips.update((stage, offset) for offset in lifted for stage in STAGE_ORDER[1:])
            case Include(offsets=freed):
                skips.difference_update(
                    (stage, offset) for offset in freed for stage in STAGE_ORDER[1:]
                )
            case _:
                pass
    return skips


def stage_elapsed_ms(raws: list[bytes | None]) -> dict[str, float]:
    """How long after its capture each stage of an entry was announced."""
    names = {"extracted": "extract", "indexed": "index", "consolidated": "consolidate"}
    if not raws or raws[0] is None:
        return {}
    captured_us = uuid7_instant_us(raws[0])
    return {
        names[stage]: round((uuid7_instant_us(raw) - captured_us) / 1000, 3)
        for stage, raw in zip(STAGE_ORDER, raws, strict=False)
        if raw is not None and stage in names
    }


def run_in_loop(
    loop: asyncio.AbstractEventLoop, work: Callable[[], asyncio.Future[object]]
) -> None:
    """Call something on the event loop from the daemon's thread, and wait for it."""

    async def go() -> None:
        await work()

    asyncio.run_coroutine_threadsafe(go(), loop).result()


def _nobody(first: int, last: int, message: bytes) -> None:
    """Nobody follows."""
    del first, last, message
