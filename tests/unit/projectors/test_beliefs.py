"""Is what is believed what the facts say, as surely as they say it, until they say otherwise?"""

from datetime import timedelta

import msgspec
import pytest

from projectors.base import Put
from projectors.beliefs import BELIEFS, due_before, due_belief
from projectors.derives import back_pointers
from schemas import limits
from schemas.entry import Annotation, Cancel, Directive, DropVocabulary, SetPolicy, SetVocabulary
from schemas.envelope import Directives
from schemas.policy import LayerRules, PolicyDocument
from schemas.times import to_us
from schemas.vocabularies import PredicateTerm, Vocabulary

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def log(hand):
    """A log over the beliefs alone."""
    return hand.Hand(BELIEFS)


def beliefs(log):
    """The beliefs known now, by what they hold true."""
    found = [one for one in log.records("beliefs") if one.recorded_to is None]
    return {one.claim.object.value: one for one in found}


def only(log):
    (belief,) = beliefs(log).values()
    return belief


# ── making ───────────────────────────────────────────────────────────────────────────────────


def test_a_fact_becomes_a_belief(log):
    """A claim, how sure, the fact it rests on, and the four times (001 §7.4)."""
    fact = log.tell("Paris")
    belief = only(log)

    assert (fact.subject, "lives_in", fact.object) == (
        belief.claim.subject,
        belief.claim.predicate,
        belief.claim.object,
    )
    assert ("supported", 0.9, 1) == (belief.stance, belief.confidence, belief.version)
    assert (0.8, 0.97) == pytest.approx(
        (belief.confidence_interval.lower, belief.confidence_interval.upper), abs=0.01
    )
    assert [("fact", fact.id, "supports")] == [
        (one.type, one.id, one.polarity) for one in belief.supports
    ]
    assert (fact.valid_from, None, log.at, None) == (
        belief.valid_from,
        belief.valid_to,
        belief.recorded_from,
        belief.recorded_to,
    )
    assert f"/v1/beliefs/why?belief_id={belief.id}" == belief.why_url
    assert (False, None, 0, log.at) == (
        belief.partial,
        belief.partial_reason,
        belief.revision_count,
        belief.last_revised_at,
    )


def test_it_is_found_by_scope_and_by_what_it_is_about(log, hand):
    """One row a belief in its scope, and one for each thing that it speaks of."""
    log.tell(hand.thing("acme"), predicate="works_at")
    belief = log.records("beliefs")[0]
    raw = hand.raw("belief", belief.id)

    assert [hand.SCOPE_NO.to_bytes(4, "big") + raw] == [k for k, _ in log.view.scan("beliefs_in")]
    about = [key for key, _ in log.view.scan("beliefs_about", hand.SCOPE_NO.to_bytes(4, "big"))]
    assert 2 == len(about)
    assert {raw} == {key[-16:] for key in about}


def test_events_point_to_the_belief(log):
    """The trail goes both ways: from the event to the belief that rests on it."""
    fact = log.tell("Paris")
    changes = list(back_pointers(log.changes, log.view))

    assert [[only(log).id]] == [change.value.ids for change in changes]
    assert [fact.supports] == [list(c.supports) for c in log.changes if c.record_id is not None]


def test_later_stages_hear_which_beliefs_moved(log):
    """One row says which beliefs this entry made, revised or let go."""
    log.tell("Paris")
    row = log.view.get("beliefs_moved", b"")

    assert (log.offset, [only(log).id]) == (row.offset, row.ids)


def test_facts_that_did_not_move_here_do_nothing(log):
    """What an earlier entry moved is not weighed again."""
    log.tell("Paris")
    before = log.state()
    log.project(log.said())

    assert before == log.state()


def test_a_weak_claim_is_not_made(log):
    """Below the floor there is nothing to believe (001 §18.2.16)."""
    log.tell("Paris", confidence=0.29)

    assert {} == beliefs(log)
    assert [] == log.records("belief_scales")


def test_a_client_may_want_no_beliefs(log):
    """`extract` names what is derived from an event (001 §3.5.3)."""
    log.tell("Paris", directives=Directives(extract=["facts"]))

    assert {} == beliefs(log)


# ── weighing ─────────────────────────────────────────────────────────────────────────────────


def test_others_who_agree_make_it_surer(log):
    """Independent sources add up, and the interval tightens."""
    log.tell("Paris", confidence=0.7)
    first = only(log)
    log.tell("Paris", by="user:bob", confidence=0.7)
    second = only(log)

    assert first.id == second.id
    assert (0.7, 0.8125) == (first.confidence, second.confidence)
    assert second.confidence_interval.lower > first.confidence_interval.lower
    assert (2, 2, 1) == (second.version, second.evidence_count, second.revision_count)


