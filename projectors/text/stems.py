"""Which words are one word?  Plurals and endings folded, so that inflected forms meet."""

import re
from functools import lru_cache
from typing import Final


def word_set(words: str) -> frozenset[str]:
    """The words of a list written as prose, which is how a long one stays readable."""
    return frozenset(words.split())


_KEPT: Final = frozenset(
    {
        # Names whose last letter is theirs: without it they are another name.
        *("adams", "andrews", "chris", "carlos", "daniels", "davis", "edwards", "evans", "hughes"),
        *("james", "jones", "mathews", "matthews", "myers", "owens", "peters", "phillips"),
        *("richards", "roberts", "rogers", "samuels", "sanders", "stevens", "walters", "williams"),
        # Words that only look like plurals.
        *("always", "does", "news", "series", "species", "this", "was", "has", "its", "lens"),
        *("maths", "physics", "economics", "politics", "mathematics", "athletics", "wales"),
    }
)
_IRREGULAR: Final = {
    "children": "child",
    "feet": "foot",
    "geese": "goose",
    "halves": "half",
    "kids": "kid",
    "knives": "knife",
    "men": "man",
    "mice": "mouse",
    "movies": "movie",
    "cookies": "cookie",
    "people": "person",
    "shelves": "shelf",
    "shoes": "shoe",
    "teeth": "tooth",
    "wives": "wife",
    "women": "woman",
}
_ENDINGS: Final = re.compile(
    r"(?:ization|isation|ational|fulness|iveness|ments?|ness|ings?|ed|ly)$"
)
_VOWEL: Final = re.compile(r"[aeiouy]")


def singular(word: str) -> str:
    """One of them: `cats` is `cat`, `companies` is `company`; lower case in, lower case out."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or word[-1] != "s" or word in _KEPT or word[-2] in "suia":
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes", "oes")):
        return word[:-2]
    return word[:-1]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A rough root, for comparing: `moved`, `moving` and `moves` give one; no word by itself."""
    short = singular(word)
    found = _ENDINGS.search(short)
    if found is not None and found.start() >= 3 and _VOWEL.search(short, 0, found.start()):
        short = short[: found.start()]
        if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lsz":
            short = short[:-1]
    if len(short) > 3 and short[-1] == "e":
        short = short[:-1]
    if len(short) > 3 and short[-1] == "y":
        short = short[:-1] + "i"
    return short
