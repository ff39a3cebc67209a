"""What if there is no room?  Writes stop before the store is stuck, and go on when there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.faults.client import Client, ask
from tests.faults.ledger import Ledger, audit, settle, single, write_posts
from tests.faults.mounts import MIB, NoMount, SmallDisk, small_disk
from tests.faults.server import Server, strata

DISK_MB = 22
ENOUGH_MB = 128
LOW_WATER_MB = 10
BALLAST_MB = 3
LOG_MB = 5
TRIES_MAX = 2000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk to fill."""
    try:
        with small_disk(tmp_path / "disk", DISK_MB) as mounted:
            yield mounted
    except NoMount as error:
        pytest.skip(f"no small disk to fill: {error}")


def server_on(disk: SmallDisk, low_water_mb: int) -> Server:
    """A server with settings in proportion to the disk."""
    settings = {
        "CORTEX_BALLAST_MB": str(BALLAST_MB),
        "CORTEX_DISK_LOW_WATER_MB": str(low_water_mb),
    }
    return Server(disk.path / "data", settings=settings)


async def fill_to(disk: SmallDisk, server: Server, ledger: Ledger, free_mb: int) -> None:
    """Post noise until so much room is left."""
    async with Client(server.address) as client:
        for number in count():
            if disk.free_bytes() < free_mb * MIB:
                return
            post = single(f"big-{number}")
            ledger.note(post, await client.ask("POST", post.path, post.body))
            assert not ledger.refused, ledger.refusals


async def post_until(server: Server, ledger: Ledger, *, status: int, name: str) -> None:
    """Post small things until the answer is this one; the disk is looked at about once a second."""
    async with Client(server.address) as client:
        for number in range(TRIES_MAX):
            post = single(f"{name}-{number}")
            answer = await client.ask("POST", post.path, post.body)
            ledger.note(post, answer)
            if answer.status == status:
                return
            await asyncio.sleep(0.005)
    raise AssertionError(f"never answered {status}: {ledger.refused}, {len(ledger.acked)} acked")


def test_low_water(disk: SmallDisk, trial):
    """Below the mark writes get 503 and reads go on; with room again, so do writes: no restart."""
    ledger = Ledger()
    with server_on(disk, LOW_WATER_MB) as server:
        disk.fill(leave_bytes=(LOW_WATER_MB + 1) * MIB)
        asyncio.run(fill_to(disk, server, ledger, LOW_WATER_MB))
        asyncio.run(post_until(server, ledger, status=503, name="full"))
        found = asyncio.run(audit(server.address, ledger))
        health = asyncio.run(ask(server.address, "GET", "/v1/admin/health"))
        before = len(ledger.acked)
        disk.grow(ENOUGH_MB)
        asyncio.run(post_until(server, ledger, status=202, name="room"))
        asyncio.run(settle(server.address, ledger))
        again = asyncio.run(audit(server.address, ledger, fully=True))
        assert 0 == server.terminate()
    trial.say(acked=before, acked_after_growth=len(ledger.acked) - before, lost=again.lost)

    assert {(503, "WAL_UNAVAILABLE")} == set(ledger.refused)
    assert all("retry-after" in answer.headers for answer in ledger.refusals)
    assert 503 == health.status
    assert ["disk: the disk is nearly full"] == health.json()["reasons"]
    assert found.is_good, found
    assert again.is_good, again


def test_restart_below_the_mark(disk: SmallDisk, trial):
    """A server that stopped for want of room starts again with the ballast's, and serves reads."""
    ledger = Ledger()
    with server_on(disk, LOW_WATER_MB) as server:
        ballast = server.folder / "ballast"
        # To open, the store writes what its log holds once more: the mark leaves room for that
        # where the log's limit is half of it, as it is by default, not where it fills the disk.
        disk.fill(leave_bytes=(LOW_WATER_MB + LOG_MB) * MIB)
        asyncio.run(fill_to(disk, server, ledger, LOW_WATER_MB))
        asyncio.run(post_until(server, ledger, status=503, name="full"))
        assert ballast.exists()
        server.kill()
        server.start()
        assert not ballast.exists()
        found = asyncio.run(audit(server.address, ledger))
        disk.grow(ENOUGH_MB)
        asyncio.run(post_until(server, ledger, status=202, name="room"))
        asyncio.run(settle(server.address, ledger))
        again = asyncio.run(audit(server.address, ledger, fully=True))
        assert 0 == server.terminate()
    trial.say(acked=len(ledger.acked), lost=again.lost)

    assert {(503, "WAL_UNAVAILABLE")} == set(ledger.refused)
    assert found.is_good, found
    assert again.is_good, again


def test_no_space_left(disk: SmallDisk, trial):
    """A store that runs into the end stops for good; with room and a restart, all is there."""
    rng, ledger = trial.random(), Ledger()
    with server_on(disk, 0) as server:
        ballast = server.folder / "ballast"
        hog = disk.fill(leave_bytes=1 * MIB)

        async def run() -> None:
            names = (f"big{at}" for at in range(6))
            await asyncio.gather(
                *(write_posts(server.address, ledger, n, rng, refusals_max=5) for n in names)
            )

        asyncio.run(run())
        assert server.is_running()
        health = asyncio.run(ask(server.address, "GET", "/v1/admin/health"))
        code = server.terminate()
        assert ballast.exists()
        server.start()
        assert not ballast.exists()
        still_full = asyncio.run(audit(server.address, ledger))
        server.kill()
        hog.unlink()
        disk.grow(ENOUGH_MB)
        server.start()
        kept = asyncio.run(settle(server.address, ledger))
        found = asyncio.run(audit(server.address, ledger, fully=True))
    trial.say(
        acked=len(ledger.acked) - ledger.settled,
        acked_after_the_error=ledger.acked_late,
        unacked_but_stored=kept,
        exit_code=code,
        lost=found.lost,
    )
    verified, _, error = strata("verify", "--data", disk.path / "data")

    assert {(503, "WAL_UNAVAILABLE")} == set(ledger.refused)
    assert 503 == health.status
    assert 0 == ledger.acked_late
    assert still_full.is_good, still_full
    assert found.is_good, found
    assert 0 == verified, error
