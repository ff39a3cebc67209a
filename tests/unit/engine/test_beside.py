"""Is what another process folds the same, and is nothing missed when that process is gone?"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from engine.admin import health
from engine.beside import Gone, Process, _encode, _read_folded
from engine.clock import Clock
from engine.daemon import collect_skips
from engine.engine import Projection, assemble, open_stores, start
from engine.engine import close as close_engine
from engine.erase import compact_all
from engine.folder import Sight, _read_hurry
from engine.rows import Ask
from engine.settings import Settings
from engine.state.memory import MemoryKV
from engine.state.views import Unit, family_of
from engine.watch import CancelRequest, cancel
from schemas import limits
from tests.unit.engine.rig import Inside

TEXTS = (
    "I moved to Berlin in March and I work at Acme.",
    "My dog Rex loves the park, and my sister Ana doesn't eat meat.",
    "ok",
    "Acme moved to 200 seats yesterday; Bob says the deal is signed.",
    "I no longer live in Berlin; since May I live in Rome.",
)
STAGED = Projection().staged
BACKLOG = limits.FOLD_BESIDE_ENTRIES + 200


def test_rows_are_seen_as_folded_else_as_written_also_several_at_once():
    """What was folded since stands before what was written, and one that is gone is not there."""
    unit = Unit(MemoryKV(("meta",)), "staged", STAGED)
    unit.begin_build()
    family = family_of("derives", 1)
    base, own = unit.kv, MemoryKV((family,))
    for kv, key, value in (
        (base, b"a", b"1"),
        (base, b"b", b"1"),
        (own, b"b", b"2"),
        (own, b"c", b""),
    ):
        batch = kv.batch()
        batch.put(family, key, value)
        kv.write(batch)
    sight = Sight(base, own, STAGED, 1)

    found = sight.get_many(family, [b"a", b"b", b"c", b"d"])

    assert [b"1", b"2", None, None] == found


# ── the process itself, over a store on disk ─────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def opened(rig, settings):
    """An engine over a data directory; the daemon is stepped by hand."""
    engine = assemble(settings, open_stores(settings))
    engine.daemon._stopping = rig.Impatient()
    await start(engine, run_daemon=False)
    try:
        yield engine
    finally:
        await close_engine(engine)


@contextlib.asynccontextmanager
async def on_disk(rig, tmp_path):
    """The same, with a backlog."""
    async with opened(rig, Settings(data=tmp_path / "data", embedder="hashing", ballast_mb=1)) as (
        engine
    ):
        await say(rig, engine, BACKLOG)
        yield engine


async def say(rig, engine, count):
    """So many entries, each of its own."""
    first = engine.log.head()
    texts = [f"{n}. {TEXTS[n % len(TEXTS)]}" for n in range(first, first + count)]
    for start_at in range(0, count, 500):
        await rig.post_many(engine, texts[start_at : start_at + 500])


def started(engine, tmp_path, *, is_read_first=False):
    """A process that nobody has asked anything."""
    store = tmp_path / "data" / "store"
    return Process(store, "hashing", engine.staged.target, is_read_first=is_read_first)


def policies_of(pid):
    """How the system treats the threads of a process."""
    return {os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()}


def one_step(engine):
    """A step, once the process is there: before that everything is folded here, step by step."""
    beside = engine.daemon.beside
    if beside._process is None and beside.failure is None:
        # As a step would; but it does not fold the backlog away before the other is ready.
        beside._process = beside._start(
            engine.staged.target, is_read_first=engine.daemon.is_rebuilding
        )
        beside._generation = engine.staged.target
    while beside._process is not None and not (
        beside._process.is_ready or beside._process.has_ended
    ):
        os.sched_yield()
    return engine.daemon.step()


async def steps(engine, count=10_000):
    """So many steps, or as many as there are."""
    for _ in range(count):
        if not await asyncio.to_thread(one_step, engine):
            return


async def test_a_backlog_is_folded_beside_and_comes_out_the_same(rig, tmp_path):
    """Views are those that folding in place gives (I4)."""
    async with on_disk(rig, tmp_path) as engine:
        await steps(engine)
        beside = engine.daemon.beside

        assert beside.folded > 0
        assert (0, None) == (beside.lost, beside.failure)
        assert engine.log.head() == engine.staged.state.checkpoint
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads do not stand back")
async def test_who_posts_comes_first_and_changes_nothing(rig, tmp_path):
    """While others post it folds by turns in a thread that stands back, and comes out the same."""
    async with on_disk(rig, tmp_path) as engine:
        daemon = engine.daemon
        for _ in range(4):
            for few in (limits.WAITED_FOR_ENTRIES_MIN, 0):
                daemon._beside_entries = few
                await steps(engine, 5)
        policies = policies_of(daemon.beside._process._process.pid)
        await steps(engine)

        assert len(os.sched_getaffinity(0)) == 1 or os.SCHED_IDLE in policies
        assert (0, None) == (daemon.beside.lost, daemon.beside.failure)
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_it_sees_what_the_server_folded_meanwhile(rig, tmp_path):
    """The two take turns: each goes on from what the other wrote."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        await steps(engine, 3)
        engine.daemon.beside = None
        await asyncio.to_thread(engine.daemon.step)
        engine.daemon.beside = beside
        await steps(engine)

        assert beside.folded > 0
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_one_that_dies_is_replaced(rig, tmp_path):
    """Another takes its place, what the dead one had is folded again, and nothing differs."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        await steps(engine, 2)
        folded = beside.folded
        beside._process._process.send_signal(signal.SIGKILL)
        beside._process._process.wait()
        await say(rig, engine, BACKLOG)
        await steps(engine)

        assert (1, None) == (beside.lost, beside.failure)
        assert beside.folded > folded
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_those_that_keep_dying_are_given_up(rig, tmp_path):
    """The rest is folded here; health tells, and nothing differs."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        begin = beside._start

        def stillborn(generation, *, is_read_first):
            process = begin(generation, is_read_first=is_read_first)
            process._process.kill()
            return process

        beside._start = stillborn
        await say(rig, engine, BACKLOG * limits.FOLD_LOST_MAX)
        await steps(engine)

        assert limits.FOLD_LOST_MAX == beside.lost
        assert "folding beside the server stopped" in beside.failure
        assert "degraded" == health(engine, rig.ALICE).status
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_a_rebuild_is_folded_beside(rig, tmp_path):
    """Into the new generation, which swaps; the old rows were folded by another process."""
    async with on_disk(rig, tmp_path) as engine:
        await steps(engine)
        folded = engine.daemon.beside.folded
        engine.daemon.request_rebuild()
        await steps(engine)

        assert engine.daemon.beside.folded > folded + BACKLOG // 2
        assert not engine.daemon.is_rebuilding
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_a_rebuild_is_read_by_a_third_process(rig, tmp_path):
    """Words are read before their entries are folded; when that one dies both are replaced."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        beside.again_entries = 16
        await steps(engine)
        assert beside._process._reader is None
        engine.daemon.request_rebuild()
        while beside._process._reader is None:
            await steps(engine, 1)
        await steps(engine, 2)
        reader = beside._process._reader
        reader.send_signal(signal.SIGKILL)
        reader.wait()
        await steps(engine)

        assert (1, None) == (beside.lost, beside.failure)
        assert not engine.daemon.is_rebuilding
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_it_ends_with_the_server(rig, tmp_path):
    """Nothing is left behind: not the process, and not its hold on the store."""
    async with on_disk(rig, tmp_path) as engine:
        await steps(engine, 2)
        process = engine.daemon.beside._process
        engine.daemon.beside.close()

        assert process._process.returncode is not None


async def test_it_lets_deleted_files_go(rig, tmp_path):
    """After an erasure nobody has the old files open; that is no death, and another can follow."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        await steps(engine, 2)
        process = beside._process
        await asyncio.to_thread(compact_all, engine)
        assert process._process.returncode is not None

        await say(rig, engine, BACKLOG)
        await steps(engine)
        assert (0, None) == (beside.lost, beside.failure)
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


