"""What if the process that folds beside the server dies, or the server under it?"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.faults.client import Client
from tests.faults.ledger import flush_views
from tests.faults.server import Server, strata

# A process that is worth its while sooner, and that can be caught at work.
SOONER = "from schemas import limits; limits.FOLD_BESIDE_ENTRIES = 60; limits.FOLD_ENTRIES = 4"
PATIENCE_S = 120.0
BACKLOG = 900
LOOKS = 300
LATER = 1_000_000
"""Where the numbers of the second backlog begin."""


async def post(server: Server, first: int, count: int) -> None:
    """So many events in one call."""
    items = [
        {
            "scope": "org:acme/user:alice",
            "modality": "conversation",
            "content": {"kind": "text", "text": f"On day {at} I moved to city {at % 7}."},
            "context": {"observed_at": "2026-05-13T10:00:00Z"},
            "idempotency_key": f"day-{at}",
        }
        for at in range(first, first + count)
    ]
    async with Client(server.address) as client:
        body = json.dumps({"items": items}).encode()
        answer = await client.ask("POST", "/v1/experience/bulk", body)
        assert 202 == answer.status, answer


async def one_at_work(server: Server, first: int, before: int | None = None) -> int:
    """The id of a process that has begun to fold, other than that of before.

    On a busy machine the server may have folded what there is before the process is there: then
    there is more.
    """
    async with asyncio.timeout(PATIENCE_S):
        for at in itertools.count(first, BACKLOG):
            await post(server, at, BACKLOG)
            for _ in range(LOOKS):
                found = [int(place.name) for place in (server.folder / "fold").glob("*")]
                if found and found[0] != before:
                    return found[0]
                await asyncio.sleep(0.01)
    raise AssertionError("it counts for ever")


def is_still(stat: Path) -> bool:
    """Whether the system has a process stopped."""
    return "T" == stat.read_text().rpartition(") ")[2][0]


async def keep_posting(server: Server) -> None:
    """A backlog again and again, and single posts beside it, until it is cancelled."""
    for first in itertools.count(2 * LATER, BACKLOG):
        await post(server, first, BACKLOG - 100)
        for at in range(first + BACKLOG - 100, first + BACKLOG):
            await post(server, at, 1)


def wait_for_the_end(pid: int) -> None:
    """Until a process is gone."""
    until = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, f"{pid} is still there"
        time.sleep(0.01)


def test_kill_9_of_the_folding_process_and_of_the_server_under_it(tmp_path: Path):
    """Either may die at its work: nothing is lost, nothing is left, and replay gives the same."""
    server = Server(tmp_path / "data", before=SOONER)

    async def run() -> int:
        first = await one_at_work(server, 0)
        os.kill(first, signal.SIGKILL)
        second = await one_at_work(server, LATER, first)
        if sys.platform == "linux":
            os.kill(second, signal.SIGSTOP)  # as while somebody is being answered
        server.kill()
        await asyncio.to_thread(wait_for_the_end, second)
        server.start()
        await flush_views(server.address)
        async with Client(server.address) as client:
            health = (await client.ask("GET", "/v1/admin/health")).json()
        assert 0 == health["lag_entries"], health
        return int(health["head_offset"])

    with server:
        head = asyncio.run(run())
        assert 0 == server.terminate()
    code, report, error = strata("verify", "--replay", "--json", "--data", tmp_path / "data")

    assert 0 == code, error
    assert head <= json.loads(report)["log"]["entries"]
    assert not list((tmp_path / "data" / "fold").glob("*"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is kept still")
def test_while_somebody_is_answered_it_is_kept_still(tmp_path: Path):
    """Who posts beside a backlog has the cores; the backlog is folded all the same (ADR 0053)."""
    server = Server(tmp_path / "data", before=SOONER)

    async def run() -> int:
        pid = await one_at_work(server, 0)
        stat = Path(f"/proc/{pid}/stat")
        posting = asyncio.create_task(keep_posting(server))
        async with asyncio.timeout(PATIENCE_S):
            while not is_still(stat):
                assert not posting.done(), posting
                await asyncio.sleep(0)
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        await flush_views(server.address)
        async with Client(server.address) as client:
            health = (await client.ask("GET", "/v1/admin/health")).json()
        return int(health["lag_entries"])

    with server:
        assert 0 == asyncio.run(run())
        assert 0 == server.terminate()
