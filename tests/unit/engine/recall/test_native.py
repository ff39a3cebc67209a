"""Does the compiled arithmetic of recall say what numpy says?  (ADR 0045)"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.recall import columns
from engine.recall.candidates import Candidates, Question, Span
from engine.recall.late import Words
from engine.recall.native import Native
from engine.recall.rank import IN_CONTEXT, WEIGHTS, rank
from engine.state.block import Block
from engine.state.index import LAYERS

PIECES = 40
WIDTH = 24
HOUR_US = 3_600_000_000
ACTORS = ["", "user:ann", "user:bob", "agent:helper", "user:eve"]
ROLES = ["", "user", "assistant", "tool"]


class Spelling:
    """Pieces with vectors of their own; every third goes on with a word."""

    def __init__(self, chance):
        self.table = chance.normal(size=(PIECES, 8)).astype(np.float32)

    def token_vectors(self, tokens):
        return self.table[tokens]

    def begins_word(self, tokens):
        return np.asarray(tokens) % 3 != 2


def unit(rows):
    return (rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)).astype("f4")


def block_of(chance, count, *, has_sessions, has_assistant):
    """Rows of a scope: some repeat another, some say nothing, some are too long to be spelled."""
    lengths = chance.integers(0, 9, count) * (chance.random(count) < 0.9)
    vectors = unit(chance.normal(size=(count, WIDTH)))
    again = chance.integers(0, count, count)
    vectors = np.where((chance.random(count) < 0.2)[:, None], vectors[again], vectors)
    vectors[chance.random(count) < 0.05] = 0
    raws = [chance.bytes(16) for _ in range(count)]
    order = chance.permutation(len(ACTORS) - 1) + 1
    roles = ROLES if has_assistant else ROLES[:2]
    return Block(
        raws=raws,
        rows={raw: row for row, raw in enumerate(raws)},
        offsets=np.sort(chance.choice(10 * count, count, replace=False)).astype(np.int64),
        observed_us=np.sort(chance.integers(0, 40 * HOUR_US, count)),
        recorded_us=np.arange(count),
        session=(chance.integers(0, 4, count) if has_sessions else np.zeros(count)).astype("i4"),
        actor=chance.integers(0, len(ACTORS), count).astype(np.int32),
        words=chance.integers(0, 40, count).astype(np.int32),
        is_question=chance.random(count) < 0.3,
        vectors=np.ascontiguousarray(vectors),
        role=chance.integers(0, len(roles), count).astype(np.int8),
        tokens=chance.integers(0, PIECES, lengths.sum()).astype(np.int32),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        sessions=["", "a", "b", "c"],
        actors=["", *[ACTORS[at] for at in order]],
        roles=roles,
    )


def words_of(chance, embedder, count):
    pieces = chance.integers(0, PIECES, 2 * count).astype(np.int32)
    starts = np.arange(0, 2 * count, 2)
    if not count:
        return Words(pieces, starts, np.empty((0, 1), np.float32))
    return Words(pieces, starts, unit(np.add.reduceat(embedder.table[pieces], starts, axis=0)))


def scored_of(chance, place, channels):
    """What the channels said of some rows, best first."""
    said = []
    for channel in range(3):
        rows = chance.permutation(len(place.block.raws))[: channels[channel]].tolist()
        if place.admitted is not None:
            rows = [row for row in rows if place.admitted[row]]
        scores = np.sort(chance.random(len(rows)))[::-1].astype(np.float32)
        said.append((np.array(rows, np.int64), scores))
    return columns.Scored(*said)


class Compared:
    """The same rows as vectors are compared where no graph and no passage is in the way."""

    def __init__(self, blocks):
        self.blocks = blocks

    def likeness(self, scope_no, layer, rows, vector):
        found = self.blocks[layer, scope_no].vectors
        if vector is None or found.shape[1:] != vector.shape:
            return np.zeros(len(rows), np.float32)
        return found.take(rows, axis=0) @ vector


@st.composite
def asked(draw):
    """Blocks of one or two scopes, what channels said of them, and a question."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    has_sessions, has_assistant = draw(st.booleans()), draw(st.booleans())
    scope_nos = range(1, draw(st.integers(1, 2)) + 1)
    blocks = {
        (layer, scope_no): block_of(
            chance,
            draw(st.integers(1, 40)),
            has_sessions=has_sessions,
            has_assistant=has_assistant,
        )
        for layer in ("events", "facts", "beliefs")
        for scope_no in scope_nos
    }
    filters = draw(st.booleans())
    places = [
        columns.Place(
            layer,
            scope_no,
            block,
            chance.random(len(block.raws)) < 0.8 if filters else None,
            Compared(blocks),
        )
        for (layer, scope_no), block in blocks.items()
    ]
    channels = [draw(st.integers(1, 30)), draw(st.integers(0, 30)), draw(st.integers(0, 9))]
    embedder = Spelling(chance)
    question = Question(
        text="?",
        kind="lookup",
        terms=(),
        gist="?",
        about=tuple(draw(st.lists(st.sampled_from(ACTORS[1:]), unique=True, max_size=3))),
        expects=frozenset(draw(st.sampled_from([(), ("may",)]))),
        spans=tuple(
            Span(start * HOUR_US, (start + 5) * HOUR_US)
            for start in draw(st.lists(st.integers(0, 60), max_size=2))
        ),
        asks_assistant=draw(st.booleans()),
        wants_current=draw(st.booleans()),
    )
    return SimpleNamespace(
        places=places,
        scored=[scored_of(chance, place, channels) for place in places],
        near=draw(st.integers(0, 6)),
        question=question,
        weights=draw(st.sampled_from([WEIGHTS, IN_CONTEXT])),
        asked=columns.Asked(
            vector=unit(chance.normal(size=WIDTH)) if draw(st.integers(0, 5)) else None,
            words=words_of(chance, embedder, draw(st.integers(0, 6))),
            expected=words_of(chance, embedder, draw(st.integers(0, 3))),
            embedder=embedder,
        ),
    )


