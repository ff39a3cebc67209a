"""What is asked: terms, people, times, kinds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.recall import question
from engine.recall.question import addressed, capitalised, names_of, read_question
from schemas import limits
from schemas.times import to_us

NOW_US = to_us(datetime(2026, 6, 15, 12, tzinfo=UTC))
PAIR = ("", "user:melanie", "user:caroline_smith")


def ask(text, actors=()):
    return addressed(read_question(text, NOW_US), actors)


def day(*date):
    return to_us(datetime(*date, tzinfo=UTC))


def test_terms_are_the_words_that_carry_meaning():
    """Function words match everything and are left out; a word counts once, in its place."""
    assert ("sunrise", "paint", "barn") == ask(
        "What sunrise did you paint on the barn? Barn!"
    ).terms


def test_a_question_of_function_words_keeps_them():
    """Something is better to look for than nothing."""
    assert ("who", "was", "that") == ask("Who was that?").terms


@pytest.mark.parametrize(
    "text, terms",
    [
        ("What kinds of pottery did she make?", ("pottery", "make")),
        ("What items has she bought?", ("bought",)),
        ("Which other ways did she find?", ("find",)),
        ("How many types of flowers grow there?", ("flowers", "grow")),
        ("What are the names of her snakes?", ("snakes",)),
        ("What did she mention during the trip with both kids?", ("trip", "kids")),
        ("What was described before the storm?", ("storm",)),
    ],
)
def test_how_a_question_is_framed_is_no_term(text, terms):
    """That one of a kind is asked for, and that it was said, is in no answer."""
    assert terms == ask(text).terms


@pytest.mark.parametrize(
    "text, terms",
    [
        ("Where is the type checker configured?", ("type", "checker", "configured")),
        ("Who changed the file name?", ("changed", "file", "name")),
        ("The item was lost", ("item", "lost")),
    ],
)
def test_the_same_words_are_terms_where_they_name_something(text, terms):
    """Only where it frames the question is such a word left out."""
    assert terms == ask(text).terms


def test_a_frame_alone_is_looked_for():
    """Something is better to look for than nothing."""
    assert ("things", "mention") == ask("What things did she mention?").terms


def test_a_wish_for_a_proposal_is_about_its_subject():
    """Every wish has the words of wishing; what was told of the subject has not."""
    assert ("coffee", "creamer", "recipe") == ask(
        "I am thinking of a coffee creamer recipe, any suggestions?"
    ).terms
    assert ("tips",) == ask("Any tips?").terms


def test_what_was_recommended_is_asked_for_with_its_words():
    """Who asks for a recommendation that was given wants the turn that gave it."""
    assert ("restaurant", "recommend") == ask("Which restaurant did you recommend?").terms
    assert "tips" in ask("What tips did you give me?").terms


@pytest.mark.parametrize(
    "text, gist",
    [
        ("When did Melanie paint a sunrise?", "When did I paint a sunrise?"),
        ("What is Melanie's dog called?", "What is my dog called?"),
        ("What are MELANIE’S plans?", "What are my plans?"),
        ("Where does Caroline Smith live?", "Where does I live?"),
        ("Where does Caroline live?", "Where does I live?"),
    ],
)
def test_one_named_participant_puts_the_question_in_the_first_person(text, gist):
    """Whoever is asked about said I, so that is how the question is compared."""
    question = ask(text, PAIR)

    assert gist == question.gist
    assert 1 == len(question.about)


def test_names_of_participants_are_no_terms():
    """A participant's name stands in every turn of the conversation and tells none apart."""
    question = ask("What did Melanie tell Caroline Smith about pottery?", PAIR)

    assert ("pottery",) == question.terms
    assert ("user:melanie", "user:caroline_smith") == question.about
    assert question.gist == question.text


def test_a_name_inside_another_word_names_nobody():
    """Mel is not in caramel."""
    assert () == ask("Who likes caramel?", ("user:mel",)).about


def test_a_name_two_share_names_nobody():
    """Ambiguous names are words again."""
    question = ask("When did John run?", ("user:john_a", "user:john_b"))

    assert () == question.about
    assert ("john", "run") == question.terms


def test_keys_are_no_names():
    """An id that is a number, a letter or a function word is not what a question calls anybody."""
    assert () == names_of("user:42")
    assert () == names_of("user:a")
    assert () == names_of("user:the")


