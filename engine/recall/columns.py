"""What is known of each candidate?  Rows of blocks, side by side as the columns of a pool. Pure."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.recall.late import Words, importance, matches
from engine.state.block import Block
from engine.state.index import Embedder, Hit, Layer, OpenedBlocks
from schemas import limits

Rows = NDArray[np.int64]
Channel = tuple[Any, Any]
"""What a channel said of rows of a block, best first and each once: int64[k] and float32[k], as
anything that lends its bytes."""

NOTHING: Final[Channel] = (array("q"), array("f"))
"""A channel that said nothing."""

SIDES: Final = (-2, -1, 1, 2)
"""Who counts as a neighbour: two before, one before, one after, two after."""

_LOOK_ROWS: Final = 6
"""How far a neighbour is looked for among rows of other sessions that came in between."""

_STEPS: Final = np.array([*range(-1, -_LOOK_ROWS - 1, -1), *range(1, _LOOK_ROWS + 1)], np.int64)
_PAUSE_US: Final = 3_600_000_000
"""Without a session, turns that were observed within an hour of each other stand together."""

SAMPLE_ROWS: Final = 2048
"""The newest rows tell how rare a word is well enough."""

_BEFORE: Final = 0.6
"""How much the utterance before counts in what an exchange of two means."""


_BESIDE: Final = "beside"
_LAG_ROWS: Final = 256
"""Rows that may join before it is worked out for them who stands beside them."""
_ROWS_AT_ONCE: Final = 1024


class Place:
    """A block that is searched. `admitted` is bool[n], or None when every row may be found."""

    __slots__ = ("admitted", "block", "layer", "opened", "scope_no")

    def __init__(
        self, layer: Layer, scope_no: int, block: Block, admitted: Any, opened: OpenedBlocks
    ) -> None:
        self.layer = layer
        self.scope_no = scope_no
        self.block = block
        self.admitted = admitted
        self.opened = opened

    def row_of(self, raw: bytes) -> int | None:
        """Where a document is, if it may be found."""
        row = self.block.rows.get(raw)
        if row is None or row >= len(self.block.raws):
            return None
        return row if self.admitted is None or self.admitted[row] else None

    def may_show(self, row: int) -> bool:
        """Whether what lies in a row may be found."""
        return row >= 0 and (self.admitted is None or bool(self.admitted[row]))

    def likeness(self, rows: Rows, vector: Any) -> Any:
        """How like the question rows are; nothing where there is no model."""
        return self.opened.likeness(self.scope_no, self.layer, rows, vector)


class Scored(NamedTuple):
    """What the channels said of the rows of a place, each best first."""

    words: Channel = NOTHING
    meaning: Channel = NOTHING
    lent: Channel = NOTHING


@dataclass(frozen=True)
class Asked:
    """The question as the columns need it."""

    vector: Any  # float32[d], or None
    words: Words
    expected: Words
    embedder: Embedder


def strongest(
    hits: Sequence[Hit], layer: Layer, near: Sequence[tuple[bytes, bytes, list[bytes]]], most: int
) -> list[tuple[bytes, float]]:
    """The documents of a layer that words and meaning together speak for most, best first.

    `near` has rows and scores of its blocks, and their ids by row. A hit by words counts beside the
    best of them, one by meaning as like as it is.
    """
    words = [(raw, -less) for less, own, raw, _ in hits if own == layer]
    best = max([score for _, score in words], default=1.0)
    strength = {raw: score / best for raw, score in words}
    for rows, scores, raws in near:
        pairs = zip(memoryview(rows).cast("q"), memoryview(scores).cast("f"), strict=True)
        for row, score in pairs:
            strength[raws[row]] = strength.get(raws[row], 0.0) + score
    order = sorted([(-much, raw) for raw, much in strength.items()])
    return [(raw, -less) for less, raw in order[:most]]


def found(hits: Sequence[Hit], places: Sequence[Place]) -> list[Channel]:
    """What was said of documents, by where each lies: in the first place that has it."""
    said: list[tuple[array[int], array[float]]] = [(array("q"), array("f")) for _ in places]
    for less, layer, raw, _ in hits:
        for place, (rows, scores) in zip(places, said, strict=True):
            row = place.row_of(raw) if place.layer == layer else None
            if row is not None:
                rows.append(row)
                scores.append(-less)
                break
    return list(said)


def parts_of(places: Sequence[Place], scored: Sequence[Scored], near: int = 0) -> list["Part"]:
    """What was chosen of these places; `near` of the best of a channel bring their neighbours."""
    return [
        Part(place, _chosen(place, some, near), some)
        for place, some in zip(places, scored, strict=True)
    ]


def pools_of(groups: Sequence[Sequence["Part"]], asked: Asked) -> list["Pool"]:
    """A pool a group. Most words stand in all of them, so they are matched at once."""
    every = [part for parts in groups for part in parts]
    pieces = _joined([part.pieces() for part in every], np.int32)
    lengths = _joined([part.lengths for part in every], np.int64)
    met = matches(asked.words.and_also(asked.expected), pieces, lengths, asked.embedder)
    pools, first = [], 0
    for parts in groups:
        last = first + sum(len(part.rows) for part in parts)
        pools.append(Pool(parts, met[first:last], lengths[first:last] > 0, asked))
        first = last
    return pools


class Pool:
    """Candidates as columns of equal length, part after part, each in the order of the log.

    A column is put together when it is asked for: many questions ask for few of them.
    `matches` tells how well each word of the question is met in each candidate, `importance` how
    rare the words are, `expected` how like the sort of word that is expected its best word is.
    `is_spelled` is False for a text too long to be matched by its words.
    """

    def __init__(self, parts: Sequence["Part"], met: Any, is_spelled: Any, asked: Asked) -> None:
        self._parts = parts
        self._asked = asked
        self._firsts = [0, *accumulate(len(part.rows) for part in parts)]
        # Only what happened has a before and an after; what was derived is never asked for them.
        self.is_told = any(part.place.layer == "events" for part in parts)
        self.matches = met[:, : len(asked.words)]  # float32[n, q]
        self.expected = met[:, len(asked.words) :].max(axis=1, initial=0)  # float32[n]
        self.is_spelled = is_spelled  # bool[n]

    def __len__(self) -> int:
        return self._firsts[-1]

    # ── one candidate ────────────────────────────────────────────────────────────────────────

    def _at(self, place: int) -> tuple["Part", int]:
        """Which part has a candidate, and its row there."""
        number = bisect_right(self._firsts, place) - 1
        part = self._parts[number]
        return part, int(part.rows[place - self._firsts[number]])

    def raw(self, place: int) -> bytes:
        """The id of a candidate."""
        part, row = self._at(place)
        return part.block.raws[row]

    def vector(self, place: int) -> Any:
        """float32[d], unit length."""
        part, row = self._at(place)
        return part.block.vectors[row]

    def span(self, layer: Layer) -> tuple[int, int]:
        """The first candidate of a layer, and the first after them."""
        own = [at for at, part in enumerate(self._parts) if part.place.layer == layer]
        return (self._firsts[own[0]], self._firsts[own[-1] + 1]) if own else (0, 0)

    # ── columns ──────────────────────────────────────────────────────────────────────────────

    def column(self, name: str) -> Any:
        """A column of the blocks."""
        return _joined([getattr(part.block, name).take(part.rows) for part in self._parts], None)

    def vectors(self, places: Any) -> Any:
        """float32[k, d]: of some candidates."""
        if len(self._parts) == 1:
            part = self._parts[0]
            return part.block.vectors.take(part.rows.take(places), axis=0)
        return np.stack([self.vector(place) for place in places.tolist()])

    @cached_property
    def raws(self) -> list[bytes]:
        """The ids of all candidates."""
        return [part.block.raws[row] for part in self._parts for row in part.rows.tolist()]

    @cached_property
    def scope_no(self) -> Any:
        """int64[n]: where each was found."""
        numbers = [part.place.scope_no for part in self._parts]
        return np.repeat(np.array(numbers, np.int64), [len(part.rows) for part in self._parts])

    @cached_property
    def offset(self) -> Any:
        """int64[n]: the order of the log."""
        return self.column("offsets")

    @cached_property
    def session(self) -> Any:
        """int64[n]: numbers of this pool; 0 is none."""
        return _joined([part.sessions(at) for at, part in enumerate(self._parts)], np.int64)

    @cached_property
    def importance(self) -> Any:
        """float32[q], sums to 1."""
        return importance(self._asked.words, [_sample(part.block) for part in self._parts])

    @cached_property
    def met(self) -> Any:
        """float32[n]: how much of the question is met by each."""
        # Not a matrix product: few columns, and lying apart.
        return (self.matches * self.importance).sum(axis=1)

    @cached_property
    def actor(self) -> tuple[Any, list[str]]:
        """int32[n] and the names: numbers of this pool, 0 is none."""
        return self._renumbered("actor", "actors")

    @cached_property
    def role(self) -> tuple[Any, list[str]]:
        """The same of roles."""
        return self._renumbered("role", "roles")

    def _renumbered(self, column: str, names: str) -> tuple[Any, list[str]]:
        pairs = [
            (getattr(part.block, column).take(part.rows), getattr(part.block, names))
            for part in self._parts
        ]
        return _renumbered(pairs)

    @cached_property
    def beside(self) -> Any:
        """int64[4, n]: which candidate stands on each of the SIDES; -1 when none of them does."""
        # A place is a part and a row; the pool is in this order.
        key = _joined([part.rows | at << 40 for at, part in enumerate(self._parts)], np.int64)
        near = _joined(
            [np.where(p.near >= 0, p.near | at << 40, -1) for at, p in enumerate(self._parts)],
            np.int64,
            2,
        ).T
        found = np.minimum(np.searchsorted(key, near), len(key) - 1)
        return np.where(key.take(found) == near, found, -1)

    # ── channels ─────────────────────────────────────────────────────────────────────────────

    @cached_property
    def channels(self) -> Mapping[str, Any]:
        """float32[n] each: what the searches said."""
        vector, parts = self._asked.vector, self._parts
        found = {"words": _joined([part.scores("words") for part in parts], np.float32)}
        passages = _joined([part.scores("meaning") for part in parts], np.float32)
        if self.is_told:
            whole = _joined([part.likeness(vector) for part in parts], np.float32)
            found["exchange"] = _joined([part.exchange(vector) for part in parts], np.float32)
            found["lent"] = _joined([part.scores("lent") for part in parts], np.float32)
        else:
            whole = _likeness(
                [part.block.vectors.take(part.rows, axis=0) for part in parts], vector
            )
        # A document is as like the question as a whole, or as its best passage if that is more.
        found["meaning"] = np.maximum(whole, passages)
        return found


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


class Beside(NamedTuple):
    """Who stands beside the rows of a block, and how long each is together with the one before."""

    near: Any  # int64[n, 4]; int32 as long as it is kept
    length: NDArray[np.float32]  # float32[n]


def _work_out(block: Block, rows: Rows) -> Beside:
    near = neighbours_of(block, rows)
    before = near[:, 1]
    both = block.vectors.take(rows, axis=0)
    both += np.where(before >= 0, np.float32(_BEFORE), np.float32(0))[:, None] * (
        block.vectors.take(np.maximum(before, 0), axis=0)
    )
    length = np.sqrt(np.einsum("ij,ij->i", both, both))
    return Beside(near, np.maximum(length, np.float32(1e-6)))


def beside_of(block: Block, rows: Rows) -> Beside:
    """The same of some rows, in order: looked up where it is known for good.

    Rows join at the end, so only the last few can still get neighbours. A block too large to be
    compared row by row is not gone through for this either.
    """
    settled = len(block.raws) - _LOOK_ROWS
    if settled > limits.EXACT_ROWS_MAX:
        return _work_out(block, rows)
    known: Beside | None = block.worked_out.get(_BESIDE)
    if known is None or len(known.length) < settled - _LAG_ROWS:
        known = block.worked_out[_BESIDE] = _grown(block, known, settled)
    count = int(np.searchsorted(rows, min(settled, len(known.length))))
    near = known.near.take(rows[:count], axis=0).astype(np.int64)
    found = Beside(near, known.length.take(rows[:count]))
    if count == len(rows):
        return found
    last = _work_out(block, rows[count:])
    return Beside(*(np.concatenate(pair) for pair in zip(found, last, strict=True)))


def _grown(block: Block, known: Beside | None, settled: int) -> Beside:
    """What is known, and all that can be; row numbers take half the room here."""
    nobody = Beside(np.empty((0, len(SIDES)), np.int32), np.empty(0, np.float32))
    parts = [nobody if known is None else known]
    for start in range(len(parts[0].length), max(settled, 0), _ROWS_AT_ONCE):
        found = _work_out(block, np.arange(start, min(start + _ROWS_AT_ONCE, settled)))
        parts.append(found._replace(near=found.near.astype(np.int32)))
    return Beside(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Part:
    """The chosen rows of one block."""

    def __init__(self, place: Place, rows: Rows, scored: Scored) -> None:
        self.place = place
        self.block = place.block
        self.rows = rows
        starts = place.block.starts
        self._starts: Rows = starts.take(rows)
        self.lengths: Rows = starts.take(rows + 1) - self._starts
        """How many pieces each row has."""
        self._scored = scored

    @cached_property
    def _beside(self) -> Beside:
        return beside_of(self.block, self.rows)

    @property
    def near(self) -> Any:
        """int64[n, 4]: the rows on each of the SIDES."""
        return self._beside.near

    def sessions(self, at: int) -> Rows:
        """Numbers that no other part has; 0 stays none."""
        own: Rows = self.block.session.take(self.rows).astype(np.int64)
        return np.where(own > 0, own + (at << 32), 0) if at else own

    def scores(self, channel: str) -> NDArray[np.float32]:
        """A channel's score of each row; 0 where it said nothing."""
        found = np.zeros(len(self.rows), np.float32)
        rows, scores = getattr(self._scored, channel)
        places = np.searchsorted(self.rows, np.frombuffer(rows, np.int64))
        found[places] = np.frombuffer(scores, np.float32)
        return found

    def likeness(self, vector: Any) -> Any:
        """Of each row as a whole."""
        return self.place.likeness(self.rows, vector)

    def exchange(self, vector: Any) -> Any:
        """Likeness of each row together with what was said before it."""
        before, length = self._beside.near[:, 1], self._beside.length
        theirs = self.place.likeness(np.maximum(before, 0), vector)
        theirs[before < 0] = 0
        return (self.likeness(vector) + _BEFORE * theirs) / length

    def pieces(self) -> Any:
        """The pieces of the rows, one after another."""
        lengths = self.lengths
        # Where each piece lies: the row's start, and its place within the row.
        ends = lengths.cumsum()
        places = np.repeat(self._starts - ends + lengths, lengths)
        return self.block.tokens.take(places + np.arange(len(places)))