@pytest.mark.parametrize("is_read_first", [False, True])
async def test_it_hangs_up_when_the_server_does(rig, tmp_path, is_read_first):
    """A server that is killed leaves no process: the end of its input is the end of it."""
    async with on_disk(rig, tmp_path) as engine:
        process = started(engine, tmp_path, is_read_first=is_read_first)
        process._into.close()

        assert 0 == process._process.wait(timeout=60)
        process.close()


ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is kept still")


def wait_until(condition):
    """Others go on meanwhile."""
    while not condition():
        os.sched_yield()


def is_still(pid):
    """Whether the system has a process stopped."""
    return "T" == Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@ONLY_LINUX
async def test_one_that_is_kept_still_goes_on_where_it_was(rig, tmp_path):
    """It answers nobody meanwhile, and all of them later; nothing differs."""
    async with on_disk(rig, tmp_path) as engine:
        beside = engine.daemon.beside
        engine.daemon._beside_entries = limits.WAITED_FOR_ENTRIES_MAX
        await steps(engine, 3)
        process = beside._process
        assert beside.hold()
        wait_until(lambda: is_still(process._process.pid))
        # What was answered before may still be written, and nothing that is asked now.
        stepping = asyncio.create_task(steps(engine, limits.FOLD_BATCHES_AHEAD + 1))
        await asyncio.sleep(0.05)
        is_waiting = not stepping.done()
        beside.let_go()
        await stepping
        await steps(engine)

        assert is_waiting
        assert not is_still(process._process.pid)
        assert (0, None) == (beside.lost, beside.failure)
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


