"""Is the reason that is given the reason that is recorded?"""

from datetime import timedelta

import msgspec
import pytest

from projectors.beliefs import BELIEFS
from projectors.beliefs.rows import Held
from projectors.beliefs.why import as_known, why
from schemas import limits
from schemas.envelope import PlainText
from schemas.layers import Episode, Event, EventContext

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def log(hand):
    """A log over the beliefs alone."""
    return hand.Hand(BELIEFS)


def event(log, fact, *derives):
    """The event behind a fact."""
    return Event(
        id=fact.supports[0],
        scope=fact.scope,
        actor="user:alice",
        modality="conversation",
        content=PlainText(text="I live in Paris now"),
        context=EventContext(observed_at=log.at, recorded_at=log.at),
        derives=[fact.id, *derives],
        wal_offset=log.offset,
    )


def episode(fact):
    """An episode that holds the event of a fact."""
    return Episode(
        id="ep_0",
        scope=fact.scope,
        name="Moving",
        summary="Alice moves.",
        events=fact.supports,
        started_at=fact.valid_from,
        ended_at=fact.valid_from,
        valid_from=fact.valid_from,
        valid_to=None,
        recorded_from=fact.recorded_from,
        recorded_to=None,
        actors_involved=[],
        centrality_score=0.0,
        causal_chain=[],
        supports=fact.supports,
        sealed=True,
    )


def known(*records):
    return {record.id: record for record in records}.get


def test_the_graph_goes_from_the_belief_to_the_events(log):
    """Supports, the events they were found in, and the episodes those are part of."""
    fact = log.tell("Paris")
    (belief,) = log.records("beliefs")
    found = why(belief, known(fact, event(log, fact, "ep_0"), episode(fact)))
    graph = found.support_graph

    assert [("belief", belief.id), ("fact", fact.id), ("event", fact.supports[0])] == [
        (node.type, node.id) for node in graph.nodes[:3]
    ]
    assert ("episode", "ep_0", "Alice moves.") == (
        graph.nodes[3].type,
        graph.nodes[3].id,
        graph.nodes[3].summary,
    )
    assert [
        (belief.id, fact.id, "supported_by"),
        (fact.id, fact.supports[0], "extracted_from"),
        ("ep_0", fact.supports[0], "contains"),
    ] == [(edge.start, edge.to, edge.relation) for edge in graph.edges]
    assert ("Alice lives in Paris", "I live in Paris now") == (
        graph.nodes[1].summary,
        graph.nodes[2].summary,
    )


def test_the_narrative_says_what_is_recorded(log):
    """Claim, confidence, facts with their dates and speakers, validity, revisions."""
    fact = log.tell("Paris")
    (belief,) = log.records("beliefs")
    found = why(belief, known(fact, event(log, fact)))

    assert (
        "I believe that Alice lives in Paris. "
        "The confidence is 0.90, with a 90% interval from 0.80 to 0.97. "
        "1 fact speaks for it: “Alice lives in Paris”, so from 1 May 2026, told by user:alice "
        f"with confidence 0.90 ({fact.id}). "
        "It holds from 1 May 2026 on. "
        "It was first held on 1 May 2026 and has not been revised."
    ) == found.narrative
    assert "template" == found.narrative_model


def test_dissent_and_ends_are_told_too(log):
    """What speaks against it, what it is at odds with, and what came after."""
    paris = log.tell("Paris")
    log.at += 3 * DAY
    ended, rome = log.change(paris, "Rome")
    old, new = log.records("beliefs")
    found = why(old, known(ended, new))

    assert f"It held from 1 May 2026 until 4 May 2026, then came {new.id}." in found.narrative
    assert f"It is at odds with {new.id} (tension 0.81, newer_wins)." in found.narrative
    assert (new.id, "contradicts") == (
        found.support_graph.edges[-1].to,
        found.support_graph.edges[-1].relation,
    )
    assert "Alice lives in Rome" == found.support_graph.nodes[-1].summary
    assert rome.valid_from == old.valid_to


