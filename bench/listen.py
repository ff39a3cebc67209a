"""Who listens?  Many raw lifecycle streams in one process, and the reckoning of what they heard.

It reads an `Audience` from standard input and writes a line when every stream is open; then it
reads when each event was sent, waits until all has been heard or nothing comes any more, and writes
what was `Heard`. Times are of the monotonic clock, which processes of one machine share.
"""

import asyncio
import base64
import gc
import re
import subprocess
import sys
import time
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlencode

import msgspec
import uvloop

from bench.figures import Spread, spread
from bench.host import ROOT, Broken, Host

STAGES: Final = ("captured", "extracted", "indexed", "consolidated")
_FRAME: Final = re.compile(rb'id: (\S+)\nevent: (\w+)\ndata: [^\n]*?"event_id":"([^"]+)"')
_READY: Final = b"ready\n"
_OPEN_S: Final = 60.0
_QUIET_S: Final = 10.0
_LATE_S: Final = 0.3


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """How many streams, on which scope."""

    host: str
    port: int
    scope: str
    count: int


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What arrived: everything, once and in order, or how much of it not."""

    deliveries: int
    missing: int
    repeated: int
    disordered: int
    span_s: float
    captured_ms: Spread
    consolidated_ms: Spread
    arrivals: list[int]


class Stream(asyncio.Protocol):
    """One subscriber."""

    def __init__(self, hall: "Hall", request: bytes) -> None:
        self._hall = hall
        self._request = request
        self._part = b""
        self._is_open = False
        self.frames: list[tuple[int, bytes]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        text = self._part + data
        if not self._is_open:
            end = text.find(b"\r\n\r\n")
            if end < 0:
                self._part = text
                return
            self._hall.opened(text[:end])
            self._is_open, text = True, text[end + 4 :]
        # The server writes whole frames, but TCP cuts where it likes.
        cut = text.rfind(b"\n\n") + 2
        if cut < 2:
            self._part = text
            return
        self._part = text[cut:]
        names = self._hall.names
        found = _FRAME.findall(text, 0, cut)
        for raw, stage, event in found:
            if raw not in names:
                names[raw] = (stage.decode(), event.decode())
            self.frames.append((now, raw))
        self._hall.heard(len(found), now)

    def connection_lost(self, error: Exception | None) -> None:
        self._hall.lost()


class Hall:
    """All subscribers, and what has been heard so far."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self.names: dict[bytes, tuple[str, str]] = {}
        self.streams: list[Stream] = []
        self._open = self._heard = 0
        self._all_open = asyncio.Event()
        self._last_ns = 0
        self._lost = 0

    async def gather(self) -> None:
        """Open every stream, and wait for the heads of their answers."""
        loop, wanted = asyncio.get_running_loop(), self._audience
        query = urlencode({"scope": wanted.scope, "events": ",".join(STAGES)})
        request = f"GET /v1/lifecycle/stream?{query} HTTP/1.1\r\nHost: {wanted.host}\r\n\r\n"
        for _ in range(wanted.count):
            stream = Stream(self, request.encode())
            self.streams.append(stream)
            await loop.create_connection(lambda one=stream: one, wanted.host, wanted.port)
        await asyncio.wait_for(self._all_open.wait(), _OPEN_S)

    def opened(self, head: bytes) -> None:
        assert head.startswith(b"HTTP/1.1 200"), head.decode("latin-1")
        self._open += 1
        if self._open == self._audience.count:
            self._all_open.set()

    def heard(self, count: int, now: int) -> None:
        self._heard += count
        self._last_ns = now

    def lost(self) -> None:
        self._lost += 1

    async def finish(self, sent_ns: dict[str, int]) -> Heard:
        """Wait for the rest, then reckon."""
        wanted = len(sent_ns) * len(STAGES) * len(self.streams)
        self._last_ns = self._last_ns or time.perf_counter_ns()
        while self._heard < wanted and not self._lost:
            await asyncio.sleep(0.05)
            if time.perf_counter_ns() - self._last_ns > _QUIET_S * 1e9:
                break
        # One that comes twice comes late.
        await asyncio.sleep(_LATE_S)
        return self._reckon(sent_ns)

    def _reckon(self, sent_ns: dict[str, int]) -> Heard:
        expected = {(stage, event) for event in sent_ns for stage in STAGES}
        missing = repeated = disordered = 0
        waits: dict[str, list[float]] = {stage: [] for stage in STAGES}
        first_ns, arrivals = min(sent_ns.values()), []
        for stream in self.streams:
            got = [self.names[raw] for _, raw in stream.frames]
            kinds = set(got)
            missing += len(expected - kinds)
            repeated += len(got) - len(kinds)
            disordered += sum(1 for stages in _by_event(got) if stages != sorted(stages))
            for (now, _), (stage, event) in zip(stream.frames, got, strict=True):
                waits[stage].append((now - sent_ns[event]) / 1e6)
                arrivals.append((now - first_ns) // 100_000_000)
        counts = [0] * (max(arrivals, default=0) + 1)
        for tenth in arrivals:
            counts[tenth] += 1
        return Heard(
            deliveries=len(arrivals),
            missing=missing,
            repeated=repeated,
            disordered=disordered,
            span_s=(self._last_ns - first_ns) / 1e9,
            captured_ms=spread(waits["captured"]),
            consolidated_ms=spread(waits["consolidated"]),
            arrivals=counts,
        )


def _by_event(got: list[tuple[str, str]]) -> list[list[int]]:
    orders: dict[str, list[int]] = {}
    for stage, event in got:
        orders.setdefault(event, []).append(STAGES.index(stage))
    return list(orders.values())


class Listening:
    """The listeners' process, seen from outside; their streams are open inside the block."""

    def __init__(self, host: Host, scope: str, count: int) -> None:
        self._host = host
        self._audience = Audience(host=host.host, port=host.port, scope=scope, count=count)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.listen"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._tell(self._audience)
        assert self._process.stdout is not None
        open_streams = self._process.stdout.readline() == _READY
        if not open_streams or self._host.health()["subscribers"] != self._audience.count:
            self._process.kill()
            raise Broken("the streams did not open; the complaint is above")
        return self

    def _tell(self, said: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(base64.b64encode(msgspec.msgpack.encode(said)) + b"\n")
        self._process.stdin.flush()

    def reckon(self, sent_ns: dict[str, int]) -> Heard:
        """What they heard of these events; a loss, a repeat or a wrong order is an error."""
        self._tell(sent_ns)
        assert self._process.stdout is not None
        said = self._process.stdout.read()
        if self._process.wait():
            raise Broken("the listeners failed; their complaint is above")
        heard = msgspec.msgpack.decode(said, type=Heard)
        if heard.missing or heard.repeated or heard.disordered:
            raise Broken(
                f"of {heard.deliveries} deliveries {heard.missing} are missing, "
                f"{heard.repeated} repeated, {heard.disordered} events out of order"
            )
        return heard

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


async def _listen() -> Heard:
    def read() -> bytes:
        return base64.b64decode(sys.stdin.buffer.readline())

    hall = Hall(msgspec.msgpack.decode(read(), type=Audience))
    gc.disable()
    await hall.gather()
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    sent_ns = msgspec.msgpack.decode(await asyncio.to_thread(read), type=dict[str, int])
    return await hall.finish(sent_ns)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(uvloop.run(_listen())))
