"""What does a verb assert?  From verbs and their complements to predicates."""

from collections.abc import Callable
from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.changes import (
    tell_becoming,
    tell_change,
    tell_getting,
    tell_having,
    tell_kin_or_pet,
    tell_leaving,
    tell_moving,
    tell_start,
)
from projectors.text.copula import tell_being
from projectors.text.deeds import phrase, tell_deed
from projectors.text.lexicon import EVENT_NOUNS
from projectors.text.objects import is_about_you, is_empty, reach, tell_count, tell_each, thing
from projectors.text.phrases import Span
from projectors.text.plans import (
    EMPTY_NEEDS,
    WISHES,
    is_ahead,
    plan_text,
    tell_outlook,
    tell_plan,
    tell_thought,
    tell_wish,
)
from projectors.text.scene import Clause, Scene, number
from projectors.text.stems import singular, word_set
from projectors.text.words import FORMS, ING, OBJECT_PRONOUNS, ing_form


def tell(scene: Scene, clause: Clause) -> None:
    """Add what a clause asserts to the scene."""
    verb = clause.verb
    if verb.modal and not _is_real(scene, clause):
        return
    lemma = verb.lemma
    if verb.negative and not _NO_MORE.isdisjoint(clause.rest.adverbs):
        verb.ended, verb.negative = True, False
    if lemma == "be":
        tell_being(scene, clause)
        return
    if verb.tense == "future" or (verb.modal in {"might", "may"} and verb.tense != "perfect"):
        tell_plan(scene, clause)
        return
    if verb.tense == "progressive" and is_ahead(scene, clause):
        tell_plan(scene, clause)
        return
    is_to = clause.rest.infinitive is not None and not clause.rest.objects
    if is_to and (lemma, verb.tense) in {("try", "present"), ("have", "past")}:
        lemma = _tried(clause)
    if lemma in _SIMPLE and _simple(scene, clause):
        return
    handler = _HANDLERS.get(lemma)
    if handler is not None and handler(scene, clause):
        return
    tell_deed(scene, clause)


_NO_MORE: Final = word_set("anymore longer")


def _tried(clause: Clause) -> str:
    """`I try to avoid dairy` is said of avoiding, `had to sell it` of selling; less surely."""
    assert clause.rest.infinitive is not None
    first = clause.rest.infinitive[0]
    verb = clause.verb
    if clause.grammar.low[first] in EMPTY_NEEDS:
        return verb.lemma
    verb.lemma, verb.end = FORMS.get(clause.grammar.low[first], ("try", 0))[0], first + 1
    clause.rest = clause.grammar.complement(verb)
    clause.weight = min(clause.weight, 0.7)
    return verb.lemma


# ── moods ────────────────────────────────────────────────────────────────────────────────────


def _is_real(scene: Scene, clause: Clause) -> bool:
    """Whether a modal leaves an assertion: `can` a skill, `would like` a wish, the rest none."""
    verb, rest = clause.verb, clause.rest
    match verb.modal:
        case "will" | "shall" | "might" | "may":
            return True
        case "can" | "could" if verb.lemma == "stand" and verb.negative:
            verb.negative, verb.modal, verb.lemma = False, "", "hate"
            return True
        case "can" if verb.negative and verb.lemma in {"have", "eat", "drink"}:
            if clause.subject.kind != "thing" and rest.objects:
                tell_each(scene, clause, "drinks" if verb.lemma == "drink" else "eats")
            return False
        case "can":
            words = scene.text(clause.grammar, (verb.end - 1, reach(clause)))
            is_skill = clause.subject.kind != "thing" and verb.lemma not in _UNSKILLED
            is_skill = is_skill and bool(words) and not clause.hedged
            is_cut = clause.grammar.low[reach(clause) : reach(clause) + 1] in _CUTTERS
            is_vague = clause.grammar.low[reach(clause) - 1] in {"anything", "everything", "it"}
            if is_skill and not is_cut and not is_vague and not is_about_you(clause):
                scene.add(clause, "can", Value(datatype="string", value=words), kind="state")
            return False
        case "would" if verb.lemma in {"like", "love"} and not verb.negative:
            first = clause.grammar.low[rest.infinitive[0]] if rest.infinitive else ""
            if rest.infinitive and first not in _POLITE:
                plan = plan_text(scene, clause, rest.infinitive)
                scene.add(clause, "wants_to", plan, kind="plan")
            elif rest.objects and not rest.infinitive:
                tell_each(scene, clause, "wants")
            return False
    return False


