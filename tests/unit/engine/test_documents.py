"""How can a record be found?  By its words, its speaker and its day, whatever its form."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents import event_documents, first_event, record_document, words_of
from schemas import limits
from schemas.entry import Directive, DropScope, Entry, Experience
from schemas.envelope import (
    Actor,
    BlobContent,
    Context,
    Directives,
    Envelope,
    JsonContent,
    Media,
    Message,
    PlainText,
    Triple,
    TripleContent,
)
from schemas.ids import format_id, uuid7
from schemas.layers import EntityRef, Fact, LiteralValue
from schemas.times import to_us

AT = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
LATER = datetime(2026, 6, 1, tzinfo=UTC)
RAW = uuid7(1_778_600_000_000_000, 1)


def entry(content, **changes) -> Entry:
    envelope = Envelope(
        scope="org:acme/user:alice",
        modality="conversation",
        content=content,
        context=Context(observed_at=AT),
        idempotency_key="k",
        **changes,
    )
    return Entry(
        offset=7,
        id=RAW,
        event_id=format_id("evt", RAW),
        tenant="acme",
        tenant_no=1,
        scope=envelope.scope,
        scope_no=4,
        caller="service:importer",
        recorded_at=LATER,
        kind=1,
        body=Experience(envelope=envelope),
    )


def test_a_turn_is_found_by_what_was_said_by_whom_and_when():
    """Words are matched with speaker and day before them; the bare utterance is embedded."""
    actor = Actor(id="user:mary_ann", session="s1")
    [found] = event_documents(entry(Message(role="user", text="I paint"), observed_actor=actor))

    assert "[13 May 2026] mary ann: I paint" == found.text
    assert "I paint" == found.gist
    assert ("user:mary_ann", "s1", "user") == (found.actor, found.session, found.role)
    assert ("events", RAW, 1, 4, 7) == (
        found.layer,
        found.raw,
        found.tenant_no,
        found.scope_no,
        found.offset,
    )
    assert (to_us(AT), to_us(LATER)) == (found.observed_us, found.recorded_us)


def test_without_an_actor_the_caller_speaks():
    """The caller stands in for an actor that is not named, the subject's session for its own."""
    made = entry(PlainText(text="hello"), subject=Actor(id="user:bob", session="s2"))
    [found] = event_documents(made)

    assert ("service:importer", "s2", "") == (found.actor, found.session, found.role)
    assert found.embeds


def test_a_client_may_ask_for_no_vector():
    """`embed: none` is kept from the vectors, and found by its words."""
    [found] = event_documents(entry(PlainText(text="hello"), directives=Directives(embed="none")))

    assert not found.embeds
    assert "hello" in found.text


@pytest.mark.parametrize(
    "content, words",
    [
        (PlainText(text=" hello "), "hello"),
        (
            Message(
                role="user",
                text="look",
                media=[Media(blob_id="blob_1", caption="a red bird"), Media(blob_id="blob_2")],
            ),
            "look\na red bird",
        ),
        (
            TripleContent(
                triple=Triple(subject="Acme", predicate="has_seats", object=200), text="news"
            ),
            "news\nAcme has seats 200",
        ),
        (
            JsonContent(data={"full_name": "Anna", "tags": ["x", {"deep": None}], "age": 3}),
            "full name Anna; tags x; age 3",
        ),
        (BlobContent(blob_id="blob_1", transcript="they said so"), "they said so"),
        (BlobContent(blob_id="blob_1"), ""),
    ],
)
def test_words_of_every_kind_of_content(content, words):
    """Captions, transcripts, triples and JSON are words like any others."""
    assert words == words_of(content)


def test_what_has_no_words_has_no_document():
    """A blob without a word, another kind of entry, and an erased one cannot be found by words."""
    other = entry(PlainText(text="x"))
    directive = Directive(command=DropScope(records="keep"))

    assert [] == event_documents(entry(BlobContent(blob_id="blob_1")))
    for body in (None, directive):
        fields = {name: getattr(other, name) for name in other.__struct_fields__}
        assert [] == event_documents(Entry(**fields | {"body": body}))


@given(paragraphs=st.integers(20, 120))
def test_a_long_text_is_found_by_its_passages(paragraphs):
    """The whole is embedded and has no words of its own; the passages cover all of it, in order."""
    text = "\n\n".join(f"Paragraph {n} tells of thing{n}. " * 12 for n in range(paragraphs))
    whole, *parts = event_documents(entry(PlainText(text=text)))

    assert ("", text.strip(), 0) == (whole.text, whole.gist, whole.passage)
    assert list(range(1, len(parts) + 1)) == [part.passage for part in parts]
    assert all(part.text.startswith("[13 May 2026] importer: ") for part in parts)
    assert {RAW} == {part.raw for part in parts}
    assert text.split() == " ".join(part.gist for part in parts).split()


def test_a_long_turn_stays_whole():
    """A turn of a conversation is one document up to a size."""
    text = ("word " * limits.WHOLE_CHARS_MAX)[: limits.WHOLE_CHARS_MAX]

    assert 1 == len(event_documents(entry(Message(role="assistant", text=text))))


def fact(**changes) -> Fact:
    fields = {
        "id": format_id("fact", RAW),
        "scope": "org:acme",
        "subject": EntityRef(id="ent_1", name="Anna"),
        "predicate": "lives_in",
        "object": LiteralValue(datatype="string", value="Berlin"),
        "supports": ["fact_x", "evt_1", "evt_2"],
        "valid_from": AT,
        "valid_to": None,
        "recorded_from": LATER,
        "recorded_to": None,
        "confidence": 0.9,
        "extractor": "rules",
        "asserted_by": "user:anna",
    }
    return Fact(**fields | changes)


def test_a_fact_is_found_as_a_sentence():
    """A record reads as a sentence, on the day it became true, known since its first version."""
    found = record_document("facts", fact(), place=(1, 4), offset=9, known_from=AT)

    assert ("Anna lives in Berlin", "Anna lives in Berlin 13 May 2026") == (found.gist, found.text)
    assert (RAW, 1, 4, 9, "user:anna") == (
        found.raw,
        found.tenant_no,
        found.scope_no,
        found.offset,
        found.actor,
    )
    assert (to_us(AT), to_us(AT)) == (found.observed_us, found.recorded_us)
    assert "evt_1" == first_event(fact())
    assert first_event(fact(supports=["redacted:evt_1"])) is None
    negative = fact(polarity="negative")
    told = record_document("facts", negative, place=(1, 4), offset=9, known_from=AT)
    assert "Anna not lives in Berlin" == told.gist


@pytest.mark.parametrize("month", range(1, 13))
def test_a_day_is_written_out(month):
    """Day, month and year, as a question would name them."""
    moment = datetime(2026, month, 7, tzinfo=UTC)
    dated = msgspec.structs.replace(
        entry(PlainText(text="it rains")).envelope, context=Context(observed_at=moment)
    )
    made = msgspec.structs.replace(entry(PlainText(text="-")), body=Experience(envelope=dated))
    heading = event_documents(made)[0].text.partition("]")[0]

    assert f"[7 {moment:%B} 2026" == heading
