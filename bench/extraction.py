"""How good is extraction without a model?  Precision and recall on a labelled set of our own.

And coverage of other people's talk: of the turns of a conversation corpus that carry an
`observation`, for how many anything is found, and how much of the observation that tells.
"""

import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.host import ROOT, Broken
from bench.labels import Label, Verdict, entry_of, judge, labels
from bench.report import Goal, Grid, Section
from projectors.text import Candidate, Mention, extract
from projectors.text.passages import topics
from projectors.text.stems import stem
from schemas.entry import Entry

NAME: Final = "extraction"
STEPS: Final = 3
CORPUS: Final = ROOT.parent / "shared" / "data" / "locomo"
corpus: Path = CORPUS
"""Where the conversations are looked for; `--corpus` says otherwise."""

PRECISION_MIN, RECALL_MIN = 0.85, 0.60
TURN_US_MAX: Final = 120.0
TOLD_MIN: Final = 1 / 3
"""The share of an observation's own words that the candidates must hold to count as telling it."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How many were found rightly, wrongly and not at all, over how many sentences."""

    right: int
    wrong: int
    missed: int
    sentences: int
    silent: int
    must_be_silent: int

    @property
    def precision(self) -> float | None:
        found = self.right + self.wrong
        return self.right / found if found else None

    @property
    def recall(self) -> float | None:
        wanted = self.right + self.missed
        return self.right / wanted if wanted else None


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a corpus."""

    turns: int
    observed: int
    covered: int
    told: int
    tellable: int
    candidates: int
    idle: int
    turn_us: float
    words: float


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Everything measured."""

    classes: dict[str, Score]
    parts: dict[str, Score]
    overall: Score
    wrong: list[str]
    missed: list[str]
    coverage: Coverage | None


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def measure(seconds: float, say: Callable[[str], None]) -> Found:
    """The labelled set, then the corpus when it is there."""
    del seconds
    say("the labelled set")
    verdicts = [judge(label) for label in labels()]
    say("the corpus")
    coverage = _coverage(corpus)
    say("counting")
    classes = dict.fromkeys(verdict.label.class_ for verdict in verdicts)
    return Found(
        classes={name: score([v for v in verdicts if v.label.class_ == name]) for name in classes},
        parts={h: score([v for v in verdicts if v.label.part == h]) for h in ("tuned", "held")},
        overall=score(verdicts),
        wrong=[f"{v.label.text}  +  {w}" for v in verdicts for w in v.wrong],
        missed=[f"{v.label.text}  -  {m}" for v in verdicts for m in v.missed],
        coverage=coverage,
    )


def score(verdicts: list[Verdict]) -> Score:
    """The verdicts added up."""
    silent = [v for v in verdicts if _must_be_silent(v.label)]
    return Score(
        right=sum(v.right for v in verdicts),
        wrong=sum(len(v.wrong) for v in verdicts),
        missed=sum(len(v.missed) for v in verdicts),
        sentences=len(verdicts),
        silent=sum(not v.wrong for v in silent),
        must_be_silent=len(silent),
    )


def reaches(one: Score) -> bool:
    """Whether a score reaches both bars; what tells nothing has neither to miss."""
    precision, recall = one.precision, one.recall
    is_precise = precision is None or precision >= PRECISION_MIN
    return is_precise and (recall is None or recall >= RECALL_MIN)


def _must_be_silent(label: Label) -> bool:
    return not any(not fact.optional for fact in label.facts)


# ── the corpus ───────────────────────────────────────────────────────────────────────────────


class Turn(msgspec.Struct, frozen=True):
    """One turn, and what its annotators took from it."""

    speaker: str
    text: str
    observed_at: datetime
    observations: list[str]


