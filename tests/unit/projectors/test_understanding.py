"""Is what is understood made of what is known, as often as it changes, and no oftener?"""

from datetime import timedelta

import msgspec
import pytest

from projectors.base import Put
from projectors.beliefs import BELIEFS
from projectors.derives import DERIVES, back_pointers
from projectors.understanding import UNDERSTANDING
from projectors.understanding.keys import tally_key
from projectors.understanding.reading import as_known, staleness, unseen_range
from projectors.vocabularies import VOCABULARIES
from schemas import limits
from schemas.entry import Annotation, Directive, SetPolicy, SetVocabulary, Synthesize
from schemas.policy import LayerRules, PolicyDocument
from schemas.vocabularies import RelationTerm, Vocabulary

HOUR = timedelta(hours=1)


@pytest.fixture
def log(hand):
    """A log over beliefs and concepts."""
    return hand.Hand(VOCABULARIES, DERIVES, BELIEFS, UNDERSTANDING)


def concepts(log):
    """The concepts known now, by name."""
    return {one.name: one for one in log.records("concepts") if one.recorded_to is None}


def facts_about(log, count, about="acme", **more):
    """So many facts about one thing, one entry each."""
    return [
        log.tell(f"v{number}", about=about, predicate=f"p{number}", **more)
        for number in range(count)
    ]


# ── making ───────────────────────────────────────────────────────────────────────────────────


def test_a_thing_with_enough_facts_becomes_a_concept(log, hand):
    """Three facts about Acme are Acme understood (001 §7.5)."""
    log.tell(200, about="acme", predicate="seat_count")
    log.tell("signed", about="acme", predicate="deal_stage")
    before = concepts(log)
    log.tell("Berlin", about="acme", predicate="based_in", cardinality="multi")
    acme = concepts(log)["Acme"]

    assert {} == before
    assert (1, None, hand.thing("acme").id) == (
        acme.version,
        acme.previous_version,
        acme.entity_id,
    )
    assert (
        "Acme: based in Berlin; deal stage signed since May 2026; seat count 200 since May 2026."
        == acme.summary
    )
    assert (3, 3, 3, 1.0) == (
        len(acme.supported_by.facts),
        len(acme.supported_by.beliefs),
        len(acme.supports),
        acme.coverage_score,
    )
    assert ("supported", 0.9, 0.0, False, None) == (
        acme.stance,
        acme.confidence,
        acme.staleness_score,
        acme.partial,
        acme.partial_reason,
    )
    assert ["based_in", "deal_stage", "seat_count"] == acme.topics
    assert ("extractive", {"entity": hand.thing("acme").id}) == (
        acme.synthesis_inputs.synthesizer,
        acme.synthesis_inputs.filters,
    )


def test_what_is_said_of_it_by_others_is_part_of_it(log, hand):
    """Facts that mention a thing count, and read as what they are."""
    for name in ("alice", "bob", "eve"):
        log.tell(hand.thing("acme"), about=name, predicate="works_at", cardinality="multi")

    assert "Eve works at Acme. Bob works at Acme. Alice works at Acme." == (
        concepts(log)["Acme"].summary
    )


def test_a_predicate_said_of_many_becomes_a_concept(log):
    """What is often said, of several things, is a notion of its own."""
    for number in range(limits.CONCEPT_PREDICATE_FACTS_MIN):
        log.tell("tea", about=f"p{number}", predicate="likes", cardinality="multi")
    likes = concepts(log)["Likes"]

    assert (None, ["likes"]) == (likes.entity_id, likes.topics)
    assert likes.summary.startswith("Likes: P7 likes tea; P6 likes tea;")


def test_a_predicate_of_one_thing_does_not(log):
    """However often it is said of one alone, it is part of that."""
    for number in range(20):
        log.tell(f"v{number}", predicate="likes", cardinality="multi")

    assert {"Alice"} == set(concepts(log))


