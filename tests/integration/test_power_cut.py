"""What does a power cut leave?  Everything acknowledged, unless it was told to be careless."""

from __future__ import annotations

import asyncio
import json
from itertools import cycle, islice, product
from pathlib import Path
from random import Random

import pytest

from tests.faults.client import ask
from tests.faults.ledger import Ledger, audit, list_events, settle, write_posts
from tests.faults.power import Disk
from tests.faults.server import Server, strata

# Many rounds: on a busy machine they take longer than a test usually may.
pytestmark = pytest.mark.timeout(900)
WRITER_COUNT = 8
MODES = list(product(("ordered", "strict"), (False, True)))


async def write_and_cut_off(server: Server, ledger: Ledger, rng: Random, name: str) -> None:
    """Let writers loose and stop the machine under them."""
    writers = [
        asyncio.create_task(write_posts(server.address, ledger, f"{name}w{at}", rng))
        for at in range(WRITER_COUNT)
    ]
    await asyncio.sleep(rng.uniform(0.02, 0.4))
    server.kill()
    await asyncio.gather(*writers)


def verified_entries(folder: Path, *flags: str) -> int:
    """How many entries a whole log has; the log must be whole."""
    code, report, error = strata("verify", "--json", "--data", folder, *flags)
    assert 0 == code, error
    return json.loads(report)["log"]["entries"]


def after_the_cut(folder: Path) -> int:
    """How many entries are left.

    Garbage in the place of a whole record might be a bad disk's: then it is refused, and whoever
    knows of the cut has it cut off. What was acknowledged is never among it.
    """
    code, _, error = strata("verify", "--json", "--data", folder)
    if code:
        assert "strata mend" in error, error
        code, _, error = strata("mend", "--cut", "--data", folder)
        assert 0 == code, error
    return verified_entries(folder)


@pytest.mark.parametrize("is_new", [True, False], ids=["new directory", "old directory"])
def test_power_cut(tmp_path: Path, shim: Path, trial, is_new):
    """Acknowledged means on the disk: after a cut nothing of it is lost, and there is no gap."""
    rng = trial.random()
    cut_count = trial.count(8) // 2 or 1
    acked = bytes_lost = kept = 0
    disk, ledger = Disk(tmp_path / "data", shim), Ledger()
    for number, (names, torn) in enumerate(islice(cycle(MODES), 3 * cut_count)):
        if number >= cut_count and bytes_lost:
            break  # enough cuts, and they took something
        if is_new:
            disk, ledger = Disk(tmp_path / f"data{number}", shim), Ledger()
        server = Server(disk.folder, settings=disk.settings())
        with server:
            asyncio.run(write_and_cut_off(server, ledger, rng, f"c{number}"))
        bytes_lost += disk.cut(rng, names=names, torn=torn).bytes_lost
        after_the_cut(disk.folder)
        with server:
            found = asyncio.run(audit(server.address, ledger))
            assert found.is_good, (number, names, torn, found)
            kept += asyncio.run(settle(server.address, ledger))
            found = asyncio.run(audit(server.address, ledger))
            assert found.is_good, (number, names, torn, found)
        acked += len(ledger.acked) if is_new else 0
        disk.on()
    acked = acked or len(ledger.acked)
    assert len(ledger.acked) == verified_entries(disk.folder, "--replay")
    trial.say(cuts=number, acked=acked, unsynced_bytes_lost=bytes_lost, lost=0, duplicates=0)

    assert bytes_lost, "the simulation took nothing: it proves nothing"


def test_power_cut_with_buffered_durability(tmp_path: Path, shim: Path, trial):
    """Without fsync before the answer some is lost: the simulation sees it, and no hole is left."""
    rng = trial.random()
    cut_count = trial.count(8) // 2 or 1
    acked = lost = 0
    for number, (names, torn) in enumerate(islice(cycle(MODES), 3 * cut_count)):
        if number >= cut_count and lost:
            break  # enough cuts, and they took something
        disk, ledger = Disk(tmp_path / f"data{number}", shim), Ledger()
        buffered = disk.settings({"CORTEX_DURABILITY": "buffered"})
        server = Server(disk.folder, settings=buffered)
        with server:
            asyncio.run(write_and_cut_off(server, ledger, rng, f"c{number}"))
        disk.cut(rng, names=names, torn=torn)
        entries = after_the_cut(disk.folder)
        with server:
            events = asyncio.run(list_events(server.address))
            health = asyncio.run(ask(server.address, "GET", "/v1/admin/health")).json()
        stored = {event["idempotency_key"] for event in events}
        acked += len(ledger.acked)
        lost += len(set(ledger.acked) - stored)

        assert "buffered" == health["durability"]
        assert entries == len(events) == max((e["wal_offset"] for e in events), default=0)
    trial.say(cuts=number, acked=acked, lost=lost)

    assert lost, "nothing was lost without fsync: the simulation is blind"


def test_garbage_in_the_place_of_a_record(tmp_path: Path):
    """It is refused with the way on; cut off, all that was acknowledged is there."""
    data = tmp_path / "data"
    code, _, error = strata("remember", "--data", data, "The power went on Tuesday")
    assert 0 == code, error
    log = max((data / "store").glob("*.log"))
    before = log.read_bytes()
    length, full = 300, 1
    header = b"\0" * 4 + length.to_bytes(2, "little") + bytes([full])
    log.write_bytes(before + header + b"\xa5" * length)

    code, _, error = strata("verify", "--data", data)
    assert 1 == code
    assert "strata mend" in error
    code, shown, error = strata("mend", "--json", "--data", data)
    assert 0 == code, error
    tail = {"file": str(log), "offset": len(before), "bytes": len(header) + length}
    assert [tail] == json.loads(shown)
    assert log.read_bytes() != before
    code, said, error = strata("mend", "--cut", "--data", data)
    assert 0 == code, error
    assert "cut off" in said
    assert log.read_bytes() == before
    assert 1 == verified_entries(data)
