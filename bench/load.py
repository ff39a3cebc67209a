"""How hard can it be pressed?  A raw HTTP/1.1 loader, in a process of its own.

It reads a `Load` from standard input, and writes a line when the load is over and then an
`Outcome`. Connections are kept alive, requests are encoded before the clock starts, and answers are
only cut out of the stream while it runs: what they say is checked afterwards.
"""

import asyncio
import gc
import itertools
import os
import re
import subprocess
import sys
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
import uvloop

from bench.envelopes import key_of, templates
from bench.figures import Spread, spread
from bench.host import ROOT, Broken, Host, Settled
from bench.process import Cpu, cpu_of, own_cpu_s

_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_EVENT: Final = re.compile(rb'"event_id":"([^"]+)"')
_OFFSET: Final = re.compile(rb'"wal_offset":(\d+)')
_BATCH: Final = re.compile(rb'"batch_id":"([^"]+)"')
_SPARE_S: Final = 90.0
_OVER: Final = b"over\n"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What to post and how: for so many seconds, or so many requests, or so many a second."""

    host: str
    port: int
    server_pid: int
    run: str
    scope: str
    clients: int
    batch: int = 1
    seconds: float = 0.0
    warm_s: float = 0.0
    count: int = 0
    rate: float = 0.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. Rates, latencies and costs leave the warm-up out, `acked` does not."""

    clients: int
    batch: int
    acked: int
    offsets: tuple[int, int] | None
    window_s: float
    requests: int
    events_per_s: float
    latency_ms: Spread
    server_loop_us: float
    server_us: float
    server_cores: float
    loader_us: float
    sent_ns: dict[str, int]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """One answer, unread."""

    sent_ns: int
    received_ns: int
    status: bytes
    body: bytes


class Client(asyncio.Protocol):
    """One connection: a request, its answer, the next."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._part = b""
        self._sent_ns = 0
        self.is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def post(self, request: bytes, due_ns: int) -> None:
        self._sent_ns = due_ns
        self.is_waiting = True
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._part:
            data = self._part + data
        end = data.find(b"\r\n\r\n") + 4
        length = _LENGTH.search(data, 0, end) if end >= 4 else None
        if length is None or len(data) < end + int(length[1]):
            self._part = data
            return
        self._part = b""
        self.is_waiting = False
        answer = Answer(self._sent_ns, time.perf_counter_ns(), data[9:12], data[end:])
        self._run.answered(self, answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._run.lost(self)


class Run:
    """The whole load: who posts next, and when it is over."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.answers: list[Answer] = []
        self.cpu: list[tuple[int, Cpu, float]] = []
        self._templates = itertools.cycle(templates(load.host, load.scope, load.batch))
        self._posted = 0
        self._waiting = 0
        self._stopped = False
        self._failure: str | None = None
        self._idle: deque[Client] = deque()
        self._due: deque[int] = deque()
        self._done = asyncio.Event()

    async def play(self) -> None:
        """Connect, post until the load is spent, and hang up."""
        loop, load = asyncio.get_running_loop(), self.load
        for _ in range(load.clients):
            _, client = await loop.create_connection(lambda: Client(self), load.host, load.port)
            self._idle.append(client)
        self.cpu.append(self._mark())
        if load.seconds and not load.rate:
            loop.call_later(load.warm_s, lambda: self.cpu.append(self._mark()))
            loop.call_later(load.warm_s + load.seconds, self._stop)
        if load.rate:
            self._tick(loop, loop.time(), 0)
        else:
            while self._idle:
                self._post(self._idle.popleft(), time.perf_counter_ns())
        await asyncio.wait_for(self._done.wait(), load.warm_s + load.seconds + _SPARE_S)
        if self._failure is not None:
            raise Broken(self._failure)

    def _mark(self) -> tuple[int, Cpu, float]:
        return time.perf_counter_ns(), cpu_of(self.load.server_pid), own_cpu_s()

    def _stop(self) -> None:
        self.cpu.append(self._mark())
        self._stopped = True

    def _tick(self, loop: asyncio.AbstractEventLoop, started: float, number: int) -> None:
        """Requests fall due at their time, whether or not a connection is free to carry them."""
        while number < self.load.count and started + number / self.load.rate <= loop.time():
            self._due.append(time.perf_counter_ns())
            number += 1
        while self._due and self._idle:
            # In turn: a server closes what is idle for seconds, perhaps just when we use it.
            self._post(self._idle.popleft(), self._due.popleft())
        if number < self.load.count:
            loop.call_at(started + number / self.load.rate, self._tick, loop, started, number)

    def _post(self, client: Client, due_ns: int) -> None:
        request = key_of(self.load.run, self._posted).join(next(self._templates))
        self._posted += 1
        self._waiting += 1
        client.post(request, due_ns)

    def answered(self, client: Client, answer: Answer) -> None:
        self.answers.append(answer)
        self._waiting -= 1
        spent = self._stopped or (self.load.count and self._posted >= self.load.count)
        if not spent and not self.load.rate:
            self._post(client, answer.received_ns)
        elif not spent and self._due:
            self._post(client, self._due.popleft())
        else:
            self._idle.append(client)
            if spent and not self._waiting:
                self._finish()

    def _finish(self) -> None:
        if not self._stopped:
            self._stop()
        self._done.set()

    def lost(self, client: Client) -> None:
        """The server may close what is idle for seconds; a request it owes an answer it may not."""
        if client.is_waiting:
            self._failure = "the server hung up on a request"
            self._done.set()
        elif client in self._idle:
            self._idle.remove(client)

    def outcome(self) -> Outcome:
        """Check every answer, and count."""
        load, answers = self.load, self.answers
        sent_ns, offsets = _check_answers(load, answers)
        (from_ns, cpu_before, own_before), (to_ns, cpu_after, own_after) = self.cpu[-2:]
        inside = [a for a in answers if from_ns <= a.received_ns <= to_ns]
        window_s, used = (to_ns - from_ns) / 1e9, cpu_after.since(cpu_before)
        each = len(inside)
        if not inside:
            raise Broken("no answer came within the window")
        return Outcome(
            clients=load.clients,
            batch=load.batch,
            acked=len(answers) * load.batch,
            offsets=offsets,
            window_s=window_s,
            requests=each,
            events_per_s=each * load.batch / window_s,
            latency_ms=spread([(a.received_ns - a.sent_ns) / 1e6 for a in inside]),
            server_loop_us=used.loop_s / each * 1e6,
            server_us=used.all_s / each * 1e6,
            server_cores=used.all_s / window_s,
            loader_us=(own_after - own_before) / each * 1e6,
            sent_ns=sent_ns if not load.seconds or load.rate else {},
        )


