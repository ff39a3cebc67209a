"""How does a sentence fall into clauses, and how is each meant?

What others say and what is thought is taken with less confidence, and what is said of nobody one
could name is not taken.
"""

from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.frames import tell
from projectors.text.grammar import Complement, Grammar
from projectors.text.lexicon import ATTRIBUTES, KIN, KIN_NAMES, STATUSES
from projectors.text.phrases import Verb
from projectors.text.replies import is_news
from projectors.text.scene import Clause, Scene
from projectors.text.stems import singular, word_set
from projectors.text.tokens import MARK, Tokens
from projectors.text.words import (
    ADVERBS,
    AUXILIARIES,
    BASE,
    COORDINATORS,
    FORMS,
    HEDGES,
    ING,
    INTERJECTIONS,
    PAST,
    POSSESSIVES,
    REPORTS,
    SUBJECT_PRONOUNS,
    VAGUE,
)

_SAYING: Final = word_set(
    "say tell mention claim report announce insist swear argue admit explain suggest confirm write"
    " text warn state reckon promise reply answer respond"
)
_HEARING: Final = word_set("hear read")
_THINKING: Final = word_set("think guess believe suppose assume reckon feel suspect figure")
_KNOWING: Final = word_set(
    "know realize realise notice learn discover find remember see forget mean"
)
_UNREAL: Final = word_set("wish hope wonder imagine pretend dream bet doubt ask pray")
_CLAUSAL: Final = _SAYING | _HEARING | _THINKING | _KNOWING | _UNREAL
_SKIPPED: Final = word_set(
    "if unless when whenever where wherever which who whom whose that before after until till than"
    " what how why whether as once"
)
_LINKS: Final = word_set("because although though while since cause cuz whereas even")
_SHOWING: Final = word_set("there below above")
_OPENING: Final = (
    HEDGES | REPORTS | _SKIPPED | ADVERBS | COORDINATORS | INTERJECTIONS | _LINKS | _SHOWING
) - (AUXILIARIES | {"seems"})
"""Words that may stand before a clause and are no part of it."""

_GENERAL: Final = word_set("are were have can do make like")
_HEARERS: Final = word_set("me us him her them you earlier")
_REMARKS: Final = word_set(
    "reminder experience bond time way chance challenge ride feeling honor honour joy moment treat"
    " decision memory blessing bummer shame pleasure relief journey thing day night lot bit"
)
_REMINDERS: Final = word_set("remember note reminder fyi know btw ps")
PREAMBLES: Final = _REMINDERS | word_set(
    "as i actually correction sorry rumour rumor in guess please keep just do"
)
_FELT_SUBJECTS: Final = SUBJECT_PRONOUNS | POSSESSIVES | {"the", "this", "that"}
_NO_HEARERS: Final = word_set("out")
_THEIRS: Final = word_set("he she they his her their your its")
_FICTION: Final = word_set("film movie book story novel game show series dream play episode")
_REACHING: Final = word_set("reach contact call text email write mail message ring phone")


def reminder(low: list[str]) -> int:
    """Where a sentence goes on after words that only ask to mark it: `please note that`."""
    if low[:2] == ["guess", "what"]:
        return 2
    k = 1 if low[0] == "please" else 0
    if low[k : k + 3] == ["keep", "in", "mind"] or low[k : k + 4] == ["just", "so", "you", "know"]:
        k += 3 if low[k] == "keep" else 4
    elif low[k : k + 3] == ["do", "not", "forget"]:
        k += 3
    elif low[k : k + 1] and low[k] in _REMINDERS:
        k += 1
    else:
        return 0
    marks = low[k : k + 1]
    return k + 1 if marks and marks[0] in {"that", ":", ",", "-"} else 0


