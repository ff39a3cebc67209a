"""Does a claim do to what is known what a person would expect of it?"""

import pytest

from projectors.text import Mention
from schemas import limits
from schemas.entry import (
    Annotation,
    Cancel,
    DropScope,
    Member,
    RegisterScope,
    ScopePolicies,
    SetVocabulary,
)
from schemas.envelope import Context, Envelope, Message, Triple, TripleContent
from schemas.layers import ConceptRef, EntityRef, LiteralValue
from schemas.vocabularies import PredicateTerm, Vocabulary

ALICE = "user:alice"


@pytest.fixture
def lives(module):
    """Alice lives somewhere."""

    def make(where, **fields):
        return module.claim(ALICE, "lives_in", where, **fields)

    return make


@pytest.fixture
def likes(module):
    """Alice likes something, among other things."""

    def make(what, **fields):
        return module.claim(ALICE, "likes", what, cardinality="multi", **fields)

    return make


def told(fact):
    """A fact's object, as a reader would say it."""
    return fact.object.value if isinstance(fact.object, LiteralValue) else fact.object.name


def register(world, policy, on=0, scope="org:acme/user:alice", **policies):
    """Say how a scope wants conflicts resolved."""
    members = [Member(actor=ALICE, role="owner")]
    said = ScopePolicies(conflict_resolution=policy, **policies)
    world.orders(RegisterScope(members=members, policies=said), on=on, scope=scope)


# ── a fact ───────────────────────────────────────────────────────────────────────────────────


def test_a_fact_says_all_of_itself(world, lives, module):
    """Subject, predicate, object, both times, confidence, who said it, and the event."""
    event = world.says(ALICE, lives("Paris"), on=1, recorded=3)
    (fact,) = world.rows("facts")

    assert isinstance(fact.subject, EntityRef)
    assert ("Alice", "lives_in", "Paris") == (fact.subject.name, fact.predicate, fact.object.name)
    assert (module.day(1), None) == (fact.valid_from, fact.valid_to)
    assert (module.day(3), None) == (fact.recorded_from, fact.recorded_to)
    assert (0.9, "positive", "single", "high") == (
        fact.confidence,
        fact.polarity,
        fact.cardinality,
        fact.trust,
    )
    assert (ALICE, [event], 1) == (fact.asserted_by, fact.supports, fact.version)
    assert (False, None) == (fact.partial, fact.partial_reason)


def test_the_event_points_to_its_facts(world, lives, likes):
    """All of them, and later stages of the entry are told which moved."""
    world.says(ALICE, lives("Paris"), likes("jazz"), on=1)
    ids = {fact.id for fact in world.rows("facts")}
    (derives,) = world.rows("derives")
    (moved,) = world.rows("facts_moved")

    assert ids == set(derives.ids) == set(moved.ids)
    assert (1, []) == (moved.offset, moved.superseded)


def test_nothing_said_leaves_nothing(world):
    """An entry without candidates has no facts, and says so by silence."""
    world.says(ALICE, on=1)

    assert [] == world.rows("facts_moved") == world.rows("facts_heard")


def test_a_concept_can_be_an_object(world, module):
    """A reference to a concept stays one."""
    concept = Mention(text="budget", ref="concept_x")
    world.says(ALICE, module.claim(ALICE, "cares_about", concept), on=1)
    (fact,) = world.rows("facts")

    assert ConceptRef(id="concept_x", name="budget") == fact.object


@pytest.mark.parametrize("times", [(5, 3), (5, 5)])
def test_an_interval_that_ends_before_it_begins(world, lives, module, times):
    """Says nothing reliable, and is passed over."""
    since, until = map(module.day, times)
    world.says(ALICE, lives("Paris", valid_from=since, valid_to=until), on=6)

    assert [] == world.rows("facts")


def test_a_floor_drops_what_is_not_sure(world, lives, likes):
    """`confidence_floor` of the envelope (001 §3.5.3)."""
    floor = {"confidence_floor": 0.5}
    world.says(ALICE, lives("Paris", confidence=0.4), likes("jazz"), on=1, directives=floor)

    assert ["jazz"] == world.values(2)


# ── one value at a time ──────────────────────────────────────────────────────────────────────


