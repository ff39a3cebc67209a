"""Do beliefs and concepts keep their promises, whatever is said, withdrawn and forgotten?

A run is a story: values told and retold, a world that changes, corrections, denials, withdrawals,
forgetting and waiting. The facts are kept here as the facts' own projector keeps them: one value at
a time for `lives_in`, any number for `likes`.
"""

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projectors.beliefs import BELIEFS
from projectors.beliefs.why import as_known, why
from projectors.understanding import UNDERSTANDING
from schemas import limits
from schemas.entry import Directive, Synthesize
from schemas.ids import format_id, parse_id

CLOSING = {"recorded_to": None, "superseded_by": None, "held_from": None}

subjects = st.sampled_from(["alice", "bob"])
values = st.sampled_from(["paris", "rome", "oslo"])
actors = st.sampled_from(["user:alice", "user:bob", "agent:bot"])
sure = st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0])
told = st.tuples(st.just("lives"), subjects, values, actors, sure)
liked = st.tuples(st.just("likes"), subjects, values, actors, sure, st.booleans())
joined = st.tuples(st.just("joins"), subjects, subjects)
fixed = st.tuples(st.just("corrects"), subjects, values)
ended = st.tuples(st.just("ends"), st.integers(0, 30))
withdrawn = st.tuples(st.just("retracts"), st.integers(0, 30))
gone = st.tuples(st.just("forgets"), st.integers(0, 30))
alike = st.tuples(st.just("sames"), subjects, subjects, st.sampled_from(["same_as", "aka"]))
apart = st.tuples(st.just("sames"), subjects, subjects, st.just("different_from"))
waited = st.tuples(st.just("waits"), st.sampled_from([1, 6, 61, 3000]))
asked = st.tuples(st.just("synthesises"))
steps = told | liked | joined | fixed | ended | withdrawn | waited | asked
stories = st.lists(steps, max_size=24)
forgetful = st.lists(steps | gone, max_size=24)
kindred = st.lists(steps | alike | apart, max_size=24)
identified = st.lists(steps | gone | alike | apart, max_size=24)
flushes = st.sets(st.integers(0, 40))


class Teller:
    """Keeps facts as their projector does, and tells the hand what each step moves."""

    def __init__(self, hand, flushed=frozenset()):
        self.hand = hand
        self.log = hand.Hand(BELIEFS, UNDERSTANDING)
        self.flushed = flushed
        self.current = {}
        self.live = {}
        self.forgotten = False

    def run(self, story):
        for number, step in enumerate(story):
            if number in self.flushed:
                self.log.flush()
            getattr(self, step[0])(*step[1:])
        return self.log

    def _keep(self, *facts):
        for fact in facts:
            self.live[fact.id] = fact

    def lives(self, about, value, actor, confidence):
        entry = self.log.said(actor)
        before = self.current.get(about)
        fact = self.log.fact(entry, value, about=about, confidence=confidence)
        if before is None:
            self.log.move(entry, [fact])
        elif before.object == fact.object:
            fact = self.hand.revised(before, entry, supports=[*before.supports, entry.event_id])
            self.log.hear(entry, [fact], {fact.id: confidence})
        else:
            over = self.hand.revised(before, entry, valid_to=fact.valid_from, superseded_by=fact.id)
            self.log.move(entry, [fact, over])
            self._keep(over)
        self.current[about] = fact
        self._keep(fact)

    def corrects(self, about, value):
        before = self.current.get(about)
        if before is not None:
            del self.live[before.id]
            self.current[about] = self.log.correct(before, value, about=about)
            self._keep(self.current[about])

    def likes(self, about, value, actor, confidence, is_so):
        polarity = "positive" if is_so else "negative"
        fact = self.log.tell(
            value,
            by=actor,
            about=about,
            predicate="likes",
            cardinality="multi",
            confidence=confidence,
            polarity=polarity,
        )
        self._keep(fact)

    def joins(self, one, other):
        fact = self.log.tell(
            self.hand.thing(other), about=one, predicate="knows", cardinality="multi"
        )
        self._keep(fact)

    def sames(self, one, other, predicate):
        if one != other:
            fact = self.log.tell(
                self.hand.thing(other), about=one, predicate=predicate, cardinality="multi"
            )
            self._keep(fact)

    def _pick(self, number):
        return list(self.live.values())[number % len(self.live)] if self.live else None

    def ends(self, number):
        fact = self._pick(number)
        if fact is not None and fact.valid_to is None:
            entry = self.log.said()
            over = self.hand.revised(fact, entry, valid_to=entry.recorded_at)
            self.log.move(entry, [over])
            self._lose(fact)
            self._keep(over)

    def retracts(self, number):
        fact = self._pick(number)
        if fact is not None:
            self.log.retract(fact)
            self._lose(fact)

    def forgets(self, number):
        fact = self._pick(number)
        if fact is not None:
            self.log.forget(fact)
            self._lose(fact)
            self.forgotten = True

    def _lose(self, fact):
        del self.live[fact.id]
        for about, current in list(self.current.items()):
            if current.id == fact.id:
                del self.current[about]

    def waits(self, minutes):
        self.log.at += timedelta(minutes=minutes)
        held = [format_id("belief", key) for key, _ in self.log.view.scan("beliefs_held")]
        self.log.tick(*held)

    def synthesises(self):
        self.log.project(self.log.entry(Directive(command=Synthesize(force=True))))


