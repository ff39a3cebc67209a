"""Does recall find the right things?  Corpora replayed and every question asked, over HTTP.

No language model anywhere: a question is answered well when its evidence is ranked high. Plain BM25
and vectors alone are ranked beside it in the same run. With `CORTEX_EMBEDDER=onnx` in the
environment the extra model is measured, against bars of its own, on a page of its own.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

from bench.baselines import Plain
from bench.client import Client
from bench.corpora import Conversation, Corpus, Question, corpora, missing
from bench.figures import Spread, spread
from bench.host import GROUPED, OUT, Host
from bench.judge import MEASURES, SESSION_MEASURES, Answered, Judged, by_category, judge
from bench.report import Goal, Grid, Section
from engine.recall.rank import IN_CONTEXT, WEIGHTS

NAME = "quality"
STEPS = 3 * 3
METHODS = ("recall", "BM25", "vectors")
_BATCH = 500
_DEEP = 50
"""How many events are ranked for judging; the pack of a caller has its own caps and budget."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus, asked."""

    corpus: str
    about: str
    digest: str
    events: int
    questions: int
    answers: dict[str, list[Answered]]
    packed: list[Answered]
    """What the default pack holds of the evidence, budget and all."""
    pack_tokens: Spread
    took_ms: Spread
    ingested_per_s: float
    legs: dict[str, float]
    """Of each channel, the median of how many candidates it brought."""
    live: float
    """Share of questions, in percent, for which both words and meaning brought some."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured, and with what."""

    runs: list[Ran]
    embedder: str
    extractor: str
    documents: int
    config: str

    @property
    def is_extra(self) -> bool:
        """Whether the vectors are those of the extra [onnx]."""
        return self.embedder.startswith("bge-")


sample: int | None = None
"""So many questions of each corpus; None is all of them. The command line sets it."""

only: str | None = None
"""The corpus that is asked; None is all of them. The command line sets it."""


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """Every corpus, into one server; `seconds` is not asked: a question takes what it takes."""
    del seconds
    folder = OUT / "quality-data"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with Host(GROUPED, folder) as host:
            chosen = corpora(sample)
            names = [only] if only else list(chosen)
            runs = [_run(host, chosen[name](), say) for name in names]
            health = host.health()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    embedder = str(health["embedder"])
    told = f"{WEIGHTS}|{IN_CONTEXT}|{embedder}|{health['extractor']}|{[run.digest for run in runs]}"
    return Found(
        runs=runs,
        embedder=embedder,
        extractor=str(health["extractor"]),
        documents=int(health["index"]["documents"]),
        config=hashlib.sha256(told.encode()).hexdigest()[:12],
    )


# ── running ──────────────────────────────────────────────────────────────────────────────────


def _run(host: Host, corpus: Corpus, say: Callable[[str], None]) -> Ran:
    events = sum(len(chat.turns) for chat in corpus.conversations)
    questions = [(chat, one) for chat in corpus.conversations for one in chat.questions]
    with Client(host) as client:
        say(f"{corpus.name}: {events:,} events")
        started = time.perf_counter()
        for chat in corpus.conversations:
            _ingest(client, corpus, chat)
        host.settle()
        _wait_for_index(host)
        ingested_s = time.perf_counter() - started
        say(f"{corpus.name}: {len(questions)} questions")
        asked = [_ask(client, corpus, chat, one) for chat, one in questions]
    say(f"{corpus.name}: BM25 and vectors alone")
    plain = [row for chat in corpus.conversations for row in _plain(chat)]
    ran = Ran(
        corpus=corpus.name,
        about=corpus.about,
        digest=corpus.digest,
        events=events,
        questions=len(questions),
        answers={
            "recall": [one.answer for one in asked],
            "BM25": [words for words, _ in plain],
            "vectors": [vectors for _, vectors in plain],
        },
        packed=[one.packed for one in asked],
        pack_tokens=spread([one.tokens for one in asked]),
        took_ms=spread([one.took_ms for one in asked]),
        ingested_per_s=events / ingested_s,
        legs={name: median(one.hits.get(name, 0) for one in asked) for name in asked[0].hits},
        live=100 * mean(bool(one.hits["words"] and one.hits["meaning"]) for one in asked),
    )
    _keep_ranked(ran)
    return ran


def _ingest(client: Client, corpus: Corpus, chat: Conversation) -> None:
    for start in range(0, len(chat.turns), _BATCH):
        items = [
            {
                "modality": "conversation",
                "observed_actor": {"id": turn.actor, "session": turn.session},
                "content": {"kind": "message", "role": turn.role, "text": turn.text},
                "context": {"observed_at": turn.at.isoformat()},
                "idempotency_key": f"{corpus.name}/{chat.id}/{turn.id}",
            }
            for turn in chat.turns[start : start + _BATCH]
            if turn.text.strip()
        ]
        client.post("/v1/experience/bulk", {"scope": _scope(corpus, chat), "items": items})


