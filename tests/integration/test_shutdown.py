"""How does a server end that is asked to, with everyone still connected?"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import signal
from pathlib import Path
from time import monotonic

import pytest

from schemas import limits
from tests.faults.client import Client, Stream, Unanswered
from tests.faults.ledger import Ledger, audit, settle, write_posts
from tests.faults.server import Server

STREAM_COUNT = 1000
BUSY_COUNT = 50
STUBBORN_COUNT = 50
WRITER_COUNT = 8
FILES_WANTED = 2 * STREAM_COUNT + 500
WAIT_S_MAX = 120.0
MARGIN_S = 20.0
"""The bound is the server's; the interpreter and a busy machine take a little more."""


@pytest.fixture
def many_files() -> None:
    """Let this process, and the server it starts, hold a socket for every stream."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES_WANTED:
        if hard != resource.RLIM_INFINITY and hard < FILES_WANTED:
            pytest.skip(f"at most {hard} open files are allowed here; {FILES_WANTED} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_WANTED, hard))


async def listen(server: Server, at: int) -> int:
    """Hear a stream to its end, some again and again; how many events came."""
    query = "" if at < BUSY_COUNT else "?scope=org:quiet"
    heard = 0
    try:
        while True:
            stream = await Stream.open(server.address, query=query)
            heard += sum([1 async for _ in stream.frames()])
            stream.close()
            if at < STREAM_COUNT - STUBBORN_COUNT:
                return heard
    except Unanswered:
        return heard


async def wait_for_streams(server: Server) -> None:
    """Come back when the server has subscribed everyone."""
    async with Client(server.address) as client, asyncio.timeout(WAIT_S_MAX):
        while True:
            health = (await client.ask("GET", "/v1/admin/health")).json()
            if health["subscribers"] == STREAM_COUNT:
                return
            await asyncio.sleep(0.05)


def is_locked(folder: Path) -> bool:
    """Whether a process still owns the store."""
    with (folder / "store" / "LOCK").open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def test_sigterm_under_load(tmp_path: Path, many_files, trial):
    """SIGTERM drains in time with 1,000 streams open: exit 0, lock free, nothing acked lost."""
    rng, ledger = trial.random(), Ledger()
    server = Server(tmp_path / "data")

    async def run() -> tuple[float, int, list[int]]:
        listeners = [asyncio.create_task(listen(server, at)) for at in range(STREAM_COUNT)]
        await wait_for_streams(server)
        writers = [
            asyncio.create_task(write_posts(server.address, ledger, f"w{at}", rng, bulk_share=0))
            for at in range(WRITER_COUNT)
        ]
        await asyncio.sleep(1.0)
        started = monotonic()
        server.signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.reap, limits.SHUTDOWN_S_MAX + MARGIN_S)
        took_s = monotonic() - started
        async with asyncio.timeout(MARGIN_S):
            heard = await asyncio.gather(*listeners)
        await asyncio.gather(*writers)
        return took_s, code, heard

    with server:
        took_s, code, heard = asyncio.run(run())
        free = not is_locked(server.folder)
        server.start()
        found = asyncio.run(audit(server.address, ledger))
        kept = asyncio.run(settle(server.address, ledger))
        again = asyncio.run(audit(server.address, ledger))
    trial.say(
        streams=STREAM_COUNT,
        acked=len(ledger.acked) - ledger.settled,
        heard=sum(heard),
        exit_code=code,
        drained_s=round(took_s, 1),
        unacked_but_stored=kept,
        lost=found.lost,
    )

    assert 0 == code
    assert free
    assert STREAM_COUNT == len(heard)
    assert found.is_good, found
    assert again.is_good, again
