"""What if the disk says no?  The first failed write or sync is the last, until someone looks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

from schemas import limits
from tests.faults.client import Client, ask
from tests.faults.ledger import Ledger, audit, bulk, list_events, settle, single, write_posts
from tests.faults.power import Disk
from tests.faults.server import Server, strata

WRITER_COUNT = 8
WAIT_S_MAX = 120.0
POSTS_OF_ALL_KEYS = limits.VAULT_SLOTS_AHEAD // limits.BULK_ITEMS_MAX + 2


def wait_for(happens: Callable[[], bool]) -> None:
    """Come back when it has happened."""
    deadline = monotonic() + WAIT_S_MAX
    while not happens():
        assert monotonic() < deadline, "it never happened"
        sleep(0.01)


async def write_through_failure(server: Server, ledger: Ledger, rng: Random, switch: Path) -> None:
    """Write, break the disk, and go on asking after the first refusal."""
    writers = [
        asyncio.create_task(write_posts(server.address, ledger, f"w{at}", rng, refusals_max=5))
        for at in range(WRITER_COUNT)
    ]
    await asyncio.sleep(0.1)
    while not ledger.acked:  # noqa: ASYNC110 - on a busy machine the first answer takes longer
        await asyncio.sleep(0.01)
    await asyncio.to_thread(switch.touch)
    await asyncio.gather(*writers)


async def look_around(server: Server, ledger: Ledger) -> list[str]:
    """Reads go on, health is red; the reasons it gives."""
    async with Client(server.address) as client:
        key = next(iter(ledger.acked))
        found = await client.ask("GET", f"/v1/experience/by-idempotency-key/{key}")
        assert 200 == found.status, found
        health = await client.ask("GET", "/v1/admin/health")
        ready = await client.ask("GET", "/v1/admin/ready")
    assert (503, 503) == (health.status, ready.status), health
    assert "unready" == health.json()["status"]
    return health.json()["reasons"]


def fail_and_recover(
    disk: Disk, ledger: Ledger, rng: Random, rule: dict[str, str]
) -> tuple[list[str], int]:
    """Run into an error, cut the power, come back: the reasons given, and unacked posts kept."""
    switch = disk.folder.parent / "switch"
    broken = disk.settings(rule | {"FAULT_SWITCH": str(switch)})
    with Server(disk.folder, settings=broken) as server:
        asyncio.run(write_through_failure(server, ledger, rng, switch))
        reasons = asyncio.run(look_around(server, ledger))
        assert server.is_running()
    switch.unlink()
    disk.cut(rng, names="ordered", torn=False)
    with Server(disk.folder, settings=disk.settings()) as server:
        found = asyncio.run(audit(server.address, ledger))
        assert found.is_good, found
        kept = asyncio.run(settle(server.address, ledger))
        found = asyncio.run(audit(server.address, ledger))
        assert found.is_good, found
    return reasons, kept


WAL = {"FAULT_MATCH": "/store/", "FAULT_SUFFIX": ".log", "FAULT_ERRNO": "5"}
EIO_CASES = [
    pytest.param({"FAULT_CALL": "sync", "FAULT_TIMES": "1"}, id="one fsync"),
    pytest.param({"FAULT_CALL": "sync", "FAULT_TIMES": "0"}, id="every fsync"),
    pytest.param({"FAULT_CALL": "write", "FAULT_TIMES": "1"}, id="one write"),
]


@pytest.mark.parametrize("rule", EIO_CASES)
def test_eio_on_the_log(tmp_path: Path, shim: Path, trial, rule):
    """An error of the disk stops writes for good: 503, no later ack, red health, nothing lost."""
    rng = trial.random()
    acked = late = kept = 0
    round_count = trial.count(2)
    for number in range(round_count):
        disk, ledger = Disk(tmp_path / f"data{number}", shim), Ledger()
        at = {"FAULT_AT": str(rng.randint(1, 8))}
        reasons, stored = fail_and_recover(disk, ledger, rng, WAL | rule | at)
        acked += len(ledger.acked) - ledger.settled
        late += ledger.acked_late
        kept += stored

        assert {(503, "WAL_UNAVAILABLE")} == set(ledger.refused)
        assert all("retry-after" in answer.headers for answer in ledger.refusals)
        assert any(reason.startswith("log: ") for reason in reasons), reasons
        assert 0 == late
    code, _, error = strata("verify", "--replay", "--data", tmp_path / "data0")
    assert 0 == code, error
    trial.say(
        rounds=round_count, acked=acked, acked_after_the_error=late, unacked_but_stored=kept, lost=0
    )


@pytest.mark.parametrize("call", ["sync", "write"])
def test_eio_on_the_vault_at_the_first_post(tmp_path: Path, shim: Path, call):
    """A key that cannot be kept is the disk's fault, not a bug: 503, and nothing is stored."""
    disk = Disk(tmp_path / "data", shim)
    switch = tmp_path / "switch"
    rule = {"FAULT_CALL": call, "FAULT_MATCH": "/vault/", "FAULT_SUFFIX": ".log"}
    post = single("w-1")
    with Server(
        disk.folder, settings=disk.settings(rule | {"FAULT_SWITCH": str(switch)})
    ) as server:
        switch.touch()
        first = asyncio.run(ask(server.address, "POST", post.path, post.body))
        again = asyncio.run(ask(server.address, "POST", post.path, post.body))
        health = asyncio.run(ask(server.address, "GET", "/v1/admin/health"))

    assert (503, "WAL_UNAVAILABLE") == (first.status, first.code)
    assert (503, "WAL_UNAVAILABLE") == (again.status, again.code)
    assert 503 == health.status