def test_a_later_value_supersedes(world, lives, module):
    """The old one gets its end and says what took its place; as it was known it stays."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=10)
    paris, rome = world.fact("Paris"), world.fact("Rome")
    (past,) = world.rows("facts_past")

    assert (2, module.day(10), rome.id) == (paris.version, paris.valid_to, paris.superseded_by)
    assert (None, paris.id) == (rome.valid_to, rome.supersedes)
    assert (None, module.day(10), rome.id) == (past.valid_to, past.recorded_to, past.superseded_by)
    assert [paris.id] == world.rows("facts_moved")[0].superseded


def test_late_news_of_an_earlier_time(world, lives):
    """It is laid where it belongs; what was known to follow stays as it is."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=30)
    world.says(ALICE, lives("Oslo"), on=15, recorded=40)

    assert ["Paris"] == world.values(35, 20)
    assert ["Oslo"] == world.values(41, 20)
    assert ["Rome"] == world.values(41) == world.values(35)
    assert ["Paris"] == world.values(41, 10)
    assert 1 == world.fact("Rome").version


def test_late_news_of_the_earliest_time(world, lives, module):
    """Before all that was known: valid until that begins."""
    world.says(ALICE, lives("Rome"), on=30)
    world.says(ALICE, lives("Oslo"), on=15, recorded=40)

    assert module.day(30) == world.fact("Oslo").valid_to
    assert 1 == world.fact("Rome").version


def test_a_correction_from_the_same_moment(world, lives):
    """What was said of the same moment was never so: it is known no more."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=1, recorded=5)

    assert ["Paris"] == world.values(3)
    assert ["Rome"] == world.values(6) == world.values(6, 3)
    assert (1, world.fact("Rome").id) == (
        world.fact("Paris").version,
        world.fact("Paris").superseded_by,
    )


def test_actually_no(world, lives):
    """A correction holds from the beginning of what it corrects."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome", corrects=True), on=20)

    assert ["Paris"] == world.values(10)
    assert ["Rome"] == world.values(21, 10)
    assert [] == world.values(21, 0)


def test_a_correction_of_the_date(world, lives, module):
    """The same, but since another time: the fact gets another beginning."""
    world.says(ALICE, lives("Paris"), on=10)
    world.says(ALICE, lives("Paris", corrects=True, valid_from=module.day(4)), on=20)

    assert ([], ["Paris"]) == (world.values(15, 5), world.values(21, 5))
    assert 1 == len(world.rows("facts"))


