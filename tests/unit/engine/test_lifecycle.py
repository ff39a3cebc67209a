"""Is everyone told everything, once, in order, and only what is true for good?"""

import asyncio
import json
import threading

import pytest

from engine.lifecycle import (
    FAMILIES,
    Filter,
    Lifecycle,
    announcement,
    frame,
    pack_stages,
    unpack_stages,
)
from engine.rows import Note
from engine.state.memory import MemoryKV
from engine.watch import WatchRequest, list_lifecycle, subscribe
from schemas import limits
from schemas.errors import LifecycleExpired
from schemas.ids import parse_id, uuid7, uuid7_first, uuid7_instant_us

EVENT, OTHER = uuid7(1_000_000, 1), uuid7(2_000_000, 2)
SCOPE = "org:acme/user:alice"


@pytest.fixture
def clock(rig):
    return rig.HandClock()


@pytest.fixture
def kv():
    return MemoryKV([*FAMILIES, "meta"])


@pytest.fixture
def bus(kv, clock):
    """A bus without a loop: what is released is delivered at once."""
    return Lifecycle(kv, clock)


def captured(number=0, **changes):
    """An announcement; its number stands in its payload."""
    fields = {"name": "captured", "scope": SCOPE, "event": EVENT, "sequence": 1, "batch_id": None}
    payload = {"actor": "user:alice", "modality": "conversation", "wal_offset": number}
    return Note(*(fields | {"payload": payload} | changes).values())


def write(bus, kv, *notes, tenant_no=1):
    """One writer's batch: announcements, sealed and written; the token to release it with."""
    with bus.order:
        batch = kv.batch()
        for note in notes:
            bus.add(batch, tenant_no, note)
        token = bus.seal(batch)
        kv.write(batch)
    return token


def heard(subscription):
    """The numbers queued for a stream."""
    return [
        json.loads(encoded.split(b"data: ")[1])["wal_offset"] for _, encoded in subscription.queue
    ]


def told(bus, after=bytes(16), limit=1000, **conditions):
    """The numbers in the buffer after an id."""
    wanted = Filter(tenant_no=1, **conditions)
    found, _ = bus.replay(wanted, after, bus.released_us, limit)
    return [event.wal_offset for _, event in found]


# Filters

BATCH = "batch_1"
NOTES = {
    "captured": captured(),
    "below": captured(scope=SCOPE + "/ws:x"),
    "beside": captured(scope=SCOPE + "x"),
    "above": captured(scope="org:acme"),
    "nowhere": captured(scope=None),
    "other": captured(event=OTHER),
    "batched": captured(batch_id=BATCH),
    "extracted": captured(name="extracted"),
    "job": captured(name="import_complete", payload={"import_id": "imp_1", "summary": {}}),
    "job2": captured(name="import_complete", payload={"import_id": "imp_2", "summary": {}}),
}
EVERYTHING = set(NOTES)


@pytest.mark.parametrize(
    "conditions, expected",
    [
        ({}, EVERYTHING),
        ({"scope": SCOPE}, EVERYTHING - {"below", "beside", "above", "nowhere"}),
        ({"scope": SCOPE, "descend": True}, EVERYTHING - {"beside", "above", "nowhere"}),
        ({"scope": "org:acme", "descend": True}, EVERYTHING - {"nowhere"}),
        ({"scope": "org:acme"}, {"above"}),
        ({"event": OTHER}, {"other"}),
        ({"event": b"none"}, set()),
        ({"batch_id": BATCH}, {"batched"}),
        ({"names": frozenset({"extracted"})}, {"extracted"}),
        ({"names": frozenset({"extracted", "import_complete"})}, {"extracted", "job", "job2"}),
        ({"jobs": {"import_id": "imp_1"}}, {"job"}),
        ({"jobs": {"export_id": "imp_1"}}, set()),
        ({"batch_id": BATCH, "names": frozenset({"extracted"})}, set()),
        (
            {"event": EVENT, "scope": SCOPE, "names": frozenset({"captured"})},
            {"captured", "batched"},
        ),
    ],
)
def test_all_conditions_of_a_filter_must_hold(conditions, expected):
    """001 §8.9.1: each narrows; a scope is itself, and with `descend` also what lies below."""
    wanted = Filter(tenant_no=1, **conditions)

    assert expected == {name for name, note in NOTES.items() if wanted.matches(note)}


