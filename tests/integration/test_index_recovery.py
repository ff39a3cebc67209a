"""What do the indexes hold after a server was killed under load?  Every event, once."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from pathlib import Path
from random import Random

from engine.engine import open_engine
from engine.settings import Settings
from engine.state.names import SCOPE, TENANT
from tests.faults.client import Client
from tests.faults.ledger import Ledger, flush_views, settle, write_posts
from tests.faults.server import Server

WRITER_COUNT = 6
PATIENCE_S = 240.0


async def write_and_kill(server: Server, ledger: Ledger, rng: Random, round_no: int) -> None:
    """Let writers loose, and kill the server while its indexes follow."""
    writers = [
        asyncio.create_task(write_posts(server.address, ledger, f"r{round_no}w{at}", rng))
        for at in range(WRITER_COUNT)
    ]
    await asyncio.sleep(rng.uniform(0.1, 0.5))
    server.kill()
    await asyncio.gather(*writers)


async def indexed(folder: Path) -> tuple[Counter[bytes], Counter[bytes], dict[bytes, str]]:
    """(events found by words, events found by meaning, events of the log with their texts)."""
    settings = Settings(data=folder, ballast_mb=0, disk_low_water_mb=1)
    words: Counter[bytes] = Counter()
    vectors: Counter[bytes] = Counter()
    async with open_engine(settings) as engine:
        assert await engine.lifecycle.wait("indexed", engine.log.head(), PATIENCE_S)
        assert engine.indexer.health().building is None
        tenant_no = engine.names.known(TENANT, 0, "local")
        logged = {
            row.header.id: engine.entry_of(row).envelope.content.text
            for row in engine.log.read(1, engine.log.head())
            if row.header.kind == 1
        }
        for scope_no, _ in engine.names.all(SCOPE, tenant_no):
            block = engine.vectors.block(tenant_no, scope_no, "events")
            vectors.update([] if block is None else block.raws)
            for raw in [] if block is None else block.raws:
                key = logged[raw].split()[0]
                found = engine.text.search(
                    tenant_no, [scope_no], key, layers=["events"], limit=1000
                )
                words.update(raw for _, _, raw, _ in found if logged[raw].split()[0] == key)
    return words, vectors, logged


def test_kill_9_under_load_leaves_no_event_out(tmp_path: Path, trial):
    """Killed at any instant, the indexes come to hold every event of the log exactly once."""
    rng = trial.random()
    ledger = Ledger()
    server = Server(tmp_path / "data")
    round_count = trial.count(2)
    lags: list[int] = []

    async def run() -> None:
        for round_no in range(5 * round_count):
            if round_no >= round_count and any(lags):
                break  # enough rounds, and the indexes were caught behind
            await write_and_kill(server, ledger, rng, round_no)
            server.start()
            async with Client(server.address) as client:
                health = (await client.ask("GET", "/v1/admin/health")).json()
                lags.append(health["index"]["lag_entries"])
            await settle(server.address, ledger)
        await flush_views(server.address)

    with server:
        asyncio.run(run())
        server.terminate()
    words, vectors, logged = asyncio.run(indexed(tmp_path / "data"))
    trial.say(rounds=len(lags), events=len(logged), behind_after_start=lags)

    assert any(lags), "the indexes were never caught behind"
    assert dict.fromkeys(logged, 1) == vectors
    assert dict.fromkeys(logged, 1) == words


def test_killed_while_a_generation_is_built(tmp_path: Path, trial):
    """A build that is killed goes on or begins again, and ends with every event."""
    rng = trial.random()
    ledger = Ledger()
    server = Server(tmp_path / "data")

    async def run() -> None:
        await write_and_kill(server, ledger, rng, 0)
        for _ in range(trial.count(2)):
            shutil.rmtree(tmp_path / "data" / "index", ignore_errors=True)
            server.launch()
            await asyncio.sleep(rng.uniform(0.6, 1.6))
            server.kill()
        server.start()
        await settle(server.address, ledger)
        await flush_views(server.address)

    with server:
        asyncio.run(run())
        server.terminate()
    words, vectors, logged = asyncio.run(indexed(tmp_path / "data"))
    trial.say(events=len(logged))

    assert dict.fromkeys(logged, 1) == vectors == words