def test_a_correction_back(world, lives):
    """`No, it is still Paris`: what stood before goes on."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=10)
    world.says(ALICE, lives("Paris", corrects=True), on=20)

    assert ["Paris"] == world.values(21) == world.values(21, 15)
    assert ["Rome"] == world.values(15)
    assert 2 == len(world.rows("facts"))


def test_nothing_to_correct(world, lives):
    """Then it is news."""
    world.says(ALICE, lives("Rome", corrects=True), on=20)

    assert ["Rome"] == world.values(21)


def test_an_exception_for_some_time(world, lives, module):
    """`In March I was in Rome`: before and after it the rule stands."""
    world.says(ALICE, lives("Paris"), on=1)
    exception = lives("Rome", valid_from=module.day(10), valid_to=module.day(20))
    world.says(ALICE, exception, on=30)

    assert [["Paris"], ["Rome"], ["Paris"]] == [world.values(31, at) for at in (5, 15, 25)]
    assert ["Paris"] == world.values(31)


def test_an_earlier_beginning(world, lives, module):
    """`I have lived here since …`: one fact, that began earlier than we knew."""
    world.says(ALICE, lives("Paris"), on=20)
    world.says(ALICE, lives("Paris", valid_from=module.day(2)), on=30)
    (fact,) = world.rows("facts")

    assert (module.day(2), 2) == (fact.valid_from, fact.version)
    assert ([], ["Paris"]) == (world.values(25, 10), world.values(31, 10))


def test_many_values_of_one_thing(world, module):
    """The hundredth is found as fast as the first, in whatever order they came."""
    order = [(at * 37) % 101 for at in range(101)]
    for recorded, on in enumerate(order):
        world.says(ALICE, module.claim("Sensor", "reads", on), on=on, recorded=200 + recorded)

    assert [[str(on)] for on in range(101)] == [world.values(400, on) for on in range(101)]


def test_two_values_in_one_breath(world, lives):
    """The last word counts; the other was superseded from the start."""
    world.says(ALICE, lives("Paris"), lives("Rome"), on=1)

    assert ["Rome"] == world.values(2)
    assert world.fact("Paris").recorded_to == world.fact("Paris").recorded_from


# ── many values ──────────────────────────────────────────────────────────────────────────────


def test_values_accumulate(world, likes):
    """A predicate that holds many values keeps them all."""
    world.says(ALICE, likes("jazz"), on=1)
    world.says(ALICE, likes("chess"), on=2)

    assert ["chess", "jazz"] == world.values(3)


def test_what_happened_on_two_days(world, module):
    """Are two facts; the same day told again is the same."""
    for since, on in ((1, 10), (5, 11), (1, 12)):
        visit = module.claim(
            ALICE,
            "visited",
            "Rome",
            cardinality="multi",
            kind="event",
            valid_from=module.day(since),
        )
        world.says(ALICE, visit, on=on)

    assert [1, 5] == sorted((f.valid_from - module.START).days for f in world.rows("facts"))


# ── the same again ───────────────────────────────────────────────────────────────────────────


def test_the_same_again_is_a_support(world, lives):
    """One more event to cite; one speaker repeating itself does not become surer."""
    first = world.says(ALICE, lives("Paris"), on=1)
    second = world.says(ALICE, lives("Paris", confidence=0.7), on=2)
    (fact,) = world.rows("facts")

    assert ([first, second], 0.9, 2) == (fact.supports, fact.confidence, fact.version)


def test_another_who_says_so_makes_it_surer(world, lives):
    """Independent words add up, and never to certainty."""
    world.says(ALICE, lives("Paris", confidence=0.8), on=1)
    world.says("user:bob", lives("Paris", confidence=0.9), on=2)

    assert 0.98 == world.fact("Paris").confidence


@pytest.mark.parametrize("same", ["paris", "  Paris ", "PARIS"])
def test_spelling_makes_no_other_value(world, module, same):
    """A literal is the same whatever its case and blanks."""
    for at, text in enumerate(("Paris", same)):
        value = module.Value(datatype="string", value=text)
        world.says(ALICE, module.claim(ALICE, "city", value), on=at)

    assert 1 == len(world.rows("facts"))


def test_numbers_are_what_they_are_worth(world, module):
    """200 and 200.0 are one value; 200 and true are two."""
    for at, value in enumerate((200, 200.0)):
        world.says(ALICE, module.claim("Acme", "seats", value), on=at)

    assert 1 == len(world.rows("facts"))


def test_supports_have_an_end(world, likes):
    """Beyond the limit a repetition leaves the fact as it is; it is heard all the same."""
    for on in range(limits.FACT_SUPPORTS_MAX + 5):
        world.says(ALICE, likes("jazz"), on=on)
    fact = world.fact("jazz")
    (heard,) = world.rows("facts_heard")

    assert limits.FACT_SUPPORTS_MAX == len(fact.supports) == fact.version
    assert (limits.FACT_SUPPORTS_MAX + 5, [fact.id]) == (
        heard.offset,
        [h.fact for h in heard.facts],
    )
    assert 1 == len(world.rows("facts_basis"))


def test_an_end_is_heard_when_supports_are_full(world, likes, module):
    """What moves a fact's times always finds room."""
    for on in range(limits.FACT_SUPPORTS_MAX + 5):
        world.says(ALICE, likes("jazz"), on=on)
    last = world.says(ALICE, likes("jazz", ends=True), on=50)
    fact = world.fact("jazz")

    assert (module.day(50), limits.FACT_SUPPORTS_MAX) == (fact.valid_to, len(fact.supports))
    assert last == fact.supports[-1]


# ── ends and denials ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cardinality", ["single", "multi"])
def test_an_end_closes_what_was_so(world, module, cardinality):
    """`I left Acme in May`: valid until then, and known to be over from when it was said."""
    works = {"subject": ALICE, "predicate": "works_at", "what": "Acme", "cardinality": cardinality}
    world.says(ALICE, module.claim(**works), on=1)
    world.says(ALICE, module.claim(**works, ends=True, valid_to=module.day(10)), on=20)

    assert (["Acme"], []) == (world.values(15), world.values(21))
    assert (["Acme"], []) == (world.values(21, 5), world.values(21, 10))


def test_an_end_without_a_date_is_now(world, likes, module):
    """Over when it was said to be."""
    world.says(ALICE, likes("jazz"), on=1)
    world.says(ALICE, likes("jazz", ends=True), on=9)

    assert module.day(9) == world.fact("jazz").valid_to


