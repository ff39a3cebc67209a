"""What if everyone writes the same thing at once?  It is written once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from pathlib import Path

from tests.faults.client import Answer, Client
from tests.faults.ledger import SINGLE, envelope, list_events
from tests.faults.server import Server

CLIENT_COUNT = 32
KEY_COUNT = 50
KEYS = [f"key-{number}" for number in range(KEY_COUNT)]


async def race(server: Server, *, same_body: bool) -> dict[str, list[Answer]]:
    """Every client posts every key, all clients the same one at a time; the answers by key."""
    answers: dict[str, list[Answer]] = defaultdict(list)
    together = asyncio.Barrier(CLIENT_COUNT)

    async def post_all(name: int) -> None:
        async with Client(server.address) as client:
            for key in KEYS:
                body = envelope(key)
                if not same_body:
                    body["content"]["text"] = f"{key} as client {name} says it"
                await together.wait()
                answer = await client.ask("POST", SINGLE, json.dumps(body).encode())
                answers[key].append(answer)

    await asyncio.gather(*(post_all(name) for name in range(CLIENT_COUNT)))
    return answers


def test_same_key_same_body(tmp_path: Path, trial):
    """One event a key; everyone gets its id, and exactly one of them is not told it is a replay."""
    with Server(tmp_path / "data") as server:
        answers = asyncio.run(race(server, same_body=True))
        events = asyncio.run(list_events(server.address))
    statuses = Counter(answer.status for found in answers.values() for answer in found)
    ids = {key: {answer.json()["event_id"] for answer in found} for key, found in answers.items()}
    firsts = [
        sum("x-cortex-replay" not in answer.headers for answer in found)
        for found in answers.values()
    ]
    trial.say(clients=CLIENT_COUNT, keys=KEY_COUNT, posts=statuses.total(), stored=len(events))

    assert {202: CLIENT_COUNT * KEY_COUNT} == statuses
    assert sorted(KEYS) == sorted(event["idempotency_key"] for event in events)
    assert ids == {event["idempotency_key"]: {event["id"]} for event in events}
    assert [1] * KEY_COUNT == firsts


def test_same_key_another_body(tmp_path: Path, trial):
    """Of different bodies under one key exactly one is written; the others hear of the conflict."""
    with Server(tmp_path / "data") as server:
        answers = asyncio.run(race(server, same_body=False))
        events = asyncio.run(list_events(server.address))
    won = {key: [a for a in found if a.status == 202] for key, found in answers.items()}
    refused = Counter((a.status, a.code) for found in answers.values() for a in found if a.code)
    trial.say(clients=CLIENT_COUNT, keys=KEY_COUNT, stored=len(events), conflicts=refused.total())

    assert dict.fromkeys(KEYS, 1) == {key: len(found) for key, found in won.items()}
    assert {(409, "IDEMPOTENCY_CONFLICT"): (CLIENT_COUNT - 1) * KEY_COUNT} == refused
    assert {event["id"] for event in events} == {f[0].json()["event_id"] for f in won.values()}


def test_same_keys_in_bulk(tmp_path: Path, trial):
    """Overlapping bulk calls racing each other store each key once, too."""
    spans = [KEYS[start : start + 20] for start in range(0, KEY_COUNT - 10, 5)]

    async def run(server: Server) -> list[Answer]:
        async def post(keys: list[str]) -> Answer:
            body = json.dumps({"items": [envelope(key) for key in keys]}).encode()
            async with Client(server.address) as client:
                return await client.ask("POST", SINGLE + "/bulk", body)

        return list(await asyncio.gather(*(post(keys) for keys in spans * 4)))

    with Server(tmp_path / "data") as server:
        answers = asyncio.run(run(server))
        events = asyncio.run(list_events(server.address))
    fresh = sum(a.json()["accepted"] - a.json().get("replayed", 0) for a in answers)
    trial.say(posts=len(answers), keys=KEY_COUNT, stored=len(events), fresh=fresh)

    assert {202} == {answer.status for answer in answers}
    assert sorted(KEYS) == sorted(event["idempotency_key"] for event in events)
    assert KEY_COUNT == fresh
