"""What do plain words assert?"""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projectors.text import Mention, extract
from projectors.text.lexicon import KIN, PETS
from projectors.text.prose import statements
from projectors.text.shapes import Speakers
from projectors.text.words import AUXILIARIES, DETERMINERS, FORMS, PREPOSITIONS, SUBJECT_PRONOUNS
from schemas import limits

OBSERVED_AT = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
ALICE = Mention(text="alice", kind="actor", actor="user:alice")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("I live in Lisbon.", [("alice", "lives_in", "Lisbon")]),
        ("I live in a flat in Ghent.", [("alice", "lives_in", "Ghent")]),
        ("I like jazz and blues.", [("alice", "likes", "jazz"), ("alice", "likes", "blues")]),
        (
            "My sister Eva works at Bolt.",
            [("alice", "has_sister", "Eva"), ("Eva", "works_at", "Bolt")],
        ),
        ("My mum is a nurse.", [("alice's mother", "works_as", "nurse")]),
        ("Acme moved to 200 seats.", [("Acme", "seat_count", "200")]),
        ("The project is blocked.", [("project", "status", "blocked")]),
        ("My phone number is 555-0142.", [("alice", "phone", "555-0142")]),
        ("Mia's favourite sport is climbing.", [("Mia", "favourite_sport", "climbing")]),
        ("I play tennis every weekend.", [("alice", "plays", "tennis every weekend")]),
        ("Went to Rome yesterday!", [("alice", "visited", "Rome")]),
        ('I loved "Spirited Away" as a kid.', [("alice", "likes", "Spirited Away")]),
    ],
)
def test_statement(told, text, expected):
    """A plain statement is taken with its canonical predicate."""
    assert expected == told(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where do you live?",
        "do you know when the deal closed",
        "Thanks a lot, that helps!",
        "If I lived in Rome, I would eat pasta.",
        "I wish I had a dog.",
        "Book a table at Noma for Friday.",
        "Don't forget to water the plants.",
        "I have to go now.",
        "Setbacks can be tough.",
        "She lives in Rome.",
        "In the film, the hero lives in Rome.",
        "Ich will nach Rom und nicht nach Bonn.",
        "J'habite à Paris depuis trois ans.",
        "我住在上海。",
        "",
        "?!",
    ],
)
def test_nothing_asserted(told, text):
    """Questions, commands, wishes, small talk, nobody and other languages tell nothing."""
    assert [] == told(text)


def test_negation_flips_polarity(read):
    """What is denied is told with negative polarity, not left out."""
    (found,) = read("I don't work at Acme.")

    assert ("works_at", "negative") == (found.predicate, found.polarity)


@pytest.mark.parametrize(
    "text",
    ["Maybe Bob lives in Leeds.", "I think Bob lives in Leeds.", "Bob probably lives in Leeds."],
)
def test_hedge_lowers_confidence(read, text):
    """A guess is believed half."""
    (found,) = [one for one in read(text) if one.predicate == "lives_in"]

    assert found.confidence <= 0.5


def test_hearsay_names_its_source(read):
    """What somebody is said to have said is believed less, and says whose word it is."""
    (found,) = read("Anna told me that Bob lives in Leeds.")

    assert ("Bob", "Anna") == (found.subject.text, found.source.text)
    assert found.confidence <= 0.5


def test_end_of_a_state(read):
    """`left` ends a state, at the time told; `no longer` ends it now."""
    (left,) = read("I left Acme in March.")
    (gone,) = read("I no longer live in Madrid.")

    assert ("works_at", True, datetime(2026, 3, 1, tzinfo=UTC)) == (
        left.predicate,
        left.ends,
        left.valid_to,
    )
    assert ("lives_in", True, None) == (gone.predicate, gone.ends, gone.valid_to)


def test_past_state_has_its_time(read):
    """A state told in the past is over, and the time told is when it was."""
    (found,) = read("From 2010 to 2015 I lived in Oslo.")

    assert (datetime(2010, 1, 1, tzinfo=UTC), datetime(2015, 1, 1, tzinfo=UTC), True) == (
        found.valid_from,
        found.valid_to,
        found.ends,
    )


def test_switch_ends_one_and_begins_another(read):
    """`from X to Y` is two assertions, one of them an end."""
    found = read("I switched from Android to iPhone.")

    assert {("iPhone", False), ("Android", True)} == {(c.object.text, c.ends) for c in found}


def test_plan_holds_the_date(read):
    """A plan's `next month` is written out: the words will be read later."""
    (found,) = read("I'm planning to visit Vienna next month.")

    assert ("plans_to", "visit Vienna in June 2026") == (found.predicate, found.object.value)


def test_pronouns_follow_the_last_person(told):
    """`she` is the last person named, `it` the last thing where it says what that is."""
    assert [
        ("alice", "met", "Anna"),
        ("Anna", "works_at", "Bolt"),
        ("Anna", "likes", "tea"),
    ] == told("I met Anna yesterday. She works at Bolt and likes tea.")


