"""How do other memories do, on the same corpus with the same vectors, in the same run?

Each runs in a process of its own, in an environment that this benchmark makes for them under
bench/out, so that none of them becomes a dependency. They search in the caller's process; ours
answers over HTTP, durably, and ranks five layers.
"""

import json
import shutil
import subprocess
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.client import Client
from bench.corpora import Conversation, locomo, missing
from bench.figures import Spread, spread
from bench.host import GROUPED, OUT, Host
from bench.judge import Answered, judge
from bench.report import Goal, Grid, Section
from engine.embedders import load_local

NAME = "peers"
PEERS = {
    "chromadb": ["chromadb"],
    "langgraph": ["langgraph"],
    "mem0ai": ["mem0ai"],
    "txtai": ["torch==2.13.0", "txtai"],
}
"""Who is measured -> what pip is asked for."""
STEPS = len(PEERS) + 3
_CHATS = 2
_TOP = 10
_BATCH = 100
_PATIENCE_S = 600
_FOLDER = OUT / "peers"
_VENV = OUT / "peers-venv"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """What one system did; `problem` says why it did nothing."""

    name: str
    version: str = ""
    ingest_s: float | None = None
    durable_s: float | None = None
    took_ms: Spread | None = None
    frac: float | None = None
    any_of: float | None = None
    problem: str = ""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    peers: list[Peer]
    events: int
    questions: int


def absent() -> str | None:
    """Why it cannot run; None when it can."""
    gone = missing()
    return f"{', '.join(map(str, gone))} not there: see bench/corpora.py" if gone else None


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """Ours first, then each peer in its own process."""
    del seconds
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    chats = locomo().conversations[:_CHATS]
    try:
        say("writing the task down")
        _write_task(chats)
        say("strata, over HTTP")
        with Host(GROUPED, _FOLDER / "strata") as host:
            peers = [_ours(host, chats)]
        say("an environment for the peers")
        _environment()
        for name in PEERS:
            say(name)
            peers.append(_peer(name, chats))
    finally:
        shutil.rmtree(_FOLDER, ignore_errors=True)
    return Found(
        peers=peers,
        events=sum(len(chat.turns) for chat in chats),
        questions=sum(len(chat.questions) for chat in chats),
    )


# ── ours ─────────────────────────────────────────────────────────────────────────────────────


def _ours(host: Host, chats: Sequence[Conversation]) -> Peer:
    with Client(host) as client:
        ingest_s = _bulk(client, chats)
        durable_s = _one_by_one(client, chats[0])
    host.settle()
    while host.health()["index"]["lag_entries"]:
        time.sleep(0.2)
    took: list[float] = []
    ranked: list[list[str]] = []
    with Client(host) as client:
        for chat in chats:
            for question in chat.questions:
                started = time.perf_counter()
                pack = client.post("/v1/recall", _asking(chat, question.text))
                took.append((time.perf_counter() - started) * 1000)
                keys = (event["idempotency_key"] for event in pack["layers"]["events"])
                ranked.append([key.rpartition("/")[2] for key in keys])
    return _rated(
        Peer(
            name="strata, over HTTP",
            version=str(host.health()["version"]),
            ingest_s=ingest_s,
            durable_s=durable_s,
        ),
        chats,
        took,
        ranked,
    )


def _envelopes(chat: Conversation, prefix: str) -> list[dict[str, Any]]:
    return [
        {
            "modality": "conversation",
            "observed_actor": {"id": turn.actor, "session": turn.session},
            "content": {"kind": "message", "role": turn.role, "text": turn.text},
            "context": {"observed_at": turn.at.isoformat()},
            "idempotency_key": f"{prefix}/{chat.id}/{turn.id}",
        }
        for turn in chat.turns
    ]


def _bulk(client: Client, chats: Sequence[Conversation]) -> float:
    started, count = time.perf_counter(), 0
    for chat in chats:
        items = _envelopes(chat, "bulk")
        for first in range(0, len(items), _BATCH):
            part = items[first : first + _BATCH]
            client.post("/v1/experience/bulk", {"scope": _scope(chat), "items": part})
            count += len(part)
    return count / (time.perf_counter() - started)


def _one_by_one(client: Client, chat: Conversation) -> float:
    items = _envelopes(chat, "single")[:_BATCH]
    started = time.perf_counter()
    for item in items:
        client.post("/v1/experience", item | {"scope": f"{_scope(chat)}/again:one"})
    return len(items) / (time.perf_counter() - started)


def _asking(chat: Conversation, text: str) -> dict[str, Any]:
    limits = {"per_layer_limits": {"events": _TOP}}
    asked = {"scope": _scope(chat), "view": "local", "query": text}
    return asked | {"include": ["events"], "budgets": limits}


def _scope(chat: Conversation) -> str:
    return f"bench:peers/chat:{chat.id}"


