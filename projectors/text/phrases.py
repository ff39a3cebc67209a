"""Where do phrases begin and end?  Subjects, noun phrases, lists and clauses, left to right.

Closed word classes tell where a phrase ends; the table of verb forms tells a verb from a noun where
position leaves a doubt.
"""

from typing import Final, Literal

from projectors.text.stems import word_set
from projectors.text.tokens import MARK, Tokens
from projectors.text.words import (
    ADVERBS,
    AUXILIARIES,
    BASE,
    COORDINATORS,
    DETERMINERS,
    FORMS,
    HAVE,
    ING,
    NUMBER_WORDS,
    OBJECT_PRONOUNS,
    PAST,
    POSSESSIVES,
    PREPOSITIONS,
    SUBJECT_PRONOUNS,
    SUBORDINATORS,
    THIRD,
)

Span = tuple[int, int]
Tense = Literal["present", "past", "perfect", "progressive", "future"]

STRONG: Final = frozenset(';:.!?()—–…-"“”')
_TRAILING: Final = word_set(
    "too now there here today again already yet anymore lately together nowadays soon either though"
    " currently recently still ever"
)
_NOUN_STOP: Final = (
    (PREPOSITIONS | COORDINATORS | SUBORDINATORS | AUXILIARIES | _TRAILING)
    | word_set("i we you he she it they me us him them away along forward apart aside")
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

    __slots__ = (
        *("end", "ended", "hedged", "is_third", "lemma", "modal", "negative", "passive", "tense"),
    )

    def __init__(self) -> None:
        self.lemma = ""
        self.tense: Tense = "present"
        self.modal = ""
        self.negative = self.ended = self.hedged = self.passive = self.is_third = False
        self.end = 0


class Phrases:
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
            elif (
                word in _NOUN_STOP
                or not word[0].isalnum()
                or (k > head and (word in ADVERBS or self._is_finite(k)))
            ):
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
        if self.low[k - 1] in _CALLED and self.words[k + 1][0].isupper():
            is_ing = True
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
        if before in NUMBER_WORDS or before == "'s" or before.isdigit():
            return False
        at = k + 1
        while at < self.n and self.low[at] in ADVERBS:
            at += 1
        after = self.low[at] if at < self.n else "."
        if flags & PAST:
            return not (before in DETERMINERS or before in POSSESSIVES)
        if after in AUXILIARIES and after not in HAVE:
            return False
        if flags & THIRD:
            is_late = at > k + 1 and bool(FORMS.get(after, ("", 0))[1] & BASE)
            follows = after in FORMS and bool(FORMS[after][1] & (PAST | THIRD))
            return not (is_late or (follows and after not in _OPENERS))
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
                if low[k - 1] in _OF_ADJECTIVES:
                    break
                k += 1
                while k < n and (low[k] in DETERMINERS or low[k] in POSSESSIVES):
                    k += 1
                continue
            if word == "'s" and k > head:
                k += 1
                continue
            if word in _NOUN_STOP or not (word[0].isalnum() or word[0] in "$€£+"):
                break
            if k > head and (word in OBJECT_PRONOUNS or self._is_participle(k)):
                break
            k += 1
        return k if k > head else at

    def _is_participle(self, k: int) -> bool:
        """Whether an -ing word after a noun says what that is doing: `events coming up`."""
        known = FORMS.get(self.low[k]) if self.low[k][-3:] == "ing" else None
        if known is None or known[1] != ING or k + 1 >= self.n:
            return False
        after = self.low[k + 1]
        return after in _OPENERS or after in SUBORDINATORS

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
            return bool(flags & PAST) and not (flags & BASE and not self.opens_strictly(k + 1))
        else:
            fits = bool(flags & (BASE | THIRD | PAST))
            is_sure = bool(flags & THIRD) if verb.is_third else known[0] in _SURELY_VERBS
            if fits and is_sure and k + 1 < n and low[k + 1][0].isalnum():
                return True
        return fits and self.opens_strictly(k + 1)

    def opens_strictly(self, k: int) -> bool:
        """Whether an object or a phrase, and no second noun, begins here."""
        if k >= self.n:
            return False
        word = self.low[k]
        return word in _OPENERS or word[0] == MARK or self.words[k][0].isupper() or word.isdigit()

    def _is_next_clause(self, k: int, verb: Verb | None) -> bool:
        """Whether what follows a coordinator is a clause; inside an infinitive only a past is."""
        if self.starts_clause(k) or self.goes_on(k, verb):
            return True
        known = FORMS.get(self.low[k]) if verb is None and k < self.n else None
        return known is not None and bool(known[1] & PAST) and not known[1] & BASE

    def stretch(self, at: int, verb: Verb | None) -> int:
        """Where the phrase that begins here ends at the latest: at the clause's own end."""
        low = self.low
        k, last = at, min(self.n, at + _STRETCH_MAX)
        while k < last:
            word = low[k]
            if word in STRONG or word in _BOUND:
                break
            if word == "," and not self._is_item(k + 1):
                break
            if word in COORDINATORS and self._is_next_clause(k + 1, verb):
                break
            if word in {"i", "he", "she", "we", "they"} and k > at:
                break
            k += 1
        return k


_CALLED: Final = word_set("name birthday favourite favorite email number")
_OF_ADJECTIVES: Final = word_set(
    "fond afraid scared proud tired sick aware jealous full capable worthy ashamed made terrified"
    " envious critical supportive appreciative"
)
_SURELY_VERBS: Final = word_set(
    "eat live love hate enjoy have own speak read write drive collect teach sell buy make want need"
    " prefer study wear learn know use sing"
)
_PLURALS: Final = word_set("people children kids men women they we and police team family")
_DEGREES: Final = word_set("very really so quite pretty too super such only about almost over like")
_FILLERS: Final = word_set("also even maybe sometimes some then")
_NOT_ITEMS: Final = (
    word_set(
        "which who so but because then though thanks please haha lol right you me too speaking"
    )
    | DETERMINERS
) - word_set("a an the some")
