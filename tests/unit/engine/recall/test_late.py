"""Is each word of a question met as well as by looking at every word of every text?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.recall.late import FLOOR, Words, matches, words_of

SIZE, PIECES = 6, 40
TABLE = np.random.default_rng(3).normal(size=(PIECES, SIZE)).astype(np.float32)
BEGINS = np.arange(PIECES) % 3 != 1


class Model:
    """As much of an embedder as the comparison asks: every third piece goes on with a word."""

    def token_vectors(self, tokens):
        return TABLE[tokens]

    def begins_word(self, tokens):
        return BEGINS[tokens]

    def tokens(self, text):
        return np.array([int(word) for word in text.split()], np.int32)


texts = st.lists(st.lists(st.integers(0, PIECES - 1), max_size=9), max_size=8)
asked = st.lists(st.integers(0, PIECES - 1), max_size=4)


def words_in(text):
    """The pieces of each word; what a text begins with begins a word."""
    found = []
    for piece in text:
        if BEGINS[piece] or not found:
            found.append([])
        found[-1].append(piece)
    return found


def likeness(vector, word):
    """The cosine, where the length of a word is that of pieces at right angles."""
    rows = TABLE[word]
    cosine = float(rows.sum(axis=0) @ vector) / float(np.sqrt((rows * rows).sum()))
    return cosine if cosine >= FLOOR else 0.0


@given(texts=texts, asked=asked)
def test_a_word_is_met_by_the_most_similar_word_of_a_text(texts, asked):
    """Whether words are of one piece or of several, and whether texts have any."""
    vectors = TABLE[asked] / np.linalg.norm(TABLE[asked], axis=1, keepdims=True)
    words = Words(np.array(asked, np.int32), np.arange(len(asked)), vectors)
    pieces = np.array([piece for text in texts for piece in text], np.int32)
    lengths = np.array([len(text) for text in texts], np.int64)

    found = matches(words, pieces, lengths, Model())

    assert (len(texts), len(asked)) == found.shape
    for at, text in enumerate(texts):
        for number, vector in enumerate(vectors):
            best = max((likeness(vector, word) for word in words_in(text)), default=0.0)
            assert found[at, number] == pytest.approx(min(best, 1.0), abs=1e-4)


@given(pieces=st.lists(st.integers(0, PIECES - 1), max_size=9))
def test_a_word_of_a_question_is_all_of_its_pieces(pieces):
    """One vector a word, of unit length; pieces before the first that begins one are none's."""
    found = words_of([str(piece) for piece in pieces], Model())

    begun = [at for at, piece in enumerate(pieces) if BEGINS[piece]]
    assert begun == found.starts.tolist()
    for vector, first, last in zip(found.vectors, begun, [*begun[1:], len(pieces)], strict=False):
        whole = TABLE[pieces[first:last]].sum(axis=0)
        assert np.allclose(vector, whole / np.linalg.norm(whole), atol=1e-5)
