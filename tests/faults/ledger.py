"""What was promised, and is it there?  Writers that keep a ledger, and the audit against it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Iterable
from itertools import count
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from tests.faults.client import Address, Answer, Client, Unanswered, ask

ROOT_SCOPE = "org:faults"
SINGLE = "/v1/experience"
BULK = "/v1/experience/bulk"
BIG_BYTES = 48 * 1024
_LANES = 8


class Post(NamedTuple):
    """A request that may have become events."""

    path: str
    keys: tuple[str, ...]
    body: bytes


class Audit(NamedTuple):
    """What an audit found: events in the log, and how many of them are wrong in which way."""

    events: int
    lost: int
    duplicates: int
    gaps: int
    strangers: int

    @property
    def is_good(self) -> bool:
        """Nothing is lost, doubled, left out or made up."""
        return not (self.lost or self.duplicates or self.gaps or self.strangers)


def text_of(key: str) -> str:
    """The text posted under a key, told from every other: some words, or much noise for `big…`."""
    number = crc32(key.encode())
    if key.startswith("big"):
        return f"{key} {base64.b85encode(Random(number).randbytes(BIG_BYTES)).decode()}"
    return f"{key} " + "and so on " * (number % 40)


def envelope(key: str) -> dict[str, Any]:
    """An experience whose scope and text follow from its key."""
    return {
        "scope": f"{ROOT_SCOPE}/user:{key.partition('-')[0]}",
        "modality": "observation",
        "content": {"kind": "text", "text": text_of(key)},
        "context": {"observed_at": "2026-01-02T03:04:05Z"},
        "idempotency_key": key,
    }


def single(key: str) -> Post:
    """A post of one experience."""
    return Post(SINGLE, (key,), json.dumps(envelope(key)).encode())


def bulk(keys: Iterable[str]) -> Post:
    """A post of many."""
    keys = tuple(keys)
    return Post(BULK, keys, json.dumps({"items": [envelope(key) for key in keys]}).encode())


class Ledger:
    """Everything that was asked for and what was answered."""

    def __init__(self) -> None:
        self.acked: dict[str, str | None] = {}
        self.acked_late = 0
        self.unknown: list[Post] = []
        self.refused: Counter[tuple[int, str | None]] = Counter()
        self.refusals: list[Answer] = []
        self.settled = 0
        self.audited: set[str] = set()
        self.audited_to = 0

    def note(self, post: Post, answer: Answer, *, late: bool = False) -> bool:
        """Write down an answer; whether it was an acknowledgement."""
        if answer.status not in {200, 202}:
            self.refused[answer.status, answer.code] += 1
            self.refusals.append(answer)
            # A failed fsync may have stored it all the same: only a retry can tell.
            self.unknown.append(post)
            return False
        found = answer.json()
        for key in post.keys:
            self.acked[key] = found.get("event_id")
        self.acked_late += late
        return True


async def write_posts(
    address: Address,
    ledger: Ledger,
    name: str,
    rng: Random,
    *,
    bulk_share: float = 0.1,
    refusals_max: int = 1,
) -> None:
    """Post one after the other, single and bulk, until the server is gone or has refused enough."""
    refusal_count = 0
    async with Client(address) as client:
        for number in count():
            if rng.random() < bulk_share:
                post = bulk(f"{name}-{number}-{at}" for at in range(rng.randint(2, 20)))
            else:
                post = single(f"{name}-{number}")
            # Sent when someone had been refused already: an acknowledgement would come late.
            late = bool(ledger.refused)
            try:
                answer = await client.ask("POST", post.path, post.body)
            except Unanswered:
                ledger.unknown.append(post)
                return
            if not ledger.note(post, answer, late=late):
                refusal_count += 1
                if refusal_count == refusals_max:
                    return


async def settle(address: Address, ledger: Ledger) -> int:
    """Retry every write of unknown outcome with its own key; how many had been stored already."""
    replayed = 0
    unknown, ledger.unknown = ledger.unknown, []
    async with Client(address) as client:
        for post in unknown:
            answer = await client.ask("POST", post.path, post.body)
            assert answer.status == 202, answer
            replayed += "x-cortex-replay" in answer.headers
            ledger.note(post, answer)
            ledger.settled += len(post.keys)
    return replayed


async def list_events(address: Address, *, after: int = 0) -> list[dict[str, Any]]:
    """Every event beyond an offset, newest first, page by page."""
    found: list[dict[str, Any]] = []
    path = f"/v1/events?scope={ROOT_SCOPE}&view=descend&order=newest&limit=1000"
    async with Client(address) as client:
        cursor = ""
        while True:
            answer = await client.ask("GET", path + cursor)
            assert answer.status == 200, answer
            page = answer.json()
            fresh = [event for event in page["items"] if event["wal_offset"] > after]
            found += fresh
            if not page["has_more"] or len(fresh) < len(page["items"]):
                return found
            cursor = f"&cursor={page['next_cursor']}"


async def _find(client: Client, key: str, event_id: str | None) -> bool:
    """Whether a write is there under its key and its id, with the text that was sent."""
    status = await client.ask("GET", f"/v1/experience/by-idempotency-key/{key}")
    if status.status != 200:
        return False
    named = status.json()
    event = await client.ask("GET", f"/v1/events/{event_id or named['event_id']}")
    if event.status != 200:
        return False
    found = event.json()
    return (
        found["id"] == named["event_id"]
        and found["wal_offset"] == named["wal_offset"]
        and found["idempotency_key"] == key
        and found["content"]["text"] == text_of(key)
    )


async def find_all(address: Address, wanted: dict[str, str | None]) -> list[str]:
    """The keys whose events are not there, by key or by id, or are not what was sent."""
    missing: list[str] = []
    left = iter(wanted.items())

    async def lane() -> None:
        async with Client(address) as client:
            for key, event_id in left:
                if not await _find(client, key, event_id):
                    missing.append(key)

    await asyncio.gather(*(lane() for _ in range(_LANES)))
    return missing


def _is_there(stored: dict[str, dict[str, Any]], key: str, event_id: str | None) -> bool:
    found = stored.get(key)
    return (
        found is not None
        and event_id in {None, found["id"]}
        and found["content"]["text"] == text_of(key)
    )


async def audit(address: Address, ledger: Ledger, *, fully: bool = False) -> Audit:
    """Hold the log against the ledger: what came since the last good audit, or everything.

    Each write is looked up once, by its key and by its id; what was found before is only listed.
    """
    fresh = {key: found for key, found in ledger.acked.items() if key not in ledger.audited}
    missing = set(await find_all(address, fresh))
    if fully:
        ledger.audited, ledger.audited_to = set(), 0
    events = await list_events(address, after=ledger.audited_to)
    stored = {event["idempotency_key"]: event for event in events}
    offsets = {event["wal_offset"] for event in events}
    wanted = {key: found for key, found in ledger.acked.items() if key not in ledger.audited}
    missing |= {key for key, event_id in wanted.items() if not _is_there(stored, key, event_id)}
    asked_for = {key for post in ledger.unknown for key in post.keys} | set(ledger.acked)
    found = Audit(
        events=len(ledger.audited) + len(stored),
        lost=len(missing),
        duplicates=len(events) - len(stored) + len(ledger.audited & set(stored)),
        gaps=max(offsets, default=ledger.audited_to) - ledger.audited_to - len(offsets),
        strangers=len(set(stored) - asked_for),
    )
    if found.is_good:
        ledger.audited |= set(stored)
        ledger.audited_to = max(offsets, default=ledger.audited_to)
    return found


async def flush_views(address: Address) -> None:
    """Wait until every view has caught up with the log."""
    answer = await ask(address, "POST", "/v1/admin/flush-views?wait_ms=60000", b"{}")
    assert answer.status == 200, answer
    assert not answer.json().get("_partial"), answer
