"""When two things turn out to be one, is there one set of beliefs, and can it be parted again?"""

import pytest

from projectors.beliefs import BELIEFS
from projectors.beliefs.keys import identity_key
from schemas import limits
from schemas.times import to_us


@pytest.fixture
def log(hand):
    """A log over the beliefs alone."""
    return hand.Hand(BELIEFS)


@pytest.fixture
def same(log, hand):
    """Somebody says that two things are one, or what else of them."""

    def say(one, other, predicate="same_as", **more):
        more = {"cardinality": "multi", "about": one, "predicate": predicate} | more
        return log.tell(hand.thing(other), **more)

    return say


@pytest.fixture
def believed(log):
    """What is believed now: of whom, what, on how many facts and how surely."""

    def read(predicate="lives_in"):
        return {
            (one.claim.subject.name, _value(one)): (one.evidence_count, one.confidence)
            for one in log.records("beliefs")
            if one.recorded_to is None and one.claim.predicate == predicate
        }

    return read


def _value(belief):
    node = belief.claim.object
    return getattr(node, "value", None) or node.name


def test_evidence_is_joined(log, same, believed):
    """What two said of two names is one belief, of the one known first, and surer than either."""
    log.tell("Paris", about="bob", by="user:ann")
    log.tell("Paris", about="robert", by="user:eve")
    before = believed()
    same("robert", "bob")
    after = believed()

    assert {("Bob", "Paris"), ("Robert", "Paris")} == set(before)
    assert {("Bob", "Paris")} == set(after)
    facts, confidence = after["Bob", "Paris"]
    assert 2 == facts
    assert confidence > max(one for _, one in before.values())


def test_what_gave_way_says_to_what(log, same):
    """The belief of the other name is closed, not deleted, and leads to the one that stands."""
    log.tell("Paris", about="bob")
    log.tell("Paris", about="robert")
    same("robert", "bob")
    bob, robert, *_ = log.records("beliefs")

    assert (None, bob.id, log.at) == (bob.recorded_to, robert.superseded_by, robert.recorded_to)
    assert [] == bob.contradicts
    assert [] == log.records("beliefs_deleted")
    assert [] == log.records("belief_calibration")


def test_what_only_one_of_them_had_is_told_of_the_other(log, same, believed):
    """A claim that nobody made of the elder begins there, with its evidence."""
    log.tell("jazz", about="robert", predicate="likes", cardinality="multi")
    log.tell("Paris", about="bob")
    same("bob", "robert", "aka")

    assert {("Robert", "jazz"): (1, 0.9)} == believed("likes")
    assert {("Robert", "Paris"): (1, 0.9)} == believed()


def test_one_speaker_counts_once(log, same, believed):
    """The same voice under two names is one voice: it weighs as a repetition does."""
    log.tell("Paris", about="bob", by="user:ann")
    log.tell("Paris", about="robert", by="user:ann")
    log.tell("Rome", about="carol", by="user:ann")
    log.tell("Rome", about="caroline", by="user:eve")
    same("robert", "bob")
    same("caroline", "carol")
    found = believed()

    assert found["Bob", "Paris"][1] < found["Carol", "Rome"][1]


def test_what_is_told_later_of_either_is_one(log, same, believed):
    """After that, both names speak of one."""
    log.tell("Paris", about="bob", by="user:ann")
    same("robert", "bob")
    log.tell("Paris", about="robert", by="user:eve")

    assert {("Bob", "Paris")} == set(believed())
    assert 2 == log.records("belief_scales")[0].facts


def test_values_that_exclude_each_other_are_at_odds(log, same):
    """Two names with two homes are one thing with a contradiction, and neither home is sure."""
    log.tell("Paris", about="bob")
    log.tell("Rome", about="robert")
    same("robert", "bob")
    live = [one for one in log.records("beliefs") if one.recorded_to is None]
    homes = [one for one in live if one.claim.predicate == "lives_in"]

    assert 2 == len(homes)
    assert {1} == {len(one.contradicts) for one in homes}
    assert all(one.confidence < 0.9 for one in homes)


