"""Do many writers become one durable batch, and is nobody told what is not so?"""

import asyncio

import msgspec
import pytest

from engine.capture import capture_bulk
from engine.commit import Desk
from engine.rows import BulkCaptureRequest
from engine.state.kv import StoreError
from engine.state.names import SCOPE, TENANT
from projectors.base import Projector, Put
from projectors.control import scope_key
from schemas import limits
from schemas.entry import Annotation
from schemas.envelope import BulkItem, BulkRequest
from schemas.errors import IdempotencyConflict, Internal, NotFound, Overloaded, WalUnavailable
from schemas.ids import raw_of


class Remark:
    """A proposal that adds annotations, then perhaps thinks better of it."""

    byte_count = 100

    def __init__(self, caller, texts, error=None):
        self.entry_count = len(texts)
        self._caller = caller
        self._texts = texts
        self._error = error

    def decide(self, desk: Desk):
        """Add them all, then answer with their offsets, or raise."""
        bodies = [
            Annotation(about=text, model="m", version="1", output={}, scope="org:acme")
            for text in self._texts
        ]
        offsets = [desk.add(self._caller, body).offset for body in bodies]
        if self._error is not None:
            raise self._error
        return offsets


def rows(kv):
    """Everything in a store."""
    return {family: list(kv.scan(family)) for family in kv.families()}


async def settled(*futures):
    """Answers and errors, in order."""
    return await asyncio.gather(*futures, return_exceptions=True)


def item_of(envelope):
    """An experience as an item of a bulk call."""
    return BulkItem(
        scope=envelope.scope,
        modality=envelope.modality,
        content=envelope.content,
        context=envelope.context,
        idempotency_key=envelope.idempotency_key,
    )


def registered(engine, scope):
    """Whether a scope of the tenant has a row."""
    tenant_no = engine.names.number(TENANT, 0, "acme")
    scope_no = engine.names.number(SCOPE, tenant_no, scope)
    return engine.inline.get(tenant_no, "scopes", scope_key(scope_no)) is not None


# Batches


