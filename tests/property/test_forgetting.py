"""Do the views follow from the log, whatever was written, forgotten, erased and taken back?"""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capture import capture
from engine.erase import start_erasure
from engine.forget import ForgetCall, forget, revert_forget
from engine.jobs import find_job
from engine.rollback import roll_back, undo_rollback
from engine.rows import CaptureRequest
from engine.selection import records_in
from engine.state.names import SCOPE as SCOPES
from schemas.envelope import Envelope
from schemas.erasures import ErasureRequest, ErasureSelector
from schemas.forget import ForgetRequest, RollbackRequest

SCOPE, OTHER = "org:acme/user:alice", "org:acme/user:bob"
START = datetime(2026, 1, 1, tzinfo=UTC)
WHO = ("user:ada", "user:bob")
WHAT = ("lives_in", "owns", "same_as")
VALUES = ("Paris", "Rome", "user:ada")

told = st.tuples(
    st.just("tell"),
    st.sampled_from(WHO),
    st.sampled_from(WHAT),
    st.sampled_from(VALUES),
    st.integers(0, 40),
    st.sampled_from(["here", "here", "into", "there"]),
)
forgotten = st.tuples(
    st.just("forget"),
    st.sampled_from(["derived_only", "redact_events"]),
    st.sampled_from(["all", "subject", "predicate", "record", "event"]),
    st.sampled_from([[], ["facts"], ["beliefs"], ["episodes"], ["understanding"]]),
    st.integers(0, 9),
)
erased = st.tuples(st.just("erase"), st.sampled_from(["all", "event"]), st.integers(0, 9))
others = st.tuples(st.sampled_from(["revert", "roll back", "restore", "settle"]))
stories = st.lists(st.one_of(told, told, told, forgotten, erased, others), min_size=4, max_size=14)


class Story:
    """One life of an engine, told step by step."""

    def __init__(self, rig, site):
        self.rig, self.site = rig, site
        self.engine = site.engine
        self.events, self.audits, self.rollbacks = [], [], []

    async def tell(self, who, what, value, day, where):
        body = {
            "scope": OTHER if where == "there" else SCOPE,
            "modality": "conversation",
            "content": {
                "kind": "triple",
                "triple": {"subject": who, "predicate": what, "object": value},
            },
            "context": {"observed_at": START + timedelta(days=day)},
            "idempotency_key": f"k{len(self.events)}",
            "directives": {"consolidate_into": OTHER} if where == "into" else {},
        }
        request = CaptureRequest(envelope=msgspec.convert(body, Envelope))
        self.events.append((await capture(self.engine, self.rig.ALICE, request)).event_id)

    async def forget(self, cascade, how, layers, which):
        await self.site.settle()
        chosen = self.selector(how, which)
        if chosen is None:
            return
        body = msgspec.convert({"scope": SCOPE, "cascade": cascade} | chosen, ForgetRequest)
        if how in ("all", "subject", "predicate") and cascade == "derived_only":
            body = msgspec.structs.replace(body, layers=layers)
        done = await forget(self.engine, self.rig.ALICE, ForgetCall(body=body, wait_s=0))
        if cascade == "derived_only" and done.deleted_count:
            self.audits.append(done.audit_id)

    def selector(self, how, which):
        tenant_no = self.engine.tenant_no(self.rig.ALICE)
        number = None if tenant_no is None else self.engine.names.known(SCOPES, tenant_no, SCOPE)
        if number is None:
            return None
        if how == "all":
            return {"confirm_all": True}
        if how == "subject":
            return {"selector": {"about_subject": WHO[which % 2]}}
        if how == "predicate":
            return {"selector": {"predicate": WHAT[which % 3]}}
        names = self.events
        if how == "record":
            names = [
                record.id
                for table in ("facts", "beliefs", "episodes", "concepts")
                for record in records_in(self.engine, tenant_no, table, number)
            ]
        return {"selector": {"memory_ids": [names[which % len(names)]]}} if names else None

    async def erase(self, how, which):
        """An erasure from its plan to its last compaction, with the daemon stepped beside it."""
        await self.site.settle()
        chosen = ErasureSelector(memory_ids=[self.events[which % len(self.events)]])
        asked = ErasureRequest(scope=SCOPE, selector=chosen if how == "event" else None)
        self.engine.indexer.retired_s = 0
        begun = (await start_erasure(self.engine, self.rig.ALICE, asked)).receipt
        while not find_job(self.engine, self.rig.ALICE, begun.erasure_id).is_over:
            await self.site.settle()
            await self.site.index_all()
        ended = find_job(self.engine, self.rig.ALICE, begun.erasure_id)
        assert "completed" == ended.status, ended

    async def play(self, step, *given):
        match step:
            case "tell":
                await self.tell(*given)
            case "forget":
                await self.forget(*given)
            case "erase" if self.events:
                await self.erase(*given)
            case "settle":
                await self.site.settle()
            case "revert" if self.audits:
                await revert_forget(self.engine, self.rig.ALICE, self.audits.pop())
            case "roll back" if self.events:
                asked = RollbackRequest(caller=self.rig.ALICE.actor, dry_run=False)
                done = await roll_back(self.engine, self.rig.ALICE, asked)
                self.rollbacks += [done.rollback_id] if done.events else []
            case "restore" if self.rollbacks:
                await undo_rollback(self.engine, self.rig.ALICE, self.rollbacks.pop())


@given(story=stories, batch=st.sampled_from([1, 3, 100]))
@settings(max_examples=30, deadline=None)
def test_replay_equals_what_was_kept(rig, story, batch):
    """I4 and I5, and no projector ever stumbles over what is not there any more."""

    async def live():
        async with rig.Site(batch_entries=batch) as site:
            await site.open()
            life = Story(rig, site)
            for step in story:
                await life.play(*step)
            await site.settle()
            engine = site.engine
            assert [] == [row for _, row in engine.inline.scan(1, "parked")]
            kept, replayed = rig.kept(engine), rig.replayed(engine, site.projection)
            assert kept.keys() == replayed.keys()
            for name in kept:
                assert kept[name] == replayed[name], name
            rig.verify(engine)

    asyncio.run(live())
