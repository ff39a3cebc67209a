"""What would plain retrieval find?  BM25 over stems, and cosine of vectors: the floor."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.corpora import Turn
from engine.embedders import load_local
from engine.recall.question import terms_of
from projectors.text.stems import stem

_WORD = re.compile(r"[^\W_]+")
_K1, _B = 1.2, 0.75


class Plain:
    """The turns of one conversation, searched the plain way."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._ids = [turn.id for turn in turns]
        counts = [Counter(map(stem, _WORD.findall(_spoken(turn).lower()))) for turn in turns]
        lengths = np.array([sum(count.values()) for count in counts])
        self._norm = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1))
        self._rows: dict[str, list[tuple[int, int]]] = {}
        for row, count in enumerate(counts):
            for word, times in count.items():
                self._rows.setdefault(word, []).append((row, times))
        self._embedder = load_local("wordllama")
        self._vectors = self._embedder.embed([turn.text for turn in turns])

    def by_words(self, question: str, limit: int) -> list[str]:
        """BM25: speaker and day are words like others, function words are left out."""
        scores = np.zeros(len(self._ids))
        for word in map(stem, terms_of(question)):
            found = self._rows.get(word, [])
            if found:
                rows, times = np.array(found).T
                rarity = math.log1p((len(self._ids) - len(found) + 0.5) / (len(found) + 0.5))
                scores[rows] += rarity * times * (_K1 + 1) / (times + self._norm[rows])
        return self._best(scores, limit)

    def by_meaning(self, question: str, limit: int) -> list[str]:
        """Cosine of the question as it is asked with what was said."""
        return self._best(self._vectors @ self._embedder.embed_query(question), limit)

    def _best(self, scores: Any, limit: int) -> list[str]:
        order = np.argsort(-scores, kind="stable")[:limit]
        return [self._ids[row] for row in order.tolist() if scores[row] > 0]


def _spoken(turn: Turn) -> str:
    return f"{turn.at.day} {turn.at:%B %Y} {turn.actor.partition(':')[2]}: {turn.text}"
