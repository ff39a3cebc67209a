"""What are the words of a sentence?  Contractions opened, times and frequencies set aside."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from projectors.text.dates import find
from projectors.text.shapes import TimePhrase
from projectors.text.stems import word_set
from projectors.text.words import CONTRACTIONS

MARK: Final = "\ue000"
"""Stands in a sentence where words of time stood, with their number: they belong to no phrase.
A character for private use; a text that has it of its own loses it."""

JOIN: Final = "\ue001"
"""Stands for the spaces of a title in quotes, which is one word."""

_PLAIN: Final = re.compile(r"(?:[A-Z]\.)+(?=\s)|\w+(?:['&:\ue001-]\w+)*|[^\s\w]")
_FULL: Final = re.compile(
    r"""https?://\S+ | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ | \w+(?:\.\w{2,})+/\S*\w
      | \+\d[\d\ ()-]{6,}\d | \d{3}[- ]\d{3}[- ]\d{4} | \d{3,5}-\d{3,7}
      | [$€£]\d+(?:[.,]\d+)*[kKmM]? | \d+(?:[.,:]\d+)*%?[kKmM]?(?:-[^\W\d_]+)*(?:st|nd|rd|th)?
      | \ue000\d+ | (?:[A-Z]\.)+(?=\s)
      | \w+(?:['&:\ue001-]\w+)*(?:\+\+?(?!\w)|\#(?!\w))? | [^\s\w]""",
    re.VERBOSE,
)
_PECULIAR: Final = re.compile(r"[@/$€£+&]|\d")
_CALENDAR: Final = word_set(
    """
    mon tue tues wed thu thur thurs fri sat sun yesterday today tomorrow tonight ago last next
    week weekend month quarter year years weeks days months hours hour minutes day morning
    afternoon evening night monday tuesday wednesday thursday friday saturday sunday january
    february march april may june july august september october november december jan feb mar
    apr jun jul aug sept sep oct nov dec spring summer fall autumn winter decade decades
    fortnight time
    """
)
_OFTEN: Final = re.compile(
    r"""\b(?:(?:every|each)\ (?:other\ |single\ |second\ )?(?:day|week|weekend|month|year|morning
          |evening|night|afternoon|hour|summer|winter|spring|autumn|fall|time
          |(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?
        |(?:once|twice|\w+\ times)\ (?:a|per|every|each)\ (?:day|week|month|year|night)
        |(?:a|per)\ (?:day|week|month|year|night)(?=\W|$)(?!\ (?:ago|back|off|later|in|at|with|of))
        |on\ (?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|weekdays)
        |daily|weekly|monthly|all\ the\ time)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_OFTEN_WORDS: Final = word_set(
    """
    every each once twice times daily weekly monthly all weekends weekdays day week month year
    night mondays tuesdays wednesdays thursdays fridays saturdays sundays per
    """
)


_JOINED: Final = frozenset(word for word in CONTRACTIONS if "'" not in word)


class Tokens:
    """A sentence as words, each also in lower case, and the words of time it held."""

    __slots__ = ("low", "meant", "often", "text", "times", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        self.low: list[str] = []
        self.times: list[str] = []
        self.often: dict[int, str] = {}
        self.meant: dict[tuple[int, bool], TimePhrase | None] = {}


def read(sentence: str, anchor: datetime) -> Tokens:
    """The words of a sentence. Words of time are replaced by marks that number them."""
    tokens = Tokens(sentence)
    if '"' in sentence or "“" in sentence:
        sentence = _QUOTED.sub(_titled, sentence)
    is_peculiar = _PECULIAR.search(sentence) is not None
    _fill(tokens, sentence, _FULL if is_peculiar else _PLAIN)
    is_often = not _OFTEN_WORDS.isdisjoint(tokens.low)
    if is_often or is_peculiar or not _CALENDAR.isdisjoint(tokens.low):
        marked = _marked(tokens, sentence, anchor, is_often=is_often)
        if tokens.times:
            _fill(tokens, marked, _FULL)
    return tokens


_QUOTED: Final = re.compile(r"[\"“]([^\"“”]{2,60})[\"”]")


def _titled(quoted: re.Match[str]) -> str:
    """A title in quotes as one word; what somebody says in quotes stays as it is."""
    words = re.findall(r"[\w'&-]+", quoted[1])
    is_title = words and words[0][0].isupper() and len(words) < 8 and quoted[1][-1].isalnum()
    return JOIN.join(words) if is_title else quoted[0]


def _fill(tokens: Tokens, sentence: str, pattern: re.Pattern[str]) -> None:
    words = pattern.findall(sentence)
    low = [word.lower() for word in words]
    if "'" in sentence or not _JOINED.isdisjoint(low):
        for k in range(len(low) - 1, -1, -1):
            if low[k] == "'" and k > 0 and low[k - 1][-1] == "s":
                words[k] = low[k] = "'s"
            elif "'" in low[k] or low[k] in _JOINED:
                opened = _opened(words[k], low[k])
                words[k : k + 1] = opened
                low[k : k + 1] = [word.lower() for word in opened]
    tokens.words, tokens.low = words, low


def _opened(word: str, lower: str) -> tuple[str, ...]:
    """What an apostrophe joins, apart."""
    parts = CONTRACTIONS.get(lower)
    if parts is not None:
        return (word[0] + parts[0][1:], *parts[1:])
    stem, mark, ending = word.rpartition("'")
    if ending.lower() == "s" and stem:
        return stem, "'s"
    full = _ENDINGS.get(ending.lower())
    return (stem, full) if full is not None and stem and mark else (word,)


_ENDINGS: Final = {"d": "would", "ll": "will", "ve": "have", "re": "are"}


def _marked(tokens: Tokens, sentence: str, anchor: datetime, *, is_often: bool) -> str:
    """The sentence with a mark for every time and frequency it names."""
    spans = [(found.first, found.last, False) for found in find(sentence, anchor)]
    if is_often:
        often = [(found.start(), found.end(), True) for found in _OFTEN.finditer(sentence)]
        spans = [s for s in spans if all(s[1] <= o[0] or s[0] >= o[1] for o in often)] + often
        spans.sort()
    parts, at = [], 0
    for first, last, frequent in spans:
        number = len(tokens.times)
        tokens.times.append(sentence[first:last])
        if frequent:
            tokens.often[number] = sentence[first:last]
        parts.append(f"{sentence[at:first]} {MARK}{number} ")
        at = last
    return "".join((*parts, sentence[at:]))


def when(
    tokens: Tokens, numbers: list[int], anchor: datetime, *, ahead: bool, durable: bool = True
) -> TimePhrase | None:
    """What the marked words of time mean: the first that means anything.

    A deed has no duration: for one, `for two years` is passed over. A time of day waits for a day.
    """
    first: TimePhrase | None = None
    for one in _meanings(tokens, numbers, anchor, ahead=ahead):
        if not durable and one.role == "for":
            continue
        if not _is_clock(one):
            return one
        first = first or one
    return first


def _is_clock(phrase: TimePhrase) -> bool:
    start, end = phrase.interval.start, phrase.interval.end
    return start is not None and end is not None and end - start == timedelta(minutes=1)


def _meanings(
    tokens: Tokens, numbers: list[int], anchor: datetime, *, ahead: bool
) -> Iterator[TimePhrase]:
    for number in numbers:
        if number not in tokens.often:
            key = (number, ahead)
            if key not in tokens.meant:
                found = find(tokens.times[number], anchor, ahead=ahead)
                tokens.meant[key] = found[0] if found else None
            meant = tokens.meant[key]
            if meant is not None:
                yield meant