async def test_writers_who_come_together_share_a_sync(rig):
    """Queued in one turn of the loop: one write and one sync for all of them."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "first")
        site.mains.drawn.clear()
        receipts = await asyncio.gather(*(rig.post(engine, f"t{n}") for n in range(32)))

        assert ["write", "sync"] == site.mains.drawn
        assert list(range(2, 34)) == sorted(receipt.wal_offset for receipt in receipts)


async def test_a_batch_is_bounded_by_entries(rig):
    """A queue longer than a batch takes several, in order."""
    async with rig.Site() as site:
        engine = await site.open()
        half = limits.COMMIT_ENTRIES_MAX // 2 + 1
        futures = [
            engine.committer.submit(Remark(rig.ALICE, [f"{at}.{n}" for n in range(half)]))
            for at in range(3)
        ]
        answers = await settled(*futures)

        assert 3 == engine.log.commit_count
        assert [1, half + 1, 2 * half + 1] == [offsets[0] for offsets in answers]


async def test_the_answer_comes_when_it_is_durable(rig):
    """A power cut right after any answer loses nothing that was answered."""
    async with rig.Site() as site:
        engine = await site.open()
        receipts = [await rig.post(engine, f"t{number}") for number in range(5)]
        await site.kill(power_cut=True)
        engine = await site.open()

        assert [receipt.event_id for receipt in receipts] == [
            engine.entry_of(row).event_id for row in engine.log.read(1, 10)
        ]


# Two batches at a time


async def slow_disk(rig, site):
    """An engine whose disk is slow, after a post during which nobody else came."""
    engine = await site.open()
    await rig.post(engine, "first")
    engine.log.syncer.took_s.extend([1.0] * 8)
    site.mains.drawn.clear()
    return engine


async def test_writers_who_would_all_wait_go_in_two_batches(rig):
    """While the first half becomes durable the second is decided, so that the loop is not idle."""
    async with rig.Site(rig.projection()) as site:
        engine = await slow_disk(rig, site)
        receipts = await asyncio.gather(*(rig.post(engine, f"t{n}") for n in range(32)))

        assert ["sync", "sync", "write", "write"] == sorted(site.mains.drawn)
        assert list(range(2, 34)) == [receipt.wal_offset for receipt in receipts]
        await site.settle()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_few_writers_go_in_one(rig):
    """A second sync for a handful would cost more than it saves."""
    async with rig.Site() as site:
        engine = await slow_disk(rig, site)
        few = limits.COMMIT_SPLIT_MIN - 1
        await asyncio.gather(*(rig.post(engine, f"t{n}") for n in range(few)))

        assert ["write", "sync"] == site.mains.drawn


async def test_one_key_in_both_batches_is_one_event(rig):
    """The second is decided on what the first has written, durable or not."""
    async with rig.Site() as site:
        engine = await slow_disk(rig, site)
        posts = (rig.post(engine, "same", key="one key") for _ in range(32))
        receipts = await asyncio.gather(*posts)

        assert {2} == {receipt.wal_offset for receipt in receipts}
        assert 31 == sum(receipt.replayed_from_idempotency for receipt in receipts)
        assert 2 == engine.log.head()


async def test_what_both_batches_answered_survives_a_power_cut(rig):
    """Each is answered when it is durable itself."""
    async with rig.Site() as site:
        engine = await slow_disk(rig, site)
        receipts = await asyncio.gather(*(rig.post(engine, f"t{n}") for n in range(32)))
        await site.kill(power_cut=True)
        engine = await site.open()

        found = [engine.entry_of(row).event_id for row in engine.log.read(2, 40)]
        assert [receipt.event_id for receipt in receipts] == found


async def test_when_the_first_batch_is_lost_the_second_is_refused(rig):
    """What rests on a batch that did not become durable is not acknowledged either."""
    async with rig.Site() as site:
        engine = await slow_disk(rig, site)
        site.mains.trip(operation="sync", recovers=True)
        refused = await settled(*(rig.post(engine, f"t{n}") for n in range(32)))

        assert 32 == sum(isinstance(error, WalUnavailable) for error in refused)
        assert 1 == engine.log.head()


# Proposals that raise


@pytest.mark.parametrize(
    "error, expected", [(NotFound("gone"), NotFound), (KeyError("bug"), Internal)]
)
async def test_a_proposal_that_raises_leaves_nothing(rig, error, expected):
    """Its entries, rows and documents are as if it had never been asked; the others go through."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        one = engine.committer.submit(Remark(rig.ALICE, ["a", "b"]))
        bad = engine.committer.submit(Remark(rig.ALICE, ["x", "y", "z"], error))
        two = engine.committer.submit(Remark(rig.ALICE, ["c"]))
        first, refused, second = await settled(one, bad, two)

        assert ([1, 2], [3]) == (first, second)
        assert isinstance(refused, expected)
        assert ["a", "b", "c"] == [
            engine.entry_of(row).body.about for row in engine.log.read(1, 10)
        ]
        await site.settle()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_alone_it_writes_nothing_at_all(rig):
    """No batch goes to the disk for a proposal that was refused."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        await rig.post(engine, "before")
        before = rows(site.kv)
        (refused,) = await settled(
            engine.committer.submit(Remark(rig.ALICE, ["x"], NotFound("no")))
        )

        assert isinstance(refused, NotFound)
        assert before == rows(site.kv)


async def test_an_inline_projector_that_raises_fails_its_caller(rig):
    """The entry is refused with it: no inline view may miss an entry of the log."""

    def project(entry, view):
        if "bad" in repr(entry.body):
            raise ValueError("cannot take it")
        return ()

    picky = Projector(name="picky", version=1, tables={}, project=project)
    async with rig.Site(rig.projection(inline=(*rig.projection().inline, picky))) as site:
        engine = await site.open()
        good, bad, fine = await settled(*(rig.post(engine, t) for t in ("good", "bad", "fine")))

        assert isinstance(bad, Internal)
        assert (1, 2) == (good.wal_offset, fine.wal_offset)


async def test_what_cannot_be_written_down_fails_everyone_in_its_batch(rig):
    """A bug behind the decisions stops writes, and nobody is left waiting for an answer."""

    def project(entry, view):
        yield Put(table="not mine", key=b"k", value=rig.Seen(digest=b""))

    lost = Projector(name="lost", version=1, tables={}, project=project)
    async with rig.Site(rig.projection(inline=(*rig.projection().inline, lost))) as site:
        engine = await site.open()
        answers = await settled(*(rig.post(engine, f"t{number}") for number in range(3)))

        assert [WalUnavailable] * 3 == [type(answer) for answer in answers]
        assert 0 == engine.log.head()
        with pytest.raises(WalUnavailable):
            await rig.post(engine, "later")


# Idempotency


async def test_one_key_one_event(rig):
    """Thirty-two race with one key and one body: one is stored, all get its id (I2)."""
    async with rig.Site() as site:
        engine = await site.open()
        receipts = await asyncio.gather(*(rig.post(engine, "same", key="k") for _ in range(32)))
        again = await rig.post(engine, "same", key="k")

        assert 1 == engine.log.head()
        assert {again.event_id} == {receipt.event_id for receipt in receipts}
        assert 31 == sum(receipt.replayed_from_idempotency for receipt in receipts)


async def test_a_key_with_another_body_is_a_conflict(rig):
    """In the log and in the same batch; the first one wins, and is named."""
    async with rig.Site() as site:
        engine = await site.open()
        one, other, third = await settled(
            rig.post(engine, "one", key="k"),
            rig.post(engine, "other", key="k"),
            rig.post(engine, "one", key="k"),
        )
        await site.kill(power_cut=True)
        engine = await site.open()
        with pytest.raises(IdempotencyConflict) as later:
            await rig.post(engine, "another", key="k")

        assert isinstance(other, IdempotencyConflict)
        assert one.event_id == third.event_id == later.value.details["event_id"]
        assert 1 == engine.log.head()


@pytest.mark.parametrize("other", ["actor", "tenant"])
async def test_a_key_is_its_caller_s(rig, other):
    """Another caller or tenant may use the same key for something else."""
    callers = {
        "actor": rig.Caller(actor="user:bob", tenant="acme"),
        "tenant": rig.Caller(actor="user:alice", tenant="globex"),
    }
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "one", key="k")
        receipt = await rig.post(engine, "other", key="k", caller=callers[other])

        assert 2 == receipt.wal_offset


async def test_a_bulk_call_is_all_or_none(rig):
    """A conflict in its last item stores nothing of it."""
    async with rig.Site() as site:
        engine = await site.open()
        made = [rig.envelope(text, key) for text, key in (("a", "1"), ("b", "2"), ("c", "1"))]
        items = [item_of(one) for one in made]
        with pytest.raises(IdempotencyConflict, match=r"items\[2\]"):
            await capture_bulk(engine, rig.ALICE, BulkCaptureRequest(bulk=BulkRequest(items=items)))

        assert 0 == engine.log.head()


async def test_a_scope_is_registered_after_its_first_writers_were_refused(rig):
    """What was known of the scope while a bulk call was decided is taken back with the call."""
    async with rig.Site() as site:
        engine = await site.open()
        scope = "org:acme/user:new"
        made = [(f"t{key}", key) for key in "123"] + [("another body", "1")]
        items = [item_of(rig.envelope(text, key, scope)) for text, key in made]
        bulk = BulkCaptureRequest(bulk=BulkRequest(items=items))
        refused, receipt = await settled(
            capture_bulk(engine, rig.ALICE, bulk), rig.post(engine, "alone", scope=scope)
        )

        assert isinstance(refused, IdempotencyConflict)
        assert 1 == receipt.wal_offset
        assert registered(engine, scope)


async def test_what_an_experience_cites_is_kept_however_many_of_its_scope_came_before(rig):
    """The others of its batch left nothing inline; it does."""
    async with rig.Site() as site:
        engine = await site.open()
        first = await rig.post(engine, "first")
        citing = rig.envelope("citing")
        context = msgspec.structs.replace(citing.context, preceded_by=[first.event_id])
        last = msgspec.structs.replace(citing, context=context)
        items = [item_of(one) for one in (rig.envelope("a"), rig.envelope("b"), last)]
        bulk = BulkCaptureRequest(bulk=BulkRequest(items=items))
        await capture_bulk(engine, rig.ALICE, bulk)

        tenant_no = engine.names.number(TENANT, 0, "acme")
        assert 1 == len(engine.inline.scan(tenant_no, "cited", raw_of("evt", first.event_id)))


# Limits


async def test_a_full_queue_is_refused(rig):
    """By entries: the caller hears 503 and when to come back; what was queued goes through."""
    async with rig.Site() as site:
        engine = await site.open()
        size = limits.COMMIT_QUEUE_ENTRIES_MAX
        remark = Remark(rig.ALICE, ["one"])
        waiting = [engine.committer.submit(remark) for _ in range(3)]
        heavy = Remark(rig.ALICE, ["heavy"])
        heavy.entry_count = size - 2
        with pytest.raises(Overloaded, match="queue is full") as refused:
            engine.committer.submit(heavy)
        assert 1 == refused.value.details["retry_after_s"]
        assert 3 == engine.committer.queued_entries

        assert [[1], [2], [3]] == await settled(*waiting)
        assert 0 == engine.committer.queued_entries
        assert [4] == await engine.committer.submit(Remark(rig.ALICE, ["again"]))


async def test_a_queue_full_of_bytes_is_refused(rig):
    """By bytes as well: memory is what it protects."""
    async with rig.Site() as site:
        engine = await site.open()
        heavy = Remark(rig.ALICE, ["heavy"])
        heavy.byte_count = limits.COMMIT_QUEUE_BYTES_MAX
        first = engine.committer.submit(heavy)
        with pytest.raises(Overloaded):
            engine.committer.submit(Remark(rig.ALICE, ["one more"]))

        assert [1] == await first


async def test_a_caller_who_left_harms_nobody(rig):
    """A cancelled request is stored like the others; its answer has no one to go to."""
    async with rig.Site() as site:
        engine = await site.open()
        gone = engine.committer.submit(Remark(rig.ALICE, ["a"]))
        there = engine.committer.submit(Remark(rig.ALICE, ["b"]))
        gone.cancel()

        assert [2] == await there
        await engine.committer.drained()
        assert 2 == engine.log.head()


# Stores that fail


@pytest.mark.parametrize("recovers", [True, False])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_the_first_failure_stops_writes_for_good(rig, operation, recovers):
    """That batch and every later one: 503, nothing acknowledged after it, though the disk mends."""
    async with rig.Site() as site:
        engine = await site.open()
        acked = [await rig.post(engine, f"t{number}") for number in range(3)]
        site.mains.trip(operation=operation, recovers=recovers)
        failed = await settled(*(rig.post(engine, f"lost {number}") for number in range(4)))
        later = await settled(*(rig.post(engine, f"later {number}") for number in range(3)))
        replay = await settled(rig.post(engine, "t1"))

        assert {WalUnavailable} == {type(answer) for answer in (*failed, *later, *replay)}
        assert 3 == engine.log.head()
        assert "failed" in engine.log.failure
        await site.kill(power_cut=True)
        engine = await site.open()
        found = [engine.entry_of(row).event_id for row in engine.log.read(1, 100)]
        assert [receipt.event_id for receipt in acked] == found[:3]
        assert 4 == (await rig.post(engine, "well again")).wal_offset
        assert 4 == rig.verify(engine).entries


async def test_what_was_queued_behind_a_failure_fails_too(rig):
    """A second batch that was waiting for the first is refused, not written after it."""
    async with rig.Site() as site:
        engine = await site.open()
        many = [f"t{number}" for number in range(limits.COMMIT_ENTRIES_MAX)]
        site.mains.trip(operation="write", recovers=True)
        futures = [engine.committer.submit(Remark(rig.ALICE, many)) for _ in range(3)]
        answers = await settled(*futures)

        assert [WalUnavailable] * 3 == [type(answer) for answer in answers]
        assert [] == list(site.kv.scan("log"))


async def test_nobody_hears_of_what_was_not_stored(rig):
    """A batch that failed is not announced, also not when a later sync goes through."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        kept = await rig.post(engine, "kept")
        site.mains.trip(operation="sync", recovers=True)
        (lost,) = await settled(rig.post(engine, "lost"))
        assert isinstance(lost, WalUnavailable)
        with pytest.raises(StoreError, match="the log has failed"):
            await site.settle()

        assert {kept.event_id} == {event.event_id for event in rig.announcements(engine)}


