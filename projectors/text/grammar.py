"""How do words make clauses?  Verb groups and what follows them.

A shallow grammar of plain English: it knows how phrases follow each other and what tense a verb
group has, and looks at every position a bounded number of times.
"""

from typing import Final

from projectors.text.lexicon import KIN
from projectors.text.phrases import STRONG, Phrases, Span, Tense, Verb
from projectors.text.stems import singular, word_set
from projectors.text.tokens import MARK
from projectors.text.words import (
    ADVERBS,
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


class Complement:
    """What follows a verb: objects, prepositional phrases, an infinitive or an -ing phrase."""

    __slots__ = (
        "adverbs",
        "end",
        "gerund",
        "infinitive",
        "is_relative",
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
        self.is_relative = False
        self.adverbs: list[str] = []

    def after(self, preposition: str) -> list[Span]:
        """The noun phrases after the first such preposition."""
        for known, spans in self.phrases:
            if known == preposition:
                return spans
        return []


class Grammar(Phrases):
    """The clauses of one sentence."""

    __slots__ = ()

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
            elif not (k == at and word in {"all", "both"}):
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
        if have and known is not None and flags & PART and word != "had":
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
            verb.is_third = bool(flags & THIRD)
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
            elif word in STRONG or word == "," or word in COORDINATORS:
                k = self._past_comma(k, found)
                if k < 0:
                    k = -k
                    break
            elif word == "not" or (word in ADVERBS and word != "over"):
                found.adverbs.append(word)
                k += 1
            elif k == verb.end and word in _BACK:
                found.particle = word
                k += 1
            elif word == "to" and self._is_infinitive(k + 1):
                end = self.stretch(k + 1, None)
                found.infinitive = (k + 1, end)
                k = end
                break
            elif word in PREPOSITIONS and not self._is_conjunction(k):
                k = self._phrase(k, found, verb)
            elif word in {"me", "us", "him", "them"} and not found.objects:
                found.objects = [(k, k + 1)]
                k += 1
            elif self._is_subordinate(k):
                # "the cake I made": what follows the object only tells which one is meant.
                touches = bool(found.objects) and found.objects[-1][1] == k
                found.is_relative = touches and word in _RELATIVE
                break
            elif not found.objects and self._is_gerund(k):
                end = self.stretch(k, verb)
                found.gerund = (k, end)
                self.marks += [int(mark[1:]) for mark in low[k:end] if mark[0] == MARK]
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
        if known is None:  # a verb we do not know shows by the object it takes
            following = self.low[k + 1] if k + 1 < self.n else ""
            return self._looks_finite(k) and (following in DETERMINERS or following in POSSESSIVES)
        return bool(known[1] & BASE) and self.words[k][0].islower()

    def _is_conjunction(self, k: int) -> bool:
        """Whether `as`, `since`, `after` and the like begin a clause here, and no phrase."""
        low = self.low
        if low[k] not in SUBORDINATORS and low[k] not in {"since", "for", "like"}:
            return False
        return k + 1 < self.n and (
            low[k + 1] in SUBJECT_PRONOUNS or (low[k] != "as" and self.starts_clause(k + 1))
        )

    def _is_subordinate(self, k: int) -> bool:
        """Whether another clause begins here; `that book` begins none."""
        word = self.low[k]
        if word in {"i", "we", "he", "she", "they"}:
            return True
        if word != "that":
            return word in SUBORDINATORS
        return self.noun(k) <= k + 1 or self.starts_clause(k + 1)

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
        if start < n and self._is_gerund(start) and self.opens_strictly(start + 1):
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

    def _is_receiver(self, span: Span) -> bool:
        """Whether somebody is given something: `made my friend a cake`."""
        first, last = span
        is_kin = self.low[first] in POSSESSIVES and singular(self.low[last - 1]) in KIN
        return is_kin or self.low[first] in OBJECT_PRONOUNS

    def _objects(self, found: Complement, spans: list[Span], end: int) -> int:
        """Take objects; of two in a row ("gave me a ring") the second is what was given."""
        if not found.objects or (not found.phrases and self._is_receiver(found.objects[0])):
            found.objects = spans
        elif not found.phrases and self.low[spans[0][0]] not in DETERMINERS:
            first, _ = found.objects[-1]
            found.objects[-1] = (first, spans[0][1])
        return end


def _tense(be: str, have: str, do: str, modal: str) -> Tense:
    if modal:
        return "future" if modal in {"will", "shall"} else "present"
    if have or be == "been":  # `it's been` opens as `it is been`
        return "perfect"
    return "past" if be in {"was", "were"} or do == "did" else "present"


_RELATIVE: Final = word_set("i we he she they that which who")
_BACK: Final = word_set("back down away")
_PAST_TOO: Final = word_set("put cut let set hit quit cost shut spread split bet hurt")
