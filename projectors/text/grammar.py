"""How do words make phrases?  Subjects, verb groups and what follows them, read left to right.

A shallow grammar of plain English: closed word classes tell where phrases end, the table of verb
forms tells verbs from nouns where position leaves a doubt. Every position is passed once.
"""

from typing import Final, Literal

from projectors.text.stems import word_set
from projectors.text.tokens import MARK, Tokens
from projectors.text.words import (
    ADVERBS,
    AUXILIARIES,
    BASE,
    BE,
    COORDINATORS,
    DETERMINERS,
    DO,
    FORMS,
    HAVE,
    HEDGES,
    ING,
    MODALS,
    NUMBER_WORDS,
    OBJECT_PRONOUNS,
    PART,
    PARTICLES,
    PAST,
    POSSESSIVES,
    PREPOSITIONS,
    REPORTS,
    SUBJECT_PRONOUNS,
    SUBORDINATORS,
    THIRD,
    reading,
)

Span = tuple[int, int]
Tense = Literal["present", "past", "perfect", "progressive", "future"]

_STRONG: Final = frozenset(';:.!?()—–…-"“”')
_TRAILING: Final = word_set(
    "too now there here today again already yet anymore lately together nowadays soon either though"
    " currently recently still ever"
)
_NOUN_STOP: Final = (
    (PREPOSITIONS | COORDINATORS | SUBORDINATORS | AUXILIARIES | _TRAILING)
    | word_set("i we he she they me us him them")
    | DETERMINERS
    | POSSESSIVES
) - {"up", "out", "off"}
_BOUND: Final = word_set(
    "because although though while when where whenever wherever which who whom whose whether if"
    " unless cause cuz whereas once so but"
)
_OPENERS: Final = PREPOSITIONS | DETERMINERS | POSSESSIVES | OBJECT_PRONOUNS | ADVERBS
_STRETCH_MAX: Final = 14


class Verb:
    """A verb group: what is done, how it is said to stand, and where its complement begins."""

    __slots__ = ("end", "ended", "hedged", "lemma", "modal", "negative", "passive", "tense")

    def __init__(self) -> None:
        self.lemma = ""
        self.tense: Tense = "present"
        self.modal = ""
        self.negative = self.ended = self.hedged = self.passive = False
        self.end = 0


class Complement:
    """What follows a verb: objects, prepositional phrases, an infinitive or an -ing phrase."""

    __slots__ = (
        "adverbs",
        "end",
        "gerund",
        "infinitive",
        "objects",
        "particle",
        "phrases",
        "start",
    )

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.objects: list[Span] = []
        self.phrases: list[tuple[str, list[Span]]] = []
        self.infinitive: Span | None = None
        self.gerund: Span | None = None
        self.particle = ""
        self.adverbs: list[str] = []

    def after(self, preposition: str) -> list[Span]:
        """The noun phrases after the first such preposition."""
        for known, spans in self.phrases:
            if known == preposition:
                return spans
        return []


