"""What does somebody have, and what has become different?  Having, getting, moving, leaving."""

from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.lexicon import (
    CONDITIONS,
    EVENT_NOUNS,
    JOBS,
    KIN,
    KIN_NAMES,
    MARITAL,
    PETS,
    STATUSES,
)
from projectors.text.objects import is_empty, tell_count, tell_over, thing
from projectors.text.phrases import Span
from projectors.text.plans import EMPTY_NEEDS, is_ahead, plan_text, tell_plan
from projectors.text.scene import Clause, Scene, number
from projectors.text.stems import singular, word_set
from projectors.text.tokens import when
from projectors.text.words import DETERMINERS, FORMS, PART, past_form


def tell_having(scene: Scene, clause: Clause) -> bool:
    """What somebody has: kin, pets, illnesses, things, so many of them; or has to do."""
    verb, rest, grammar = clause.verb, clause.rest, clause.grammar
    low = grammar.low
    if rest.infinitive is not None and not rest.objects:
        first = low[rest.infinitive[0]]
        if first not in EMPTY_NEEDS and not verb.negative and verb.tense == "present":
            scene.add(clause, "needs_to", plan_text(scene, clause, rest.infinitive), kind="plan")
        return True
    if not rest.objects:
        return True
    span = rest.objects[0]
    if low[span[0]] == "no":
        verb.negative = True
    if low[span[1] - 1] in {"trouble", "problems", "issues", "difficulty"} and rest.after("with"):
        with_what = thing(scene, clause, rest.after("with")[0], "thing")
        scene.add(clause, "has_trouble_with", with_what)
        return True
    if singular(low[span[1] - 1]) in EVENT_NOUNS and is_ahead(scene, clause):
        tell_plan(scene, clause)
        return True
    if is_empty(clause, span):
        return True
    if tell_kin_or_pet(scene, clause, span):
        return True
    noun = low[span[1] - 1]
    if number(low[span[0]]) is not None and not noun.endswith("old"):
        is_person = clause.subject.actor is not None or clause.subject.kind == "person"
        if not is_person and tell_count(scene, clause, span):
            return True
    if noun in CONDITIONS or singular(noun) in CONDITIONS:
        return _listed(scene, clause, "has_condition")
    if "degree" in low[span[0] : span[1]] and rest.after("in"):
        scene.add(clause, "has_degree_in", thing(scene, clause, rest.after("in")[0], "thing"))
        return True
    if verb.tense == "past":
        return False
    return _listed(scene, clause, "has")


def _listed(scene: Scene, clause: Clause, predicate: str) -> bool:
    for span in clause.rest.objects:
        scene.add(clause, predicate, thing(scene, clause, span, "thing"))
    return True


def tell_kin_or_pet(scene: Scene, clause: Clause, span: Span) -> bool:
    """`two cats, Tom and Luna`, `a dog named Rex`, `three kids`, `a sister`."""
    low, words = clause.grammar.low, clause.grammar.words
    first, last = span
    named = next((k for k in range(first, last) if low[k] in {"named", "called"}), None)
    head = (named or last) - 1
    noun = singular(low[head])
    if (noun not in KIN and noun not in PETS) or (noun == "baby" and clause.verb.tense == "past"):
        return False
    kind = KIN_NAMES.get(noun, noun)
    predicate = "has_pet" if noun in PETS else f"has_{kind}"
    names = [(named + 1, last)] if named is not None else []
    names += [s for s in clause.rest.objects[1:] if words[s[0]][0].isupper()]
    if not names and head + 1 < last:
        return False
    count = next((number(low[k]) for k in range(first, head) if number(low[k]) is not None), None)
    begins = clause.verb.lemma in {"get", "adopt"}
    for span_ in names:
        name = Mention(text=scene.text(clause.grammar, span_), kind="person")
        scene.add(clause, predicate, name, begins=begins)
        if noun in PETS:
            scene.add(clause, "is_a", Mention(text=noun), subject=name)
        scene.remember(name)
    if isinstance(count, int) and low[head] != noun:
        value = Value(datatype="integer", value=count)
        scene.add(clause, f"{kind}_count", value, begins=True, kind="quantity")
    if not names and not (isinstance(count, int) and low[head] != noun):
        text = scene.text(clause.grammar, (first, head + 1))
        thing = Mention(text=f"{clause.subject.text}'s {text}", kind="person")
        scene.add(clause, predicate, thing if noun in KIN else Mention(text=text), begins=begins)
        scene.remember(thing)
    return True


def tell_getting(scene: Scene, clause: Clause) -> bool:
    """What somebody got, or became by getting: engaged, promoted, a job, a dog."""
    verb, rest, low = clause.verb, clause.rest, clause.grammar.low
    if verb.tense == "perfect" and rest.objects:
        verb.tense = "present"
        return tell_having(scene, clause)
    if rest.particle == "back" and rest.after("from"):
        return _back(scene, clause)
    if not rest.objects:
        return verb.tense != "past"
    span = rest.objects[0]
    first = low[span[0]]
    if tell_suffering(scene, clause, span[0]):
        return True
    if first in MARITAL:
        scene.add(clause, "marital_status", Value(datatype="string", value=first), begins=True)
        for one in rest.after("to"):
            predicate = "engaged_to" if first == "engaged" else "married_to"
            scene.add(clause, predicate, thing(scene, clause, one, "person"), begins=True)
        return True
    if first == "promoted":
        for one in rest.after("to"):
            scene.add(clause, "works_as", thing(scene, clause, one, "thing"), begins=True)
        return True
    if first in STATUSES and clause.subject.actor is None:
        scene.add(clause, "status", Value(datatype="string", value=first), begins=True)
        return True
    if low[span[1] - 1] in {"job", "position", "internship"}:
        return _hired(scene, clause)
    if tell_kin_or_pet(scene, clause, span):
        return True
    return verb.tense not in {"past", "progressive"} or first in FORMS or first in _STATES


