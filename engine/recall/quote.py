"""What do the records themselves say to a question?  The best sentences, quoted; or: not known.

Pure but for the embedder. A sentence counts by the question's words in it, by its meaning, and by
how well its record ranked; when even the best is weak, nothing is claimed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.recall.render import day, neutral
from engine.state.index import Embedder
from projectors.text.passages import sentences
from projectors.text.stems import stem, word_set
from schemas.pack import CitationMode, Evidence

NOT_KNOWN: Final = "Not known: nothing that was recalled answers this."
QUOTES_MAX: Final = 3
KNOWN_MIN: Final = 0.4
"""Strength below which a sentence answers nothing. On LoCoMo nine of ten questions about the memory
asked are above it, and three of a hundred about another one."""
_NEAR: Final = 0.85
"""A further sentence is quoted when it is nearly as strong as the first."""
_ITEMS_READ: Final = 12
_SENTENCES_READ: Final = 60
_WORD: Final = re.compile(r"\w+")
_ASKING: Final = word_set(
    """
    a about an and any are as at be been by can could did do does for from had has have he her him
    his how i in is it its me my of on or our s she should so t than that the their them then there
    these they this to us was we were what when where which who whom whose why will with would you
    your tell know say said
    """
)


@dataclass(frozen=True)
class Quote:
    """A sentence, whose it is, and how strongly it bears on the question."""

    words: str
    evidence: Evidence
    strength: float


def quotes(question: str, proof: Sequence[Evidence], embedder: Embedder) -> list[Quote]:
    """The sentences that answer best, strongest first; empty when none is strong enough."""
    read = [
        (one.text[start:end].strip(), one)
        for one in sorted(proof, key=lambda item: -item.score)[:_ITEMS_READ]
        for start, end in sentences(one.text)
    ][:_SENTENCES_READ]
    if not read:
        return []
    wanted = telling(question)
    likeness = embedder.embed([words for words, _ in read]) @ embedder.embed_query(question)
    found = [
        Quote(words, one, _strength(words, one, wanted, float(near)))
        for (words, one), near in zip(read, likeness, strict=True)
    ]
    found.sort(key=lambda quote: (-quote.strength, quote.evidence.marker, quote.words))
    strong = [quote for quote in found if quote.strength >= KNOWN_MIN]
    # What was said itself is the better proof; what was derived from it says the same again.
    verbatim = [quote for quote in strong if quote.evidence.layer == "events"] or strong
    near = [quote for quote in verbatim if quote.strength >= verbatim[0].strength * _NEAR]
    return _distinct(near)[:QUOTES_MAX]


def telling(question: str) -> frozenset[str]:
    """The stems of the words by which a sentence would show that it answers."""
    words = [word for word in _WORD.findall(question.lower()) if word not in _ASKING]
    return frozenset(map(stem, words))


def _strength(words: str, one: Evidence, wanted: frozenset[str], near: float) -> float:
    said = {stem(word) for word in _WORD.findall(words.lower())}
    around = said | {stem(word) for word in _WORD.findall(one.source.lower())}
    covered = len(wanted & around) / len(wanted) if wanted else 0.0
    strength = 0.45 * covered + 0.35 * max(0.0, near) + 0.2 * one.score
    if words.endswith("?"):
        strength *= 0.6  # a question seldom answers one
    return strength * (0.7 if one.is_superseded else 1.0)


def _distinct(found: Sequence[Quote]) -> list[Quote]:
    kept: list[Quote] = []
    for quote in found:
        if all(quote.words not in other.words for other in kept):
            kept.append(quote)
    return kept


def told(found: Sequence[Quote], mode: CitationMode) -> str:
    """The quotes as an answer: who said it, when, and where that stands in the pack."""
    if not found:
        return NOT_KNOWN
    lines = []
    for quote in found:
        one = quote.evidence
        marker = f" {one.marker}" if mode == "inline_with_markers" else ""
        words = neutral(quote.words).replace("\n", " ")
        lines.append(f"“{words}” ({one.source}, {day(one.when)}){marker}")
    if mode == "block_at_end":
        lines += [f"Sources: {', '.join(dict.fromkeys(q.evidence.id for q in found))}"]
    return "\n".join(lines)