def test_events_point_to_the_concept(log):
    """The trail goes both ways, and only new events are told of a new version."""
    facts = facts_about(log, 3)
    changes = [c for c in log.changes if isinstance(c, Put) and c.table == "concepts"]
    pointed = list(back_pointers(changes, log.view))

    assert {fact.supports[0] for fact in facts} == set(changes[0].supports)
    assert 3 == len(pointed)


def test_later_stages_hear_which_concepts_moved(log):
    """Only entries that made a version say so."""
    facts_about(log, 2)
    before = log.view.get("concepts_moved", b"")
    facts_about(log, 1)

    assert None is before
    assert [concepts(log)["Acme"].id] == log.view.get("concepts_moved", b"").ids


def test_facts_below_the_threshold_make_nothing(log):
    """No concept is better than a partial one."""
    facts_about(log, limits.CONCEPT_FACTS_MIN - 1)

    assert {} == concepts(log)


# ── anew ─────────────────────────────────────────────────────────────────────────────────────


def test_versions_grow_with_the_logarithm_of_the_inputs(log):
    """A quarter more makes a version: thousands of facts are a few dozen of them."""
    facts_about(log, 400)
    acme = concepts(log)["Acme"]

    assert 24 >= acme.version
    assert acme.input_count >= 400 * 0.75
    assert limits.CONCEPT_FACTS_KEPT == len(acme.supported_by.facts)
    assert acme.coverage_score == round(limits.CONCEPT_FACTS_KEPT / acme.input_count, 4)


def test_every_version_stays_known_of_its_time(log, hand):
    """Append-only: what was understood then is still what was understood then."""
    facts_about(log, 3)
    at, then = log.at, concepts(log)["Acme"]
    facts_about(log, 50)

    assert [then.summary] == [one.summary for one in log.known("concepts", at)]
    assert list(range(1, concepts(log)["Acme"].version + 1)) == [
        one.version for one in log.versions("concepts", then.id)
    ]


def test_the_strongest_and_newest_facts_are_told(log):
    """What is surer comes first; of the equally sure, what came last."""
    facts_about(log, 30, confidence=0.5)
    log.tell("Rome", about="acme", predicate="city", confidence=0.9)
    facts_about(log, 10, confidence=0.6)

    assert concepts(log)["Acme"].summary.startswith("Acme: city Rome since May 2026; p9 v9")


def test_what_is_over_steps_back(log):
    """A value that no longer holds is told after those that do, and as over."""
    log.tell("poc", about="acme", predicate="deal_stage")
    stage = log.tell("200", about="acme", predicate="seats")
    log.change(stage, "300", about="acme")
    log.tell("Berlin", about="acme", predicate="city")

    assert (
        "Acme: seats 300 since May 2026; deal stage poc since May 2026; seats 200 until May 2026."
        == concepts(log)["Acme"].summary
    )


def test_a_repetition_is_no_news(log, hand):
    """The same fact told again moves no tally and makes no version."""
    (fact, *_) = facts_about(log, 3)
    before = log.records("concept_tallies")
    entry = log.said("user:bob")
    log.move(entry, [hand.revised(fact, entry, supports=[*fact.supports, entry.event_id])])

    assert before == log.records("concept_tallies")


def test_an_explicit_end_is_news(log, hand):
    """`Left Acme in May`: nothing new is said, and still the summary is another."""
    facts = facts_about(log, 3)
    for fact in facts:
        entry = log.said()
        log.move(entry, [hand.revised(fact, entry, valid_to=entry.recorded_at)])

    assert 2 == concepts(log)["Acme"].version
    assert "until May 2026" in concepts(log)["Acme"].summary


# ── staleness ────────────────────────────────────────────────────────────────────────────────


def unseen(log, hand, concept, at):
    """How many updates of its inputs a version had not seen at a moment, as a reader counts."""
    first, last = unseen_range(tally_key(hand.SCOPE_NO, concept), concept, at)
    return sum(1 for key, _ in log.view.scan("concept_inputs") if first <= key < last)


