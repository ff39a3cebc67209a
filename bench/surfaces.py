"""How fast is a dialect over the one log, beside the system whose contract it keeps?

One client on one connection asks CogniRelay's dialect for what an agent asks at the start and at
the end of a session. The original commits to git twice for an upsert; its figures were measured
once on this kind of machine and stand beside ours, and two commits are timed anew in every run, so
that the load of the day can be told from the difference.
Then two servers are asked in turn, one of which holds many more documents of other subjects.
"""

import itertools
import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from bench.client import Client
from bench.disk import fdatasync_ms
from bench.figures import Spread, spread
from bench.host import GROUPED, OUT, Host
from bench.process import cpu_of
from bench.report import Goal, Grid, Section

NAME: Final = "surfaces"
_MOUNT: Final = "/cognirelay"
_LISTED: Final = 62
"""Capsules that a listing sorts, as many as when the original was measured."""
_GAIN: Final = 20.0
_FEW, _MANY = 100, 5_000
"""Documents of other subjects, a third each of capsules, scheduled items and tasks."""
_GROWTH: Final = 1.5
_IDLE_S: Final = 0.1
"""Processor seconds a second of a server that only waits."""
_FULL_S: Final = 3.0
"""A shorter run fills the second server with a tenth of that."""
_EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)

ORIGINAL_MS: Final = {
    "list, sort=salience": 76.0,
    "read, view=startup": 19.0,
    "context/retrieve": 16.0,
    "upsert, same subject": 158.0,
    "upsert, new subject": 79.0,
    "schedule create": 49.0,
}
"""The original's p50 in milliseconds, one run on a shared machine of two cores: read as ratios.

In this order, because reads look at all capsules there are, and upserts make thousands.
"""
STEPS: Final = len(ORIGINAL_MS) + 2

