"""What does an entry say?  Exact content, a model's facts, and words, through one door."""

from datetime import UTC, datetime

import pytest

from projectors.text import Mention, Value, extract
from schemas.entry import Annotation
from schemas.envelope import Directives, JsonContent, PlainText, Term, Triple, TripleContent

ALICE = Mention(text="alice", kind="actor", actor="user:alice")


@pytest.fixture
def told(entry):
    """The extraction of one experience with this content."""
    from schemas.entry import Experience
    from schemas.envelope import Context, Envelope

    def tell(content, **fields):
        envelope = Envelope(
            **{
                "scope": "org:acme/user:alice",
                "modality": "conversation",
                "content": content,
                "context": Context(observed_at=datetime(2026, 5, 13, 15, 42, tzinfo=UTC)),
                "idempotency_key": "k",
                **fields,
            }
        )
        return extract(entry(1, Experience(envelope=envelope)))

    return tell


def test_triple(told):
    """A triple is one exact fact, its ends as they were named."""
    triple = Triple(subject="Acme", predicate="deal_stage", object="signed")

    (found,) = told(TripleContent(triple=triple)).candidates

    assert (Mention(text="Acme"), "deal_stage", 1.0) == (
        found.subject,
        found.predicate,
        found.confidence,
    )
    assert Value(datatype="string", value="signed") == found.object
    assert "single" == found.cardinality


def test_typed_triple(told):
    """Terms say whether an end is a record, an actor or a literal."""
    triple = Triple(
        subject=Term(type="entity", id="user:bob"),
        predicate="age",
        object=Term(type="literal", datatype="integer", value=41),
    )

    (found,) = told(TripleContent(triple=triple)).candidates

    assert Mention(text="bob", kind="actor", actor="user:bob") == found.subject
    assert Value(datatype="integer", value=41) == found.object


def test_flat_json(told):
    """A flat object's keys are facts about what it says it is; a list is several."""
    found = told(JsonContent(data={"name": "Acme", "seats": 200, "tags": ["eu", "big"]})).candidates

    assert [
        ("Acme", "seats", 200, "single"),
        ("Acme", "tags", "eu", "multi"),
        ("Acme", "tags", "big", "multi"),
    ] == [(one.subject.text, one.predicate, one.object.value, one.cardinality) for one in found]
    assert {1.0} == {one.confidence for one in found}


def test_nested_json(told):
    """An inner object is taken one level down; deeper ones stay whole. No name: the speaker."""
    found = told(JsonContent(data={"address": {"city": "Rome", "geo": {"lat": 1}}})).candidates

    assert [("address.city", "Rome"), ("address.geo", {"lat": 1})] == [
        (one.predicate, one.object.value) for one in found
    ]
    assert {ALICE} == {one.subject for one in found}


def test_facts_not_wanted(told):
    """A client that lists the layers to derive and leaves out facts gets none."""
    content = PlainText(text="I live in Rome.")

    assert told(content).candidates
    assert not told(content, directives=Directives(extract=["episodes"])).candidates
    assert told(content, directives=Directives(extract=["facts"])).candidates


def test_unknown_modality(told):
    """A modality nobody listed is kept and not read for facts."""
    assert not told(PlainText(text="I live in Rome."), modality="telepathy").candidates


def test_model_facts(entry):
    """A model's facts become candidates under its name; what is no fact is left out."""
    output = {
        "facts": [
            {"subject": "Acme", "predicate": "seat_count", "object": 200, "confidence": 0.7},
            {"subject": "user:bob", "predicate": "likes", "object": "tea", "polarity": "negative"},
            {"subject": "", "predicate": "likes", "object": "tea"},
            {"subject": "Acme"},
            "nothing",
        ]
    }
    body = Annotation(about="evt_x", model="small-model", version="1", output=output)

    found = extract(entry(1, body))

    assert "small-model" == found.extractor
    assert [("Acme", 0.7, "positive"), ("bob", 0.8, "negative")] == [
        (one.subject.text, one.confidence, one.polarity) for one in found.candidates
    ]


def test_remembered(entry, said):
    """The last entry's extraction is given again, and an erased entry says nothing."""
    one = said(1, "I live in Rome.")

    assert extract(one) is extract(one)
    assert not extract(entry(2, None)).candidates
