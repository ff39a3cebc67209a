"""Who and what is a message about?  Names resolved as they come, and what is told of them."""

import re
from datetime import datetime
from typing import Any, Final

from projectors.text.candidates import Candidate, Cardinality, Kind, Mention, Value
from projectors.text.grammar import Complement, Grammar
from projectors.text.lexicon import KIN, KIN_NAMES, PETS
from projectors.text.phrases import Span, Verb
from projectors.text.predicates import PREDICATES
from projectors.text.shapes import Predicate, Speakers, TimePhrase
from projectors.text.stems import singular, word_set
from projectors.text.tokens import JOIN, MARK, Tokens, when
from projectors.text.words import DETERMINERS, NUMBER_WORDS, POSSESSIVES
from schemas import limits

_ME: Final = word_set("i we me us myself ourselves mine")
_THEM: Final = word_set("he she him her they them it")
_STRIPPED: Final = (
    DETERMINERS | POSSESSIVES | word_set("very really so quite pretty own like about")
)
_ORGANISATION: Final = re.compile(
    r"\b(?:Inc|Corp|Corporation|Ltd|LLC|GmbH|PLC|Industries|Bank|University|College|Institute|School"
    r"|Company|Group|Hospital|Agency|Labs?|Systems|Technologies|Foundation|Partners)\b"
)
_THEIRS: Final = word_set("his her their its your")
LOOSE: Final = word_set("of for to with at about from than what how as and or but that the a")
_GAP: Final = re.compile(r" (?=[,.'%])|(?<=[$€£]) ")


class Clause:
    """One assertion as grammar sees it: who, does, what; and how it is meant."""

    __slots__ = (
        *("corrects", "grammar", "hedged", "rest", "sentence", "source", "subject", "times"),
        *("tokens", "verb", "weight"),
    )

    def __init__(self, tokens: Tokens, grammar: Grammar, subject: Mention, verb: Verb) -> None:
        self.tokens, self.grammar = tokens, grammar
        self.subject, self.verb = subject, verb
        self.rest: Complement = Complement(verb.end)
        self.times: list[int] = []
        self.hedged = verb.hedged
        self.source: Mention | None = None
        self.weight = 0.9
        self.corrects = False
        self.sentence = tokens.text

    @property
    def often(self) -> str:
        """How often it is done, in the words it was said in."""
        return " ".join(self.tokens.often[n] for n in self.times if n in self.tokens.often)


