"""What is somebody or something?  Statements with `to be`."""

from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.changes import tell_suffering
from projectors.text.lexicon import (
    ATTRIBUTES,
    CONDITIONS,
    DIETS,
    FEELINGS,
    JOBS,
    KIN,
    KIN_NAMES,
    MARITAL,
    NATIONALITIES,
    PETS,
    STATUSES,
)
from projectors.text.phrases import Span
from projectors.text.scene import Clause, Scene, money, number
from projectors.text.stems import singular, word_set
from projectors.text.tokens import MARK, when
from projectors.text.words import (
    ADVERBS,
    DETERMINERS,
    FORMS,
    OBJECT_PRONOUNS,
    PART,
    POSSESSIVES,
    SUBORDINATORS,
)


def tell_being(scene: Scene, clause: Clause) -> None:
    """Add what a clause with `to be` asserts."""
    grammar, verb = clause.grammar, clause.verb
    low, n = grammar.low, grammar.n
    k = verb.end
    while k < n and (low[k] in ADVERBS or low[k] in _DEGREES or low[k] in {"not", "no"}):
        if low[k] == "no" and k + 1 < n and low[k + 1] == "longer":
            k += 1
        elif low[k] in {"not", "no"}:
            verb.negative = True
        k += 1
    if _anymore(clause):
        verb.ended, verb.negative = True, False
    if verb.tense == "future" or verb.modal:
        return
    if verb.tense == "perfect" and low[k : k + 1] == ["to"]:
        _been(scene, clause)
        return
    about = _attribute(clause)
    if about is not None:
        _tell_attribute(scene, clause, about, k)
        return
    if k < n and low[k][0] != MARK and (low[k][0].isalnum() or low[k][0] in "$€£+"):
        _tell_state(scene, clause, k)
    elif clause.times and _is_thing(clause.subject):
        _tell_date(scene, clause)


_DEGREES: Final = word_set("very so really quite pretty too super such a bit kind extremely all")


def _anymore(clause: Clause) -> bool:
    low = clause.grammar.low
    return clause.verb.negative and not {"anymore", "longer"}.isdisjoint(
        low[clause.verb.end : clause.rest.end + 2]
    )


def _is_thing(subject: Mention) -> bool:
    return subject.actor is None and subject.kind != "person"


def _been(scene: Scene, clause: Clause) -> None:
    for span in clause.rest.after("to"):
        place = Mention(text=scene.text(clause.grammar, span), kind="place")
        scene.add(clause, "visited", place, kind="event")


# ── somebody's … is ──────────────────────────────────────────────────────────────────────────


def _attribute(clause: Clause) -> tuple[str, str] | None:
    """Whose what the subject is: ("alice", "phone number") for `my phone number`."""
    owner, mark, what = clause.subject.text.rpartition("'s ")
    return (owner, what.lower()) if mark else None


def _tell_attribute(scene: Scene, clause: Clause, about: tuple[str, str], k: int) -> None:
    owner_name, what = about
    grammar, rest = clause.grammar, clause.rest
    owner = _owner(scene, owner_name)
    spans = rest.objects or [span for _, found in rest.phrases for span in found]
    if rest.gerund is not None:
        spans = [rest.gerund]
    words = what.split()
    head = singular(words[-1])
    if words[0] in _OF_NO_MATTER and len(words) > 1:
        words = words[1:]
    if words[0] in {"favourite", "favorite"} and len(words) > 1:
        name = "favourite_" + "_".join(words[1:])
        for span in spans:
            scene.add(clause, name, scene.value(grammar, span), subject=owner, kind="preference")
        return
    if what == "name" and "'s " in owner_name:
        _tell_name(scene, clause, owner_name, spans)
        return
    predicate = ATTRIBUTES.get(" ".join(words))
    if predicate is not None:
        _tell_known(scene, clause, owner, predicate, k)
        return
    if (head in KIN or head in PETS or head in JOBS) and _is_named(clause, spans):
        _tell_names(scene, clause, owner, head, spans)
        return
    if clause.times and not rest.objects and not rest.phrases and _is_thing(clause.subject):
        _tell_date(scene, clause)
        return
    if k < grammar.n:
        _tell_state(scene, clause, k)


_OF_NO_MATTER: Final = word_set("all-time absolute personal new current present main own")
"""`my new number` is my number: what is told last stands."""


def _owner(scene: Scene, name: str) -> Mention:
    for known in (scene.speakers.me, scene.speakers.you, scene.person):
        if known is not None and known.text == name:
            return known
    return Mention(text=name)


