"""When the disk lies, who notices?  One flipped bit is refused by name, or it did no harm."""

from __future__ import annotations

import asyncio
import json
import re
import selectors
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import pytest

from tests.faults.client import Client
from tests.faults.ledger import Ledger, bulk, flush_views, single
from tests.faults.server import ROOT, Refused, Server, environment, strata

EVENT_COUNT = 240
WAIT_S_MAX = 120.0
HALF = "half-bytes"
"""Beside the data, how long the log was when half of the events were in it."""
NAMED = re.compile(r"\.log|\.sst|MANIFEST|anchors|entry \d+|entries|key of|family")
"""What a refusal must say: a file, an entry, or what of it is gone."""

KINDS = [
    ("logged", "store/*.log"),
    ("logged", "vault/*.log"),
    ("logged", "anchors.log"),
    ("tabled", "store/*.sst"),
    ("tabled", "vault/*.sst"),
    ("tabled", "store/MANIFEST-*"),
    ("tabled", "vault/MANIFEST-*"),
]


def log_of(folder: Path) -> Path:
    """Where RocksDB has written it all."""
    return max((folder / "store").glob("*.log"), key=lambda path: path.stat().st_size)


async def fill(server: Server) -> int:
    """Some events, one by one and in bulk, through every stage; the size of the log at half."""
    ledger = Ledger()
    half_bytes = 0
    async with Client(server.address) as client:
        for number in range(EVENT_COUNT // 4):
            if number == EVENT_COUNT // 8:
                half_bytes = log_of(server.folder).stat().st_size
            posts = [single(f"one-{number}"), bulk(f"many-{number}-{at}" for at in range(3))]
            for post in posts:
                assert ledger.note(post, await client.ask("POST", post.path, post.body))
    assert EVENT_COUNT == len(ledger.acked)
    await flush_views(server.address)
    return half_bytes


def wait_for_anchor(folder: Path) -> None:
    """Come back when a signed anchor vouches for everything."""
    deadline = monotonic() + WAIT_S_MAX
    while not re.search(rf" {EVENT_COUNT} ", (folder / "anchors.log").read_text().split("\n")[-2]):
        assert monotonic() < deadline, "no anchor came"
        sleep(0.05)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a killed server leaves: all of it in RocksDB's logs, none in tables."""
    folder = tmp_path_factory.mktemp("logged") / "data"
    with Server(folder) as server:
        half_bytes = asyncio.run(fill(server))
        wait_for_anchor(folder)
    (folder.parent / HALF).write_text(str(half_bytes))
    assert not list((folder / "store").glob("*.sst"))
    return folder


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory, logged: Path) -> Path:
    """The same after a restart and a compaction: all of it in tables."""
    folder = tmp_path_factory.mktemp("tabled") / "data"
    shutil.copytree(logged, folder)
    with Server(folder) as server:

        async def compact() -> None:
            async with Client(server.address) as client:
                answer = await client.ask("POST", "/v1/admin/compact", b"{}")
                assert 200 == answer.status, answer

        asyncio.run(compact())
        assert 0 == server.terminate()
    return folder


class Examiner:
    """The process that looks at damaged directories; when one makes it crash, the next is fresh."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def look(self, folder: Path) -> dict[str, Any] | None:
        """What it says about a directory; None when it died of it, or never came to an end."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.examine"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment(),
                cwd=ROOT,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{folder}\n".encode())
        self._child.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            line = self._child.stdout.readline() if selector.select(WAIT_S_MAX) else b""
        if not line:
            self.close()
            return None
        return json.loads(line)

    def close(self) -> None:
        """Let it go."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    """One process for many looks."""
    made = Examiner()
    yield made
    made.close()


def flip(path: Path, rng: Random) -> str:
    """Change one bit; which one."""
    content = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(content)), rng.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"{path.parent.name}/{path.name} byte {at} of {len(content)} bit {bit}"


def judge(found: dict[str, Any], truth: dict[str, Any], where: str) -> str:
    """Refused by name, or all there; anything else is silent damage."""
    if "error" in found:
        assert NAMED.search(found["error"]), f"{where}: refused without a name: {found['error']}"
        return "refused"
    assert truth == found, f"{where}: silently different: {found}"
    return "harmless"


@pytest.mark.parametrize("kind", KINDS, ids=[pattern for _, pattern in KINDS])
def test_bit_flip(tmp_path: Path, request, examiner: Examiner, trial, kind):
    """One bit changed anywhere is refused with a file or entry named, or every entry is right."""
    rng = trial.random()
    state, pattern = kind
    source: Path = request.getfixturevalue(state)
    shutil.copytree(source, tmp_path / "whole")
    truth = examiner.look(tmp_path / "whole")
    assert truth is not None
    assert EVENT_COUNT == truth["verify"]["entries"]
    assert truth["verify"] == truth["open"]
    verdicts: Counter[str] = Counter()
    flip_count = trial.count(8)
    for number in range(flip_count):
        folder = tmp_path / f"flip{number}"
        shutil.copytree(source, folder)
        files = [path for path in folder.glob(pattern) if path.stat().st_size]
        weights = [path.stat().st_size for path in files]
        where = flip(rng.choices(files, weights)[0], rng)
        found = examiner.look(folder)
        assert found is not None, f"{where}: the engine crashed or hung"
        verdicts[f"verify_{judge(found['verify'], truth['verify'], where)}"] += 1
        verdicts[f"open_{judge(found['open'], truth['open'], where)}"] += 1
        shutil.rmtree(folder)
    trial.say(flips=flip_count, **dict(sorted(verdicts.items())), silent=0)


def test_log_cut_short_below_the_last_anchor(tmp_path: Path, logged: Path, trial):
    """A log that ends before its last anchor is refused at the start: so many entries are gone."""
    rng = trial.random()
    half_bytes = int((logged.parent / HALF).read_text())
    cut_count = trial.count(3)
    said: list[int] = []
    for number in range(cut_count):
        folder = tmp_path / f"data{number}"
        shutil.copytree(logged, folder)
        # What follows from events stands among them, and how much of it nobody knows.
        with log_of(folder).open("r+b") as file:
            file.truncate(int(half_bytes * rng.uniform(0.2, 1.0)))
        with pytest.raises(Refused) as refusal, Server(folder):
            pass
        found = re.search(r"(\d+) acknowledged entries are gone", str(refusal.value))
        assert found is not None, refusal.value
        said.append(int(found[1]))
        code, _, error = strata("verify", "--data", folder)
        assert 0 != code
        assert NAMED.search(error), error
    trial.say(cuts=cut_count, refused=len(said), entries_gone=said)

    assert all(EVENT_COUNT // 2 <= gone <= EVENT_COUNT for gone in said)
