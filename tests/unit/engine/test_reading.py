"""Is what another process reads the same, and is it never missed when that process is gone?"""

import asyncio

import pytest

from engine.reading import ReadAhead, Reader, ReaderGone
from projectors.text import extract, foresee
from schemas import limits

TEXTS = (
    "I moved to Berlin in March and I work at Acme.",
    "My dog Rex loves the park, and my sister Ana doesn't eat meat.",
    "ok",
    "Acme moved to 200 seats yesterday; Bob says the deal is signed.",
)


@pytest.fixture(autouse=True)
def forgotten():
    """Nothing read ahead is left for another test."""
    yield
    foresee(None)


async def backlog(rig, site, count):
    """An engine with so many entries to project, and a reader ahead of them."""
    engine = await site.open()
    texts = [f"{number}. {TEXTS[number % len(TEXTS)]}" for number in range(count)]
    for start in range(0, count, 500):
        await rig.post_many(engine, texts[start : start + 500])
    return engine


async def test_a_backlog_is_read_ahead_and_says_the_same(rig):
    """Views are those that reading in place gives (I4)."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, limits.READ_AHEAD_ENTRIES + 200)
        await site.settle()

        assert engine.daemon.ahead.taken > 0
        assert engine.daemon.ahead.failure is None
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_few_entries_start_no_process(rig):
    """Another process costs more than a little reading."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, 20)
        await site.settle()

        assert 0 == engine.daemon.ahead.taken
        assert not engine.daemon.ahead._readers


async def test_a_reader_that_dies_is_replaced(rig):
    """Another takes its place, what the dead one had is read again, and nothing differs."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, limits.READ_AHEAD_WINDOW + 500)
        await site.step()
        ahead = engine.daemon.ahead
        (first,) = ahead._readers
        first._process.kill()
        while not ahead.lost:
            await site.step()
        before = ahead.taken
        await site.settle()

        assert (1, None) == (ahead.lost, ahead.failure)
        assert ahead.taken > before
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_readers_that_keep_dying_are_given_up(rig):
    """The rest is read here; the failure is told, and nothing differs."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, limits.READ_AHEAD_WINDOW + 500)
        ahead = engine.daemon.ahead
        submit = Reader.submit

        def submit_and_die(reader, tasks):
            reader._process.kill()
            reader._process.wait()
            return submit(reader, tasks)

        Reader.submit = submit_and_die
        try:
            await site.settle()
        finally:
            Reader.submit = submit

        assert limits.READ_AHEAD_LOST_MAX == ahead.lost
        assert "reading ahead stopped" in ahead.failure
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_it_goes_when_there_is_nothing_to_read(rig):
    """With the backlog the process ends."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, limits.READ_AHEAD_ENTRIES + 10)
        await site.step()
        (reader,) = engine.daemon.ahead._readers
        await site.settle()

        assert reader._process.poll() is not None


def test_those_who_wait_for_a_dead_reader_are_told():
    """A future is answered or fails; it is never left open."""
    reader = Reader()
    reader._process.kill()
    with pytest.raises((ReaderGone, OSError)):
        reader.submit([]).result(timeout=120)
        reader.submit([]).result(timeout=120)
    reader.close()


async def test_extraction_is_the_same_there_and_here(rig):
    """Struct by struct."""
    async with rig.Site() as site:
        engine = await backlog(rig, site, 8)
        rows = engine.log.read(1, 100)
        entries = [engine.entry_of(row) for row in rows]
        reader = Reader()
        tasks = engine.entries.words(rows)
        there = await asyncio.to_thread(lambda: reader.submit(tasks).result(timeout=240))
        reader.close()

        assert {entry.id: extract(entry) for entry in entries if entry.envelope} == there


def test_no_worker_means_none():
    """`CORTEX_EXTRACT_WORKERS=0` reads everything in the server."""
    asked = []
    ahead = ReadAhead(0, lambda *place: asked.append(place))
    ahead.look_ahead(0, 1_000_000)

    assert [] == asked