def test_staleness_is_counted_as_of_any_moment(log, hand):
    """Later entries, and later versions, change no earlier answer."""
    facts_about(log, 3)
    version = concepts(log)["Acme"]
    moments = [log.at]
    for _ in range(2):
        facts_about(log, 1)
        moments.append(log.at)
    before = [unseen(log, hand, version, at) for at in moments]
    facts_about(log, 40)

    assert [0, 1, 2] == before
    assert before == [unseen(log, hand, version, at) for at in moments]


def test_staleness_is_a_share_with_a_reason():
    """The fraction of input updates not yet incorporated (001 §7.5.2)."""
    concept = msgspec.convert({"input_count": 6}, type=_Inputs)

    assert (0.0, None) == staleness(concept, 0)
    assert (0.25, "2 updates of its inputs since it was last synthesised") == staleness(concept, 2)
    assert "1 update of its inputs since it was last synthesised" == staleness(concept, 1)[1]


class _Inputs(msgspec.Struct):
    input_count: int


def test_a_stale_version_says_so_and_is_not_partial(log):
    """Stale concepts keep `_partial` false (001 §7.5.1)."""
    facts_about(log, 3)
    seen = as_known(concepts(log)["Acme"], 1)

    assert (0.25, False) == (seen.staleness_score, seen.partial)


# ── relations ────────────────────────────────────────────────────────────────────────────────


def test_facts_between_things_are_edges_between_concepts(log, hand):
    """The predicate as a relation, there and back, once both are concepts."""
    facts_about(log, 3)
    for number in range(2):
        log.tell(f"v{number}", about="alice", predicate=f"q{number}")
    log.tell(hand.thing("acme"), about="alice", predicate="works_at", cardinality="multi")
    alice, acme = concepts(log)["Alice"], concepts(log)["Acme"]
    facts_about(log, 3)
    back = concepts(log)["Acme"].edges

    assert [(acme.id, "part_of", 0.5, "default")] == [
        (e.to, e.relation, e.weight, e.vocabulary) for e in alice.edges
    ]
    assert [(alice.id, "related_to")] == [(e.to, e.relation) for e in back]


def test_registered_relations_come_first(log, hand):
    """A tenant's own word for how things hang together (001 §7.5.1)."""
    relation = RelationTerm(id="employs", inverse="employed_by", aliases=["pays"])
    vocabulary = Vocabulary(name="hr", kind="relation", relations=[relation])
    log.project(log.entry(Directive(command=SetVocabulary(vocabulary=vocabulary))))
    facts_about(log, 3, about="bob")
    facts_about(log, 2)
    log.tell(hand.thing("bob"), about="acme", predicate="pays", cardinality="multi")
    acme = concepts(log)["Acme"]

    assert [("employs", "hr")] == [(e.relation, e.vocabulary) for e in acme.edges]


def test_an_edge_goes_with_the_facts_behind_it(log, hand):
    """When nobody says it any more, they are not tied."""
    facts_about(log, 3)
    joined = log.tell(hand.thing("acme"), about="alice", predicate="works_at")
    facts_about(log, 2, about="alice")
    tied = concepts(log)["Alice"].edges
    log.retract(joined)
    facts_about(log, 3, about="alice")

    assert 1 == len(tied)
    assert [] == concepts(log)["Alice"].edges


def test_the_closest_ties_are_kept(log, hand):
    """Of very many neighbours those that most is said about."""
    facts_about(log, 3, about="n0")
    for number in range(limits.CONCEPT_NEAR_KEPT + 3):
        for _ in range(2 if number == 0 else 1):
            log.tell(hand.thing(f"n{number}"), about="acme", predicate="uses", cardinality="multi")
    (tally,) = [row for row in log.records("concept_tallies") if row.name == "Acme"]

    assert limits.CONCEPT_NEAR_KEPT == len(tally.near)
    assert [2] == [near.count for near in tally.near if near.count > 1]


# ── episodes ─────────────────────────────────────────────────────────────────────────────────


