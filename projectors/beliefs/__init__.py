"""What is believed, how surely, and why?  One belief a claim, from the facts that speak of it.

A claim is (scope, subject, predicate, object), and a belief holds it true for one stretch of time
(001 §7.4). Facts are evidence, for or against; they lie on a scale (`rows`), and the belief shows
what the scale says (`posterior`, `settle`). When the world changes, the facts say so: the belief
gets its end, and the one in the new value stands. When a fact is withdrawn, its part is taken off
in the same entry. Beliefs in values that exclude each other weigh against each other, so no two of
them are ever sure at once.
"""

from collections.abc import Iterable

from projectors.base import Change, Projector, Put, View
from projectors.beliefs.desk import Desk
from projectors.beliefs.rows import TABLES, Held, Rules, due_belief, due_s
from projectors.beliefs.settle import settle
from projectors.records import Moved, moved
from schemas.entry import Directive, Entry, SetPolicy, Tick
from schemas.ids import parse_id
from schemas.policy import LayerRules, PolicyDocument

__all__ = ["BELIEFS", "due_belief", "due_s"]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The beliefs after one entry, from the facts that the same entry moved or told again."""
    match entry.body:
        case Directive(command=SetPolicy(tier="tenant", document=document)):
            return (Put(table="belief_rules", key=b"", value=_rules(document)),)
        case Directive(command=Tick(due=due)):
            return _absorbed(entry, view, due)
        case _:
            return _weighed(entry, view)


def _weighed(entry: Entry, view: View) -> Iterable[Change]:
    facts: Moved | None = view.get("facts_moved", b"")
    heard = view.get("facts_heard", b"")
    names = facts.ids if facts is not None and facts.offset == entry.offset else []
    told = heard.facts if heard is not None and heard.offset == entry.offset else []
    if not names and not told:
        return ()
    desk = Desk(entry, view)
    desk.take(names, {one.fact: one.confidence for one in told})
    return _settled(desk)


def _absorbed(entry: Entry, view: View, due: list[str]) -> Iterable[Change]:
    """Look again at the beliefs whose evidence has waited long enough."""
    desk = Desk(entry, view)
    for name in due:
        belief = parse_id("belief", name)
        held: Held | None = None if belief is None else view.get("beliefs_held", belief)
        if belief is not None and held is not None and held.due_s * 1_000_000 <= desk.at_us:
            desk.touch(belief)
    return _settled(desk)


def _rules(document: PolicyDocument) -> Rules:
    layers = document.layers or LayerRules()
    return Rules(
        confidence_floor=layers.confidence_floor,
        redaction_factor=layers.confidence_after_full_redaction_factor,
    )


def _settled(desk: Desk) -> Iterable[Change]:
    names = settle(desk)
    if names:
        desk.draft.take([moved("beliefs", desk.entry.offset, names)])
    return desk.draft.changes()


BELIEFS = Projector(name="beliefs", version=1, tables=TABLES, project=project)
