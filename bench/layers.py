"""How fast do events become memory, and does it stay so as a scope grows?"""

import http.client
import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.diary import turns
from bench.host import GROUPED, OUT, Broken, Host
from bench.process import cpu_of, memory_mb
from bench.report import Goal, Grid, Section

NAME = "layers"
STEPS = 12
_SCOPE = "org:bench/user:diary"
_BULK = 500
_PER_STEP_FULL, _PER_STEP_QUICK = 10_000, 500
_STEP_COUNT = 10
_QUICK_S = 2.0
_GROWTH_MAX = 1.5
_REBUILD_S_MAX = 40.0
_MB_PER_100K_MAX = 170.0
_MB_ALONE_MAX = 300.0
_POLL_S = 0.25


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """So many more events, through all stages."""

    events: int
    seconds: float
    cpu_us: float
    all_mb: float


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Events through all stages in one scope, and the same events again from the log."""

    steps: list[Step]
    per_step: int
    at_start_mb: float
    rebuild_s: float

    @property
    def events(self) -> int:
        return len(self.steps) * self.per_step

    @property
    def growth(self) -> float:
        """CPU an event in the last steps by that in the first; the very first warms up."""
        first, last = self.steps[1:3], self.steps[-2:]
        return sum(s.cpu_us for s in last) / len(last) / (sum(s.cpu_us for s in first) / len(first))

    @property
    def later_mb_per_100k(self) -> float:
        """Growth once the buffers are full."""
        grown = self.steps[-1].all_mb - self.steps[0].all_mb
        return grown / (self.events - self.per_step) * 100_000

    @property
    def all_mb_max(self) -> float:
        """What a server may take in all: so much by itself, and a part for its events."""
        return _MB_ALONE_MAX + _MB_PER_100K_MAX * self.events / 100_000

    @property
    def mb_per_100k(self) -> float:
        return (self.steps[-1].all_mb - self.at_start_mb) / self.events * 100_000


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """A quick run looks at 5,000 events, a full one at 100,000."""
    per_step = _PER_STEP_QUICK if seconds < _QUICK_S else _PER_STEP_FULL
    data = OUT / "layers-data"
    shutil.rmtree(data, ignore_errors=True)
    said = turns(per_step * _STEP_COUNT)
    with Host(GROUPED, data) as host:
        at_start = memory_mb(host.pid)[0]
        steps = []
        for number in range(_STEP_COUNT):
            say(f"{(number + 1) * per_step:,} events in one scope")
            steps.append(_step(host, list(itertools.islice(said, per_step)), number * per_step))
        say("everything again from the log")
        rebuild_s = _rebuilt(host)
    shutil.rmtree(data, ignore_errors=True)
    return Found(
        steps=steps,
        per_step=per_step,
        at_start_mb=at_start,
        rebuild_s=rebuild_s,
    )


def _step(host: Host, items: list[dict[str, object]], before: int) -> Step:
    cpu, started = cpu_of(host.pid), time.perf_counter()
    connection = http.client.HTTPConnection(host.host, host.port, timeout=90)
    for at in range(0, len(items), _BULK):
        body = json.dumps({"scope": _SCOPE, "items": items[at : at + _BULK]})
        connection.request(
            "POST", "/v1/experience/bulk", body, {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise Broken(f"a bulk call answered {answer.status}: {said[:500]!r}")
    connection.close()
    _caught_up(host)
    spent = cpu_of(host.pid).since(cpu).all_s / len(items) * 1e6
    return Step(
        events=before + len(items),
        seconds=time.perf_counter() - started,
        cpu_us=spent,
        all_mb=memory_mb(host.pid)[0],
    )


def _caught_up(host: Host) -> None:
    """Until every event can be found and all that follows from it is there."""
    host.settle()
    while True:
        found = host.health()
        if found["lag_entries"] == 0 and found["index"]["lag_entries"] == 0:
            return
        time.sleep(_POLL_S)


def _rebuilt(host: Host) -> float:
    started = time.perf_counter()
    host.ask("POST", "/v1/admin/projectors/facts/rebuild")
    while host.health()["status"] == "degraded":
        time.sleep(_POLL_S)
    return time.perf_counter() - started


def section(found: Found, facts: list[str]) -> Section:
    """Its page of RESULTS.md."""
    per_100k = found.rebuild_s / found.events * 100_000
    rows = [
        [
            f"{s.events:,}",
            f"{found.per_step / s.seconds:,.0f}",
            f"{s.cpu_us:,.0f}",
            f"{s.all_mb:,.0f}",
        ]
        for s in found.steps
    ]
    return Section(
        name=NAME,
        question="How fast do events become memory, and does it stay so as a scope grows?",
        facts=[*facts, "turns of bench/diary.py in one scope, by bulk calls of 500, until indexed"],
        goals=[
            Goal(
                "rebuild of the layers, 100,000 events",
                f"≤ {_REBUILD_S_MAX:.0f} s",
                f"{per_100k:.0f} s",
                per_100k <= _REBUILD_S_MAX,
            ),
            Goal(
                "CPU an event, last to first tenths",
                f"≤ {_GROWTH_MAX}×",
                f"{found.growth:.2f}×",
                found.growth <= _GROWTH_MAX,
            ),
            Goal(
                "memory for 100,000 events more, once the buffers are full",
                f"≤ {_MB_PER_100K_MAX:.0f} MB",
                f"{found.later_mb_per_100k:.0f} MB",
                found.later_mb_per_100k <= _MB_PER_100K_MAX,
            ),
            Goal(
                f"memory of all processes after {found.events:,} events (DESIGN §11: "
                f"{_MB_ALONE_MAX:.0f} MB and {_MB_PER_100K_MAX:.0f} for each 100,000)",
                f"≤ {found.all_mb_max:.0f} MB",
                f"{found.steps[-1].all_mb:.0f} MB",
                found.steps[-1].all_mb <= found.all_mb_max,
            ),
        ],
        grids=[
            Grid(
                "Each step more events, through capture, all stages and both indexes",
                ["events in the scope", "events/s", "CPU µs an event", "memory MB"],
                rows,
            )
        ],
        reading=(
            f"The last {found.per_step:,} of {found.events:,} events went through all stages at "
            f"{found.per_step / found.steps[-1].seconds:,.0f} a second; all of them again from the "
            f"log took {found.rebuild_s:.1f} s. Buffers and caches that are bounded came with the "
            f"first {found.per_step:,}: {found.steps[0].all_mb - found.at_start_mb:.0f} MB; "
            f"from there on memory grew by {found.later_mb_per_100k:.0f} MB for 100,000 events. "
            f"Both together are {found.mb_per_100k:.0f} MB for 100,000."
        ),
    )


def draw(found: Found, path: Path) -> None:
    """CPU an event and memory as the scope grows."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    events = [step.events for step in found.steps]
    left.plot(events, [step.cpu_us for step in found.steps], marker="o")
    left.set(xlabel="events in the scope", ylabel="CPU µs an event", ylim=(0, None))
    right.plot(events, [step.all_mb for step in found.steps], marker="o")
    right.set(xlabel="events in the scope", ylabel="memory, MB", ylim=(0, None))
    for axes in (left, right):
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