class Scene:
    """What a message has told so far."""

    __slots__ = ("anchor", "found", "group", "person", "speakers", "thing")

    def __init__(self, speakers: Speakers, anchor: datetime) -> None:
        self.speakers = speakers
        self.anchor = anchor
        self.found: list[Candidate] = []
        self.person: Mention | None = None
        self.thing: Mention | None = None
        self.group: Mention | None = None

    # ── naming ───────────────────────────────────────────────────────────────────────────────

    def text(self, grammar: Grammar, span: Span) -> str:
        """The words of a phrase without its articles and times."""
        first, last = span
        low = grammar.low
        while first < last - 1 and low[first] in _STRIPPED:
            first += 1
        words = [word for word in grammar.words[first:last] if word[0] != MARK]
        while words and (
            not (words[-1][-1].isalnum() or words[-1][-1] in "+#%") or words[-1] in LOOSE
        ):
            words.pop()
        text = " ".join(words)
        if not text.isalnum():
            text = _GAP.sub("", text).replace(JOIN, " ")
        return text[: limits.CANDIDATE_CHARS_MAX].rstrip()

    def pronoun(self, word: str) -> Mention | None:
        """Whom a pronoun means here; None when nobody can tell."""
        if word in _ME or word in {"my", "our"}:
            return self.speakers.me
        if word in {"you", "your", "yourself"}:
            return self.speakers.you
        if word in {"he", "she", "him", "her", "his"}:
            return self.person
        if word in {"they", "them", "their"}:
            return self.group or self.person
        if word in {"it", "its"}:
            return self.thing
        return None

    def mention(self, grammar: Grammar, span: Span) -> Mention | None:
        """What a noun phrase names; None when that is nothing one could tell."""
        first, last = span
        low = grammar.low
        if last - first == 1 and (low[first] in _ME or low[first] in _THEM or low[first] == "you"):
            return self.pronoun(low[first])
        if low[last - 1] == "user" and last - first <= 2:
            return self.speakers.user or Mention(text="user", kind="person")
        owner: Mention | None = None
        if low[first] in POSSESSIVES:
            owner = self.pronoun(low[first])
            if owner is None:
                return None
            first += 1
        for k in range(last - 1, first, -1):
            if low[k] == "'s":
                owner = self.mention(grammar, (first if owner is None else span[0], k))
                if owner is None:
                    return None
                first = k + 1
                break
        if owner is not None and first < last:
            return self._owned(grammar, owner, (first, last))
        return self._named(grammar, (first, last))

    def _named(self, grammar: Grammar, span: Span) -> Mention | None:
        text = self.text(grammar, span)
        if not text or not any(char.isalpha() for char in text):
            return None
        first = grammar.words[span[0]]
        if first[0].isupper() and span[0] == 0 and span[1] > 1 and grammar.words[1][0].islower():
            # The capital is the sentence's: `Competitive games`, but `Stark Industries`.
            return Mention(text=text[0].lower() + text[1:])
        if first[0].isupper() and _ORGANISATION.search(text) is not None:
            return Mention(text=text, kind="organisation")
        return Mention(text=text)

    def _owned(self, grammar: Grammar, owner: Mention, span: Span) -> Mention | None:
        """`my brother Tom` is Tom, and so is told; `my brother` is known by whose he is."""
        first, last = span
        low, words = grammar.low, grammar.words
        for k in range(first, last):
            noun = singular(low[k])
            if noun in KIN or noun in PETS:
                kind = KIN_NAMES.get(noun, noun)
                if k + 1 < last and words[k + 1][0].isupper():
                    name = Mention(text=self.text(grammar, (k + 1, last)), kind="person")
                    relation = "has_pet" if noun in PETS else f"has_{kind}"
                    self.relate(owner, relation, name)
                    return name
                if k == last - 1:
                    plain = low[k] if low[k] != noun else kind
                    text = " ".join((*low[first:k], plain))
                    is_pet = noun in PETS
                    return Mention(
                        text=f"{owner.text}'s {text}", kind="thing" if is_pet else "person"
                    )
        text = self.text(grammar, span)
        return Mention(text=f"{owner.text}'s {text}") if text else None

    def value(self, grammar: Grammar, span: Span) -> Mention | Value | None:
        """An object: a number, money, a thing, or words."""
        first, last = span
        if last <= first:
            return None
        if last - first == 1 and grammar.low[first] in _THEM:
            return self.pronoun(grammar.low[first])
        amount = money(grammar.words[first:last])
        if amount is not None:
            return Value(datatype="money", value=amount)
        if last - first == 1:
            count = number(grammar.low[first])
            if count is not None:
                return Value(
                    datatype="integer" if isinstance(count, int) else "number", value=count
                )
        if grammar.low[first] in POSSESSIVES or "'s" in grammar.low[first:last]:
            named = self.mention(grammar, span)
            is_theirs = grammar.low[first] in _THEIRS
            if is_theirs or (named is not None and named.kind == "person"):
                return named
        text = self.text(grammar, span)
        if not text:
            return None
        if last - first > 5:
            return Value(datatype="string", value=text)
        return Mention(text=text)

    def remember(self, mention: Mention | None, *, plural: bool = False) -> None:
        """Whom later pronouns may mean."""
        if mention is None or mention.actor is not None:
            return
        if plural or mention.kind == "organisation":
            self.group = mention
        if mention.kind == "person" or (mention.kind == "thing" and mention.text[:1].isupper()):
            self.person = mention
            self.group = mention
        self.thing = mention

    def once(self) -> list[Candidate]:
        """Everything told, each once."""
        told: dict[tuple[Mention, str, object, str], Candidate] = {}
        for one in self.found:
            value = one.object if isinstance(one.object, Mention) else repr(one.object.value)
            told.setdefault((one.subject, one.predicate, value, one.polarity), one)
        return list(told.values())

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def relate(self, owner: Mention, predicate: str, other: Mention) -> None:
        """A relation told in passing: `my brother Tom`."""
        kind: Kind = "possession" if predicate == "has_pet" else "relation"
        self.found.append(
            Candidate(subject=owner, predicate=predicate, object=other, confidence=0.9, kind=kind)
        )

    def add(
        self,
        clause: Clause,
        predicate: str,
        value: Mention | Value | None,
        *,
        subject: Mention | None = None,
        begins: bool = False,
        kind: Kind | None = None,
    ) -> None:
        """Take an assertion of a clause; `begins` says that its verb tells a beginning."""
        if value is None:
            return
        subject = subject or clause.subject
        if subject.kind == "thing" and predicate in _PERSONAL and subject.text[:1].isupper():
            subject = Mention(text=subject.text, kind="person")
        known = PREDICATES.get(predicate)
        if kind is None:
            kind = known.kind if known is not None else "state"
        if kind == "event" and isinstance(value, Mention) and _is_common(value):
            value = Value(datatype="string", value=value.text)
        valid_from, valid_to, ends = times(clause, self.anchor, kind, begins=begins)
        self.found.append(
            Candidate(
                subject=subject,
                predicate=predicate,
                object=value,
                confidence=confidence(clause),
                polarity="negative" if clause.verb.negative else "positive",
                cardinality=_cardinality(predicate, known, kind),
                kind=kind,
                valid_from=valid_from,
                valid_to=valid_to,
                ends=ends,
                corrects=clause.corrects and kind != "event",
                sentence=clause.sentence,
                source=clause.source,
            )
        )


_PERSONAL: Final = word_set(
    "lives_in works_at works_as likes dislikes prefers speaks married_to marital_status feels diet"
    " has_condition allergic_to born_in plans_to hopes_to wants_to skilled_in can nationality"
)
"""What is said only of people."""