def _rated(
    peer: Peer, chats: Sequence[Conversation], took: list[float], ranked: list[list[str]]
) -> Peer:
    questions = [question for chat in chats for question in chat.questions]
    judged = judge(
        Answered(
            question=question.id,
            category=question.category,
            ranked=found,
            evidence=sorted(question.evidence),
            sessions=["-"],
            ranked_sessions=["-"],
        )
        for question, found in zip(questions, ranked, strict=True)
    )
    return msgspec.structs.replace(
        peer, took_ms=spread(took), frac=judged["frac@10"], any_of=judged["any@10"]
    )


# ── theirs ───────────────────────────────────────────────────────────────────────────────────


def _write_task(chats: Sequence[Conversation]) -> None:
    """Texts, questions and the vectors of both, as files."""
    embedder = load_local("wordllama")
    turns = [(chat.id, turn) for chat in chats for turn in chat.turns]
    texts = [f"{turn.actor.partition(':')[2]}: {turn.text}" for _, turn in turns]
    asked = [(chat.id, question.text) for chat in chats for question in chat.questions]
    told = {
        "chats": [chat for chat, _ in turns],
        "ids": [f"{chat}/{turn.id}" for chat, turn in turns],
        "texts": texts,
        "asked": asked,
    }
    (_FOLDER / "task.json").write_text(json.dumps(told))
    np.save(_FOLDER / "vectors.npy", embedder.embed(texts))
    np.save(_FOLDER / "asked.npy", embedder.embed([text for _, text in asked]))


def _python() -> str:
    return str(_VENV / "bin" / "python")


def _environment() -> None:
    """A place where the peers are installed; kept for the next run."""
    if not _VENV.exists():
        venv.create(_VENV, with_pip=True)
    for wanted in PEERS.values():
        # One at a time: where one cannot be had, the others still run.
        command = [_python(), "-m", "pip", "install", "-q", *wanted]
        subprocess.run(command, capture_output=True, check=False)


def _peer(name: str, chats: Sequence[Conversation]) -> Peer:
    script = Path(__file__).with_name("peer.py")
    command = [_python(), str(script), name, str(_FOLDER)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_PATIENCE_S
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, IndexError, ValueError) as error:
        told = getattr(error, "stderr", None) or str(error)
        return Peer(name=name, problem=str(told).strip().splitlines()[-1][:120])
    ranked = [[key.rpartition("/")[2] for key in keys] for keys in found["ranked"]]
    rates = found["rates"]
    peer = Peer(
        name=name,
        version=_version(name),
        ingest_s=rates.get("ingest"),
        durable_s=rates.get("durable"),
    )
    return _rated(peer, chats, found["took_ms"], ranked)


def _version(name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run([_python(), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


# ── reporting ────────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: Sequence[str]) -> Section:
    """The page of RESULTS.md."""
    ours, *others = found.peers
    ran = [peer for peer in others if peer.frac is not None]
    best = max((peer.frac or 0 for peer in ran), default=0)
    goals = [
        Goal(
            "evidence among the first ten, against the best of them",
            "more",
            f"{ours.frac:.1f} against {best:.1f}",
            bool(ran) and (ours.frac or 0) > best,
        )
    ]
    return Section(
        name=NAME,
        question="How do other memories do, on the same corpus with the same vectors?",
        facts=[*facts, f"{found.events} turns, {found.questions} questions, no language model"],
        goals=goals,
        grids=[_grid(found)],
        reading=(
            "The others search in the caller's process; ours answers over HTTP.\n"
            "Durable is one event at a time, on the disk when the call returns; langgraph keeps "
            "its store in memory, and txtai writes when it is told to save."
        ),
    )


def _grid(found: Found) -> Grid:
    columns = (
        *("system", "version", "ingest/s", "durable/s", "search p50 ms", "frac@10", "any@10"),
        "problem",
    )
    rows = [
        (
            peer.name,
            peer.version or "–",
            _told(peer.ingest_s, ",.0f"),
            _told(peer.durable_s, ",.0f"),
            _told(None if peer.took_ms is None else peer.took_ms.p50, ".1f"),
            _told(peer.frac, ".1f"),
            _told(peer.any_of, ".1f"),
            peer.problem,
        )
        for peer in found.peers
    ]
    return Grid("Side by side", columns, rows)


def _told(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def draw(found: Found, path: Path) -> None:
    """What is found, and how long a search takes."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    ran = [peer for peer in found.peers if peer.took_ms is not None]
    names = [peer.name.partition(",")[0] for peer in ran]
    left.barh(names, [peer.frac or 0 for peer in ran])
    left.set(xlabel="% of the evidence among the first ten", xlim=(0, 100))
    right.barh(names, [peer.took_ms.p50 for peer in ran if peer.took_ms])
    right.set(xlabel="milliseconds of a search, p50")
    for axes in (left, right):
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
