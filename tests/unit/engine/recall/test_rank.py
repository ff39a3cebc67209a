"""The ranking: what helps one kind of log must not hurt another."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.recall.rank import IN_CONTEXT, rank

pytestmark = pytest.mark.usefixtures("arithmetic")

SMALL_TALK = [
    "Hey, good to see you again!",
    "It has been a long week at work.",
    "The weather is lovely, is it not?",
    "I watched a film about a lighthouse keeper.",
    "We should have dinner soon.",
    "My sister called yesterday about the wedding.",
    "The train was late again this morning.",
    "I am reading a book on the history of bridges.",
    "Work is busy but fine.",
    "Take care, talk soon!",
]


@pytest.fixture(scope="module")
def pair(world):
    """A chat of two people over two days, in which both speak of the same things."""
    lines = [
        ("ann", "s1", "I painted a sunrise over the lake last weekend."),
        ("bob", "s1", "Beautiful! I painted my kitchen, does that count?"),
        ("bob", "s1", "What instrument do you play these days?"),
        ("ann", "s1", "The cello, since I was nine."),
        ("bob", "s1", "I play the drums in a band called Gravel."),
        *[("ann" if at % 2 else "bob", "s2", text) for at, text in enumerate(SMALL_TALK)],
    ]
    return world.World(
        [world.Turn(text, f"user:{who}", session, "user") for who, session, text in lines]
    )


def test_the_one_who_is_asked_about_comes_first(pair):
    """A named participant is matched by who spoke, not by the name in the text."""
    assert 0 == pair.best("What did Ann paint?")[0]
    assert 1 == pair.best("What did Bob paint?")[0]


def test_an_answer_is_found_by_its_question(pair):
    """A turn that answers borrows the words of the turn it answers."""
    assert 3 in pair.best("Which instrument does Ann play?")[:2]


def test_naming_everybody_says_little_about_the_speaker(pair, world):
    """Where both are named, the first of them is somewhat more likely to have said it."""
    ranked = pair.ranked("What did Ann tell Bob about the painting?")
    parts = {world.place_of(one.raw): one.parts["speaker"] for one in ranked}

    assert parts[0] > parts[1] == 0
    assert pair.ranked("What did Ann paint?")[0].parts["speaker"] > 2 * parts[0]


def test_a_when_is_answered_with_a_time(world):
    """Of two turns about the same, the one with a word of time answers when."""
    log = world.World(
        [
            world.Turn("The new roof is finished, we are so glad about the roof."),
            world.Turn("The roof was repaired last week."),
            *[world.Turn(text) for text in SMALL_TALK],
        ]
    )

    assert 1 == log.best("When was the roof repaired?")[0]
    ranked = log.ranked("When was the roof repaired?")
    assert ranked[0].parts["expected"] > ranked[1].parts["expected"]


def test_documents_are_ranked_by_what_they_say(world):
    """Without people, sessions or roles no prior is at work, and the passage that says it wins."""
    texts = [
        "The retention period for audit logs is ninety days unless a legal hold applies.",
        "Invoices are sent on the first working day of each month.",
        "Backups are encrypted and kept in two regions.",
        "Access reviews take place every quarter; managers confirm each grant.",
        "The incident channel is staffed around the clock by the on-call engineer.",
        "Vacation requests need two weeks of notice.",
    ]
    shelf = world.World([world.Turn(text, "service:wiki") for text in texts])

    assert 0 == shelf.best("How long are audit logs kept?")[0]
    assert 2 == shelf.best("Where do we store backups?")[0]
    assert 5 == shelf.best("How early must I ask for vacation?")[0]


def test_results_of_tools_are_found_by_their_values(world):
    """A tool's terse output is no small talk, and is found by its names and numbers."""
    texts = [
        "order_id 7781; status shipped; carrier DHL; eta 3 days",
        "order_id 7790; status pending; carrier none",
        "error timeout while fetching https://example.org/feed",
        "temperature 21.5 C; humidity 40 %",
    ]
    log = world.World([world.Turn(text, "tool:shop", role="tool") for text in texts])

    assert 0 == log.best("What is the status of order 7781?")[0]
    assert 2 == log.best("Which feed timed out?")[0]


ADVICE = """\
For your road bike race training, ride three times a week and eat well. A road bike such as a blue
Canyon is a fine choice for a race; check the tyres before you train."""


@pytest.fixture(scope="module")
def assisted(world):
    """A user and an assistant who speak of the same things."""
    lines = [
        ("user", "I just bought a road bike, a blue Canyon, and I want to train for a race."),
        ("assistant", ADVICE),
        ("user", "Where should I eat in Rome next month?"),
        ("assistant", "In Rome I recommend Roscioli for dinner; book a table a week ahead."),
        ("user", "I usually take the 7:15 train to the office."),
        ("assistant", "Noted: the 7:15 train. Shall I remind you of delays on the train line?"),
    ]
    return world.World(
        [
            world.Turn(text, "user:u1" if role == "user" else "agent:helper", "s", role)
            for role, text in lines
        ]
    )


def test_a_user_asks_for_what_the_user_said(assisted):
    """Long helpful answers repeat the question's words; the user's own words are the evidence."""
    assert 0 == assisted.best("Which road bike did I buy for the race?")[0]
    assert 4 == assisted.best("Which train do I take to the office?")[0]


def test_what_the_assistant_said_can_be_asked_for(assisted):
    """Then the user's words have no advantage."""
    assert 3 == assisted.best("Which restaurant in Rome did you recommend?")[0]