def _is_named(clause: Clause, spans: list[Span]) -> bool:
    """Whether what follows is a name: `is Helena`, `is called Rex`."""
    words, low = clause.grammar.words, clause.grammar.low
    if not spans:
        return False
    first = spans[0][0]
    if low[first] in {"called", "named"}:
        return True
    return words[first][0].isupper() and low[first] not in NATIONALITIES


def _tell_names(scene: Scene, clause: Clause, owner: Mention, noun: str, spans: list[Span]) -> None:
    kind = KIN_NAMES.get(noun, noun)
    predicate = "has_pet" if noun in PETS else f"has_{kind}"
    for first, last in spans:
        start = first + (clause.grammar.low[first] in {"called", "named"})
        name = Mention(text=scene.text(clause.grammar, (start, last)), kind="person")
        if not name.text:
            continue
        scene.add(clause, predicate, name, subject=owner)
        if noun in PETS and noun != "pet":
            scene.add(clause, "is_a", Mention(text=noun), subject=name)
        scene.remember(name)


def _tell_name(scene: Scene, clause: Clause, owned: str, spans: list[Span]) -> None:
    """`my wife's name is Ingrid`."""
    owner_name, _, noun = owned.rpartition("'s ")
    head = singular(noun.split()[-1])
    owner = _owner(scene, owner_name)
    if head in KIN or head in PETS:
        _tell_names(scene, clause, owner, head, spans)


def _tell_known(scene: Scene, clause: Clause, owner: Mention, predicate: str, k: int) -> None:
    """Email, birthday, goal …: the attribute's own value."""
    grammar, rest = clause.grammar, clause.rest
    if predicate in {"birthday", "deadline"}:
        said = _said(scene, clause, k)
        if said is not None:
            clause.times = []
            scene.add(clause, predicate, said, subject=owner)
        return
    if predicate == "goal" and rest.infinitive is not None:
        words = scene.text(grammar, rest.infinitive)
        scene.add(
            clause, predicate, Value(datatype="string", value=words), subject=owner, kind="plan"
        )
        return
    if predicate in {"address", "pronouns", "goal"}:
        end = next((i for i in range(k, grammar.n) if grammar.low[i] in {".", "!", ";"}), grammar.n)
        words = scene.text(grammar, (k, end))
        if words:
            scene.add(clause, predicate, Value(datatype="string", value=words), subject=owner)
        return
    spans = rest.objects or [span for _, found in rest.phrases for span in found]
    for span in [rest.gerund] if rest.gerund is not None else spans:
        value = scene.value(grammar, span)
        if isinstance(value, Mention) and predicate in _WORDS:
            value = Value(datatype="string", value=value.text)
        scene.add(clause, predicate, value, subject=owner)


_WORDS: Final = word_set("name email phone website nickname first_name last_name username timezone")


def _said(scene: Scene, clause: Clause, k: int) -> Value | None:
    """A day as it was named, without the year nobody gave."""
    for mark in clause.times:
        if mark not in clause.tokens.often:
            words = clause.tokens.times[mark].removeprefix("on ").removeprefix("the ")
            meant = when(clause.tokens, [mark], scene.anchor, ahead=True)
            if not any(char.isdigit() for char in words) and meant and meant.interval.start:
                start = meant.interval.start
                words = f"{start.day} {start:%B}"
            return Value(datatype="date", value=words)
    words = scene.text(clause.grammar, (k, clause.rest.end))
    return Value(datatype="string", value=words) if words else None


def _tell_date(scene: Scene, clause: Clause) -> None:
    """`the launch is on 3 June`: the time is what is told."""
    is_ahead = clause.verb.tense != "past" or clause.verb.passive
    said = when(clause.tokens, clause.times, scene.anchor, ahead=is_ahead)
    if said is None or said.interval.start is None or said.role != "at":
        return
    clause.times = []
    value = Value(datatype="date", value=said.interval.start.date().isoformat())
    tense, clause.verb.tense = clause.verb.tense, "present"
    scene.add(clause, "date", value)
    clause.verb.tense = tense


# ── being something ──────────────────────────────────────────────────────────────────────────


def _tell_state(scene: Scene, clause: Clause, k: int) -> None:
    grammar = clause.grammar
    low, words = grammar.low, grammar.words
    first = low[k]
    if first in _PREPOSITIONAL:
        _tell_place(scene, clause, first)
        return
    if first in OBJECT_PRONOUNS and first not in DETERMINERS:
        return
    if _tell_number(scene, clause, k) or _tell_adjective(scene, clause, k):
        return
    if k > clause.verb.end and low[k - 1] == "a":
        k -= 1
    end = grammar.noun(k)
    if end == k:
        return
    if low[k] in POSSESSIVES:
        _tell_relation(scene, clause, (k, end))
    elif low[k] in DETERMINERS or low[k - 1] in {"a", "an"}:
        _tell_kind(scene, clause, (k, end))
    elif words[k][0].isupper():
        _tell_proper(scene, clause, (k, end))
    else:
        _tell_quality(scene, clause, (k, end))


