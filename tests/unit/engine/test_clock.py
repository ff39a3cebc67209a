"""Does time only ever go forward here, whatever the wall clock does?"""

import pytest

from engine.clock import Clock, Stamps, wall_clock_us
from schemas.ids import parse_id, uuid7_instant_us
from schemas.times import to_us

HOUR_US = 3_600_000_000


def clock_of(*readings):
    """A wall clock that shows these times, one a look, and then stands still."""
    left = list(readings)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    "readings, expected",
    [
        ((10, 20, 30), [10, 20, 30]),
        ((10, 10, 10), [10, 11, 12]),
        ((10, 5, 11, 12), [10, 11, 12, 13]),
        ((100, 100 - HOUR_US, 100 + 24 * HOUR_US), [100, 101, 100 + 24 * HOUR_US]),
        ((10, 24 * HOUR_US, 10, 11), [10, 24 * HOUR_US, 24 * HOUR_US + 1, 24 * HOUR_US + 2]),
    ],
)
def test_stamps_strictly_increase(readings, expected):
    """A stamp is the time now, or one microsecond after the last when that is later."""
    stamps = Stamps(clock_of(*readings))

    assert expected == [stamps.next_us() for _ in expected]


def test_stamps_go_on_after_the_last_known():
    """What was stamped before a restart is not stamped again by a slower clock."""
    stamps = Stamps(clock_of(50), last_us=1000)

    assert [1001, 1002] == [stamps.next_us(), stamps.next_us()]


def test_fresh_ids_are_of_their_moment_and_differ():
    """Ids of things outside the log, also many of one microsecond."""
    clock = Clock(clock_of(*[500] * 100, 600), seed=7)
    ids = [clock.new_id("req") for _ in range(101)]

    assert 101 == len(set(ids))
    assert [500] * 100 + [600] == [uuid7_instant_us(parse_id("req", one)) for one in ids]


def test_a_seed_makes_chance_repeatable():
    """Two clocks of one seed draw the same entropy: a failing run can be run again."""
    one, other = Clock(clock_of(1), seed=3), Clock(clock_of(1), seed=3)

    assert [one.entropy() for _ in range(5)] == [other.entropy() for _ in range(5)]


def test_clocks_without_a_seed_differ():
    """Entropy tells apart ids of two processes in one microsecond."""
    assert Clock(clock_of(1)).entropy() != Clock(clock_of(1)).entropy()


def test_the_wall_clock_counts_microseconds():
    """The real clock and the clock of durations move forward."""
    assert wall_clock_us() > HOUR_US
    assert Clock.elapsed_s() <= Clock.elapsed_s()


@pytest.mark.parametrize("power_cut", [True, False])
@pytest.mark.parametrize(
    "steps_s", [(-3600,), (86_400,), (-3600, 86_400, -86_400), (86_400, -3600)]
)
async def test_an_engine_whose_clock_steps(rig, steps_s, power_cut):
    """recorded_at, event ids and lifecycle ids never go back, also over restarts."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        for at, step_s in enumerate((0, *steps_s)):
            site.clock.step(step_s)
            await rig.post(engine, f"before {at}")
            await site.kill(power_cut=power_cut)
            engine = await site.open()
            await rig.post_many(engine, [f"bulk {at}.{number}" for number in range(3)])
            await site.settle()
        headers = [header for header, _, _ in engine.log.headers(1)]
        recorded = [header.recorded_us for header in headers]
        ids = [header.id for header in headers]
        told = [parse_id("lce", event.lifecycle_id) for event in rig.announcements(engine)]
        entries = [engine.entry_of(row) for row in engine.log.read(1, 100)]

    assert list(range(1, len(headers) + 1)) == [header.offset for header in headers]
    assert sorted(set(recorded)) == recorded
    assert sorted(set(ids)) == ids
    assert sorted(set(told)) == told
    assert 4 * len(headers) == len(told)
    assert recorded == [uuid7_instant_us(raw) for raw in ids]
    assert recorded == [to_us(entry.recorded_at) for entry in entries]
