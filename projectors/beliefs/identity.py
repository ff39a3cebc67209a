"""Are the things of two beliefs one?  What facts say of sameness, and what it makes of the beliefs.

Of things that are one in a scope, the one that was known first gives the name: what is believed of
any is believed of it. When facts say that things are one, or no longer say it, the evidence moves:
a belief in the same claim takes it in, or a new one begins, and one that nothing is left of gives
way to it (001 §7.4.1, §7.5.1). Facts stay with the thing they were told of, so what was joined can
be parted.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

import msgspec

from projectors.beliefs.desk import Desk
from projectors.beliefs.keys import about_key, identity_key
from projectors.beliefs.rows import Identity, Link, Sameness, Sense, Weighed
from projectors.records import fact_about_key, name_key, record_key
from projectors.text.predicates import IDENTITY, SAME
from schemas import limits
from schemas.layers import Fact, LiteralValue

_replace: Final = msgspec.structs.replace


def judge(desk: Desk, moved: Iterable[str]) -> None:
    """Act on what the facts of an entry say about sameness, before any of them is weighed."""
    for fact_id in moved:
        raw = record_key("facts", fact_id)
        fact: Fact | None = desk.draft.get("facts", raw)
        if fact is not None and fact.predicate not in IDENTITY:
            continue
        said: Sameness | None = desk.draft.get("belief_sameness", raw)
        holds = fact is not None and _holds(fact, desk.at)
        if said is not None and not holds:
            _unsay(desk, said, raw)
        elif fact is not None and holds and fact.predicate not in SAME:
            _unsay(desk, _said(desk, fact))
        elif fact is not None and holds and said is None:
            _say(desk, _said(desk, fact), raw)


def _holds(fact: Fact, at: datetime) -> bool:
    """Whether it says, surely enough and of now, how two things stand to each other."""
    is_known = fact.recorded_to is None or fact.recorded_to > at
    is_so = fact.valid_to is None or fact.valid_to > max(at, fact.valid_from)
    is_plain = fact.polarity == "positive" and fact.confidence >= 0.5
    return is_known and is_so and is_plain and not isinstance(fact.object, LiteralValue)


def _said(desk: Desk, fact: Fact) -> Sameness:
    return Sameness(desk.scope_no(fact), desk.root(fact.subject), desk.root(fact.object))


# ── what is said ─────────────────────────────────────────────────────────────────────────────


def _say(desk: Desk, said: Sameness, raw: bytes) -> None:
    both = _class(desk, said.scope_no, said.one) | _class(desk, said.scope_no, said.other)
    if said.one == said.other or len(both) > limits.IDENTITY_MEMBERS_MAX:
        return
    for root, other in ((said.one, said.other), (said.other, said.one)):
        row = _row(desk, said.scope_no, root)
        _put(desk, said.scope_no, _replace(row, links=(*row.links, Link(other, raw))))
    desk.draft.put("belief_sameness", raw, said)
    desk.draft.put("belief_identity", b"", Identity())
    _regroup(desk, said.scope_no, both)


def _unsay(desk: Desk, said: Sameness, raw: bytes | None = None) -> None:
    """One fact no longer says it; or, without one, another says that none of them is right."""
    both = _class(desk, said.scope_no, said.one) | _class(desk, said.scope_no, said.other)
    for root, other in ((said.one, said.other), (said.other, said.one)):
        row = _row(desk, said.scope_no, root)
        gone = {link for link in row.links if link.other == other and raw in {None, link.fact}}
        for link in gone:
            desk.draft.drop("belief_sameness", link.fact)
        if gone:
            kept = tuple(link for link in row.links if link not in gone)
            _put(desk, said.scope_no, _replace(row, links=kept))
    _regroup(desk, said.scope_no, both)


def _row(desk: Desk, scope_no: int, root: str) -> Identity:
    found: Identity | None = desk.draft.get("belief_identity", identity_key(scope_no, root))
    return found or Identity(root)


def _put(desk: Desk, scope_no: int, row: Identity) -> None:
    desk.draft.put("belief_identity", identity_key(scope_no, row.root), row)


def _class(desk: Desk, scope_no: int, root: str) -> set[str]:
    """All that a thing is the same as, itself with it."""
    found, left = {root}, [root]
    while left:
        others = {link.other for link in _row(desk, scope_no, left.pop()).links} - found
        found |= others
        left += others
    return found


# ── what follows ─────────────────────────────────────────────────────────────────────────────


def _regroup(desk: Desk, scope_no: int, members: set[str]) -> None:
    """Each member is known as the eldest of those it is now the same as."""
    left: dict[str, None] = {}
    for root in sorted(members):
        row = _row(desk, scope_no, root)
        eldest = min(_class(desk, scope_no, root), key=lambda one: _age(desk, one))
        if eldest != row.now:
            left[row.now] = None
            _put(desk, scope_no, _known_as(row, eldest, desk.at_us))
    for root in left:
        _move(desk, scope_no, root, members)


def _age(desk: Desk, root: str) -> tuple[bool, datetime, str]:
    """Who came first: a thing that was spoken of, by when; then by id."""
    row = desk.draft.get("entities", name_key(root))
    return row is None, desk.at if row is None else row.first_seen_at, root


def _known_as(row: Identity, root: str, at_us: int) -> Identity:
    senses = tuple(
        _replace(one, to_us=at_us) if one.to_us is None else one
        for one in row.senses
        if one.to_us is not None or one.from_us < at_us
    )
    if root != row.root:
        senses = (*senses, Sense(root, at_us))
    return _replace(row, senses=senses[-limits.IDENTITY_SENSES_MAX :])


def _move(desk: Desk, scope_no: int, root: str, members: set[str]) -> None:
    """The beliefs that were held of a root: their facts may now speak of another."""
    rows = desk.view.scan("beliefs_about", about_key(scope_no, name_key(root), b""))
    for key, _ in islice(rows, limits.BELIEFS_MOVED_MAX):
        belief = key[-16:]
        for raw, weighed in list(_evidence(desk, scope_no, belief, members)):
            fact: Fact | None = desk.draft.get("facts", raw)
            if fact is not None:
                desk.move(raw, fact, weighed)


def _evidence(
    desk: Desk, scope_no: int, belief: bytes, members: set[str]
) -> Iterator[tuple[bytes, Weighed]]:
    """What lies on the scale of a belief, found by whom and what its facts tell."""
    record = desk.record(belief)
    if record is None or desk.scale(belief) is None:
        return
    subject = desk.root(record.claim.subject)
    whose = members if subject in members else _class(desk, scope_no, subject)
    for root in sorted(whose):
        rows = desk.view.scan("facts_about", fact_about_key(scope_no, root, record.claim.predicate))
        for key, _ in islice(rows, limits.BELIEFS_MOVED_MAX):
            weighed: Weighed | None = desk.draft.get("belief_evidence", key[-16:])
            if weighed is not None and weighed.belief == belief:
                yield key[-16:], weighed
