"""How is a text cut?  Into sentences to read, passages to find, and the few words it is about."""

import re
from collections.abc import Iterator
from typing import Final

from projectors.text.candidates import Passage
from projectors.text.stems import stem, word_set
from schemas import limits

_SENTENCE_END: Final = re.compile(r"[.!?…\n][.!?…]*[\"'”’)\]]*(?:\s[\s.!?…]*|$)")
_ABBREVIATED: Final = word_set(
    "mr mrs ms dr prof st vs inc corp ltd co etc approx no fig e.g i.e a.m p.m jr sr dept est"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end, their final marks included."""
    start = 0
    for found in _SENTENCE_END.finditer(text):
        first, end = found.span()
        if text[first] == "." and end < len(text) and "\n" not in found[0]:
            # Twenty characters hold any abbreviation: a text without spaces is not searched.
            word = text[max(start, first - 20) : first].rpartition(" ")[2].lower()
            if word in _ABBREVIATED or (len(word) == 1 and word.isalpha() and word != "i"):
                continue
        if first > start:
            yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def passages(text: str) -> tuple[Passage, ...]:
    """Pieces of at most so many words, cut at the ends of paragraphs and sentences.

    Together they cover all that the text says. A short text is one with itself and has none.
    """
    if len(text) < limits.PASSAGE_CHARS_MIN:
        return ()
    cuts = _cuts(text)
    if len(cuts) < 2:
        return ()
    return tuple(Passage(start=a, end=b, text=text[a:b].strip()) for a, b in cuts)


def _cuts(text: str) -> list[tuple[int, int]]:
    cuts: list[tuple[int, int]] = []
    start, words = 0, 0
    for first, last in _pieces(text):
        count = text.count(" ", first, last) + 1
        is_full = (
            words + count > limits.PASSAGE_WORDS_MAX or last - start > limits.PASSAGE_CHARS_MAX
        )
        is_enough = words >= limits.PASSAGE_WORDS_MIN
        if words and (is_full or (is_enough and "\n\n" in text[max(start, first - 8) : first])):
            cuts.append((start, first))
            start, words = first, 0
        words += count
    if words:
        cuts.append((start, len(text)))
    return cuts


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Sentences; one without end is cut at spaces, or where it is too long for a passage."""
    longest = limits.PASSAGE_CHARS_MAX
    for start, last in sentences(text):
        first = start
        while last - first > longest:
            space = text.rfind(" ", first + 1, first + longest)
            cut = space + 1 if space > first else first + longest
            yield first, cut
            first = cut
        yield first, last


def names_in(text: str) -> list[str]:
    """Names a text drops: capitals inside a sentence, where only a name has them."""
    found: dict[str, None] = {}
    for name in _NAME.findall(text):
        first, _, rest = name.partition(" ")
        known = rest if first in _NO_NAMES else name
        if known and known not in _NO_NAMES and known.lower() not in _COMMON:
            found[known] = None
    return list(found)[: limits.NAMES_MAX]


_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]\w+(?:[ &-][A-Z]\w+){0,3}")
_NO_NAMES: Final = word_set(
    """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April June July
    August September October November December May Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec
    """
)


def topics(text: str) -> tuple[str, ...]:
    """The stems of the few words a text is about: the most frequent, the longer first."""
    weights: dict[str, int] = {}
    for word in _WORD.findall(text[: limits.EXTRACT_CHARS_MAX].lower()):
        if len(word) > 3 and word not in _COMMON:
            root = stem(word if "'" not in word else word.removesuffix("'s"))
            weights[root] = weights.get(root, len(root)) + 64
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)
    return tuple(ranked[: limits.TOPICS_MAX])


_COMMON: Final = word_set(
    """
    about above actually after again against ain't almost along already also although always
    among anything around aren't away back because been before being below better between both
    bring but came can't cannot come comes coming could couldn't definitely did didn't does
    doesn't doing don't done down during each either else enough even ever every everything feel
    feeling few find first for from gave get gets getting give given glad going gonna good got
    great haven't had hadn't happen happy hard has hasn't have having hello her here here's hers
    herself hey hi him himself his hope how i'd i'll i'm i've into isn't it'd it'll it's its
    itself just keep kind knew know known last let let's like little long look looking looks lot
    lots made make makes making many maybe mean means might mine more most much must myself need
    needs never next nice none nothing often okay once one only other others ought our ours
    ourselves over own people perhaps please pretty probably quite rather really right said same
    say saying says see seem seems seen she'd she'll she's should shouldn't since some someone
    something sometimes somewhere soon sorry still stuff such sure take takes taking tell than
    thank thanks that that's the their theirs them themselves then there there's these they
    they'd they'll they're they've thing things think this those though thought through time
    today together told tomorrow too took totally tried try trying under until upon us used very
    want wanted wants was wasn't way we'd we'll we're we've week well went were weren't what
    what's whatever when where where's whether which while who who's whole whom whose why will
    wish with within without won't wonderful wonder would wouldn't wow yeah year years yes
    yesterday yet you you'd you'll you're you've your yours yourself awesome amazing
    """
)