async def test_a_vault_that_fails_stops_writes(rig):
    """Keys that cannot be made durable are not used, and the log says so."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "first")
        many = [f"t{number}" for number in range(limits.COMMIT_ENTRIES_MAX)]
        site.vault_kv.mains = rig.Mains()
        site.vault_kv.mains.trip(operation="sync")

        async def remark():
            return await engine.committer.submit(Remark(rig.ALICE, many))

        answers = await settled(remark())
        while isinstance(answers[-1], list):
            answers += await settled(remark())

        assert isinstance(answers[-1], WalUnavailable)
        assert "vault" in engine.log.failure
        assert engine.log.head() <= limits.VAULT_SLOTS_AHEAD


async def test_names_are_in_the_batch_that_first_uses_them(rig):
    """A batch that was lost takes its names with it; the numbers are given again, and rightly."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "one", scope="org:a")
        site.mains.trip(operation="sync")
        await settled(
            rig.post(engine, "two", scope="org:b", caller=rig.Caller(actor="user:x", tenant="lost"))
        )
        await site.kill(power_cut=True)
        engine = await site.open()
        await rig.post(
            engine, "three", scope="org:c", caller=rig.Caller(actor="user:y", tenant="new")
        )
        entries = [engine.entry_of(row) for row in engine.log.read(1, 10)]

        assert [("acme", "org:a"), ("new", "org:c")] == [(e.tenant, e.scope) for e in entries]
        assert None is engine.names.known(TENANT, 0, "lost")


async def test_those_who_derive_go_last_until_answers_are_sent(rig):
    """Who has its answer is next on the loop, and the way is left after it (ADR 0053)."""
    async with rig.Site() as site:
        engine = await site.open()
        way = engine.committer.way
        await rig.post(engine, "hello")
        is_free = way.is_free
        await asyncio.sleep(0)

        assert not is_free
        assert way.is_free