Request = tuple[str, dict[str, Any] | None]
"""Path and body; without a body it is a GET."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement."""

    what: str
    latency_ms: Spread
    fsync: Spread


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """One call among few and among many documents of others."""

    what: str
    is_scoped: bool
    few_ms: Spread
    many_ms: Spread
    few_cpu_ms: float
    many_cpu_ms: float

    @property
    def ratio(self) -> float:
        """How many times the processor time a request takes among many."""
        return self.many_cpu_ms / self.few_cpu_ms


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    turns: list[Turn]
    growth: list[Growth]
    others: tuple[int, int]
    commits_ms: Spread
    capsule_bytes: int

    def p50(self, what: str) -> float:
        return next(turn.latency_ms.p50 for turn in self.turns if turn.what == what)

    def gain(self, what: str) -> float:
        """How many times faster than the original was."""
        return ORIGINAL_MS[what] / self.p50(what)


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """The whole plan, on a fresh data directory that is gone afterwards."""
    folder = OUT / "surfaces-data"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with Host(GROUPED, folder) as host:
            turns = [_turn(host, what, seconds, say) for what in ORIGINAL_MS]
        say("two commits to git")
        commits = _two_commits(seconds)
        say("among many")
        others = (_FEW, _MANY if seconds >= _FULL_S else _MANY // 10)
        growth = _growth(seconds / 2, others)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size = len(json.dumps(_capsule("size", 0)))
    return Found(turns=turns, growth=growth, others=others, commits_ms=commits, capsule_bytes=size)


def _turn(host: Host, what: str, seconds: float, say: Callable[[str], None]) -> Turn:
    say(what)
    host.settle()
    fsync = spread(fdatasync_ms(OUT, seconds / 20))
    spent: list[float] = []
    with Client(host) as caller:
        requests = _REQUESTS[what](caller)
        until = time.perf_counter() + seconds
        for request in requests:
            started = time.perf_counter()
            _post(caller, request)
            ended = time.perf_counter()
            spent.append((ended - started) * 1000)
            if ended > until:
                break
    return Turn(what=what, latency_ms=spread(spent), fsync=fsync)


def _post(caller: Client, request: Request) -> None:
    path, body = request
    if body is None:
        caller.get(_MOUNT + path)
    else:
        caller.post(_MOUNT + path, body)


# ── among many ───────────────────────────────────────────────────────────────────────────────


def _growth(seconds: float, others: tuple[int, int]) -> list[Growth]:
    """The same calls of two servers in turn: whatever else the machine does, both feel it."""
    folders = [OUT / f"surfaces-{count}" for count in others]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        with Host(GROUPED, folders[0]) as few, Host(GROUPED, folders[1]) as many:
            for host, count in zip((few, many), others, strict=True):
                with Client(host) as caller:
                    for request in _populated(count):
                        _post(caller, request)
                _rest(host)
            with Client(few) as one, Client(many) as other:
                pairs = ((few, one), (many, other))
                return [
                    _compared(what, pairs, request, seconds)
                    for what, request in (_SCOPED | _WHOLE).items()
                ]
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _rest(host: Host) -> None:
    """Wait until nothing is projected or indexed any more."""
    host.settle()
    used = math.inf
    while used > _IDLE_S:
        before = cpu_of(host.pid).all_s
        time.sleep(1)
        used = cpu_of(host.pid).all_s - before


def _compared(
    what: str, pairs: Sequence[tuple[Host, Client]], request: Request, seconds: float
) -> Growth:
    spent: tuple[list[float], list[float]] = ([], [])
    used = [cpu_of(host.pid).all_s for host, _ in pairs]
    until = time.perf_counter() + seconds
    while not spent[1] or time.perf_counter() < until:
        for (_, caller), times in zip(pairs, spent, strict=True):
            started = time.perf_counter()
            _post(caller, request)
            times.append((time.perf_counter() - started) * 1000)
    each = [
        (cpu_of(host.pid).all_s - before) * 1000 / len(times)
        for (host, _), before, times in zip(pairs, used, spent, strict=True)
    ]
    few, many = map(spread, spent)
    return Growth(
        what=what,
        is_scoped=what in _SCOPED,
        few_ms=few,
        many_ms=many,
        few_cpu_ms=each[0],
        many_cpu_ms=each[1],
    )


def _populated(others: int) -> Iterator[Request]:
    """What belongs to one thread, and what belongs to many others."""
    due = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    names = ["mine", *(f"other-{number}" for number in range(others // 3))]
    for number, name in enumerate(names):
        path, body = _upsert(name, number)
        assert body is not None
        body["capsule"]["thread_descriptor"] = {"label": name, "keywords": [name]}
        yield path, body
        item = {"kind": "reminder", "title": "look again", "due_at": due, "thread_id": name}
        yield "/v1/schedule/items", item
        task = {"task_id": name, "title": "go on", "owner_peer": "bench", "thread_id": name}
        yield "/v1/tasks", task


_MINE: Final = {"subject_kind": "thread", "subject_id": "mine"}
_SCOPED: Final[dict[str, Request]] = {
    "read, view=startup": ("/v1/continuity/read", {**_MINE, "view": "startup"}),
    "context/retrieve": ("/v1/context/retrieve", {**_MINE, "task": "go on with the rollout"}),
    "schedule of a thread": ("/v1/schedule/items?thread_id=mine", None),
    "list, keyword": ("/v1/continuity/list", {"keyword": "mine"}),
}
_WHOLE: Final[dict[str, Request]] = {
    "list, sort=salience, 50 of all": ("/v1/continuity/list", {"sort": "salience"}),
    "schedule, 50 of all": ("/v1/schedule/items", None),
}
"""What asks about everything looks at everything."""


# ── what is asked ────────────────────────────────────────────────────────────────────────────


def _stamp(number: int) -> str:
    return (_EPOCH + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _capsule(subject_id: str, number: int) -> dict[str, Any]:
    """A capsule as an agent writes one: every list it needs, sentences of usual length."""
    said = [f"{what} number {number} of {subject_id}, as it stands today" for what in _MATTERS]
    return {
        "subject_kind": "thread",
        "subject_id": subject_id,
        "updated_at": _stamp(number),
        "verified_at": _stamp(number),
        "source": {"producer": "bench", "update_reason": "manual", "inputs": []},
        "continuity": {
            "top_priorities": said[:4],
            "active_concerns": said[2:5],
            "active_constraints": said[1:5],
            "open_loops": said[3:],
            "stance_summary": f"Go on with {subject_id}: measure first, then change one thing.",
            "drift_signals": said[:2],
            "working_hypotheses": said[4:],
            "session_trajectory": [f"step {number}"],
        },
        "confidence": {"continuity": 0.8, "relationship_model": 0.5},
    }


_MATTERS: Final = (
    "the migration of the index",
    "the review of the retry policy",
    "the latency of small writes",
    "the budget of the next release",
    "the question of who owns the schema",
    "the rollout to the second region",
)


def _upsert(subject_id: str, number: int) -> Request:
    capsule = _capsule(subject_id, number)
    subject = {"subject_kind": "thread", "subject_id": subject_id}
    return "/v1/continuity/upsert", {**subject, "capsule": capsule}


def _new_subjects(caller: Client) -> Iterator[Request]:
    del caller
    return (_upsert(f"new-{number}", number) for number in itertools.count())


def _one_subject(caller: Client) -> Iterator[Request]:
    del caller
    return (_upsert("same", number) for number in itertools.count())


def _reads(caller: Client) -> Iterator[Request]:
    del caller
    body = {"subject_kind": "thread", "subject_id": "listed-1", "view": "startup"}
    return itertools.repeat(("/v1/continuity/read", body))


def _orientations(caller: Client) -> Iterator[Request]:
    del caller
    subject = {"subject_kind": "thread", "subject_id": "listed-1"}
    body = {"task": "go on with the rollout to the second region", **subject}
    return itertools.repeat(("/v1/context/retrieve", body))


def _listings(caller: Client) -> Iterator[Request]:
    """As many capsules as the original had."""
    for number in range(_LISTED):
        _post(caller, _upsert(f"listed-{number}", number))
    return itertools.repeat(("/v1/continuity/list", {"sort": "salience", "limit": 200}))


def _reminders(caller: Client) -> Iterator[Request]:
    del caller
    due = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        ("/v1/schedule/items", {"kind": "reminder", "title": f"look again {at}", "due_at": due})
        for at in itertools.count()
    )


_REQUESTS: Final[dict[str, Callable[[Client], Iterator[Request]]]] = {
    "list, sort=salience": _listings,
    "read, view=startup": _reads,
    "context/retrieve": _orientations,
    "upsert, same subject": _one_subject,
    "upsert, new subject": _new_subjects,
    "schedule create": _reminders,
}


# ── what the original does ───────────────────────────────────────────────────────────────────


def _two_commits(seconds: float) -> Spread:
    """Milliseconds of two commits of one file each: a capsule, and its fallback."""
    if shutil.which("git") is None:
        return spread([])
    spent: list[float] = []
    with tempfile.TemporaryDirectory(dir=OUT) as place:
        folder = Path(place)
        _git(folder, "init", "--quiet")
        until = time.perf_counter() + seconds
        for number in itertools.count():
            started = time.perf_counter()
            for name in ("capsule.json", "fallback.json"):
                (folder / name).write_text(json.dumps(_capsule("same", number)))
                _git(folder, "add", name)
                _git(folder, "commit", "--quiet", "--message", f"{name} {number}")
            ended = time.perf_counter()
            spent.append((ended - started) * 1000)
            if ended > until:
                break
    return spread(spent)


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


# ── what it means ────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """The page of these figures."""
    sizes = f"capsules of {found.capsule_bytes:,} bytes, one client, keep-alive, closed loop"
    return Section(
        name=NAME,
        question="How fast is a dialect, beside the system whose contract it keeps?",
        facts=[*facts, sizes],
        goals=_goals(found) + _growth_goals(found),
        grids=[_grid(found), _growth_grid(found)],
        reading=_reading(found),
    )


def _goals(found: Found) -> list[Goal]:
    return [
        Goal(
            f"{what}, p50, against {ORIGINAL_MS[what]:.0f} ms of the original",
            f"≥ {_GAIN:.0f}×",
            f"{found.gain(what):.0f}× ({found.p50(what):.2f} ms)",
            found.gain(what) >= _GAIN,
        )
        for what in ORIGINAL_MS
        if what.startswith("upsert")
    ]


def _growth_goals(found: Found) -> list[Goal]:
    few, many = found.others
    return [
        Goal(
            f"{one.what}, processor time among {many:,} documents of others, to {few}",
            f"≤ {_GROWTH}×",
            f"{one.ratio:.2f}×",
            one.ratio <= _GROWTH,
        )
        for one in found.growth
        if one.is_scoped
    ]


def _growth_grid(found: Found) -> Grid:
    few, many = found.others
    each = [f"{what}, {n:,}" for what in ("p50 ms", "processor ms") for n in (few, many)]
    columns = ("call", "requests", *each, "×")
    rows = [
        (
            one.what,
            f"{one.few_ms.count:,}",
            f"{one.few_ms.p50:.2f}",
            f"{one.many_ms.p50:.2f}",
            f"{one.few_cpu_ms:.2f}",
            f"{one.many_cpu_ms:.2f}",
            f"{one.ratio:.2f}",
        )
        for one in found.growth
    ]
    return Grid("The same calls of two servers in turn, by documents of others", columns, rows)


def _grid(found: Found) -> Grid:
    columns = ("call", "requests", "p50 ms", "p99 ms", "max ms", "original p50 ms", "×")
    rows = [
        (
            turn.what,
            f"{turn.latency_ms.count:,}",
            f"{turn.latency_ms.p50:.2f}",
            f"{turn.latency_ms.p99:.2f}",
            f"{turn.latency_ms.most:.1f}",
            f"{ORIGINAL_MS[turn.what]:.0f}",
            f"{found.gain(turn.what):.0f}",
        )
        for turn in found.turns
    ]
    commits = found.commits_ms
    last = ("two commits to git, now", f"{commits.count:,}", f"{commits.p50:.2f}")
    rows.append((*last, f"{commits.p99:.2f}", f"{commits.most:.1f}", "–", "–"))
    return Grid("Calls, in the order they were made", columns, rows)


def _reading(found: Found) -> str:
    ours = found.p50("upsert, same subject")
    disk = median(turn.fsync.p50 for turn in found.turns)
    return (
        f"An upsert of a known subject takes {ours:.2f} ms, of which the disk alone takes "
        f"{disk:.2f} ms for its one fsync; two commits to git, which is what the original makes of "
        f"one, take {found.commits_ms.p50:.0f} ms on this machine just now, before it has done "
        "anything else.\n"
        "The original's figures are of one run on a shared machine of two cores (79 and 158 ms for "
        "upserts beside 19 ms for reads): compare the ratios, not the times."
    )


def draw(found: Found, path: Path) -> None:
    """Ours and the original's, call by call."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    names = [turn.what for turn in found.turns]
    series = {
        "here": [found.p50(name) for name in names],
        "the original": [ORIGINAL_MS[name] for name in names],
    }
    for at, (label, values) in enumerate(series.items()):
        places = [index + (at - 0.5) * 0.38 for index in range(len(names))]
        bars = axes.barh(places, values, 0.36, label=label)
        axes.bar_label(bars, fmt="{:.2g}", fontsize=8, padding=2)
    axes.axvline(found.commits_ms.p50, color="grey", linestyle=":", label="two commits to git")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="milliseconds, p50")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
