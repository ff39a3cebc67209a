"""What does one who does not read cost the others?  Little, and the slow one misses nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from schemas.lifecycle import STAGE_ORDER
from tests.faults.client import Client, Frame, Stream
from tests.faults.ledger import bulk
from tests.faults.server import Server

SLOW_COUNT = 40
EVENT_COUNT = 4000
BULK_ITEMS = 200
SOCKET_BYTES = 4096
STAGES = STAGE_ORDER[:4]
WANTED = "?events=" + ",".join(STAGES)
MIB = 1024 * 1024
EVENT_BYTES_MAX = 64 * 1024
STREAM_BYTES_MAX = 1 * MIB
"""What an event, until caches are full, and a stream may cost: streams without bound would hold all
news 40 times, which is more than twice as much."""

LAG_S = 6.0
TURNED_DOWN = f"""
import socket
from schemas import limits
limits.LAG_S_MAX = {LAG_S}
bind = socket.socket.bind
def bind_small(self, address):
    self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {SOCKET_BYTES})
    bind(self, address)
socket.socket.bind = bind_small
"""
"""A server with a short patience, and sockets that do not hide a slow reader behind megabytes."""


async def post_events(server: Server, name: str, count: int) -> None:
    """Many events in few calls."""
    async with Client(server.address) as client:
        for start in range(0, count, BULK_ITEMS):
            post = bulk(f"{name}-{number}" for number in range(start, start + BULK_ITEMS))
            answer = await client.ask("POST", post.path, post.body)
            assert 202 == answer.status, answer


async def read(stream: Stream, count: int) -> list[Frame]:
    """So many events of a stream, or fewer when it ends before."""
    frames: list[Frame] = []
    async for frame in stream.frames():
        frames.append(frame)
        if len(frames) == count:
            break
    return frames


def missed_and_repeated(frames: list[Frame], count: int) -> tuple[int, int]:
    """How many announcements of so many events are not there, and how many came twice."""
    seen = Counter((frame.data["event_id"], frame.event) for frame in frames)
    assert {stage for _, stage in seen} <= set(STAGES)
    return count * len(STAGES) - len(seen), sum(seen.values()) - len(seen)


def test_readers_that_do_not_read(tmp_path: Path, trial):
    """Memory stays bounded; others hear everything, and so does the slow one when it reads on."""
    total = EVENT_COUNT * len(STAGES)

    async def run(server: Server) -> tuple[int, list[list[Frame]]]:
        slow = [
            await Stream.open(server.address, query=WANTED, buffer_bytes=SOCKET_BYTES)
            for _ in range(SLOW_COUNT)
        ]
        fast = await Stream.open(server.address, query=WANTED)
        before = server.rss_bytes()
        hearing = asyncio.create_task(read(fast, total))
        await post_events(server, "slow", EVENT_COUNT)
        heard = await hearing
        grown = server.rss_bytes() - before
        late = await read(slow[0], total)
        part = await read(slow[1], 500)
        slow[1].close()
        resumed = await Stream.open(server.address, query=WANTED, since=part[-1].id)
        rest = await read(resumed, total - len(part))
        for stream in (*slow, fast, resumed):
            stream.close()
        return grown, [heard, late, part + rest]

    with Server(tmp_path / "data") as server:
        grown, histories = asyncio.run(run(server))
    found = [missed_and_repeated(frames, EVENT_COUNT) for frames in histories]
    trial.say(
        slow_readers=SLOW_COUNT,
        announcements=total,
        grown_mib=grown // MIB,
        fast_missed=found[0][0],
        slow_missed=found[1][0],
        resumed_missed=found[2][0],
        repeated=sum(repeated for _, repeated in found),
    )

    assert [(0, 0)] * 3 == found
    assert all(sorted(frames, key=lambda frame: frame.id) == frames for frames in histories)
    assert grown < SLOW_COUNT * STREAM_BYTES_MAX + EVENT_COUNT * EVENT_BYTES_MAX


async def do_not_read(server: Server, stream: Stream) -> list[Frame]:
    """Read nothing until the server has had enough, then what is left in the socket."""
    async with Client(server.address) as client:
        health = await client.ask("GET", "/v1/admin/health")
        while health.json()["subscribers"]:
            await asyncio.sleep(0.05)
            health = await client.ask("GET", "/v1/admin/health")
    return [frame async for frame in stream.frames()]


async def read_slowly(server: Server, stream: Stream) -> list[Frame]:
    """Read a little at a time, more slowly than it is written."""
    frames: list[Frame] = []
    async for frame in stream.frames():
        frames.append(frame)
        if len(frames) % 50 == 0:
            await asyncio.sleep(0.15)
    return frames


@pytest.mark.parametrize("behave, last_word", [(do_not_read, None), (read_slowly, "lagging")])
def test_reader_too_far_behind(tmp_path: Path, trial, behave, last_word):
    """Who lags too far is told if it listens, is cut off, and misses nothing by resuming."""
    total = EVENT_COUNT * len(STAGES)

    async def run(server: Server) -> tuple[list[Frame], list[Frame]]:
        stream = await Stream.open(server.address, query=WANTED, buffer_bytes=SOCKET_BYTES)
        told, _ = await asyncio.gather(
            behave(server, stream), post_events(server, "lag", EVENT_COUNT)
        )
        stream.close()
        last = [frame.id for frame in told if frame.event != "lagging"][-1]
        resumed = await Stream.open(server.address, query=WANTED, since=last)
        rest = await read(resumed, total - len([frame for frame in told if frame.id]))
        resumed.close()
        return told, rest

    with Server(tmp_path / "data", before=TURNED_DOWN) as server:
        told, rest = asyncio.run(run(server))
        assert server.is_running()
        said = server.said()
    if last_word is not None:
        assert last_word == told.pop().event
    missed, repeated = missed_and_repeated(told + rest, EVENT_COUNT)
    trial.say(read_before_the_end=len(told), resumed=len(rest), missed=missed, repeated=repeated)

    assert rest, "it was never cut off"
    assert (0, 0) == (missed, repeated)
    assert "Traceback" not in said
