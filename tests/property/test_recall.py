"""Does a pack keep its promises, whatever is asked?  One memory, many requests.

The budget is never exceeded; every citation leads to events the caller may read; a pack as of a
moment holds nothing recorded later; the same request at the same point of the log gives the same
pack; and a stream tells the same pack as a plain answer.
"""

import asyncio
import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import policy, records
from engine.capture import capture
from engine.read import find_event
from engine.recall import recall, recall_stream
from engine.rows import CaptureRequest
from engine.scopes import register_scope
from engine.temporal import Window
from schemas.caller import Caller
from schemas.entry import Member
from schemas.envelope import Actor, Context, Envelope, Message
from schemas.ids import parse_id, uuid7_instant_us
from schemas.pack import Budgets, LayerCaps, RecallRequest
from schemas.scopes import RegisterRequest
from schemas.temporal import TemporalBlock
from schemas.times import from_us

ALICE = Caller(actor="user:alice", tenant="acme")
BOB = Caller(actor="user:bob", tenant="acme")
HOME = "org:acme/user:alice"
SCOPES = (HOME, "org:acme", "org:acme/user:bob", "org:acme/user:alice/ws:closed")
SAID = (
    "I live in Lisbon and work at Acme",
    "Acme moved to 200 seats",
    "Acme now has 300 seats",
    "I moved to Porto in March",
    "Dana prefers tea to coffee",
    "My sister Anna bought a red car",
    "The Q3 launch was decided for July",
    "Remember that the launch was moved to August. " + "Nothing else was said. " * 60,
    "What did we decide about the launch?",
    "The vault code is 7741\nand the second line says more",
)
WORDS = ("seats", "launch", "Anna's car", "where does Alice live?", "tea", "what changed in March?")


async def _fill(site, rig):
    """Things said in several scopes, one of which is closed to Alice."""
    engine = site.engine
    for number, text in enumerate(SAID * 2):
        scope = SCOPES[number % len(SCOPES)]
        caller = BOB if "bob" in scope or "closed" in scope else ALICE
        envelope = Envelope(
            scope=scope,
            modality="conversation",
            observed_actor=Actor(id=caller.actor, session=f"s{number // 5}"),
            content=Message(role="user", text=text),
            context=Context(observed_at=from_us(rig.START_US - 10**12 + number * 10**9)),
            idempotency_key=f"k{number}",
        )
        await capture(engine, caller, CaptureRequest(envelope=envelope))
    closed = RegisterRequest(path=SCOPES[3], members=[Member(actor="user:bob", role="owner")])
    await register_scope(engine, BOB, closed)
    await site.settle()


@pytest.fixture(scope="module")
def memory(rig):
    """An engine that knows a few things, and the moments at which it learned them."""
    with asyncio.Runner() as runner:
        site = rig.Site(embedder="wordllama")
        engine = runner.run(site.open())
        runner.run(_fill(site, rig))
        runner.run(site.index_all())
        moments = [
            engine.entry_of(row).recorded_at for row in engine.log.read(1, engine.log.head())
        ]
        yield engine, moments
        runner.run(site.kill(power_cut=False))


requests = st.builds(
    RecallRequest,
    scope=st.sampled_from(SCOPES[:3]),
    query=st.none() | st.sampled_from(WORDS),
    view=st.sampled_from(
        ["holistic", "local", "descend", "raw", "granular", "narrative", "structured"]
    ),
    citation_mode=st.sampled_from(
        ["none", "inline_with_markers", "block_at_end", "structured_only"]
    ),
    budgets=st.builds(
        Budgets,
        max_tokens=st.sampled_from([0, 30, 60, 90, 150, 400, 4000]),
        per_layer_limits=st.builds(
            LayerCaps, events=st.integers(0, 12), facts=st.none() | st.integers(0, 6)
        ),
    ),
    mmr_lambda=st.none() | st.floats(0, 1),
    exclude_content=st.booleans(),
    include_superseded=st.booleans(),
    filters=st.sampled_from([None, {"actor": "user:alice"}, {"NOT": {"session": "s1"}}]),
)
callers = st.sampled_from([ALICE, BOB])
quickly = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def ask(engine, caller, request):
    return json.loads(recall(engine, caller, request).kept.raw)


def items_of(pack):
    return [item for items in pack["layers"].values() for item in items]


@quickly
@given(callers, requests)
def test_the_budget_is_never_exceeded(memory, caller, request_):
    """Neither by what is said to be used nor by the block as its tokenizer counts it."""
    engine, _ = memory
    pack = ask(engine, caller, request_)
    allowed = request_.budgets.max_tokens

    assert pack["budget"]["used_tokens"] <= allowed
    assert engine.embedder.count(pack["context_block"]) <= allowed
    caps = request_.budgets.per_layer_limits
    assert len(pack["layers"]["events"]) <= caps.events
    assert caps.facts is None or len(pack["layers"]["facts"]) <= caps.facts