def _coverage(folder: Path) -> Coverage | None:
    files = sorted(folder.glob("*.json*")) if folder.is_dir() else []
    turns = [turn for file in files for turn in _turns(file)]
    if not turns:
        return None
    entries = [
        entry_of(turn.text, actor=f"user:{turn.speaker.lower()}", at=turn.observed_at)
        for turn in turns
    ]
    found = [extract(entry).candidates for entry in entries]
    length_s = sum(min(_length_s(entry) for _ in range(_REPEATS)) for entry in entries)
    pairs = list(zip(turns, found, strict=True))
    observed = [(turn, one) for turn, one in pairs if turn.observations]
    if not observed:
        raise Broken(f"no turn in {folder} carries an observation")
    return Coverage(
        turns=len(turns),
        observed=len(observed),
        covered=sum(bool(one) for _, one in observed),
        told=sum(_tells(turn, _words_of(one)) for turn, one in observed),
        tellable=sum(_tells(turn, _stems(turn.text, turn)) for turn, _ in observed),
        candidates=sum(len(one) for one in found),
        idle=sum(bool(one) for turn, one in pairs if not turn.observations),
        turn_us=length_s / len(turns) * 1e6,
        words=sum(len(turn.text.split()) for turn in turns) / len(turns),
    )


def _length_s(entry: Entry) -> float:
    """How long one turn takes to read; another is read before, or it would be remembered."""
    extract(_OTHER)
    started = time.perf_counter()
    extract(entry)
    return time.perf_counter() - started


_OTHER: Final = entry_of("ok")
_REPEATS: Final = 5
"""The least of so many is what the work takes; the rest is who else wanted the processor."""


def _turns(file: Path) -> Iterator[Turn]:
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for sample in json.loads(raw):
        said: dict[str, list[str]] = {}
        for speakers in sample["observation"].values():
            for rows in speakers.values():
                for text, where in rows:
                    for one in where if isinstance(where, list) else [where]:
                        said.setdefault(one, []).append(text)
        yield from _conversation(sample["conversation"], said)