def test_one_who_repeats_makes_it_hardly_surer(log):
    """The second time counts half, and so on: nobody talks a claim into certainty."""
    for _ in range(30):
        log.at += HOUR
        log.tell("Paris", confidence=0.7)

    assert 0.8125 == pytest.approx(only(log).confidence, abs=0.002)
    assert 30 == only(log).evidence_count


def test_a_fact_told_again_is_weighed_again(log, hand):
    """Facts merge what is said twice; each telling brings its own part, by its own speaker."""
    fact = log.tell("Paris", confidence=0.7)
    log.at += HOUR
    entry = log.said("user:bob")
    again = hand.revised(fact, entry, supports=[*fact.supports, entry.event_id])
    log.hear(entry, [again], {fact.id: 0.7})

    assert (0.8125, 1) == (only(log).confidence, only(log).evidence_count)


def test_a_fact_heard_again_but_not_moved_is_weighed(log):
    """Beyond the events a fact may cite, a repetition is evidence all the same."""
    fact = log.tell("Paris", confidence=0.7)
    log.at += HOUR
    log.hear(log.said("user:bob"), [], {fact.id: 0.7})

    assert 0.8125 == only(log).confidence


def test_a_withdrawn_telling_is_taken_off(log, hand):
    """When one of two events is cancelled, the belief is as sure as the other one alone."""
    fact = log.tell("Paris", confidence=0.7)
    log.at += HOUR
    entry = log.said("user:bob")
    again = hand.revised(fact, entry, supports=[*fact.supports, entry.event_id])
    log.hear(entry, [again], {fact.id: 0.7})
    log.move(log.entry(), [hand.revised(again, log.entry(), supports=fact.supports)])

    assert 0.7 == only(log).confidence


def test_tellings_beyond_those_kept_are_weighed_together(log, hand):
    """A fact told by very many is as sure as they make it, and goes as a whole."""
    fact = log.tell("Paris", confidence=0.3)
    for number in range(limits.BELIEF_TELLINGS_MAX + 4):
        log.at += HOUR
        log.hear(log.said(f"user:u{number}"), [], {fact.id: 0.3})
    (row,) = log.records("belief_evidence")
    told = only(log).confidence
    log.retract(fact)

    assert (limits.BELIEF_TELLINGS_MAX, True) == (len(row.tellings), row.rest > 0)
    assert told > 0.6
    assert [] == log.records("belief_scales")


def test_a_model_speaks_for_the_event_it_read(log, hand):
    """Its reading is the event's telling, not somebody else's."""
    heard = log.said()
    body = Annotation(about=heard.event_id, model="m", version="1", output={})
    entry = log.entry(body)
    fact = log.fact(entry, "Paris", supports=[heard.event_id], asserted_by=None)
    log.move(entry, [fact])
    (row,) = log.records("belief_evidence")

    assert [heard.id] == [one.event for one in row.tellings]


def test_denials_bring_it_down_and_overturn_it(log):
    """What is denied is kept with its stance, for explanation (001 §7.4.1)."""
    log.tell("vegetarian", predicate="is", cardinality="multi")
    log.tell("vegetarian", predicate="is", cardinality="multi", by="user:bob", polarity="negative")
    mixed = only(log)
    log.tell("vegetarian", predicate="is", cardinality="multi", by="user:eve", polarity="negative")
    overturned = only(log)

    assert ("uncertain", 0.4821) == (mixed.stance, mixed.confidence)
    assert ("contradicted", True) == (overturned.stance, overturned.confidence < 0.4)
    assert ["supports", "against", "against"] == [one.polarity for one in overturned.supports]


def test_a_denial_alone_is_a_belief_that_it_is_not_so(log):
    """Nobody said that Alice smokes; that she does not is worth knowing."""
    log.tell("smoking", predicate="does", polarity="negative")
    belief = only(log)

    assert ("contradicted", True) == (belief.stance, belief.confidence < 0.1)
    assert ["against"] == [one.polarity for one in belief.supports]