def test_a_thing_seen_in_two_episodes_becomes_a_concept(log, hand):
    """One fact is little, but it came up again and again."""
    fact = log.tell("Berlin", about="acme", predicate="city")
    log.seal("Kick-off", fact)
    before = concepts(log)
    log.seal("Signing", fact)
    acme = concepts(log)["Acme"]

    assert {} == before
    assert 2 == len(acme.supported_by.episodes)
    assert "Acme: city Berlin since May 2026. Seen in: Signing; Kick-off." == acme.summary


def test_an_episode_counts_once(log, hand):
    """A sealed episode that gets another version is the same episode."""
    fact = log.tell("Berlin", about="acme", predicate="city")
    episode = log.seal("Kick-off", fact)
    log.seal("Kick-off", fact, episode=episode)

    assert {1} == {row.episode_count for row in log.records("concept_tallies") if row.kind == 0}


def test_things_of_one_episode_occur_together(log, hand):
    """They are in the same story, whatever joins them."""
    facts = [*facts_about(log, 3), *facts_about(log, 3, about="bob")]
    log.seal("Dinner", *facts)
    facts_about(log, 3)

    assert [("co_occurs_with", concepts(log)["Bob"].id)] == [
        (e.relation, e.to) for e in concepts(log)["Acme"].edges
    ]


def test_an_episode_is_about_a_few_things(log, hand):
    """The first that its events name: a story is not about everybody in it."""
    names = [f"t{number}" for number in range(limits.CONCEPT_EPISODE_THINGS_MAX + 4)]
    log.seal("Party", *(log.tell("there", about=name, predicate="was") for name in names))
    counted = [row for row in log.records("concept_tallies") if row.episode_count]

    assert limits.CONCEPT_EPISODE_THINGS_MAX == len(counted)


# ── one and two ──────────────────────────────────────────────────────────────────────────────


def same(log, hand, one, other, predicate="same_as"):
    return log.tell(hand.thing(other), about=one, predicate=predicate, cardinality="multi")


def test_what_turns_out_to_be_the_same_is_one_concept(log, hand):
    """The older id is canonical; the newer is an alias and deprecated (001 §7.5.1)."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "initech", "acme")
    found = concepts(log)

    assert (found["Acme"].id, "deprecated") == (
        found["Initech"].canonical_id,
        found["Initech"].stance,
    )
    assert (None, "supported", ["Initech"]) == (
        found["Acme"].canonical_id,
        found["Acme"].stance,
        found["Acme"].aliases,
    )
    assert 7 <= found["Acme"].input_count


def test_after_that_both_names_speak_of_one(log, hand):
    """What is said of the alias is counted for the canonical one."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "initech", "acme")
    version = concepts(log)["Acme"].version
    facts_about(log, 6, about="initech")

    assert version < concepts(log)["Acme"].version
    assert "deprecated" == concepts(log)["Initech"].stance


def test_an_alias_that_is_a_name_is_kept(log):
    """`also known as "Big Blue"` is a name, not a thing."""
    facts_about(log, 3, about="acme")
    log.tell("Big Blue", about="acme", predicate="also_known_as", cardinality="multi")

    assert ["Big Blue"] == concepts(log)["Acme"].aliases


def test_nobody_says_so_any_more(log, hand):
    """When the fact that made them one is withdrawn, they are two again."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    alias = concepts(log)["Initech"].id
    log.retract(same(log, hand, "initech", "acme"))
    found = concepts(log)

    assert (alias, None, "supported") == (
        found["Initech"].id,
        found["Initech"].canonical_id,
        found["Initech"].stance,
    )
    assert [] == found["Acme"].aliases


def test_what_was_taken_for_one_and_is_two_is_split(log, hand):
    """The original ends; two new concepts are derived from it (001 §7.5.1)."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "initech", "acme")
    original = concepts(log)["Acme"].id
    log.at += HOUR
    split = same(log, hand, "acme", "initech", "different_from")
    ended = log.view.get("concepts", hand.raw("concept", original))
    new = [one for one in log.records("concepts") if one.derived_from == [original]]

    assert split.valid_from == ended.valid_to
    assert {"Acme", "Initech"} == {one.name for one in new}
    assert original not in {one.id for one in new}
    assert all(len(one.supported_by.facts) >= 3 for one in new)


