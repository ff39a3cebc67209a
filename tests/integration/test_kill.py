"""What does a server keep that is killed at any instant?  Everything it acknowledged, once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.faults.client import Client
from tests.faults.ledger import Ledger, audit, flush_views, settle, write_posts
from tests.faults.server import Server, strata

# Many rounds: on a busy machine they take longer than a test usually may.
pytestmark = pytest.mark.timeout(900)
WRITER_COUNT = 10
STAGES = {"captured", "extracted", "indexed", "consolidated"}


async def write_and_kill(server: Server, ledger: Ledger, rng: Random, round_no: int) -> None:
    """Let many writers loose, and kill the server under them."""
    writers = [
        asyncio.create_task(write_posts(server.address, ledger, f"r{round_no}w{at}", rng))
        for at in range(WRITER_COUNT)
    ]
    await asyncio.sleep(rng.uniform(0.02, 0.2))
    server.kill()
    await asyncio.gather(*writers)


async def killed_again(server: Server, rng: Random) -> None:
    """Now and then a server is killed while it recovers, too."""
    server.launch()
    await asyncio.sleep(rng.uniform(0.2, 0.7))
    server.kill()


def test_kill_9_under_load(tmp_path: Path, trial):
    """What was acknowledged survives SIGKILL, by key and by id; a retry stores nothing twice."""
    rng = trial.random()
    ledger = Ledger()
    server = Server(tmp_path / "data")
    round_count = trial.count(20)
    kept = 0

    async def run() -> None:
        nonlocal kept
        for round_no in range(round_count):
            await write_and_kill(server, ledger, rng, round_no)
            if rng.random() < 0.2:
                await killed_again(server, rng)
            server.start()
            found = await audit(server.address, ledger)
            assert found.is_good, (round_no, found)
            kept += await settle(server.address, ledger)
        found = await audit(server.address, ledger, fully=True)
        trial.say(
            rounds=round_count,
            acked=len(ledger.acked) - ledger.settled,
            retried=ledger.settled,
            unacked_but_stored_posts=kept,
            lost=found.lost,
            duplicates=found.duplicates,
            gaps=found.gaps,
        )
        assert found.is_good, found
        assert len(ledger.acked) == found.events

    with server:
        asyncio.run(run())
    code, report, error = strata("verify", "--replay", "--json", "--data", tmp_path / "data")

    assert 0 == code, error
    assert len(ledger.acked) == json.loads(report)["log"]["entries"]


async def read_lifecycle(server: Server) -> list[dict]:
    """Every announcement of the buffer."""
    rows: list[dict] = []
    async with Client(server.address) as client:
        cursor = ""
        while True:
            answer = await client.ask("GET", f"/v1/lifecycle?limit=1000{cursor}")
            assert 200 == answer.status, answer
            page = answer.json()
            rows += page["items"]
            if not page["has_more"]:
                return rows
            cursor = f"&cursor={page['next_cursor']}"


def entries_behind(folder: Path) -> int:
    """How much of the log the daemon had not carried when the server died."""
    code, listed, error = strata("projectors", "list", "--json", "--data", folder)
    assert 0 == code, error
    return max(item["lag_entries"] for item in json.loads(listed)["items"])


def test_kill_9_while_the_daemon_works(tmp_path: Path, trial):
    """After a kill every event still reaches `consolidated`, and no stage is announced twice."""
    rng = trial.random()
    ledger = Ledger()
    server = Server(tmp_path / "data")
    round_count = trial.count(4)
    lags: list[int] = []

    async def run() -> list[dict]:
        for round_no in range(5 * round_count):
            if round_no >= round_count and any(lags):
                break  # enough rounds, and the daemon was caught at work
            await write_and_kill(server, ledger, rng, round_no)
            lags.append(entries_behind(server.folder))
            server.start()
            await settle(server.address, ledger)
        await flush_views(server.address)
        async with Client(server.address) as client:
            for key in rng.sample(sorted(ledger.acked), min(200, len(ledger.acked))):
                status = await client.ask("GET", f"/v1/experience/by-idempotency-key/{key}")
                assert "consolidated" == status.json()["status"], status
        return await read_lifecycle(server)

    with server:
        rows = asyncio.run(run())
    announced = Counter((row["event_id"], row["stage"]) for row in rows)
    stages: dict[str, set[str]] = {}
    for event_id, stage in announced:
        stages.setdefault(event_id, set()).add(stage)
    repeated = sum(1 for times in announced.values() if times > 1)
    unfinished = sum(1 for found in stages.values() if found != STAGES)
    trial.say(
        rounds=len(lags),
        acked=len(ledger.acked),
        entries_behind_at_kill=lags,
        repeated=repeated,
        unfinished=unfinished,
    )

    assert any(lags), "the daemon was never caught at work"
    assert len(ledger.acked) == len(stages)
    assert (0, 0) == (repeated, unfinished)
