"""Which candidates answer best?  A sum of standardised scores and a few priors. Pure.

Scores of a channel mean nothing by themselves: they are standardised over the candidates and added,
which ranks better than merging places does. What was said beside a candidate, and in the same
session, lends it some of its score. Everything that suits one kind of log only is switched on by
what the candidates themselves show, never by a name. bench/quality has the measurements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from engine.recall import native, shapes
from engine.recall.candidates import Candidates, Question
from engine.recall.columns import SIDES, Pool
from engine.recall.question import MACHINES
from engine.recall.shapes import Ranked
from engine.state.index import Layer

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Weights:
    """How much each feature counts, in standard deviations or, for a prior, as it is."""

    words: float = 0.15
    words_beside: tuple[float, float, float, float] = (0.1, 0.1, 0.1, 0.1)
    words_session: float = 0.15
    meaning: float = 0.1
    meaning_beside: tuple[float, float, float, float] = (0.0, 0.1, 0.1, 0.0)
    exchange: float = 0.6
    exchange_session: float = 0.0
    late: float = 0.2
    late_around: float = 0.5
    lent: float = 0.05
    expected: float = 1.5
    speaker: float = 3.0
    role: float = 3.0
    dated: float = 3.0
    length: float = 2.0
    asks: float = -0.8
    current: float = 0.5


WEIGHTS: Final = Weights()
"""Chosen by cross-validation over conversations; they are round because they are not delicate."""

IN_CONTEXT: Final = Weights(
    exchange=0.8,
    exchange_session=0.2,
    late=0.1,
    late_around=0.4,
    words_session=0.2,
    expected=1.0,
)
"""The same with vectors of a model that reads words in their context: they say more, and words
that are matched one by one less (ADR 0043)."""

AROUND: Final[Sequence[float]] = (0.7, 0.9, 0.8, 0.6)
"""How much of a neighbour's match of a word counts as one's own, side by side."""

AROUND_SESSION: Final = 0.4
"""The same for the best match anywhere in the session."""

SESSION_BEST: Final = 3
"""A session is as good as the mean of so many of its best."""

TELLING_WORDS: Final = 30
"""Few words seldom say anything that could be asked for; from so many on, more say no more."""

SUBJECT: Final = 1 / 3
"""Where everybody is named, who is named first is more likely the one who spoke."""

SAME: Final = 0.985
"""Cosine from which two candidates say the same, if they are of about one length."""

DUPLICATES_AMONG: Final = 60
"""So many of the best are compared with each other."""

CONSTANTS: Final = (
    *AROUND,
    AROUND_SESSION,
    SESSION_BEST,
    TELLING_WORDS,
    SUBJECT,
    SAME,
    DUPLICATES_AMONG,
)
"""What the kernel is told besides the weights, in the order in which it reads them."""

_LENGTHS: Final = np.log1p(np.arange(TELLING_WORDS + 1)) / np.log1p(TELLING_WORDS)
"""By how many words it has: 1 where enough is said to tell something."""

_DAY_US: Final = 86_400_000_000
_EPSILON: Final = 1e-6


def rank(candidates: Candidates, weights: Weights = WEIGHTS) -> Mapping[Layer, Sequence[Ranked]]:
    """The candidates of each layer, best first; near-duplicates collapsed into the best of them."""
    found: dict[Layer, Sequence[Ranked]] = dict.fromkeys(candidates.layers, ())
    for name, pool in candidates.pools.items():
        if len(pool):
            ranking = _ranking(pool, candidates.question, weights)
            for layer in candidates.layers:
                if (layer == "events") == (name == "events"):
                    found[layer] = _Ordered(ranking, layer, ranking.order(layer))
    return found


def _ranking(
    pool: Pool | native.Pool, question: Question, weights: Weights
) -> "_Ranking | native.Ranking":
    if isinstance(pool, native.Pool):
        return native.Ranking(pool, question, weights, CONSTANTS)
    return _Ranking(pool, _features(pool, question, weights))


class _Sum:
    """Standard scores with their weights, standardised together."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._weights: list[float] = []
        self._columns: list[Any] = []

    def add(self, name: str, weight: float, column: Any) -> None:
        """A feature, or a share of one that was added before."""
        if weight:
            self._names.append(name)
            self._weights.append(weight)
            self._columns.append(column)

    def parts(self) -> dict[str, Floats]:
        """What each feature adds."""
        found: dict[str, Floats] = {}
        scores = standard(np.stack(self._columns)) * np.array(self._weights, np.float32)[:, None]
        for name, score in zip(self._names, scores, strict=True):
            found[name] = found[name] + score if name in found else score
        return found


