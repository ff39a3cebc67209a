"""How soon does a subscriber hear of it, and do a thousand of them all hear everything?"""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.host import GROUPED, OUT, Host
from bench.listen import STAGES, Heard, Listening
from bench.load import Outcome, press
from bench.process import cpu_of, memory_mb
from bench.report import Goal, Grid, Section

NAME = "sse"
STEPS = 5
_MANY = 1000
_SLOW_RATE, _BUSY_RATE, _CROWD_RATE = 20, 500, 2
_WARM_POSTS = 200
_BURST_PER_S = 20
"""Events of the burst for each second a measurement is given: 80,000 deliveries."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One audience, one way of posting, and what was heard."""

    name: str
    subscribers: int
    rate: int
    outcome: Outcome
    heard: Heard
    all_mb: float
    cpu_us: float

    @property
    def deliveries_per_s(self) -> float:
        return self.heard.deliveries / self.heard.span_s


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    rss_start_mb: float
    rss_peak_mb: float
    unloaded: Phase
    busy: Phase
    crowd: Phase
    burst: Phase

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.unloaded, self.busy, self.crowd, self.burst


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """Four audiences of one server, on a fresh data directory that is gone afterwards."""
    folder = OUT / "sse-server"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with Host(GROUPED, folder) as host:
            start_mb = memory_mb(host.pid)[0]
            say("warming up")
            press(host, run="warm", scope="user:anna/project:warm", clients=8, count=_WARM_POSTS)
            say(f"1 subscriber, {_SLOW_RATE} events/s")
            unloaded = _phase(host, "unloaded", 1, _SLOW_RATE, int(_SLOW_RATE * seconds))
            say(f"1 subscriber, {_BUSY_RATE} events/s")
            busy = _phase(host, "busy", 1, _BUSY_RATE, int(_BUSY_RATE * seconds))
            say(f"{_MANY:,} subscribers, {_CROWD_RATE} events/s")
            crowd = _phase(host, "crowd", _MANY, _CROWD_RATE, int(_CROWD_RATE * seconds * 2))
            say(f"{_MANY:,} subscribers, a burst")
            burst = _phase(host, "burst", _MANY, 0, int(_BURST_PER_S * seconds))
            peak_mb = memory_mb(host.pid)[1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Found(
        rss_start_mb=start_mb,
        rss_peak_mb=peak_mb,
        unloaded=unloaded,
        busy=busy,
        crowd=crowd,
        burst=burst,
    )


def _phase(host: Host, name: str, subscribers: int, rate: int, count: int) -> Phase:
    scope = f"user:anna/project:{name}"
    with Listening(host, scope, subscribers) as listening:
        before = cpu_of(host.pid)
        clients = 64 if rate else 8
        outcome, _ = press(host, run=name, scope=scope, clients=clients, rate=rate, count=count)
        heard = listening.reckon(outcome.sent_ns)
        all_mb, used = memory_mb(host.pid)[0], cpu_of(host.pid).since(before)
    return Phase(
        name=name,
        subscribers=subscribers,
        rate=rate,
        outcome=outcome,
        heard=heard,
        all_mb=all_mb,
        cpu_us=used.all_s / heard.deliveries * 1e6,
    )


# ── what it means ────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """The page of these figures."""
    return Section(
        name=NAME,
        question="How soon does a subscriber hear of it, and do a thousand all hear everything?",
        facts=[
            *facts,
            "latencies from the moment the request was due to the frame in the subscriber's hands",
        ],
        goals=_goals(found),
        grids=[_phase_grid(found), _memory_grid(found)],
        reading=_reading(found),
    )


def _goals(found: Found) -> list[Goal]:
    captured = found.busy.heard.captured_ms.p50
    consolidated = found.busy.heard.consolidated_ms.p50
    missing = sum(phase.heard.missing for phase in found.phases)
    posted = f"{_BUSY_RATE} events/s"
    return [
        Goal(f"event → captured, {posted}", "p50 ≤ 10 ms", f"{captured:.2f} ms", captured <= 10),
        Goal(
            f"event → consolidated, {posted}",
            "p50 ≤ 200 ms",
            f"{consolidated:.2f} ms",
            consolidated <= 200,
        ),
        Goal(f"missing with {_MANY:,} subscribers", "0", f"{missing:,}", missing == 0),
    ]


def _phase_grid(found: Found) -> Grid:
    columns = (
        "posted",
        "subscribers",
        "events",
        "deliveries",
        "missing",
        "deliveries/s",
        "captured p50 ms",
        "p99 ms",
        "consolidated p50 ms",
        "p99 ms",
        "CPU µs a delivery",
    )
    rows = []
    for phase in found.phases:
        heard = phase.heard
        rows.append(
            (
                f"{phase.rate} events/s" if phase.rate else "as fast as 8 clients can",
                f"{phase.subscribers:,}",
                f"{phase.outcome.acked:,}",
                f"{heard.deliveries:,}",
                f"{heard.missing:,}",
                f"{phase.deliveries_per_s:,.0f}",
                f"{heard.captured_ms.p50:.2f}",
                f"{heard.captured_ms.p99:.2f}",
                f"{heard.consolidated_ms.p50:.2f}",
                f"{heard.consolidated_ms.p99:.2f}",
                f"{phase.cpu_us:,.0f}",
            )
        )
    title = f"Phases; each event is {len(STAGES)} deliveries to each subscriber, in order, once"
    return Grid(title, columns, rows)


def _memory_grid(found: Found) -> Grid:
    each_kb = (found.crowd.all_mb - found.busy.all_mb) / _MANY * 1000
    rows = [
        ("at start", f"{found.rss_start_mb:,.0f}"),
        ("1 subscriber, after 500 events/s", f"{found.busy.all_mb:,.0f}"),
        (f"{_MANY:,} subscribers ({each_kb:,.0f} KB each)", f"{found.crowd.all_mb:,.0f}"),
        ("peak", f"{found.rss_peak_mb:,.0f}"),
    ]
    return Grid("Memory of the server", ("when", "memory MB"), rows)


def _reading(found: Found) -> str:
    alone, crowd, burst = (p.heard.captured_ms for p in (found.unloaded, found.crowd, found.burst))
    return (
        f"All {sum(phase.heard.deliveries for phase in found.phases):,} deliveries arrived, once "
        f"and in order.\n"
        f"Unloaded, `captured` is heard {alone.p50:.1f} ms after the post (p99 {alone.p99:.1f}); "
        f"of {_MANY:,} subscribers half hear it within {crowd.p50:.0f} ms (p99 {crowd.p99:.0f}).\n"
        f"In a burst the server makes {found.burst.deliveries_per_s:,.0f} deliveries a second, at "
        f"{found.burst.cpu_us:.0f} µs of CPU each, and half of the subscribers wait "
        f"{burst.p50:.0f} ms or more for a `captured`."
    )


def draw(found: Found, path: Path) -> None:
    """How soon `captured` is heard, and the burst as it arrives."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    labels = {
        "unloaded": f"1 subscriber, {_SLOW_RATE} events/s",
        "busy": f"1 subscriber, {_BUSY_RATE} events/s",
        "crowd": f"{_MANY:,} subscribers, {_CROWD_RATE} events/s",
    }
    for phase in found.phases[:3]:
        quantiles = phase.heard.captured_ms.quantiles
        share = [index / (len(quantiles) - 1) * 100 for index in range(len(quantiles))]
        left.plot(quantiles, share, label=labels[phase.name])
    left.axvline(10, color="grey", linestyle=":", label="goal for p50, 500 events/s")
    left.set(xscale="log", xlabel="milliseconds from post to `captured`", ylabel="% within")
    left.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    left.xaxis.set_major_formatter("{x:g}")
    arrivals = found.burst.heard.arrivals
    right.step([tenth / 10 for tenth in range(len(arrivals))], [n * 10 for n in arrivals])
    right.set(
        xlabel=f"seconds since the first of {found.burst.outcome.acked} events",
        ylabel=f"deliveries a second, {_MANY:,} subscribers",
        ylim=(0, None),
    )
    right.yaxis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