@given(story=forgetful | identified, flushed=flushes)
@settings(deadline=None, max_examples=40)
def test_batches_make_no_difference(hand, story, flushed):
    """I4: rows are byte-equal, wherever the batches are cut, and on every replay."""
    whole = Teller(hand).run(story).state()
    cut = Teller(hand, flushed).run(story).state()
    single = Teller(hand, frozenset(range(len(story)))).run(story).state()

    assert whole == cut == single


@given(story=stories | kindred)
@settings(deadline=None, max_examples=40)
def test_no_two_values_are_believed_at_once(hand, story):
    """One value at a time: at any pair of times at most one is believed (001 §7.4)."""
    log = Teller(hand).run(story)
    every = [v for b in log.records("beliefs") for v in log.versions("beliefs", b.id)]
    lived = [v for v in every if v.claim.predicate == "lives_in" and v.stance == "supported"]
    moments = sorted({m for v in lived for m in (v.recorded_from, v.valid_from)} | {log.at})

    for known in moments:
        for valid in moments:
            seen = [
                (v.claim.subject.id, v.claim.object.value)
                for v in lived
                if hand.is_known(v, known) and hand.is_valid(v, valid)
            ]
            assert len({about for about, _ in seen}) == len(seen)


@given(story=stories | kindred)
@settings(deadline=None, max_examples=40)
def test_later_entries_change_no_earlier_answer(hand, story):
    """What was known at a moment is what is known of that moment, for ever."""
    teller = Teller(hand)
    answers = []
    for step in story:
        teller.run([step])
        log = teller.log
        answers.append((log.at, _answer(log, log.at)))

    for at, answer in answers:
        assert answer == _answer(teller.log, at)


def _answer(log, at):
    """All that is known at a moment; when a version ends is told by what ends it."""
    beliefs = [as_known(one, at, _held(log, one)) for one in log.known("beliefs", at)]
    return [
        msgspec.structs.replace(one, **{n: v for n, v in CLOSING.items() if hasattr(one, n)})
        for one in (*beliefs, *log.known("concepts", at))
    ]


def _held(log, belief):
    """What waits for the version after the latest."""
    key = parse_id("belief", belief.id)
    is_latest = log.view.get("beliefs", key).version == belief.version
    return log.view.get("beliefs_held", key) if is_latest else None