def _features(pool: Pool, question: Question, weights: Weights) -> dict[str, Floats]:
    """What each feature adds to the score of each candidate."""
    parts = _told(pool, weights) if pool.is_told else _derived(pool, weights)
    return parts | _priors(pool, question, weights)


def _derived(pool: Pool, weights: Weights) -> dict[str, Floats]:
    """What was derived stands by itself: the weight of what is around goes to the sentence."""
    total = _Sum()
    total.add("words", weights.words + weights.words_session, pool.channels["words"])
    meaning = weights.meaning + weights.exchange + weights.exchange_session
    total.add("meaning", meaning, pool.channels["meaning"])
    if pool.matches.shape[1]:
        total.add("late", weights.late + weights.late_around, pool.met)
    return total.parts()


def _told(pool: Pool, weights: Weights) -> dict[str, Floats]:
    """What was told is understood by what was said around it."""
    beside = pool.beside
    sessions = _Sessions(pool.session)
    # An assistant's reply says again what it was asked: then neighbours lend nothing new.
    among_people = "assistant" not in pool.role[1]
    total = _Sum()
    for name in ("words", "meaning"):
        channel = pool.channels[name]
        # No hit by words is 0, and no neighbour too; a cosine of 0 would be a bad one.
        centred = channel - channel.mean() if name == "meaning" else channel
        total.add(name, getattr(weights, name), channel)
        for weight, side in zip(getattr(weights, f"{name}_beside"), beside, strict=True):
            if among_people and weight:
                total.add(f"{name}_beside", weight, _at(centred, side))
    total.add("words_session", weights.words_session, sessions.best(pool.channels["words"]))
    exchange = pool.channels["exchange"]
    total.add("exchange", weights.exchange, exchange)
    if weights.exchange_session:
        total.add("exchange_session", weights.exchange_session, sessions.best(exchange))
    total.add("lent", weights.lent, pool.channels["lent"])
    parts = total.parts()
    return parts | _late(pool, beside, sessions, weights) if pool.matches.shape[1] else parts


def _late(pool: Pool, beside: Any, sessions: "_Sessions", weights: Weights) -> dict[str, Floats]:
    """How the words of the question are met: by a candidate itself, and by it and what is around.

    A text too long to be matched by its words counts as the average.
    """
    own = pool.matches
    around = np.maximum(own, AROUND_SESSION * sessions.most(own))
    for share, theirs in zip(AROUND, _at(own, beside), strict=True):
        np.maximum(around, share * theirs, out=around)
    met = np.stack([pool.met, (around * pool.importance).sum(axis=1)])
    scores = np.zeros_like(met)
    if pool.is_spelled.any():
        scores[:, pool.is_spelled] = standard(met[:, pool.is_spelled])
    return {"late": weights.late * scores[0], "late_around": weights.late_around * scores[1]}


# ── priors ───────────────────────────────────────────────────────────────────────────────────


def _priors(pool: Pool, question: Question, weights: Weights) -> dict[str, Floats]:
    """What can be said of a candidate before it is compared: who, in which role, when, how much."""
    parts = {
        "speaker": _weighed(weights.speaker, _speaker(pool, question)),
        "role": _weighed(weights.role, _role(pool, question)),
        "dated": _weighed(weights.dated, _dated(pool, question)),
        "expected": _weighed(weights.expected, pool.expected if question.expects else None),
    }
    if pool.is_told:
        parts["length"] = weights.length * _LENGTHS.take(pool.column("words"), mode="clip")
        parts["asks"] = weights.asks * pool.column("is_question")
    if question.wants_current:
        observed = pool.column("observed_us").astype(np.float64)
        parts["current"] = weights.current * standard(observed)
    nothing = np.zeros(len(pool), np.float32)
    return {
        name: nothing if part is None else part.astype(np.float32, copy=False)
        for name, part in parts.items()
    }


