"""Are two things one?  Coalescence and splitting of concepts, as facts say it (001 §7.5.1).

The older concept is canonical; the newer becomes an alias of it and is deprecated, and what is said
of either is counted for the older from then on. When what was taken for one turns out to be two,
two new concepts are derived from it, and it ends. No version is lost.
"""

from datetime import datetime
from typing import Final

import msgspec

from projectors.understanding.ledger import Ledger, Pair, called
from projectors.understanding.rows import Kept, Near, Tally
from projectors.understanding.synthesis import again, synthesise, write
from schemas import limits
from schemas.ids import format_id
from schemas.layers import Concept

_replace: Final = msgspec.structs.replace


def judge(ledger: Ledger) -> list[str]:
    """Act on what the entry's facts say about sameness; the ids of concepts that got a version."""
    made: list[str] = []
    for pair in ledger.pairs:
        if pair.verdict == "same":
            made += _merge(ledger, pair)
        elif pair.verdict == "different":
            made += _split(ledger, pair)
        else:
            made += _part(ledger, pair)
    return made


# ── one ──────────────────────────────────────────────────────────────────────────────────────


def _merge(ledger: Ledger, pair: Pair) -> list[str]:
    """Two tallies become one; the concept of the newer is an alias of the older's."""
    one, first = ledger.resolve(pair.one)
    other, second = ledger.resolve(pair.other)
    if one == other or first is None or second is None:
        return []
    if _is_older(second, first):
        one, first, other, second = other, second, one, first
    ledger.put(one, _united(first, second))
    ledger.put(other, _replace(second, into=one))
    ledger.touch(one).is_forced = True
    alias = None if second.concept is None else ledger.concept(second.concept)
    if alias is None or first.concept is None:
        return []
    after = again(
        alias,
        ledger.at,
        canonical_id=format_id("concept", first.concept),
        stance="deprecated",
    )
    write(ledger, alias, after, 0)
    return [alias.id]


def _is_older(one: Tally, other: Tally) -> bool:
    """Which came first: the concept that was made first, or the thing whose id is smaller."""
    if one.concept is not None and other.concept is not None:
        return one.concept < other.concept
    if one.concept is None and other.concept is None:
        return one.what < other.what
    return one.concept is not None


def _united(one: Tally, other: Tally) -> Tally:
    kept = sorted((*one.kept, *other.kept), key=lambda k: k.score)[-limits.CONCEPT_FACTS_KEPT :]
    episodes = tuple(sorted({*one.episodes, *other.episodes}))[-limits.CONCEPT_EPISODES_KEPT :]
    united = _replace(
        one,
        live=one.live + other.live,
        episode_count=one.episode_count + other.episode_count,
        fresh=one.fresh + other.inputs,
        kept=tuple(kept),
        episodes=episodes,
        near=(*one.near, *other.near)[: limits.CONCEPT_NEAR_KEPT],
        predicates=_summed(one.predicates, other.predicates),
    )
    for name in (other.name, *other.aliases):
        united = _replace(united, aliases=called(united, name))
    return united


def _summed(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    names = sorted({*one, *other}, key=lambda name: (-one.get(name, 0) - other.get(name, 0), name))
    return {
        name: one.get(name, 0) + other.get(name, 0)
        for name in names[: limits.CONCEPT_PREDICATES_KEPT]
    }


# ── two ──────────────────────────────────────────────────────────────────────────────────────


def _split(ledger: Ledger, pair: Pair) -> list[str]:
    """What was one is two: it ends, and each of the two is a new concept derived from it."""
    found = _parted(ledger, pair)
    if found is None:
        return []
    whole, half, key, other = found
    before = None if whole.concept is None else ledger.concept(whole.concept)
    if before is None:
        ledger.put(key, whole)
        ledger.put(other, half)
        return []
    ended = _end_of(before, pair.fact.valid_from, ledger.at)
    write(ledger, before, again(before, ledger.at, valid_to=ended), 0)
    made = [before.id]
    for place, tally in ((key, whole), (other, half)):
        ledger.put(place, _replace(tally, concept=None))
        version = synthesise(ledger, place, derived_from=[before.id])
        made += [] if version is None else [version.id]
        ledger.touched.pop(place, None)
    return made


def _end_of(concept: Concept, said: datetime, at: datetime) -> datetime:
    return said if said > concept.valid_from else at


def _part(ledger: Ledger, pair: Pair) -> list[str]:
    """Nobody says any more that they are one: each is what it was before."""
    found = _parted(ledger, pair)
    if found is None:
        return []
    whole, half, key, other = found
    ledger.put(key, whole)
    ledger.put(other, half)
    ledger.touch(key).is_forced = True
    alias = None if half.concept is None else ledger.concept(half.concept)
    if half.is_enough or alias is None:
        ledger.touch(other).is_forced = True
        return []
    write(ledger, alias, again(alias, ledger.at, canonical_id=None, stance="uncertain"), 0)
    return [alias.id]


def _parted(ledger: Ledger, pair: Pair) -> tuple[Tally, Tally, bytes, bytes] | None:
    """A tally without what is another thing's, and that other's own; None: they were not one."""
    one, first = pair.one, ledger.tally(pair.one)
    other, second = pair.other, ledger.tally(pair.other)
    if first is not None and second is not None and first.into == other:
        one, first, other, second = other, second, one, first
    if first is None or second is None or second.into != one:
        return None
    own: list[Kept] = list(second.kept)
    mine: list[Kept] = []
    for kept in first.kept:
        fact = ledger.fact(kept.fact)
        things = {} if fact is None else ledger.things(fact)
        if other in things:
            own = [k for k in own if k.fact != kept.fact] + [kept]
        if one in things or other not in things:
            mine.append(kept)
    half = _replace(
        second,
        into=None,
        live=max(second.live, len(own)),
        kept=tuple(own[-limits.CONCEPT_FACTS_KEPT :]),
    )
    whole = _replace(
        first,
        live=max(first.live - half.live, len(mine)),
        kept=tuple(mine),
        near=_not_of(first.near, second.near),
        aliases=tuple(n for n in first.aliases if n not in {second.name, *second.aliases}),
    )
    return whole, half, one, other


def _not_of(near: tuple[Near, ...], others: tuple[Near, ...]) -> tuple[Near, ...]:
    gone = {(one.key, one.relation) for one in others}
    return tuple(one for one in near if (one.key, one.relation) not in gone)
