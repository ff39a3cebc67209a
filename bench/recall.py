"""How fast is recall, and how does that grow?  One scope among ever more events, over HTTP.

One server takes in diaries of a thousand events each, one a scope, of many tenants in turn. At each
size the first of them is asked, by one client that waits for its answer; at the last also while
others write.
"""

import contextlib
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from bench.calm import Pulse, calm, counted
from bench.client import Client
from bench.diary import turns
from bench.figures import Spread, spread
from bench.host import GROUPED, OUT, Host
from bench.process import cpu_of, memory_mb
from bench.report import Goal, Grid, Section

NAME = "recall"
_SIZES = "1000,10000,100000"
SIZES = tuple(int(size) for size in os.environ.get("STRATA_BENCH_EVENTS", _SIZES).split(","))
"""How many events there are; a million takes the better part of an hour to write."""
_QUICK_S = 1.0
STEPS = 2 * len(SIZES) + 1
_SCOPE = 1000
_TENANTS = 10
_BATCH = 500
_WRITES_S = 500
_WRITE_BATCH = 25
_WARM = 20
_WINDOW_S = 0.25
_GOALS = {10_000: (4, 10), 100_000: (6, 15), 1_000_000: (15, 45)}
_ASKED = (
    "Where does Ana live now?",
    "Who works at Northwind?",
    "What does Ben like?",
    "When did Dora start working at Acme?",
    "Which pet does the sister in Oslo have?",
    "What is Emil's job?",
    "How many tickets were bought for the concert?",
    "Who plans to visit Kyoto in June?",
    "What has Hana been learning since March?",
    "Did anybody leave Bluepeak?",
    "What did Goran and Fatima agree about Saturday?",
    "Who moved to Lisbon last month?",
)
_BODIES: dict[str, dict[str, Any]] = {
    "default": {},
    "events": {"include": ["events"]},
}
"""A recall as it comes, with all layers; and one that wants evidence only."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Recalls of one kind at one size."""

    events: int
    kind: str
    took_ms: Spread
    p95_ms: float
    cpu_ms: float
    windows: int = 1
    calm: int = 1
    """How many windows there were, and in how many of them the machine was idle: those count."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one size."""

    events: int
    asked: list[Asked]
    all_mb: float
    written_per_s: float


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    stages: list[Stage]
    quiet: Asked
    pressed: Asked
    searchable_ms: Spread

    def of(self, events: int, kind: str) -> Asked:
        stage = next(stage for stage in self.stages if stage.events == events)
        return next(asked for asked in stage.asked if asked.kind == kind)


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """Each size in turn, in one server."""
    folder = OUT / "recall-data"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with Host(GROUPED, folder, flags=_known_callers(), token=_token(0)) as host:
            return _measure(host, seconds, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _known_callers() -> tuple[str, str]:
    """A file of principals, one a tenant."""
    callers = [
        {"token": _token(number), "name": f"bench-{number}", "tenant": f"tenant-{number}"}
        for number in range(_TENANTS)
    ]
    path = OUT / "recall-principals.json"
    path.write_bytes(msgspec.json.encode(callers))
    return "--principals", str(path)


def _token(diary: int) -> str:
    """Whose diary it is."""
    return f"tenant-{diary % _TENANTS}-of-the-bench"


def _measure(host: Host, seconds: float, say: Callable[[str], None]) -> Found:
    stages: list[Stage] = []
    there = 0
    pulse = Pulse()
    for size in SIZES[:2] if seconds <= _QUICK_S else SIZES:
        say(f"writing up to {size:,} events")
        started = time.perf_counter()
        for number in range(there // _SCOPE, size // _SCOPE):
            _write_diary(host, number)
        host.settle()
        while host.health()["index"]["lag_entries"]:
            time.sleep(0.2)
        took_s = time.perf_counter() - started
        say(f"asking among {size:,} events")
        stages.append(
            Stage(
                events=size,
                asked=[_ask_calmly(host, size, kind, seconds, pulse) for kind in _BODIES],
                all_mb=memory_mb(host.pid)[0],
                written_per_s=(size - there) / took_s,
            )
        )
        there = size
    say(f"asking while {_WRITES_S} events/s are written")
    quiet = _ask(host, there, "events", seconds)
    with _Writer(host) as writer:
        pressed = _ask(host, there, "events", seconds)
        searchable = _searchable(host, seconds)
    assert writer.written, "nobody wrote"
    return Found(stages=stages, quiet=quiet, pressed=pressed, searchable_ms=spread(searchable))


def _scope(number: int) -> str:
    return f"bench:recall/user:u{number}"


def _write_diary(host: Host, number: int) -> None:
    items = list(turns(_SCOPE, seed=number))
    with Client(host, _token(number)) as client:
        for start in range(0, len(items), _BATCH):
            part = items[start : start + _BATCH]
            client.post("/v1/experience/bulk", {"scope": _scope(number), "items": part})


class Took(NamedTuple):
    """What a window's recalls took, each, and of the processor all together."""

    each_ms: list[float]
    cpu_ms: float


def _ask(host: Host, events: int, kind: str, seconds: float) -> Asked:
    """One client, one question after another, on the first scope."""
    with _asking(host, kind) as window:
        return _asked(events, kind, [window(seconds)])


def _ask_calmly(host: Host, events: int, kind: str, seconds: float, pulse: Pulse) -> Asked:
    """The same in windows: what is judged by a clock counts while the machine is idle."""
    with _asking(host, kind) as window:
        wanted = max(1, round(seconds / _WINDOW_S))
        windows = pulse.windows(lambda: window(_WINDOW_S), wanted)
    asked = _asked(events, kind, counted(windows))
    return msgspec.structs.replace(asked, windows=len(windows), calm=len(calm(windows)))


@contextlib.contextmanager
def _asking(host: Host, kind: str) -> Iterator[Callable[[float], Took]]:
    """Something that asks for so many seconds, by one client, after a few questions to warm up."""
    bodies = [
        {"scope": _scope(0), "view": "local", "query": text} | _BODIES[kind] for text in _ASKED
    ]
    with Client(host) as client:
        for number in range(_WARM):
            client.post("/v1/recall", bodies[number % len(bodies)])

        def ask(seconds: float) -> Took:
            took: list[float] = []
            before, ends = cpu_of(host.pid), time.perf_counter() + seconds
            # Every question as often as every other, whatever the time.
            while time.perf_counter() < ends or len(took) % len(bodies):
                started = time.perf_counter()
                client.post_unread("/v1/recall", bodies[len(took) % len(bodies)])
                took.append((time.perf_counter() - started) * 1000)
            return Took(took, cpu_of(host.pid).since(before).all_s * 1000)

        yield ask


def _asked(events: int, kind: str, windows: Sequence[Took]) -> Asked:
    took = [one_ms for window in windows for one_ms in window.each_ms]
    return Asked(
        events=events,
        kind=kind,
        took_ms=spread(took),
        p95_ms=statistics.quantiles(took, n=20)[-1],
        cpu_ms=sum(window.cpu_ms for window in windows) / len(took),
    )


def _searchable(host: Host, seconds: float) -> list[float]:
    """How long it takes from a post until the event can be found."""
    took = []
    ends = time.perf_counter() + seconds
    with Client(host) as client:
        for item in turns(10**6, seed=-1):
            if time.perf_counter() > ends:
                break
            started = time.perf_counter()
            client.post("/v1/experience?wait=indexed&wait_ms=10000", item | {"scope": _scope(0)})
            took.append((time.perf_counter() - started) * 1000)
    return took


class _Writer:
    """Posts at a steady pace until the block ends."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.written = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        every_s = _WRITE_BATCH / _WRITES_S
        diary = turns(10**9, seed=-2)
        with Client(self._host, _token(1)) as client:
            due = time.perf_counter()
            while not self._done.is_set():
                items = [next(diary) for _ in range(_WRITE_BATCH)]
                client.post("/v1/experience/bulk", {"scope": _scope(10**6), "items": items})
                self.written += len(items)
                due += every_s
                self._done.wait(max(0.0, due - time.perf_counter()))


# ── reporting ────────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: Sequence[str]) -> Section:
    """The page of RESULTS.md."""
    ratio = found.pressed.p95_ms / found.quiet.p95_ms
    goals = [
        Goal(
            f"recall of all layers among {size:,} events, p50 / p95",
            f"≤ {p50} / {p95} ms",
            f"{asked.took_ms.p50:.1f} / {asked.p95_ms:.1f} ms",
            asked.took_ms.p50 <= p50 and asked.p95_ms <= p95,
        )
        for size, (p50, p95) in _GOALS.items()
        if size in {stage.events for stage in found.stages}
        for asked in [found.of(size, "default")]
    ]
    goals += [
        Goal(
            f"p95 while {_WRITES_S} events/s are written",
            "≤ 3× of quiet",
            f"{ratio:.1f}×",
            ratio <= 3,
        ),
        Goal(
            f"event → searchable at {_WRITES_S} events/s, p50",
            "≤ 200 ms",
            f"{found.searchable_ms.p50:.0f} ms",
            found.searchable_ms.p50 <= 200,
        ),
    ]
    return Section(
        name=NAME,
        question="How fast is recall, and how does that grow?",
        facts=[
            *facts,
            f"scopes of {_SCOPE:,} events, {_TENANTS} tenants; one client, closed loop, keep-alive",
            "a recall takes until its last byte is read, 100 KB with all layers, not until parsed",
            f"windows of {_WINDOW_S:g} s; those count in which the machine was idle (`calm.py`)",
        ],
        goals=goals,
        grids=[_grid(found)],
        reading=_reading(found),
    )


def _grid(found: Found) -> Grid:
    columns = (
        "events",
        "asked for",
        "p50 ms",
        "p95 ms",
        "CPU ms",
        "windows, of them idle",
        "memory MB",
        "written and found/s",
    )
    rows = [
        (
            f"{stage.events:,}",
            asked.kind,
            f"{asked.took_ms.p50:.1f}",
            f"{asked.p95_ms:.1f}",
            f"{asked.cpu_ms:.1f}",
            f"{asked.windows}, {asked.calm}",
            f"{stage.all_mb:,.0f}",
            f"{stage.written_per_s:,.0f}",
        )
        for stage in found.stages
        for asked in stage.asked
    ]
    return Grid("Recall by the number of events", columns, rows)


def _reading(found: Found) -> str:
    first, last = found.stages[0], found.stages[-1]
    one, other = (stage.asked[0].took_ms.p50 for stage in (first, last))
    return (
        f"From {first.events:,} to {last.events:,} events a recall of all layers goes from "
        f"{one:.1f} to {other:.1f} ms (p50).\n"
        f"While {_WRITES_S} events a second are written, evidence alone takes "
        f"{found.pressed.took_ms.p50:.1f} ms instead of {found.quiet.took_ms.p50:.1f}, and an "
        f"event can be found {found.searchable_ms.p50:.0f} ms after it was posted."
    )


def draw(found: Found, path: Path) -> None:
    """p50 and p95 against the number of events, and the memory."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    sizes = [stage.events for stage in found.stages]
    for kind in _BODIES:
        asked = [found.of(size, kind) for size in sizes]
        left.plot(sizes, [one.took_ms.p50 for one in asked], "o-", label=f"{kind}, p50")
        left.plot(sizes, [one.p95_ms for one in asked], "o:", label=f"{kind}, p95")
    left.set(xscale="log", xlabel="events", ylabel="milliseconds", ylim=(0, None))
    left.legend(frameon=False, fontsize=8)
    right.plot(sizes, [stage.all_mb for stage in found.stages], "o-")
    right.set(xscale="log", xlabel="events", ylabel="memory of the server, MB", ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