def test_supports_are_bounded_and_sums_are_not(log):
    """The newest and the heaviest are named; the evidence of all counts."""
    heavy = log.tell("Paris", confidence=0.95)
    for number in range(40):
        log.at += HOUR
        log.tell("Paris", by=f"user:u{number}", confidence=0.4)
    belief = only(log)
    newest = [one.id for one in belief.supports[-limits.BELIEF_SUPPORTS_MAX // 2 :]]

    assert limits.BELIEF_SUPPORTS_MAX == len(belief.supports)
    assert heavy.id == belief.supports[0].id
    assert sorted(newest) == newest
    assert 41 == belief.evidence_count
    assert limits.BELIEF_SOURCES_MAX + 1 >= len(log.records("belief_scales")[0].sources)


def test_two_spellings_are_one_claim(log):
    """Case, spaces and the way a number is written make no other claim."""
    log.tell("New  York")
    log.tell(200, predicate="seats", by="user:bob")
    log.at += HOUR
    log.tell("new york ", by="user:bob")
    log.tell(200.0, predicate="seats", by="user:eve")

    assert [2, 2] == [belief.evidence_count for belief in log.records("beliefs")]


# ── a world that changes ─────────────────────────────────────────────────────────────────────


def test_when_the_world_changes_the_old_belief_ends_and_the_new_one_stands(log):
    """Never two live: the former is true until then, the latter from then on (001 §7.4)."""
    paris = log.tell("Paris")
    log.at += HOUR
    ended, rome = log.change(paris, "Rome")
    found = beliefs(log)

    assert (rome.valid_from, found["Rome"].id) == (
        found["Paris"].valid_to,
        found["Paris"].superseded_by,
    )
    assert (None, "supported", 0.9) == (
        found["Rome"].valid_to,
        found["Rome"].stance,
        found["Rome"].confidence,
    )
    assert [("newer_wins", found["Rome"].id)] == [
        (one.resolution, one.belief_id) for one in found["Paris"].contradicts
    ]
    assert [("newer_wins", found["Paris"].id)] == [
        (one.resolution, one.belief_id) for one in found["Rome"].contradicts
    ]
    assert 0.81 == found["Rome"].contradicts[0].tension
    assert ended.valid_to == rome.valid_from


def test_what_was_known_before_the_change_is_still_known_of_then(log, hand):
    """A later entry never changes an answer as of before it."""
    paris = log.tell("Paris")
    before = log.at
    log.at += HOUR
    log.change(paris, "Rome")

    (then,) = log.known("beliefs", before)
    assert ("Paris", None, 1) == (then.claim.object.value, then.valid_to, then.version)


def test_a_correction_closes_the_belief_that_was_never_true(log, hand):
    """What is replaced from its beginning is known no more, and says by what."""
    paris = log.tell("Paris")
    log.at += HOUR
    log.correct(paris, "Rome")
    rome = only(log)
    (then,) = [one for one in log.records("beliefs") if one.recorded_to is not None]

    assert ("Rome", paris.valid_from) == (rome.claim.object.value, rome.valid_from)
    assert ("Paris", rome.recorded_from, rome.id) == (
        then.claim.object.value,
        then.recorded_to,
        then.superseded_by,
    )
    assert [then.id] == [one.belief_id for one in rome.contradicts]
    assert [] == log.records("beliefs_deleted")


def test_what_was_so_ended_and_is_so_again_is_two_beliefs(log, hand):
    """Each holds for its own time, so both questions are answered right."""
    paris = log.tell("Paris")
    log.at += HOUR
    _, rome = log.change(paris, "Rome")
    log.at += HOUR
    log.change(rome, "Paris")
    spans = [(one.claim.object.value, one.valid_to is None) for one in log.records("beliefs")]

    assert [("Paris", False), ("Rome", False), ("Paris", True)] == spans


def test_late_news_about_an_earlier_time_is_its_own_belief(log, hand):
    """What was so long before is believed for then, and leaves the present as it is."""
    paris = log.tell("Paris")
    log.tell("Lyon", valid_from=paris.valid_from - 9 * hand.DAY, valid_to=paris.valid_from)
    found = beliefs(log)

    assert (None, paris.valid_from) == (found["Paris"].valid_to, found["Lyon"].valid_to)
    assert ("supported", "supported") == (found["Paris"].stance, found["Lyon"].stance)
    assert [] == found["Paris"].contradicts


def test_earlier_evidence_moves_the_beginning(log, hand):
    """It was so before it was first said."""
    paris = log.tell("Paris")
    log.tell("Paris", by="user:bob", valid_from=paris.valid_from - hand.DAY)

    assert paris.valid_from - hand.DAY == only(log).valid_from


def test_an_end_told_is_an_end_believed(log, hand):
    """`Left Acme in May`: the fact gets its end, and the belief with it, at once."""
    acme = log.tell("Acme", predicate="works_at", cardinality="multi")
    entry = log.said()
    log.move(entry, [hand.revised(acme, entry, valid_to=entry.recorded_at)])

    assert entry.recorded_at == only(log).valid_to
    assert None is only(log).superseded_by


def test_a_denial_from_now_on_is_a_belief_from_now_on(log, hand):
    """`I no longer live in Paris`: until then it was so, from then on it is not."""
    paris = log.tell("Paris")
    log.at += HOUR
    entry = log.said()
    denial = log.fact(entry, "Paris", polarity="negative")
    ended = hand.revised(paris, entry, valid_to=denial.valid_from, superseded_by=denial.id)
    log.move(entry, [denial, ended])
    was, is_not = log.records("beliefs")

    assert ("supported", denial.valid_from, 0.9) == (was.stance, was.valid_to, was.confidence)
    assert ("contradicted", denial.valid_from, None) == (
        is_not.stance,
        is_not.valid_from,
        is_not.valid_to,
    )
    assert is_not.id == was.superseded_by


# ── rivals ───────────────────────────────────────────────────────────────────────────────────


def test_values_that_exclude_each_other_share_the_confidence(log):
    """Facts may leave a conflict open; beliefs then weigh against each other (001 §7.4)."""
    log.tell("Paris")
    log.tell("Rome", by="user:bob", partial=True, partial_reason="conflict_unresolved")
    paris, rome = beliefs(log)["Paris"], beliefs(log)["Rome"]

    assert ("uncertain", "uncertain") == (paris.stance, rome.stance)
    assert 1 >= paris.confidence + rome.confidence
    assert [(rome.id, "unresolved")] == [
        (one.belief_id, one.resolution) for one in paris.contradicts
    ]
    assert [(paris.id, "unresolved")] == [
        (one.belief_id, one.resolution) for one in rome.contradicts
    ]


def test_a_claim_that_was_refused_is_a_rival_of_what_stands(log, hand):
    """A less trusted voice does not override a trusted one, and is not silently dropped."""
    paris = log.tell("Paris", confidence=0.95)
    entry = log.said("agent:bot")
    refused = log.fact(
        entry, "Rome", trust="low", recorded_to=entry.recorded_at, superseded_by=paris.id
    )
    log.move(entry, [refused])
    found = beliefs(log)

    assert ("supported", "contradicted") == (found["Paris"].stance, found["Rome"].stance)
    assert {"higher_confidence_wins"} == {
        one.resolution for name in found for one in found[name].contradicts
    }


def test_support_for_one_rival_moves_the_other(log):
    """Both are settled in the same entry, so their sum never exceeds one."""
    log.tell("Paris")
    log.tell("Rome", by="user:bob")
    for name in ("eve", "dan", "kim"):
        log.tell("Rome", by=f"user:{name}")
        paris, rome = beliefs(log)["Paris"], beliefs(log)["Rome"]

        assert 1 >= paris.confidence + rome.confidence
    assert ("contradicted", "supported") == (paris.stance, rome.stance)


def test_a_rival_that_gave_way_no_longer_weighs(log):
    """When the conflict ends, what is left is as sure as its own evidence."""
    log.tell("Paris")
    rome = log.tell("Rome", by="user:bob")
    log.retract(rome)

    assert (0.9, []) == (only(log).confidence, only(log).contradicts)


# ── when it is revised ───────────────────────────────────────────────────────────────────────


def test_small_steps_wait_for_the_cooldown(log, hand):
    """Within five minutes a step of less than 0.05 is held, visibly (001 §7.4)."""
    log.tell("Paris", confidence=0.9)
    log.tell("Paris", by="user:bob", confidence=0.5)
    belief = only(log)
    held = log.view.get("beliefs_held", hand.raw("belief", belief.id))

    assert (1, 0.9, 1) == (belief.version, belief.confidence, belief.evidence_count)
    assert log.at == held.since


def test_the_next_evidence_absorbs_what_waits(log, hand):
    """What was held is in the next version, and the former one says since when it was not all."""
    log.tell("Paris", confidence=0.9)
    log.tell("Paris", by="user:bob", confidence=0.5)
    since = log.at
    log.at += HOUR
    log.tell("Paris", by="user:eve", confidence=0.5)
    first, second = log.versions("beliefs", only(log).id)

    assert (since, None) == (first.held_from, second.held_from)
    assert (2, 3) == (second.version, second.evidence_count)
    assert None is log.view.get("beliefs_held", hand.raw("belief", second.id))
    assert [] == list(log.view.scan("belief_due"))


def test_a_tick_absorbs_what_waits(log, hand):
    """Nothing else happens, and still the evidence is not left lying for ever."""
    log.tell("Paris", confidence=0.9)
    log.tell("Paris", by="user:bob", confidence=0.5)
    (key, _) = next(iter(log.view.scan("belief_due")))
    name = only(log).id
    log.tick(name, "ep_other", "belief_none")
    too_early = only(log).version
    log.at += 6 * hand.MINUTE
    log.tick(name)

    assert hand.raw("belief", name) == due_belief(key)
    assert key < due_before(to_us(log.at))
    assert (1, 2) == (too_early, only(log).version)
    assert 2 == only(log).evidence_count


def test_a_tick_that_comes_too_often_puts_it_off(log, hand):
    """Beyond the revisions of an hour the evidence waits on, and is looked at again later."""
    log.tell("jazz", cardinality="multi")
    for _ in range(7):
        log.retract(log.tell("jazz", by="user:bob", polarity="negative", cardinality="multi"))
    log.tell("jazz", by="user:late", confidence=0.3, cardinality="multi")
    name, before = only(log).id, only(log).version
    log.at += 6 * hand.MINUTE
    log.tick(name)
    ((key, _),) = log.view.scan("belief_due")
    put_off = only(log).version
    log.at += HOUR
    log.tick(name)

    assert (before, before + 1) == (put_off, only(log).version)
    assert key > due_before(to_us(log.at - HOUR))


def test_held_evidence_that_is_withdrawn_waits_no_more(log, hand):
    """The version it waited for is made, and shows that nothing came of it."""
    log.tell("Paris")
    late = log.tell("Paris", by="user:bob", confidence=0.5)
    log.retract(late)

    assert (2, 0.9, 1) == (only(log).version, only(log).confidence, only(log).evidence_count)
    assert [] == log.records("beliefs_held")


def test_large_steps_do_not_wait(log):
    """A step that counts is made at once."""
    log.tell("Paris", confidence=0.6)
    log.tell("Paris", by="user:bob", confidence=0.6)

    assert 2 == only(log).version


def test_no_more_than_so_many_revisions_in_an_hour(log):
    """A storm of evidence is twelve versions and a remainder that waits."""
    for number in range(60):
        log.tell("Paris", by=f"user:u{number}", confidence=0.3, cardinality="multi")
    storm = only(log)
    log.at += HOUR
    log.tell("Paris", by="user:late", confidence=0.3, cardinality="multi")

    assert 13 >= storm.version
    assert storm.version + 1 == only(log).version
    assert 61 == only(log).evidence_count


def test_the_world_does_not_wait(log):
    """An end, a rival and a lost support are shown at once, whatever was shown before."""
    paris = log.tell("Paris")
    for number in range(20):
        _, rome = log.change(paris, f"Rome {number}")
        paris = rome

    assert 20 == sum(1 for one in log.records("beliefs") if one.valid_to is not None)


def test_nothing_new_is_no_new_version(log):
    """A repetition that weighs nothing changes nothing."""
    fact = log.tell("Paris")
    for _ in range(40):
        log.at += HOUR
        log.hear(log.said(), [], {fact.id: 0.9})
    before = log.state()
    log.at += HOUR
    log.hear(log.said(), [], {fact.id: 0.9})
    after = log.state()

    assert {"facts_heard"} == {place[1] for place in after if before.get(place) != after[place]}


# ── letting go ───────────────────────────────────────────────────────────────────────────────


def test_a_belief_without_support_is_deleted(log, hand):
    """Below the floor by loss of support: 410 by id, in no list, and still known of then."""
    fact = log.tell("Paris")
    before = log.at
    log.at += HOUR
    entry = log.retract(fact)
    (belief,) = log.records("beliefs")
    mark = log.view.get("beliefs_deleted", hand.raw("belief", belief.id))

    assert {} == beliefs(log)
    assert (entry.recorded_at, entry.event_id, False) == (mark.at, mark.by, mark.forgotten)
    assert [belief.id] == [one.id for one in log.known("beliefs", before)]
    assert [] == log.known("beliefs", log.at)
    assert [belief.id] == log.view.get("beliefs_moved", b"").ids


def test_a_belief_in_what_was_forgotten_leaves_nothing(log, hand):
    """No version, no pointer, only the mark that an id was once given."""
    fact = log.tell("Paris", confidence=0.6)
    log.tell("Rome", confidence=0.6, by="user:bob")
    log.forget(fact)
    left = beliefs(log)
    (mark,) = log.records("beliefs_deleted")

    assert {"Rome"} == set(left)
    assert mark.forgotten
    assert not [place for place, row in log.state().items() if b"Paris" in row]
    assert 1 == len(list(log.view.scan("beliefs_in")))


def test_a_belief_with_some_support_left_is_weighed_anew(log):
    """Invalidation is part of the same entry, and nothing waits for it."""
    first = log.tell("Paris")
    log.tell("Paris", by="user:bob", confidence=0.6)
    log.retract(first)

    assert (0.6, 1, "supported") == (
        only(log).confidence,
        only(log).evidence_count,
        only(log).stance,
    )


def test_what_little_is_left_of_a_deleted_belief_weighs_no_more(log):
    """A hint too weak to hold it up alone is no evidence of anything afterwards."""
    strong = log.tell("Paris")
    weak = log.tell("Paris", confidence=0.27)
    log.retract(strong)

    assert {} == beliefs(log)
    assert [] == log.records("belief_evidence")
    log.retract(weak)
    assert [] == log.records("belief_evidence")


def test_a_claim_made_again_after_deletion_is_a_new_belief(log):
    """An id that was answered with 410 does not come back."""
    log.retract(log.tell("Paris"))
    log.tell("Paris")

    assert 2 == len(log.records("beliefs"))
    assert 1 == len(beliefs(log))


def test_a_denied_belief_is_kept_below_the_floor(log):
    """What was overturned is an answer, not a gap (001 §7.4.1)."""
    fact = log.tell("Paris", confidence=0.6, cardinality="multi")
    log.tell("Paris", by="user:bob", polarity="negative", cardinality="multi")
    log.retract(fact)

    assert "contradicted" == only(log).stance
    assert only(log).confidence < limits.CONFIDENCE_FLOOR


def test_a_tenant_sets_its_own_floor(log):
    """Policy says from which confidence on a belief is kept (001 §7.4)."""
    document = PolicyDocument(layers=LayerRules(confidence_floor=0.7))
    command = SetPolicy(tier="tenant", target="acme", document=document)
    log.project(log.entry(Directive(command=command)))
    log.tell("Paris", confidence=0.65)
    log.tell("Rome", confidence=0.75)

    assert {"Rome"} == set(beliefs(log))


def test_redacted_support_is_said_and_decays(log, hand):
    """001 §11.3 phase 5: half the confidence, uncertain, partial; below the floor it goes."""
    fact = log.tell("Paris")
    weak = log.tell("Rome", predicate="likes", confidence=0.5)
    entry = log.entry()
    reason = {"partial": True, "partial_reason": "supporting_evidence_redacted"}
    log.move(entry, [hand.revised(one, entry, **reason) for one in (fact, weak)])
    belief = only(log)

    assert (0.45, "uncertain", True, 1.0) == (
        belief.confidence,
        belief.stance,
        belief.supporting_evidence_redacted,
        belief.supporting_evidence_redacted_fraction,
    )
    assert (True, "supporting_evidence_redacted") == (belief.partial, belief.partial_reason)
    assert 1 == len(log.records("beliefs_deleted"))


def test_partly_redacted_support_is_a_fraction(log, hand):
    """As long as something can be looked at the confidence stands."""
    fact = log.tell("Paris")
    log.tell("Paris", by="user:bob")
    entry = log.entry()
    partial = {"partial": True, "partial_reason": "supporting_evidence_redacted"}
    log.move(entry, [hand.revised(fact, entry, **partial)])

    assert (0.5, True, False) == (
        only(log).supporting_evidence_redacted_fraction,
        only(log).supporting_evidence_redacted,
        only(log).partial,
    )


# ── lapsing ──────────────────────────────────────────────────────────────────────────────────


def test_a_belief_may_be_given_a_life(log, hand):
    """`ttl_for_belief_layer` is an end of knowing, set in advance."""
    log.tell("Paris", directives=Directives(ttl_for_belief_layer="P30D"))
    (belief,) = log.records("beliefs")

    assert log.at + 30 * hand.DAY == belief.recorded_to


def test_the_longest_life_counts(log, hand):
    """Known until the last of what it rests on lapses."""
    for length, by in (("P1D", "user:alice"), ("P9D", "user:bob"), ("P2D", "user:eve")):
        log.at += HOUR
        log.tell("Paris", by=by, directives=Directives(ttl_for_belief_layer=length))
    (belief,) = log.records("beliefs")

    assert log.at - HOUR - SECOND + 9 * hand.DAY == belief.recorded_to


def test_a_life_ends_and_is_not_lengthened_by_what_comes_later(log, hand):
    """Known until it lapsed, unknown until it is said again, and then afresh."""
    log.tell("Paris", directives=Directives(ttl_for_belief_layer="PT1H"), confidence=0.8)
    lapsed = log.at + HOUR
    log.at += 9 * HOUR
    log.tell("Paris", confidence=0.6)
    (belief,) = log.records("beliefs")

    assert [] == log.known("beliefs", lapsed)
    assert [1] == [one.version for one in log.known("beliefs", lapsed - SECOND)]
    assert (0.6, None, 2, 1) == (
        belief.confidence,
        belief.recorded_to,
        belief.version,
        belief.evidence_count,
    )


def test_what_lapsed_cannot_be_taken_off_again(log, hand):
    """A fact that weighed in a former life has no part in the present one."""
    old = log.tell("Paris", recorded_to=log.at + HOUR)
    log.at += 9 * HOUR
    log.tell("Paris", by="user:bob", confidence=0.6)
    log.retract(old)

    assert 0.6 == only(log).confidence


def test_a_longer_life_is_shown_before_the_shorter_one_ends(log, hand):
    """Evidence that lasts makes the belief last."""
    log.tell("Paris", directives=Directives(ttl_for_belief_layer="PT1H"))
    log.tell("Paris", by="user:bob", confidence=0.3)

    assert None is only(log).recorded_to


# ── calibration ──────────────────────────────────────────────────────────────────────────────


def test_a_claim_that_held_and_one_that_did_not_are_scored(log):
    """The Brier score: the mean of the squared distance from what turned out."""
    log.tell("Paris", predicate="likes", confidence=0.8, cardinality="multi")
    log.tell("Paris", predicate="likes", confidence=0.8, cardinality="multi", by="user:bob")
    wrong = log.tell("Rome", predicate="likes", confidence=0.6, cardinality="multi")
    log.retract(wrong)
    log.tell("Oslo", predicate="likes")
    block = beliefs(log)["Oslo"].calibration

    assert (2, (0.2**2 + 0.6**2) / 2) == (block.samples, pytest.approx(block.brier_score_30d))
    assert "beta_v1" == block.model


def test_without_a_resolved_claim_nothing_is_said(log):
    """No samples, no score."""
    log.tell("Paris")
    block = only(log).calibration

    assert (0, None, None) == (block.samples, block.brier_score_30d, block.last_calibrated_at)


def test_a_changed_world_proves_the_old_belief_right(log):
    """What held until the change was no error."""
    log.change(log.tell("Paris"), "Rome")
    log.at += HOUR
    log.tell("blue", predicate="eyes")
    block = beliefs(log)["blue"].calibration

    assert (1, 0.01) == (block.samples, pytest.approx(block.brier_score_30d))


def test_the_window_moves_with_the_logs_time(log, hand):
    """What was resolved more than thirty days ago is forgotten, and the row does not grow."""
    for number in range(80):
        log.at += hand.DAY
        log.retract(log.tell(f"Paris {number}"))
    log.tell("Rome")
    rows = log.records("belief_calibration")

    assert limits.CALIBRATION_DAYS == only(log).calibration.samples
    assert {limits.CALIBRATION_DAYS} == {len(row.days) for row in rows}


def test_a_family_with_samples_of_its_own_is_scored_by_itself(log):
    """One kind of claim may be right while another is not."""
    for number in range(limits.CALIBRATION_SAMPLES_MIN):
        log.retract(log.tell(f"Paris {number}", predicate="seen_in"))
        log.tell(f"x{number}", predicate="likes", cardinality="multi")
        log.tell(f"x{number}", predicate="likes", cardinality="multi", by="user:bob")
    log.tell("Rome", predicate="seen_in")
    log.tell("Rome", predicate="likes", cardinality="multi")
    found = {one.claim.predicate: one.calibration for one in log.records("beliefs")[-2:]}

    assert pytest.approx(0.81) == found["seen_in"].brier_score_30d
    assert pytest.approx(0.01) == found["likes"].brier_score_30d


# ── other scopes ─────────────────────────────────────────────────────────────────────────────


def test_consolidated_facts_are_believed_where_they_live(log, hand):
    """`consolidate_into`: the belief is in the scope of the fact, not of the event."""
    entry = msgspec.structs.replace(log.said(), into_scope="ws:launch", into_scope_no=9)
    log.move(entry, [log.fact(entry, "Paris", scope="ws:launch")])

    assert "ws:launch" == only(log).scope
    assert [(9).to_bytes(4, "big")] == [key[:4] for key, _ in log.view.scan("beliefs_in")]


def test_scopes_do_not_mix(log):
    """The same claim in two scopes is two beliefs."""
    log.tell("Paris")
    entry = msgspec.structs.replace(log.said(), scope="org:acme/user:bob", scope_no=5)
    log.move(entry, [log.fact(entry, "Paris")])

    assert 2 == len(log.records("beliefs"))


def test_ids_that_are_the_same_thing_are_one_subject(log, hand):
    """Facts of one root are facts of one thing."""
    log.same("alice", "liz")
    log.tell("Paris")
    log.at += HOUR
    log.tell("Paris", about="liz", by="user:bob")

    assert 2 == only(log).evidence_count


def test_a_belief_in_words_that_are_gone_is_deprecated(log):
    """When its vocabulary changes, a claim is kept for as_of and not surfaced (001 §7.4.1)."""
    for number, predicate in enumerate(("stage", "seats")):
        log.tell(number, predicate=predicate, vocabulary="sales")
    vocabulary = Vocabulary(name="sales", predicates=[PredicateTerm(id="stage")])
    log.project(log.entry(Directive(command=SetVocabulary(vocabulary=vocabulary))))
    changed = [one.stance for one in log.records("beliefs")]
    log.project(log.entry(Directive(command=DropVocabulary(name="sales"))))

    assert ["supported", "deprecated"] == changed
    assert ["deprecated", "deprecated"] == [one.stance for one in log.records("beliefs")]


def test_what_is_said_again_is_no_longer_deprecated(log):
    """New evidence is weighed as any other."""
    fact = log.tell("poc", predicate="stage", vocabulary="sales")
    log.project(log.entry(Directive(command=DropVocabulary(name="sales"))))
    log.at += HOUR
    log.hear(log.said("user:bob"), [], {fact.id: 0.9})

    assert "supported" == only(log).stance


def test_a_belief_that_comes_back_meets_its_rivals(log, hand):
    """What ended and is so again weighs against what was let stand meanwhile."""
    paris = log.tell("Paris")
    ended, rome = log.change(paris, "Rome")
    log.tell("Oslo", by="user:bob")
    entry = log.entry()
    again = hand.revised(ended, entry, valid_to=None, superseded_by=None)
    log.move(entry, [again, hand.closed(rome, entry)])
    found = beliefs(log)

    assert ({"Paris", "Oslo"}, None) == (set(found), found["Paris"].valid_to)
    assert 1 >= found["Paris"].confidence + found["Oslo"].confidence
    assert [found["Oslo"].id] == [one.belief_id for one in found["Paris"].contradicts]


def refuse(log, value, standing, by="agent:bot"):
    """A claim that does not get past what stands."""
    entry = log.said(by)
    closed = {"trust": "low", "recorded_to": entry.recorded_at, "superseded_by": standing.id}
    fact = log.fact(entry, value, **closed)
    log.move(entry, [fact])
    return fact


def test_a_refused_claim_stays_overturned_when_what_refused_it_goes(log):
    """That something was wrong does not make the opposite right."""
    paris = log.tell("Paris")
    refuse(log, "Oslo", paris)
    log.retract(paris)

    assert [("contradicted", [])] == [
        (one.stance, one.contradicts) for one in beliefs(log).values()
    ]


def test_a_refused_claim_does_not_join_what_is_known(log):
    """It was about another time than the one for which the same was accepted."""
    paris = log.tell("Paris")
    refuse(log, "Rome", paris)
    log.at += HOUR
    _, rome = log.change(paris, "Rome")
    live = [one for one in log.records("beliefs") if one.stance == "supported"]

    assert rome.valid_from == live[-1].valid_from == live[0].valid_to
    assert ["contradicted"] == [
        one.stance for one in log.records("beliefs") if one.valid_from < rome.valid_from
    ][1:]


def test_a_refused_claim_may_come_to_stand(log, hand):
    """When the facts let it, it is believed as any other, and the refused one says so."""
    paris = log.tell("Paris")
    refused = refuse(log, "Oslo", paris)
    entry = log.entry()
    stands = hand.revised(refused, entry, recorded_to=None, superseded_by=None)
    log.move(entry, [hand.closed(paris, entry), stands])
    (before,) = [one for one in log.records("beliefs") if one.stance == "contradicted"]
    (after,) = beliefs(log).values()

    assert ("Oslo", "supported", []) == (
        after.claim.object.value,
        after.stance,
        [one for one in after.contradicts if one.resolution != "newer_wins"],
    )
    assert (entry.recorded_at, after.id) == (before.recorded_to, before.superseded_by)


def test_a_refused_claim_goes_with_its_event(log, hand):
    """The fact does not move when it was never known; its event is cancelled all the same."""
    paris = log.tell("Paris")
    entry = log.said("agent:bot")
    refused = {"trust": "low", "recorded_to": entry.recorded_at, "superseded_by": paris.id}
    log.move(entry, [log.fact(entry, "Oslo", **refused)])
    contested = beliefs(log)["Paris"].confidence
    log.point(entry.event_id, log.fact(entry, "Oslo").id)
    cancel = Cancel(event_id=entry.event_id, offset=entry.offset, stages=[])
    log.project(log.entry(Directive(command=cancel)))

    assert (True, 0.9) == (contested < 0.9, only(log).confidence)


def test_facts_that_come_back_elsewhere_find_their_scope(log, hand):
    """A cancellation may bring back what lies in another scope than its own."""
    entry = msgspec.structs.replace(log.said(), into_scope="ws:launch", into_scope_no=9)
    fact = log.fact(entry, "Paris", scope="ws:launch")
    log.move(entry, [fact])
    log.retract(fact)
    log.lay(fact, 9)
    entry = log.entry()
    log.move(entry, [hand.revised(fact, entry)])

    assert "ws:launch" == only(log).scope
    assert {(9).to_bytes(4, "big")} == {key[:4] for key, _ in log.view.scan("beliefs_in")}


def test_a_put_names_its_record_only_when_a_version_came_to_be(log):
    """Held evidence moves rows of its own, and no record."""
    log.tell("Paris", confidence=0.9)
    log.tell("Paris", by="user:bob", confidence=0.5)

    assert not [c for c in log.changes if isinstance(c, Put) and c.table == "beliefs"]
