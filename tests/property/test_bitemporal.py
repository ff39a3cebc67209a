"""Does what is known keep both of its times, whatever is told in whatever order?"""

from collections import defaultdict
from datetime import UTC, datetime
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.temporal import Window, is_visible
from projectors.facts.lines import Line
from projectors.facts.rows import Segment
from projectors.facts.sheet import Sheet
from projectors.text import Candidate, Mention, Value
from schemas.entry import Cancel, Member, RegisterScope, ScopePolicies
from schemas.times import from_us, to_us

SPEAKERS = ("user:alice", "user:bob", "agent:bot")
POLICIES = (None, "latest_wins_within_confidence_band", "highest_confidence_wins", "no such policy")

days = st.integers(0, 12)
sentences = st.fixed_dictionaries(
    {
        "subject": st.sampled_from(["user:alice", "Acme"]),
        "predicate": st.sampled_from(["lives_in", "likes"]),
        "what": st.sampled_from(["Paris", "Rome", "Oslo", 7, 7.5]),
        "confidence": st.sampled_from([0.2, 0.5, 0.7, 0.9, 1.0]),
        "polarity": st.sampled_from(["positive", "positive", "positive", "negative"]),
        "since": st.none() | days,
        "until": st.none() | days,
        "ends": st.sampled_from([False, False, False, True]),
        "corrects": st.sampled_from([False, False, False, True]),
        "is_hearsay": st.sampled_from([False, False, True]),
    }
)
turns = st.fixed_dictionaries(
    {
        "who": st.sampled_from(SPEAKERS),
        "on": days,
        "sentences": st.lists(sentences, min_size=1, max_size=3),
        "ttl": st.sampled_from([None, None, None, "P2D", "PT0S"]),
        "floor": st.sampled_from([None, None, 0.6]),
    }
)
cancels = st.integers(0, 11)
stories = st.lists(turns | turns | cancels, max_size=14)
cuts = st.lists(st.integers(1, 4), max_size=12)


def tell(module, story, policy=None, **directives):
    """A world in which a story was told; a number cancels the event that came so many before."""
    world = module.World()
    if policy is not None:
        policies = ScopePolicies(conflict_resolution=policy)
        members = [Member(actor="user:alice", role="owner")]
        world.orders(RegisterScope(members=members, policies=policies), on=0)
    told: list[str] = []
    cancelled: set[str] = set()
    for turn in story:
        recorded = len(world.entries)
        if isinstance(turn, int):
            event = told[turn % len(told)] if told else None
            if event is not None and event not in cancelled:
                cancelled.add(event)
                world.orders(Cancel(event_id=event, offset=1, stages=[]), on=recorded)
            continue
        asked = {"ttl_for_event_layer": turn["ttl"], "confidence_floor": turn["floor"]}
        asked = {name: value for name, value in asked.items() if value is not None}
        candidates = [candidate(module, one) for one in turn["sentences"]]
        told.append(
            world.says(
                turn["who"],
                *candidates,
                on=turn["on"],
                recorded=recorded,
                role="assistant" if turn["who"] == "agent:bot" else "user",
                directives=asked | directives,
            )
        )
    return world


def candidate(module, one):
    """A candidate of a drawn sentence."""
    since, until = one["since"], one["until"]
    return module.claim(
        one["subject"],
        one["predicate"],
        one["what"],
        confidence=one["confidence"],
        polarity=one["polarity"],
        cardinality="single" if one["predicate"] == "lives_in" else "multi",
        valid_from=None if since is None else module.day(since),
        valid_to=None if until is None else module.day(until),
        ends=one["ends"],
        corrects=one["corrects"],
        source=module.mention("Bob") if one["is_hearsay"] else None,
    )


def moments(world):
    """Every moment at which what is known changes, and the one before it."""
    found = {to_us(entry.recorded_at) for entry in world.entries}
    ends = (fact.recorded_to for fact in world.versions())
    found |= {to_us(end) for end in ends if end is not None}
    return sorted({*found, *(moment - 1 for moment in found)})


def known_at(versions, moment):
    """The versions that were known at a moment."""
    at = from_us(moment)
    return [
        fact
        for fact in versions
        if fact.recorded_from <= at and (fact.recorded_to is None or at < fact.recorded_to)
    ]


def overlap(one, other):
    """Whether two facts hold at the same time."""
    return (one.valid_to is None or other.valid_from < one.valid_to) and (
        other.valid_to is None or one.valid_from < other.valid_to
    )