class Sentence:
    """One sentence being read: where we are, and how what comes next is meant."""

    __slots__ = (
        *("corrects", "grammar", "hedged", "pending", "scene", "source", "subjects", "tokens"),
        *("verb", "weight"),
    )

    def __init__(self, scene: Scene, tokens: Tokens, weight: float) -> None:
        self.scene, self.tokens = scene, tokens
        self.grammar = Grammar(tokens)
        self.weight = weight
        self.hedged = False
        self.corrects = False
        self.source: Mention | None = None
        self.subjects: list[Mention] = []
        self.verb: Verb | None = None
        self.pending: list[int] = []

    def tell(self) -> None:
        """Clause after clause, from left to right."""
        n = self.grammar.n
        start = k = self._preamble()
        while k < n:
            before = k
            k = self._openers(k)
            if k < n:
                k = max(self._clause(k, is_first=before == start), before + 1)

    def _preamble(self) -> int:
        """Words at the head of a sentence that say how all of it is meant; where it goes on."""
        low = self.grammar.low
        me = None if self.scene.speakers.serves else self.scene.speakers.me
        if me is not None and "me" in low and not _REACHING.isdisjoint(low):
            self._contact(me, low)
        if low[0] not in PREAMBLES:
            return 0
        head = " ".join(low[:6])
        if head.startswith(("as far as i know", "i am not sure , but")):
            self.hedged = True
        self.corrects = head.startswith(("actually ,", "correction", "sorry , i meant", "i meant"))
        after = reminder(low)
        if after:
            return after
        if head.startswith(("rumour has it", "rumor has it")):
            self.source = Mention(text="rumour")
            return 3
        if head.startswith("in my opinion ,") and me is not None and self.grammar.n > 5:
            self._opinion(Verb(), me, 4)
            self.hedged = True
            return 4
        if low[0] == "in" and not _FICTION.isdisjoint(low[1:4]):
            return self.grammar.n
        return 0

    def _contact(self, me: Mention, low: list[str]) -> None:
        """`call me Sam`, `you can reach me at …`: said as a request, and yet told."""
        words = self.grammar.words
        clause = Clause(self.tokens, self.grammar, me, Verb())
        clause.weight = self.weight
        at = low.index("me")
        if at and low[at - 1] == "call" and words[at + 1 : at + 2] and words[at + 1][0].isupper():
            self.scene.add(clause, "nickname", Value(datatype="string", value=words[at + 1]))
        for word in words[at + 1 :]:
            is_phone = sum(char.isdigit() for char in word) > 6 and word[0] in "+0123456789"
            if "@" in word or is_phone:
                predicate = "email" if "@" in word else "phone"
                self.scene.add(clause, predicate, Value(datatype="string", value=word))

    def _openers(self, k: int) -> int:
        """Pass what stands before a clause: marks, interjections, connectives, adverbs, times."""
        low, n = self.grammar.low, self.grammar.n
        while k < n:
            word = low[k]
            if word not in _OPENING and word[0].isalnum():
                break
            if word[0] == MARK:
                self.pending.append(int(word[1:]))
            elif word == "that" and low[k + 1 : k + 2] == ["is"]:
                break
            elif word in HEDGES or word in REPORTS:
                self.hedged = True
            elif (word in _SKIPPED and not (word == "that" and self._is_linking_that(k))) or (
                word == "since" and self._is_temporal(k)
            ):
                k = self._skip(k)
                continue
            elif word in _SHOWING and k + 1 < n and low[k + 1] in AUXILIARIES:
                return self._boundary(k + 2)
            elif word[0] in "$€£+":
                break
            k += 1
        return k

    def _is_temporal(self, k: int) -> bool:
        """`since we last spoke` tells when, `since I am ill` tells why."""
        low = self.grammar.low
        after = low[k + 1 : k + 4]
        return bool(after) and (
            "last" in after or any(FORMS.get(w, ("", 0))[1] & PAST for w in after[1:])
        )

    def _is_linking_that(self, k: int) -> bool:
        """Whether this `that` only opens what follows; `that is why` is a clause of its own."""
        return k > 0 and self.grammar.starts_clause(k + 1) and self.grammar.low[k - 1] != ","

    def _skip(self, k: int) -> int:
        """Past a subordinate clause that asserts nothing new: after the next comma."""
        low, n = self.grammar.low, self.grammar.n
        if low[k] == "as" and low[k : k + 5] == ["as", "far", "as", "i", "know"]:
            return min(n, k + 5)
        if low[k] in {"when", "after", "before"} and self._is_story(k + 1):
            return k + 1
        k += 1
        while k < n and low[k] not in {",", ";", ".", "!", "—", "–", "-"}:
            k += 1
        return k

    def _is_story(self, k: int) -> bool:
        """`… when we found a cave`: what happened is told in passing, and told."""
        low = self.grammar.low
        if low[k : k + 1] not in (["i"], ["we"]):
            return False
        known = next((FORMS[word] for word in low[k + 1 : k + 3] if word in FORMS), ("be", 0))
        return known[0] not in {"be", "have", "do"} and bool(known[1] & PAST)

    def _boundary(self, k: int) -> int:
        """The next place where a clause may begin."""
        low, n = self.grammar.low, self.grammar.n
        while k < n and low[k][0].isalnum() and low[k] not in COORDINATORS and low[k] not in _LINKS:
            if low[k] in _SKIPPED:
                return self._skip(k)
            k += 1
        return k

    # ── one clause ───────────────────────────────────────────────────────────────────────────

    def _clause(self, k: int, *, is_first: bool) -> int:
        grammar, low = self.grammar, self.grammar.low
        if low[k] == "according" and k + 2 < grammar.n and low[k + 1] == "to":
            end = grammar.noun(k + 2)
            self.source = self.scene.mention(grammar, (k + 2, end)) if end > k + 2 else None
            return max(end, k + 2)
        if low[k] in {"that", "this"} and low[k + 1 : k + 3] == ["is", "why"]:
            return k + 3
        end = grammar.subject(k)
        if is_first and self._is_command(k):
            return grammar.n
        if end > k:
            after = self._after_subject(k, end)
            if after:
                return after
        if end == k or low[k] in FORMS:
            after = self._without_subject(k, is_first=is_first)
            if after:
                return after
        after = self._apposed(k, end)
        if after:
            return after
        if end + 1 < grammar.n and low[end] == "," and low[end + 1] in {"he", "she", "they"}:
            self.scene.remember(self.scene.mention(grammar, (k, end)), plural=True)
        return self._boundary(max(k + 1, end))

    def _is_command(self, k: int) -> bool:
        """A verb in its plain form at the head of a sentence: it asks for something."""
        known = FORMS.get(self.grammar.low[k])
        if known is None or not known[1] & BASE or known[1] & PAST:
            return False
        following = self.grammar.low[k + 1 : k + 2]
        return not following or following[0] not in AUXILIARIES

    def _after_subject(self, k: int, end: int) -> int:
        """A clause with a subject of its own; 0 when no verb follows it."""
        grammar, low, n = self.grammar, self.grammar.low, self.grammar.n
        spans, head = [(k, end)], end
        if end + 1 < n and low[end] == "and":
            other = grammar.subject(end + 1)
            if other > end + 1 and grammar.is_verbal(other, "they"):
                spans.append((end + 1, other))
                end = other
        elif end + 1 < n and low[end] in {"in", "at", "of", "with", "from", "on", "for"}:
            other = grammar.subject(end + 1)
            if other > end + 1 and grammar.is_verbal(other, low[k]):
                spans[0], end = (k, other), other
        verb = grammar.verb(end, "they" if len(spans) > 1 else low[k])
        if verb is None:
            return 0
        if head - k == 1 and low[k] in VAGUE and not self._is_about_it(k, verb):
            return self._impersonal(k, verb)
        if self._is_general(k, head) and not self._is_of_mine(verb):
            return self._pass(verb)
        subjects = [self.scene.mention(grammar, span) for span in spans]
        self.subjects = [subject for subject in subjects if subject is not None]
        if len(self.subjects) < len(spans):
            self.subjects = []
            wrapped = self._wrapped(verb, None)
            return wrapped or self._pass(verb)
        if low[k] not in SUBJECT_PRONOUNS:
            for subject in self.subjects:
                self.scene.remember(subject, plural=len(spans) > 1)
        return self._told(verb)

    def _apposed(self, k: int, end: int) -> int:
        """`Tom, my brother, lives in Rome`: who he is, and what he does; 0 when it is not so."""
        grammar, low, n = self.grammar, self.grammar.low, self.grammar.n
        if end <= k or end + 2 >= n or low[end] != "," or low[end + 1] not in {"my", "our"}:
            return 0
        close = grammar.noun(end + 1)
        if close + 1 >= n or low[close] != "," or not grammar.is_verbal(close + 1, low[k]):
            return 0
        verb = grammar.verb(close + 1, low[k])
        me, subject = self.scene.speakers.me, self.scene.mention(grammar, (k, end))
        noun = singular(low[close - 1])
        if verb is None or subject is None or me is None or noun not in KIN:
            return 0
        self.scene.relate(me, f"has_{KIN_NAMES.get(noun, noun)}", subject)
        self.scene.remember(subject)
        self.subjects = [subject]
        return self._told(verb)

    def _is_about_it(self, k: int, verb: Verb) -> bool:
        """Whether `it` means what was spoken of last: only where it says what that is."""
        low, at = self.grammar.low, verb.end
        if low[k] != "it" or self.scene.thing is None or verb.lemma != "be" or at >= self.grammar.n:
            return False
        if verb.tense != "present" or self.scene.thing.text.endswith("s"):
            return False
        head = low[self.grammar.noun(at) - 1]
        return (low[at] in {"a", "an"} and head not in _REMARKS) or low[at] in STATUSES

    def _is_general(self, k: int, end: int) -> bool:
        """`Setbacks are …`, `Running helps …`: said of no one thing."""
        low, words = self.grammar.low, self.grammar.words
        first = low[k]
        if first in {"a", "an"} and self.scene.speakers.serves:
            return True
        known = FORMS.get(first)
        is_doing = first.endswith("ing") and (known is None or known[1] == ING) and len(first) > 5
        if (is_doing and words[k].islower()) or first in {"these", "those"}:
            return True
        if is_doing and k == 0:
            return True
        if singular(low[end - 1]) in {"thing", "stuff", "way", "moment", "people", "person"}:
            return True
        is_plural = first.endswith("s") and not first.endswith("ss") and end < self.grammar.n
        if end - k == 1 and is_plural and low[end] in _GENERAL:
            return True
        return end - k == 1 and words[k][0].islower() and first not in SUBJECT_PRONOUNS

    def _is_of_mine(self, verb: Verb) -> bool:
        """`Climbing is my passion`: general, but told of somebody."""
        return verb.lemma == "be" and self.grammar.low[verb.end : verb.end + 1] in (["my"], ["our"])

    def _without_subject(self, k: int, *, is_first: bool) -> int:
        """A second verb of the same subject, or a deed told without `I`; 0 when neither."""
        grammar, low = self.grammar, self.grammar.low
        known = FORMS.get(low[k])
        if known is None and low[k] not in AUXILIARIES:
            return 0
        if self.subjects and self.verb is not None and not is_first and self._is_joined(k):
            verb = grammar.verb(k, "they" if self.verb.tense == "present" else "i")
            if verb is None and self.verb.tense == "progressive" and known is not None:
                verb = Verb()
                verb.lemma, verb.tense, verb.end = known[0], "progressive", k + 1
            if verb is not None:
                if self.verb.tense in {"perfect", "future"} and low[k] not in AUXILIARIES:
                    verb.tense = self.verb.tense
                return self._told(verb)
            return 0
        is_past = known is not None and known[1] & PAST and not known[1] & BASE
        is_open = is_first or low[k - 1] in {"-", "—", "–", ";"}
        if is_open and (is_past or low[k] == "been") and self.scene.speakers.me is not None:
            verb = grammar.verb(k, "i")
            is_told = low[k][-2:] != "ed" or grammar.opens_strictly(k + 1)
            is_been = verb is not None and low[verb.end : verb.end + 1] == ["to"]
            if verb is not None and is_told and (verb.lemma != "be" or is_been):
                self.subjects = [self.scene.speakers.me]
                self.weight = min(self.weight, 0.75)
                return self._told(verb)
        # A verb in its plain form at the head of a sentence is a command: it asserts nothing.
        return grammar.n if is_first and known is not None and known[1] & BASE else 0

    def _is_joined(self, k: int) -> bool:
        """Whether a comma or an `and` ties this verb to the clause before."""
        low = self.grammar.low
        k -= 1
        while k > 0 and (low[k] in ADVERBS or low[k][0] == MARK):
            k -= 1
        return k >= 0 and (low[k] in COORDINATORS or low[k] == ",")

    def _impersonal(self, k: int, verb: Verb) -> int:
        """`it seems that`, `rumour has it`, `people say`: what follows is hearsay or a guess."""
        low = self.grammar.low
        if low[k] == "it" and verb.lemma in {"seem", "look", "appear", "sound"}:
            self.hedged = True
            return self._after_that(verb.end)
        if (
            low[k] in {"people", "everyone", "someone", "somebody", "they"}
            and verb.lemma in _SAYING
        ):
            self.source = Mention(text=low[k], kind="person")
            return self._after_that(verb.end)
        return self._pass(verb)

    def _after_that(self, k: int) -> int:
        low, n = self.grammar.low, self.grammar.n
        while k < n and low[k] in {
            "that",
            "like",
            "as",
            "to",
            "me",
            "us",
            "him",
            "her",
            "you",
            "though",
        }:
            k += 1
        return k

    def _pass(self, verb: Verb) -> int:
        """Over a clause that tells nothing, to where the next may begin."""
        self.subjects = []
        self.grammar.marks.clear()
        return self._boundary(verb.end)

    def _wrapped(self, verb: Verb, subject: Mention | None) -> int:
        """A verb of saying, thinking or wishing with a clause for its object: how that is meant."""
        grammar, low, n = self.grammar, self.grammar.low, self.grammar.n
        if verb.lemma not in _CLAUSAL:
            return 0
        k = verb.end
        hearers = _HEARERS if verb.lemma in _SAYING else _NO_HEARERS
        while k < n and (low[k] in hearers or low[k] in ADVERBS or low[k][0] == MARK):
            k += 1
        has_that = k < n and low[k] == "that"
        start = k + 1 if has_that else k
        if start >= n or not grammar.starts_clause(start):
            return 0
        if verb.lemma == "feel" and not has_that and low[start] not in _FELT_SUBJECTS:
            return 0
        is_mine = subject is not None and subject == self.scene.speakers.me
        if verb.lemma in _UNREAL or verb.negative or verb.modal in {"would", "could"}:
            return self._skip(start)
        if verb.lemma in _KNOWING:
            return start
        if verb.lemma in _HEARING or verb.lemma in _SAYING or not is_mine:
            self.source = subject or Mention(text="someone", kind="person")
            is_restated = subject is not None and subject == self.scene.speakers.you
            if (is_mine or is_restated) and verb.lemma in _SAYING:
                self.source = None
            elif is_mine:
                self.source = Mention(text="someone", kind="person")
            return start
        has_opinion = subject is not None and not self.scene.speakers.serves
        if verb.lemma in {"think", "believe", "feel"} and subject is not None and has_opinion:
            self._opinion(verb, subject, start)
        self.hedged = True
        return start

    def _opinion(self, verb: Verb, subject: Mention, start: int) -> None:
        """What somebody thinks, in their words."""
        clause = Clause(self.tokens, self.grammar, subject, verb)
        clause.weight = min(self.weight, 0.85)
        low = self.grammar.low
        if low[start] in {"i", "we", "you", "it", "that", "this", "there"}:
            return
        if low[start] in _THEIRS and self.scene.pronoun(low[start]) is None:
            return
        words = self.scene.text(self.grammar, (start, self.grammar.stretch(start, verb)))
        self.scene.add(clause, "thinks", Value(datatype="string", value=words))

    def _told(self, verb: Verb) -> int:
        grammar = self.grammar
        subject = self.subjects[0]
        wrapped = self._wrapped(verb, subject)
        if wrapped:
            return wrapped
        if verb.tense == "progressive" and _is_attribute(subject):
            # `Mia's favourite sport is climbing`: what looks like a verb is the object.
            verb.lemma, verb.tense, verb.end = "be", "present", verb.end - 1
        rest = grammar.complement(verb)
        for one in self.subjects:
            clause = Clause(self.tokens, grammar, one, verb)
            clause.rest = rest
            clause.times = [*grammar.marks, *self.pending]
            clause.hedged = verb.hedged or self.hedged
            clause.source, clause.corrects = self.source, self.corrects
            clause.weight = self.weight
            self._tell(clause)
        grammar.marks.clear()
        self.pending.clear()
        self.verb = verb
        self._remember(verb, rest)
        if rest.is_relative:
            return self._boundary(rest.end + 1)
        return max(rest.end, verb.end)

    def _tell(self, clause: Clause) -> None:
        """What the clause asserts; of an assistant's, what is more than service."""
        found, speakers = self.scene.found, self.scene.speakers
        known = len(found)
        tell(self.scene, clause)
        if speakers.serves:
            found[known:] = [one for one in found[known:] if is_news(one, clause, speakers)]

    def _remember(self, verb: Verb, rest: Complement) -> None:
        """Whom `she` may mean next: somebody's kin among the objects."""
        low = self.grammar.low
        spans = [span for _, found in rest.phrases for span in found]
        if verb.lemma != "be":
            spans += rest.objects
        for span in spans:
            if low[span[0]] in POSSESSIVES and singular(low[span[1] - 1]) in KIN:
                self.scene.remember(self.scene.mention(self.grammar, span))


def _is_attribute(subject: Mention) -> bool:
    _, mark, what = subject.text.rpartition("'s ")
    return bool(mark) and (what.startswith("favo") or what.lower() in ATTRIBUTES)
