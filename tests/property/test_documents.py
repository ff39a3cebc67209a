"""Do documents follow from the log, whatever was written, deleted, forgotten and erased?"""

import asyncio

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.forget import ForgetCall, forget
from engine.surface import Change, Outcome, Write, change_documents
from schemas.forget import ForgetRequest

SCOPES = ("user:ada", "ws:thread-one")
KEYS = ("one", "two", "Three")

written = st.tuples(
    st.just("put"),
    st.sampled_from(KEYS),
    st.sampled_from(SCOPES),
    st.sampled_from(["current", "deleted", "archived"]),
    st.text(min_size=1, max_size=12),
)
erased = st.tuples(st.just("erase"), st.integers(0, 20))
cleared = st.tuples(st.just("clear"), st.sampled_from(SCOPES))
settled = st.tuples(st.just("settle"))
stories = st.lists(st.one_of(written, written, written, erased, cleared, settled), max_size=14)


class Story:
    """One life of an engine that keeps documents."""

    def __init__(self, rig, site):
        self.rig, self.site, self.engine = rig, site, site.engine
        self.events = []

    async def put(self, key, scope, state, text):
        def decide(held):
            before = held.get("note", key)
            version = 1 if before is None else before.version + 1
            value = None if state == "deleted" else {"text": text, "seen": version}
            write = Write(
                kind="note", key=key, scope=scope, words=f"{key}: {text}", value=value, state=state
            )
            return Outcome(answer=version, writes=[write])

        change = Change(surface="tests", scopes=(scope,), decide=decide)
        changed = await change_documents(self.engine, self.rig.ALICE, change)
        assert changed.answer == changed.documents[0].version
        self.events.append((scope, changed.documents[0].event_id))

    async def forget(self, scope, chosen):
        await self.site.settle()
        asked = {"scope": scope, "cascade": "redact_events"} | chosen
        body = msgspec.convert(asked, ForgetRequest)
        await forget(self.engine, self.rig.ALICE, ForgetCall(body=body, wait_s=0))

    async def play(self, step, *given):
        match step:
            case "put":
                await self.put(*given)
            case "erase" if self.events:
                scope, event_id = self.events[given[0] % len(self.events)]
                await self.forget(scope, {"selector": {"memory_ids": [event_id]}})
            case "clear" if any(scope == given[0] for scope, _ in self.events):
                await self.forget(given[0], {"confirm_all": True})
            case "settle":
                await self.site.settle()


@given(story=stories, batch=st.sampled_from([1, 3, 100]))
@settings(max_examples=30, deadline=None)
def test_documents_replayed_are_documents_kept(rig, story, batch):
    """I4 with documents in the log, whichever versions lost their payloads."""

    async def live():
        async with rig.Site(batch_entries=batch) as site:
            await site.open()
            life = Story(rig, site)
            for step in story:
                await life.play(*step)
            await site.settle()
            engine = site.engine
            kept, replayed = rig.kept(engine), rig.replayed(engine, site.projection)
            assert kept.keys() == replayed.keys()
            for name in kept:
                assert kept[name] == replayed[name], name
            rig.verify(engine)

    asyncio.run(live())
