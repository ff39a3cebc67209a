"""Do two names mean one thing?  The normal form under which entities are found again."""

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from projectors.text.stems import singular

_CORPORATE: Final = frozenset(
    {
        *("ag", "bv", "co", "company", "corp", "corporation", "gmbh", "inc", "incorporated"),
        *("limited", "llc", "llp", "ltd", "nv", "oy", "plc", "pty", "sa", "sarl", "se", "srl"),
    }
)
_LEADING: Final = frozenset({"the", "a", "an", "mr", "mrs", "ms", "dr", "prof", "sir"})
_POSSESSIVE: Final = re.compile(r"['’]s\b|(?<=s)['’](?!\w)")
_WORDS: Final = re.compile(r"[^\W_]+(?:[.&+#@'’-][^\W_]+)*[+#]*")


@lru_cache(maxsize=16384)
def normal(name: str) -> str:
    """The form two spellings of a name share; empty when it names nothing.

    Case, possessives, articles, titles, corporate suffixes and the plural of the last word are
    folded: `The Acme Corp.'s` is `acme`, `two cats` is `two cat`.
    """
    folded = _POSSESSIVE.sub("", normalize("NFKC", name).casefold())
    words = _WORDS.findall(folded)
    first, last = 0, len(words)
    while last - first > 1 and words[first] in _LEADING:
        first += 1
    while last - first > 1 and words[last - 1].replace(".", "") in _CORPORATE:
        last -= 1
    words = words[first:last]
    if words:
        words[-1] = singular(words[-1])
    return " ".join(words)
