"""What is known of each candidate?  Rows of blocks, side by side as the columns of a pool. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.recall.candidates import Pool
from engine.recall.late import Words, importance, matches
from engine.state.index import LAYERS, Block, Embedder, Layer

Rows = NDArray[np.int64]
Scores = Mapping[int, float]
"""Row of a block -> the score of a channel, best first."""

SIDES: Final = (-2, -1, 1, 2)
"""Who counts as a neighbour: two before, one before, one after, two after."""

_LOOK_ROWS: Final = 6
"""How far a neighbour is looked for among rows of other sessions that came in between."""

_STEPS: Final = np.array([*range(-1, -_LOOK_ROWS - 1, -1), *range(1, _LOOK_ROWS + 1)], np.int64)
_PAUSE_US: Final = 3_600_000_000
"""Without a session, turns that were observed within an hour of each other stand together."""

_SAMPLE_ROWS: Final = 2048
"""The newest rows tell how rare a word is well enough."""

_BEFORE: Final = 0.6
"""How much the utterance before counts in what an exchange of two means."""


@dataclass(frozen=True)
class Place:
    """A block that is searched. `admitted` is bool[n], or None when every row may be found."""

    layer: Layer
    scope_no: int
    block: Block
    admitted: Any

    def row_of(self, raw: bytes) -> int | None:
        """Where a document is, if it may be found."""
        row = self.block.rows.get(raw)
        if row is None or row >= len(self.block.raws):
            return None
        return row if self.admitted is None or self.admitted[row] else None


@dataclass(frozen=True)
class Scored:
    """What the channels said of the rows of a place."""

    words: Scores
    meaning: Scores
    lent: Scores


@dataclass(frozen=True)
class Asked:
    """The question as the columns need it."""

    vector: Any  # float32[d], or None
    words: Words
    expected: Words
    embedder: Embedder


def parts_of(places: Sequence[Place], scored: Sequence[Scored], near: int = 0) -> list["Part"]:
    """What was chosen of these places; `near` of the best of a channel bring their neighbours."""
    return [
        Part(place, _chosen(place, some, near), some)
        for place, some in zip(places, scored, strict=True)
    ]


def pools_of(groups: Sequence[Sequence["Part"]], asked: Asked) -> list[Pool]:
    """A pool a group. Most words stand in all of them, so they are matched at once."""
    every = [part for parts in groups for part in parts]
    pieces = _joined([part.pieces() for part in every], np.int32)
    lengths = _joined([part.lengths for part in every], np.int64)
    met = matches(asked.words.and_also(asked.expected), pieces, lengths, asked.embedder)
    pools, first = [], 0
    for parts in groups:
        last = first + sum(len(part.rows) for part in parts)
        pools.append(_pool(parts, met[first:last], lengths[first:last] > 0, asked))
        first = last
    return pools


def _pool(parts: Sequence["Part"], met: Any, is_spelled: Any, asked: Asked) -> Pool:
    """The candidates of these parts, one after another, each in the order of the log."""
    places = [part.place for part in parts]
    counts = [len(part.rows) for part in parts]
    blocks = [part.block for part in parts]
    vectors = _joined([part.block.vectors[part.rows] for part in parts], np.float32, 2)
    # Only what happened has a before and an after; what was derived is never asked for them.
    told = parts if "events" in (place.layer for place in places) else []
    actor, actors = _renumbered([(part.of("actor"), part.block.actors) for part in parts])
    role, roles = _renumbered([(part.of("role"), part.block.roles) for part in parts])
    return Pool(
        raws=[part.block.raws[row] for part in parts for row in part.rows.tolist()],
        layer=np.repeat(np.array([LAYERS.index(p.layer) for p in places], np.int8), counts),
        scope_no=np.repeat(np.array([place.scope_no for place in places], np.int64), counts),
        row=_joined([part.rows for part in parts], np.int64),
        offset=_joined([part.of("offsets") for part in parts], np.int64),
        observed_us=_joined([part.of("observed_us") for part in parts], np.int64),
        session=_filled([part.sessions(at) for at, part in enumerate(told)], sum(counts), np.int64),
        actor=actor,
        role=role,
        words=_filled([part.of("words") for part in told], sum(counts), np.int32),
        is_question=_filled([part.of("is_question") for part in told], sum(counts), np.bool_),
        vectors=vectors,
        neighbours=_joined([part.neighbours for part in told], np.int64, 2)
        if told
        else np.full((sum(counts), len(SIDES)), -1, np.int64),
        matches=met[:, : len(asked.words)],
        is_spelled=is_spelled,
        importance=importance(asked.words, [_sample(block) for block in blocks]),
        expected=met[:, len(asked.words) :].max(axis=1, initial=0),
        channels={
            "words": _joined([part.scores("words") for part in parts], np.float32),
            "meaning": _meaning(parts, vectors, asked.vector),
            "exchange": _exchange(told, vectors, asked.vector),
            "lent": _filled([part.scores("lent") for part in told], sum(counts), np.float32),
        },
        actors=actors,
        roles=roles,
    )


def neighbours_of(block: Block, rows: Rows) -> Rows:
    """int64[n, 4]: the rows on each of the SIDES in the same session; -1 where there is none."""
    around = rows[:, None] + _STEPS
    is_inside = (around >= 0) & (around < len(block.raws))
    around = np.where(is_inside, around, rows[:, None])
    is_same = is_inside & _stand_together(block, rows[:, None], around)
    found = np.full((len(rows), len(SIDES)), -1, np.int64)
    every = np.arange(len(rows))
    for first, sides in ((0, (1, 0)), (_LOOK_ROWS, (2, 3))):
        part, there = is_same[:, first : first + _LOOK_ROWS], around[:, first : first + _LOOK_ROWS]
        for side in sides:
            # The first of the session that was not taken yet.
            step = part.argmax(axis=1)
            found[:, side] = np.where(part[every, step], there[every, step], -1)
            part[every, step] = False
    return found


def _stand_together(block: Block, rows: Rows, others: Rows) -> Any:
    """Whether each pair is of one session; without sessions, whether they are turns of one talk.

    Documents that happen to come one after another say nothing about each other.
    """
    session = block.session[rows]
    is_same = block.session[others] == session
    if (session == 0).any():
        apart = np.abs(block.observed_us[others] - block.observed_us[rows])
        is_talk = (block.role[rows] > 0) & (block.role[others] > 0) & (apart <= _PAUSE_US)
        is_same &= (session > 0) | is_talk
    return is_same


class Part:
    """The chosen rows of one block."""

    def __init__(self, place: Place, rows: Rows, scored: Scored) -> None:
        self.place = place
        self.block = place.block
        self.rows = rows
        self._neighbours: Any = None
        starts = place.block.starts
        self._starts: Rows = starts[rows]
        self.lengths: Rows = starts[rows + 1] - self._starts
        """How many pieces each row has."""
        self._scored = scored

    @property
    def neighbours(self) -> Any:
        """Who stands beside each."""
        if self._neighbours is None:
            self._neighbours = neighbours_of(self.block, self.rows)
        return self._neighbours

    def of(self, column: str) -> Any:
        """A column of the block."""
        return getattr(self.block, column)[self.rows]

    def sessions(self, at: int) -> Rows:
        """Numbers that no other part has; 0 stays none."""
        own: Rows = self.of("session").astype(np.int64)
        return np.where(own > 0, own + (at << 32), 0)

    def scores(self, channel: str) -> NDArray[np.float32]:
        """A channel's score of each row; 0 where it said nothing."""
        found = np.zeros(len(self.rows), np.float32)
        said: Scores = getattr(self._scored, channel)
        if said:
            rows = np.fromiter(said.keys(), np.int64, len(said))
            found[np.searchsorted(self.rows, rows)] = np.fromiter(said.values(), np.float32)
        return found

    def vectors_before(self) -> Any:
        """The vector of the utterance before each; zeros where there is none."""
        before = self.neighbours[:, 1]
        found = self.block.vectors[before]
        found[before < 0] = 0
        return found

    def pieces(self) -> Any:
        """The pieces of the rows, one after another."""
        lengths = self.lengths
        # Where each piece lies: the row's start, and its place within the row.
        ends = lengths.cumsum()
        places = np.repeat(self._starts - ends + lengths, lengths)
        return self.block.tokens[places + np.arange(len(places))]