def _chosen(place: Place, scored: Scored, near: int) -> Rows:
    """Rows that a channel named, and the neighbours of the best of them, in order."""
    named = [np.frombuffer(rows, np.int64) for rows, _ in scored]
    best = np.unique(np.concatenate([rows[:near] for rows in named[:2]]))
    if len(best):
        beside = beside_of(place.block, best).near.ravel()
        beside = beside[beside >= 0]
        named.append(beside if place.admitted is None else beside[place.admitted[beside]])
    return np.unique(np.concatenate(named))


def _likeness(parts: Sequence[Any], vector: Any) -> Any:
    """Of rows of several blocks, compared at once: equal sentences are many among them."""
    rows = _joined(parts, np.float32, 2)
    # A block that was made by another model is like nothing until it is made anew.
    if vector is None or rows.shape[1:] != vector.shape:
        return np.zeros(len(rows), np.float32)
    return rows @ vector


def _sample(block: Block) -> tuple[Any, int]:
    """Pieces of the newest rows, and of how many."""
    count = len(block.raws)
    first = max(0, count - SAMPLE_ROWS)
    return block.tokens[block.starts[first] : block.starts[count]], count - first


def _joined(parts: Sequence[Any], kind: Any, axes: int = 1) -> Any:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty((0,) * axes, kind)


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