def answer(versions, moment):
    """What was known at a moment, without what only tells how it went on."""
    return {
        (
            fact.id,
            fact.version,
            str(fact.object),
            fact.valid_from,
            fact.valid_to,
            fact.confidence,
            tuple(fact.supports),
            fact.polarity,
            fact.partial,
        )
        for fact in known_at(versions, moment)
    }


@given(story=stories, policy=st.sampled_from(POLICIES))
@settings(deadline=None, max_examples=50)
def test_one_value_at_a_time(facts_world, story, policy):
    """Of a predicate that holds one value, at most one is known at any moment for any moment."""
    world = tell(facts_world, story, policy)
    versions = world.versions()
    for moment in moments(world):
        keys = defaultdict(list)
        for fact in known_at(versions, moment):
            if fact.cardinality == "single" and fact.polarity == "positive":
                keys[fact.subject.id, fact.predicate].append(fact)
        for facts in keys.values():
            assert not [pair for pair in combinations(facts, 2) if overlap(*pair)]


@given(story=stories, policy=st.sampled_from(POLICIES))
@settings(deadline=None, max_examples=40)
def test_nothing_is_known_and_denied(facts_world, story, policy):
    """The same claim is not at once said and denied, and each is known in one version."""
    world = tell(facts_world, story, policy)
    versions = world.versions()
    for moment in moments(world):
        known = known_at(versions, moment)
        assert len({fact.id for fact in known}) == len(known)
        for one, other in combinations(known, 2):
            same = (one.subject, one.predicate, one.object) == (
                other.subject,
                other.predicate,
                other.object,
            )
            assert not (same and overlap(one, other)), (one, other)


@given(story=stories)
@settings(deadline=None, max_examples=40)
def test_intervals_are_never_empty(facts_world, story):
    """A version holds for some time in the world, and none is known before it was recorded."""
    for fact in tell(facts_world, story).versions():
        assert fact.valid_to is None or fact.valid_from < fact.valid_to
        assert fact.recorded_to is None or fact.recorded_from <= fact.recorded_to


@given(story=stories, probes=st.lists(st.tuples(days, days), max_size=5))
@settings(deadline=None, max_examples=40)
def test_no_version_is_seen_outside_its_intervals(facts_world, story, probes):
    """What a reader sees at a pair of times is known at the one and valid at the other."""
    world = tell(facts_world, story)
    for known, valid in probes:
        known_us, valid_us = facts_world.day(known), facts_world.day(valid)
        seen = world.facts(known_us, valid_us)
        for fact in seen:
            assert fact.recorded_from <= known_us
            assert fact.recorded_to is None or known_us < fact.recorded_to
            assert fact.valid_from <= valid_us
            assert fact.valid_to is None or valid_us < fact.valid_to


@given(story=stories)
@settings(deadline=None, max_examples=40)
def test_as_of_now_is_the_plain_read(facts_world, story):
    """The latest versions alone answer for now: no past version is known any more."""
    world = tell(facts_world, story)
    if not world.entries:
        return
    now = world.entries[-1].recorded_at
    window = Window(known_at=now, valid_at=now)
    latest = [fact for fact in world.rows("facts") if is_visible(fact, window)]

    assert latest == world.facts(now)


@given(story=stories, policy=st.sampled_from([*POLICIES, "keep_both"]))
@settings(deadline=None, max_examples=40)
def test_a_later_entry_changes_no_earlier_answer(facts_world, story, policy):
    """What was known as of a moment is the same, whatever is written after it."""
    world = tell(facts_world, story, policy)
    entries, extractions = world.entries, world.extractions
    growing = facts_world.World()
    growing.extractions = extractions
    answers: dict[int, object] = {}
    for entry in entries:
        growing.entries.append(entry)
        versions = growing.versions()
        for moment, before in answers.items():
            assert before == answer(versions, moment)
        at = to_us(entry.recorded_at)
        answers[at] = answer(versions, at)


@given(story=stories, sizes=cuts, policy=st.sampled_from([*POLICIES, "manual"]))
@settings(deadline=None, max_examples=40)
def test_batches_do_not_matter(facts_world, story, sizes, policy):
    """I4: the same rows, byte for byte, whatever the batch sizes."""
    world = tell(facts_world, story, policy, no_supersede=len(sizes) % 3 == 0)
    rows = world.fold().rows

    assert rows == world.again(sizes) == world.again([1] * len(world.entries))


