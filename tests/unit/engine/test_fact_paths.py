"""Does what is posted become facts where it should, and stop being facts when it should?

Through the engine, with every projector: the texts are read, the stages run, the lifecycle tells.
"""

from datetime import UTC, datetime

import msgspec

from engine.capture import capture
from engine.engine import Projection
from engine.rows import CaptureRequest
from engine.state.names import SCOPE, TENANT
from engine.watch import CancelRequest, cancel
from schemas.envelope import Context, Directives

HOME, LAUNCH = "org:acme/user:alice", "ws:launch"


async def say(rig, engine, text, day, **directives):
    """Alice says something on a day of May."""
    made = rig.envelope(text)
    context = Context(observed_at=datetime(2026, 5, day, tzinfo=UTC))
    asked = Directives(**directives) if directives else None
    made = msgspec.structs.replace(made, context=context, directives=asked)
    return await capture(engine, rig.ALICE, CaptureRequest(envelope=made))


def facts(engine, scope=HOME):
    """The objects of what is known of where someone lives, in a scope."""
    tenant_no = engine.names.number(TENANT, 0, "acme")
    scope_no = engine.names.known(SCOPE, tenant_no, scope) or 0
    keys = [
        key for key, _ in engine.staged.scan(tenant_no, "facts_in", scope_no.to_bytes(4, "big"))
    ]
    found = (engine.staged.get(tenant_no, "facts", key[4:]) for key in keys)
    return {
        fact.object.name: fact
        for fact in found
        if fact.predicate == "lives_in" and fact.recorded_to is None
    }


def said_of(rig, engine, stage, event_id):
    """The payload with which a stage of an event was announced."""
    (found,) = [
        event
        for event in rig.announcements(engine)
        if event.event_id == event_id and type(event).__struct_config__.tag == stage
    ]
    return found


async def test_what_was_superseded_is_told(rig):
    """One fact is derived, one is superseded: the lifecycle says so, and nothing twice."""
    async with rig.Site() as site:
        engine = await site.open()
        await say(rig, engine, "I live in Paris.", 1)
        receipt = await say(rig, engine, "I live in Rome now.", 9)
        await site.settle()
        extracted = said_of(rig, engine, "extracted", receipt.event_id)
        consolidated = said_of(rig, engine, "consolidated", receipt.event_id)

        assert 1 == extracted.derived.facts
        assert (0, 1) == (consolidated.conflicts_resolved, consolidated.superseded_facts)
        assert {"Paris", "Rome"} == set(facts(engine))


async def test_consolidated_into_a_scope_nobody_wrote_to(rig):
    """It gets its number with the entry, and keeps it over a crash and a replay."""
    async with rig.Site() as site:
        await site.open()
        await say(rig, site.engine, "I live in Paris.", 1, consolidate_into=LAUNCH)
        await site.kill(power_cut=True)
        await site.open()
        await site.settle()
        engine = site.engine

        assert ({}, {"Paris"}) == (facts(engine), set(facts(engine, LAUNCH)))
        assert LAUNCH == facts(engine, LAUNCH)["Paris"].scope
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_cancelled_after_its_stages(rig):
    """What rested on it is known no more, what it had superseded is; replay agrees."""
    async with rig.Site() as site:
        engine = await site.open()
        await say(rig, engine, "I live in Paris.", 1)
        wrong = await say(rig, engine, "I live in Rome now.", 9)
        await site.settle()
        await cancel(engine, rig.ALICE, wrong.event_id, CancelRequest())
        await site.settle()

        assert {"Paris"} == set(facts(engine))
        assert facts(engine)["Paris"].valid_to is None
        assert rig.replayed(engine, Projection()) == rig.kept(engine)


async def test_cancelled_before_its_stages(rig):
    """It never became a fact, so there is nothing to take back."""
    async with rig.Site() as site:
        engine = await site.open()
        await say(rig, engine, "I live in Paris.", 1)
        wrong = await say(rig, engine, "I live in Rome now.", 9)
        await cancel(engine, rig.ALICE, wrong.event_id, CancelRequest())
        await site.settle()

        assert {"Paris"} == set(facts(engine))
        assert rig.replayed(engine, Projection()) == rig.kept(engine)