def test_an_end_told_again_moves_nothing(world, likes, module):
    """Without a date it is the same end; with one it is a correction."""
    world.says(ALICE, likes("jazz"), on=1)
    world.says(ALICE, likes("jazz", ends=True), on=9)
    world.says(ALICE, likes("jazz", ends=True), on=20)
    assert module.day(9) == world.fact("jazz").valid_to

    world.says(ALICE, likes("jazz", ends=True, valid_to=module.day(5)), on=21)
    assert module.day(5) == world.fact("jazz").valid_to


def test_an_end_of_what_was_never_heard_of(world, likes, module):
    """It was so, and is not: a fact that is over."""
    world.says(ALICE, likes("jazz", ends=True, valid_to=module.day(9)), on=20)

    assert (["jazz"], []) == (world.values(21, 8.5), world.values(21, 9))


def test_an_end_where_something_else_held(world, lives):
    """That it was so just before is not to be believed."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome", ends=True), on=9)

    assert ["Paris"] == world.values(10) == world.values(10, 8.5)


def test_from_when_to_when(world, lives, module):
    """An end with a beginning is an interval of its own, wherever it lies."""
    world.says(ALICE, lives("Paris"), on=100)
    stay = lives("Rome", ends=True, valid_from=module.day(10), valid_to=module.day(20))
    world.says(ALICE, stay, on=101)

    assert [[], ["Rome"], [], ["Paris"]] == [world.values(102, at) for at in (5, 15, 50, 102)]


def test_an_interval_that_widens_what_was_known(world, lives, module):
    """`From 2019 to 2021`, of something known in 2020: one fact with both ends."""
    world.says(ALICE, lives("Paris"), on=10)
    stay = lives("Paris", ends=True, valid_from=module.day(2), valid_to=module.day(20))
    world.says(ALICE, stay, on=30)
    (fact,) = world.rows("facts")

    assert (module.day(2), module.day(20)) == (fact.valid_from, fact.valid_to)


def test_again_after_an_end(world, likes):
    """A second time is a second fact."""
    world.says(ALICE, likes("jazz"), on=1)
    world.says(ALICE, likes("jazz", ends=True), on=5)
    world.says(ALICE, likes("jazz"), on=9)

    assert [["jazz"], [], ["jazz"]] == [world.values(10, at) for at in (3, 7, 9)]
    assert 2 == len(world.rows("facts"))


@pytest.mark.parametrize("cardinality", ["single", "multi"])
def test_a_denial_closes_and_stands(world, module, cardinality):
    """`I don't live in Paris`: the contrary holds from then on, until it is said again."""

    def claim(polarity):
        return module.claim(ALICE, "in", "Paris", cardinality=cardinality, polarity=polarity)

    world.says(ALICE, claim("positive"), on=1)
    world.says(ALICE, claim("negative"), on=10)
    world.says(ALICE, claim("positive"), on=20)

    assert [["Paris"], ["-Paris"], ["Paris"]] == [world.values(21, at) for at in (5, 15, 20)]
    assert ["-Paris"] == world.values(15)


def test_a_denial_of_another_value(world, lives):
    """Not living in Rome does not end living in Paris."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome", polarity="negative"), on=10)

    assert ["-Rome", "Paris"] == world.values(11)


def test_late_news_before_a_denial(world, lives):
    """Said of an earlier time, it holds until it was denied."""
    world.says(ALICE, lives("Paris", polarity="negative"), on=10)
    world.says(ALICE, lives("Paris"), on=1, recorded=20)

    assert (["Paris"], ["-Paris"]) == (world.values(21, 5), world.values(21, 15))


# ── what the sender asks for ─────────────────────────────────────────────────────────────────


