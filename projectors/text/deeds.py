"""What did somebody do?  Any other verb: it names the predicate itself."""

from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.objects import is_about_you, is_empty, thing
from projectors.text.phrases import Span
from projectors.text.scene import Clause, Scene
from projectors.text.stems import word_set
from projectors.text.words import OBJECT_PRONOUNS, ing_form, past_form, third_form


def tell_deed(scene: Scene, clause: Clause) -> None:
    """Somebody did something, does it, or is doing it: the verb itself is the predicate."""
    verb, rest = clause.verb, clause.rest
    if is_about_you(clause):
        return
    name = _name(clause)
    value: Mention | Value | None = None
    if rest.objects:
        spans = [span for span in rest.objects if not is_empty(clause, span)]
        for span in spans[:-1] if len(spans) > 1 else []:
            _add_deed(scene, clause, name, thing(scene, clause, span, "thing"))
        if spans:
            value = phrase(scene, clause, spans[-1])
    elif rest.gerund is not None:
        value = Value(datatype="string", value=scene.text(clause.grammar, rest.gerund))
    elif rest.infinitive is not None:
        if verb.lemma not in _WITH_INFINITIVE:
            return
        name = f"{name}_to"
        value = Value(datatype="string", value=scene.text(clause.grammar, rest.infinitive))
    elif rest.phrases:
        preposition, spans = rest.phrases[0]
        name = f"{name}_{preposition}"
        if clause.grammar.low[spans[0][0]] in OBJECT_PRONOUNS:
            return
        for span in spans[:-1]:
            _add_deed(scene, clause, name, thing(scene, clause, span, "thing"))
        value = phrase(scene, clause, spans[-1])
    elif clause.often:
        value = Value(datatype="string", value=clause.often)
    elif verb.tense == "past" and verb.lemma in _ENDINGS:
        value = Value(datatype="string", value=past_form(verb.lemma))
        scene.add(clause, "status", value, begins=True)
        return
    _add_deed(scene, clause, name, value)


_WITH_INFINITIVE: Final = word_set("learn manage start begin continue volunteer train help")
_ENDINGS: Final = word_set(
    "close sign launch ship fail expire die retire stall renew win lose pass churn finish end start"
    " crash break burn explode arrive open collapse leak"
)


def _add_deed(scene: Scene, clause: Clause, name: str, value: Mention | Value | None) -> None:
    if value is None:
        return
    often = clause.often
    if often and not (isinstance(value, Value) and often in str(value.value)):
        words = value.text if isinstance(value, Mention) else str(value.value)
        value = Value(datatype="string", value=f"{words} {often}".strip())
    is_event = clause.verb.tense in {"past", "perfect"} and not clause.verb.ended
    clause.weight = min(clause.weight, 0.85)
    scene.add(clause, name, value, kind="event" if is_event else "state")


def _name(clause: Clause) -> str:
    verb = clause.verb
    if verb.ended:
        form = third_form(verb.lemma)
    elif verb.tense in {"past", "perfect"}:
        form = past_form(verb.lemma)
    elif verb.tense == "progressive":
        form = ing_form(verb.lemma)
    else:
        form = third_form(verb.lemma)
    return f"{form}_{clause.rest.particle}" if clause.rest.particle else form


def phrase(scene: Scene, clause: Clause, span: Span) -> Mention | Value | None:
    """An object with the phrases that follow it: `a cake for my niece`; a name stands alone."""
    first, last = span
    grammar = clause.grammar
    if last - first == 1 and grammar.low[first] in OBJECT_PRONOUNS:
        return None
    if grammar.words[last - 1][0].isupper():
        return thing(scene, clause, span, "thing")
    end = last
    for _, spans in clause.rest.phrases:
        if spans[0][0] >= last and spans[-1][1] - first <= 9:
            end = max(end, spans[-1][1])
    value = thing(scene, clause, span, "thing")
    if end == last or value is None:
        return value
    return Value(datatype="string", value=scene.text(grammar, (first, end)))