def test_a_denial_is_an_edge_of_its_own(log):
    """What opposes a claim does not support it."""
    fact = log.tell("smoking", predicate="does", polarity="negative")
    (belief,) = log.records("beliefs")
    found = why(belief, known(fact))

    assert ["opposed_by"] == [edge.relation for edge in found.support_graph.edges]
    assert found.narrative.startswith("I do not believe that Alice does smoking.")
    assert "1 fact speaks against it: “Alice not does smoking”" in found.narrative


def test_what_cannot_be_looked_at_is_said_to_be_so(log):
    """A reason that was erased is not invented anew."""
    fact = log.tell("Paris")
    (belief,) = log.records("beliefs")
    redacted = msgspec.structs.replace(
        belief, supporting_evidence_redacted=True, supporting_evidence_redacted_fraction=1.0
    )
    found = why(redacted, known())

    assert f"{fact.id}, which can no longer be looked at" in found.narrative
    assert "100% of the evidence was redacted." in found.narrative
    assert "no longer to be looked at" == found.support_graph.nodes[1].summary


def test_many_reasons_are_counted_and_few_are_told(log, hand):
    """A narrative is to be read; the graph and the count have the rest."""
    facts = []
    for number in range(30):
        log.at += HOUR
        facts.append(log.tell("Paris", by=f"user:u{number}"))
    (belief,) = log.records("beliefs")
    found = why(belief, known(*facts, *(event(log, fact) for fact in facts)))

    assert f"{limits.BELIEF_SUPPORTS_MAX} facts speak for it" in found.narrative
    assert f"and {limits.BELIEF_SUPPORTS_MAX - limits.NARRATED_MAX} more." in found.narrative
    assert "14 further facts weighed in and are not named." in found.narrative
    assert "It was revised 29 times, last on 2 May 2026." in found.narrative
    assert len(found.support_graph.nodes) <= 1 + 16 + limits.CITED_EVENTS_MAX


def test_very_many_events_are_left_out_of_the_graph(log):
    """A graph that nobody can look at explains nothing."""
    fact = log.tell("Paris")
    events = [
        msgspec.structs.replace(event(log, fact), id=f"evt_{number}")
        for number in range(limits.CITED_EVENTS_MAX + 9)
    ]
    many = msgspec.structs.replace(fact, supports=[one.id for one in events])
    (belief,) = log.records("beliefs")
    nodes = why(belief, known(many, *events)).support_graph.nodes

    assert limits.CITED_EVENTS_MAX == sum(node.type == "event" for node in nodes)


def test_long_words_are_quoted_in_part(log):
    """A node's summary is a line, whatever was said."""
    fact = log.tell("x" * 1000)
    (belief,) = log.records("beliefs")
    nodes = why(belief, known(fact)).support_graph.nodes

    assert {limits.SUMMARY_CHARS_MAX + 1} == {len(node.summary) for node in nodes}


def test_it_is_partial_while_evidence_waits_and_only_then(log):
    """As of before, as of then, and in the version after (001 §18.2.8)."""
    log.tell("Paris", confidence=0.9)
    log.tell("Paris", by="user:bob", confidence=0.5)
    since = log.at
    log.at += HOUR
    log.tell("Paris", by="user:eve", confidence=0.5)
    (belief,) = log.records("beliefs")
    first, second = log.versions("beliefs", belief.id)

    assert [None, "revision_in_progress"] == [
        as_known(first, at).partial_reason for at in (since - timedelta(seconds=1), since)
    ]
    assert (False, None) == (as_known(second, log.at).partial, second.partial_reason)
    waiting = as_known(second, log.at, Held(log.at, 0))
    assert (True, "revision_in_progress") == (waiting.partial, waiting.partial_reason)


def test_an_old_score_is_said_to_be_old(log):
    """A score over 30 days is stale when it is itself older than that."""
    log.retract(log.tell("Paris"))
    log.tell("Rome")
    belief = log.records("beliefs")[-1]

    assert [None, "calibration_stale"] == [
        as_known(belief, log.at + days * DAY).partial_reason for days in (29, 31)
    ]


def test_another_reason_comes_first(log):
    """What is partial for good says so, whatever else waits."""
    log.tell("Paris")
    (belief,) = log.records("beliefs")
    redacted = msgspec.structs.replace(
        belief, partial=True, partial_reason="supporting_evidence_redacted"
    )

    assert redacted == as_known(redacted, log.at, Held(log.at, 0))