@pytest.mark.parametrize("call", ["sync", "write"])
def test_eio_on_the_anchors(tmp_path: Path, shim: Path, trial, call):
    """A store that cannot be vouched for takes no more writes; what it has comes back."""
    disk, ledger = Disk(tmp_path / "data", shim), Ledger()
    rule = {"FAULT_CALL": call, "FAULT_MATCH": "/anchors", "FAULT_SUFFIX": ".log"}
    reasons, kept = fail_and_recover(disk, ledger, trial.random(), rule)
    trial.say(acked=len(ledger.acked) - ledger.settled, unacked_but_stored=kept, lost=0)

    assert {(503, "WAL_UNAVAILABLE")} == set(ledger.refused)
    assert 0 == ledger.acked_late
    assert any("chore" in reason for reason in reasons), reasons


def test_short_write_of_an_anchor(tmp_path: Path, shim: Path):
    """Half an anchor is not continued by the next one: the directory opens, all of it there."""
    disk, ledger = Disk(tmp_path / "data", shim), Ledger()
    rule = {"FAULT_CALL": "short", "FAULT_MATCH": "/anchors", "FAULT_TIMES": "1"}

    async def write_a_little(server: Server, name: str) -> None:
        async with Client(server.address) as client:
            for number in range(5):
                post = single(f"{name}-{number}")
                ledger.note(post, await client.ask("POST", post.path, post.body))

    anchors = disk.folder / "anchors.log"
    with Server(disk.folder, settings=disk.settings(rule)) as server:
        asyncio.run(write_a_little(server, "a"))
        wait_for(lambda: anchors.exists() and anchors.stat().st_size > 0)
        asyncio.run(write_a_little(server, "b"))
        server.terminate()
    with Server(disk.folder) as server:
        asyncio.run(settle(server.address, ledger))
        found = asyncio.run(audit(server.address, ledger))

    assert set(ledger.refused) <= {(503, "WAL_UNAVAILABLE")}
    assert found.is_good, found


def test_slow_vault(tmp_path: Path, shim: Path, trial):
    """Writes wait for keys that are slow to become durable: nothing fails, nothing is lost."""
    disk, ledger = Disk(tmp_path / "data", shim), Ledger()
    switch = tmp_path / "switch"
    rule = {"FAULT_CALL": "sync", "FAULT_MATCH": "/vault/", "FAULT_SLOW_MS": "400"}

    async def write_much(server: Server) -> None:
        async def post(name: int) -> None:
            many = bulk(f"much{name}-{number}" for number in range(limits.BULK_ITEMS_MAX))
            async with Client(server.address) as client:
                ledger.note(many, await client.ask("POST", many.path, many.body))

        await asyncio.gather(*(post(name) for name in range(POSTS_OF_ALL_KEYS)))

    with Server(
        disk.folder, settings=disk.settings(rule | {"FAULT_SWITCH": str(switch)})
    ) as server:
        switch.touch()
        asyncio.run(write_much(server))
        events = asyncio.run(list_events(server.address))
    disk.cut(trial.random(), names="ordered", torn=False)
    code, report, error = strata("verify", "--json", "--data", disk.folder)
    trial.say(acked=len(ledger.acked), stored=len(events), refused=len(ledger.refusals))

    assert not ledger.refused
    assert len(ledger.acked) == len(events)
    assert 0 == code, error
    assert len(ledger.acked) == json.loads(report)["log"]["entries"]