_CUTTERS: Final = (["who"], ["what"], ["how"], ["where"], ["when"], ["which"], ["whether"])
_UNSKILLED: Final = word_set(
    "see be tell imagine say go wait help do get have make hear feel understand believe take come"
    " think relate find know try agree"
)
_POLITE: Final = word_set(
    "know ask hear see thank say talk share discuss think be understand check"
)


# ── simple verbs ─────────────────────────────────────────────────────────────────────────────

_SIMPLE: Final[dict[str, dict[str, tuple[str, str, bool]]]] = {
    # lemma -> object or preposition -> predicate, kind of thing, whether it tells a beginning
    "live": {
        "in": ("lives_in", "place", False),
        "at": ("lives_in", "place", False),
        "near": ("lives_near", "place", False),
        "with": ("lives_with", "person", False),
    },
    "reside": {"in": ("lives_in", "place", False)},
    "stay": {"in": ("lives_in", "place", False)},
    "settle": {"in": ("lives_in", "place", True)},
    "work": {
        "at": ("works_at", "organisation", False),
        "for": ("works_at", "organisation", False),
        "as": ("works_as", "thing", False),
        "in": ("works_in", "thing", False),
        "with": ("works_with", "thing", False),
    },
    "freelance": {"as": ("works_as", "thing", False)},
    "serve": {"as": ("works_as", "thing", False)},
    "study": {
        "": ("studies", "thing", False),
        "at": ("studies_at", "organisation", False),
    },
    "major": {"in": ("studied", "thing", True)},
    "graduate": {"from": ("graduated_from", "organisation", True)},
    "own": {"": ("owns", "thing", False)},
    "possess": {"": ("owns", "thing", False)},
    "belong": {"to": ("belongs_to", "thing", False)},
    "use": {"": ("uses", "thing", False)},
    "speak": {"": ("speaks", "thing", False)},
    "report": {"to": ("reports_to", "person", False)},
    "marry": {"": ("married_to", "person", True)},
    "suffer": {"from": ("has_condition", "thing", False)},
    "prefer": {"": ("prefers", "thing", False)},
    "attend": {"": ("attended", "thing", True)},
    "visit": {"": ("visited", "place", True)},
    "travel": {"to": ("visited", "place", True)},
    "fly": {"to": ("visited", "place", True)},
    "cost": {"": ("price", "thing", False)},
}
_PRESENT: Final = {"attended": "attends", "visited": "visits"}
_EVENTS: Final = word_set("attended visited studied graduated_from")


def _simple(scene: Scene, clause: Clause) -> bool:
    """A verb whose predicate is told by its object or its prepositions alone."""
    verb, rest = clause.verb, clause.rest
    found = False
    for way, (predicate, kind, begins) in _SIMPLE[verb.lemma].items():
        spans = rest.objects if way == "" else rest.after(way)
        for span in spans:
            name, is_event = predicate, predicate in _EVENTS
            value = (
                phrase(scene, clause, span)
                if name == "attended"
                else thing(scene, clause, span, kind)
            )
            if value is None or (way == "" and is_empty(clause, span)):
                continue
            if kind == "place" and way in {"in", "at"}:
                value = _nearest(scene, clause, span) or value
            if is_event and verb.tense in {"present", "progressive"} and not verb.ended:
                progressive = verb.tense == "progressive"
                name = ing_form(verb.lemma) if progressive else _PRESENT.get(predicate, predicate)
                if way:
                    name = f"{ing_form(verb.lemma)}_{way}"
                scene.add(clause, name, value)
            else:
                scene.add(clause, name, value, begins=begins, kind="event" if is_event else None)
            found = True
    return found


# ── verbs with a sense of their own ──────────────────────────────────────────────────────────


def _nearest(scene: Scene, clause: Clause, span: Span) -> Mention | None:
    """Of `a flat in Ghent` the place one can name: Ghent."""
    words, low = clause.grammar.words, clause.grammar.low
    first, last = span
    if words[first][0].isupper() or last + 1 >= clause.grammar.n:
        return None
    if low[last] not in {"in", "near"} or not words[last + 1][0].isupper():
        return None
    end = clause.grammar.noun(last + 1)
    return Mention(text=scene.text(clause.grammar, (last + 1, end)), kind="place")


def _grows(scene: Scene, clause: Clause) -> bool:
    if clause.rest.particle == "up" and clause.verb.tense == "past":
        for span in clause.rest.after("in") or clause.rest.after("on"):
            place = _nearest(scene, clause, span) or thing(scene, clause, span, "place")
            scene.add(clause, "grew_up_in", place, kind="event")
        return True
    return tell_change(scene, clause)