def test_a_date_in_the_question_is_a_soft_boost(world):
    """The same was said twice; the question says when."""
    texts = ["We went hiking in the hills.", "We went hiking near the coast.", "I baked bread."]
    days = [datetime(2026, 4, 4, tzinfo=UTC), datetime(2026, 5, 9, tzinfo=UTC), None]
    log = world.World([world.Turn(text, at=at) for text, at in zip(texts, days, strict=True)])

    assert 0 == log.best("Where did we go hiking in April?")[0]
    assert 1 == log.best("Where did we go hiking in May 2026?")[0]
    assert {0, 1} == set(log.best("Where did we go hiking on 1 January 2020?")[:2])


def test_recency_counts_only_when_the_present_is_asked_for(world):
    """What holds now was said last; what happened once did not."""
    old, new = world.START, world.START + timedelta(days=60)
    log = world.World(
        [
            world.Turn("My address is 4 Mill Lane.", at=old),
            world.Turn("I had soup for lunch.", at=old + timedelta(days=1)),
            world.Turn("My address is 9 Oak Road.", at=new),
        ]
    )

    assert 2 == log.best("What is my current address?")[0]
    assert "current" not in log.ranked("What was my address?")[0].parts


def test_who_says_more_tells_more_up_to_a_point(world):
    """Few words seldom answer; from some thirty on, a longer text has no advantage."""
    texts = ["Pottery!", "Pottery, and then more pottery.", "pottery " * 30, "pottery " * 60]
    log = world.World([world.Turn(text) for text in [*texts, *SMALL_TALK]])
    parts = {
        world.place_of(one.raw): one.parts["length"] for one in log.ranked("What about pottery?")
    }

    assert parts[0] < parts[1] < parts[2] == parts[3]


def test_an_enumeration_gathers_every_mention(world):
    """What was done at several times is told at several times; the frame of the question is not."""
    told = [
        "Yesterday I went swimming with the kids at the pool by the river, it was such a joy.",
        "Last week we all went camping in the mountains, the kids roasted marshmallows at night.",
        "We took the kids to the museum on Sunday and they loved the dinosaurs most of all.",
    ]
    chatter = [
        "You mentioned both items, and I can see which types you mention.",
        "She said she would mention both things, and the other kinds.",
        "I mentioned the items after you mentioned the names.",
    ]
    lines = [line for pair in zip(told, SMALL_TALK, strict=False) for line in pair]
    log = world.World([world.Turn(text) for text in [*lines, *chatter, *SMALL_TALK[3:]]])

    best = log.best("What things did she mention both of them did with the kids?")[:3]
    assert {0, 2, 4} == set(best)


def test_near_duplicates_are_one(world):
    """Said again in the same words it takes one place, and tells what it stands for."""
    said = "The deploy key for the staging cluster is kept in the vault."
    log = world.World([world.Turn(text) for text in [said, *SMALL_TALK, said.upper(), said]])
    ranked = log.ranked("Where is the deploy key?")

    assert 1 == sum(one.raw in {world.raw_of(0), world.raw_of(12)} for one in ranked)
    assert 1 == len(ranked[0].duplicates)


def test_what_a_feature_added_is_told(pair):
    """The parts are the score before it was squeezed: they order the candidates."""
    ranked = pair.ranked("What did Ann paint?")
    totals = [sum(one.parts.values()) for one in ranked]

    assert totals == sorted(totals, reverse=True)
    assert {"words", "meaning", "late", "speaker", "length"} <= set(ranked[0].parts)


def test_a_model_that_reads_context_counts_for_more(pair):
    """What was meant weighs more then, words that are met one by one less; sessions lend by it."""
    candidates = pair.gather("What did Ann paint?")
    usual, better = (rank(candidates, *some)["events"][0] for some in ((), (IN_CONTEXT,)))

    assert usual.raw == better.raw
    assert abs(better.parts["exchange"]) > abs(usual.parts["exchange"])
    assert abs(better.parts["late_around"]) < abs(usual.parts["late_around"])
    assert "exchange_session" not in usual.parts
    assert better.parts["exchange_session"] > 0


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=60) | st.sampled_from(["What did Ann paint?", "drums", "in May"]))
def test_the_order_is_that_of_scores_between_nothing_and_one(pair, text):
    """For every question; and the same question gives the same order."""
    candidates = pair.gather(text)
    ranked = rank(candidates)["events"]

    assert all(0 < one.score < 1 for one in ranked)
    assert all(one.score >= other.score for one, other in pairwise(ranked))
    assert [one.raw for one in ranked] == [one.raw for one in rank(candidates)["events"]]
    assert len({one.raw for one in ranked}) == len(ranked)


def test_layers_are_ranked_apart(world):
    """Facts are standardised among facts, and comparable with events by how like they are."""
    log = world.World(
        [
            world.Turn("I moved to Lisbon in spring."),
            *[world.Turn(text) for text in SMALL_TALK],
            world.Turn("ann lives in Lisbon", layer="facts"),
            world.Turn("ann likes tea", layer="facts"),
        ],
        behind={11: [0]},
    )
    found = rank(log.gather("Does she live in Lisbon?", layers=("events", "facts")))

    assert world.raw_of(11) == found["facts"][0].raw
    assert world.raw_of(0) == found["events"][0].raw
    assert found["facts"][0].score > found["events"][1].score
