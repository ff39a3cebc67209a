"""Does what a reader is told of a moment stay, whatever comes later?  Every layer, by its verb."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.capture import capture
from engine.layers.beliefs import BeliefsRequest, list_beliefs
from engine.layers.episodes import EpisodesRequest, list_episodes
from engine.layers.facts import FactsRequest, list_facts
from engine.layers.understanding import ConceptsRequest, list_concepts
from engine.rows import CaptureRequest
from engine.watch import cancel
from schemas.envelope import Context, Envelope, Message, Term, Triple, TripleContent
from schemas.lifecycle import CancelRequest
from schemas.temporal import TemporalBlock
from schemas.times import from_us

SCOPE = "org:acme/user:alice"
DAY_ONE = datetime(2026, 1, 1, tzinfo=UTC)
LISTINGS = (
    (list_episodes, EpisodesRequest),
    (list_facts, FactsRequest),
    (list_beliefs, BeliefsRequest),
    (list_concepts, ConceptsRequest),
)
ENDS = {"recorded_to", "superseded_by", "held_from"}
encode = msgspec.json.Encoder().encode

days = st.integers(0, 30)
triples = st.tuples(
    st.just("triple"),
    days,
    st.sampled_from(["Acme", "Zeta"]),
    st.sampled_from(["stage", "owner", "likes"]),
    st.sampled_from(["one", "two", "three"]),
)
sentences = st.tuples(
    st.just("said"),
    days,
    st.sampled_from(
        ["I live in Paris.", "I moved to Rome.", "I no longer live in Rome.", "Fine weather."]
    ),
)
withdrawals = st.tuples(st.just("cancel"), st.integers(0, 5))
stories = st.lists(triples | triples | sentences | withdrawals, min_size=1, max_size=6)


def envelope(number, what):
    """What the n-th step of a story posts."""
    if what[0] == "triple":
        _, day, subject, predicate, value = what
        triple = Triple(subject=Term(name=subject), predicate=predicate, object=value)
        content = TripleContent(triple=triple)
    else:
        _, day, text = what
        content = Message(role="user", text=text)
    return Envelope(
        scope=SCOPE,
        modality="conversation",
        content=content,
        context=Context(observed_at=DAY_ONE + timedelta(days=day)),
        idempotency_key=f"k{number}",
    )


def told(engine, caller, at):
    """Every layer as of a moment: in bytes, and its records."""
    temporal = TemporalBlock(as_of=at.isoformat())
    records = [
        record
        for verb, request in LISTINGS
        for record in verb(
            engine, caller, request(scope=SCOPE, temporal=temporal, limit=1000)
        ).value.items
    ]
    return encode([_open(record) for record in records]), records


def _open(record):
    """A record without what is said of its end: that is learnt later, and is told (001 §7.3)."""
    fields = msgspec.structs.asdict(record)
    return {name: value for name, value in fields.items() if name not in ENDS}


async def live(site, rig, story):
    """Let a story happen; after each step, when it was and what every layer said then."""
    engine = await site.open()
    posted, seen = [], []
    for number, what in enumerate(story):
        if what[0] == "cancel":
            if what[1] < len(posted):
                await cancel(engine, rig.ALICE, posted[what[1]], CancelRequest())
        else:
            request = CaptureRequest(envelope=envelope(number, what))
            posted.append((await capture(engine, rig.ALICE, request)).event_id)
        await site.settle()
        if engine.log.head():
            at = from_us(engine.log.last_recorded_us)
            seen.append((at, told(engine, rig.ALICE, at)[0]))
    return engine, seen


@given(story=stories)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_an_answer_as_of_a_moment_never_changes(rig, story):
    """Later entries, also cancellations, change no answer as of before them; and what is shown
    lies in its two intervals.
    """

    async def run():
        async with rig.Site() as site:
            engine, seen = await live(site, rig, story)
            for at, before in seen:
                after, records = told(engine, rig.ALICE, at)
                assert before == after
                for record in records:
                    assert record.recorded_from <= at
                    assert record.recorded_to is None or at < record.recorded_to
                    assert record.valid_from <= at
                    assert record.valid_to is None or at < record.valid_to

    asyncio.run(run())


@given(story=stories, limit=st.integers(1, 3))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_plain_read_is_as_of_now_and_pages_are_its_parts(rig, story, limit):
    """No `as_of` means now; superseded versions only add; a page is a piece of the whole."""

    async def run():
        async with rig.Site() as site:
            engine, _ = await live(site, rig, story)
            now = from_us(engine.log.last_recorded_us)
            for verb, request in LISTINGS:
                plain = verb(engine, rig.ALICE, request(scope=SCOPE)).value
                pinned = verb(
                    engine,
                    rig.ALICE,
                    request(scope=SCOPE, temporal=TemporalBlock(as_of=now.isoformat())),
                ).value
                wide = request(scope=SCOPE, temporal=TemporalBlock(include_superseded=True))
                whole = verb(engine, rig.ALICE, wide).value.items
                parts, cursor = [], None
                while True:
                    asked = msgspec.structs.replace(wide, limit=limit, cursor=cursor)
                    page = verb(engine, rig.ALICE, asked).value
                    parts += page.items
                    cursor = page.next_cursor
                    if cursor is None:
                        break
                assert encode(plain.items) == encode(pinned.items)
                assert encode(whole) == encode(parts)
                assert {one.id for one in plain.items} <= {one.id for one in whole}

    asyncio.run(run())