def _is_common(value: Mention) -> bool:
    """Whether a mention names no one thing: `a new phone` happens to one, and is no entity."""
    return value.kind == "thing" and value.actor is None and not value.text[:1].isupper()


def _cardinality(predicate: str, known: Predicate | None, kind: Kind) -> Cardinality:
    """Deeds, habits, plans and belongings add up; counts and favourites are one at a time."""
    if kind in _ADDING:
        return "multi"
    if known is not None:
        return known.cardinality
    return "single" if kind == "quantity" or predicate.startswith("favourite_") else "multi"


_ADDING: Final = frozenset({"event", "plan", "possession"})


def confidence(clause: Clause) -> float:
    """How sure a hearer may be: less for hedges, for hearsay, and least for both."""
    sure = clause.weight
    if clause.hedged:
        sure = min(sure, 0.5)
    if clause.source is not None:
        sure = 0.4 if clause.hedged else 0.5
    return sure


def times(
    clause: Clause, anchor: datetime, kind: Kind, *, begins: bool
) -> tuple[datetime | None, datetime | None, bool]:
    """When an assertion holds: from, to, and whether it is over."""
    verb = clause.verb
    is_deed = kind == "event" or begins
    said = None
    if clause.times:
        ahead = verb.tense == "future"
        said = when(clause.tokens, clause.times, anchor, ahead=ahead, durable=not is_deed)
    over = verb.ended
    if kind == "plan":  # it is made when it is told; when it is due stands in its words
        return None, None, over
    if is_deed:
        return (said.interval.start, None, over) if said is not None else (None, None, over)
    if over:
        return _ended(said)
    if verb.tense == "past" and kind not in {"plan", "quantity"} and not verb.negative:
        return _was(said)
    if said is None or said.role == "until":
        return None, said.interval.end if said is not None else None, False
    start, end = said.interval.start, said.interval.end
    if said.role in {"since", "for"}:
        return start, None, False
    if said.role == "between" and end is not None:
        return start, end, end <= anchor
    return start, end if end is not None and end > anchor else None, False


def _ended(said: TimePhrase | None) -> tuple[datetime | None, datetime | None, bool]:
    """A state that is no more: the time told is when it ended."""
    if said is None or said.role == "for":
        return None, None, True
    if said.role == "between":
        return said.interval.start, said.interval.end, True
    return None, said.interval.end if said.role == "until" else said.interval.start, True


def _was(said: TimePhrase | None) -> tuple[datetime | None, datetime | None, bool]:
    """A state told in the past: it is over, and the time told is when it was."""
    if said is None or said.role == "for":
        return None, None, True
    if said.role == "since":
        return said.interval.start, None, False
    return said.interval.start, said.interval.end, True


# ── numbers ──────────────────────────────────────────────────────────────────────────────────

_NUMBER: Final = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,18})(\.\d+)?([km])?", re.IGNORECASE)
_MONEY: Final = re.compile(r"([$€£])(\d[\d,]*)(\.\d+)?([km])?", re.IGNORECASE)
_CURRENCIES: Final = {
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "dollar": "USD",
    "euro": "EUR",
    "pound": "GBP",
    "usd": "USD",
    "eur": "EUR",
    "gbp": "GBP",
    "buck": "USD",
}
_SCALE: Final = {"k": 1_000, "m": 1_000_000, "thousand": 1_000, "million": 1_000_000}


def number(word: str) -> int | float | None:
    """The number a word means, or None."""
    known = NUMBER_WORDS.get(word)
    if known is not None:
        return known
    found = _NUMBER.fullmatch(word)
    if found is not None:
        return _scaled(found[1], found[2], (found[3] or "").lower())
    tens, _, ones = word.partition("-")
    if ones in NUMBER_WORDS and NUMBER_WORDS.get(tens, 0) >= 20:
        return NUMBER_WORDS[tens] + NUMBER_WORDS[ones]
    return None


def _scaled(whole: str, fraction: str | None, scale: str) -> int | float:
    count: int | float = int(whole.replace(",", ""))
    if fraction:
        count = count + float(fraction)
    return count * _SCALE.get(scale, 1)


def money(words: list[str]) -> dict[str, Any] | None:
    """An amount with its currency, when that is all the words say."""
    if not words:
        return None
    found = _MONEY.fullmatch(words[0])
    if found is not None and len(words) <= 2:
        scale = words[1].lower() if len(words) == 2 else (found[4] or "").lower()
        if len(words) == 2 and scale not in _SCALE:
            return None
        amount = _scaled(found[2], found[3], scale)
        return {"amount": amount, "currency": _CURRENCIES[found[1]]}
    if 2 <= len(words) <= 3:
        currency = _CURRENCIES.get(singular(words[-1].lower()))
        count = number(words[0].lower())
        if currency is not None and count is not None:
            scale = words[1].lower() if len(words) == 3 else ""
            return {"amount": count * _SCALE.get(scale, 1), "currency": currency}
    return None