def _tastes(scene: Scene, clause: Clause) -> bool:
    verb, rest, grammar = clause.verb, clause.rest, clause.grammar
    predicate = "dislikes" if verb.lemma in {"hate", "dislike", "detest"} else "likes"
    if verb.tense == "past":  # a taste told in the past is a verdict, and it stands
        verb.tense = "perfect"
    doing = rest.gerund or (rest.infinitive if not rest.objects else None)
    if doing is not None:
        no = "not " if "not" in rest.adverbs else ""
        for span in _doings(clause, doing):
            words = f"{no}{scene.text(grammar, span)}"
            if words:
                scene.add(clause, predicate, Value(datatype="string", value=words))
        return True
    for span in rest.objects:
        is_pointed = grammar.low[span[0]] in {"this", "that", "these", "those"}
        if not is_empty(clause, span) and not (is_pointed and span[1] - span[0] < 4):
            scene.add(clause, predicate, thing(scene, clause, span, "thing"))
    return True


def _doings(clause: Clause, span: Span) -> list[Span]:
    """`reading, watching films and hiking`: one span for each."""
    grammar, low = clause.grammar, clause.grammar.low
    spans, (start, end) = [], span
    cut = start
    while True:
        for k in range(start + 1, end):
            if low[k] in {",", "and", "or"} and _is_doing(low, k + 1):
                spans.append((cut, k))
                cut = k + 1
        spans.append((cut, end))
        following = end + (low[end : end + 2] in ([",", "and"], [",", "or"]))
        if low[following : following + 1] not in ([","], ["and"], ["or"]):
            return spans
        if not _is_doing(low, following + 1):
            return spans
        start = cut = following + 1
        end = max(grammar.stretch(start, clause.verb), start + 1)


def _is_doing(low: list[str], k: int) -> bool:
    return k < len(low) and FORMS.get(low[k], ("", 0))[1] == ING


def _goes(scene: Scene, clause: Clause) -> bool:
    verb, rest, low = clause.verb, clause.rest, clause.grammar.low
    target = rest.after("to")
    if not target or verb.tense not in {"past", "perfect"}:
        return False
    if rest.infinitive is not None or tell_count(scene, clause, target[0]):
        return True
    for span in target:
        if low[span[1] - 1] in _NOWHERE:
            continue
        is_event = singular(low[span[1] - 1]) in EVENT_NOUNS
        value = thing(scene, clause, span, "thing" if is_event else "place")
        scene.add(clause, "attended" if is_event else "visited", value, kind="event")
    return True


_NOWHERE: Final = word_set("bed sleep work school home town")


def _turns(scene: Scene, clause: Clause) -> bool:
    for span in clause.rest.objects[:1]:
        age = number(clause.grammar.low[span[0]])
        if isinstance(age, int) and 0 < age < 130:
            scene.add(clause, "age", Value(datatype="integer", value=age), begins=True)
            return True
    return False


def _knows(scene: Scene, clause: Clause) -> bool:
    rest, low, words = clause.rest, clause.grammar.low, clause.grammar.words
    start = clause.verb.end
    if low[start : start + 2] == ["how", "to"]:
        span = (start + 2, clause.grammar.stretch(start + 2, clause.verb))
        text = Value(datatype="string", value=scene.text(clause.grammar, span))
        scene.add(clause, "knows_how_to", text, kind="state")
        return True
    for span in rest.objects:
        if words[span[0]][0].isupper():
            scene.add(clause, "knows", thing(scene, clause, span, "thing"))
    return True


def _feels(scene: Scene, clause: Clause) -> bool:
    low = clause.grammar.low
    start = clause.verb.end
    while start < clause.grammar.n and low[start] in {"so", "very", "really", "a", "bit", "pretty"}:
        start += 1
    span = (start, clause.grammar.stretch(start, clause.verb))
    if start < span[1] and low[start] not in OBJECT_PRONOUNS and low[start] not in _UNFELT:
        text = scene.text(clause.grammar, span)
        if text and not is_about_you(clause):
            scene.add(clause, "feels", Value(datatype="string", value=text))
    return True


_UNFELT: Final = word_set("like free the my that this for as")


def _spends(scene: Scene, clause: Clause) -> bool:
    """`spent a week in Crete`."""
    rest, low = clause.rest, clause.grammar.low
    if rest.objects and singular(low[rest.objects[0][1] - 1]) in _PERIODS:
        for span in rest.after("in") or rest.after("at"):
            scene.add(clause, "visited", thing(scene, clause, span, "place"), kind="event")
        return True
    return False