def test_which_is_older_does_not_depend_on_how_it_is_said(log, hand):
    """`A is B` and `B is A` are the same to a concept."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "acme", "initech")
    same(log, hand, "initech", "acme")

    assert concepts(log)["Acme"].id == concepts(log)["Initech"].canonical_id


@pytest.mark.parametrize("one, other", [("acme", "initech"), ("initech", "acme")])
def test_one_that_is_understood_takes_in_one_that_is_not(log, hand, one, other):
    """Only one of them is a concept: it stays, and knows the other's name."""
    facts_about(log, 3, about="acme")
    facts_about(log, 1, about="initech")
    same(log, hand, one, other)

    assert {"Acme": ["Initech"]} == {name: c.aliases for name, c in concepts(log).items()}
    assert 5 <= concepts(log)["Acme"].input_count


def test_two_that_are_little_known_make_one_that_is(log, hand):
    """Together there is enough to understand; parted again there is not."""
    facts_about(log, 1, about="acme")
    facts_about(log, 1, about="initech")
    before = concepts(log)
    same(log, hand, "acme", "initech")

    assert ({}, 1) == (before, len(concepts(log)))


def test_what_was_never_understood_is_parted_in_silence(log, hand):
    """Two tallies that were one before there was a concept are two again."""
    first = same(log, hand, "acme", "initech", "aka")
    split = same(log, hand, "acme", "initech", "different_from")
    log.retract(first)
    log.retract(split)
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")

    assert {"Acme", "Initech"} == set(concepts(log))


def test_an_alias_with_little_left_is_its_own_again(log, hand):
    """It is not hidden behind another any more, and not made anew either."""
    facts_about(log, 3, about="acme")
    facts = facts_about(log, 3, about="initech")
    for fact in facts[:2]:
        log.retract(fact)
    log.retract(same(log, hand, "initech", "acme"))
    initech = concepts(log)["Initech"]

    assert (None, "uncertain") == (initech.canonical_id, initech.stance)


def test_two_that_were_never_one_are_left_alone(log, hand):
    """That they are different is just another fact about them."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "acme", "initech", "different_from")

    assert 2 == len(concepts(log))


def test_doubtful_or_denied_sameness_changes_nothing(log, hand):
    """Two things are not merged on a hunch."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    more = {"cardinality": "multi", "about": "initech", "predicate": "same_as"}
    log.tell(hand.thing("acme"), confidence=0.4, **more)
    log.tell(hand.thing("acme"), polarity="negative", **more)

    assert {None} == {one.canonical_id for one in concepts(log).values()}


# ── losing ───────────────────────────────────────────────────────────────────────────────────


def test_a_lost_support_is_said(log):
    """The concept does not vanish: it says what share of its supports is gone (001 §7.5.1)."""
    facts = facts_about(log, 3)
    log.retract(facts[0])
    acme = concepts(log)["Acme"]

    assert (round(1 / 3, 4), "supported", 2) == (
        acme.support_loss_fraction,
        acme.stance,
        acme.version,
    )
    assert "v0" not in acme.summary


def test_beyond_the_threshold_it_is_deprecated(log):
    """When more than half is gone, and too little is left to make it anew."""
    facts = facts_about(log, 3)
    for fact in facts[:2]:
        log.retract(fact)

    assert ("deprecated", round(2 / 3, 4)) == (
        concepts(log)["Acme"].stance,
        concepts(log)["Acme"].support_loss_fraction,
    )


def test_with_enough_left_it_is_made_anew(log):
    """Loss beyond the threshold is a reason to synthesise (001 §7.5)."""
    facts = facts_about(log, 3)
    facts_about(log, 2)
    log.retract(*facts[:2])
    acme = concepts(log)["Acme"]

    assert ("supported", 0.0, 3) == (acme.stance, acme.support_loss_fraction, acme.input_count)