def _conversation(conversation: dict[str, Any], said: dict[str, list[str]]) -> Iterator[Turn]:
    for name, turns in conversation.items():
        if not isinstance(turns, list):
            continue
        told_at = conversation[f"{name}_date_time"]
        at = datetime.strptime(told_at, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in turns:
            yield Turn(turn["speaker"], turn["text"], at, said.get(turn["dia_id"], []))


def _tells(turn: Turn, words: set[str]) -> bool:
    """Whether these words hold enough of one of the turn's observations."""
    for observation in turn.observations:
        wanted = _stems(observation, turn)
        if wanted and len(wanted & words) >= TOLD_MIN * len(wanted):
            return True
    return False


def _stems(text: str, turn: Turn) -> set[str]:
    """The stems of the words that carry a text, without who said it."""
    words = re.findall(r"[a-z]{3,}", text.lower().replace("'s", ""))
    kept = (word for word in words if word != turn.speaker.lower() and topics(word))
    return {stem(word) for word in kept}


def _words_of(candidates: tuple[Candidate, ...]) -> set[str]:
    words: set[str] = set()
    for one in candidates:
        value = one.object.text if isinstance(one.object, Mention) else str(one.object.value)
        told = f"{one.subject.text} {one.predicate.replace('_', ' ')} {value}".lower()
        words |= {stem(word) for word in re.findall(r"[a-z]{3,}", told.replace("'s", ""))}
    return words


# ── what it means ────────────────────────────────────────────────────────────────────────────


def section(found: Found, facts: list[str]) -> Section:
    """The page of these figures."""
    overall = found.overall
    size = f"{overall.sentences} labelled sentences, {overall.right + overall.missed} facts in them"
    return Section(
        name=NAME,
        question="How good is extraction without a model?",
        facts=[*facts, size],
        goals=_goals(found),
        grids=[_class_grid(found), *([_corpus_grid(found.coverage)] if found.coverage else [])],
        reading=_reading(found),
    )


def _goals(found: Found) -> list[Goal]:
    goals = []
    for name, one in (("all", found.overall), *found.parts.items()):
        precision, recall = one.precision or 0.0, one.recall or 0.0
        label = {"all": "the whole set", "tuned": "the part the rules were written to"}.get(
            name, "the part held back"
        )
        is_precise, is_complete = precision >= PRECISION_MIN, recall >= RECALL_MIN
        goals.append(Goal(f"precision, {label}", "≥ 0.85", f"{precision:.2f}", is_precise))
        goals.append(Goal(f"recall, {label}", "≥ 0.60", f"{recall:.2f}", is_complete))
    short = [name for name, one in found.classes.items() if not reaches(one)]
    told = ", ".join(short) or "none"
    goals.append(Goal("classes that miss either bar", "none", told, not short))
    if found.coverage is not None:
        length = found.coverage.turn_us
        measured = f"{length:.0f} µs"
        goals.append(
            Goal(
                "a turn of the corpus, the least of five",
                "≤ 120 µs",
                measured,
                length <= TURN_US_MAX,
            )
        )
    return goals


def _class_grid(found: Found) -> Grid:
    columns = ("class", "sentences", "precision", "recall", "right", "wrong", "missed", "silent")
    rows = [_class_row(name, one) for name, one in sorted(found.classes.items())]
    rows.append(_class_row("all", found.overall))
    return Grid(
        "The labelled set; silent: sentences that tell nothing, and of which nothing was taken",
        columns,
        rows,
    )


def _class_row(name: str, one: Score) -> tuple[str, ...]:
    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    silent = f"{one.silent} of {one.must_be_silent}" if one.must_be_silent else "–"
    counts = (str(one.right), str(one.wrong), str(one.missed))
    return (name, str(one.sentences), share(one.precision), share(one.recall), *counts, silent)


def _corpus_grid(one: Coverage) -> Grid:
    rows = [
        ("turns", f"{one.turns:,}"),
        ("words a turn", f"{one.words:.0f}"),
        ("turns with an observation", f"{one.observed:,}"),
        ("of these with a candidate", f"{one.covered / one.observed:.2f}"),
        ("of these whose candidates tell a third of it", f"{one.told / one.observed:.2f}"),
        ("the same for the turn's own words", f"{one.tellable / one.observed:.2f}"),
        ("turns without an observation that yield a candidate", _idle(one)),
        ("candidates", f"{one.candidates:,}"),
    ]
    return Grid("The corpus of conversations", ("what", "measured"), rows)


def _idle(one: Coverage) -> str:
    others = one.turns - one.observed
    return f"{one.idle / others:.2f}" if others else "–"


def _reading(found: Found) -> str:
    overall, coverage = found.overall, found.coverage
    told = (
        f"Of {overall.right + overall.wrong} candidates {overall.right} are right, and "
        f"{overall.missed} facts were not found; of {overall.must_be_silent} sentences that tell "
        f"nothing {overall.silent} were left alone.\n"
        "The sentences are our own, so they say how well the rules do what they were made for; no "
        f"rule was written to the {found.parts['held'].sentences} held back.\n"
        "The classes are small: a sentence more or less moves one by several hundredths."
    )
    if coverage is None:
        return f"{told}\nThe corpus of conversations is not here: coverage was not measured."
    return (
        f"{told}\nIn other people's talk {coverage.covered / coverage.observed:.0%} of the turns "
        "that an annotator took something from yield a candidate; many of the rest are praise and "
        "encouragement, from which the rules take nothing."
    )


def draw(found: Found, path: Path) -> None:
    """Precision and recall, class by class."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    told = {n: s for n, s in sorted(found.classes.items()) if s.recall is not None}
    figure, axes = plt.subplots(figsize=(7, 0.24 * len(told) + 1.2), layout="constrained")
    places = range(len(told))
    axes.plot([s.precision or 0 for s in told.values()], places, "o", label="precision")
    axes.plot([s.recall or 0 for s in told.values()], places, "x", label="recall")
    axes.axvline(PRECISION_MIN, color="C0", linewidth=0.6)
    axes.axvline(RECALL_MIN, color="C1", linewidth=0.6)
    axes.set_yticks(places, list(told), fontsize=8)
    axes.set(xlim=(0, 1.05), xlabel="share; the lines are the goals")
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