async def test_a_stream_hears_its_own_tenant(bus, kv):
    """What happens in another tenant is not said, whatever the filter (I6)."""
    mine, theirs = (bus.subscribe(Filter(tenant_no=number)) for number in (1, 2))
    write(bus, kv, captured(1))
    write(bus, kv, captured(2), tenant_no=2)
    bus.release(write(bus, kv, captured(3)))

    assert [1, 3] == heard(mine)
    assert [2] == heard(theirs)


# Announcing


def test_an_announcement_as_the_world_sees_it(bus, kv):
    """Id and time come from its key; the rest as the seed spells it (001 §13)."""
    bus.release(write(bus, kv, captured(7, batch_id=BATCH)))
    ((us, event),), _ = bus.replay(Filter(tenant_no=1), bytes(16), bus.released_us, 10)
    raw = parse_id("lce", event.lifecycle_id)
    lines = frame(event).split(b"\n")

    assert us == uuid7_instant_us(raw) == bus.released_us
    assert [f"id: {event.lifecycle_id}".encode(), b"event: captured"] == lines[:2]
    assert {
        "event": "captured",
        "lifecycle_id": event.lifecycle_id,
        "scope": SCOPE,
        "event_id": event.event_id,
        "sequence": 1,
        "batch_id": BATCH,
        "actor": "user:alice",
        "modality": "conversation",
        "wal_offset": 7,
    } == {k: v for k, v in json.loads(lines[2][6:]).items() if k != "timestamp"}
    assert event == bus.find(1, raw)
    assert event == announcement(raw, captured(7, batch_id=BATCH))


def test_nothing_is_public_before_its_release(bus, kv):
    """Written is not durable: nobody hears of it, and its id leads nowhere."""
    token = write(bus, kv, captured(1))
    (key, _), *_ = kv.scan("lifecycle")

    assert [] == told(bus)
    assert None is bus.find(1, key[4:])
    bus.release(token)
    assert [1] == told(bus)
    assert 1 == bus.find(1, key[4:]).wal_offset


async def test_two_writers_are_released_in_order(bus, kv):
    """A sync covers all that was written before it: the later token releases the earlier batch."""
    stream = bus.subscribe(Filter(tenant_no=1))
    early = write(bus, kv, captured(1), captured(2))
    late = write(bus, kv, captured(3))
    later = write(bus, kv, captured(4))
    bus.release(late)
    assert [1, 2, 3] == heard(stream)
    bus.release(early)
    assert [1, 2, 3] == heard(stream)
    bus.release(later)

    assert [1, 2, 3, 4] == heard(stream) == told(bus)


async def test_two_writers_in_two_threads(bus, kv):
    """Whatever the interleaving, every stream hears all of it once, in the order of the ids."""
    bus.bind(asyncio.get_running_loop())
    stream = bus.subscribe(Filter(tenant_no=1))
    gate = threading.Barrier(2)

    def announce(first):
        gate.wait(30)
        for number in range(first, first + 100):
            bus.release(write(bus, kv, captured(number)))

    await asyncio.gather(*(asyncio.to_thread(announce, first) for first in (0, 1000)))
    await asyncio.sleep(0)

    assert {*range(100), *range(1000, 1100)} == set(heard(stream))
    assert heard(stream) == told(bus)
    stamps = [us for us, _ in stream.queue]
    assert sorted(set(stamps)) == stamps


def test_ids_increase_when_the_clock_steps_back(bus, kv, clock):
    """Order of arrival is order of ids, also over a restart."""
    write(bus, kv, captured(1))
    clock.step(-3600)
    write(bus, kv, captured(2))
    again = Lifecycle(kv, clock)
    again.release(write(again, kv, captured(3)))

    assert [1, 2, 3] == told(again)


def test_after_a_restart_what_is_there_is_public(bus, kv, clock):
    """Rows that survived are told to who resumes; nobody will announce them again."""
    write(bus, kv, captured(1))
    again = Lifecycle(kv, clock)

    assert [1] == told(again)


# Waiting


async def test_waiting_for_a_stage(bus):
    """Who waits is woken when the stage has passed the offset, and not before."""
    waits = [asyncio.create_task(bus.wait("indexed", offset, 30)) for offset in (3, 1, 2)]
    await asyncio.sleep(0)
    bus.release(0, {"indexed": 2})
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [False, True, True] == [wait.done() for wait in waits]
    bus.release(0, {"indexed": 7, "extracted": 9})

    assert [True] * 3 == await asyncio.gather(*waits)


