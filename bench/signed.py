"""What does it cost to know who is calling?  Captures with a token beside captures without.

Two servers of the product run side by side, one that asks for tokens and one that does not; their
turns alternate in pairs, and the pairs in order. Run as `python -m bench.signed` it is the loader:
that of `bench.load`, whose requests show tokens.
"""

import contextlib
import http.client
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Final

import msgspec

from api.issuer.signing import Wish, issuers_file, make_key, mint
from api.issuer.store import Store
from bench import load
from bench.disk import fdatasync_ms
from bench.envelopes import ACTOR, VARIETY, templates
from bench.figures import Spread, spread
from bench.host import GROUPED, OUT, ROOT, Broken, Host, Settled
from bench.load import Load, Outcome, press
from bench.report import Goal, Grid, Section

NAME: Final = "signed"
NAMES: Final = {"signed": "with a token", "unsigned": "without"}
_CLIENTS: Final = 64
_PAIRS: Final = 6
_WARM_S: Final = 0.5
_PLAN: Final = tuple(
    itertools.chain.from_iterable(
        ("unsigned", "signed") if pair % 2 else ("signed", "unsigned") for pair in range(_PAIRS)
    )
)
STEPS: Final = len(_PLAN) + 1
_TENANT: Final = "bench"
_PRESET: Final = "on_prem_enterprise"
_TOKENS: Final = "BENCH_TOKENS"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement."""

    server: str
    outcome: Outcome
    settled: Settled
    fsync: Spread


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    turns: list[Turn]
    token_bytes: int
    acked: int
    verified: int

    def of(self, server: str) -> list[Turn]:
        return [turn for turn in self.turns if turn.server == server]

    def rate(self, server: str) -> float:
        return median(turn.outcome.events_per_s for turn in self.of(server))

    def cpu_us(self, server: str) -> float:
        return median(turn.outcome.server_us for turn in self.of(server))

    def shares(self) -> list[float]:
        """Posts with a token for each without, pair by pair, from the least to the most."""
        pairs = zip(self.of("signed"), self.of("unsigned"), strict=True)
        return sorted(one.outcome.events_per_s / other.outcome.events_per_s for one, other in pairs)


# ── measuring ────────────────────────────────────────────────────────────────────────────────


class SignedHost(Host):
    """A server that asks for tokens: those of its callers, and its operator's."""

    def __init__(self, data: Path, tokens: list[str], operator: str) -> None:
        super().__init__(GROUPED, data)
        self.tokens = tokens
        self._operator = operator

    def ask(self, method: str, path: str) -> bytes:
        """One request of the operator's, outside any measurement."""
        shown = {"Authorization": f"Bearer {self._operator}", "X-Cortex-Actor": ACTOR}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=90)
        try:
            connection.request(method, path, headers=shown)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise Broken(f"{method} {path} answered {response.status}: {body[:500]!r}")
        return body


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """The whole plan, on fresh data directories that are gone afterwards."""
    folders = [OUT / f"signed-{name}" for name in ("issuer", *NAMES)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        return _measure(*folders, seconds, say)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _measure(
    issuer: Path, signed: Path, unsigned: Path, seconds: float, say: Callable[[str], None]
) -> Found:
    tokens, operator, issuers = _minted(issuer)
    turns: list[Turn] = []
    with contextlib.ExitStack() as stack:
        with _environment(
            CORTEX_DEPLOYMENT_PRESET=_PRESET,
            CORTEX_ISSUERS_FILE=str(issuers),
            CORTEX_TENANTS=f"{_TENANT},system",
        ):
            asking = stack.enter_context(SignedHost(signed, tokens, operator))
        open_to_all = stack.enter_context(Host(GROUPED, unsigned))
        for number, server in enumerate(_PLAN):
            say(f"{_CLIENTS} clients, {NAMES[server]}")
            host = asking if server == "signed" else open_to_all
            fsync = spread(fdatasync_ms(OUT, seconds / 20))
            turns.append(_turn(server, host, f"{number}", seconds / 2, fsync))
        say("kill -9 and strata verify")
        asking.kill()
        verified = asking.verified_entries()
    acked = sum(turn.outcome.acked for turn in turns if turn.server == "signed")
    if verified != acked:
        raise Broken(f"{acked} events were acknowledged, {verified} are on the disk")
    return Found(turns=turns, token_bytes=len(tokens[0]), acked=acked, verified=verified)


def _minted(folder: Path) -> tuple[list[str], str, Path]:
    """An issuer's tokens: a caller's, each with an id of its own, and the operator's; its keys."""
    store = Store.create(folder / "issuer.db", "bench")
    try:
        make_key(store)
        caller = Wish(actor=ACTOR, tenant=_TENANT, ttl="12h")
        tokens = [mint(store, caller)[0] for _ in range(VARIETY)]
        operator, _ = mint(store, Wish(actor=ACTOR, tenant="system", ttl="12h"))
        issuers = folder / "issuers.yaml"
        issuers.write_text(issuers_file(store))
    finally:
        store.close()
    return tokens, operator, issuers


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """What children started in this block find in their environment."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _turn(server: str, host: Host, run: str, length_s: float, fsync: Spread) -> Turn:
    head_before = int(host.counters()["strata_log_head_offset"])
    load_ = {"run": run, "scope": f"{ACTOR}/project:run-{run}", "clients": _CLIENTS}
    send = _press_with_tokens if isinstance(host, SignedHost) else press
    outcome, settled = send(host, **load_, seconds=length_s, warm_s=_WARM_S)
    grown = settled.head - head_before
    if grown != outcome.acked:
        raise Broken(f"{outcome.acked} events were acknowledged, the log grew by {grown}")
    return Turn(server=server, outcome=outcome, settled=settled, fsync=fsync)


# ── the loader ───────────────────────────────────────────────────────────────────────────────


def _press_with_tokens(host: SignedHost, **load_: object) -> tuple[Outcome, Settled]:
    """As `press`, with this module for a loader."""
    spec = Load(host=host.host, port=host.port, server_pid=host.pid, **load_)  # type: ignore[arg-type]
    with (
        _environment(**{_TOKENS: json.dumps(host.tokens)}),
        subprocess.Popen(
            [sys.executable, "-m", "bench.signed"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as loader,
    ):
        assert loader.stdin is not None
        assert loader.stdout is not None
        loader.stdin.write(msgspec.msgpack.encode(spec))
        loader.stdin.close()
        settled = host.settle() if loader.stdout.readline() else None
        said = loader.stdout.read()
    if loader.returncode or settled is None:
        raise Broken("the load failed; its complaint is above")
    return msgspec.msgpack.decode(said, type=Outcome), settled


def _with_tokens(host: str, scope: str, batch: int) -> list[list[bytes]]:
    """The requests of `bench.envelopes`, each with a token of its own."""
    tokens = json.loads(os.environ[_TOKENS])
    return [
        [first.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1), *rest]
        for (first, *rest), token in zip(templates(host, scope, batch), tokens, strict=True)
    ]


# ── what it means ────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """The page of these figures."""
    tokens = f"{VARIETY} PASETO v4.public tokens of {found.token_bytes} bytes, preset {_PRESET}"
    return Section(
        name=NAME,
        question="What does it cost to know who is calling?",
        facts=[*facts, tokens],
        goals=_goals(found),
        grids=[_turn_grid(found)],
        reading=_reading(found),
    )


def _goals(found: Found) -> list[Goal]:
    shares = found.shares()
    share = median(shares)
    measured = f"{share:.2f} ({shares[0]:.2f} to {shares[-1]:.2f})"
    return [
        Goal("posts with a token for each without, median pair", "≥ 0.80", measured, share >= 0.8),
        Goal(
            "acknowledged events found after kill -9",
            "all",
            f"{found.verified:,} of {found.acked:,}",
            found.verified == found.acked,
        ),
    ]


def _turn_grid(found: Found) -> Grid:
    columns = (
        "callers",
        "events/s",
        "p50 ms",
        "p99 ms",
        "CPU µs a request",
        "of it loop",
        "cores",
        "loader µs",
        "fdatasync ms",
    )
    rows = [_turn_row(turn) for turn in found.turns]
    return Grid(f"Turns of {_CLIENTS} clients, in the order they were taken", columns, rows)


def _turn_row(turn: Turn) -> tuple[str, ...]:
    one = turn.outcome
    return (
        NAMES[turn.server],
        f"{one.events_per_s:,.0f}",
        f"{one.latency_ms.p50:.2f}",
        f"{one.latency_ms.p99:.2f}",
        f"{one.server_us:,.0f}",
        f"{one.server_loop_us:,.0f}",
        f"{one.server_cores:.2f}",
        f"{one.loader_us:,.0f}",
        f"{turn.fsync.p50:.2f}",
    )


def _reading(found: Found) -> str:
    rates = [found.rate(server) for server in NAMES]
    signed_us, unsigned_us = (found.cpu_us(server) for server in NAMES)
    loader_us = mean(turn.outcome.loader_us for turn in found.turns)
    return (
        f"With a token {rates[0]:,.0f} posts a second, without {rates[1]:,.0f} (medians); a post "
        f"costs {signed_us:.0f} µs of server CPU with one and {unsigned_us:.0f} µs without.\n"
        "A token's signature is checked once and remembered for a minute: what is measured is "
        "finding it again.\n"
        f"The loader takes {loader_us:.0f} µs a request, of the same cores."
    )


def draw(found: Found, path: Path) -> None:
    """Pair by pair, side by side."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for at, server in enumerate(("unsigned", "signed")):
        rates = [turn.outcome.events_per_s for turn in found.of(server)]
        places = [index + (at - 0.5) * 0.38 for index in range(_PAIRS)]
        bars = axes.bar(places, rates, 0.36, label=NAMES[server])
        axes.bar_label(bars, fmt="{:,.0f}", fontsize=8)
    axes.set_xticks(range(_PAIRS), [str(pair + 1) for pair in range(_PAIRS)])
    axes.set(xlabel="pair of turns", ylabel="durable posts a second, 64 clients")
    axes.margins(y=0.2)
    axes.legend(frameon=False, loc="upper left", ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    assert load.templates is templates, "the loader makes its requests elsewhere"
    load.templates = _with_tokens
    load.main()