def test_as_objects_they_are_one_too(log, hand, same, believed):
    """`Ann knows Bob` and `Ann knows Robert` are one claim."""
    for name in ("bob", "robert"):
        log.tell("x", about=name, predicate="is")
        log.tell(hand.thing(name), about="ann", predicate="knows", cardinality="multi")
    same("robert", "bob")

    assert {("Ann", "Bob")} == set(believed("knows"))


def test_sameness_reaches_through(log, same, believed):
    """What is the same as the same is the same; the eldest of all gives the name."""
    for name in ("bob", "robert", "bobby"):
        log.tell("Paris", about=name, by=f"user:{name}")
    same("bobby", "robert")
    same("robert", "bob")

    assert {("Bob", "Paris")} == set(believed())
    assert 3 == believed()["Bob", "Paris"][0]


@pytest.mark.parametrize("how", ["retract", "forget", "end", "deny"])
def test_what_was_joined_is_parted(log, hand, same, believed, how):
    """Nobody says any more that they are one: each has its own evidence, as before."""
    log.tell("Paris", about="bob", by="user:ann")
    log.tell("Paris", about="robert", by="user:eve")
    before = believed()
    said = same("robert", "bob")
    match how:
        case "retract":
            log.retract(said)
        case "forget":
            log.forget(said)
        case "end":
            entry = log.said()
            log.move(entry, [hand.revised(said, entry, valid_to=entry.recorded_at)])
        case "deny":
            same("bob", "robert", "different_from")

    assert before == believed()


def test_as_long_as_one_says_it_they_are_one(log, same, believed):
    """Of two facts that say it, one may go."""
    log.tell("Paris", about="bob")
    log.tell("Paris", about="robert")
    first = same("robert", "bob")
    second = same("bob", "robert", "aka")
    log.retract(first)
    joined = set(believed())
    log.retract(second)

    assert {("Bob", "Paris")} == joined
    assert {("Bob", "Paris"), ("Robert", "Paris")} == set(believed())


def test_a_retelling_moves_with_its_fact(log, same, believed):
    """All who told a fact stand behind the joined belief, and can be withdrawn from it."""
    log.tell("Paris", about="bob", by="user:ann")
    fact = log.tell("Paris", about="robert", by="user:eve")
    log.hear(log.said("user:dan"), [], {fact.id: 0.9})
    same("robert", "bob")
    (scale,) = [one for one in log.records("belief_scales") if one.facts == 2]
    log.retract(fact)

    assert 3 == sum(scale.sources.values())
    assert {("Bob", "Paris"): (1, 0.9)} == believed()


@pytest.mark.parametrize("more", [{"confidence": 0.4}, {"polarity": "negative"}])
def test_a_hunch_joins_nothing(log, same, believed, more):
    """Two things are not one on doubtful or denied words."""
    log.tell("Paris", about="bob")
    log.tell("Paris", about="robert")
    same("robert", "bob", **more)

    assert 2 == len(believed())


def test_not_everything_is_one(log, same, believed):
    """Beyond a bound another name stays apart: a change of one looks at all of them."""
    names = [f"n{number:02}" for number in range(limits.IDENTITY_MEMBERS_MAX + 1)]
    for name in names:
        log.tell("Paris", about=name)
    for name in names[1:]:
        same(name, names[0])

    assert 2 == len(believed())


def test_who_was_whom_is_known_as_of_any_moment(log, hand, same):
    """Readers of an earlier moment are not led to what was found out later."""
    log.tell("Paris", about="bob")
    log.tell("Paris", about="robert")
    before = to_us(log.at)
    said = same("robert", "bob")
    during = to_us(log.at)
    log.retract(said)
    bob, robert = hand.thing("bob").id, hand.thing("robert").id
    row = log.view.get("belief_identity", identity_key(hand.SCOPE_NO, robert))

    assert [robert, bob, robert] == [row.at(us) for us in (before, during, to_us(log.at))]
