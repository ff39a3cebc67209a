"""Do schedule and coordination follow from the log, whatever agents asked of them?  (I4)"""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from api.app import App
from api.surfaces import ALONE
from schemas.caller import Caller

PEERS = ("alice", "bob", "carol")
IDS = ("sched_a", "sched_b")

peer = st.sampled_from(PEERS)
item = st.sampled_from(IDS)
number = st.integers(1, 3)
words = st.text(min_size=1, max_size=8)
links = st.sampled_from([{}, {"thread_id": "one"}, {"task_id": "two"}, {"thread_id": "中文"}])

steps = st.one_of(
    st.tuples(st.just("register"), peer, st.sampled_from(["untrusted", "restricted", "trusted"])),
    st.tuples(st.just("create"), peer, item, words, links),
    st.tuples(st.just("keyed"), peer, words),
    st.tuples(st.just("change"), peer, item, number, links, words),
    st.tuples(st.just("end"), peer, item, number, st.sampled_from(["acknowledge", "retire"])),
    st.tuples(st.just("share"), peer, peer, words),
    st.tuples(st.just("update"), peer, st.integers(0, 3), number, words),
    st.tuples(st.just("open"), peer, peer, st.integers(0, 3)),
    st.tuples(st.just("resolve"), peer, st.integers(0, 3), words),
    st.tuples(st.just("settle")),
)


class Agents:
    """Peers that talk to one engine through the surface itself."""

    def __init__(self, site, client):
        self.site, self.client = site, client
        self.shared, self.records = [], []

    async def ask(self, method, path, body, by):
        answer = await self.client.request(
            method, path, json=body, headers={"authorization": f"Bearer {by}"}
        )
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.status_code in {200, 201} else {}

    async def play(self, step, *given):
        match step, given:
            case "register", (name, trust):
                body = {"peer_id": name, "base_url": "http://x", "trust_level": trust}
                await self.ask("POST", "/v1/peers/register", body, "alice")
            case "create", (by, schedule_id, title, about):
                body = reminder(title) | about | {"schedule_id": schedule_id}
                await self.ask("POST", "/v1/schedule/items", body, by)
            case "keyed", (by, title):
                body = reminder(title) | {"idempotency_key": "once"}
                await self.ask("POST", "/v1/schedule/items", body, by)
            case "change", (by, schedule_id, version, about, note):
                body = {"expected_version": version, "note": note} | about
                await self.ask("PATCH", f"/v1/schedule/items/{schedule_id}", body, by)
            case "end", (by, schedule_id, version, ending):
                path = f"/v1/schedule/items/{schedule_id}/{ending}"
                await self.ask("POST", path, {"expected_version": version}, by)
            case "settle", _:
                await self.site.settle()
            case _:
                await self.coordinate(step, *given)

    async def coordinate(self, step, by, *given):
        match step, given:
            case "share", (other, text):
                body = {"participant_peers": [other], "title": text, "constraints": [text]}
                made = await self.ask("POST", "/v1/coordination/shared/create", body, by)
                self.shared += [made["shared"]["shared_id"]] if made else []
            case "update", (at, version, text) if self.shared:
                path = f"/v1/coordination/shared/{self.shared[at % len(self.shared)]}/update"
                body = {"expected_version": version, "title": text, "constraints": [text]}
                await self.ask("POST", path, body, by)
            case "open", (other, at) if self.shared:
                source = self.shared[at % len(self.shared)]
                body = {"thread_id": "one", "title": "which", "classification": "frame_conflict"}
                body |= {"trigger": "shared_vs_shared"}
                body |= {"claims": [claim(source, by), claim(source, other)]}
                made = await self.ask("POST", "/v1/coordination/reconciliation/open", body, by)
                self.records += [made["reconciliation"]["reconciliation_id"]] if made else []
            case "resolve", (at, text) if self.records:
                record = self.records[at % len(self.records)]
                body = {"expected_version": 1, "outcome": "rejected", "resolution_summary": text}
                await self.ask(
                    "POST", f"/v1/coordination/reconciliation/{record}/resolve", body, by
                )


def reminder(title):
    due = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT00:00:00Z")
    return {"kind": "reminder", "title": title, "due_at": due}


def claim(source, by):
    return {
        "source_kind": "shared",
        "source_id": source,
        "claimant_peer": by,
        "claim_summary": f"of {by}",
        "epistemic_status": "frame_present",
        "observed_version": 1,
    }


@given(story=st.lists(steps, max_size=16), batch=st.sampled_from([1, 3, 100]))
@settings(max_examples=30, deadline=None)
def test_what_agents_agreed_on_is_replayed_the_same(rig, story, batch):
    """I4 with schedule and coordination in the log, through the surface itself."""

    async def live():
        async with rig.Site(batch_entries=batch) as site:
            await site.open()
            callers = {name: Caller(actor=f"agent:{name}", tenant="local") for name in PEERS}
            app = App(lambda: site, alone=ALONE["cognirelay"], principals=callers)
            app.bind(site.engine)
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                agents = Agents(site, client)
                for name in PEERS:
                    await agents.play("register", name, "restricted")
                for step in story:
                    await agents.play(*step)
            await site.settle()
            kept, replayed = rig.kept(site.engine), rig.replayed(site.engine, site.projection)
            assert kept.keys() == replayed.keys()
            for name in kept:
                assert kept[name] == replayed[name], name
            rig.verify(site.engine)

    asyncio.run(live())