def parts_by(arithmetic, case, *, events):
    pairs = [
        pair
        for pair in zip(case.places, case.scored, strict=True)
        if (pair[0].layer == "events") == events
    ]
    near = case.near if events else 0
    return arithmetic.parts_of([place for place, _ in pairs], [some for _, some in pairs], near)


def ranked_by(arithmetic, case):
    groups = [parts_by(arithmetic, case, events=True), parts_by(arithmetic, case, events=False)]
    pools = arithmetic.pools_of(groups, case.asked)
    layers = [layer for layer in LAYERS if layer in ("events", "facts", "beliefs")]
    named = dict(zip(("events", "derived"), pools, strict=True))
    found = rank(Candidates(case.question, layers, named, {}), case.weights)
    return {layer: list(found[layer]) for layer in layers}


def rows_of(part):
    return np.frombuffer(part.rows, np.int64).tolist()


both_ways = settings(max_examples=150, deadline=None)


@both_ways
@given(case=asked())
def test_the_same_rows_are_chosen(kernel, case):
    """Hits and the neighbours of the best, in order, with what each channel said of them."""
    for events in (True, False):
        pairs = zip(
            parts_by(columns, case, events=events),
            parts_by(Native(kernel), case, events=events),
            strict=True,
        )
        for one, other in pairs:
            assert one.rows.tolist() == rows_of(other)
            said = np.frombuffer(other.scores, np.float32).reshape(3, -1)
            for channel, scores in zip(("words", "meaning", "lent"), said, strict=True):
                assert np.array_equal(one.scores(channel), scores)


