"""What if the clock steps back?  What was recorded later still says so."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from tests.faults.server import ROOT, environment

HOUR_US = 3_600_000_000
START_US = 1_767_322_800_000_000
PER_RUN = 20

WRITER = """
import asyncio, json, sys
from pathlib import Path
from engine.capture import CaptureRequest, capture
from engine.clock import Clock
from engine.engine import open_engine
from engine.read import get_event
from engine.settings import Settings
from schemas.caller import Caller
from schemas.envelope import Envelope
import msgspec

folder, name, *instants = sys.argv[1:]
now = iter([int(instant) for instant in instants])
shown = int(instants[0])

def wall():
    return shown

async def main():
    global shown
    settings = Settings(data=Path(folder), ballast_mb=0, disk_low_water_mb=0)
    async with open_engine(settings, clock=Clock(wall)) as engine:
        caller = Caller(actor="user:local", tenant="local")
        for number, instant in enumerate(now):
            shown = instant
            envelope = msgspec.convert({
                "scope": "org:faults", "modality": "observation",
                "content": {"kind": "text", "text": "tick"},
                "context": {"observed_at": "2026-01-02T03:04:05Z"},
                "idempotency_key": f"{name}-{number}",
            }, Envelope)
            request = CaptureRequest(envelope=envelope, wait="consolidated")
            receipt = await capture(engine, caller, request)
            event = get_event(engine, caller, receipt.event_id)
            print(json.dumps([event.wal_offset, event.context.recorded_at.isoformat(), event.id]))

asyncio.run(main())
"""


def write(folder: Path, name: str, instants: list[int]) -> list[tuple[int, str, str]]:
    """Capture one event at each of these instants, in a process of its own."""
    child = subprocess.run(
        [sys.executable, "-c", WRITER, folder, name, *map(str, instants)],
        capture_output=True,
        env=environment(),
        cwd=ROOT,
        timeout=240,
        check=False,
    )
    assert 0 == child.returncode, child.stderr.decode()
    return [tuple(json.loads(line)) for line in child.stdout.splitlines()]


def test_clock_steps_back_in_a_run_and_over_a_restart(tmp_path: Path, trial):
    """`recorded_at` and ids strictly increase though the clock goes back, stands, or jumps."""
    forward = [START_US + number * 1000 for number in range(PER_RUN)]
    back = [instant - HOUR_US for instant in forward]
    standing = [START_US - 24 * HOUR_US] * PER_RUN
    ahead = [instant + 24 * HOUR_US for instant in forward]
    runs = {"a": forward + back, "b": standing, "c": ahead + forward}
    found = [row for name, instants in runs.items() for row in write(tmp_path, name, instants)]
    offsets, recorded, ids = zip(*found, strict=True)
    steps_back = sum(after <= before for before, after in pairwise(recorded))
    trial.say(
        events=len(found), restarts=len(runs) - 1, clock_steps_back=4, recorded_back=steps_back
    )

    assert tuple(range(1, len(found) + 1)) == offsets
    assert 0 == steps_back
    assert sorted(ids) == list(ids)
    assert len(ids) == len(set(ids))