_PREPOSITIONAL: Final = word_set("in at from into on with near for about out over")


def _tell_place(scene: Scene, clause: Clause, first: str) -> None:
    rest = clause.rest
    predicate = {"in": "located_in", "at": "located_in", "from": "from", "into": "likes"}.get(first)
    if predicate is None:
        return
    for span in rest.after(first):
        text = scene.text(clause.grammar, span)
        head = text.split()[-1].lower() if text else ""
        if not text or head in _NO_PLACES or text.partition(" ")[0].lower() in _NO_PLACES:
            continue
        if head in {"stage", "phase"}:
            value = Value(datatype="string", value=text.rsplit(" ", 1)[0])
            scene.add(clause, "stage", value)
        elif (first == "at" and text[:1].isupper() and not _is_thing(clause.subject)) or (
            first == "at" and clause.verb.ended and text[:1].isupper()
        ):
            scene.add(clause, "works_at", Mention(text=text, kind="organisation"))
        elif first == "into":
            scene.add(clause, "likes", Mention(text=text))
        elif first == "in" and _is_thing(clause.subject) and _is_bare(clause, span):
            scene.add(clause, "status", Value(datatype="string", value=f"in {text}"))
        else:
            scene.add(clause, predicate, Mention(text=text, kind="place"))


def _is_bare(clause: Clause, span: Span) -> bool:
    """`in negotiation`, `in review`: no place has a name so plain."""
    first, last = span
    words = clause.grammar.words
    return last - first == 1 and words[first][0].islower() and "'s" not in clause.subject.text


_NO_PLACES: Final = word_set(
    "ears way moon minds mind trouble love shock awe fact general fun end mood favour favor place"
    " need charge position least first last peace order touch control luck shape time top tears"
)


def _tell_number(scene: Scene, clause: Clause, k: int) -> bool:
    low, words = clause.grammar.low, clause.grammar.words
    amount = money(words[k : k + 2]) or money(words[k : k + 1])
    if amount is not None:
        name = "amount" if _is_thing(clause.subject) else "has"
        scene.add(clause, name, Value(datatype="money", value=amount), kind="quantity")
        return True
    count = number(low[k])
    if count is None:
        return False
    after = low[k + 1 : k + 3]
    is_age = after[:2] == ["years", "old"] or after[:2] == ["year", "old"]
    is_bare = not after or not after[0][0].isalnum() or after[0] in {"and", "now", "but"}
    if isinstance(count, int) and (is_age or (is_bare and not _is_counted(clause))):
        scene.add(clause, "age", Value(datatype="integer", value=count))
        return True
    return bool(is_bare)


def _is_counted(clause: Clause) -> bool:
    """Whether the subject is plainly no person or animal: `the total is 12`."""
    return clause.grammar.low[0] in {"the", "this", "that", "it"} or "'s" in clause.subject.text


def _tell_adjective(scene: Scene, clause: Clause, k: int) -> bool:
    """Adjectives and participles that carry a predicate of their own."""
    low, rest = clause.grammar.low, clause.rest
    word = low[k]
    known = _ADJECTIVES.get(word)
    if word == "born" and clause.times:
        _tell_birth(scene, clause)
    if known is not None:
        for preposition, predicate in known.items():
            spans = rest.after(preposition)
            for span in spans:
                if low[span[0]] in OBJECT_PRONOUNS:
                    return True
                begins = word in _BEFALLEN
                scene.add(clause, predicate, scene.value(clause.grammar, span), begins=begins)
            if spans:
                return True
    if word == "going" or word in _EMPTY:
        return True
    subject = clause.subject
    if word in DIETS:
        scene.add(clause, "diet", Value(datatype="string", value=word))
        return True
    if not _is_thing(subject) or "'s" in subject.text or subject.text[:1].isupper():
        if word in MARITAL:
            return _tell_marital(scene, clause, word)
        if word in CONDITIONS or low[k + 1 : k + 2] == ["intolerant"]:
            words = " ".join(low[k : k + 2]) if word not in CONDITIONS else word
            scene.add(clause, "has_condition", Value(datatype="string", value=words))
            return True
        if word in NATIONALITIES and (k + 1 >= clause.grammar.n or not low[k + 1][0].isalnum()):
            scene.add(clause, "nationality", Value(datatype="string", value=low[k].title()))
            return True
    is_felt = clause.subject.actor is not None and word.endswith("ed") and not rest.after("by")
    if word in FEELINGS or (is_felt and word not in STATUSES):
        return _tell_feeling(scene, clause, k)
    return tell_suffering(scene, clause, k)


