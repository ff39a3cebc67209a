"""How fast is a durable capture, and what does group commit gain?

Servers run side by side: the product, the same application with one fsync a request, both again on
a disk that takes longer, and the same HTTP server with nothing behind it. Their turns alternate, so
that a noisy neighbour is noise to all, and before each turn the disk is asked what an fsync costs
just now.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

from bench.calm import Pulse, Window, counted
from bench.disk import fdatasync_ms
from bench.envelopes import envelope_bytes
from bench.figures import Spread, spread
from bench.host import FLOOR, GROUPED, OUT, SINGLE, SLOW_DISK, Broken, Host, Settled
from bench.load import Outcome, press
from bench.report import Goal, Grid, Section
from bench.slow_disk import MORE_MS

NAME = "capture"
CLIENTS = (1, 16, 64)
_BULK_ITEMS = 50
_BULK_CLIENTS = 8
_WARM_S = 0.5
_TICKS = "strata_log_ticks_total"
NAMES = {
    "grouped": "group commit",
    "single": "one fsync a request",
    "slow": f"group commit, fsync {MORE_MS:g} ms slower",
    "slow single": f"one fsync a request, {MORE_MS:g} ms slower",
    "floor": "HTTP alone",
}
_PAIRS = 4
_SLOW_PAIRS = 2
_PLAN = (
    ("floor", 1, 1),
    ("grouped", 1, 1),
    ("single", 1, 1),
    ("grouped", 16, 1),
    ("single", 16, 1),
    ("floor", 64, 1),
    *(("grouped", 64, 1), ("single", 64, 1)) * _PAIRS,
    *(("slow", 64, 1), ("slow single", 64, 1)) * _SLOW_PAIRS,
    ("grouped", _BULK_CLIENTS, _BULK_ITEMS),
)
"""Who, with how many clients, how many events a request. The gain is of pairs: each is shorter."""
STEPS = len(_PLAN) + 1


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement."""

    server: str
    outcome: Outcome
    settled: Settled
    entries_per_commit: float
    fsync: Spread
    is_calm: bool = False
    """Whether the machine was idle before and after."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    fsync: Spread
    turns: list[Turn]
    acked: int
    verified: int

    def of(self, server: str, clients: int, batch: int = 1) -> list[Turn]:
        return [
            turn
            for turn in self.turns
            if (turn.server, turn.outcome.clients, turn.outcome.batch) == (server, clients, batch)
        ]

    def counted(self, server: str, clients: int, batch: int = 1) -> list[Turn]:
        """Those that count where a clock judges: while the machine was idle, if it ever was."""
        return counted([Window(turn, turn.is_calm) for turn in self.of(server, clients, batch)])

    def rate(self, server: str, clients: int, batch: int = 1) -> float:
        return median(turn.outcome.events_per_s for turn in self.counted(server, clients, batch))

    def gains(self, clients: int, ours: str = "grouped", other: str = "single") -> list[float]:
        """What group commit was worth, pair by pair, from the least to the most."""
        pairs = zip(self.of(ours, clients), self.of(other, clients), strict=True)
        return sorted(many.outcome.events_per_s / one.outcome.events_per_s for many, one in pairs)


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """The whole plan, on fresh data directories that are gone afterwards."""
    folders = {name: OUT / f"capture-{name.replace(' ', '-')}" for name in NAMES}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
    try:
        return _measure(folders, seconds, say)
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _measure(folders: dict[str, Path], seconds: float, say: Callable[[str], None]) -> Found:
    turns: list[Turn] = []
    fsyncs: list[float] = []
    pulse = Pulse()
    with (
        Host(GROUPED, folders["grouped"]) as grouped,
        Host(SINGLE, folders["single"]) as single,
        Host(SLOW_DISK, folders["slow"]) as slow,
        Host(SLOW_DISK, folders["slow single"], before=["single"]) as slow_single,
        Host(FLOOR, folders["floor"]) as floor,
    ):
        hosts = {
            "grouped": grouped,
            "single": single,
            "slow": slow,
            "slow single": slow_single,
            "floor": floor,
        }
        for number, (server, clients, batch) in enumerate(_PLAN):
            what = f"bulk of {batch}" if batch > 1 else f"{clients} client{'s' * (clients > 1)}"
            say(f"{what}, {NAMES[server]}")
            run = f"{number}-{clients}x{batch}"
            fsync_ms = fdatasync_ms(OUT, seconds / 20)
            fsyncs += fsync_ms
            length_s = seconds / 2 if clients == 64 else seconds
            load = {"run": run, "clients": clients, "batch": batch, "seconds": length_s}
            was_calm = pulse.settle()
            turn = _turn(server, hosts[server], load, spread(fsync_ms))
            turns.append(msgspec.structs.replace(turn, is_calm=was_calm and pulse.is_calm()))
        say("kill -9 and strata verify")
        ticks = int(grouped.counters().get(_TICKS, 0))
        grouped.kill()
        verified = grouped.verified_entries() - ticks
    acked = sum(turn.outcome.acked for turn in turns if turn.server == "grouped")
    if verified != acked:
        raise Broken(f"{acked} events were acknowledged, {verified} are on the disk")
    return Found(fsync=spread(fsyncs), turns=turns, acked=acked, verified=verified)


def _turn(server: str, host: Host, load: dict[str, Any], fsync: Spread) -> Turn:
    before = host.counters()
    scope = f"user:anna/project:run-{load['run']}"
    outcome, settled = press(host, scope=scope, warm_s=_WARM_S, **load)
    after = host.counters()
    grown = {name: after[name] - before[name] for name in after if name in before}
    entries, commits = grown["strata_log_entries_total"], grown["strata_log_commits_total"]
    heads = int(before["strata_log_head_offset"]), int(after["strata_log_head_offset"])
    _check_stored(outcome, *heads, ticks=int(grown.get(_TICKS, 0)))
    # A commit may hold no entry at all, but the audit rows of who asked.
    if "single" in server and entries > commits * outcome.batch:
        raise Broken(f"the comparison made {commits} commits of {entries} entries")
    return Turn(
        server=server,
        outcome=outcome,
        settled=settled,
        entries_per_commit=entries / commits,
        fsync=fsync,
    )


def _check_stored(outcome: Outcome, head_before: int, head_after: int, *, ticks: int) -> None:
    """The log grew by exactly what was acknowledged, and the answers name exactly those offsets.

    Now and then the server writes a tick of its own among them.
    """
    grown = head_after - head_before
    if grown != outcome.acked + ticks:
        acked = outcome.acked
        raise Broken(f"{acked} events were acknowledged, the log grew by {grown}, {ticks} ticks")
    if not ticks and outcome.offsets not in (None, (head_before + 1, head_after)):
        raise Broken(f"answers name offsets {outcome.offsets}, not ({head_before + 1}, …)")


# ── what it means ────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """The page of these figures."""
    smallest, largest = envelope_bytes()
    sizes = f"envelopes of {smallest} to {largest} bytes, keep-alive, closed loop"
    idle = "medians are of turns in which the machine was idle (`calm.py`), if there were any"
    return Section(
        name=NAME,
        question="How fast is a durable capture, and what does group commit gain?",
        facts=[*facts, sizes, idle],
        goals=_goals(found),
        grids=[_turn_grid(found), _disk_grid(found)],
        reading=_reading(found),
    )


def _goals(found: Found) -> list[Goal]:
    rate = found.rate("grouped", 64)
    slow = median(turn.outcome.latency_ms.p99 for turn in found.counted("grouped", 64))
    alone = found.counted("grouped", 1)[0].outcome.latency_ms.p50
    bulk = found.rate("grouped", _BULK_CLIENTS, _BULK_ITEMS)
    gains = found.gains(64, "slow", "slow single")
    return [
        Goal("durable posts, 64 clients, median turn", "≥ 6,000/s", f"{rate:,.0f}/s", rate >= 6000),
        Goal("p99, 64 clients, median turn", "≤ 25 ms", f"{slow:.1f} ms", slow <= 25),
        Goal("p50, 1 client", "≤ 1 ms", f"{alone:.2f} ms", alone <= 1),
        Goal("bulk of 50, 8 clients", "≥ 30,000 events/s", f"{bulk:,.0f}/s", bulk >= 30000),
        Goal(
            # Where the goal was set, a disk took about that long (ADR 0047).
            f"gain over one fsync a request, an fsync {MORE_MS:g} ms slower",
            "≥ 8×",
            _range(gains),
            median(gains) >= 8,
        ),
        Goal(
            "acknowledged events found after kill -9",
            "all",
            f"{found.verified:,} of {found.acked:,}",
            found.verified == found.acked,
        ),
    ]


def _range(gains: list[float]) -> str:
    return f"{median(gains):.1f}× ({gains[0]:.1f} to {gains[-1]:.1f})"


def _turn_grid(found: Found) -> Grid:
    columns = (
        "server",
        "clients",
        "events/s",
        "p50 ms",
        "p99 ms",
        "max ms",
        "CPU µs a request",
        "of it loop",
        "cores",
        "loader µs",
        "entries a commit",
        "behind",
        "settled s",
        "fdatasync ms",
        "idle",
    )
    rows = [_turn_row(turn) for turn in found.turns]
    return Grid("Turns, in the order they were taken", columns, rows)


def _turn_row(turn: Turn) -> tuple[str, ...]:
    one, latency, name = turn.outcome, turn.outcome.latency_ms, NAMES[turn.server]
    engine = ("–", "–", "–")
    if turn.server != "floor":
        settled = turn.settled
        engine = (
            f"{turn.entries_per_commit:.1f}",
            f"{settled.behind:,}",
            f"{settled.seconds:.2f}",
        )
    return (
        name if one.batch == 1 else f"{name}, bulk of {one.batch}",
        str(one.clients),
        f"{one.events_per_s:,.0f}",
        f"{latency.p50:.2f}",
        f"{latency.p99:.2f}",
        f"{latency.most:.1f}",
        f"{one.server_us:,.0f}",
        f"{one.server_loop_us:,.0f}",
        f"{one.server_cores:.2f}",
        f"{one.loader_us:,.0f}",
        *engine,
        f"{turn.fsync.p50:.2f}",
        "yes" if turn.is_calm else "no",
    )


def _disk_grid(found: Found) -> Grid:
    disk = found.fsync
    a_second = 1000 / mean(disk.quantiles)
    row = (f"{disk.count:,}", f"{a_second:,.0f}", *(f"{value:.2f}" for value in _usual(disk)))
    columns = ("fdatasync of 1 KB appends", "a second", "p50 ms", "p99 ms", "max ms")
    return Grid("The disk alone, before every turn", columns, [row])


def _usual(found: Spread) -> tuple[float, float, float]:
    return found.p50, found.p99, found.most


def _reading(found: Found) -> str:
    turns, lone = found.counted("grouped", 64), found.counted("single", 64)
    shared = mean(turn.entries_per_commit for turn in turns)
    cpu_us = median(turn.outcome.server_us for turn in turns)
    lone_ms = 1000 / found.rate("single", 64)
    disk_ms = median(turn.fsync.p50 for turn in (*turns, *lone))
    bound = "the processor" if cpu_us / 1000 * shared > 2 * disk_ms else "the disk"
    share = found.rate("grouped", 64) / found.rate("floor", 64) * 100
    most = 1 + disk_ms * 1000 / median(turn.outcome.server_loop_us for turn in turns)
    every = [turn.outcome.events_per_s for turn in found.of("grouped", 64)]
    return (
        f"{len(turns)} of {len(every)} turns count; all of them together: {median(every):,.0f} "
        f"posts a second, {min(every):,.0f} to {max(every):,.0f}.\n"
        f"At 64 clients {shared:.0f} requests share an fsync and cost {cpu_us:.0f} µs of server CPU"
        f" each; the disk alone takes {disk_ms:.2f} ms for one, so {bound} sets the pace.\n"
        f"With one fsync a request a commit takes {lone_ms:.2f} ms, and group commit is worth "
        f"{_range(found.gains(64))} on this disk, {median(found.gains(16)):.1f}× at 16 clients; "
        f"sharing nothing but fsyncs could gain {most:.1f}× here. A disk that takes its time is "
        "where it matters, and where its goal is (ADR 0047).\n"
        f"It reaches {share:.0f} % of what the same HTTP server does with nothing behind it."
    )


def draw(found: Found, path: Path) -> None:
    """Throughput side by side, and the latencies of 64 clients."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for at, server in enumerate(("grouped", "single")):
        name = NAMES[server]
        places = [index + (at - 0.5) * 0.38 for index in range(len(CLIENTS))]
        bars = left.bar(places, [found.rate(server, c) for c in CLIENTS], 0.36, label=name)
        left.bar_label(bars, fmt="{:,.0f}", fontsize=8)
        for number, turn in enumerate(found.of(server, 64)):
            quantiles = turn.outcome.latency_ms.quantiles
            share = [index / (len(quantiles) - 1) * 100 for index in range(len(quantiles))]
            label = name if number == 0 else None
            right.plot(quantiles, share, color=f"C{at}", label=label, alpha=1 - number * 0.2)
    left.set_xticks(range(len(CLIENTS)), [str(clients) for clients in CLIENTS])
    left.set_xlabel("clients")
    left.set_ylabel("durable posts a second")
    left.legend(frameon=False, loc="upper left")
    right.axvline(25, color="grey", linestyle=":", label="goal for p99")
    right.set(xscale="log", xlabel="milliseconds, 64 clients", ylabel="% of answers within")
    right.legend(frameon=False)
    right.xaxis.set_major_formatter("{x:g}")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