def _check_answers(
    load: Load, answers: list[Answer]
) -> tuple[dict[str, int], tuple[int, int] | None]:
    """Every answer is 202 and none repeats: when each event was sent, and the span of offsets."""
    refused = Counter(answer.status.decode() for answer in answers if answer.status != b"202")
    if refused:
        body = next(answer.body for answer in answers if answer.status != b"202")
        raise Broken(f"answers that are not 202: {dict(refused)}, such as {body[:500]!r}")
    if load.batch > 1:
        batches = {match[1] for a in answers if (match := _BATCH.search(a.body))}
        whole = all(f'"accepted":{load.batch},'.encode() in a.body for a in answers)
        if len(batches) != len(answers) or not whole:
            raise Broken("bulk answers repeat a batch id or accepted less than was sent")
        return {}, None
    sent_ns = {m[1].decode(): a.sent_ns for a in answers if (m := _EVENT.search(a.body))}
    offsets = {int(match[1]) for a in answers if (match := _OFFSET.search(a.body))}
    if len(sent_ns) != len(answers) or len(offsets) != len(answers):
        raise Broken("answers repeat an event id or an offset")
    return sent_ns, (min(offsets), max(offsets))


def press(host: Host, **load: object) -> tuple[Outcome, Settled]:
    """Run the loader in its own process against a server, and let the projectors catch up."""
    spec = Load(host=host.host, port=host.port, server_pid=host.pid, **load)  # type: ignore[arg-type]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.load"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as loader:
        assert loader.stdin is not None
        assert loader.stdout is not None
        loader.stdin.write(msgspec.msgpack.encode(spec))
        loader.stdin.close()
        is_over = loader.stdout.readline() == _OVER
        # What it has to say may be more than a pipe holds, and settling may take long.
        with ThreadPoolExecutor(1) as reading:
            rest = reading.submit(loader.stdout.read)
            settled = host.settle() if is_over else None
            said = rest.result()
    if loader.returncode or settled is None:
        raise Broken("the load failed; its complaint is above")
    return msgspec.msgpack.decode(said, type=Outcome), settled


def main() -> None:
    """Play the load on standard input; the garbage collector waits until it is over."""
    load = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Load)

    async def play() -> Run:
        run = Run(load)
        gc.disable()
        await run.play()
        return run

    try:
        run = uvloop.run(play())
        sys.stdout.buffer.write(_OVER)
        sys.stdout.buffer.flush()
        outcome = run.outcome()
    except Broken as broken:
        sys.exit(str(broken))
    # The loop may have left the pipe one that does not wait, and cuts off what it has no room for.
    os.set_blocking(sys.stdout.fileno(), True)
    sys.stdout.buffer.write(msgspec.msgpack.encode(outcome))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