class Grammar:
    """The phrases of one sentence."""

    __slots__ = ("low", "marks", "n", "words")

    def __init__(self, tokens: Tokens) -> None:
        self.words, self.low = tokens.words, tokens.low
        self.n = len(self.low)
        self.marks: list[int] = []

    # ── noun phrases ─────────────────────────────────────────────────────────────────────────

    def subject(self, at: int) -> int:
        """Where a subject that begins here ends; `at` itself when none does."""
        low, n = self.low, self.n
        first = low[at]
        if first in SUBJECT_PRONOUNS:
            return at + 1
        k = at
        if first in DETERMINERS or first in POSSESSIVES:
            k += 1
        elif first in _NOUN_STOP or not first[0].isalnum():
            return at
        head = k
        while k < n:
            word = low[k]
            if word == "'s":
                if self._is_verbal_s(k):
                    break
            elif word == "of" and k > head and k + 1 < n:
                while k + 1 < n and (low[k + 1] in DETERMINERS or low[k + 1] in POSSESSIVES):
                    k += 1
            elif word in _NOUN_STOP or not word[0].isalnum() or (k > head and self._is_finite(k)):
                break
            k += 1
        return k if k > head else at

    def _is_verbal_s(self, k: int) -> bool:
        """Whether this 's is short for `is` and no possessive."""
        if k + 1 >= self.n:
            return False
        word = self.low[k + 1]
        known = FORMS.get(word)
        is_ing = known is not None and known[1] == ING and self._opens(k + 2)
        if is_ing or word in DETERMINERS or word in ADVERBS or word in {"not", "in", "at", "from"}:
            self.low[k] = "is"
            return True
        return False

    def _opens(self, k: int) -> bool:
        """Whether a phrase other than a noun's own begins here."""
        return k >= self.n or self.low[k] in _OPENERS or not self.low[k][0].isalnum()

    def _is_finite(self, k: int) -> bool:
        """Whether the word here, inside what may be a subject, is its verb."""
        known = FORMS.get(self.low[k])
        if known is None or self.words[k][0].isupper():
            return False
        flags, before = known[1], self.low[k - 1]
        after = self.low[k + 1] if k + 1 < self.n else "."
        if flags & PAST:
            return not (before in DETERMINERS or before in POSSESSIVES)
        if after in AUXILIARIES and after not in HAVE:
            return False
        if flags & THIRD:
            return not (
                after in FORMS and FORMS[after][1] & (PAST | THIRD) and after not in _OPENERS
            )
        if flags & BASE:
            is_plural = before.endswith("s") and not before.endswith("ss")
            return (is_plural or before in _PLURALS) and self._opens_object(k + 1)
        return False

    def _opens_object(self, k: int) -> bool:
        return k >= self.n or self.low[k] in _OPENERS or self.low[k] not in _NOUN_STOP

    def noun(self, at: int) -> int:
        """Where a noun phrase that begins here ends; `at` itself when none does."""
        low, n = self.low, self.n
        k = at
        while k < n and (low[k] in DETERMINERS or low[k] in POSSESSIVES or low[k] in _DEGREES):
            k += 1
        head = k
        while k < n:
            word = low[k]
            if word == "of" and k > head and k + 1 < n:
                k += 1
                while k < n and (low[k] in DETERMINERS or low[k] in POSSESSIVES):
                    k += 1
                continue
            if word == "'s" and k > head:
                k += 1
                continue
            if word in _NOUN_STOP or not (word[0].isalnum() or word[0] in "$€£+"):
                break
            if k > head and word in OBJECT_PRONOUNS:
                break
            k += 1
        return k if k > head else at

    def listed(self, at: int, verb: Verb | None) -> tuple[list[Span], int]:
        """Noun phrases in a row, and where the row ends."""
        spans: list[Span] = []
        k = at
        while True:
            end = self.noun(k)
            if end == k:
                break
            spans.append((k, end))
            following = self._next_item(end, verb)
            if following is None:
                return spans, end
            k = following
        return spans, spans[-1][1] if spans else at

    def _next_item(self, k: int, verb: Verb | None) -> int | None:
        """Where the next item of a list begins, when a comma or an `and` here goes on with one."""
        low, n = self.low, self.n
        if k + 1 >= n or low[k] not in {",", "and", "or", "&", "plus"}:
            return None
        following = k + 1
        if low[k] == "," and low[following] in {"and", "or"}:
            following += 1
        elif low[k] == "," and not self._is_item(following):
            return None
        if following >= n or self.starts_clause(following) or self.goes_on(following, verb):
            return None
        while following < n and low[following] in _FILLERS:
            following += 1
        return following if following < n and self.noun(following) > following else None

    def _is_item(self, k: int) -> bool:
        """Whether what follows a comma is short and goes on or stops as a list does."""
        end = self.noun(k)
        if end == k or end - k > 4 or self.low[k] in _NOT_ITEMS:
            return False
        return end >= self.n or self.low[end] in {",", "and", "or", ".", "!", "&"}

    # ── clauses ──────────────────────────────────────────────────────────────────────────────

    def starts_clause(self, k: int) -> bool:
        """Whether a subject with its verb begins here."""
        low, n = self.low, self.n
        while k < n and (low[k] in ADVERBS or low[k][0] == MARK or low[k] == "that"):
            k += 1
        if k >= n:
            return False
        end = self.subject(k)
        if end == k:
            return low[k] in {"that", "this", "there"} and k + 1 < n and low[k + 1] in AUXILIARIES
        return self.is_verbal(end, low[k])

    def is_verbal(self, k: int, subject: str) -> bool:
        """Whether a finite verb stands here, after adverbs."""
        low, n = self.low, self.n
        while k < n and (low[k] in ADVERBS or low[k] == "not" or low[k][0] == MARK):
            k += 1
        if k >= n:
            return False
        if low[k] in AUXILIARIES:
            return True
        known = FORMS.get(low[k])
        if known is None:
            return subject in {"i", "we", "they", "he", "she"} and self._looks_finite(k)
        if subject in SUBJECT_PRONOUNS:
            return known[1] != ING
        return bool(known[1] & (PAST | THIRD)) or (
            bool(known[1] & BASE) and self._opens_object(k + 1)
        )

    def _looks_finite(self, k: int) -> bool:
        word = self.low[k] if k < self.n else ""
        return word.isalpha() and word not in _NOUN_STOP and not word.endswith("ing")

    def goes_on(self, k: int, verb: Verb | None) -> bool:
        """Whether a second verb with the same subject stands here: "lives in X and works at Y"."""
        low, n = self.low, self.n
        while k < n and (low[k] in ADVERBS or low[k][0] == MARK):
            k += 1
        if k >= n or verb is None:
            return False
        if low[k] in AUXILIARIES:
            return True
        known = FORMS.get(low[k])
        if known is None:
            return False
        flags = known[1]
        if verb.tense == "progressive":
            fits = bool(flags & ING)
        elif verb.tense in {"past", "perfect"}:
            return bool(flags & PAST) and not (flags & BASE and not self._opens_strictly(k + 1))
        else:
            fits = bool(flags & (BASE | THIRD | PAST))
        return fits and self._opens_strictly(k + 1)

    def _opens_strictly(self, k: int) -> bool:
        """Whether an object or a phrase, and no second noun, begins here."""
        if k >= self.n:
            return False
        word = self.low[k]
        return word in _OPENERS or word[0] == MARK or self.words[k][0].isupper() or word.isdigit()

    def stretch(self, at: int, verb: Verb | None) -> int:
        """Where the phrase that begins here ends at the latest: at the clause's own end."""
        low = self.low
        k, last = at, min(self.n, at + _STRETCH_MAX)
        while k < last:
            word = low[k]
            if word in _STRONG or word in _BOUND:
                break
            if word == "," and not self._is_item(k + 1):
                break
            if word in COORDINATORS and (self.starts_clause(k + 1) or self.goes_on(k + 1, verb)):
                break
            if word in {"i", "he", "she", "we", "they"} and k > at:
                break
            k += 1
        return k

    # ── verb groups ──────────────────────────────────────────────────────────────────────────

    def verb(self, at: int, subject: str) -> Verb | None:
        """The verb group that begins here, after a subject whose first word is given."""
        low, n = self.low, self.n
        verb = Verb()
        k, be, have, do = at, "", "", ""
        while k < n:
            word = low[k]
            if word in BE:
                be = word
            elif word in HAVE:
                have = word
            elif word in DO:
                do = word
            elif word in MODALS:
                verb.modal = word
                verb.hedged = verb.hedged or word in {"might", "may", "could"}
            elif word in {"not", "never"}:
                verb.negative = True
            elif word == "no" and k + 1 < n and low[k + 1] == "longer":
                verb.ended = True
                k += 1
            elif word[0] == MARK:
                self.marks.append(int(word[1:]))
            elif word in ADVERBS:
                verb.hedged = verb.hedged or word in HEDGES or word in REPORTS
            else:
                break
            k += 1
        if k == at and (k >= n or (low[k] not in FORMS and not self._may_be_verb(k, subject))):
            return None
        return self._headed(verb, k, subject, (be, have, do))

    def _may_be_verb(self, k: int, subject: str) -> bool:
        if subject not in {"i", "we", "they", "he", "she", "you"}:
            return False
        return self._looks_finite(k)

    def _headed(self, verb: Verb, k: int, subject: str, seen: tuple[str, str, str]) -> Verb | None:
        """Find the head after the auxiliaries, or take the last of them for the head."""
        be, have, do = seen
        word = self.low[k] if k < self.n else ""
        known = reading(word) if word else None
        flags = known[1] if known is not None else 0
        verb.tense = _tense(be, have, do, verb.modal)
        verb.end = k + 1
        if be and flags & ING and self.words[k][0].islower():
            return self._progressive(verb, k, known[0] if known else "")
        if be:
            verb.lemma, verb.end = "be", k
            verb.passive = bool(flags & PART) and not flags & BASE
            return verb
        if have and known is not None and flags & PART and word not in _HAD:
            verb.lemma, verb.tense = known[0], "perfect"
            return verb
        if have:
            verb.lemma, verb.end = "have", k
            if have == "had":
                verb.tense = "past"
            return verb
        if do and (known is None or not flags & BASE):
            verb.lemma, verb.end = "do", k
            return verb if not verb.negative else None
        if known is None:
            if not verb.modal and not do and not self._may_be_verb(k, subject):
                return None
            verb.lemma = word.removesuffix("s") if subject in {"he", "she"} else word
            return verb if word.isalpha() else None
        verb.lemma = known[0]
        if verb.modal or do:
            return verb if flags & BASE else None
        if self._used_to(verb, k, word):
            return verb
        if flags & (BASE | THIRD) and not (flags & PAST and subject in {"he", "she"}):
            verb.tense = "present" if word not in _PAST_TOO else "past"
        elif flags & PAST:
            verb.tense = "past"
        else:
            return None
        return verb

    def _progressive(self, verb: Verb, k: int, lemma: str) -> Verb:
        low, n = self.low, self.n
        verb.lemma = lemma
        if verb.tense != "past":
            verb.tense = "progressive"
        if low[k] == "going" and k + 2 < n and low[k + 1] == "to":
            known = FORMS.get(low[k + 2])
            if low[k + 2] == "be" or (known is not None and known[1] & BASE):
                verb.lemma, verb.tense, verb.end = known[0] if known else "be", "future", k + 3
        return verb

    def _used_to(self, verb: Verb, k: int, word: str) -> bool:
        """`used to live`: the state is over."""
        low, n = self.low, self.n
        if word != "used" or k + 2 >= n or low[k + 1] != "to":
            return False
        known = FORMS.get(low[k + 2])
        if known is None or not known[1] & BASE:
            return False
        verb.lemma, verb.tense, verb.ended, verb.end = known[0], "present", True, k + 3
        if verb.lemma == "be":
            verb.end = k + 3
        return True

    # ── complements ──────────────────────────────────────────────────────────────────────────

    def complement(self, verb: Verb) -> Complement:
        """All that belongs to a verb, up to the end of its clause."""
        low, n = self.low, self.n
        found = Complement(verb.end)
        k = verb.end
        while k < n:
            word = low[k]
            if word[0] == MARK:
                self.marks.append(int(word[1:]))
                k += 1
            elif word in _STRONG or word == "," or word in COORDINATORS:
                k = self._past_comma(k, found)
                if k < 0:
                    k = -k
                    break
            elif word == "not" or (word in ADVERBS and word != "over"):
                found.adverbs.append(word)
                k += 1
            elif word == "to" and self._is_infinitive(k + 1):
                end = self.stretch(k + 1, verb)
                found.infinitive = (k + 1, end)
                k = end
                break
            elif word in PREPOSITIONS and not self._is_conjunction(k):
                k = self._phrase(k, found, verb)
            elif word in SUBORDINATORS or word in {"i", "we", "he", "she", "they"}:
                break
            elif not found.objects and self._is_gerund(k):
                end = self.stretch(k, verb)
                found.gerund = (k, end)
                k = end
                break
            else:
                spans, end = self.listed(k, verb)
                if end == k:
                    break
                k = self._objects(found, spans, end)
        found.end = k
        return found

    def _past_comma(self, k: int, found: Complement) -> int:
        """Go on after a comma that only sets a time or a phrase apart; minus: the clause ends."""
        low, n = self.low, self.n
        following = k + 1
        if low[k] != "," or following >= n:
            return -k
        if low[following][0] == MARK:
            return following
        if low[following] in {"near", "with", "in", "at", "as"} and not found.infinitive:
            end = self.noun(following + 1)
            if end > following + 1 and (end >= n or low[end] in {".", "!", ","}):
                return following
        return -k

    def _is_infinitive(self, k: int) -> bool:
        while k < self.n and self.low[k] in ADVERBS:
            k += 1
        if k >= self.n:
            return False
        known = FORMS.get(self.low[k])
        return known is not None and bool(known[1] & BASE) and self.words[k][0].islower()

    def _is_conjunction(self, k: int) -> bool:
        """Whether `as`, `since`, `after` and the like begin a clause here, and no phrase."""
        low = self.low
        if low[k] not in SUBORDINATORS and low[k] not in {"since", "for", "like"}:
            return False
        return k + 1 < self.n and (
            low[k + 1] in SUBJECT_PRONOUNS or (low[k] != "as" and self.starts_clause(k + 1))
        )

    def _is_gerund(self, k: int) -> bool:
        known = reading(self.low[k])
        return known is not None and known[1] == ING and self.words[k][0].islower()

    def _phrase(self, k: int, found: Complement, verb: Verb) -> int:
        """A prepositional phrase, or the particle of the verb."""
        low, n = self.low, self.n
        word = low[k]
        if k == verb.end and word in PARTICLES and k + 1 < n:
            after = low[k + 1]
            is_particle = after in PREPOSITIONS or word in {
                "up",
                "out",
                "off",
                "back",
                "away",
                "down",
            }
            if is_particle:
                found.particle = word
                return k + 1
        start = k + 1
        if start < n and self._is_gerund(start) and self._opens_strictly(start + 1):
            end = self.stretch(start, verb)
            found.phrases.append((word, [(start, end)]))
            return end
        spans, end = self.listed(start, verb)
        if not spans:
            if start < n and low[start] in OBJECT_PRONOUNS:
                found.phrases.append((word, [(start, start + 1)]))
                return start + 1
            if word in PARTICLES and not found.particle and not found.objects:
                found.particle = word
            return k + 1
        found.phrases.append((word, spans))
        return end

    def _objects(self, found: Complement, spans: list[Span], end: int) -> int:
        """Take objects; of two in a row ("gave me a ring") the second is what was given."""
        if not found.objects or (
            self.low[found.objects[0][0]] in OBJECT_PRONOUNS and not found.phrases
        ):
            found.objects = spans
        elif not found.phrases:
            first, _ = found.objects[-1]
            found.objects[-1] = (first, spans[0][1])
        return end


def _tense(be: str, have: str, do: str, modal: str) -> Tense:
    if modal:
        return "future" if modal in {"will", "shall"} else "present"
    if have:
        return "perfect"
    return "past" if be in {"was", "were"} or do == "did" else "present"


_PLURALS: Final = word_set("people children kids men women they we and police team family")
_DEGREES: Final = word_set("very really so quite pretty too super such only about almost over like")
_FILLERS: Final = word_set("also even maybe sometimes some then")
_NOT_ITEMS: Final = (
    word_set("which who so but because then though thanks please haha lol right you me too")
    | DETERMINERS
) - word_set("a an the some")
_HAD: Final = word_set("had")
_PAST_TOO: Final = word_set("put cut let set hit quit cost shut spread split bet hurt")
NUMERALS: Final = frozenset(NUMBER_WORDS)
