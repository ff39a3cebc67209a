"""Do the indexes get from who folded what they would have worked out themselves?"""

import asyncio

import msgspec
import pytest

from engine.describing import embedded, gist_of
from engine.embedders import HashingEmbedder
from engine.indexer import Handed, Said
from engine.rows import Described
from engine.settings import Settings
from engine.watch import CancelRequest, cancel
from schemas import limits
from tests.unit.engine.test_beside import one_step, opened
from tests.unit.engine.test_indexer import projection, same_as_views, told, words

read = msgspec.msgpack.Decoder(Described).decode
encode = msgspec.msgpack.Encoder().encode


def beside(site, batch_entries):
    """Others post, and what is derived is folded as by a process beside the server."""
    site.fold_beside(batch_entries)
    site.engine.daemon._beside_entries = batch_entries


def listened(follower):
    """How often the follower took what it was told."""
    taken, given = [], follower.described
    follower.described = lambda message, last: taken.append(last) or given(message, last)
    return taken


def sorted_work(work):
    documents, gone = work.after(0)
    place = lambda one: (one.layer, one.raw, one.passage)  # noqa: E731
    return sorted(documents, key=place), sorted(gone)


async def test_what_is_described_is_what_would_be_worked_out(rig, tmp_path):
    """Documents, removals and vectors, batch after batch, from a real process."""
    settings = Settings(data=tmp_path / "data", embedder="hashing", ballast_mb=1)
    async with opened(rig, settings) as engine:
        texts = [f"I moved to Town {n} and I work at Firm {n}." for n in range(400)]
        await rig.post_many(engine, texts)
        said, follower = [], engine.indexer._follower
        engine.daemon.on_described = lambda *one: said.append(one)
        engine.daemon._beside_entries = limits.WAITED_FOR_ENTRIES_MIN
        engine.daemon.beside._mind_starving = lambda stretch: None
        while len(said) < 5 or not read(said[-1][2]).vectors:
            assert await asyncio.to_thread(one_step, engine), "the model was never there"
            if said:
                first, last, message = said[-1]
                worked_out = follower.work(engine.log.read(first, last - first + 1), 0)
                described = follower.described(message, last)

                assert sorted_work(worked_out) == sorted_work(described)
        found = read(message)
        texts = [gist_of(document) for one in found.told for document in one[4]]

        assert {"events", "facts", "beliefs"} <= {one[1] for one in found.told}
        assert ("hashing-256", 0) == (found.model, follower.unreadable)
        assert list(embedded(HashingEmbedder(), texts, lambda: None)) == found.vectors


async def test_what_is_described_is_found(rig, tmp_path):
    """Events and records, revised and dropped ones too, as when the server works it out."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "city = Berlin", "pet = dog", "a note")
        beside(site, 2)
        said |= await told(site, rig, *(f"thing {n} = {n}" for n in range(5)))
        await site.index_all()
        taken = listened(engine.indexer._follower)
        said |= await told(site, rig, "city = Paris", "pet =", "city = Rome", "thing 1 = other")
        await site.index_all()

        assert taken
        assert [] == words(engine, "berlin paris", ["facts"])
        same_as_views(engine, said)


async def test_a_cancelled_event_is_not_found_by_what_was_said_of_it(rig, tmp_path):
    """What takes an event out is described as well, and comes after it."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        beside(site, 1)
        said = await told(site, rig, "open news", "old secret")
        await site.index_all()
        first = (await rig.post(engine, "old secret", key="k10old secret")).event_id
        await cancel(engine, rig.ALICE, first, CancelRequest())
        await site.settle()
        taken = listened(engine.indexer._follower)
        await site.index_all()

        assert taken
        assert [] == words(engine, "secret")
        same_as_views(engine, {1: said[1]})


async def test_what_does_not_begin_where_the_index_is_is_worked_out(rig, tmp_path):
    """What was said of other entries is no help, and no harm."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "city = Berlin", "pet = dog", "a note")
        engine.indexer.described.put(2, 3, b"not even a message")
        taken = listened(engine.indexer._follower)
        await site.index_all()

        assert [] == taken
        same_as_views(engine, said)


async def test_a_record_in_a_scope_not_seen_is_looked_up(rig, tmp_path):
    """Who folds does not know every scope by its number; the server does."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "city = Berlin")
        await site.index_all()
        fact = next(raw for raw, _ in engine.staged.scan(1, "facts"))
        said |= await told(site, rig, "more")
        rows = engine.log.read(2, 1)
        documents, _ = engine.indexer._follower.work(rows, 0).after(0)
        message = Described(
            [(1, "events", rows[0].header.id, 2, documents)], [], [(1, "facts", fact)]
        )
        engine.indexer.described.put(2, 2, encode(message))
        taken = listened(engine.indexer._follower)
        await site.index_all()

        assert [2] == taken
        same_as_views(engine, said)


async def test_nothing_is_kept_of_words_that_are_erased(rig, tmp_path):
    """What was said of entries and not indexed yet goes with their words."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        beside(site, 2)
        await told(site, rig, "city = Berlin", "pet = dog", "the plan", "the secret plan")
        kept = len(engine.indexer.described._said)
        engine.log.erase([4])

        assert kept
        assert not engine.indexer.described._said
        assert 0 == engine.indexer.described._bytes
        await site.index_all()
        assert [] == words(engine, "secret")


@pytest.mark.parametrize(
    "offset, found",
    [(0, (1, 4)), (4, (5, 8)), (2, None), (8, None), (3, None)],
)
def test_a_run_is_had_by_who_comes_to_its_first_entry(offset, found):
    """Somebody in the middle of one works it out, and what lies behind is let go."""
    handed = Handed()
    for first, last in ((1, 4), (5, 8)):
        handed.put(first, last, b"x" * 10)
    said = handed.after(offset)

    assert found == (said and (said.first, said.last))
    assert handed._bytes == 10 * len(handed._said)
    assert all(one.first > offset for one in handed._said)


def test_no_more_is_kept_than_there_is_room_for():
    """What does not fit is worked out when the indexes come there."""
    handed = Handed()
    handed.put(1, 2, b"x" * limits.DESCRIBED_BYTES_MAX)
    handed.put(3, 4, b"x")

    assert Said(1, 2, b"x" * limits.DESCRIBED_BYTES_MAX) == handed.after(0)
    assert handed.after(2) is None
