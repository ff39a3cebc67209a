"""Is time told to the log when something is due, once, and never otherwise?"""

import time

import msgspec

from engine.capture import capture
from engine.rows import CaptureRequest
from engine.state.names import TENANT
from schemas import limits
from schemas.caller import Caller
from schemas.envelope import Actor, Triple, TripleContent

PAST_DUE_S = limits.EPISODE_GAP_S + limits.EPISODE_DUE_S


def episodes(engine):
    tenant_no = engine.names.known(TENANT, 0, "acme")
    return [record for _, record in engine.staged.scan(tenant_no, "episodes")]


def sealed(engine):
    return [record.sealed for record in episodes(engine)]


async def test_an_idle_scope_is_sealed(rig):
    """Half an hour of silence in the log, and one entry that says so; its seal is announced."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "Acme wants two hundred seats")
        await site.settle()
        site.clock.step(PAST_DUE_S)
        assert 1 == await engine.keeper.ticks.look()
        await site.settle()
        (episode,) = episodes(engine)
        told = rig.announcements(engine)[-1]

        assert episode.sealed
        assert ("compressed", episode.id, episode.scope, None) == (
            rig.names_of([told])[0],
            told.episode_id,
            told.scope,
            told.event_id,
        )
        assert rig.kept(engine) == rig.replayed(engine, site.projection)


async def test_an_idle_engine_stays_idle(rig):
    """Nothing due, nothing written: before the gap, after the seal, and with nothing at all."""
    async with rig.Site() as site:
        engine = await site.open()
        assert 0 == await engine.keeper.ticks.look()
        await rig.post(engine, "hello")
        await site.settle()
        site.clock.step(limits.EPISODE_GAP_S - 1)
        assert 0 == await engine.keeper.ticks.look()
        site.clock.step(PAST_DUE_S)
        assert 1 == await engine.keeper.ticks.look()
        assert 1 == engine.keeper.ticks.written
        await site.settle()
        head = engine.log.head()
        for _ in range(3):
            site.clock.step(PAST_DUE_S)
            assert 0 == await engine.keeper.ticks.look()

        assert head == engine.log.head() == 2


async def test_a_tick_on_its_way_is_not_repeated(rig):
    """Until the views have taken it, they still show what is due; also after a restart."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "hello")
        await site.settle()
        site.clock.step(PAST_DUE_S)
        looks = [await engine.keeper.ticks.look() for _ in range(3)]
        await site.kill(power_cut=True)
        engine = await site.open()
        looks.append(await engine.keeper.ticks.look())
        await site.settle()
        looks.append(await engine.keeper.ticks.look())

        assert [1, 0, 0, 0, 0] == looks
        assert [True] == sealed(engine)


async def test_due_while_nothing_ran(rig):
    """An engine that was off when the time came seals at its first look."""
    async with rig.Site() as site:
        await rig.post(await site.open(), "hello")
        await site.stop()
        site.clock.step(PAST_DUE_S)
        engine = await site.open()
        assert 0 == await engine.keeper.ticks.look()
        await site.settle()
        assert 1 == await engine.keeper.ticks.look()
        await site.settle()

        assert [True] == sealed(engine)


async def test_many_are_told_in_several_ticks(rig):
    """A tick names a bounded number, so that each is folded quickly; tenants have their own."""
    many = limits.TICK_RECORDS_MAX + 3
    async with rig.Site() as site:
        engine = await site.open()
        for number in range(many):
            await rig.post(engine, f"hello {number}", scope=f"org:acme/user:u{number}")
        other = Caller(actor="user:eve", tenant="globex")
        await rig.post(engine, "hello", caller=other)
        await site.settle()
        site.clock.step(PAST_DUE_S)
        assert 3 == await engine.keeper.ticks.look()
        await site.settle()

        assert [True] * many == sealed(engine)
        assert 0 == await engine.keeper.ticks.look()


async def test_a_session_waits_longer(rig):
    """Its episode is not due when one without a session would be."""
    async with rig.Site() as site:
        engine = await site.open()
        actor = Actor(id="user:alice", session="s1")
        made = msgspec.structs.replace(rig.envelope("hello"), observed_actor=actor)
        await capture(engine, rig.ALICE, CaptureRequest(envelope=made))
        await site.settle()
        site.clock.step(PAST_DUE_S)
        assert 0 == await engine.keeper.ticks.look()
        site.clock.step(limits.EPISODE_SESSION_GAP_S)
        assert 1 == await engine.keeper.ticks.look()


async def test_a_log_that_takes_nothing(rig):
    """Ticks wait until it does; what is due stays due."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "hello")
        await site.settle()
        site.clock.step(PAST_DUE_S)
        engine.committer.refusal = "the disk is nearly full"
        assert 0 == await engine.keeper.ticks.look()
        engine.committer.refusal = None

        assert 1 == await engine.keeper.ticks.look()


async def test_a_projection_without_episodes(rig):
    """There is nothing to look at."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        await rig.post(engine, "hello")
        await site.settle()
        site.clock.step(PAST_DUE_S)

        assert 0 == await engine.keeper.ticks.look()


async def test_the_keeper_looks(rig):
    """Nobody has to ask: it is one of its chores."""

    class Hurried(rig.HandClock):
        @staticmethod
        def elapsed_s() -> float:
            return time.monotonic() * 1000

    async with rig.Site(clock=Hurried()) as site:
        engine = await site.open()
        await rig.post(engine, "hello")
        await site.settle()
        site.clock.step(PAST_DUE_S)

        assert await engine.lifecycle.wait("captured", 2, 10.0)


async def test_evidence_that_a_belief_holds_back_is_looked_at_again(rig):
    """After the cooldown, when nothing else was said: one tick, and it waits no more."""
    async with rig.Site() as site:
        engine = await site.open()
        bob = Caller(actor="user:bob", tenant="acme")
        triple = Triple(subject="Acme", predicate="city", object="Berlin")
        for caller in (rig.ALICE, bob):
            made = msgspec.structs.replace(
                rig.envelope("", key=caller.actor), content=TripleContent(triple=triple)
            )
            await capture(engine, caller, CaptureRequest(envelope=made))
        await site.settle()
        tenant_no = engine.names.known(TENANT, 0, "acme")
        waiting = engine.staged.scan(tenant_no, "beliefs_held")
        site.clock.step(6 * 60)
        ticks = [await engine.keeper.ticks.look()]
        await site.settle()
        ticks.append(await engine.keeper.ticks.look())
        ((_, belief),) = engine.staged.scan(tenant_no, "beliefs")

        assert (1, [1, 0]) == (len(waiting), ticks)
        assert (2, []) == (belief.version, engine.staged.scan(tenant_no, "beliefs_held"))
        assert rig.kept(engine) == rig.replayed(engine, site.projection)