def test_new_support_brings_it_back(log):
    """A deprecated concept that is supported again is made anew under its id."""
    facts = facts_about(log, 3)
    name = concepts(log)["Acme"].id
    for fact in facts[:2]:
        log.retract(fact)
    facts_about(log, 3)

    assert (name, "supported") == (concepts(log)["Acme"].id, concepts(log)["Acme"].stance)


def test_a_tenant_sets_its_own_threshold(log):
    """Policy says how much may be lost (001 §7.5.1)."""
    document = PolicyDocument(layers=LayerRules(understanding_invalidation_threshold=0.9))
    command = SetPolicy(tier="tenant", target="acme", document=document)
    log.project(log.entry(Directive(command=command)))
    for fact in facts_about(log, 3)[:2]:
        log.retract(fact)

    assert "supported" == concepts(log)["Acme"].stance


def test_a_superseded_support_is_not_lost(log):
    """The world changed; nothing was taken back."""
    fact = log.tell("poc", about="acme", predicate="stage")
    facts_about(log, 2)
    log.correct(fact, "signed", about="acme")

    assert 0.0 == concepts(log)["Acme"].support_loss_fraction


def test_what_was_forgotten_is_in_no_version(log):
    """Forget: no summary, old or new, still says it."""
    secret = log.tell("hunter2", about="acme", predicate="password")
    facts_about(log, 12)
    assert concepts(log)["Acme"].version > 1
    log.forget(secret)

    assert not [row for place, row in log.state().items() if b"hunter2" in row]
    assert "v1" in concepts(log)["Acme"].summary


def test_what_is_left_after_forgetting_too_much_says_nothing_of_it(log):
    """Too little is left for a new synthesis; the old words go all the same."""
    secret = log.tell("hunter2", about="acme", predicate="password")
    others = facts_about(log, 2)
    log.forget(secret, *others)

    assert not [row for place, row in log.state().items() if b"hunter2" in row]
    assert "deprecated" == concepts(log)["Acme"].stance


def test_what_comes_back_elsewhere_is_counted_there(log, hand):
    """A cancellation may bring back a fact of another scope than its own."""
    facts = []
    for number in range(3):
        entry = msgspec.structs.replace(log.said(), into_scope="ws:launch", into_scope_no=9)
        facts.append(log.fact(entry, "x", about="acme", predicate=f"p{number}", scope="ws:launch"))
        log.move(entry, facts[-1:])
    log.lay(facts[0], 9)
    log.retract(facts[0])
    entry = log.entry()
    log.move(entry, [hand.revised(facts[0], entry)])

    assert {(9).to_bytes(4, "big")} == {key[:4] for key, _ in log.view.scan("concept_tallies")}


# ── on demand ────────────────────────────────────────────────────────────────────────────────


def synthesise(log, **asked):
    """A directive, and what it came to."""
    entry = log.entry(Directive(command=Synthesize(**asked)))
    log.project(entry)
    return log.view.get("concept_syntheses", entry.id)


def test_a_directive_makes_stale_concepts_anew(log):
    """Only those with inputs they have not seen, unless it is forced (001 §8.7.11)."""
    facts_about(log, 4, about="acme")
    facts_about(log, 3, about="bob")
    gentle = synthesise(log)
    forced = synthesise(log, force=True)

    assert (2, 1, None) == (gentle.looked_at, gentle.made, gentle.next)
    assert (2, 2, None) == (forced.looked_at, forced.made, forced.next)
    assert {"Acme": 3, "Bob": 2} == {name: one.version for name, one in concepts(log).items()}


def test_a_directive_may_name_topics(log):
    """A topic is a predicate, a name or an alias of the concept."""
    facts_about(log, 3, about="acme")
    for number in range(3):
        log.tell(f"v{number}", about="bob", predicate="sales_process", cardinality="multi")
    by_predicate = synthesise(log, topics=["Sales_Process"], force=True)
    by_name = synthesise(log, topics=["acme"], force=True)

    assert (1, 1) == (by_predicate.made, by_name.made)