def _wait_for_index(host: Host) -> None:
    while host.health()["index"]["lag_entries"]:
        time.sleep(0.2)


def _scope(corpus: Corpus, chat: Conversation) -> str:
    return f"bench:{corpus.name}/chat:{chat.id}"


class _Asked(msgspec.Struct, frozen=True):
    answer: Answered
    packed: Answered
    tokens: int
    took_ms: float
    hits: dict[str, int]


def _ask(client: Client, corpus: Corpus, chat: Conversation, question: Question) -> _Asked:
    """Once to see the ranking deep enough to judge it, once as a caller would."""
    asked = {
        "scope": _scope(corpus, chat),
        "view": "local",
        "query": question.text,
        "temporal": {"reference_date": question.at.isoformat()},
    }
    deep = client.post(
        "/v1/recall",
        asked
        | {
            "include": ["events"],
            "exclude_content": True,
            "diagnostics": "summary",
            "budgets": {"max_tokens": 200_000, "per_layer_limits": {"events": _DEEP}},
        },
    )
    started = time.perf_counter()
    usual = client.post("/v1/recall", asked)
    took_ms = (time.perf_counter() - started) * 1000
    gathered = next(step for step in deep["provenance"]["trail"] if step["phase"] == "gather")
    return _Asked(
        _answered(question, _ranked(deep)),
        _answered(question, _ranked(usual)),
        usual["budget"]["used_tokens"],
        took_ms,
        gathered["hits"],
    )


def _ranked(pack: dict[str, Any]) -> list[tuple[str, str]]:
    """(turn, session) of the events of a pack, best first."""
    return [
        (event["idempotency_key"].rpartition("/")[2], event["observed_actor"]["session"])
        for event in pack["layers"]["events"]
    ]


def _answered(question: Question, ranked: Sequence[tuple[str, str]]) -> Answered:
    return Answered(
        question=question.id,
        category=question.category,
        ranked=[turn for turn, _ in ranked],
        evidence=sorted(question.evidence),
        sessions=sorted(question.sessions),
        ranked_sessions=[session for _, session in ranked],
    )


def _plain(chat: Conversation) -> list[tuple[Answered, Answered]]:
    plain = Plain(chat.turns)
    session = {turn.id: turn.session for turn in chat.turns}
    return [
        (
            _answered(one, [(t, session[t]) for t in plain.by_words(one.text, _DEEP)]),
            _answered(one, [(t, session[t]) for t in plain.by_meaning(one.text, _DEEP)]),
        )
        for one in chat.questions
    ]