@given(story=forgetful | identified)
@settings(deadline=None, max_examples=40)
def test_scales_hold_what_the_facts_bring_and_nothing_else(hand, story):
    """Laying on and taking off is exact: the sums are those of the evidence there is."""
    log = Teller(hand).run(story)
    evidence = log.records("belief_evidence")

    for key, scale in log.view.scan("belief_scales"):
        own = [one for one in evidence if one.belief == key and one.turn == scale.turn]
        assert len(own) == scale.facts
        assert sum(one.mass for one in own if not one.against) == scale.pro
        assert sum(one.mass for one in own if one.against) == scale.con
        assert sum(not one.against for one in own) == scale.pros
        assert sum(scale.sources.values()) == sum(len(one.tellings) for one in own)
        assert len(scale.shown) <= limits.BELIEF_SUPPORTS_MAX


@given(story=forgetful)
@settings(deadline=None, max_examples=40)
def test_tallies_count_the_facts_there_are(hand, story):
    """A tally's live facts are those counted there; its concept cites some of them."""
    teller = Teller(hand)
    log = teller.run(story)
    counted = [row.keys for _, row in log.view.scan("concept_facts")]

    assert len(teller.live) == len(counted)
    for key, tally in log.view.scan("concept_tallies"):
        assert tally.live == sum(key in keys for keys in counted)
        assert len(tally.kept) <= min(tally.live, limits.CONCEPT_FACTS_KEPT)


@given(story=forgetful | identified)
@settings(deadline=None, max_examples=40)
def test_versions_follow_each_other_without_a_gap(hand, story):
    """One after the other, each known from when the former is not."""
    teller = Teller(hand)
    log = teller.run(story)
    for layer in ("beliefs", "concepts"):
        for record in log.records(layer):
            versions = log.versions(layer, record.id)
            assert list(range(1, len(versions) + 1)) == [one.version for one in versions]
            for one, other in pairwise(versions):
                assert one.recorded_from < other.recorded_from == one.recorded_to


@given(story=forgetful | identified)
@settings(deadline=None, max_examples=40)
def test_when_all_is_withdrawn_nothing_is_believed(hand, story):
    """Invalidation reaches everything above, and leaves no row of the weighing behind."""
    teller = Teller(hand)
    log = teller.run(story)
    for fact in list(teller.live.values()):
        log.retract(fact)

    assert [] == log.known("beliefs", log.at)
    for table in ("belief_scales", "belief_evidence", "beliefs_held", "belief_due"):
        assert [] == log.records(table)
    assert {()} >= {row.periods for row in log.records("belief_claims")}
    cited = [one for one in log.known("concepts", log.at) if one.support_loss_fraction == 0]
    assert not [one for one in cited if one.supported_by.facts]


@given(story=stories | kindred)
@settings(deadline=None, max_examples=40)
def test_confidence_lies_in_its_interval_and_has_its_stance(hand, story):
    """The record is consistent with itself, and can say why."""
    log = Teller(hand).run(story)
    facts = {fact.id: fact for fact in log.records("facts")}
    for belief in log.known("beliefs", log.at):
        interval = belief.confidence_interval
        assert 0 <= interval.lower <= belief.confidence <= interval.upper <= 1
        assert (belief.stance == "supported") == (belief.confidence >= 0.55)
        assert belief.valid_to is None or belief.valid_from < belief.valid_to
        assert all(one.id in facts for one in belief.supports)
        narrative = why(belief, facts.get).narrative
        assert f"{belief.confidence:.2f}" in narrative


@pytest.mark.parametrize("size", [1, 3])
def test_a_story_that_once_went_wrong(hand, size):
    """A correction of a value that was told twice, then withdrawn."""
    story = [
        ("lives", "alice", "paris", "user:alice", 0.9),
        ("lives", "alice", "paris", "user:bob", 0.9),
        ("corrects", "alice", "rome"),
        ("retracts", 0),
    ] * size
    log = Teller(hand).run(story)

    assert [] == log.known("beliefs", log.at)
