"""What do other processes do for us?  Jobs by workers, a slow model, capture beside projection."""

import contextlib
import http.client
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Client
from bench.diary import turns
from bench.host import GROUPED, OUT, ROOT, Broken, Host, Settled
from bench.load import press
from bench.process import cpu_of
from bench.redis_server import Stored, redis_program
from bench.report import Goal, Grid, Section

NAME = "workers"
STEPS = 20
_QUICK_S = 2.0
_ROWS, _ROWS_QUICK = 20_000, 3_000
_DIARY, _DIARY_QUICK = 12_000, 1_000
_EVENTS, _EVENTS_QUICK = 384, 64
_MODEL_S = 0.5
_POLL_S = 0.05
_PATIENCE_S = 300.0
_RATE = 250.0
_BULK = 500
_TURNS = 3
_SCOPE = "org:bench/user:workers"
_UNPROJECTED = "bench.unprojected"
_SLOWER_MAX = 2.0
_LINEAR_MIN = 0.8
_FASTER_MIN = 1.6


class Mode(msgspec.Struct, frozen=True):
    """How the projection is run: a name, and the settings that make it so."""

    name: str
    environment: dict[str, str]


MODES: tuple[Mode, ...] = (
    Mode("folded in the server", {"CORTEX_PROJECTION": "thread"}),
    Mode("folded in a process beside it", {"CORTEX_PROJECTION": "process"}),
)
"""What `measure` compares; another way to run the projection is another row."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A job, by so many workers."""

    what: str
    workers: int
    rows: int
    seconds: float
    server_us: float
    workers_us: float
    tasks: float


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Events read by a slow model, so many calls at once."""

    how: str
    calls: int
    events: int
    seconds: float
    most: int
    server_us: float

    @property
    def per_s(self) -> float:
        return self.events / self.seconds

    @property
    def share(self) -> float:
        """Of what so many calls could do at the most."""
        return self.per_s * _MODEL_S / self.calls


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """Events through all stages, and captures while that goes on."""

    mode: str
    events: int
    seconds: float
    p50_ms: float
    p99_ms: float
    behind: int

    @property
    def per_s(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    done: list[Done]
    asked: list[Asked]
    staged: list[Staged]
    still: Staged


def absent() -> str | None:
    """Why it cannot be measured here, if it cannot."""
    return None if redis_program() else "there is no redis-server"


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """A quick run looks at a few of everything."""
    is_quick = seconds < _QUICK_S
    rows, events = (_ROWS_QUICK, _EVENTS_QUICK) if is_quick else (_ROWS, _EVENTS)
    program = redis_program()
    assert program is not None
    stored = Stored(program, OUT)
    stored.start()
    try:
        done = [one for count in (0, 1, 2) for one in _jobs(stored, count, rows, say)]
        asked = [_model(stored, *how, events, say) for how in ((0, 3), (1, 4), (1, 16), (2, 16))]
    finally:
        stored.kill()
    diary = _DIARY_QUICK if is_quick else _DIARY
    still, staged = stages(MODES, diary, seconds, say)
    return Found(done=done, asked=asked, staged=staged, still=still)


# ── workers ──────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _host(name: str, module: str = GROUPED, **environment: str) -> Iterator[Host]:
    data = OUT / f"workers-{name}"
    shutil.rmtree(data, ignore_errors=True)
    with Host(module, data, **environment) as host:
        yield host
    shutil.rmtree(data, ignore_errors=True)


@contextlib.contextmanager
def _workers(
    host: Host, stored: Stored, token: str, count: int, *flags: str, **environment: str
) -> Iterator[list[int]]:
    """So many workers, there when the server names them; their process ids."""
    command = [sys.executable, "-m", "api.cli", "worker", "--redis", stored.url, *flags]
    settings = {"CORTEX_SERVER_URL": f"http://{host.host}:{host.port}"}
    settings |= {"CORTEX_WORKER_TOKEN": token} | environment
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, stdout=subprocess.DEVNULL)
        for _ in range(count)
    ]
    try:
        _until(lambda: len(host.health()["work"]["workers"]) == count)
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()
            process.wait(_PATIENCE_S)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Broken("it never came true")
        time.sleep(_POLL_S)


def _cpu_s(pids: Sequence[int]) -> float:
    return sum(cpu_of(pid).all_s for pid in pids)


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────


def _jobs(stored: Stored, count: int, rows: int, say: Callable[[str], None]) -> list[Done]:
    """An import of a diary and an export of it, with so many workers."""
    token = secrets.token_hex(16)
    settings = {"CORTEX_REDIS_URL": stored.url, "CORTEX_WORKER_TOKEN": token}
    lines = "\n".join(json.dumps({"scope": _SCOPE, **turn}) for turn in turns(rows))
    asked = {"import": {"source": {"inline": lines}}, "export": {"scope": _SCOPE}}
    asked["export"]["layers"] = ["events"]
    found = []
    with (
        # Without its stages: what is measured is the job, and not what follows from it.
        _host(f"jobs-{count}", _UNPROJECTED, **settings) as host,
        _workers(host, stored, token, count) as pids,
        Client(host) as client,
    ):
        for what, path in (("import", "/v1/import/jsonl"), ("export", "/v1/export")):
            say(f"an {what} of {rows:,} events, {count} workers")
            before = cpu_of(host.pid).all_s, _cpu_s(pids), _tasks(host, what)
            started = time.perf_counter()
            job_id = client.post(path, asked[what])[f"{what}_id"]
            _until(lambda job_id=job_id: _is_over(host, job_id))  # type: ignore[misc]
            seconds = time.perf_counter() - started
            server_s = cpu_of(host.pid).all_s - before[0]
            workers_s = _cpu_s(pids) - before[1]
            found.append(
                Done(
                    what=what,
                    workers=count,
                    rows=rows,
                    seconds=seconds,
                    server_us=server_s / rows * 1e6,
                    workers_us=workers_s / rows * 1e6,
                    tasks=_tasks(host, what) - before[2],
                )
            )
    return found


def _is_over(host: Host, job_id: str) -> bool:
    job = json.loads(host.ask("GET", f"/v1/admin/jobs/{job_id}"))
    if job["status"] == "failed":
        raise Broken(f"the job failed: {job}")
    return job["status"] == "completed"


def _tasks(host: Host, kind: str) -> float:
    """Tasks that workers have done."""
    text = host.ask("GET", "/v1/admin/metrics").decode()
    name = f'strata_tasks_done_total{{kind="{kind}",where="worker"}} '
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if name in line)


# ── a slow model ─────────────────────────────────────────────────────────────────────────────


def _model(
    stored: Stored, count: int, calls: int, events: int, say: Callable[[str], None]
) -> Asked:
    """Events read by a model that takes half a second, by so many workers with so many calls."""
    how = "in the server" if not count else f"{count} workers" if count > 1 else "1 worker"
    total = calls * max(1, count)
    say(f"a slow model, {how}, {total} calls at once")
    with _endpoint() as url:
        token = secrets.token_hex(16)
        model = {"CORTEX_LLM_URL": url, "CORTEX_LLM_MODEL": "slow"}
        settings = {"CORTEX_REDIS_URL": stored.url, "CORTEX_WORKER_TOKEN": token}
        flags = ("--model-calls", str(calls))
        count_s = events if count else max(calls * 8, 24)
        with (
            _host(f"model-{count}-{calls}", **settings, **model) as host,
            _workers(host, stored, token, count, *flags, **model),
            Client(host) as client,
        ):
            items = [
                {"scope": _SCOPE, **turn, "content": {"kind": "text", "text": f"{n} seats at Acme"}}
                for n, turn in enumerate(turns(count_s))
            ]
            cpu, started = cpu_of(host.pid).all_s, time.perf_counter()
            client.post("/v1/experience/bulk", {"items": items})
            _until(lambda: not host.health()["annotator"]["waiting_entries"])
            seconds = time.perf_counter() - started
            cpu = cpu_of(host.pid).all_s - cpu
        told = _told(url)
    if told["asked"] < count_s:
        raise Broken(f"the model was asked {told['asked']} times about {count_s} events")
    return Asked(
        how=how,
        calls=total,
        events=count_s,
        seconds=seconds,
        most=told["most"],
        server_us=cpu / count_s * 1e6,
    )


@contextlib.contextmanager
def _endpoint() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.slow_model", str(_MODEL_S)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _told(url: str) -> dict[str, Any]:
    place = url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(place, timeout=_PATIENCE_S)
    connection.request("GET", "/asked")
    found: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return found


# ── capture beside projection ────────────────────────────────────────────────────────────────


class _Still(Host):
    """A server whose projectors never catch up, since none runs."""

    def __init__(self, host: Host) -> None:
        self.host, self.port, self.pid, self.data = host.host, host.port, host.pid, host.data
        self.token = host.token

    def settle(self) -> Settled:
        return Settled(head=int(self.health()["durable_offset"]), behind=0, seconds=0.0)


def stages(
    modes: Sequence[Mode], events: int, seconds: float, say: Callable[[str], None]
) -> tuple[Staged, list[Staged]]:
    """Captures without projection; in each mode a diary through all stages, and captures beside it.

    All servers are there at once and take turns, so that a neighbour's rush meets each of them.
    """
    with contextlib.ExitStack() as opened:
        still = _Still(opened.enter_context(_host("still", _UNPROJECTED)))
        hosts = [
            opened.enter_context(_host(f"stages-{number}", **mode.environment))
            for number, mode in enumerate(modes)
        ]
        spent: list[list[float]] = [[] for _ in modes]
        for seed in range(1, _TURNS + 1):
            for mode, host, times in zip(modes, hosts, spent, strict=True):
                say(f"{events:,} events through all stages: {mode.name}, turn {seed}")
                times.append(_through(host, events, seed))
        quiet: list[Staged] = []
        beside: list[list[Staged]] = [[] for _ in modes]
        for turn in range(1, _TURNS + 1):
            say(f"captures without projection and beside it, turn {turn}")
            quiet.append(_captures(still, "projection off", seconds))
            for mode, host, taken in zip(modes, hosts, beside, strict=True):
                # So much that the projection is at it until the last capture is answered.
                _fill(host, int(seconds * 1500), seed=_TURNS + turn)
                taken.append(_captures(host, mode.name, seconds))
    # A first diary finds caches empty; of the others the quicker counts, since a neighbour can
    # only take away.
    found = [
        msgspec.structs.replace(_middle(taken), events=events, seconds=min(times[1:]))
        for taken, times in zip(beside, spent, strict=True)
    ]
    return _middle(quiet), found


def _middle(taken: Sequence[Staged]) -> Staged:
    """The middle one of a few turns: a neighbour's rush decides nothing."""
    return sorted(taken, key=lambda one: one.p99_ms)[len(taken) // 2]


def _through(host: Host, events: int, seed: int) -> float:
    """Seconds until a diary is posted, derived and found."""
    started = time.perf_counter()
    _fill(host, events, seed)
    host.settle()
    _until(lambda: bool(host.health()["index"]["lag_entries"] == 0))
    return time.perf_counter() - started


def _fill(host: Host, events: int, seed: int) -> None:
    items = list(turns(events, seed))
    with Client(host) as client:
        for at in range(0, events, _BULK):
            body = {"scope": f"{_SCOPE}-{seed}", "items": items[at : at + _BULK]}
            client.post("/v1/experience/bulk", body)


def _captures(host: Host, mode: str, seconds: float) -> Staged:
    """Captures at a rate that any server could take: what waits, waits for something else."""
    outcome, settled = press(
        host,
        run=secrets.token_hex(4),
        scope="user:anna/project:beside",
        clients=8,
        rate=_RATE,
        count=int(_RATE * seconds),
        seconds=seconds,
    )
    return Staged(
        mode=mode,
        events=0,
        seconds=0.0,
        p50_ms=outcome.latency_ms.p50,
        p99_ms=outcome.latency_ms.p99,
        behind=settled.behind,
    )


# ── telling ──────────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """Its page of RESULTS.md."""
    best = min(found.staged, key=lambda one: one.p99_ms)
    slower = best.p99_ms / found.still.p99_ms
    linear = min(one.share for one in found.asked if one.how != "in the server")
    alone, beside = found.staged[0], found.staged[1]
    faster = beside.per_s / alone.per_s
    return Section(
        name=NAME,
        question="What do other processes do for us, and what does handing over cost?",
        facts=[*facts, f"a model that takes {_MODEL_S:g} s a call; captures at {_RATE:g} a second"],
        goals=[
            Goal(
                "capture p99 beside projection, to projection off",
                f"≤ {_SLOWER_MAX}×",
                f"{slower:.2f}×",
                slower <= _SLOWER_MAX,
            ),
            Goal(
                "events through all stages, one process to two",
                f"≥ {_FASTER_MIN}×",
                f"{faster:.2f}×",
                faster >= _FASTER_MIN,
            ),
            Goal(
                "a slow model, of what its calls could do",
                f"≥ {_LINEAR_MIN:.0%}",
                f"{linear:.0%}",
                linear >= _LINEAR_MIN,
            ),
        ],
        grids=[_done_grid(found), _asked_grid(found), _staged_grid(found)],
        reading=(
            f"With {found.asked[-1].calls} calls at once {found.asked[-1].per_s:.1f} events a "
            f"second were read by the model, with {found.asked[1].calls} "
            f"{found.asked[1].per_s:.1f}. Captures took {best.p99_ms:.1f} ms at the 99th of a "
            f"hundred beside projection ({best.mode}), {found.still.p99_ms:.1f} ms without."
        ),
    )


def _done_grid(found: Found) -> Grid:
    return Grid(
        "Jobs: processor time a row in the server and in its workers; none means in place",
        ["job", "workers", "rows/s", "server µs a row", "workers µs a row", "tasks"],
        [
            [
                one.what,
                str(one.workers or "none"),
                f"{one.rows / one.seconds:,.0f}",
                f"{one.server_us:,.0f}",
                f"{one.workers_us:,.0f}",
                f"{one.tasks:.0f}",
            ]
            for one in found.done
        ],
    )


def _asked_grid(found: Found) -> Grid:
    return Grid(
        "Events read by a slow model",
        ["by", "calls at once", "seen at once", "events/s", "of what is possible", "server µs"],
        [
            [
                one.how,
                str(one.calls),
                str(one.most),
                f"{one.per_s:.1f}",
                f"{one.share:.0%}",
                f"{one.server_us:,.0f}",
            ]
            for one in found.asked
        ],
    )


def _staged_grid(found: Found) -> Grid:
    return Grid(
        "All stages, and captures while they run",
        ["projection", "events/s", "capture p50 ms", "p99 ms", "behind at the end"],
        [
            [
                one.mode,
                f"{one.per_s:,.0f}" if one.events else "-",
                f"{one.p50_ms:.2f}",
                f"{one.p99_ms:.2f}",
                f"{one.behind:,}",
            ]
            for one in (found.still, *found.staged)
        ],
    )


def draw(found: Found, path: Path) -> None:
    """What a slow model reads as its calls grow."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    calls = [one.calls for one in found.asked]
    axes.plot(calls, [one.per_s for one in found.asked], marker="o", label="measured")
    axes.plot(calls, [count / _MODEL_S for count in calls], linestyle=":", label="at the most")
    axes.set(xlabel="calls at once", ylabel="events a second", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
