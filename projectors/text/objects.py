"""What is the object of a verb?  What its words name, and whether that is worth remembering."""

from typing import Final

from projectors.text.candidates import Mention, Value
from projectors.text.lexicon import EMPTY_OBJECTS
from projectors.text.phrases import Span
from projectors.text.scene import Clause, Scene, money, number
from projectors.text.stems import singular, word_set
from projectors.text.words import OBJECT_PRONOUNS


def is_about_you(clause: Clause) -> bool:
    """Whether the hearer is what a clause is about: that is talk, not news."""
    low = clause.grammar.low[clause.verb.end : max(clause.rest.end, reach(clause))]
    return not _ADDRESS.isdisjoint(low)


_ADDRESS: Final = word_set("you your yours yourself")


def reach(clause: Clause) -> int:
    """Where the words that belong to the verb end."""
    return clause.grammar.stretch(clause.verb.end, clause.verb)


def thing(scene: Scene, clause: Clause, span: Span, kind: str) -> Mention | Value | None:
    """The object named by a span, of the kind its verb expects."""
    grammar = clause.grammar
    first = span[0]
    if span[1] - first == 1 and grammar.low[first] in OBJECT_PRONOUNS:
        return None
    value = scene.value(grammar, span)
    if isinstance(value, Mention) and value.kind == "thing" and value.actor is None:
        if kind != "thing":
            value = Mention(text=value.text, kind=kind)  # type: ignore[arg-type]
        if value.text[:1].isupper() or kind == "person":
            scene.remember(value)
        else:
            scene.thing = value
    return value


def tell_each(scene: Scene, clause: Clause, predicate: str, *, begins: bool = False) -> bool:
    """One assertion for every object."""
    found = False
    for span in clause.rest.objects:
        value = thing(scene, clause, span, "thing")
        if value is not None and not is_empty(clause, span):
            scene.add(clause, predicate, value, begins=begins)
            found = True
    return found


def is_empty(clause: Clause, span: Span) -> bool:
    """Whether an object names nothing to remember: a question, a point, your idea."""
    low = clause.grammar.low
    first = low[span[0]]
    if first in _POINTING or first in {"your", "what", "how", "who"}:
        # What one points at is told by what was done with it, or by many words.
        is_bare = span[1] - span[0] < 4 and clause.verb.tense in {"present", "future"}
        return is_bare or first not in _POINTING
    head = next((k for k in range(span[0] + 1, span[1]) if low[k] == "of"), span[1]) - 1
    if low[head] in _MEASURES:
        head = span[1] - 1
    return singular(low[head]) in EMPTY_OBJECTS


_MEASURES: Final = word_set("lot lots bunch couple number kind kinds sort sorts type types pair")
_POINTING: Final = word_set("this that these those")


def tell_count(scene: Scene, clause: Clause, span: Span) -> bool:
    """`moved to 200 seats`: how many of something there are."""
    first, last = span
    low = clause.grammar.low
    count = number(low[first])
    if count is None or last - first < 2:
        return False
    amount = money(clause.grammar.words[first:last])
    if amount is not None:
        value = Value(datatype="money", value=amount)
        scene.add(clause, "amount", value, begins=True, kind="quantity")
        return True
    unit = singular(low[last - 1])
    value = Value(datatype="integer" if isinstance(count, int) else "number", value=count)
    scene.add(clause, f"{unit}_count", value, begins=True, kind="quantity")
    return True


def tell_over(scene: Scene, clause: Clause, predicate: str, value: Mention | Value | None) -> None:
    """The state this clause says is over."""
    verb = clause.verb
    before, verb.ended = verb.ended, True
    scene.add(clause, predicate, value)
    verb.ended = before