def _back(scene: Scene, clause: Clause) -> bool:
    """`got back from Rome`: somebody was there."""
    for span in clause.rest.after("from"):
        is_event = singular(clause.grammar.low[span[1] - 1]) in EVENT_NOUNS
        value = thing(scene, clause, span, "thing" if is_event else "place")
        scene.add(clause, "attended" if is_event else "visited", value, kind="event")
    return True


def tell_suffering(scene: Scene, clause: Clause, k: int) -> bool:
    """`got mentored by Ann`, `was hired by Bolt`: what others did, told from the other side."""
    known = FORMS.get(clause.grammar.low[k])
    doers = clause.rest.after("by")
    if known is None or not known[1] & PART or not doers:
        return False
    for span in doers:
        value = thing(scene, clause, span, "thing")
        scene.add(clause, f"{past_form(known[0])}_by", value, kind="event")
    return True


_STATES: Final = word_set("tired sick used lost ready better worse stuck home excited nervous back")


def _hired(scene: Scene, clause: Clause) -> bool:
    """`started a new job at Contoso`."""
    found = False
    for preposition in ("at", "with", "for"):
        for span in clause.rest.after(preposition):
            scene.add(clause, "works_at", thing(scene, clause, span, "organisation"), begins=True)
            found = True
    for span in clause.rest.after("as"):
        scene.add(clause, "works_as", thing(scene, clause, span, "thing"), begins=True)
        found = True
    return found


def tell_start(scene: Scene, clause: Clause) -> bool:
    """A new job; any other start is a deed."""
    rest, low = clause.rest, clause.grammar.low
    if rest.objects and low[rest.objects[0][1] - 1] in {"job", "position", "work"}:
        return _hired(scene, clause)
    if not rest.objects and rest.gerund is None and clause.subject.kind != "thing":
        at = rest.after("at")
        if at and clause.grammar.words[at[0][0]][0].isupper():
            return _hired(scene, clause)
    return False


def tell_leaving(scene: Scene, clause: Clause) -> bool:
    """`left Acme in May`: the state is over, from then on."""
    rest, words = clause.rest, clause.grammar.words
    if clause.verb.tense not in {"past", "perfect"} or not rest.objects or rest.phrases:
        return False
    first = rest.objects[0][0]
    if not words[first][0].isupper() or clause.grammar.low[0] in DETERMINERS:
        return False
    tell_over(scene, clause, "works_at", thing(scene, clause, rest.objects[0], "organisation"))
    return True


def tell_becoming(scene: Scene, clause: Clause) -> bool:
    """What somebody became."""
    for span in clause.rest.objects[:1]:
        head = clause.grammar.low[span[1] - 1]
        predicate = "works_as" if head in JOBS else "is_a"
        scene.add(clause, predicate, thing(scene, clause, span, "thing"), begins=True)
    return True


def tell_moving(scene: Scene, clause: Clause) -> bool:
    """Where somebody lives from now on, how many there are, or when it is instead."""
    rest, grammar = clause.rest, clause.grammar
    target, origin = rest.after("to") or rest.after("into"), rest.after("from")
    if target and tell_count(scene, clause, target[0]):
        return True
    if not target and not origin:
        if clause.times and clause.subject.kind == "thing" and clause.subject.actor is None:
            return _redated(scene, clause)
        return False
    is_person = clause.subject.actor is not None or clause.subject.kind == "person"
    is_person = is_person or (
        clause.subject.text[:1].isupper()
        and "'s" not in clause.subject.text
        and not _is_thing(clause)
    )
    predicate = "lives_in" if is_person else "located_in"
    spans = rest.after("in") if target and grammar.low[target[0][0]] in DETERMINERS else []
    for span in spans or target:
        scene.add(clause, predicate, thing(scene, clause, span, "place"), begins=True)
    for span in origin[:1]:
        tell_over(scene, clause, predicate, thing(scene, clause, span, "place"))
    return True


def _is_thing(clause: Clause) -> bool:
    first = clause.grammar.low[0]
    return first in DETERMINERS


def _redated(scene: Scene, clause: Clause) -> bool:
    said = when(clause.tokens, clause.times, scene.anchor, ahead=True)
    if said is None or said.interval.start is None:
        return False
    clause.times = []
    value = Value(datatype="date", value=said.interval.start.date().isoformat())
    clause.verb.tense = "present"
    scene.add(clause, "date", value)
    return True


def tell_change(scene: Scene, clause: Clause) -> bool:
    """switch, change, upgrade, grow, drop … from one thing to another."""
    verb, rest, grammar = clause.verb, clause.rest, clause.grammar
    target, origin = rest.after("to"), rest.after("from")
    if not target:
        return False
    if tell_count(scene, clause, target[0]):
        return True
    value = thing(scene, clause, target[0], "thing")
    if value is None:
        return True
    if rest.objects:  # changed my phone number to …
        what = scene.text(grammar, rest.objects[0]).lower().replace(" ", "_")
        attribute = {"phone_number": "phone", "number": "phone", "name": "name"}.get(what, what)
        scene.add(clause, attribute, value, begins=True, kind="state")
        return True
    if grammar.low[target[0][1] - 1] in {"plan", "tier", "subscription"}:
        scene.add(clause, grammar.low[target[0][1] - 1], value, begins=True, kind="state")
        return True
    if verb.lemma in {"switch", "migrate", "change", "convert"}:
        scene.add(clause, "uses", value, begins=True)
        for span in origin[:1]:
            tell_over(scene, clause, "uses", thing(scene, clause, span, "thing"))
        return True
    return False
