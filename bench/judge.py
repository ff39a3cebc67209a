"""How much of the evidence was found?  Measures of a ranking, averaged over questions."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

MEASURES = ("any@5", "any@10", "all@5", "all@10", "all@20", "frac@10", "MRR", "NDCG@10")
SESSION_MEASURES = ("session any@5", "session all@5")


class Judged(msgspec.Struct, frozen=True):
    """The measures of some questions, in percent."""

    count: int
    measures: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.measures[name]


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A question with what was found for it, best first."""

    question: str
    category: str
    ranked: list[str]
    evidence: list[str]
    sessions: list[str]
    ranked_sessions: list[str]


def judge(answers: Iterable[Answered]) -> Judged:
    """The means over all questions."""
    rows = [_measured(answer) for answer in answers]
    names = rows[0] if rows else dict.fromkeys((*MEASURES, *SESSION_MEASURES))
    means = {
        name: 100 * sum(row[name] for row in rows) / len(rows) if rows else math.nan
        for name in names
    }
    return Judged(len(rows), means)


def by_category(answers: Sequence[Answered]) -> Mapping[str, Judged]:
    """The same, category by category."""
    names = sorted({answer.category for answer in answers})
    return {name: judge(one for one in answers if one.category == name) for name in names}


def _measured(answer: Answered) -> dict[str, float]:
    places = _places(answer.ranked, answer.evidence)
    sessions = _places(list(dict.fromkeys(answer.ranked_sessions)), answer.sessions)
    best, worst = places[0], places[-1]
    gain = sum(1 / math.log2(place + 2) for place in places if place < 10)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(places), 10)))
    return {
        "any@5": best < 5,
        "any@10": best < 10,
        "all@5": worst < 5,
        "all@10": worst < 10,
        "all@20": worst < 20,
        "frac@10": sum(place < 10 for place in places) / len(places),
        "MRR": 1 / (best + 1),
        "NDCG@10": gain / ideal,
        "session any@5": sessions[0] < 5,
        "session all@5": sessions[-1] < 5,
    }


def _places(ranked: Sequence[str], wanted: Iterable[str]) -> list[float]:
    """Where what is wanted stands, from 0, ascending; infinite when it was not found."""
    place = {name: at for at, name in enumerate(ranked)}
    return sorted(place.get(name, math.inf) for name in wanted)
