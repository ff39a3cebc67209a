"""How does a scale change?  What is laid on it or taken off, and the time it speaks of."""

from collections.abc import Sequence
from typing import Final

import msgspec

from projectors.beliefs.keys import digest
from projectors.beliefs.rows import Period, Rival, Scale, Shown, Telling
from schemas import limits
from schemas.layers import Fact
from schemas.times import to_us

_replace: Final = msgspec.structs.replace


def source_of(speaker: str | None, scale: Scale, *, against: bool) -> bytes:
    """Who says it, on which side; beyond the first few, all further ones are one source."""
    side = b"-" if against else b"+"
    name = side + digest(speaker or "")[:8]
    is_known = name in scale.sources or len(scale.sources) < limits.BELIEF_SOURCES_MAX
    return name if is_known else side


def without(scale: Scale, gone: Sequence[Telling], *, against: bool) -> Scale:
    """The scale without some tellings of one side."""
    mass = sum(telling.mass for telling in gone)
    sources = dict(scale.sources)
    for telling in gone:
        if telling.source in sources:
            sources[telling.source] -= 1
    return _replace(
        scale,
        pro=scale.pro - (0 if against else mass),
        con=scale.con - (mass if against else 0),
        sources={name: count for name, count in sources.items() if count > 0},
    )


def span(fact: Fact) -> tuple[int, int | None]:
    """From when to when a fact is so."""
    return to_us(fact.valid_from), None if fact.valid_to is None else to_us(fact.valid_to)


def matching(periods: tuple[Period, ...], fact: Fact) -> bytes | None:
    """The belief whose time a fact speaks of: a denial within it, an assertion also next to it.

    What was so, ended, and is so again is another belief: the first keeps its own interval.
    """
    start, end = span(fact)
    reach = 1 if fact.polarity == "negative" else 0
    for period in reversed(periods):
        before_its_end = period.to_us is None or start + reach <= period.to_us
        after_its_start = end is None or period.from_us + reach <= end
        if before_its_end and after_its_start:
            return period.belief
    return None


def has_lapsed(scale: Scale, at_us: int) -> bool:
    """Whether all that was known of it had a TTL, and that is over."""
    is_over = scale.known_to_us is not None and scale.known_to_us <= at_us
    return scale.facts > 0 and scale.lasting == 0 and is_over


def afresh(scale: Scale, fact: Fact) -> Scale:
    """An empty scale for the same belief; what lay on the former one has lapsed."""
    start, end = span(fact)
    return Scale(
        claim=scale.claim,
        family=scale.family,
        valid_from_us=start,
        valid_to_us=end,
        turn=scale.turn + 1,
        refused=scale.refused,
        rivals=scale.rivals,
        revised_us=scale.revised_us,
        held_us=scale.held_us,
        confirmed=scale.confirmed,
        resolved=scale.resolved,
    )


def widened(scale: Scale, fact: Fact) -> tuple[int, int | None]:
    """Its validity with one more fact: supporting ones say it, and denials while there are none."""
    if fact.polarity == "negative" and scale.pros:
        return scale.valid_from_us, scale.valid_to_us
    start, end = span(fact)
    if scale.facts and (fact.polarity == "negative" or scale.pros):
        return min(start, scale.valid_from_us), latest([end, scale.valid_to_us])
    return start, end


def latest(ends: Sequence[int | None]) -> int | None:
    """The last of some ends; None is never."""
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def later(one: int | None, other: int | None) -> int | None:
    """The later of two moments, where None is no moment at all."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def shown(known: tuple[Shown, ...], one: Shown) -> tuple[Shown, ...]:
    """The newest half and the heaviest of the rest."""
    if len(known) < limits.BELIEF_SUPPORTS_MAX:
        return (*known, one)
    older = known[: 1 - limits.BELIEF_SUPPORTS_MAX // 2]
    lightest = min(range(len(older)), key=lambda at: older[at].mass)
    return (*known[:lightest], *known[lightest + 1 :], one)


def tied(scale: Scale, rival: Rival) -> Scale:
    """The scale of a belief that cannot be true together with another."""
    others = tuple(one for one in scale.rivals if one.belief != rival.belief)
    return _replace(scale, rivals=(*others, rival)[-limits.BELIEF_RIVALS_MAX :])