@ONLY_LINUX
async def test_a_server_that_ends_lets_it_go(rig, tmp_path):
    """It waits for what is being folded, which would never come."""
    settings = Settings(data=tmp_path / "data", embedder="hashing", ballast_mb=1)
    engine = assemble(settings, open_stores(settings))
    beside = engine.daemon.beside
    begin = beside._start

    def held(generation, *, is_read_first):
        process = begin(generation, is_read_first=is_read_first)
        wait_until(lambda: process.is_ready or process.has_ended)
        process.hold()
        return process

    beside._start = held
    await start(engine, run_daemon=True)
    try:
        await say(rig, engine, BACKLOG)
        await asyncio.to_thread(wait_until, lambda: beside._process and beside._process._waiting)
        await asyncio.to_thread(engine.daemon.stop)

        assert (0, None) == (beside.lost, beside.failure)
        assert beside.folded > 0
    finally:
        await close_engine(engine)


async def test_those_who_wait_for_a_dead_one_are_told(rig, tmp_path):
    """An answer comes or fails; it is never left open."""
    async with on_disk(rig, tmp_path) as engine:
        process = started(engine, tmp_path)
        process._process.kill()
        with pytest.raises((Gone, OSError)):
            for _ in range(2):
                process.ask(b"").result(timeout=60)
        process.close()


# ── when, over a store in memory ─────────────────────────────────────────────────────────────


async def test_few_entries_start_no_process(rig):
    """Starting another costs more than folding a little."""
    async with rig.Site() as site:
        engine = await site.open()
        beside = site.fold_beside(4)
        beside.worth_entries = limits.FOLD_BESIDE_ENTRIES
        await rig.post_many(engine, [f"number {n}" for n in range(20)])
        await site.settle()

        assert beside._process is None
        assert 0 == beside.folded


async def test_it_goes_when_there_was_nothing_to_fold_for_a_while(rig):
    """It stays for the next rush, and not for ever."""
    async with rig.Site() as site:
        engine = await site.open()
        beside = site.fold_beside(4)
        await rig.post_many(engine, [f"number {n}" for n in range(20)])
        await site.settle()
        assert beside._process is not None

        beside._used_s = -limits.FOLD_IDLE_S - 1
        await site.settle()
        assert beside._process is None


class Notes(Inside):
    """Notes whether it is to stand back."""

    def __init__(self, unit, generation, stages, asked):
        super().__init__(unit, generation, stages)
        self._notes = asked

    def ask(self, message):
        self._notes.append(_read_hurry(message).is_beside)
        return super().ask(message)


