"""Can anything that is sent to CogniRelay's dialect bring it down?  (I7)"""

import asyncio
import json
import random
import re

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from api.app import App
from api.surfaces import ALONE
from schemas.caller import Caller
from schemas.surfaces.shapes import Choice, Field, Flag, Items, Maybe, Model, Number, Table, Text

SURFACE = ALONE["cognirelay"]
TIMES = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00+02:00", "2030-01-01T10:00:00Z")
NAMES = ("one", "two", "alice", "bob", "sched_a", "WAL Engine/Phase #1", "中文")
SCALARS = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 1e308),
    *("", " ", "\x00", "\ud7ff", "é" * 300, "x" * 5000, "../x", "memory/a.md", "/etc", "{}"),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00.5Z", "24:00"),
    *NAMES,
    *TIMES,
)
SCHEDULED = {
    "kind": ("reminder", "task_nudge"),
    "title": NAMES,
    "due_at": TIMES,
    "schedule_id": ("sched_a", "sched_b"),
    "idempotency_key": NAMES,
    "expected_version": (1, 2),
    "status": ("done", "acknowledged"),
    "reason": NAMES,
    "task_id": NAMES,
    "subject_kind": ("user", "thread"),
    "subject_id": NAMES,
    "metadata": ({}, {"a": 1}),
}


class Sender:
    """Requests that are nearly right, drawn from what the routes declare."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def junk(self, depth=2):
        kind = self.draw.random()
        if depth and kind < 0.15:
            return [self.junk(depth - 1) for _ in range(self.draw.randrange(3))]
        if depth and kind < 0.3:
            names = self.draw.sample(NAMES, 2)
            return {name: self.junk(depth - 1) for name in names}
        return self.draw.choice(SCALARS)

    def near(self, shape, chance=0.06):
        """A value that the shape takes, but for a chance."""
        if self.draw.random() < chance:
            return self.junk()
        match shape:
            case Model(fields=fields):
                return self.fields(fields)
            case Maybe(of=inner):
                return None if self.draw.random() < 0.3 else self.near(inner, chance)
            case Items(of=inner, min=least):
                return [self.near(inner, chance) for _ in range(least + self.draw.randrange(2))]
            case Choice(words=words):
                return self.draw.choice(words)
            case Number(ge=least):
                return (least or 0) + self.draw.randrange(2)
            case Flag():
                return self.draw.random() < 0.5
            case Table():
                return {name: self.junk(0) for name in self.draw.sample(NAMES, 1)}
            case Text():
                return self.draw.choice((*NAMES, *TIMES))
        return self.junk()

    def fields(self, fields):
        made = {}
        for name, declared in fields.items():
            shape = declared.shape if isinstance(declared, Field) else declared
            if not isinstance(declared, Field) or self.draw.random() < 0.4:
                made[name] = self.draw.choice(TIMES) if name.endswith("_at") else self.near(shape)
        return made

    def scheduled(self):
        names = self.draw.sample(list(SCHEDULED), self.draw.randrange(1, 8))
        return {
            name: self.junk() if self.draw.random() < 0.2 else self.draw.choice(SCHEDULED[name])
            for name in {*names, "kind", "title", "due_at"}
        }

    def request(self):
        """Method, path, query and body of one request to a route of the table."""
        endpoint = self.draw.choice(SURFACE.endpoints)
        parts = ("sched_a", "sched_b", "x", "%00", "中", f"shared_{'0' * 32}")
        path = re.sub(r"\{\w+\}", lambda _: self.draw.choice(parts), endpoint.path)
        asked = endpoint.query_shape
        known = list(asked.fields) if isinstance(asked, Model) else ["limit", "due", "status", "x"]
        query = {name: str(self.junk(0)) for name in self.draw.sample(known, 2)} if asked else {}
        if endpoint.method == "GET":
            return endpoint.method, path, query, None
        body = self.scheduled() if endpoint.takes_raw else self.near(endpoint.shape)
        return endpoint.method, path, query, body


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_nothing_that_is_sent_is_a_crash(rig, seed):
    """Whatever is sent, the answer is a status below 500, in the dialect's own words."""

    async def live():
        async with rig.Site() as site:
            await site.open()
            caller = Caller(actor="agent:alice", tenant="local")
            app = App(lambda: site, alone=SURFACE, principals={"alice": caller})
            app.bind(site.engine)
            transport = httpx.ASGITransport(app=app)
            headers = {"authorization": "Bearer alice", "content-type": "application/json"}
            sender = Sender(seed)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://x", headers=headers
            ) as client:
                for _ in range(60):
                    method, path, query, body = sender.request()
                    content = None if body is None else json.dumps(body).encode()
                    answer = await client.request(method, path, params=query, content=content)
                    assert answer.status_code < 500, (method, path, body, answer.text)
                    if answer.status_code >= 400 and answer.content and path != "/v1/mcp":
                        assert "detail" in answer.json()

    asyncio.run(live())