def test_no_supersede_stands_beside(world, lives):
    """Both are known; what follows supersedes the first of them only."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=5, directives={"no_supersede": True})
    world.says(ALICE, lives("Rome"), on=6)
    world.says(ALICE, lives("Oslo"), on=9)

    assert ["Paris", "Rome"] == world.values(7)
    assert ["Oslo", "Rome"] == world.values(10)
    assert 2 == len(world.fact("Rome").supports)
    assert [] == world.rows("conflicts")


def test_what_stands_beside_can_end(world, lives):
    """By an end, or by a denial."""
    world.says(ALICE, lives("Paris"), on=1)
    for what in ("Rome", "Oslo"):
        world.says(ALICE, lives(what), on=5, directives={"no_supersede": True})
    world.says(ALICE, lives("Rome", ends=True), on=8)
    world.says(ALICE, lives("Oslo", polarity="negative"), on=9)

    assert ["-Oslo", "Paris"] == world.values(10)


def test_no_supersede_where_nothing_stands(world, lives):
    """There is nothing to stand beside: later values supersede it."""
    world.says(ALICE, lives("Rome"), on=5, directives={"no_supersede": True})
    world.says(ALICE, lives("Oslo"), on=9)

    assert ["Oslo"] == world.values(10)


def test_a_fact_goes_with_its_event(world, lives):
    """What rests on an event alone is known as long as it; a support without end saves it."""
    ttl = {"ttl_for_event_layer": "P5D"}
    world.says(ALICE, lives("Paris"), on=1, directives=ttl)
    assert (["Paris"], []) == (world.values(5), world.values(6))

    world.says(ALICE, lives("Paris"), on=3)
    assert ["Paris"] == world.values(9)


def test_what_has_lapsed_is_not_supported(world, lives):
    """Said again later it is another fact, and what it had superseded stays ended."""
    world.says(ALICE, lives("Rome"), on=0)
    world.says(ALICE, lives("Paris"), on=1, directives={"ttl_for_event_layer": "P5D"})
    world.says(ALICE, lives("Paris"), on=9)

    assert [[], ["Paris"]] == [world.values(8), world.values(10)]
    assert 2 == sum(1 for fact in world.rows("facts") if told(fact) == "Paris")


def test_consolidated_into_another_scope(world, lives):
    """The records live there, and cite the event of the scope where it was said."""
    event = world.says(ALICE, lives("Paris"), on=1, directives={"consolidate_into": "ws:launch"})
    (fact,) = world.rows("facts")
    keys = [key for key, _ in world.fold().scan(1, "facts_in", b"")]

    assert ("ws:launch", [event]) == (fact.scope, fact.supports)
    assert world.number("ws:launch") == int.from_bytes(keys[0][:4], "big")


def test_scopes_do_not_mix(world, lives):
    """What is known in one scope is not superseded from another."""
    world.says(ALICE, lives("Paris"), on=1, scope="org:acme/user:alice")
    world.says(ALICE, lives("Rome"), on=5, scope="ws:launch")

    assert ["Paris", "Rome"] == world.values(6)


# ── conflicts ────────────────────────────────────────────────────────────────────────────────


def test_far_less_sure_does_not_supersede(world, lives, module):
    """Within the band the latest wins; below it the claim is kept as a conflict, and not known."""
    world.says(ALICE, lives("Paris", confidence=0.95), on=1)
    world.says(ALICE, lives("Rome", confidence=0.5), on=5)
    (conflict,) = world.rows("conflicts")
    rome = world.fact("Rome")

    assert ["Paris"] == world.values(6)
    assert (world.fact("Paris").id, rome.id) == (conflict.standing, conflict.rival)
    assert ("below_confidence_band", "kept_standing") == (conflict.reason, conflict.resolution)
    assert (module.day(5), rome.recorded_from) == (rome.recorded_to, rome.recorded_from)
    assert "Rome" in [told(f) for f in world.facts(module.day(6), include_superseded=True)]


def test_repeating_makes_nothing_unshakeable(world, lives):
    """A fact told often gives way to news as sure as each telling was."""
    for on in range(9):
        world.says("user:bob" if on % 2 else ALICE, lives("Paris", confidence=0.6), on=on)
    world.says(ALICE, lives("Rome", confidence=0.5), on=20)

    assert ["Rome"] == world.values(21)


def test_a_rejected_claim_again_is_counted(world, lives):
    """One conflict, claimed three times; no second fact."""
    world.says(ALICE, lives("Paris", confidence=0.95), on=1)
    for on in (5, 6, 7):
        world.says(ALICE, lives("Rome", confidence=0.5), on=on)
    (conflict,) = world.rows("conflicts")

    assert (3, 2) == (conflict.count, len(world.rows("facts")))


@pytest.mark.parametrize("confidence, expected", [(0.8, "Paris"), (0.9, "Rome"), (0.95, "Rome")])
def test_highest_confidence_wins(world, lives, confidence, expected):
    """Under that policy less sure news waits, and as sure news is news."""
    register(world, "highest_confidence_wins")
    world.says(ALICE, lives("Paris", confidence=0.9), on=1)
    world.says(ALICE, lives("Rome", confidence=confidence), on=5)

    assert [expected] == world.values(6)


@pytest.mark.parametrize("policy", ["manual", "keep_both"])
def test_both_stand_until_someone_decides(world, lives, policy):
    """Both say that they are disputed."""
    register(world, policy)
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=5)
    world.says(ALICE, lives("Rome"), on=6)
    (conflict,) = world.rows("conflicts")

    assert ["Paris", "Rome"] == world.values(7)
    assert ("policy_keeps_both", "unresolved", policy) == (
        conflict.reason,
        conflict.resolution,
        conflict.policy,
    )
    assert ["conflict_unresolved"] * 2 == [fact.partial_reason for fact in world.rows("facts")]


def test_both_of_a_denial_stand(world, lives):
    """Said and denied, where the scope keeps both."""
    register(world, "keep_both")
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Paris", polarity="negative"), on=5)

    assert ["-Paris", "Paris"] == world.values(6)


@pytest.mark.parametrize(
    "where, more", [("org:acme", {}), ("ws:rules", {"inherit_from": ["ws:rules"]})]
)
def test_a_policy_is_inherited(world, lives, where, more):
    """From the scope above, or from one that it names."""
    register(world, "keep_both", scope=where)
    if more:
        register(world, None, **more)
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=5)

    assert ["Paris", "Rome"] == world.values(6)


def test_a_dropped_scope_has_no_policy(world, lives):
    """The default counts again."""
    register(world, "keep_both")
    world.orders(DropScope(records="keep"), on=0)
    world.says(ALICE, lives("Paris"), on=1)
    world.says(ALICE, lives("Rome"), on=5)

    assert ["Rome"] == world.values(6)


# ── trust ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [
        {"who": "agent:bot", "role": "assistant"},
        {"who": "tool:crm", "modality": "tool_result"},
        {"who": "user:bob", "source": Mention(text="Carol")},
    ],
    ids=["assistant", "tool", "hearsay"],
)
def test_less_trusted_does_not_override(world, module, lives, options):
    """A machine about a person, or hearsay: a conflict is recorded, and what was trusted stays."""
    source, who = options.pop("source", None), options.pop("who")
    world.says(ALICE, lives("Paris"), on=1)
    world.says(who, lives("Rome", source=source), on=5, **options)
    (conflict,) = world.rows("conflicts")

    assert ["Paris"] == world.values(6)
    assert ("less_trusted", "low") == (conflict.reason, world.fact("Rome").trust)


def test_less_trusted_overrides_by_a_clear_margin(world, lives):
    """What a person only guessed, a machine may know."""
    world.says(ALICE, lives("Paris", confidence=0.4), on=1)
    world.says("agent:bot", lives("Rome"), on=5, role="assistant")

    assert ["Rome"] == world.values(6)


def test_less_trusted_may_not_end_it_either(world, lives):
    """Nor deny it."""
    world.says(ALICE, lives("Paris"), on=1)
    world.says("agent:bot", lives("Paris", ends=True), on=5, role="assistant")
    world.says("agent:bot", lives("Paris", polarity="negative"), on=6, role="assistant")

    assert ["Paris"] == world.values(7)


def test_a_trusted_word_overrides_a_machine_s(world, lives):
    """The other way round there is no question."""
    world.says("agent:bot", lives("Rome"), on=1, role="assistant")
    world.says(ALICE, lives("Paris"), on=5)

    assert ["Paris"] == world.values(6)


def test_a_machine_is_trusted_about_things(world, module):
    """And about itself, and with exact content about anyone."""
    world.says(ALICE, module.claim("Acme", "seats", 100), on=1)
    world.says("agent:bot", module.claim("Acme", "seats", 200), on=5, role="assistant")
    triple = TripleContent(triple=Triple(subject=ALICE, predicate="lives_in", object="Rome"))
    world.says(ALICE, module.claim(ALICE, "lives_in", "Paris"), on=6)
    world.says("agent:bot", module.claim(ALICE, "lives_in", "Rome"), on=7, content=triple)

    assert ["200", "Rome"] == world.values(8)


# ── taking back ──────────────────────────────────────────────────────────────────────────────


def cancel(world, event, on, stages=()):
    """Cancel an event whose stages have run, or all but those."""
    world.orders(Cancel(event_id=event, offset=1, stages=list(stages)), on=on)


def test_what_rests_on_nothing_else_is_closed(world, lives, module):
    """Known until the event was cancelled, and no longer."""
    event = world.says(ALICE, lives("Paris"), on=1)
    cancel(world, event, on=5)

    assert (["Paris"], []) == (world.values(3), world.values(6))
    assert (1, module.day(5)) == (world.fact("Paris").version, world.fact("Paris").recorded_to)
    assert [world.fact("Paris").id] == world.rows("facts_moved")[0].ids


def test_what_rests_on_others_loses_one(world, lives):
    """And is weighed anew."""
    first = world.says(ALICE, lives("Paris", confidence=0.8), on=1)
    second = world.says("user:bob", lives("Paris", confidence=0.9), on=2)
    cancel(world, first, on=5)
    fact = world.fact("Paris")

    assert ([second], 0.9, 3) == (fact.supports, fact.confidence, fact.version)


def test_what_was_superseded_goes_on(world, lives):
    """As if the event had never been; what followed it still follows."""
    world.says(ALICE, lives("Paris"), on=1)
    wrong = world.says(ALICE, lives("Rome"), on=10)
    world.says(ALICE, lives("Oslo"), on=20)
    cancel(world, wrong, on=30)

    assert ["Rome"] == world.values(25, 15)
    assert [["Paris"], ["Oslo"]] == [world.values(31, at) for at in (15, 31)]


def test_what_was_corrected_comes_back(world, lives):
    """A fact that was closed is known again, and was not in between."""
    world.says(ALICE, lives("Paris"), on=1)
    wrong = world.says(ALICE, lives("Rome", corrects=True), on=10)
    cancel(world, wrong, on=20)

    assert [["Paris"], ["Rome"], ["Paris"]] == [world.values(at, 5) for at in (5, 15, 21)]


def test_what_was_ended_goes_on(world, likes):
    """Without the event that ended it."""
    world.says(ALICE, likes("jazz"), on=1)
    end = world.says(ALICE, likes("jazz", ends=True), on=5)
    cancel(world, end, on=9)

    assert ([], ["jazz"]) == (world.values(7), world.values(10))


@pytest.mark.parametrize("cardinality", ["single", "multi"])
def test_what_was_denied_goes_on(world, module, cardinality):
    """Without the denial."""

    def claim(polarity):
        return module.claim(ALICE, "in", "Paris", cardinality=cardinality, polarity=polarity)

    world.says(ALICE, claim("positive"), on=1)
    denial = world.says(ALICE, claim("negative"), on=5)
    cancel(world, denial, on=9)

    assert (["-Paris"], ["Paris"]) == (world.values(7), world.values(10))


def test_an_earlier_beginning_is_taken_back(world, lives, module):
    """The fact begins where those say who still do."""
    world.says(ALICE, lives("Paris"), on=20)
    earlier = world.says(ALICE, lives("Paris", valid_from=module.day(2)), on=30)
    cancel(world, earlier, on=40)

    assert module.day(20) == world.fact("Paris").valid_from


def test_a_claim_that_could_not_get_past_comes_back(world, lives):
    """When what stood is withdrawn, the rival is all there is."""
    trusted = world.says(ALICE, lives("Paris"), on=1)
    world.says("agent:bot", lives("Rome"), on=5, role="assistant")
    cancel(world, trusted, on=9)
    (conflict,) = world.rows("conflicts")

    assert (["Paris"], ["Rome"]) == (world.values(7), world.values(10))
    assert "rival_taken" == conflict.resolution


def test_a_dispute_ends_with_one_side(world, lives):
    """Whichever is withdrawn, the other is disputed no longer."""
    register(world, "keep_both")
    first = world.says(ALICE, lives("Paris"), on=1)
    second = world.says(ALICE, lives("Rome"), on=5)
    third = world.says(ALICE, lives("Oslo"), on=6)
    cancel(world, second, on=9)
    assert ["rival_withdrawn", "unresolved"] == sorted(
        c.resolution for c in world.rows("conflicts")
    )
    assert world.fact("Paris").partial

    cancel(world, first, on=10)
    assert ["rival_taken", "rival_withdrawn"] == sorted(
        c.resolution for c in world.rows("conflicts")
    )
    assert (["Oslo"], False) == (world.values(11), world.fact("Oslo").partial)
    assert [third] == world.fact("Oslo").supports


def test_a_dispute_ends_with_its_last_rival(world, lives):
    """What stands says no longer that it is disputed."""
    register(world, "keep_both")
    world.says(ALICE, lives("Paris"), on=1)
    rival = world.says(ALICE, lives("Rome"), on=5)
    cancel(world, rival, on=9)

    assert (["Paris"], False) == (world.values(10), world.fact("Paris").partial)


def test_a_withdrawn_claim_does_not_come_back(world, lives):
    """The rival was cancelled before what stood was."""
    trusted = world.says(ALICE, lives("Paris"), on=1)
    rival = world.says("agent:bot", lives("Rome"), on=5, role="assistant")
    cancel(world, rival, on=8)
    cancel(world, trusted, on=9)

    assert [] == world.values(10)
    assert ["rival_withdrawn"] == [c.resolution for c in world.rows("conflicts")]


def test_what_never_ran_leaves_nothing_to_take_back(world, lives):
    """A cancellation that stopped the stages is the runner's, and not ours (ADR 0015)."""
    event = world.says(ALICE, lives("Paris"), on=1)
    world.fold()
    cancel(world, event, on=5, stages=["extracted"])

    assert ["Paris"] == world.values(6)