def _keep_ranked(ran: Ran) -> None:
    """The ranked ids of every question, for whoever wants to judge again."""
    for method, answers in ran.answers.items():
        lines = [msgspec.json.encode(answer) for answer in answers]
        (OUT / f"quality-{ran.corpus}-{method}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


# ── reporting ────────────────────────────────────────────────────────────────────────────────

_WITH_EXTRA = ", with the extra embedder"
_BARS: tuple[tuple[str, str | None, str, float, float], ...] = (
    ("locomo", None, "any@5", 78, 81),
    ("locomo", None, "any@10", 86, 88.5),
    ("locomo", None, "all@10", 73, 75),
    ("locomo", None, "all@20", 79, 81),
    ("locomo", "multi-hop", "all@20", 39, 44),
    ("longmemeval-pool48", None, "session any@5", 97, 98),
    ("longmemeval-pool48", None, "session all@5", 87.5, 91),
    ("longmemeval-pool48", None, "any@10", 92, 95),
    ("longmemeval-pool48", None, "all@10", 77, 81),
)
"""Corpus, category or all, measure; the least asked of the default, and of the extra [onnx]."""


def absent() -> str | None:
    """Why it cannot run; None when it can."""
    gone = missing()
    return f"{', '.join(map(str, gone))} not there: see bench/corpora.py" if gone else None


def section(found: Found, facts: Sequence[str]) -> Section:
    """The page of RESULTS.md."""
    return Section(
        name=f"{NAME}_onnx" if found.is_extra else NAME,
        question=f"Does recall find the right things{_WITH_EXTRA * found.is_extra}?",
        facts=[
            *facts,
            *(["`CORTEX_EMBEDDER=onnx` in the environment"] if found.is_extra else []),
            f"embedder {found.embedder}, extractor {found.extractor}",
            f"{found.documents:,} documents in the indexes, configuration {found.config}",
            *map(_fact, found.runs),
        ],
        goals=_goals(found),
        grids=[
            *(_method_grid(run) for run in found.runs),
            *(_category_grid(run) for run in found.runs),
            _chat_grid(found.runs[0]),
            _cost_grid(found),
        ],
        reading=_reading(found),
    )


def _fact(run: Ran) -> str:
    """What was replayed, and the probe that every leg of the search was live."""
    legs = ", ".join(f"{name} {hits:.0f}" for name, hits in run.legs.items())
    return (
        f"{run.corpus} ({run.digest}): {run.about}; {run.events:,} events, {run.questions} "
        f"questions; median candidates a leg: {legs}"
    )


def _goals(found: Found) -> list[Goal]:
    runs = {run.corpus: run for run in found.runs}
    goals = []
    for corpus, category, measure_name, usual, better in _BARS:
        if corpus not in runs:
            continue
        bar = better if found.is_extra else usual
        answers = runs[corpus].answers["recall"]
        kept = [one for one in answers if category in (None, one.category)]
        value = judge(kept)[measure_name]
        what = f"{corpus}{f', {category}' if category else ''}: {measure_name}"
        goals.append(Goal(what, f"≥ {bar:g}", f"{value:.1f}", value >= bar))
    live = min(run.live for run in found.runs)
    goals.append(Goal("questions with both legs live", "≥ 99 %", f"{live:.1f} %", live >= 99))
    return goals


def _row(name: str, judged: Judged) -> tuple[str, ...]:
    columns = (*MEASURES, *SESSION_MEASURES)
    return (name, str(judged.count), *(f"{judged[column]:.1f}" for column in columns))


def _method_grid(run: Ran) -> Grid:
    rows = [_row(method, judge(answers)) for method, answers in run.answers.items()]
    rows.append(_row("recall, in the default pack", judge(run.packed)))
    return Grid(f"{run.corpus}, all questions, percent", _COLUMNS, rows)


def _category_grid(run: Ran) -> Grid:
    rows = [
        _row(f"{category}, {method}", judged)
        for category in by_category(run.answers["recall"])
        for method in run.answers
        for judged in [by_category(run.answers[method])[category]]
    ]
    return Grid(f"{run.corpus}, by category", ("category and method", *_COLUMNS[1:]), rows)


def _chat_grid(run: Ran) -> Grid:
    """One conversation at a time: how much the figures depend on which it is."""
    chats = sorted({one.question.rpartition(":")[0] for one in run.answers["recall"]})
    rows = [
        _row(chat, judge(a for a in run.answers["recall"] if a.question.startswith(f"{chat}:")))
        for chat in chats
    ]
    return Grid(f"{run.corpus}, by conversation", ("conversation", *_COLUMNS[1:]), rows)


def _cost_grid(found: Found) -> Grid:
    rows = [
        (
            run.corpus,
            f"{run.pack_tokens.p50:,.0f}",
            f"{run.pack_tokens.most:,.0f}",
            f"{run.took_ms.p50:.1f}",
            f"{_p95(run.took_ms):.1f}",
            f"{run.ingested_per_s:,.0f}",
        )
        for run in found.runs
    ]
    columns = ("corpus", "pack tokens p50", "most", "recall ms p50", "p95", "events/s until found")
    return Grid("Cost of a default recall, and of taking a corpus in", columns, rows)


_COLUMNS = ("method", "n", *MEASURES, *SESSION_MEASURES)


def _p95(values: Spread) -> float:
    return values.quantiles[int(0.95 * (len(values.quantiles) - 1))]


def _reading(found: Found) -> str:
    first, adr = found.runs[0], "0043" if found.is_extra else "0028"
    ours, words, vectors = (judge(first.answers[method])["any@10"] for method in METHODS)
    return (
        f"On {first.corpus} the evidence is among the first ten for {ours:.1f} % of the questions; "
        f"plain BM25 has it for {words:.1f} %, vectors alone for {vectors:.1f} %.\n"
        f"The weights were chosen by cross-validation over conversations (ADR {adr}); the other "
        "half of each corpus was never looked at."
    )


def draw(found: Found, path: Path) -> None:
    """Each measure of the three methods, corpus by corpus."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names = ("any@5", "any@10", "all@10", "all@20", "session all@5")
    figure, grid = plt.subplots(
        1, len(found.runs), figsize=(12, 4), layout="constrained", squeeze=False
    )
    axes = grid[0]
    for axis, run in zip(axes, found.runs, strict=True):
        for at, method in enumerate(METHODS):
            judged = judge(run.answers[method])
            places = [place + (at - 1) * 0.27 for place in range(len(names))]
            axis.bar(places, [judged[name] for name in names], 0.25, label=method)
        axis.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
        axis.set(title=run.corpus, ylim=(0, 100))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("% of questions")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, dpi=110)
    plt.close(figure)
