"""What is replayed?  Conversations with questions whose evidence is known, from published corpora.

The files are not part of this project: `STRATA_BENCH_DATA` names their folder (its default is
../shared/data). LoCoMo (github snap-research/LoCoMo, CC BY-NC 4.0) is for measuring only.
"""

import gzip
import hashlib
import json
import os
import random
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.host import ROOT, Broken

DATA: Final = Path(os.environ.get("STRATA_BENCH_DATA", ROOT.parent / "shared" / "data"))
LOCOMO: Final = "locomo/locomo-dev.json.gz"
ORACLE: Final = "longmemeval/oracle-dev.json.gz"
_SESSIONS: Final = 48
_PACE: Final = timedelta(seconds=30)
_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Category 5 swaps persons on purpose and has no evidence that could be found."""

_EVIDENCE: Final = re.compile(r"D:?(\d+):(\d+)")
_FAMILY: Final = re.compile(r"(answer_[0-9a-f]+)_\d+$")


class Turn(msgspec.Struct, frozen=True):
    """Something that was said."""

    id: str
    session: str
    actor: str
    role: str
    text: str
    at: datetime


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and the turns and sessions that answer it."""

    id: str
    category: str
    text: str
    evidence: frozenset[str]
    sessions: frozenset[str]
    at: datetime


class Conversation(msgspec.Struct, frozen=True):
    """What goes into one scope, and what is asked of it."""

    id: str
    turns: list[Turn]
    questions: list[Question]


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """A set of conversations. `digest` tells which files and which seed they came from."""

    name: str
    about: str
    digest: str
    conversations: list[Conversation]


def corpora(sample: int | None = None, data: Path = DATA) -> dict[str, Callable[[], Corpus]]:
    """The corpora by name, each read when it is wanted; `sample` takes so many questions of it."""
    return {
        "locomo": lambda: _sampled(locomo(data), sample),
        "longmemeval-pool48": lambda: _sampled(longmemeval(data), sample),
        "longmemeval-pooled": lambda: _sampled(longmemeval_pooled(data), sample),
    }


def missing(data: Path = DATA) -> list[Path]:
    """Files that are not there."""
    return [data / name for name in (LOCOMO, ORACLE) if not (data / name).exists()]


def _read(path: Path) -> tuple[Any, str]:
    if not path.exists():
        raise Broken(f"{path} is not there; STRATA_BENCH_DATA names the folder of the corpora")
    content = gzip.decompress(path.read_bytes())
    return json.loads(content), hashlib.sha256(content).hexdigest()[:12]


