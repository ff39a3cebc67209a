"""Is every chore done when it is due, once, and is the log read again bit by bit?"""

import asyncio

import pytest

from engine.clock import Clock
from engine.schedule import Chore, Schedule
from engine.state.integrity import check_stretch
from engine.state.kv import CorruptStore


class Turned(Clock):
    """A clock turned by hand."""

    def __init__(self):
        super().__init__(seed=1)
        self.passed_s = 100.0

    def elapsed_s(self):
        return self.passed_s


def scheduled(clock, **every):
    """A schedule whose chores write down that they were done."""
    done = []

    def chore(name, every_s, first_s=0.0):
        async def run():
            done.append(name)

        return Chore(name, every_s, run, first_s)

    schedule = Schedule(clock, [chore(name, *given) for name, given in every.items()])
    schedule.start()
    return schedule, done


def turn(schedule, clock, seconds):
    clock.passed_s += seconds
    asyncio.run(schedule.run_due())


def test_a_chore_is_done_when_it_is_due():
    """Not at the start, and then every so often."""
    clock = Turned()
    schedule, done = scheduled(clock, often=(1.0,), seldom=(10.0,))
    for _ in range(20):
        turn(schedule, clock, 1.0)

    assert 20 == done.count("often")
    assert 2 == done.count("seldom")


def test_a_chore_may_come_early_the_first_time():
    """What is done every hour is done in the first minute, too: not every server lives for one."""
    clock = Turned()
    schedule, done = scheduled(clock, retention=(3600.0, 60.0))
    turn(schedule, clock, 61.0)
    turn(schedule, clock, 61.0)

    assert ["retention"] == done


def test_what_was_missed_is_done_once():
    """A machine that slept does not make up for every turn."""
    clock = Turned()
    schedule, done = scheduled(clock, often=(1.0,))
    turn(schedule, clock, 500.0)
    turn(schedule, clock, 0.5)

    assert ["often"] == done


def test_health_tells_when_a_chore_is_due():
    """And how often it was done."""
    clock = Turned()
    schedule, _ = scheduled(clock, often=(4.0,))
    turn(schedule, clock, 4.0)
    clock.passed_s += 1.0

    assert [("often", 1, 3.0)] == [(one.name, one.ran, one.due_s) for one in schedule.health()]


async def test_the_log_is_read_again_bit_by_bit(rig):
    """From its first entry to its last, and then from the first again."""
    async with rig.Site() as bench:
        engine = await bench.open()
        await rig.post_many(engine, [f"said {number}" for number in range(7)])
        first = check_stretch(engine.log, 0, 3)
        second = check_stretch(engine.log, first, 3)
        third = check_stretch(engine.log, second, 3)
        engine.keeper.scrub()

        assert (3, 6, 7, 7) == (first, second, third, engine.keeper.scrubbed)


async def test_damage_that_nobody_reads_is_found(rig):
    """A row that was changed breaks the chain, wherever it lies."""
    async with rig.Site() as bench:
        engine = await bench.open()
        await rig.post_many(engine, [f"said {number}" for number in range(7)])
        place = (2).to_bytes(8, "big")
        row = engine.kv.get("log", place)
        batch = engine.kv.batch()
        batch.put("log", place, row[:-1] + bytes([row[-1] ^ 1]))
        engine.kv.write(batch)

        with pytest.raises(CorruptStore):
            engine.keeper.scrub()