def _chosen(place: Place, scored: Scored, near: int) -> Rows:
    """Rows that a channel named, and the neighbours of the best of them, in order."""
    named = {*scored.words, *scored.meaning, *scored.lent}
    if near and named:
        best = {*islice(scored.words, near), *islice(scored.meaning, near)}
        beside = neighbours_of(place.block, np.array(sorted(best), np.int64)).ravel()
        beside = beside[beside >= 0]
        if place.admitted is not None:
            beside = beside[place.admitted[beside]]
        named.update(beside.tolist())
    return np.array(sorted(named), np.int64)


def _meaning(parts: Sequence[Part], vectors: Any, vector: Any) -> Any:
    """Likeness of each candidate as a whole, or of its best passage where that is greater."""
    passages = _joined([part.scores("meaning") for part in parts], np.float32)
    return np.maximum(_likeness(vectors, vector), passages)


def _exchange(told: Sequence[Part], vectors: Any, vector: Any) -> Any:
    """Likeness of each candidate together with what was said before it."""
    if not told:
        return np.zeros(len(vectors), np.float32)
    both = vectors + _BEFORE * _joined([part.vectors_before() for part in told], np.float32, 2)
    lengths = np.sqrt(np.einsum("ij,ij->i", both, both))
    return _likeness(both, vector) / np.maximum(lengths, 1e-6)


def _likeness(rows: Any, vector: Any) -> Any:
    # A block that was made by another model is like nothing until it is made anew.
    if vector is None or rows.shape[1:] != vector.shape:
        return np.zeros(len(rows), np.float32)
    return rows @ vector


def _sample(block: Block) -> tuple[Any, int]:
    """Pieces of the newest rows, and of how many."""
    count = len(block.raws)
    first = max(0, count - _SAMPLE_ROWS)
    return block.tokens[block.starts[first] : block.starts[count]], count - first


def _joined(parts: Sequence[Any], kind: Any, axes: int = 1) -> Any:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty((0,) * axes, kind)


def _filled(parts: Sequence[Any], count: int, kind: Any) -> Any:
    """The parts joined; zeros where nobody has any."""
    return _joined(parts, kind) if parts else np.zeros(count, kind)


def _renumbered(parts: Sequence[tuple[Any, Sequence[str]]]) -> tuple[Any, list[str]]:
    """One numbering of names for several blocks; 0 stays none."""
    names = [""]
    columns = []
    for numbers, own in parts:
        if len(own) == 1:
            # Nobody is named there, and 0 is 0.
            columns.append(numbers)
            continue
        counts = np.bincount(numbers)
        translated = np.zeros(len(counts), np.int32)
        for number in np.flatnonzero(counts).tolist():
            name = own[number]
            if name not in names:
                names.append(name)
            translated[number] = names.index(name)
        columns.append(translated[numbers])
    return _joined(columns, np.int32), names