_PERIODS: Final = word_set("day week weekend month year night summer winter afternoon evening")


def _trips(scene: Scene, clause: Clause) -> bool:
    rest, low = clause.rest, clause.grammar.low
    if rest.objects and singular(low[rest.objects[0][1] - 1]) in {"trip", "vacation", "flight"}:
        for span in rest.after("to"):
            scene.add(clause, "visited", thing(scene, clause, span, "place"), kind="event")
        return bool(rest.after("to"))
    return False


def _buys(scene: Scene, clause: Clause) -> bool:
    if clause.verb.tense not in {"past", "perfect"}:
        return False
    for span in clause.rest.objects:
        if not is_empty(clause, span):
            scene.add(clause, "bought", phrase(scene, clause, span), kind="event")
    return True


def _joins(scene: Scene, clause: Clause) -> bool:
    if clause.verb.tense in {"past", "perfect"} and clause.rest.after("as"):
        for span in clause.rest.objects:
            scene.add(clause, "works_at", thing(scene, clause, span, "organisation"), begins=True)
        for span in clause.rest.after("as"):
            scene.add(clause, "works_as", thing(scene, clause, span, "thing"), begins=True)
        return True
    return False


def _does(scene: Scene, clause: Clause) -> bool:
    """`I'm doing kickboxing` tells something, `I do` and `we did well` do not."""
    del scene
    is_present = clause.verb.tense in {"present", "future"}
    return is_present or not (clause.rest.gerund or clause.rest.objects)


def _stays(scene: Scene, clause: Clause) -> bool:
    """`stays in Rome` tells something, `keeps going` and `stays positive` do not."""
    del scene
    return not clause.rest.phrases or bool(clause.rest.objects or clause.rest.gerund)


def _meets(scene: Scene, clause: Clause) -> bool:
    """What was seen or talked about is news; what one sees, or talks, is not."""
    del scene
    return clause.verb.tense != "past" or bool(clause.rest.infinitive)


def _prefers(scene: Scene, clause: Clause) -> bool:
    """What somebody would rather do, or be called."""
    rest, low, words = clause.rest, clause.grammar.low, clause.grammar.words
    span = rest.infinitive or rest.gerund
    if span is None or is_about_you(clause):
        return False
    first, last = span
    if low[first : first + 2] == ["be", "called"] and last > first + 2:
        name = Value(datatype="string", value=words[first + 2])
        scene.add(clause, "nickname", name)
        return True
    value = Value(datatype="string", value=scene.text(clause.grammar, span))
    scene.add(clause, "prefers", value)
    return True


def _silent(scene: Scene, clause: Clause) -> bool:
    del scene, clause
    return True


_HANDLERS: Final[dict[str, Callable[[Scene, Clause], bool]]] = {
    **dict.fromkeys(("like", "love", "enjoy", "adore", "hate", "dislike", "detest"), _tastes),
    **dict.fromkeys(("move", "relocate"), tell_moving),
    **dict.fromkeys(
        ("switch", "change", "upgrade", "downgrade", "drop", "increase", "fall", "rise",
         "migrate", "convert", "expand", "shrink", "decrease"),
        tell_change,
    ),
    **dict.fromkeys(tuple(WISHES), tell_wish),
    **dict.fromkeys(("consider", "think"), tell_thought),
    **dict.fromkeys(("buy", "purchase"), _buys),
    "grow": _grows,
    "have": tell_having,
    "get": tell_getting,
    "adopt": lambda scene, clause: bool(clause.rest.objects)
    and tell_kin_or_pet(scene, clause, clause.rest.objects[0]),
    "start": tell_start,
    "begin": tell_start,
    "leave": tell_leaving,
    "become": tell_becoming,
    "go": _goes,
    "turn": _turns,
    "look": tell_outlook,
    "know": _knows,
    "feel": _feels,
    "prefer": _prefers,
    "spend": _spends,
    "take": _trips,
    "join": _joins,
    "do": _does,
    **dict.fromkeys(("stay", "keep"), _stays),
    **dict.fromkeys(("talk", "see", "hear", "chat"), _meets),
    **dict.fromkeys(
        word_set(
            "mean name guess bet thank appreciate wonder seem sound happen depend matter let say"
            " tell ask wait  wish suppose believe imagine tend remain appear"
            " deserve mind understand trust care  cause make_sense fit relate remind deal"
            " congratulate "
        ),
        _silent,
    ),
}  # fmt: skip