@pytest.mark.parametrize("event", ["evt_x", "evt_019b76da-a800-7000-8000-000000000fff"])
def test_an_event_without_facts(world, event):
    """There is nothing to take back."""
    cancel(world, event, on=5)

    assert [] == world.rows("facts_moved")


# ── vocabularies, models ─────────────────────────────────────────────────────────────────────


def vocabulary(world, scope=None, **fields):
    """Set a vocabulary with one term."""
    term = PredicateTerm(id="deal_stage", values=["poc", "signed"], **fields)
    one = Vocabulary(name="sales_v1", scope=scope, predicates=[term])
    world.orders(SetVocabulary(vocabulary=one), on=0)


@pytest.mark.parametrize("scope", [None, "org:acme", "org:acme/user:alice"])
def test_a_vocabulary_names_the_predicate(world, module, scope):
    """Where it holds, the free words become its term, spelled as it spells them (001 §7.3.1)."""
    vocabulary(world, scope, cardinality="single")
    said = module.Value(datatype="string", value="Signed")
    world.says(ALICE, module.claim("Acme", "stage of deal", said, cardinality="multi"), on=1)
    (fact,) = world.rows("facts")

    assert ("deal_stage", "signed", "single") == (fact.predicate, told(fact), fact.cardinality)
    assert "sales_v1" == fact.vocabulary
    assert 0.6 <= fact.vocabulary_confidence <= 1.0