def _tell_birth(scene: Scene, clause: Clause) -> None:
    """`born on 3 May 1990`: the day, and nothing else, is when that was."""
    said = when(clause.tokens, clause.times, scene.anchor, ahead=False)
    if said is not None and said.role == "at" and said.interval.start is not None:
        start, end = said.interval.start, said.interval.end
        if end is not None and (end - start).days == 1:
            value = Value(datatype="date", value=start.date().isoformat())
            clause.times = []
            scene.add(clause, "birthday", value, begins=True)


def _tell_marital(scene: Scene, clause: Clause, word: str) -> bool:
    scene.add(clause, "marital_status", Value(datatype="string", value=word))
    predicate = {"married": "married_to", "engaged": "engaged_to"}.get(word)
    for span in clause.rest.after("to") if predicate else []:
        name = Mention(text=scene.text(clause.grammar, span), kind="person")
        scene.add(clause, predicate or "", name)
    return True


def _tell_feeling(scene: Scene, clause: Clause, k: int) -> bool:
    low = clause.grammar.low
    end = clause.grammar.stretch(k, clause.verb)
    if _is_thing(clause.subject) and not clause.subject.text[:1].isupper():
        return False
    if not {"you", "your"}.isdisjoint(low[k:end]) or clause.grammar.starts_clause(k + 1):
        return True
    is_cut = end < clause.grammar.n and low[end] in SUBORDINATORS
    words = low[k] if is_cut else scene.text(clause.grammar, (k, end))
    if words:
        scene.add(clause, "feels", Value(datatype="string", value=words))
    return True


_BEFALLEN: Final = word_set("born diagnosed assigned made owned")
_LIKES: Final = {"of": "likes", "with": "likes", "about": "likes", "on": "likes"}
_ADJECTIVES: Final[dict[str, dict[str, str]]] = {
    "allergic": {"to": "allergic_to"},
    "interested": {"in": "interested_in"},
    "good": {"at": "skilled_in"},
    "great": {"at": "skilled_in"},
    "excellent": {"at": "skilled_in"},
    "skilled": {"in": "skilled_in", "at": "skilled_in"},
    "terrible": {"at": "bad_at"},
    "bad": {"at": "bad_at"},
    "fluent": {"in": "speaks"},
    "fond": _LIKES,
    "obsessed": _LIKES,
    "crazy": _LIKES,
    "passionate": _LIKES,
    "keen": _LIKES,
    "fan": _LIKES,
    "afraid": {"of": "fears"},
    "scared": {"of": "fears"},
    "sick": {"of": "dislikes"},
    "tired": {"of": "dislikes"},
    "based": {"in": "based_in", "out": "based_in"},
    "located": {"in": "located_in", "at": "located_in"},
    "born": {"in": "born_in"},
    "diagnosed": {"with": "has_condition"},
    "assigned": {"to": "assigned_to"},
    "related": {"to": "related_to"},
    "owned": {"by": "owned_by"},
    "made": {"of": "made_of", "by": "made_by"},
    "worth": {},
}
_EMPTY: Final = word_set(
    "able sure welcome right wrong fine ok okay kidding joking here there back wondering"
    " supposed used about like what how why where"
)


def _tell_relation(scene: Scene, clause: Clause, span: Span) -> None:
    """`Nora is my best friend`, `sushi is my favourite food`."""
    low = clause.grammar.low
    first, last = span
    owner = scene.pronoun(low[first])
    if owner is None:
        return
    words = low[first + 1 : last]
    if words and words[0] in {"favourite", "favorite"} and len(words) > 1:
        name = "favourite_" + "_".join(words[1:])
        value = clause.subject
        scene.add(clause, name, value, subject=owner, kind="preference")
        return
    noun = singular(words[-1]) if words else ""
    if noun in {"hobby", "passion", "escape", "thing"}:
        scene.add(clause, "hobby", clause.subject, subject=owner)
        return
    if noun in KIN or noun in PETS:
        kind = KIN_NAMES.get(noun, noun)
        predicate = "has_pet" if noun in PETS else f"has_{kind}"
        scene.add(clause, predicate, clause.subject, subject=owner)
        return
    named = scene.mention(clause.grammar, span)
    if named is not None and _is_thing(clause.subject):
        scene.add(clause, "is", named)


