"""Is a stage told when it has happened, in order, once, and never before?"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.lifecycle import STAGE_ORDER

REQUIRED = list(STAGE_ORDER[:4])


async def opened(site):
    """An engine whose announcements wait for indexes that the test moves by hand."""
    engine = await site.open()
    engine.daemon.announcer.waits_for_index = True
    return engine


async def indexed(engine, offset):
    """The indexes have followed up to an offset, as their own thread would say."""
    await asyncio.to_thread(engine.daemon.announcer.indexed, offset)


async def test_what_comes_after_extraction_waits_for_the_indexes(rig):
    """`indexed` is said when the entry can be found, and `consolidated` after it (001 §18.2.3)."""
    async with rig.Site() as site:
        engine = await opened(site)
        receipt = await rig.post(engine, "hello")
        await site.settle()
        before = rig.names_of(rig.announcements(engine), receipt.event_id)
        await indexed(engine, receipt.wal_offset)
        after = rig.names_of(rig.announcements(engine), receipt.event_id)

        assert (REQUIRED[:2], REQUIRED) == (before, after)


async def test_a_batch_is_told_when_the_indexes_passed_all_of_it(rig):
    """Half a batch in the indexes is not yet anything to tell."""
    async with rig.Site() as site:
        engine = await opened(site)
        receipts = [await rig.post(engine, f"words {number}") for number in range(4)]
        await site.settle()
        await indexed(engine, receipts[1].wal_offset)
        half = rig.names_of(rig.announcements(engine)).count("indexed")
        await indexed(engine, receipts[3].wal_offset)

        assert 0 == half
        assert 4 == rig.names_of(rig.announcements(engine)).count("indexed")
        assert [] == list(engine.kv.scan("due"))


@pytest.mark.parametrize("power_cut", [False, True])
async def test_what_waits_survives_a_crash(rig, power_cut):
    """After a restart the rest is told once, also for what the projection had finished before."""
    async with rig.Site() as site:
        engine = await opened(site)
        receipts = [await rig.post(engine, f"words {number}") for number in range(3)]
        await site.settle()
        await site.kill(power_cut=power_cut)
        engine = await opened(site)
        await site.settle()
        assert not await engine.lifecycle.wait("indexed", receipts[0].wal_offset, 0.0)
        await indexed(engine, receipts[-1].wal_offset)

        for receipt in receipts:
            said = rig.names_of(rig.announcements(engine), receipt.event_id)
            assert REQUIRED == said


async def test_a_waiter_is_woken_by_the_indexes(rig):
    """`?wait=indexed` answers when the entry can be found, and not on projection alone."""
    async with rig.Site() as site:
        engine = await opened(site)
        receipt = await rig.post(engine, "hello")
        waiting = asyncio.create_task(engine.lifecycle.wait("indexed", receipt.wal_offset, 30))
        await site.settle()
        await asyncio.sleep(0)
        early = waiting.done()
        await indexed(engine, receipt.wal_offset)

        assert await waiting
        assert not early


@settings(max_examples=25, deadline=None)
@given(moves=st.lists(st.sampled_from(["post", "project", "index", "crash"]), max_size=14))
def test_every_stage_once_and_in_order_whatever_happens(rig, moves):
    """Posts, projection, index commits and power cuts in any order: no gap, no repeat."""

    async def run() -> None:
        async with rig.Site() as site:
            engine = await opened(site)
            receipts = []
            for number, move in enumerate([*moves, "project", "index"]):
                if move == "post":
                    receipts.append(await rig.post(engine, f"words {number}"))
                elif move == "project":
                    await site.settle()
                elif move == "index":
                    await indexed(engine, engine.staged.state.checkpoint)
                else:
                    await site.kill(power_cut=True)
                    engine = await opened(site)
            for receipt in receipts:
                assert REQUIRED == rig.names_of(rig.announcements(engine), receipt.event_id)

    asyncio.run(run())