def _weighed(weight: float, prior: Any | None) -> Any | None:
    return None if prior is None else weight * prior


def _speaker(pool: Pool, question: Question) -> Any | None:
    """1 where whoever is asked about spoke; a little of that where everybody is asked about."""
    if not question.about:
        return None
    actor, actors = pool.actor
    humans = {
        at for at, name in enumerate(actors) if name and name.partition(":")[0] not in MACHINES
    }
    named = [actors.index(name) for name in question.about if name in actors]
    if not named or humans == set(named[:1]):
        return None
    if humans <= set(named):
        return SUBJECT * (actor == named[0])
    return np.isin(actor, named).astype(np.float32)


def _role(pool: Pool, question: Question) -> Any | None:
    """1 where the one spoke whose words are asked for, in a log of a user and an assistant."""
    role, roles = pool.role
    if "user" not in roles or "assistant" not in roles or question.asks_assistant:
        return None
    return (role == roles.index("user")).astype(np.float32)


def _dated(pool: Pool, question: Question) -> Any | None:
    """1 in a period that is named; less the further from it, over days and over weeks.

    What happened is often told some days later, and what is told is about more than one day.
    """
    if not question.spans:
        return None
    observed_us = pool.column("observed_us")
    start, end = np.array(question.spans, np.int64).T[:, :, None]
    apart = np.maximum(start - observed_us, 0) + np.maximum(observed_us - end + 1, 0)
    length = end - start
    close = np.exp(-apart / np.maximum(length / 10, 3 * _DAY_US))
    about = np.exp(-apart / np.maximum(length, 30 * _DAY_US))
    return ((close + about) / 2).max(axis=0)


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def standard(values: Any) -> Floats:
    """Standard scores along the last axis."""
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.einsum("...i,...i->...", centred, centred) / values.shape[-1])
    scaled: Floats = (centred / (spread[..., None] + _EPSILON)).astype(np.float32, copy=False)
    return scaled


def _at(values: Any, positions: Any) -> Any:
    """The value at each position; 0 where there is none."""
    padded = np.zeros((len(values) + 1, *values.shape[1:]), values.dtype)
    padded[:-1] = values
    # There is none at -1: that is the last.
    return padded.take(positions, axis=0)


