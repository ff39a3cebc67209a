"""How well is each word of a question met?  Late interaction over the pieces of words. Pure.

A word's vector is the sum of its pieces', its likeness to another the cosine. A question's word is
met by the most similar word of a text; how rare it is where the search goes on says how much it
counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.state.index import Embedder

Floats = NDArray[np.float32]

FLOOR: Final = 0.35
"""Likeness below this is that of any two words."""

_FEW: Final = 8
"""Pieces that are looked for one by one."""


@dataclass(frozen=True)
class Words:
    """The words of a question, as pieces and as vectors."""

    pieces: Any  # int32[p]
    starts: Any  # int64[q]: where each word begins among the pieces
    vectors: Any  # float32[q, e], unit length

    def __len__(self) -> int:
        return len(self.starts)

    def and_also(self, others: "Words") -> "Words":
        """These words, and then the others."""
        if not len(others):
            return self
        return Words(
            np.concatenate([self.pieces, others.pieces]),
            np.concatenate([self.starts, others.starts + len(self.pieces)]),
            np.concatenate([self.vectors.reshape(-1, others.vectors.shape[1]), others.vectors]),
        )


def words_of(terms: Sequence[str], embedder: Embedder) -> Words:
    """The words of a question; none when the model has no pieces."""
    pieces = embedder.tokens(" ".join(terms))
    if not len(pieces):
        return Words(pieces, np.empty(0, np.int64), np.empty((0, 1), np.float32))
    starts = embedder.begins_word(pieces).nonzero()[0]
    vectors = embedder.token_vectors(pieces)
    if len(starts) < len(pieces):
        vectors = _summed(vectors, starts)
    lengths = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))
    return Words(pieces, starts, vectors / np.maximum(lengths, 1e-9))


def _summed(vectors: Any, starts: Any) -> Any:
    """One vector a word: those of its pieces are added to the first, which few words need."""
    firsts = starts.tolist()
    for first, last in zip(firsts, [*firsts, len(vectors)][1:], strict=True):
        for piece in range(first + 1, last):
            vectors[first] += vectors[piece]
    return vectors.take(starts, axis=0)


def importance(words: Words, samples: Sequence[tuple[Any, int]]) -> Floats:
    """How much each word counts: by how few texts have it, of samples of (pieces, texts).

    The shares add up to one. A word of several pieces is as rare as the rarest of them.
    """
    if not len(words):
        return np.empty(0, np.float32)
    texts = sum(count for _, count in samples)
    pieces = np.concatenate([some for some, _ in samples]) if samples else np.empty(0, np.int32)
    if len(words.pieces) <= _FEW:
        seen = np.array([np.count_nonzero(pieces == piece) for piece in words.pieces], np.float64)
    else:
        # Every piece up to the largest asked for is counted: quicker than to look for each.
        size = int(words.pieces.max()) + 1
        counts = np.bincount(pieces[pieces < size], minlength=size)
        seen = counts[words.pieces].astype(np.float64)
    having = np.minimum(np.minimum.reduceat(seen, words.starts), texts)
    rarity = np.log1p((texts - having + 0.5) / (having + 0.5)) + 1e-6
    shares: Floats = (rarity / rarity.sum()).astype(np.float32)
    return shares


def matches(words: Words, pieces: Any, lengths: Any, embedder: Embedder) -> Floats:
    """float32[n, q]: how well each text meets each word; `lengths` cuts `pieces` into n texts."""
    found = np.zeros((len(lengths), len(words)), np.float32)
    if not len(words) or not len(pieces):
        return found
    distinct, at = _numbered(pieces)
    rows = embedder.token_vectors(distinct)
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    begins = embedder.begins_word(distinct).take(at)
    begins[starts] = True
    first = np.flatnonzero(begins)
    dots, squares = rows @ words.vectors.T, np.einsum("ij,ij->i", rows, rows)
    likeness = _floored(dots, squares).take(at.take(first), axis=0)
    several, whole = _of_several(dots, squares, at, first)
    likeness[several] = whole
    # Every text begins a word, so those of one text are a run.
    run = np.searchsorted(first, starts)
    found[lengths > 0] = np.maximum.reduceat(likeness, run, axis=0)
    return np.minimum(found, 1)


def _numbered(pieces: Any) -> tuple[Any, Any]:
    """The distinct pieces in order, and which of them each piece is.

    Most pieces stand in many texts: each is compared once.
    """
    # Only what was written is read: nothing as large as the model's vocabulary is ever filled.
    place = np.empty(int(pieces.max()) + 1, np.int64)
    order = np.arange(len(pieces))
    place[pieces] = order
    distinct = np.sort(pieces[place.take(pieces) == order])
    place[distinct] = order[: len(distinct)]
    return distinct, place.take(pieces)


def _of_several(dots: Floats, squares: Floats, pieces: Any, first: Any) -> tuple[Any, Floats]:
    """(which words, their likeness): those of several pieces, which are summed.

    Pieces of one word are next to orthogonal, so the length of their sum is that of a diagonal.
    """
    count = np.empty_like(first)
    np.subtract(first[1:], first[:-1], out=count[:-1])
    count[-1] = len(pieces) - first[-1]
    word = np.flatnonzero(count > 1)
    # The longest first: those that go on are then always the first of them.
    word = word[np.argsort(-count.take(word), kind="stable")]
    start, count = first.take(word), count.take(word)
    whole, square = dots.take(pieces.take(start), axis=0), squares.take(pieces.take(start))
    step = 1
    while left := np.count_nonzero(count > step):
        more = pieces.take(start[:left] + step)
        whole[:left] += dots.take(more, axis=0)
        square[:left] += squares.take(more)
        step += 1
    return word, _floored(whole, square)


def _floored(dots: Floats, squares: Floats) -> Floats:
    cosines: Any = dots / np.sqrt(np.maximum(squares, 1e-9))[:, None]
    cosines[cosines < FLOOR] = 0
    return cosines  # type: ignore[no-any-return]