@quickly
@given(callers, requests)
def test_every_citation_ends_in_events_the_caller_may_read(memory, caller, request_):
    """The graph has no loops, and its leaves are events of scopes that are open to the caller."""
    engine, _ = memory
    pack = ask(engine, caller, request_)
    graph = pack["provenance"]["citations"]

    def events_below(name, seen):
        assert name not in seen, "a record that rests on itself"
        if name.startswith("evt_"):
            return {name}
        return set().union(*(events_below(next_, {*seen, name}) for next_ in graph[name]))

    for name in graph:
        below = events_below(name, set())
        assert below
        for event in below:
            entry = entry_of(engine, event)
            assert policy.may(engine, caller, "scope.read.local", entry.scope)
    for item in items_of(pack):
        derived = not item["id"].startswith("evt_")
        assert not derived or item["id"] in graph or item["evidence_withheld"] > 0
        assert policy.may(engine, caller, "scope.read.local", item["scope"])


def entry_of(engine, event_id):
    _, offset, _ = find_event(engine, "acme", event_id)
    return engine.entry_of(engine.log.read_many([offset])[0])


@quickly
@given(callers, requests, st.integers(0, 19))
def test_as_of_holds_nothing_recorded_later(memory, caller, request_, place):
    """Neither an item, nor a pointer to one, nor a citation."""
    engine, moments = memory
    moment = moments[place]
    text = msgspec.json.encode(moment).decode().strip('"')
    asked = msgspec.structs.replace(request_, temporal=TemporalBlock(as_of=text))
    pack = ask(engine, caller, asked)

    for item in items_of(pack):
        known = item["context"]["recorded_at"] if "context" in item else item["recorded_from"]
        assert msgspec.convert(known, type(moment)) <= moment
        for name in item.get("derives", []):
            assert made_at(name) <= moment
    for name, cited in pack["provenance"]["citations"].items():
        assert all(made_at(one) <= moment for one in [name, *cited])


@quickly
@given(st.integers(0, 19), st.none() | st.integers(0, 19), st.booleans())
def test_one_version_is_the_newest_of_all_that_a_window_shows(memory, known, valid, past):
    """A reader of one version sees what a reader of all of them sees first."""
    engine, moments = memory
    window = Window(
        known_at=moments[known],
        valid_at=None if valid is None else moments[valid],
        include_superseded=past,
    )
    tenant_no = engine.tenant_no(ALICE)
    layers = ("episodes", "facts", "beliefs", "concepts")
    places = [(layer, raw) for layer in layers for raw, _ in engine.staged.scan(tenant_no, layer)]

    assert {"episodes", "facts", "beliefs"} <= {layer for layer, _ in places}
    for layer, raw in places:
        every = records.visible_versions(engine, tenant_no, layer, raw, window)
        one = records.visible_version(engine, tenant_no, layer, raw, window)
        assert (every[0] if every else None) == one


def made_at(record_id):
    return from_us(uuid7_instant_us(parse_id(record_id.partition("_")[0], record_id)))


PASSING = ("as_of", "expires_at")


@quickly
@given(callers, requests)
def test_the_same_request_gives_the_same_pack(memory, caller, request_):
    """Byte for byte, but for the moment of asking."""
    engine, _ = memory
    first, again = (recall(engine, caller, request_).kept.raw for _ in range(2))

    def settled(raw):
        pack = json.loads(raw)
        return json.dumps({name: pack[name] for name in pack if name not in PASSING})

    assert settled(first) == settled(again)


@quickly
@given(callers, requests)
def test_a_stream_tells_the_same_pack(memory, caller, request_):
    """Put together again, the frames are the pack; and from any of them on it can be resumed."""
    engine, _ = memory
    plain = ask(engine, caller, request_)
    frames = asyncio.run(collected(recall_stream(engine, caller, request_)))
    names = [name for _, name, _ in frames]
    data = {name: value for _, name, value in frames}

    assert ("plan", "done") == (names[0], names[-1])
    assert plain["pack_id"] == data["done"]["pack_id"]
    assert plain["provenance"] == data["provenance"]
    assert plain["citations"] == data["citations"]
    if request_.view == "narrative":
        words = "".join(value["text"] for _, name, value in frames if name == "token")
        assert plain["context_block"] == words
    else:
        assert plain["context_block"] == data["context_block"]["text"]
        layers = {v["layer"]: v["items"] for _, name, v in frames if name == "layer"}
        assert {layer: items for layer, items in plain["layers"].items() if items} == layers
    middle = frames[len(frames) // 2]
    if middle[0] is not None:
        rest = asyncio.run(collected(recall_stream(engine, caller, request_, middle[0])))
        assert frames[len(frames) // 2 + 1 :] == rest


async def collected(stream):
    """(id, event, data) of every frame."""
    found = []
    async for raw in stream:
        fields = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
        found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return found
