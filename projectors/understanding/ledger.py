"""How much is there about what?  Facts and episodes are counted where they belong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from projectors.base import View
from projectors.overlay import Draft
from projectors.records import name_key, past_key, record_key
from projectors.rows import Mark
from projectors.text.predicates import IDENTITY, SAME
from projectors.text.statements import words_of
from projectors.understanding.keys import input_key, predicate_key, thing_key
from projectors.understanding.relations import TOGETHER, Relation, relation_of
from projectors.understanding.rows import PREDICATE, THING, Counted, Kept, Near, Tally
from schemas import limits
from schemas.entry import Entry
from schemas.ids import parse_id
from schemas.layers import Concept, Episode, Fact, LiteralValue

_replace: Final = msgspec.structs.replace
_CURRENT: Final = 1000
_INTO_MAX: Final = 16
_TOGETHER: Final = (TOGETHER.name, TOGETHER.vocabulary)


class Touch:
    """What became of one tally in this entry, until it is settled."""

    __slots__ = ("forgotten", "is_forced", "is_lost")

    def __init__(self) -> None:
        self.is_forced = False
        self.is_lost = False
        self.forgotten: tuple[str, ...] = ()


class Thing(NamedTuple):
    """What a fact speaks of: what it is the same as, and what it is called there."""

    root: str
    name: str | None


@dataclass(slots=True, frozen=True)
class Pair:
    """Two things that are said to be one, or not; or no longer said to be."""

    one: bytes
    other: bytes
    verdict: str
    fact: Fact


class Ledger:
    """The work on one entry: a draft of the rows, and the tallies to settle."""

    def __init__(self, entry: Entry, view: View) -> None:
        self.entry = entry
        self.at = entry.recorded_at
        self.draft = Draft(view)
        self.touched: dict[bytes, Touch] = {}
        self.pairs: list[Pair] = []
        self.made = 0
        row = view.get("vocabularies_active", b"")
        self._vocabularies: bytes | None = None if row is None else row.encoded

    # ── tallies ──────────────────────────────────────────────────────────────────────────────

    def tally(self, key: bytes) -> Tally | None:
        """A tally by its own key."""
        found: Tally | None = self.draft.get("concept_tallies", key)
        return found

    def resolve(self, key: bytes) -> tuple[bytes, Tally | None]:
        """The tally that counts for a key: of what it turned out to be the same as."""
        found = self.tally(key)
        for _ in range(_INTO_MAX):
            if found is None or found.into is None:
                break
            key = found.into
            found = self.tally(key)
        return key, found

    def put(self, key: bytes, tally: Tally) -> None:
        """A tally is now so."""
        self.draft.put("concept_tallies", key, tally)

    def touch(self, key: bytes) -> Touch:
        """The note on a tally that has to be settled."""
        found = self.touched.get(key)
        if found is None:
            found = self.touched[key] = Touch()
        return found

    def concept(self, raw: bytes) -> Concept | None:
        """A concept as it was last made."""
        found: Concept | None = self.draft.get("concepts", raw)
        return found

    def fact(self, raw: bytes) -> Fact | None:
        """A fact as it is known last."""
        found: Fact | None = self.draft.get("facts", raw)
        return found

    def _moved(self, key: bytes, tally: Tally) -> None:
        """The inputs of a tally are others than before."""
        self.put(key, _replace(tally, fresh=tally.fresh + 1))
        self.touch(key)
        if tally.concept is not None:
            self.draft.put("concept_inputs", input_key(key, self.entry.id), Mark())

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    def take(self, fact_ids: Iterable[str]) -> None:
        """Count the facts that an entry made, ended, closed or forgot."""
        for fact_id in fact_ids:
            raw = record_key("facts", fact_id)
            fact = self.fact(raw)
            counted: Counted | None = self.draft.get("concept_facts", raw)
            if fact is not None and speaks(fact, self.at):
                if counted is None:
                    self._count(raw, fact)
                elif self._is_elsewhen(fact):
                    self._recount(raw, fact, counted)
            elif counted is not None:
                self._discount(raw, fact_id, fact, counted)

    def _is_elsewhen(self, fact: Fact) -> bool:
        """Whether it holds at another time than it was known to before; a mere repetition not."""
        before: Fact | None = None
        if fact.version > 1:
            before = self.draft.get("facts_past", past_key("facts", fact.id, fact.version - 1))
        return before is not None and before.valid_to != fact.valid_to

    def _count(self, raw: bytes, fact: Fact) -> None:
        things = self.things(fact)
        one = Kept(raw, _score(fact, self.at))
        counted: dict[bytes, None] = {}
        for own, thing in things.items():
            key, tally = self.resolve(own)
            if tally is None:
                tally = Tally(kind=THING, what=thing.root, name=thing.root)
            if key not in counted:
                counted[key] = None
                tally = _replace(
                    tally,
                    live=tally.live + 1,
                    kept=_kept(tally.kept, one),
                    predicates=_more(tally.predicates, fact.predicate),
                )
                self._moved(key, _called_last(tally, thing.name) if key == own else tally)
        key = predicate_key(self._scope_no(fact), fact.predicate)
        known = self.tally(key) or _of_predicate(fact.predicate)
        known = _replace(
            known,
            live=known.live + 1,
            kept=_kept(known.kept, one),
            subjects=_distinct(known.subjects, next(iter(things), b"")),
        )
        self._moved(key, known)
        self.draft.put("concept_facts", raw, Counted((*counted, key)))
        self._join(fact, [*things], 1)
        self._judge(fact, [*things], is_said=True)

    def _recount(self, raw: bytes, fact: Fact, counted: Counted) -> None:
        kept = Kept(raw, _score(fact, self.at))
        for own in counted.keys:
            key, tally = self.resolve(own)
            if tally is not None and any(one.fact == raw for one in tally.kept):
                self._moved(key, _replace(tally, kept=_kept(tally.kept, kept)))

    def _discount(self, raw: bytes, fact_id: str, fact: Fact | None, counted: Counted) -> None:
        self.draft.drop("concept_facts", raw)
        for own in counted.keys:
            key, tally = self.resolve(own)
            if tally is None:
                continue
            concept = None if tally.concept is None else self.concept(tally.concept)
            is_cited = concept is not None and fact_id in concept.supported_by.facts
            is_replaced = fact is not None and fact.superseded_by is not None
            is_lost = is_cited and not is_replaced
            tally = _replace(
                tally,
                live=max(0, tally.live - 1),
                lost=tally.lost + is_lost,
                kept=tuple(one for one in tally.kept if one.fact != raw),
            )
            self._moved(key, tally)
            touch = self.touch(key)
            touch.is_lost |= is_lost
            if fact is None:
                touch.forgotten = (*touch.forgotten, fact_id)
        if fact is not None:
            things = [*self.things(fact)]
            self._join(fact, things, -1)
            self._judge(fact, things, is_said=False)

    def things(self, fact: Fact) -> dict[bytes, Thing]:
        """The things a fact speaks of, by their own keys, the subject first."""
        scope_no = self._scope_no(fact)
        found: dict[bytes, Thing] = {}
        for node in (fact.subject, fact.object):
            if not isinstance(node, LiteralValue):
                row = self.draft.get("entities", name_key(node.id))
                thing = Thing(node.id if row is None else str(row.root), node.name)
                found.setdefault(thing_key(scope_no, thing.root), thing)
        return found

    def _scope_no(self, fact: Fact) -> int:
        """The number of the fact's scope: the entry's own or its target, or where the fact lies."""
        entry = self.entry
        if fact.scope in (entry.scope, entry.home_scope):
            return entry.scope_no if fact.scope == entry.scope else entry.home_scope_no
        basis = self.draft.get("facts_basis", record_key("facts", fact.id))
        assert basis is not None, "a fact of another scope lies on a line there"
        return int.from_bytes(basis.line[:4], "big")

    # ── what hangs together ──────────────────────────────────────────────────────────────────

    def _join(self, fact: Fact, things: Sequence[bytes], by: int) -> None:
        """A fact between two things ties them, as long as it is known."""
        if len(things) != 2:
            return
        relation = relation_of(fact, self._vocabularies)
        if fact.predicate not in IDENTITY and fact.polarity == "positive":
            self._tie(things[0], things[1], relation, by)

    def _tie(self, one: bytes, other: bytes, relation: Relation, by: int) -> None:
        ends = ((one, other, relation.name), (other, one, relation.back))
        for start, end, name in ends:
            key, tally = self.resolve(start)
            if tally is not None and key != self.resolve(end)[0]:
                near = _nearer(tally.near, Near(end, name, relation.vocabulary, by))
                self.put(key, _replace(tally, near=near))

    def _judge(self, fact: Fact, things: Sequence[bytes], *, is_said: bool) -> None:
        """Whether a fact says that two things are one, or are not (001 §7.5.1)."""
        if fact.predicate not in IDENTITY or fact.polarity == "negative" or fact.confidence < 0.5:
            return
        if len(things) == 2:
            verdict = "same" if fact.predicate in SAME else "different"
            if not is_said:
                verdict = "no longer same" if verdict == "same" else ""
            if verdict:
                self.pairs.append(Pair(things[0], things[1], verdict, fact))
        elif is_said and fact.predicate in SAME and isinstance(fact.object, LiteralValue):
            key, tally = self.resolve(things[0])
            if tally is not None:
                self.put(key, _replace(tally, aliases=called(tally, str(fact.object.value))))
                self.touch(key).is_forced = True

    # ── episodes ─────────────────────────────────────────────────────────────────────────────

    def witness(self, episode_ids: Iterable[str]) -> None:
        """Count the episodes that were sealed for what their events speak of."""
        for episode_id in episode_ids:
            raw = record_key("episodes", episode_id)
            episode: Episode | None = self.draft.get("episodes", raw)
            if episode is None or not episode.sealed or episode.recorded_to is not None:
                continue
            if self.draft.get("concept_episodes", raw) is None:
                self.draft.put("concept_episodes", raw, Mark())
                self._witnessed(raw, episode)

    def _witnessed(self, raw: bytes, episode: Episode) -> None:
        keys = self._spoken_of(episode)
        for key in keys:
            tally = self.tally(key)
            if tally is not None and raw not in tally.episodes:
                episodes = (*tally.episodes, raw)[-limits.CONCEPT_EPISODES_KEPT :]
                count = tally.episode_count + 1
                self._moved(key, _replace(tally, episode_count=count, episodes=episodes))
        for key in keys if len(keys) > 1 else ():
            tally = self.tally(key)
            if tally is not None:
                near = tally.near
                for other in keys:
                    if other != key:
                        near = _nearer(near, Near(other, *_TOGETHER, 1))
                self.put(key, _replace(tally, near=near))

    def _spoken_of(self, episode: Episode) -> list[bytes]:
        """The things that the facts of its events speak of, as many as an episode is about."""
        keys: dict[bytes, None] = {}
        for event_id in episode.events:
            event = parse_id("evt", event_id)
            row = None if event is None else self.draft.get("derives", event)
            for name in row.ids if row is not None else ():
                fact = parse_id("fact", name)
                counted = None if fact is None else self.draft.get("concept_facts", fact)
                for own in counted.keys if counted is not None else ():
                    key, tally = self.resolve(own)
                    if tally is not None and tally.kind == THING:
                        keys[key] = None
            if len(keys) >= limits.CONCEPT_EPISODE_THINGS_MAX:
                break
        return [*keys][: limits.CONCEPT_EPISODE_THINGS_MAX]


def speaks(fact: Fact, at: datetime) -> bool:
    """Whether a fact was ever true and is known now."""
    is_known = fact.recorded_to is None or fact.recorded_to > at
    return is_known and (fact.valid_to is None or fact.valid_to > fact.valid_from)


def _score(fact: Fact, at: datetime) -> int:
    is_current = fact.valid_to is None or fact.valid_to > at
    return round(fact.confidence * (_CURRENT - 1)) + (_CURRENT if is_current else 0)


def _kept(kept: tuple[Kept, ...], one: Kept) -> tuple[Kept, ...]:
    """With one more, or one that is scored anew; of too many the oldest of the weakest goes."""
    facts = [known.fact for known in kept]
    if one.fact in facts:
        at = facts.index(one.fact)
    elif len(kept) < limits.CONCEPT_FACTS_KEPT:
        return (*kept, one)
    else:
        scores = [known.score for known in kept]
        weakest = min(scores)
        if weakest > one.score:
            return kept
        at = scores.index(weakest)
    return (*kept[:at], *kept[at + 1 :], one)


def _of_predicate(predicate: str) -> Tally:
    return Tally(kind=PREDICATE, what=predicate, name=words_of(predicate).capitalize())


def _called_last(tally: Tally, name: str | None) -> Tally:
    """A thing is called as it was called last; how it was called before is an alias."""
    if not name or name == tally.name:
        return tally
    after = _replace(tally, name=name)
    return after if tally.name == tally.what else _replace(after, aliases=called(after, tally.name))


def called(tally: Tally, name: str) -> tuple[str, ...]:
    """The other names of a thing, with one more."""
    name = name.strip()[: limits.NAME_CHARS_MAX]
    is_known = not name or name == tally.name or name in tally.aliases
    return tally.aliases if is_known else (*tally.aliases, name)[-limits.CONCEPT_ALIASES_MAX :]


def _more(counts: dict[str, int], name: str) -> dict[str, int]:
    """One more of a name; of too many names the rarest goes, and of those the oldest."""
    after = {**counts, name: counts.get(name, 0) + 1}
    if len(after) > limits.CONCEPT_PREDICATES_KEPT:
        del after[min((one for one in after if one != name), key=after.__getitem__)]
    return after


def _distinct(subjects: tuple[bytes, ...], one: bytes) -> tuple[bytes, ...]:
    is_enough = len(subjects) >= limits.CONCEPT_SUBJECTS_MIN
    return subjects if is_enough or one in subjects else (*subjects, one)


def _nearer(near: tuple[Near, ...], one: Near) -> tuple[Near, ...]:
    """With one tie more or less; of too many the weakest goes, and of those the oldest."""
    key, relation = one.key, one.relation
    for at, known in enumerate(near):
        if known.key == key and known.relation == relation:
            count = known.count + one.count
            changed = (_replace(one, count=count),) if count > 0 else ()
            return (*near[:at], *changed, *near[at + 1 :])
    if one.count < 0:
        return near
    if len(near) < limits.CONCEPT_NEAR_KEPT:
        return (*near, one)
    counts = [known.count for known in near]
    weakest = counts.index(min(counts))
    return (*near[:weakest], *near[weakest + 1 :], one)