def _sampled(corpus: Corpus, sample: int | None) -> Corpus:
    """So many questions, evenly from all conversations; conversations without any are left out."""
    if sample is None:
        return corpus
    every = [(chat, question) for chat in corpus.conversations for question in chat.questions]
    step = max(1, len(every) // sample)
    wanted = {question.id for _, question in every[::step][:sample]}
    chats = [
        Conversation(chat.id, chat.turns, [one for one in chat.questions if one.id in wanted])
        for chat in corpus.conversations
    ]
    left = [chat for chat in chats if chat.questions]
    return msgspec.structs.replace(corpus, conversations=left, digest=f"{corpus.digest}/{sample}")


# ── LoCoMo ───────────────────────────────────────────────────────────────────────────────────


def locomo(data: Path = DATA) -> Corpus:
    """Long chats of two people in many sessions; evidence is single turns."""
    raw, digest = _read(data / LOCOMO)
    return Corpus(
        name="locomo",
        about="two people in many sessions; evidence is turns (categories 1 to 4)",
        digest=digest,
        conversations=[_locomo_chat(one) for one in raw],
    )


def _locomo_chat(raw: Any) -> Conversation:
    spoken, name = raw["conversation"], raw["sample_id"]
    numbers = sorted(int(key[8:]) for key in spoken if re.fullmatch(r"session_\d+", key))
    turns: list[Turn] = []
    for number in numbers:
        started = datetime.strptime(spoken[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for place, said in enumerate(spoken[f"session_{number}"]):
            caption = said.get("blip_caption")
            text = f"{said['text']} [image: {caption}]" if caption else said["text"]
            at = started.replace(tzinfo=UTC) + place * _PACE
            actor = f"user:{said['speaker']}"
            turns.append(Turn(said["dia_id"], f"{name}-{number}", actor, "user", text, at))
    sessions = {turn.id: turn.session for turn in turns}
    last = max(turn.at for turn in turns)
    questions = []
    for place, asked in enumerate(raw["qa"]):
        pairs = _EVIDENCE.findall(" ".join(asked.get("evidence", [])))
        named = {f"D{int(session)}:{int(turn)}" for session, turn in pairs}
        evidence = frozenset(named & sessions.keys())
        if asked["category"] in _CATEGORIES and evidence:
            questions.append(
                Question(
                    id=f"{name}:{place}",
                    category=_CATEGORIES[asked["category"]],
                    text=asked["question"],
                    evidence=evidence,
                    sessions=frozenset(sessions[turn] for turn in evidence),
                    at=last,
                )
            )
    return Conversation(name, turns, questions)


# ── LongMemEval ──────────────────────────────────────────────────────────────────────────────


def longmemeval(data: Path = DATA, seed: int = 0) -> Corpus:
    """A question's evidence sessions among distractors of other questions, 48 sessions in all.

    It is not LongMemEval-S, whose own distractors are not to be had here.
    """
    raw, digest = _read(data / ORACLE)
    sessions = _sessions(raw)
    chats = []
    for one in _asked(raw):
        dates = map(_date, one["haystack_dates"])
        own = dict(zip(one["haystack_session_ids"], dates, strict=True))
        names = _haystack(one, sessions, seed)
        turns = _turns({name: own.get(name, sessions[name][0]) for name in names}, sessions)
        chats.append(Conversation(one["question_id"], turns, [_oracle_question(one)]))
    return Corpus(
        name="longmemeval-pool48",
        about="a user and an assistant; own evidence among 48 sessions a question",
        digest=f"{digest}/{seed}",
        conversations=chats,
    )


def longmemeval_pooled(data: Path = DATA) -> Corpus:
    """All evidence sessions of all questions in one scope: personas contradict one another."""
    raw, digest = _read(data / ORACLE)
    sessions = _sessions(raw)
    turns = _turns({name: began for name, (began, _) in sessions.items()}, sessions)
    return Corpus(
        name="longmemeval-pooled",
        about="the sessions of all questions in one scope",
        digest=digest,
        conversations=[
            Conversation("pooled", turns, [_oracle_question(one) for one in _asked(raw)])
        ],
    )


def _asked(raw: Iterable[Any]) -> Iterable[Any]:
    """Questions that have an answer."""
    return (one for one in raw if not one["question_id"].endswith("_abs"))


def _sessions(raw: Iterable[Any]) -> dict[str, tuple[datetime, list[Any]]]:
    """Session -> when it began, and its turns; the first question that has it tells both."""
    found: dict[str, tuple[datetime, list[Any]]] = {}
    for one in raw:
        parts = (one["haystack_session_ids"], one["haystack_dates"], one["haystack_sessions"])
        for name, date, turns in zip(*parts, strict=True):
            found.setdefault(name, (_date(date), turns))
    return found


def _date(text: str) -> datetime:
    bare = re.sub(r" \(\w+\)", "", text)
    return datetime.strptime(bare, "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _haystack(one: Any, sessions: dict[str, Any], seed: int) -> list[str]:
    """The question's own sessions, and others that tell of other things, drawn by its id."""
    own = list(dict.fromkeys(one["haystack_session_ids"]))
    families = {_family(name) for name in own}
    others = [
        name for name in sorted(sessions) if name not in own and _family(name) not in families
    ]
    drawn = random.Random(hashlib.sha256(f"{seed}:{one['question_id']}".encode()).hexdigest())
    return own + drawn.sample(others, _SESSIONS - len(own))


def _family(name: str) -> str:
    found = _FAMILY.match(name)
    return found[1] if found else name


def _turns(began: dict[str, datetime], sessions: dict[str, Any]) -> list[Turn]:
    """The turns of these sessions, in the order in which they began."""
    return [
        Turn(
            f"{name}:{place}",
            name,
            "user:asker" if said["role"] == "user" else "agent:assistant",
            said["role"],
            said["content"],
            began[name] + place * _PACE,
        )
        for name in sorted(began, key=lambda name: (began[name], name))
        for place, said in enumerate(sessions[name][1])
    ]


def _oracle_question(one: Any) -> Question:
    parts = zip(one["haystack_session_ids"], one["haystack_sessions"], strict=True)
    return Question(
        id=one["question_id"],
        category=one["question_type"],
        text=one["question"],
        evidence=frozenset(
            f"{name}:{place}"
            for name, turns in parts
            for place, said in enumerate(turns)
            if said.get("has_answer")
        ),
        sessions=frozenset(one["answer_session_ids"]) & frozenset(one["haystack_session_ids"]),
        at=_date(one["question_date"]),
    )