def test_a_large_scope_takes_several_directives(log):
    """One entry makes so many; where the next goes on is left behind."""
    for number in range(limits.SYNTHESIS_CONCEPTS_MAX + 2):
        facts_about(log, 3, about=f"t{number:03}")
    first = synthesise(log, force=True)
    second = synthesise(log, force=True, after=first.next)

    assert (limits.SYNTHESIS_CONCEPTS_MAX, True) == (first.made, first.next is not None)
    assert (None, len(concepts(log))) == (second.next, first.made + second.made)


def test_an_alias_is_not_made_anew(log, hand):
    """Its inputs are the canonical one's."""
    facts_about(log, 3, about="acme")
    facts_about(log, 3, about="initech")
    same(log, hand, "initech", "acme")

    assert 1 == synthesise(log, force=True).made


def test_a_models_summary_is_a_version_of_its_own(log):
    """It comes as an annotation, so replay never calls the model."""
    facts_about(log, 3)
    acme = concepts(log)["Acme"]
    output = {"concept_id": acme.id, "summary": " Acme is a customer. "}
    entry = log.entry(Annotation(about="evt_x", model="llama", version="3", output=output))
    log.project(entry)
    told = concepts(log)["Acme"]

    assert ("Acme is a customer.", "llama", "3", 2) == (
        told.summary,
        told.synthesis_inputs.synthesizer,
        told.synthesis_inputs.synthesizer_version,
        told.version,
    )
    assert acme.last_synthesized_at == told.last_synthesized_at


@pytest.mark.parametrize(
    "output, scope",
    [
        ({"concept_id": "concept_none", "summary": "x"}, None),
        ({"concept_id": True, "summary": "x"}, None),
        ({"summary": 5}, None),
        ({"summary": "  "}, None),
        ({"summary": "x"}, "org:acme/user:mallory"),
    ],
)
def test_a_summary_that_does_not_fit_is_passed_over(log, output, scope):
    """Unknown concepts, other scopes, and what is no text."""
    facts_about(log, 3)
    acme = concepts(log)["Acme"]
    body = Annotation(
        about="evt_x", model="m", version="1", output={"concept_id": acme.id, **output}
    )
    changes = {} if scope is None else {"scope": scope, "scope_no": 7}
    log.project(log.entry(body, **changes))

    assert acme == concepts(log)["Acme"]


# ── names ────────────────────────────────────────────────────────────────────────────────────


def test_a_thing_is_called_as_it_was_called_last(log, hand):
    """The former name is an alias."""
    facts_about(log, 2)
    entry = log.said()
    renamed = msgspec.structs.replace(hand.thing("acme"), name="Acme Corp")
    log.move(entry, [log.fact(entry, "x", predicate="q", subject=renamed)])
    found = concepts(log)["Acme Corp"]

    assert ["Acme"] == found.aliases
    assert found.summary.startswith("Acme Corp: q x")


def test_long_summaries_are_cut(log):
    """A summary is a few sentences, whatever the facts say."""
    for number in range(3):
        log.tell("x" * 900, about="acme", predicate=f"p{number}")

    assert limits.CONCEPT_SUMMARY_CHARS_MAX >= len(concepts(log)["Acme"].summary)
    assert concepts(log)["Acme"].summary.endswith("…")


def test_ids_of_one_root_are_one_thing(log, hand):
    """Facts of one root are facts of one thing."""
    log.same("acme", "initech")
    facts_about(log, 2, about="acme")
    facts_about(log, 1, about="initech")

    assert 1 == len(concepts(log))


def test_facts_consolidated_elsewhere_are_understood_there(log, hand):
    """`consolidate_into`: the concept is in the scope of its facts."""
    for number in range(3):
        entry = msgspec.structs.replace(log.said(), into_scope="ws:launch", into_scope_no=9)
        log.move(
            entry, [log.fact(entry, "x", about="acme", predicate=f"p{number}", scope="ws:launch")]
        )

    assert "ws:launch" == concepts(log)["Acme"].scope
    assert [(9).to_bytes(4, "big")] == [key[:4] for key, _ in log.view.scan("concepts_in")]