@pytest.mark.parametrize("scope", ["ws:other", "org:acme/user:ali"])
def test_a_vocabulary_of_another_scope(world, module, scope):
    """Leaves the words as they are."""
    vocabulary(world, scope)
    world.says(ALICE, module.claim("Acme", "stage of deal", "Signed"), on=1)
    (fact,) = world.rows("facts")

    assert ("stage of deal", None) == (fact.predicate, fact.vocabulary)


def test_a_model_s_reading_supports_with_the_event(world, lives):
    """The facts of an annotation cite the event it is about, as its speaker's words."""
    event = world.says(ALICE, lives("Paris"), on=1)
    frame = Envelope(
        scope="org:acme/user:alice",
        modality="conversation",
        content=Message(role="user", text="-"),
        context=Context(observed_at=world.entries[0].recorded_at),
        idempotency_key="-",
    )
    output = {
        "facts": [
            {"subject": ALICE, "predicate": "lives_in", "object": "Paris", "confidence": 0.95},
            {"subject": ALICE, "predicate": "works_at", "object": "Acme", "confidence": 0.8},
        ]
    }
    body = Annotation(
        about=event, model="m", version="1", output=output, scope=frame.scope, frame=frame
    )
    world._add(body, frame.scope, world.entries[0].recorded_at)

    assert ["Acme", "Paris"] == world.values(2)
    assert [[event], [event]] == [fact.supports for fact in world.rows("facts")]
    assert {"rules", "m"} == {fact.extractor for fact in world.rows("facts")}


def test_an_erased_body_says_nothing(world, lives):
    """What is gone has no facts."""
    world.says(ALICE, lives("Paris"), on=1)
    world.extractions.clear()
    world.entries = [world.erased(entry) for entry in world.entries]

    assert [] == world.rows("facts")


def test_no_name_is_in_a_key(world, lives):
    """Keys hold numbers and hashes only."""
    world.says(ALICE, lives("Paris"), on=1)
    keys = b"".join(key for _, _, key in world.fold().rows)

    assert [] == [word for word in (b"alice", b"Paris", b"paris", b"lives") if word in keys]
