"""Are events that were read lately shown as they are now, and gone when their words must go?"""

import msgspec

from engine.read import get_event
from engine.recall import recall
from engine.told import Told
from engine.watch import CancelRequest, cancel
from projectors.episodes import compose
from schemas import limits
from schemas.pack import RecallRequest


def words(events):
    return [None if event is None else event.content.text for event in events]


async def test_an_event_is_read_once_and_shown_again(rig):
    """The same object comes back, in the order that is asked for; a directive is no event."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post_many(engine, ["one", "two", "three"])
        first = engine.told.read([3, 1])
        again = engine.told.read([1, 2, 3])

        assert ["three", "one"] == words(first)
        assert ["one", "two", "three"] == words(again)
        assert first[0] is again[2]
        assert first[1] is again[0]


async def test_what_was_erased_is_not_kept(rig):
    """Nothing of it is left when the log says so, and nothing is read from here afterwards."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post_many(engine, ["kept", "doomed"])
        assert ["kept", "doomed"] == words(engine.told.read([1, 2]))
        engine.log.erase([2])

        assert 0 == engine.told.size_bytes()
        assert ["kept", None] == words(engine.told.read([1, 2]))


async def test_what_is_erased_while_it_is_read_is_not_kept(rig):
    """Whoever had read it before may show it once more; the next reader does not see it."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post_many(engine, ["doomed", "other"])

        def too_late(row):
            """The row is read already when its body is erased."""
            if row.header.offset == 1 and row.body is not None:
                engine.log.erase([1])
            return engine.entry_of(row)

        told = Told(engine.log, too_late)
        assert ["doomed", "other"] == words(told.read([1, 2]))
        assert 0 == told.size_bytes()
        assert [None, "other"] == words(told.read([1, 2]))


async def test_what_is_truncated_is_not_kept(rig):
    """An entry that left the log leaves memory with it."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post_many(engine, ["old", "new"])
        engine.told.read([1, 2])
        engine.log.truncate(2)

        assert 0 == engine.told.size_bytes()


async def test_only_so_much_is_kept(rig):
    """What was asked for the longest ago goes first, and is read again when it is asked for."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post_many(engine, [f"number {number}" for number in range(8)])
        told = Told(engine.log, engine.entry_of, bytes_max=3 * 3000)
        first = told.read([1])[0]
        for offset in range(2, 9):
            assert told.read([1])[0] is first, "asked for again and again, it stays"
            second = told.read([offset])[0]
            assert told.size_bytes() <= 3 * 3000
        assert told.read([8])[0] is second
        assert [f"number {number}" for number in range(8)] == words(told.read(range(1, 9)))


async def test_a_cancelled_event_is_left_out_at_once(rig):
    """What becomes of an event is looked up, however lately its words were read."""
    async with rig.Site() as site:
        engine = await site.open()
        event = await rig.post(engine, "The ferry leaves at nine")
        await site.settle()
        await site.index_all()
        asked = RecallRequest(scope="org:acme/user:alice", query="ferry", include=["events"])
        assert (event.event_id,) == recall(engine, rig.ALICE, asked).kept.items
        assert 0 < engine.told.size_bytes()
        await cancel(engine, rig.ALICE, event.event_id, CancelRequest())

        assert () == recall(engine, rig.ALICE, asked).kept.items
        assert get_event(engine, rig.ALICE, event.event_id).excluded_from_recall


async def test_an_open_episode_is_put_together_once(rig):
    """As long as it has the same members; one more makes another of it."""
    async with rig.Site() as site:
        engine = await site.open()
        opened, members = await an_open_episode(rig, site)
        first = engine.told.episode(opened, members)

        assert first is engine.told.episode(opened, list(members))
        assert compose(opened, members) == first
        assert compose(opened, members[:1]) == engine.told.episode(opened, members[:1])


async def test_an_episode_of_erased_events_is_not_kept(rig):
    """Its summary has their words."""
    async with rig.Site() as site:
        engine = await site.open()
        opened, members = await an_open_episode(rig, site)
        first = engine.told.episode(opened, members)
        engine.log.erase([1])

        assert {} == engine.told._episodes
        assert first is not engine.told.episode(opened, members)


async def test_an_open_episode_is_not_looked_for_until_something_is_written(rig):
    """For one state of the views its members are read once; another state may have others."""
    async with rig.Site() as site:
        engine = await site.open()
        opened, members = await an_open_episode(rig, site)
        state = engine.staged.state
        first = engine.told.episode(opened, members, state)

        assert first is engine.told.composed(opened, state)
        assert engine.told.composed(opened, msgspec.structs.replace(state)) is None
        assert engine.told.composed(msgspec.structs.replace(opened), state) is None
        engine.told.clear()
        assert engine.told.composed(opened, state) is None


async def test_only_so_many_episodes_are_kept(rig):
    """When there are more the memory starts again."""
    most = limits.OPEN_EPISODES_KEPT_MAX
    async with rig.Site() as site:
        engine = await site.open()
        opened, members = await an_open_episode(rig, site)
        for number in range(most + 2):
            engine.told.episode(msgspec.structs.replace(opened, id=f"ep_{number}"), members)
            assert len(engine.told._episodes) <= most
        assert 2 == len(engine.told._episodes)


async def an_open_episode(rig, site):
    """An episode of two events that is not sealed yet, and its members."""
    engine = site.engine
    await rig.post_many(engine, ["We leave for Oslo.", "The train was late."])
    await site.settle()
    (raw, opened), *_ = engine.staged.scan(1, "episodes")
    members = [member for _, member in engine.staged.scan(1, "episode_events", raw)]
    assert not opened.sealed
    assert 2 == len(members)
    return opened, members