class Slow(Clock):
    """Whoever waits for anything waits so long."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds, self._passed_s = seconds, 0.0

    def elapsed_s(self):
        self._passed_s += self._seconds
        return self._passed_s


@pytest.mark.parametrize("is_starved", [False, True])
async def test_one_that_gets_no_core_stands_back_no_more(rig, is_starved):
    """It stands back for who posts, but not to open the store, and not until it starves."""
    async with rig.Site() as site:
        engine = await site.open()
        beside = site.fold_beside(4)
        beside._clock = Slow(limits.FOLD_BACK_S_MAX * (2 if is_starved else 0.1))
        asked = []
        beside._start = lambda generation, is_read_first: Notes(
            engine.staged, generation, site.projection.stages, asked
        )
        await rig.post_many(engine, [f"number {n}" for n in range(40)])
        engine.daemon._beside_entries = 4
        while engine.daemon.step():
            pass

        ahead = limits.FOLD_BATCHES_AHEAD
        assert [False] + [True] * (ahead - 1) == asked[:ahead]
        assert {not is_starved} == set(asked[ahead:])


@ONLY_LINUX
@pytest.mark.parametrize(
    "why_not", [None, "nobody posts", "it opens the store", "it starves", "the server ends"]
)
async def test_only_one_that_stands_back_is_kept_still(rig, why_not):
    """There is a reason for each of those who are not."""
    async with rig.Site() as site:
        engine = await site.open()
        beside = site.fold_beside(4)
        assert not beside.hold()
        await rig.post_many(engine, [f"number {n}" for n in range(40)])
        engine.daemon._beside_entries = 0 if why_not == "nobody posts" else 4
        engine.daemon.step()
        process = beside._process
        process.is_ready = why_not != "it opens the store"
        beside._is_starved = why_not == "it starves"
        if why_not == "the server ends":
            beside.hold_no_more()

        assert (why_not is None) == beside.hold() == process.is_held
        beside.let_go()
        assert not process.is_held


@pytest.mark.parametrize("version, is_read_first", [(1, False), (2, True)])
async def test_a_new_version_is_a_rebuild_too(rig, version, is_read_first):
    """Its rows are built beside the old, which nobody waits for; a backlog is not."""
    async with rig.Site(rig.projection(rig.ledger())) as site:
        engine = await site.open()
        await rig.post_many(engine, [f"number {n}" for n in range(20)])
        if version > 1:
            await site.settle()
        await site.stop()
        engine = await site.open(rig.projection(rig.ledger(version=version)))
        beside = site.fold_beside(4)
        beside.again_entries = 10
        begin, asked = beside._start, []

        def noting(generation, *, is_read_first):
            asked.append(is_read_first)
            return begin(generation, is_read_first=is_read_first)

        beside._start = noting
        await site.step()

        assert [is_read_first] == asked
        assert (10 if is_read_first else 4) == beside.folded
        await site.settle()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_what_is_cancelled_meanwhile_is_folded_again_without_it(rig):
    """What was folded ahead with the entry is thrown away."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        beside = site.fold_beside(2)
        for text in ("one", "two", "three", "four", "doomed", "six"):
            receipt = await rig.post(engine, text)
            if text == "doomed":
                doomed = receipt
        await site.step()
        assert beside._asked  # folded ahead, as far as the last
        answer = await cancel(engine, rig.ALICE, doomed.event_id, CancelRequest())
        await site.settle()

        assert ["extracted", "indexed", "consolidated"] == answer.stages_cancelled
        assert doomed.event_id not in str(rig.kept(engine))
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_poison_is_tried_here_and_parked(rig):
    """What comes before it is kept, it is parked by a directive, the rest goes on beside."""
    early = rig.ledger(refuses=lambda text: text == "poison")
    async with rig.Site(rig.projection(early)) as site:
        engine = await site.open()
        beside = site.fold_beside(2)
        for text in ("one", "two", "three", "poison", "five", "six", "seven"):
            await rig.post(engine, text)
        await site.settle()

        assert beside.folded >= 6
        assert {("ledger", 4)} == collect_skips(engine.log, engine.entry_of, 1)
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


# ── the desk ─────────────────────────────────────────────────────────────────────────────────


async def test_after_a_failure_nothing_is_folded_until_it_is_asked_afresh(rig):
    """What follows an entry that failed would be folded without it."""
    refusing = rig.projection(rig.ledger(refuses=lambda text: text == "poison"))
    async with rig.Site(refusing) as site:
        engine = await site.open()
        for text in ("one", "poison", "three"):
            await rig.post(engine, text)
        entries = [engine.entry_of(row) for row in engine.log.read(1, 3)]
        desk = rig.Inside(engine.staged, engine.staged.target, refusing.stages)._desk

        def ask(some, *, afresh):
            message = _encode(
                Ask(False, some, [], is_indexed=True, is_afresh=afresh, is_again=False)
            )
            folded = _read_folded(desk.answer(message))
            return [step.offset for step in folded.steps], folded.is_whole

        assert ([1], False) == ask(entries[:2], afresh=True)
        assert ([], False) == ask(entries[2:], afresh=False)
        assert ([3], True) == ask(entries[2:], afresh=True)


async def test_what_is_folded_again_leaves_the_same_rows_and_nothing_to_say(rig):
    """It was announced and followed when it was folded first: that is not put together anew."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        await rig.post(engine, "one")
        entries = [engine.entry_of(row) for row in engine.log.read(1, 1)]
        desk = rig.Inside(engine.staged, engine.staged.target, site.projection.stages)._desk

        def asked(*, again):
            ask = Ask(False, entries, [], is_indexed=True, is_afresh=True, is_again=again)
            return _read_folded(desk.answer(_encode(ask)))

        first, second = asked(again=False), asked(again=True)

        assert first.rows == second.rows != []
        assert [step.stages for step in first.steps] == [step.stages for step in second.steps]
        assert first.steps[0].feed is not None is not first.steps[0].due
        assert second.steps[0].feed is second.steps[0].due is None


@pytest.mark.parametrize(
    "setting, brings_its_own, is_there",
    [("process", False, True), ("process", True, False), ("thread", False, False)],
)
def test_who_may_fold_beside(rig, tmp_path, setting, brings_its_own, is_there):
    """The process knows the engine's own projectors only, and `thread` asks for none."""
    settings = Settings(data=tmp_path / "data", projection=setting, ballast_mb=1)
    stores = open_stores(settings)
    projection = rig.projection() if brings_its_own else Projection()
    try:
        engine = assemble(settings, stores, projection=projection)
        assert is_there == (engine.daemon.beside is not None)
        engine.log.close()
    finally:
        stores.close()