def _tell_kind(scene: Scene, clause: Clause, span: Span) -> None:
    """`a nurse at the county hospital`, `a logistics company`, `the chair`, `a big fan of jazz`."""
    grammar, rest = clause.grammar, clause.rest
    low = grammar.low
    first, last = span
    head_end = next((k for k in range(first, last) if low[k] == "of"), last)
    head = low[head_end - 1]
    if head in {"part", "member"} and head_end < last:
        scene.add(clause, "member_of", scene.value(grammar, (head_end + 1, last)))
        return
    if head in {"fan", "lover"}:
        start = next((k for k in range(first, last) if low[k] not in _KEEN), last)
        what = (head_end + 1, last) if head_end < last else (start, head_end - 1)
        scene.add(clause, "likes", scene.value(grammar, what))
        return
    if head in DIETS:
        scene.add(clause, "diet", Value(datatype="string", value=head))
        return
    if head in _EMPTY_KINDS:
        return
    text = scene.text(grammar, span)
    if not text:
        return
    if head in JOBS:
        scene.add(clause, "works_as", Mention(text=scene.text(grammar, (first, head_end))))
        if head_end < last and grammar.words[last - 1][0].isupper():
            name = Mention(text=scene.text(grammar, (head_end + 1, last)), kind="organisation")
            scene.add(clause, "works_at", name)
        for preposition in ("at", "for", "with"):
            for place in rest.after(preposition):
                named = scene.value(grammar, place)
                if isinstance(named, Mention):
                    named = Mention(text=named.text, kind="organisation")
                scene.add(clause, "works_at", named)
        return
    if clause.verb.tense == "past" and _is_thing(clause.subject):
        scene.add(clause, "was", Mention(text=text), kind="event")
        return
    scene.add(clause, "is_a", Mention(text=text))


_KEEN: Final = word_set("a an the big huge total great such avid real massive true major")
_EMPTY_KINDS: Final = word_set(
    "fan mix blast bit lot point thing way pleasure shame pity joke time case problem idea"
    " question deal mess joy one reason part kind sort"
)


def _tell_proper(scene: Scene, clause: Clause, span: Span) -> None:
    """A name: of the speaker, or of what the subject is."""
    text = scene.text(clause.grammar, span)
    if clause.subject.actor is not None:
        if clause.subject == scene.speakers.me and span[1] - span[0] <= 3:
            scene.add(clause, "name", Value(datatype="string", value=text))
        return
    scene.add(clause, "is", Mention(text=text))


def _tell_quality(scene: Scene, clause: Clause, span: Span) -> None:
    """A bare adjective or participle: a state of the thing."""
    grammar, rest, verb = clause.grammar, clause.rest, clause.verb
    low = grammar.low
    first = low[span[0]]
    if first == "worth" and rest.objects:
        amount = money(grammar.words[span[0] + 1 : span[1]])
        if amount is not None:
            scene.add(clause, "worth", Value(datatype="money", value=amount), kind="quantity")
        return
    if first == "part" and low[span[0] + 1 : span[0] + 2] == ["of"]:
        scene.add(clause, "member_of", scene.value(grammar, (span[0] + 2, span[1])))
        return
    if clause.subject.actor is not None or singular(first) in KIN:
        return
    clause.weight = min(clause.weight, 0.75)
    known = FORMS.get(first)
    is_participle = known is not None and bool(known[1] & PART)
    if first in _DATED and clause.times and (first == "scheduled" or "to" in low[span[0] :]):
        _tell_date(scene, clause)
        return
    if first in {"called", "named"} and span[1] - span[0] > 1:
        named = Value(datatype="string", value=scene.text(grammar, (span[0] + 1, span[1])))
        scene.add(clause, "name", named)
        return
    if is_participle and first not in STATUSES and rest.phrases and _is_thing(clause.subject):
        preposition, spans = rest.phrases[0]
        scene.add(clause, f"{first}_{preposition}", scene.value(grammar, spans[0]))
        return
    if first in STATUSES or (is_participle and _is_thing(clause.subject)):
        scene.add(clause, "status", Value(datatype="string", value=first), begins=verb.passive)
        return
    words = scene.text(grammar, (clause.verb.end, span[1]))
    if not words or first in _EMPTY_QUALITIES:
        return
    is_past = verb.tense == "past"
    name = "was" if is_past else "is"
    scene.add(
        clause, name, Value(datatype="string", value=words), kind="event" if is_past else "state"
    )


_DATED: Final = word_set("scheduled rescheduled moved pushed postponed")
"""What is done to a thing by giving it another day."""

_EMPTY_QUALITIES: Final = word_set(
    "true false different same possible important necessary easy hard"
)
