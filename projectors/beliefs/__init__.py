"""What is believed, how surely, and why?  One belief a claim, from the facts that speak of it.

A claim is (scope, subject, predicate, object), and a belief holds it true for one stretch of time
(001 §7.4). Facts are evidence, for or against; they lie on a scale (`rows`), and the belief shows
what the scale says (`posterior`, `settle`). When the world changes, the facts say so: the belief
gets its end, and the one in the new value stands. When a fact is withdrawn, its part is taken off
in the same entry. Beliefs in values that exclude each other weigh against each other, so no two of
them are ever sure at once. When two things turn out to be one, so do the beliefs in them
(`identity`).
"""

from collections.abc import Iterable
from itertools import islice

from projectors.base import Change, Projector, Put, View
from projectors.beliefs.desk import Desk
from projectors.beliefs.identity import judge
from projectors.beliefs.keys import due_before, due_belief, term_key
from projectors.beliefs.rows import TABLES, Held, Rules
from projectors.beliefs.settle import forget, settle
from projectors.records import moved
from projectors.rows import Moved
from schemas import limits
from schemas.entry import (
    Cancel,
    Directive,
    DropVocabulary,
    Entry,
    Forget,
    ForgottenRecord,
    SetPolicy,
    SetVocabulary,
    Tick,
)
from schemas.ids import parse_id
from schemas.policy import LayerRules, PolicyDocument

__all__ = ["BELIEFS", "due_before", "due_belief"]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The beliefs after one entry, from the facts that the same entry moved or told again."""
    match entry.body:
        case Directive(command=SetPolicy(tier="tenant", document=document)):
            return (Put(table="belief_rules", key=b"", value=_rules(document)),)
        case Directive(command=Tick(due=due)):
            return _absorbed(entry, view, due)
        case Directive(command=SetVocabulary(vocabulary=vocabulary)):
            terms = {term.id for term in vocabulary.predicates}
            return _outdated(entry, view, vocabulary.name, terms)
        case Directive(command=DropVocabulary(name=name)):
            return _outdated(entry, view, name, set())
        case Directive(command=Cancel(event_id=event_id)):
            return _weighed(entry, view, cancelled=event_id)
        case Directive(command=Forget(records=records)):
            return _forgotten(entry, view, records)
        case _:
            return _weighed(entry, view)


def _weighed(entry: Entry, view: View, cancelled: str | None = None) -> Iterable[Change]:
    facts: Moved | None = view.get("facts_moved", b"")
    heard = view.get("facts_heard", b"")
    names = facts.ids if facts is not None and facts.offset == entry.offset else []
    told = heard.facts if heard is not None and heard.offset == entry.offset else []
    if not names and not told and cancelled is None:
        return ()
    desk = Desk(entry, view)
    if cancelled is not None:
        desk.withdraw(cancelled)
    judge(desk, names)
    desk.take(names, {one.fact: one.confidence for one in told})
    return _settled(desk)


def _forgotten(entry: Entry, view: View, records: list[ForgottenRecord]) -> Iterable[Change]:
    """Beliefs that are forgotten, and those that rested on facts that are."""
    facts: Moved | None = view.get("facts_moved", b"")
    desk = Desk(entry, view)
    names = facts.ids if facts is not None and facts.offset == entry.offset else []
    judge(desk, names)
    desk.take(names, {})
    gone = []
    for record in records:
        belief = parse_id("belief", record.id)
        if belief is not None and forget(desk, belief, record.scope_no):
            gone.append(record.id)
    return _settled(desk, gone)


def _absorbed(entry: Entry, view: View, due: list[str]) -> Iterable[Change]:
    """Look again at the beliefs whose evidence has waited long enough."""
    desk = Desk(entry, view)
    for name in due:
        belief = parse_id("belief", name)
        held: Held | None = None if belief is None else view.get("beliefs_held", belief)
        if belief is not None and held is not None and held.due_s * 1_000_000 <= desk.at_us:
            desk.touch(belief)
    return _settled(desk)


def _outdated(entry: Entry, view: View, name: str, terms: set[str]) -> Iterable[Change]:
    """Deprecate the beliefs whose words a vocabulary no longer has (001 §7.4.1)."""
    desk = Desk(entry, view)
    rows = view.scan("belief_terms", term_key(name))
    for key, _ in islice(rows, limits.BELIEFS_OUTDATED_MAX):
        record = desk.record(key[16:])
        is_current = record is not None and record.recorded_to is None
        if record is not None and is_current and record.claim.predicate not in terms:
            desk.touch(key[16:]).is_outdated = True
    return _settled(desk)


def _rules(document: PolicyDocument) -> Rules:
    layers = document.layers or LayerRules()
    return Rules(
        confidence_floor=layers.confidence_floor,
        redaction_factor=layers.confidence_after_full_redaction_factor,
    )


def _settled(desk: Desk, gone: Iterable[str] = ()) -> Iterable[Change]:
    names = list(dict.fromkeys((*gone, *settle(desk))))
    if names:
        desk.draft.take([moved("beliefs", desk.entry.offset, names)])
    return desk.draft.changes()


BELIEFS = Projector(name="beliefs", version=2, tables=TABLES, project=project)
