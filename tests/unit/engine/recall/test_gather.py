"""Candidates: from which channel they come, what is left out, what stands beside them."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.recall import columns
from engine.recall.candidates import Reach, Window
from engine.recall.columns import beside_of, neighbours_of
from engine.state.block_rows import BlockRow
from engine.state.blocks import GrowingBlock, pack_vectors
from engine.state.index import EmbedderUnavailable


@pytest.fixture(scope="module")
def chat(world):
    """Two sessions of two people, and a scope above them."""
    lines = [
        ("user:ann", "s1", "I adopted a puppy from the shelter last week."),
        ("user:bob", "s1", "What did you call him?"),
        ("user:ann", "s1", "Biscuit, because of his colour."),
        ("user:bob", "s1", "Lovely."),
        ("user:ann", "s2", "The violin lessons start on Monday."),
        ("user:bob", "s2", "I prefer the cello, it sounds warmer."),
    ]
    turns = [world.Turn(text, actor, session, "user") for actor, session, text in lines]
    turns.append(world.Turn("Pets are allowed in every office.", "user:eve", scope_no=2))
    return world.World(turns)


def found(candidates, world):
    return [world.place_of(raw) for raw in candidates.pools["events"].raws]


def test_both_channels_bring_candidates(chat, world):
    """Words find what is said, meaning what is meant; the counts show that both legs are live."""
    candidates = chat.gather("Which dog did Ann adopt?")

    assert candidates.hits["words"] > 0
    assert candidates.hits["meaning"] > 0
    pool = candidates.pools["events"]
    assert pool.channels["words"][found(candidates, world).index(0)] > 0


def test_neighbours_come_along(chat, world):
    """What was said right after a hit is a candidate though no channel named it."""
    reach = Reach(words=1, meaning=0, neighbours=1)

    assert [0, 1, 2] == found(chat.gather("adopted a puppy", reach=reach), world)


def test_a_scope_that_is_not_asked_gives_nothing(chat, world):
    """Candidates are of the scopes that are walked, and of no other."""
    assert 6 not in found(chat.gather("pets in the office"), world)
    both = chat.gather("pets in the office", scopes=(1, 2))
    assert 6 in found(both, world)
    assert 2 == both.pools["events"].scope_no[found(both, world).index(6)]


def test_nothing_recorded_later_is_a_candidate(chat, world):
    """As of a moment, also neighbours are only what was there."""
    until_us = int(chat.sources.vectors.block(1, 1, "events").recorded_us.min()) + 1

    assert [0] == found(chat.gather("puppy", window=Window(recorded_until_us=until_us)), world)


def test_a_filter_holds_for_hits_and_neighbours(chat, world):
    """Rows that are not admitted are no candidates, and the search goes on until enough are."""

    def only_bob(layer, block):
        return np.array([block.actors[number] == "user:bob" for number in block.actor])

    candidates = chat.gather(
        "puppy violin", window=Window(admits=only_bob), reach=Reach(words=1, meaning=1)
    )

    assert found(candidates, world)
    assert {1, 3, 5} >= set(found(candidates, world))


def test_no_scope_no_candidates(chat):
    """An unknown scope, or none, is an empty answer and no error."""
    for scopes in ((), (99,)):
        candidates = chat.gather("puppy", scopes=scopes, layers=("events", "facts"))
        assert 0 == sum(map(len, candidates.pools.values()))


def test_without_a_model_words_must_do(chat, world):
    """An endpoint that does not answer costs the meaning, not the recall."""

    class Silent:
        def __getattr__(self, name):
            return getattr(chat.sources.embedder, name)

        def embed_query(self, text):
            raise EmbedderUnavailable(text)

    quiet = world.World(chat.turns)
    object.__setattr__(quiet.sources, "embedder", Silent())
    candidates = quiet.gather("adopted a puppy")

    assert 0 in found(candidates, world)
    assert 0 == candidates.hits["meaning"]


def test_facts_lend_to_the_events_behind_them(world):
    """A derived fact is a further key of the event it came from; the event is what is served."""
    facts = world.World(
        [
            world.Turn("It finally arrived and I am over the moon!"),
            world.Turn("Let us talk about the weather."),
            world.Turn("ann owns a grand piano", layer="facts"),
        ],
        behind={2: [0]},
    )
    reach = Reach(words=1, meaning=1, neighbours=0)
    candidates = facts.gather("Who owns a grand piano?", reach=reach)

    at = found(candidates, world).index(0)
    assert candidates.pools["events"].channels["lent"][at] > 0
    assert 1 == candidates.hits["facts"]


def test_a_name_somebody_goes_by_names_them(world):
    """Who is called what follows from what was said of names, and not from ids alone."""
    turns = [world.Turn("I paint boats.", "user:u1"), world.Turn("I paint walls.", "user:u2")]
    log = world.World(turns, called={"Ida": "user:u2", "Paris": "user:u9"})

    assert ("user:u2",) == log.gather("What does Ida paint?").question.about
    assert 1 == log.best("What does Ida paint?")[0]
    assert () == log.gather("What is painted in Paris?").question.about


def test_neighbours_are_of_the_same_session(world):
    """Two sessions that came in interleaved are still two conversations."""
    turns = [world.Turn(f"line {at}", session="ab"[at % 2]) for at in range(8)]
    block = world.World(turns).sources.vectors.block(1, 1, "events")

    sides = neighbours_of(block, np.array([0, 3, 6]))

    assert [[-1, -1, 2, 4], [-1, 1, 5, 7], [2, 4, -1, -1]] == sides.tolist()


def test_without_sessions_a_pause_parts_them(world):
    """Turns that were observed within the hour stand together."""
    later = world.START + timedelta(hours=5)
    turns = [
        world.Turn("one", role="user"),
        world.Turn("two", role="user"),
        world.Turn("three", role="user", at=later),
    ]
    block = world.World(turns).sources.vectors.block(1, 1, "events")

    assert [-1, 0, -1, -1] == neighbours_of(block, np.array([1]))[0].tolist()


def test_documents_have_no_neighbours(world):
    """That one came after the other says nothing about either."""
    block = world.World([world.Turn("one"), world.Turn("two")]).sources.vectors.block(
        1, 1, "events"
    )

    assert (neighbours_of(block, np.array([0, 1])) == -1).all()


def rows_of(world, sessions, first, seed):
    """Rows of a block, one a session's name."""
    chance = np.random.default_rng(seed)
    vectors = pack_vectors(chance.normal(size=(len(sessions), 4)).astype(np.float32))
    return [
        BlockRow(world.raw_of(at), at, 0, 0, name, "user:a", "user", 3, False, 0, b"", vector, b"")
        for at, (name, vector) in enumerate(zip(sessions, vectors, strict=True), start=first)
    ]


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(st.sampled_from("ab"), max_size=9), min_size=1, max_size=6),
    gone=st.integers(0, 20),
    lag=st.sampled_from([0, 3, 256]),
)
def test_who_stands_beside_is_found_as_if_it_were_worked_out(world, batches, gone, lag):
    """What is remembered of a block's rows is right however they joined, and when rows go."""
    block, count = GrowingBlock(4), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LAG_ROWS", lag)
        for number, sessions in enumerate(batches):
            block.put(rows_of(world, sessions, count, number))
            count += len(sessions)
            if number == 2:
                block.remove(world.raw_of(gone))
            seen = block.snapshot().block
            chosen = np.arange(0, len(seen.raws), 1 + number % 2)
            found = beside_of(seen, chosen)

            assert neighbours_of(seen, chosen).tolist() == found.near.tolist()
            before = [seen.vectors[at] if at >= 0 else np.zeros(4) for at in found.near[:, 1]]
            both = seen.vectors[chosen] + 0.6 * np.array(before).reshape(-1, 4)
            assert np.allclose(np.linalg.norm(both, axis=1), found.length, atol=1e-5)