@both_ways
@given(case=asked())
def test_the_same_order_with_the_same_reasons(kernel, case):
    """Both give every candidate the same features and scores, as far as float32 carries them.

    Where that decides between two of equal standing, either may come first.
    """
    plain, compiled = ranked_by(columns, case), ranked_by(Native(kernel), case)
    for layer, found in plain.items():
        again = {one.raw: one for one in compiled[layer]}
        assert {one.raw for one in found} == set(again)
        for one in found:
            other = again[one.raw]
            assert list(one.parts) == list(other.parts)
            assert np.allclose(list(one.parts.values()), list(other.parts.values()), atol=2e-3)
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert (one.layer, one.offset) == (other.layer, other.offset)
            assert one.duplicates == other.duplicates
            assert np.array_equal(one.vector, other.vector)
        for one, other in zip(found, compiled[layer], strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


@both_ways
@given(case=asked(), data=st.data())
def test_the_same_rows_are_found(kernel, case, data):
    """Each hit lies in the first place of its layer that has it and may show it, or nowhere."""
    known = [(place.layer, raw) for place in case.places for raw in place.block.raws]
    named = data.draw(st.lists(st.sampled_from([*known, ("facts", b"nobody")]), unique=True))
    hits = [(-1.0 / place, layer, raw, 0) for place, (layer, raw) in enumerate(named, start=1)]
    plain, compiled = columns.found(hits, case.places), Native(kernel).found(hits, case.places)

    assert [(bytes(rows), bytes(scores)) for rows, scores in plain] == compiled


@both_ways
@given(case=asked(), data=st.data())
def test_the_same_documents_are_the_strongest(kernel, case, data):
    """Words and meaning are added up, and equal ones come by id."""
    places = [place for place in case.places if place.layer == "facts"]
    raws = [raw for place in places for raw in place.block.raws]
    named = data.draw(st.lists(st.sampled_from(raws), unique=True))
    hits = [(-2.0 / (1 + at // 3), "facts", raw, 0) for at, raw in enumerate(named)]
    hits += [(-9.0, "beliefs", raw, 0) for raw in named]
    near = []
    for place in places:
        rows = data.draw(st.lists(st.integers(0, len(place.block.raws) - 1), unique=True))
        scores = np.array([1 / (1 + at // 2) for at in range(len(rows))], np.float32)
        near.append((np.array(rows, np.int64).tobytes(), scores.tobytes(), place.block.raws))
    most = data.draw(st.integers(0, 30))

    plain = columns.strongest(hits, "facts", near, most)
    assert plain == Native(kernel).strongest(hits, "facts", near, most)


def test_who_has_just_come_is_nobody(kernel):
    """A row that is revised while it is read may name an actor whom nobody counted yet."""
    chance = np.random.default_rng(1)
    block = block_of(chance, 12, has_sessions=True, has_assistant=True)
    place = columns.Place("events", 1, block, None, Compared({("events", 1): block}))
    given_ = columns.Asked(None, words_of(chance, None, 0), words_of(chance, None, 0), None)
    case = SimpleNamespace(
        places=[place],
        scored=[scored_of(chance, place, (12, 0, 0))],
        near=0,
        asked=given_,
        question=Question("?", "lookup", (), "?", about=("user:ann",)),
        weights=WEIGHTS,
    )
    ranked_by(Native(kernel), case)
    block.actor[3], block.role[3] = 99, 99

    assert 12 == len(ranked_by(Native(kernel), case)["events"])


def said(*rows):
    """What a channel said of rows."""
    return np.array(rows, np.int64), np.ones(len(rows), np.float32)


def talk(session, role, *, roles=3):
    """The columns of three rows that tell who stands beside whom."""
    return np.zeros(3, session), np.zeros(roles, role), np.zeros(3, np.int64)


@pytest.mark.parametrize(
    "call",
    [
        ("choose", said(9), said(), said(), 0, *talk("i4", "i1"), None),
        ("choose", (np.array([1]), b""), said(), said(), 0, *talk("i4", "i1"), None),
        ("choose", said(), said(), said(), 0, *talk("i4", "i1", roles=2), None),
        ("choose", said(), said(), said(), 0, *talk("i8", "i1"), None),
        ("pieces", [(np.array([2]), np.array([0, 1]), np.zeros(1, "i4"))]),
        ("pieces", [(np.array([0]), np.array([0, 7]), np.zeros(1, "i4"))]),
        ("strongest", [], "facts", [(np.array([1]), np.ones(1, "f4"), [b"only one"])], 9),
        ("strongest", [], "facts", [(np.array([0]), np.ones(2, "f4"), [b"only one"])], 9),
        ("meet", np.zeros((1, 2), "f4"), np.zeros((1, 2), "f4"), b"\1", np.array([1], "i4"), b""),
        ("weigh", np.zeros(1, "i4"), np.array([0]), [(np.zeros(1, "i4"), 0, 5)], 1),
    ],
    ids=lambda call: call[0],
)
def test_what_is_not_there_is_refused(kernel, call):
    """C reads whatever lies at a place: every place is looked at before it is read."""
    name, *given_ = call

    with pytest.raises(ValueError, match=r"not there|two lengths|another kind|not a piece"):
        getattr(kernel, name)(*given_)
