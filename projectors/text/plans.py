"""What is somebody going to do?  Plans, wishes and what is being considered."""

from datetime import datetime, timedelta
from typing import Final

from projectors.text.candidates import Kind, Value
from projectors.text.objects import is_about_you, is_empty, reach, tell_each
from projectors.text.phrases import Span
from projectors.text.scene import LOOSE, Clause, Scene
from projectors.text.stems import word_set
from projectors.text.tokens import JOIN, MARK, when
from projectors.text.words import FORMS, ING, OBJECT_PRONOUNS
from schemas import limits


def is_ahead(scene: Scene, clause: Clause) -> bool:
    """Whether the time told lies ahead."""
    said = when(clause.tokens, clause.times, scene.anchor, ahead=True)
    if said is None or said.role != "at":
        return False
    start, end = said.interval.start, said.interval.end
    return (
        start is not None
        and (start > scene.anchor or (end is not None and end > scene.anchor))
        and (start >= scene.anchor - timedelta(days=1))
    )


def tell_plan(scene: Scene, clause: Clause) -> None:
    """What somebody is going to do; of a thing, what will become of it."""
    verb = clause.verb
    if verb.lemma in _EMPTY_PLANS or is_about_you(clause) or _is_pointing(clause, verb.end):
        return
    spans = clause.rest.objects
    if verb.lemma in _LIGHT and not (spans and not is_empty(clause, spans[0])):
        return
    low = clause.grammar.low[verb.end : reach(clause)]
    if not any(word.isalpha() and word not in OBJECT_PRONOUNS for word in low) and not clause.times:
        return
    is_bare = all(word in OBJECT_PRONOUNS or word in _SMALL for word in low)
    if is_bare and verb.lemma not in _STATED and not clause.times:
        return
    words = plan_text(scene, clause, (verb.end - 1, reach(clause)))
    scene.add(clause, "plans_to", words, kind="plan")


def _is_pointing(clause: Clause, start: int) -> bool:
    """Whether a plan is about something only the talk before could tell: `add it to my list`."""
    low, end = clause.grammar.low, reach(clause)
    return start < end and (low[start] in _POINTERS or low[end - 1] in _POINTERS)


_POINTERS: Final = word_set(
    "it that this them these those anything everything something so any one some"
)
_EMPTY_PLANS: Final = word_set(
    "be see let keep try know tell think say mean depend need remember forget love like want check"
    " wait"
)
_LIGHT: Final = word_set("do look have make get take")
_SMALL: Final = word_set("into for to at on with in of up out about soon later then")
_STATED: Final = word_set("close launch ship renew sign expire retire")


def plan_text(scene: Scene, clause: Clause, span: Span) -> Value:
    """A plan in its own words, verb first, its times as dates: "next week" does not keep."""
    first, last = span
    low, words = clause.grammar.low, clause.grammar.words
    known = FORMS.get(low[first])
    parts = [known[0] if known is not None else low[first]]
    for k in range(first + 1, last):
        if low[k][0] == MARK:
            parts.append(_dated(scene, clause, int(low[k][1:])))
        elif low[k] not in _DROPPED:
            parts.append(words[k])
    while len(parts) > 1 and (not parts[-1] or parts[-1] in LOOSE):
        parts.pop()
    text = " ".join(part for part in parts if part).strip(" ,.;")
    text = text.replace(" 's", "'s").replace(" ,", ",").replace(JOIN, " ")
    return Value(datatype="string", value=text[: limits.CANDIDATE_CHARS_MAX])


_DROPPED: Final = word_set("my our the a an just also really some")


def _dated(scene: Scene, clause: Clause, mark: int) -> str:
    if mark in clause.tokens.often:
        return clause.tokens.often[mark]
    said = when(clause.tokens, [mark], scene.anchor, ahead=True)
    if said is None:
        return clause.tokens.times[mark]
    start, end = said.interval.start, said.interval.end
    if start is None:
        return f"by {end.day} {end:%B %Y}" if end is not None else ""
    return _absolute(start, end)


def _absolute(start: datetime, end: datetime | None) -> str:
    days = (end - start).days if end is not None else 0
    if days >= 365:
        return f"in {start:%Y}"
    if days >= 28:
        return f"in {start:%B %Y}"
    day = f"{start.day} {start:%B %Y}"
    if days > 1:
        return f"in the week of {day}" if days == 7 else f"from {day}"
    return f"on {day}" if end is not None else f"from {day}"


EMPTY_NEEDS: Final = word_set(
    "go run admit say leave agree be think know see check ask tell confess wait get head do"
)
"""What one has to do without that being a plan."""


_EMPTY_WISHES: Final = word_set("say be think know see ask tell hear thank let mention")


def tell_wish(scene: Scene, clause: Clause) -> bool:
    """want, need, hope, plan, intend, decide … to do something, or want a thing."""
    verb, rest, low = clause.verb, clause.rest, clause.grammar.low
    predicate, kind = WISHES[verb.lemma]
    if rest.infinitive is not None and not rest.objects:
        empty = EMPTY_NEEDS if verb.lemma == "need" else _EMPTY_WISHES
        first, last = rest.infinitive
        if low[first] in empty or is_about_you(clause) or low[last - 1] in _POINTERS:
            return True
        if verb.lemma == "want" and verb.tense == "past":
            return True
        scene.add(clause, predicate, plan_text(scene, clause, rest.infinitive), kind=kind)
        return True
    if verb.lemma in {"want", "need"} and rest.objects and not rest.infinitive:
        if verb.tense != "past" and not is_about_you(clause):
            tell_each(scene, clause, f"{verb.lemma}s")
        return True
    if verb.lemma in {"plan", "decide", "agree"} and rest.after("on"):
        span = rest.after("on")[0]
        scene.add(clause, predicate, plan_text(scene, clause, span), kind=kind)
        return True
    return verb.lemma not in {"plan", "choose"} or not rest.objects


WISHES: Final[dict[str, tuple[str, Kind]]] = {
    "want": ("wants_to", "plan"),
    "need": ("needs_to", "plan"),
    "hope": ("hopes_to", "plan"),
    "plan": ("plans_to", "plan"),
    "intend": ("plans_to", "plan"),
    "aim": ("plans_to", "plan"),
    "decide": ("decided", "event"),
    "agree": ("agreed_to", "event"),
    "choose": ("decided", "event"),
    "promise": ("plans_to", "plan"),
}


def tell_thought(scene: Scene, clause: Clause) -> bool:
    """What somebody is thinking of doing."""
    rest = clause.rest
    spans = [rest.gerund] if rest.gerund else rest.after("about") or rest.after("of")
    low = clause.grammar.low
    is_doing = bool(spans) and FORMS.get(low[spans[0][0]], ("", 0))[1] == ING
    if clause.verb.tense == "progressive" and is_doing and not is_about_you(clause):
        clause.hedged = True
        scene.add(clause, "considering", plan_text(scene, clause, spans[0]), kind="plan")
    return True


def tell_outlook(scene: Scene, clause: Clause) -> bool:
    """What somebody looks forward to."""
    low, rest = clause.grammar.low, clause.rest
    if low[clause.verb.end : clause.verb.end + 1] == ["forward"] and rest.after("to"):
        if not is_about_you(clause):
            span = rest.after("to")[0]
            scene.add(clause, "looking_forward_to", scene.value(clause.grammar, span), kind="plan")
        return True
    return not (clause.verb.tense == "progressive" and rest.after("for"))