def test_one_at_a_time_or_many(read):
    """Where one lives is one thing at a time; what one likes and does adds up."""
    single = read("I live in Rome. I'm 34. My favourite colour is green. The deal closed.")
    multi = read("I like tea. I play chess. I bought a car. I own a boat.")

    assert {"single"} == {one.cardinality for one in single}
    assert {"multi"} == {one.cardinality for one in multi}


def test_correction(read):
    """`Actually, …` says that what stood before was never so; a change is no correction."""
    (corrected,) = read("Actually, I live in Bern.")
    (moved,) = read("I moved to Bern.")

    assert (True, False) == (corrected.corrects, moved.corrects)


def test_assistant_speaks_of_its_user():
    """In an assistant's words `you` is the subject, when one is set."""
    speakers = Speakers(Mention(text="helper", kind="actor", actor="agent:helper"), ALICE)

    (found,) = statements("You live in Rome.", speakers, OBSERVED_AT)

    assert (ALICE, "Rome") == (found.subject, found.object.text)


HELPER = Speakers(
    Mention(text="helper", kind="actor", actor="agent:helper"), ALICE, ALICE, serves=True
)


@pytest.mark.parametrize(
    "text",
    [
        "I am a language model and my knowledge ends in 2024.",
        "I like your plan, and I can send the invoice to Bolt.",
        "I checked the dates and made a mistake.",
        "You need a visa for India.",
        "You might prefer the train.",
        "You will receive a mail from Bolt.",
        "First, you teach the dog to sit.",
        "You press the button and choose a language.",
        "You have a great memory.",
        "You have several options.",
        "A starter needs flour.",
        "For example, you own a boat.",
        "Below is a letter to Bolt.",
    ],
)
def test_service_is_no_news(text):
    """Of itself, and as advice, steps, praise or an example, an assistant tells nothing."""
    assert [] == statements(text, HELPER, OBSERVED_AT)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("You told me that you live in Rome.", [("alice", "lives_in", 0.9)]),
        ("You said earlier that Eva works at Bolt.", [("Eva", "works_at", 0.9)]),
        ("Eva said that you live in Rome.", [("alice", "lives_in", 0.5)]),
        ("You open the shop every day.", [("alice", "opens", 0.85)]),
        ("You will fly to Rome on Friday.", [("alice", "plans_to", 0.9)]),
        ("I sent the invoice to Bolt.", [("helper", "sent", 0.85)]),
    ],
)
def test_news_in_a_reply(text, expected):
    """What its user told counts as the user's word; habits, dates and deeds that last are told."""
    found = statements(text, HELPER, OBSERVED_AT)

    assert expected == [(one.subject.text, one.predicate, one.confidence) for one in found]


def test_others_may_speak_of_themselves():
    """What is service in an assistant's mouth is news in a person's."""
    (found,) = statements("I can translate letters.", Speakers(ALICE, None, ALICE), OBSERVED_AT)

    assert (ALICE, "can") == (found.subject, found.predicate)


# ── properties ───────────────────────────────────────────────────────────────────────────────

_WORDS = sorted(
    {
        *FORMS,
        *KIN,
        *PETS,
        *(PREPOSITIONS | AUXILIARIES | DETERMINERS | SUBJECT_PRONOUNS),
    }
)
_PIECES = st.one_of(
    st.sampled_from(_WORDS),
    st.sampled_from(
        ["my", "I", "Tom", "Acme", "Rome", "and", ",", "'s", "not", "that", "to", "if", "because"]
    ),
    st.sampled_from(["yesterday", "in May", "since 2019", "for 3 years", "every day", "by Friday"]),
    st.sampled_from(
        ["200", "two", "$5", "34 years old", "a@b.org", '"Dune"', "called", "favourite"]
    ),
)
_TALK = st.lists(_PIECES, min_size=1, max_size=18).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(st.one_of(_TALK, st.text(max_size=200)))
def test_any_text_is_read(text):
    """No text makes the reader fail; what it finds has words, an order of times and a share."""
    for one in statements(text, Speakers(ALICE, None), OBSERVED_AT):
        value = one.object.text if isinstance(one.object, Mention) else one.object.value

        assert one.subject.text
        assert value not in ("", None)
        assert one.predicate
        assert " " not in one.predicate
        assert 0 < one.confidence <= 1
        assert one.valid_from is None or one.valid_to is None or one.valid_from < one.valid_to


@settings(max_examples=100, deadline=None)
@given(_TALK)
def test_the_same_again(text):
    """The same words say the same, however often they are read."""
    first = statements(text, Speakers(ALICE, None), OBSERVED_AT)

    assert first == statements(text, Speakers(ALICE, None), OBSERVED_AT)


@pytest.mark.parametrize(
    "piece", ["word ", "a, ", "I like ", "and ", "(", "I said that ", "my sister's ", "1 ", '"A ']
)
def test_long_text_is_bounded(said, piece):
    """Of a megabyte only the beginning is read for facts, and all of it is cut into passages."""
    text = piece * (1_000_000 // len(piece))

    found = extract(said(1, text))

    assert len(found.candidates) <= limits.CANDIDATES_MAX
    assert all(one.end - one.start <= 2 * limits.PASSAGE_CHARS_MAX for one in found.passages)
    assert found == extract(said(2, text))