@given(story=stories, policy=st.sampled_from([*POLICIES, "keep_both"]))
@settings(deadline=None, max_examples=40)
def test_lines_say_what_records_say(facts_world, story, policy):
    """A fact on a line is valid from where it lies until it ends there, as far as it is known."""
    world = tell(facts_world, story, policy)
    store = world.fold()
    now = world.entries[-1].recorded_at if world.entries else facts_world.START
    for fact in world.rows("facts"):
        is_known = fact.recorded_to is None or now < fact.recorded_to
        if not is_known:
            continue
        raw = bytes.fromhex(fact.id.removeprefix("fact_").replace("-", ""))
        basis = store.get(1, "facts_basis", raw)
        sheet = Sheet(Reader(store), now)
        line = sheet.line(basis.line)
        segment = line.at_or_before(basis.start_us)
        assert segment.fact == raw
        ends_us = sheet.end_of(line, segment)
        assert (fact.valid_from, fact.valid_to) == (
            from_us(segment.start_us),
            None if ends_us is None else from_us(ends_us),
        )


class Reader:
    """One tenant's view of a store."""

    def __init__(self, store):
        self._store = store

    def get(self, table, key):
        return self._store.get(1, table, key)


# ── anything at all ──────────────────────────────────────────────────────────────────────────

instants = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
names = st.text(max_size=12) | st.sampled_from(["I", "...", "Acme", "user:alice"])
things = st.builds(
    Mention,
    text=names,
    kind=st.sampled_from(["person", "place", "thing", "actor"]),
    actor=st.none() | st.sampled_from(["user:alice", "agent:bot"]),
    ref=st.none() | names.filter(bool) | st.sampled_from(["ent_x", "concept_y"]),
)
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | names
values = st.builds(
    Value,
    datatype=st.sampled_from(["string", "integer", "number", "boolean", "date", "json"]),
    value=plain | st.lists(plain, max_size=3) | st.dictionaries(names, plain, max_size=3),
)
candidates = st.builds(
    Candidate,
    subject=things,
    predicate=names,
    object=things | values,
    confidence=st.floats(),
    polarity=st.sampled_from(["positive", "negative"]),
    cardinality=st.sampled_from(["single", "multi"]),
    kind=st.sampled_from(["state", "event", "plan"]),
    valid_from=st.none() | instants,
    valid_to=st.none() | instants,
    ends=st.booleans(),
    corrects=st.booleans(),
    source=st.none() | things,
)
asked = st.sampled_from([{}, {"no_supersede": True}, {"ttl_for_event_layer": "P9999Y"}])


@given(
    said=st.lists(st.tuples(st.lists(candidates, max_size=4), asked), max_size=5),
    sizes=cuts,
    cancelled=st.integers(0, 4),
)
@settings(deadline=None, max_examples=50)
def test_nothing_that_is_said_breaks_the_fold(facts_world, said, sizes, cancelled):
    """Whatever a text, a client or a model comes up with; and it is the same on every replay."""
    world = facts_world.World()
    events = [
        world.says("user:alice", *found, on=at, directives=directives)
        for at, (found, directives) in enumerate(said)
    ]
    for event in events[cancelled:]:
        world.orders(Cancel(event_id=event, offset=1, stages=[]), on=20)

    assert world.fold().rows == world.again(sizes)


# ── lines ────────────────────────────────────────────────────────────────────────────────────

steps = st.lists(st.tuples(st.sampled_from(["put", "put", "take"]), st.integers(0, 400)))


@pytest.fixture(scope="module")
def laid():
    """A segment that begins at a moment and says which step laid it."""

    def make(start, number):
        value = number.to_bytes(8, "big")
        return Segment(start, None, bytes(16), value, 1.0, 1)

    return make


@given(
    bulk=st.lists(st.integers(0, 4000), max_size=150),
    steps=steps,
    probes=st.sets(st.integers(0, 400)),
)
@settings(deadline=None, max_examples=50)
def test_a_line_is_a_sorted_list(facts_world, laid, bulk, steps, probes):
    """However long it is and whatever was taken from it, written out between any two steps."""
    tables = facts_world.World().tables
    store, model = facts_world.Store(tables), {}
    moves = [("put", start) for start in bulk] + steps
    for number, (what, start) in enumerate(moves):
        line = Line(Reader(store), b"line")
        if what == "put":
            line.put(laid(start, number))
            model[start] = laid(start, number)
        else:
            line.take(start)
            model.pop(start, None)
        overlay = facts_world.Overlay(store)
        for change in line.changes():
            overlay.apply(1, change)
        store.take(overlay)
    line = Line(Reader(store), b"line")
    starts = sorted(model)
    for probe in {*probes, *starts}:
        before = [start for start in starts if start <= probe]
        after = [start for start in starts if start > probe]
        assert (model[before[-1]] if before else None) == line.at_or_before(probe)
        assert (model[after[0]] if after else None) == line.after(probe)