def test_what_may_be_a_name_has_a_capital():
    """The first word has one anyway; everything else that has one is looked up."""
    question = read_question("When did Ida meet the mayor of Turin, and Ida again?", NOW_US)

    assert ["Ida", "Turin"] == capitalised(question)


def test_an_agent_that_is_named_says_nothing_in_the_first_person():
    """A machine is found by its name, but people do not ask for what it did as I."""
    question = ask("What did planner decide?", ("user:ann", "agent:planner"))

    assert ("agent:planner",) == question.about
    assert question.gist == question.text


@pytest.mark.parametrize(
    "text, kind",
    [
        ("Where does Ann live?", "lookup"),
        ("When did Ann move?", "temporal"),
        ("How many days passed between the two runs?", "temporal"),
        ("Give me a summary of the project", "summary"),
        ("What do we know about Acme?", "summary"),
        ("Can you recommend a restaurant?", "preference"),
        ("What is Ann's favourite colour?", "preference"),
        ("What do both of them collect?", "multi_hop"),
    ],
)
def test_kinds(text, kind):
    """The plan depends on which kind of question it is."""
    assert kind == ask(text).kind


def test_two_people_make_a_lookup_a_multi_hop():
    """What two have in common stands in no single place."""
    assert "multi_hop" == ask("What have Melanie and Caroline painted?", PAIR).kind


@pytest.mark.parametrize(
    "text, asks",
    [
        ("Which restaurant did you recommend in Rome?", True),
        ("Can you remind me what the fifth bottle was?", True),
        ("What was the move you made after the rook?", True),
        ("Can you recommend a restaurant?", False),
        ("Where did I put my keys?", False),
    ],
)
def test_whose_words_are_asked_for(text, asks):
    """What the assistant said is asked for in the past; a request for advice is about the user."""
    assert asks == ask(text).asks_assistant


def test_dates_are_periods():
    """A date in the question is a soft boost of what happened then."""
    assert [(day(2025, 5, 7), day(2025, 5, 8))] == list(ask("Who came on 7 May 2025?").spans)
    assert [(day(2025, 5, 1), day(2025, 6, 1))] == list(ask("Who came in May 2025?").spans)


@pytest.mark.parametrize(
    "text", ["What did I buy in the past month?", "What did I buy over the last month?"]
)
def test_a_length_that_ends_now_is_a_period(text):
    """The past month and the last month end now; last month ended with the month."""
    assert [(day(2026, 5, 15), NOW_US)] == list(ask(text).spans)
    assert [(day(2026, 5, 1), day(2026, 6, 1))] == list(ask("What did I buy last month?").spans)


def test_a_month_without_a_year_is_that_month_of_any_year():
    """Nobody says which May they mean, and the log may be older than the last one."""
    spans = ask("Who came in May?").spans

    assert (day(2026, 5, 1), day(2026, 6, 1)) in spans
    assert (day(2023, 5, 1), day(2023, 6, 1)) in spans


@pytest.mark.parametrize("text", ["What is my current address?", "Where do I live now?"])
def test_the_present_state_is_asked_for_in_so_many_words(text):
    """Recency counts only then."""
    assert ask(text).wants_current
    assert not ask("Where did I live?").wants_current


def test_a_when_expects_a_time_and_a_how_many_a_number():
    """The sort of word an answer has to have, as examples of it."""
    assert "yesterday" in ask("When did Ann move?").expects
    assert "three" in ask("How many cats has Ann?").expects
    assert frozenset() == ask("Where does Ann live?").expects


@given(text=st.text(max_size=200), actors=st.lists(st.text(max_size=12), max_size=5))
def test_every_text_is_a_question(text, actors):
    """Nothing a caller may write breaks the reading, and the same text is read the same."""
    question = ask(text, actors)

    assert question == ask(text, actors)
    assert len(question.terms) <= limits.QUERY_TERMS_MAX
    assert all(span.from_us < span.to_us for span in question.spans)


SOUGHT = [
    question._FRAME,
    question._ASSISTANT,
    question._CURRENT,
    *(sought for _, sought in question._KINDS),
    *(sought for sought, _ in question._EXPECTED),
]


@pytest.mark.parametrize("sought", SOUGHT, ids=lambda sought: sought.signs[0])
@given(data=st.data())
def test_a_sign_stands_wherever_a_pattern_is_met(sought, data):
    """A pattern that is not tried for want of a sign would not have been met."""
    text = data.draw(st.from_regex(sought.pattern))

    assert sought.may_be_in(text, text.lower())