async def test_what_has_passed_is_not_waited_for(bus):
    """A watermark never goes back; checkpoints at start count as well."""
    bus.reached("consolidated", 5)
    bus.release(0, {"consolidated": 3})

    assert await bus.wait("consolidated", 5, 0)
    assert not await bus.wait("consolidated", 6, 0)


async def test_waiting_ends_with_the_time(bus):
    """The deadline is answered honestly, and a release that comes late harms nothing."""
    assert not await bus.wait("indexed", 1, 0.01)
    bus.release(0, {"indexed": 1})

    assert await bus.wait("indexed", 1, 0)


async def test_who_stops_waiting_is_forgotten(bus):
    """A request that was cancelled does not keep others from being woken."""
    gone, there = (asyncio.create_task(bus.wait("indexed", 1, 30)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    bus.release(0, {"indexed": 1})

    assert await there


# Streams that fall behind


async def test_an_overflow_falls_back_to_the_buffer(bus, kv):
    """A full queue is continued from the disk: nothing lost, nothing twice."""
    stream = bus.subscribe(Filter(tenant_no=1))
    room = limits.SUBSCRIBER_ROWS_MAX
    for number in range(room + 10):
        bus.release(write(bus, kv, captured(number)))
    assert list(range(room)) == heard(stream)
    seen = heard(stream)
    stream.queue.clear()
    bus.release(write(bus, kv, captured(room + 10)))
    assert [] == heard(stream)
    position = bus.resume(stream)
    until = stream.last_queued_us
    bus.release(write(bus, kv, captured(room + 11)))

    found, _ = bus.replay(stream.wanted, uuid7_first(position + 1), until, 1_000_000)
    seen += [event.wal_offset for _, event in found]
    seen += heard(stream)
    assert list(range(room + 12)) == seen


async def test_an_overflow_before_anything_was_queued(bus, kv):
    """Where the disk goes on is where the stream began, when its queue never took a row."""
    bus.release(write(bus, kv, captured(1)))
    stream = bus.subscribe(Filter(tenant_no=1, names=frozenset({"captured"})))
    began = stream.last_queued_us
    stream.overflow_from = began
    bus.release(write(bus, kv, captured(2)))

    found, _ = bus.replay(stream.wanted, uuid7_first(bus.resume(stream) + 1), bus.released_us, 100)
    assert [2] == [event.wal_offset for _, event in found]


async def test_closing_wakes_every_stream(bus):
    """A server that stops ends its streams; who left before is not counted."""
    streams = [bus.subscribe(Filter(tenant_no=number)) for number in (1, 1, 2)]
    bus.unsubscribe(streams[0])
    bus.unsubscribe(streams[0])
    assert 2 == bus.subscriber_count
    bus.close_all()

    assert [None, "shutdown", "shutdown"] == [stream.closed for stream in streams]
    assert streams[1].ready.is_set()


async def collected(stream, count):
    """So many announcements of a stream of server-sent bytes: their ids.

    The id that a stream begins with, to resume at, announces nothing.
    """
    ids = []
    async for chunk in stream:
        told = [frame.split(b"\n") for frame in chunk.split(b"\n\n") if b"event: " in frame]
        ids += [line[4:].decode() for frame in told for line in frame if line.startswith(b"id: ")]
        if len(ids) >= count:
            break
    await stream.aclose()
    return ids


async def test_a_resumed_stream_begins_where_it_was_asked_to(rig):
    """The buffer after the id, then what happens; also what happened before the first read."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        for number in range(3):
            await rig.post(engine, f"t{number}")
        await site.settle()
        before = [event.lifecycle_id for event in rig.announcements(engine)]
        stream = subscribe(engine, rig.ALICE, WatchRequest(since=before[4]))
        await rig.post(engine, "between subscribing and reading")
        await site.settle()
        ids = await collected(stream, 11)

        assert [event.lifecycle_id for event in rig.announcements(engine)][5:] == ids


async def test_a_slow_stream_is_continued_from_the_disk(rig):
    """More than its queue takes while nobody reads: the stream still has all of it, in order."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        stream = subscribe(engine, rig.ALICE, WatchRequest())
        (subscription,) = engine.lifecycle._subscribers[1]
        for at in range(2):
            await rig.post_many(engine, [f"{at}.{number}" for number in range(900)])
        await site.settle()
        assert subscription.overflow_from is not None
        await rig.post(engine, "last")
        ids = await collected(stream, 1800 * 4 + 1)

        assert [event.lifecycle_id for event in rig.announcements(engine)] == ids
        assert 0 == engine.lifecycle.subscriber_count


async def test_a_stream_too_far_behind_is_told_and_closed(rig):
    """Thirty seconds late is `lagging`, without an id: resuming uses the last real one."""
    async with rig.Site() as site:
        engine = await site.open()
        stream = subscribe(engine, rig.ALICE, WatchRequest())
        await rig.post(engine, "early")
        site.clock.step(limits.LAG_S_MAX + 1)
        chunks = [chunk async for chunk in stream]

        assert 2 == len(chunks)
        assert chunks[0].startswith(b"id: lce_")
        assert chunks[1].startswith(b"event: lagging\ndata: ")
        assert 0 == engine.lifecycle.subscriber_count


# The buffer


def test_a_page_of_the_buffer_says_where_to_go_on(bus, kv):
    """Looking is bounded, also when little matches; the walk misses nothing."""
    for number in range(10):
        write(bus, kv, captured(number, event=EVENT if number % 3 else OTHER))
    bus.release(write(bus, kv, captured(10)))
    wanted, seen, going, looks = Filter(tenant_no=1, event=EVENT), [], bytes(16), 0
    while going is not None:
        found, going = bus.replay(wanted, going, bus.released_us, 4)
        seen += [event.wal_offset for _, event in found]
        looks += 1

    assert [1, 2, 4, 5, 7, 8, 10] == seen
    assert 3 == looks


def test_the_buffer_keeps_an_hour(bus, kv, clock):
    """Older rows go, of every tenant named; younger ones stay (001 §18.2.10)."""
    for tenant_no in (1, 2):
        write(bus, kv, captured(1), tenant_no=tenant_no)
    clock.step(limits.LIFECYCLE_BUFFER_S - 1)
    bus.release(write(bus, kv, captured(2)))
    bus.prune([1, 2])
    assert [1, 2] == told(bus)
    clock.step(2)
    bus.prune([1])

    assert [2] == told(bus)
    assert 2 == sum(1 for _ in kv.scan("lifecycle"))


async def test_an_id_older_than_the_buffer_is_said_not_skipped(rig):
    """Resuming from a pruned past would miss rows silently: 410 instead."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "old")
        (old,) = rig.announcements(engine)
        site.clock.step(limits.LIFECYCLE_BUFFER_S + 1)
        for ask in (subscribe, list_lifecycle):
            with pytest.raises(LifecycleExpired):
                ask(engine, rig.ALICE, WatchRequest(since=old.lifecycle_id))


# The stages row


@pytest.mark.parametrize(
    "raws",
    [
        [],
        [EVENT],
        [EVENT, OTHER, None, EVENT],
        [EVENT, None, None, OTHER],
        [b"\1" + bytes(15), b"\1" + bytes(15)],
    ],
)
def test_the_stages_row_comes_back(raws):
    """Which announcements an entry has had, also where ids end in zeros."""
    assert raws == unpack_stages(pack_stages(raws))


def test_stages_not_reached_take_no_room():
    """An entry whose later stages are missing is as long as those it had."""
    assert 16 == len(pack_stages([EVENT, None, None, None, None]))
    assert [] == unpack_stages(None) == unpack_stages(b"")


async def test_much_at_once_leaves_the_loop_to_others(bus, kv):
    """Whoever comes to the loop while thousands are told is served in between, and none is lost."""
    bus.bind(asyncio.get_running_loop())
    heard = bus.subscribe(Filter(tenant_no=1))
    count = 3 * limits.RELEASE_ROWS
    token = write(bus, kv, *(captured(number) for number in range(count)))
    bus.release(token, {"captured": count})
    waiting = asyncio.ensure_future(bus.wait("captured", count, 60))
    await asyncio.sleep(0)

    assert len(heard.queue) < count
    assert await waiting
    numbers = [json.loads(encoded.split(b"data: ")[1])["wal_offset"] for _, encoded in heard.queue]
    assert list(range(count)) == numbers
