"""What is being asked?  The words that carry meaning, who and when they name, which kind. Pure.

A participant's name is a structured match and not a word: whoever is asked about spoke in the first
person, so the question is put that way before it is compared with what was said.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from engine.recall.candidates import QueryKind, Question, Span
from projectors.text import dates
from projectors.text.stems import word_set
from schemas import limits
from schemas.times import from_us, to_us

MACHINES: Final = frozenset({"agent", "service", "system", "tool", "app", "bot"})
"""Types of actors that are nobody; every other actor may be someone who says I."""

STOP: Final = word_set(
    "a about according after again against ago all along also am an and any are around as at be "
    "because been before being between both but by can could d did do does doing don done down "
    "during each ever for from get got had has have having he her hers him his how i if in into "
    "is it its just ll m many may me might mine more most much my no nor not of off on once only "
    "or other our ours out over own re s same shall she should since so some such t than that the "
    "their them then there these they this those through to too under up upon us ve very was we "
    "were what when where which while who whom whose why will with within without would you your "
    "yours"
)
"""Words that say nothing about what is asked."""

_REPORTING: Final = word_set(
    "describe described describes discuss discussed discusses mention mentioned mentioning "
    "mentions said say saying says talk talked talking tell telling tells told"
)
"""Whoever answers has said it: that it was said finds nothing."""

_REQUESTING: Final = word_set(
    "advice advise help idea ideas looking need planning please recommend recommendation "
    "recommendations suggest suggestion suggestions think thinking tip tips trying want"
)
"""A wish for a proposal: what it is about was told without these, and every other wish has them."""


class Sought(NamedTuple):
    """A pattern, and pieces of text of which every match has one.

    Where none of them stands the pattern is not tried: that takes several times as long.
    """

    pattern: re.Pattern[str]
    signs: tuple[str, ...]

    def may_be_in(self, text: str, lower: str) -> bool:
        """Whether it is worth a try; beyond ASCII, letters are the same in more ways than case."""
        return not text.isascii() or any(sign in lower for sign in self.signs)

    def is_in(self, text: str, lower: str) -> bool:
        """Whether a text, which is given in lower case as well, has it."""
        return self.may_be_in(text, lower) and self.pattern.search(text) is not None


def _sought(pattern: str, *signs: str) -> Sought:
    return Sought(re.compile(pattern, re.IGNORECASE), signs)


_FRAME: Final = _sought(
    r"\b(?:what|which|how many)\s+(?:(?:is|are|was|were)\s+)?(?:the\s+|some\s+|other\s+)?"
    r"(?:kind|type|sort|thing|item|name|way|example)s?\b"
    r"|\b(?:kind|type|sort|name|way|example)s?(?=\s+of\b)",
    *("kind", "type", "sort", "thing", "item", "name", "way", "example"),
)
"""How a question for one of many, or for several, begins: `what kinds of …`, `the names of …`."""

_WORD: Final = re.compile(r"[^\W_]+")
_FIRST_PERSON: Final = re.compile(r"\b(?:i|i['’]\w+|me|my|mine|we|our|us)\b", re.IGNORECASE)
_ASSISTANT: Final = _sought(
    r"\bremind me\b|\bdid you\b|\bwe (?:talked|discussed|decided|spoke|agreed)\b"
    r"|\bour (?:previous|last|earlier|past|prior)\b"
    r"|\byou (?:\w+ ){0,2}?(?:said|say|told|mentioned|recommended|suggested|gave|provided|listed"
    r"|advised|explained|described|wrote|shared|showed|made|proposed)\b",
    *("remind me", "did you", "we ", "our ", "you "),
)
_CURRENT: Final = _sought(
    r"\b(?:current|currently|now|nowadays|latest|newest|most recent|most recently|these days"
    r"|at the moment|at present|still|so far|up to date)\b",
    *("current", "now", "latest", "newest", "most recent", "these days", "at the moment"),
    *("at present", "still", "so far", "up to date"),
)
_MONTH: Final = re.compile(
    r"^(?:in |during |of |since |by |until |before |after )?(?:early |mid |late )?"
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"(?: \d{1,2}(?:st|nd|rd|th)?)?$",
    re.IGNORECASE,
)
_KINDS: Final[Sequence[tuple[QueryKind, Sought]]] = (
    (
        "summary",
        _sought(
            r"\bsummar|\boverview\b|\brecap\b|\beverything\b|\btell me (?:all )?about\b"
            r"|\bwhat do (?:we|you|i) know\b|\bcatch me up\b",
            *("summar", "overview", "recap", "everything", "tell me", "what do ", "catch me"),
        ),
    ),
    (
        "preference",
        _sought(
            r"\bprefer|\bfavou?rite|\b(?:can|could|would) you (?:recommend|suggest)\b"
            r"|\bany (?:\w+ )?(?:tips|advice|suggestions?|recommendations?|ideas)\b"
            r"|\bshould (?:i|we)\b|\b(?:do|does|did|would) (?:\w+ )?(?:like|enjoy|love|hate)\b",
            *("prefer", "favo", "recommend", "suggest", "any ", "should "),
            *("like", "enjoy", "love", "hate"),
        ),
    ),
    (
        "temporal",
        _sought(
            r"^\W*(?:and |so )?when\b|\b(?:what|which) (?:date|day|week|month|year|time)\b"
            r"|\bhow (?:long|recently)\b|\bhow many (?:\w+ )?(?:days|weeks|months|years|hours)\b"
            r"|\b(?:first|last|earliest|latest|before|after|since|until|ago|order)\b",
            *("when", "date", "day", "week", "month", "year", "time", "hours", "how long"),
            *("how recently", "first", "last", "earliest", "latest", "before", "after"),
            *("since", "until", "ago", "order"),
        ),
    ),
    (
        "multi_hop",
        _sought(
            r"\b(?:both|in common|each of|all of|in total|altogether|combined|how many|how much"
            r"|which of|what (?:are|were) (?:all|the)|list|compare)\b",
            *("both", "in common", "each of", "all of", "in total", "altogether", "combined"),
            *("how m", "which of", "what are", "what were", "list", "compare"),
        ),
    ),
)
_TIMES: Final = word_set(
    "yesterday today tomorrow week weekend month year ago monday friday january june recently"
)
_NUMBERS: Final = word_set("one two three four five ten twenty hundred several once twice 2 3 5 10")
_EXPECTED: Final[Sequence[tuple[Sought, frozenset[str]]]] = (
    (
        _sought(
            r"^\W*when\b|\bhow (?:long|recent)"
            r"|\b(?:what|which) (?:date|day|week|month|year|time)\b",
            *("when", "how long", "how recent", "what ", "which "),
        ),
        _TIMES,
    ),
    (_sought(r"\bhow (?:many|much|old|often|far|big)\b", "how "), _NUMBERS),
)
_CAPITALISED: Final = re.compile(r"\b[^\W\d_a-z][^\W\d_]+\b")
_NAMES_MAX: Final = 4
_UNTIL_NOW: Final = re.compile(r"\b(?:past|last)\b", re.IGNORECASE)
_YEARS_BACK: Final = 10


def read_question(text: str, now_us: int) -> Question:
    """The question as it can be understood without knowing who takes part."""
    text = text[: limits.QUERY_CHARS_MAX].strip()
    kind, terms, lower = kind_of(text), terms_of(text), text.lower()
    asks_assistant = _ASSISTANT.is_in(text, lower)
    if kind == "preference" and not asks_assistant:
        terms = tuple(term for term in terms if term not in _REQUESTING) or terms
    return Question(
        text=text,
        kind=kind,
        terms=terms,
        gist=text,
        spans=spans_of(text, from_us(now_us)),
        is_first_person=_FIRST_PERSON.search(text) is not None,
        asks_assistant=asks_assistant,
        wants_current=_CURRENT.is_in(text, lower),
        expects=next((words for asks, words in _EXPECTED if asks.is_in(text, lower)), frozenset()),
    )


def addressed(
    question: Question, actors: Iterable[str], called: Mapping[str, str] | None = None
) -> Question:
    """The same question among these actors: whom it names, and put as they would say it.

    `called` has further names, in lower case, and who goes by them. Names of participants are taken
    out of the terms: everyone's name is in every conversation.
    """
    named = _named(question.text, {**_names(actors), **(called or {})})
    if not named:
        return question
    used = {word for names in named.values() for name in names for word in name.split()}
    terms = tuple(term for term in question.terms if term not in used)
    humans = [actor for actor in named if actor.partition(":")[0] not in MACHINES]
    gist = question.text
    if len(named) == 1 and humans:
        for name in sorted(named[humans[0]], key=len, reverse=True):
            gist = _first_person(gist, name)
    return replace(
        question,
        about=tuple(named),
        terms=terms or question.terms,
        gist=gist,
        kind="multi_hop" if len(humans) > 1 and question.kind == "lookup" else question.kind,
    )


def kind_of(text: str) -> QueryKind:
    """Which kind of question it is; most are lookups."""
    lower = text.lower()
    return next((kind for kind, sought in _KINDS if sought.is_in(text, lower)), "lookup")


def terms_of(text: str) -> tuple[str, ...]:
    """The words that carry meaning, once each; all of them when none does."""
    lower = text.lower()
    words = unframed = _WORD.findall(lower)
    plain = [word for word in words if word not in STOP]
    if _FRAME.may_be_in(text, lower):
        unframed = _WORD.findall(_FRAME.pattern.sub(" ", text).lower())
    telling = [word for word in unframed if word not in STOP and word not in _REPORTING]
    return tuple(dict.fromkeys(telling or plain or words))[: limits.QUERY_TERMS_MAX]


def spans_of(text: str, now: datetime) -> tuple[Span, ...]:
    """The periods a question names; a month without a year is that month of the last years."""
    found: list[Span] = []
    for phrase in dates.find(text, now):
        start, end = phrase.interval.start, phrase.interval.end
        if end is None and _UNTIL_NOW.search(text, phrase.first, phrase.last):
            end = now
        if start is None or end is None:
            continue
        is_yearly = _MONTH.match(text[phrase.first : phrase.last].strip()) is not None
        found += [
            Span(to_us(_years_before(start, back)), to_us(_years_before(end, back)))
            for back in range(_YEARS_BACK if is_yearly else 1)
        ]
    return tuple(dict.fromkeys(found))


def _years_before(moment: datetime, years: int) -> datetime:
    # The 29th of February has no counterpart in most years.
    day = min(moment.day, 28) if moment.month == 2 else moment.day
    return moment.replace(year=moment.year - years, day=day) if years else moment


# ── who is named ─────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4096)
def names_of(actor: str) -> tuple[str, ...]:
    """What an actor may be called: the whole name, and its first word; lower case."""
    kind, _, name = actor.partition(":")
    words = _WORD.findall((name or kind).replace("_", " ").lower())
    # One letter, or a number, is somebody's key and nobody's name.
    if not words or len(words[0]) < 2 or words[0].isdigit() or words[0] in STOP:
        return ()
    return tuple(dict.fromkeys((" ".join(words), words[0])))


def capitalised(question: Question) -> list[str]:
    """What may be a name: words with a capital, but for one that opens the question."""
    found = (match for match in _CAPITALISED.finditer(question.text) if match.start() > 0)
    return list(dict.fromkeys(match[0] for match in found))[:_NAMES_MAX]


def _names(actors: Iterable[str]) -> Mapping[str, str]:
    """Name -> actor; a name that two share names nobody."""
    found: dict[str, str] = {}
    shared: set[str] = set()
    for actor in dict.fromkeys(actors):
        for name in names_of(actor):
            if found.setdefault(name, actor) != actor:
                shared.add(name)
    return {name: actor for name, actor in found.items() if name not in shared}


def _named(text: str, names: Mapping[str, str]) -> dict[str, list[str]]:
    """Actor -> the names by which the text calls it; who is named first comes first."""
    said = f" {' '.join(_WORD.findall(text.lower()))} "
    words = set(said.split())
    found: dict[str, list[str]] = {}
    for name, actor in names.items():
        if name.partition(" ")[0] in words and f" {name} " in said:
            found.setdefault(actor, []).append(name)
    first = {actor: min(said.index(f" {name} ") for name in some) for actor, some in found.items()}
    return dict(sorted(found.items(), key=lambda item: first[item[0]]))


def _first_person(text: str, name: str) -> str:
    """The text with a name's possessive as `my`, and the name as `I`."""
    spelled = r"[\s_.-]+".join(re.escape(word) for word in name.split())
    text = re.sub(rf"\b{spelled}['’]s?(?!\w)", "my", text, flags=re.IGNORECASE)
    return re.sub(rf"\b{spelled}\b", "I", text, flags=re.IGNORECASE)