class _Sessions:
    """Candidates grouped by session; one without a session is a session of its own."""

    def __init__(self, session: Any) -> None:
        own = np.where(session > 0, session, -1 - np.arange(len(session)))
        self._order = np.argsort(own, kind="stable")
        ordered = own[self._order]
        is_first = np.ones(len(own), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        self._first = is_first.nonzero()[0]
        self._size = np.empty_like(self._first)
        np.subtract(self._first[1:], self._first[:-1], out=self._size[:-1])
        self._size[-1] = len(own) - self._first[-1]
        self._group = np.empty(len(own), np.int64)
        self._group[self._order] = np.repeat(np.arange(len(self._first)), self._size)

    def best(self, values: Any) -> Any:
        """For each candidate the mean of the best of its session."""
        order = np.lexsort((-values, self._group))
        place = np.arange(len(values)) - np.repeat(self._first, self._size)
        counted = np.where(place < SESSION_BEST, values[order], 0)
        means = np.add.reduceat(counted, self._first) / np.minimum(self._size, SESSION_BEST)
        return means[self._group]

    def most(self, values: Any) -> Any:
        """For each candidate the greatest of its session, column by column."""
        return np.maximum.reduceat(values[self._order], self._first, axis=0)[self._group]


# ── the ranked ───────────────────────────────────────────────────────────────────────────────


class _Ranking(shapes.Ranking):
    """A pool in its order."""

    def __init__(self, pool: Pool, parts: Mapping[str, Floats]) -> None:
        self.pool = pool
        self._parts = parts
        total = np.zeros(len(pool))
        for part in parts.values():
            total += part
        # Equal scores in the order of the log: the same question gives the same answer.
        self._order = np.lexsort((pool.offset, -total))
        self.scores = _squeezed(pool, total)
        # Records that read alike may hold at different times: only what was told repeats itself.
        self.twins = _duplicates(pool, self._order) if pool.is_told else {}
        self._gone = {at for some in self.twins.values() for at in some}

    def order(self, layer: Layer) -> Sequence[int]:
        """The candidates of one layer, best first."""
        first, last = self.pool.span(layer)
        kept: list[int] = self._order[(self._order >= first) & (self._order < last)].tolist()
        return [at for at in kept if at not in self._gone] if self._gone else kept

    def items(self, layer: Layer, places: Sequence[int]) -> list[Ranked]:
        """Some of them, put together."""
        pool, twins = self.pool, self.twins
        at = np.array(places, np.int64)
        rows = zip(places, pool.offset[at].tolist(), self.scores[at].tolist(), strict=True)
        found = []
        for place, offset, score in rows:
            one = Ranked(layer, pool.raw(place), offset, score, ranking=self, place=place)
            one.duplicates = tuple(map(pool.raw, twins.get(place, ())))
            found.append(one)
        return found

    def parts(self, place: int) -> Mapping[str, float]:
        """What each feature added to a candidate."""
        return {name: float(column[place]) for name, column in self._parts.items()}

    def vector(self, place: int) -> Any:
        """float32[d], unit length."""
        return self.pool.vector(place)


class _Ordered(Sequence[Ranked]):
    """Candidates in their order; each is put together when it is looked at, for few are."""

    def __init__(
        self, ranking: "_Ranking | native.Ranking", layer: Layer, order: Sequence[int]
    ) -> None:
        self._ranking = ranking
        self._layer = layer
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Ranked: ...
    @overload
    def __getitem__(self, place: slice) -> list[Ranked]: ...
    def __getitem__(self, place: int | slice) -> Ranked | list[Ranked]:
        if isinstance(place, slice):
            return self._ranking.items(self._layer, self._order[place])
        return self._ranking.items(self._layer, [self._order[place]])[0]


def _squeezed(pool: Pool, total: Any) -> Any:
    """Scores in (0, 1): where it stands among the candidates, times how good the best of them is.

    The first orders a layer, the second makes layers comparable: how like the question the best is.
    """
    low, high = total.mean(), total.max()
    # One candidate by itself is the best there is.
    is_alone = high - low < _EPSILON
    among = np.ones(len(total)) if is_alone else np.maximum((total - low) / (high - low), 0)
    among += 0.01 * (total - total.min()) / (high - total.min() + _EPSILON)
    first = int(total.argmax())
    like = max(float(pool.met[first]), float(pool.channels["meaning"][first]))
    best = min(max(like, 0.05), 0.99)
    return best * (0.01 + among) / 1.03


def _duplicates(pool: Pool, order: Any) -> dict[int, list[int]]:
    """Better candidate -> those that say the same, among the best."""
    best = order[:DUPLICATES_AMONG]
    vectors, actor = pool.vectors(best), pool.actor[0].take(best)
    words = pool.column("words").take(best).astype(np.float32)
    better, worse = (vectors @ vectors.T >= SAME).nonzero()
    is_pair = better < worse
    better, worse = better[is_pair], worse[is_pair]
    longer = np.maximum(words[better], words[worse])
    alike = (np.abs(words[better] - words[worse]) <= 0.1 * longer) & (actor[better] == actor[worse])
    found: dict[int, list[int]] = {}
    gone: set[int] = set()
    for one, other in zip(best[better[alike]].tolist(), best[worse[alike]].tolist(), strict=True):
        if one not in gone and other not in gone:
            gone.add(other)
            found.setdefault(one, []).append(other)
    return found


assert len(AROUND) == len(SIDES), "a share for each side"
