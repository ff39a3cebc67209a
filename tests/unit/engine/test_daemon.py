"""Is the log carried to the projectors once and whole, whatever fails on the way?"""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest

from engine.admin import health, rebuild_projector, retry_projector
from engine.commit import Desk
from engine.policy import require
from engine.read import get_event
from engine.state.kv import StoreError
from engine.state.names import TENANT
from engine.watch import Cancellation, CancelRequest, cancel, get_memory_event
from projectors.base import Close, Projector
from projectors.jobs import JOBS
from schemas import limits
from schemas.errors import Unavailable
from schemas.lifecycle import STAGE_ORDER

STAGES = list(STAGE_ORDER[:4])


def families(kv):
    return [name for name in kv.families() if name.startswith("view.")]


# Carrying


async def test_one_batch_moves_everything(rig):
    """Changes, feed, checkpoint and announcements are one write, made durable by one sync."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        for number in range(3):
            await rig.post(engine, f"t{number}")
        site.mains.drawn.clear()
        assert await site.step()

        assert ["write", "sync"] == site.mains.drawn
        assert 3 == engine.staged.state.checkpoint == engine.staged.state.announced
        assert [1, 2, 3] == [int.from_bytes(key, "big") for key, _ in engine.kv.scan("feed")]
        assert not await site.step()


@pytest.mark.parametrize("batch_entries", [1, 2, 3, 7])
async def test_batches_are_bounded_by_count(rig, batch_entries):
    """However small the batches, the views are the same."""
    async with rig.Site(rig.projection(), batch_entries=batch_entries) as site:
        engine = await site.open()
        for number in range(7):
            await rig.post(engine, f"t{number}", scope=f"org:acme/user:u{number % 2}")
        steps = await site.settle()

        assert -(-7 // batch_entries) == steps
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_batches_are_bounded_by_bytes(rig):
    """A batch ends with the entry that fills it."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        size = limits.PROJECT_BYTES_MAX // 2
        for number in range(3):
            await rig.post(engine, "x" * size, key=f"k{number}")
        await site.step()

        assert 2 == engine.staged.state.checkpoint


async def test_readers_find_a_view_before_the_first_step(rig):
    """An event can be read as soon as it is captured, also in a data directory made just now."""
    async with rig.Site() as site:
        engine = await site.open()
        receipt = await rig.post(engine, "first words")

        assert [] == get_event(engine, rig.ALICE, receipt.event_id).derives


async def test_what_was_derived_is_cited_by_its_event(rig):
    """Records point at their events, and through `derives` events point back (001 §7.1)."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        first = await rig.post(engine, "one")
        await rig.post(engine, "two")
        await site.settle()
        derived = get_event(engine, rig.ALICE, first.event_id).derives

        assert ["fact", "belief", "fact"] == [name.partition("_")[0] for name in derived]


@pytest.mark.parametrize("power_cut", [True, False])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_a_crash_in_a_batch_is_done_again(rig, operation, power_cut):
    """Either the whole batch is there or it is done again; nobody hears of anything twice."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        receipts = [await rig.post(engine, f"t{number}") for number in range(4)]
        site.mains.trip(operation=operation)
        with pytest.raises(StoreError):
            await site.step()
        assert ["captured"] * 4 == rig.names_of(rig.announcements(engine))
        await site.kill(power_cut=power_cut)
        engine = await site.open()
        await site.settle()

        told = rig.announcements(engine)
        for receipt in receipts:
            assert STAGES == rig.names_of(told, receipt.event_id)
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_broken_store_is_no_poison(rig):
    """When a view cannot be read it is the store's fault: projection stops, no entry is parked."""

    def project(entry, view):
        raise StoreError("a block of this view is corrupt")

    broken = Projector(name="ledger", version=1, tables={}, project=project)
    async with rig.Site(rig.projection(broken)) as site:
        engine = await site.open()
        await rig.post(engine, "innocent")
        for _ in range(limits.PARK_ATTEMPTS + 1):
            with pytest.raises(StoreError, match="corrupt"):
                await site.step()

        assert 1 == engine.log.head()


# Poison


def refusing(rig, *texts):
    """A projection whose early projector cannot take some texts; and how often it tried."""
    tried = []

    def refuses(text):
        if text in texts:
            tried.append(text)
        return text in texts

    return rig.projection(rig.ledger(refuses=refuses)), tried


async def test_a_poison_entry_is_tried_then_parked(rig):
    """Tried a few times, parked by a directive in the log, announced; the rest goes on."""
    projection, tried = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open()
        before = await rig.post(engine, "before")
        poison = await rig.post(engine, "poison")
        after = await rig.post(engine, "after")
        await site.settle()

        assert ["poison"] * limits.PARK_ATTEMPTS == tried
        told = rig.announcements(engine)
        (parked,) = [event for event in told if rig.names_of([event]) == ["parked"]]
        assert (poison.event_id, "ledger", limits.PARK_ATTEMPTS) == (
            parked.event_id,
            parked.projector,
            parked.attempts,
        )
        assert "cannot take …" in parked.error
        assert "poison" not in parked.error
        assert STAGES == rig.names_of(told, before.event_id) == rig.names_of(told, after.event_id)
        assert ["captured", "parked", *STAGES[1:]] == rig.names_of(told, poison.event_id)
        assert 4 == engine.log.head() == engine.staged.state.checkpoint
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_the_stages_of_a_parked_entry_are_partial(rig):
    """The stage that a projector left out says so; the others did all they do."""
    projection, _ = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open()
        poison = await rig.post(engine, "poison")
        await site.settle()
        told = rig.announcements(engine, names=frozenset(STAGES[1:]))

        assert [(True, "projector_parked"), (False, None), (False, None)] == [
            (event.partial, event.partial_reason) for event in told
        ]
        errors = get_memory_event(engine, rig.ALICE, poison.event_id).errors
        assert [("ledger", limits.PARK_ATTEMPTS)] == [
            (error["projector"], error["attempts"]) for error in errors
        ]


def with_jobs(projection):
    """Health counts the jobs."""
    return replace(projection, inline=(*projection.inline, JOBS))


async def test_a_parked_entry_shows_in_health(rig):
    """An operator sees which projector left out which event."""
    projection, _ = refusing(rig, "poison")
    async with rig.Site(with_jobs(projection)) as site:
        engine = await site.open()
        poison = await rig.post(engine, "poison")
        await site.settle()
        report = health(engine, rig.ALICE)

        assert "degraded" == report.status
        assert {"ledger": [poison.event_id]} == {
            one.name: one.parked_events for one in report.projectors if one.parked
        }


async def test_a_change_that_cannot_be_applied_is_poison(rig):
    """Closing a row that is not there is a failure on that entry, and on it alone."""

    def project(entry, view):
        if entry.envelope is not None and entry.envelope.content.text == "poison":
            yield Close(table="counts", key=b"nowhere", recorded_to=entry.recorded_at)

    closing = Projector(name="ledger", version=1, tables={"counts": rig.Count}, project=project)
    async with rig.Site(rig.projection(closing)) as site:
        engine = await site.open()
        poison = await rig.post(engine, "poison")
        last = await rig.post(engine, "after")
        await site.settle()

        told = rig.announcements(engine)
        assert "parked" in rig.names_of(told, poison.event_id)
        assert STAGES == rig.names_of(told, last.event_id)


async def test_parking_survives_a_crash(rig):
    """Once the directive is durable the entry is skipped, also by a daemon that never saw it."""
    projection, tried = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open()
        await rig.post(engine, "poison")
        for _ in range(limits.PARK_ATTEMPTS):
            await site.step()
        assert 2 == engine.log.head()
        assert 0 == engine.staged.state.checkpoint
        await site.kill(power_cut=True)
        engine = await site.open()
        await site.settle()

        assert ["poison"] * limits.PARK_ATTEMPTS == tried
        assert 2 == engine.staged.state.checkpoint
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_park_waits_while_nothing_can_be_written(rig):
    """When the disk is nearly full a park cannot be written: it is tried again, nothing stops."""
    projection, _ = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open()
        await rig.post(engine, "poison")
        engine.committer.refusal = "the disk is nearly full"
        for _ in range(limits.PARK_ATTEMPTS + 2):
            assert await site.step()
        assert 1 == engine.log.head()
        engine.committer.refusal = None
        await site.settle()

        assert 2 == engine.log.head() == engine.staged.state.checkpoint


async def test_a_late_failure_takes_nothing_early(rig):
    """An entry is folded whole or not at all: the early stage's changes wait for the late one's."""
    late = rig.opinions(refuses=lambda text: text == "poison")
    async with rig.Site(rig.projection(late=late), batch_entries=8) as site:
        engine = await site.open()
        for text in ("one", "poison", "two"):
            await rig.post(engine, text)
        await site.step()
        assert 1 == engine.staged.state.checkpoint
        await site.settle()

        ((_, count),) = engine.staged.scan(1, "counts", (1).to_bytes(4, "big"))
        assert 4 == count.entries
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


# Taking back in


async def retried(rig, site):
    """Ask for a retry as an operator does; the projector now takes everything."""
    receipt = await retry_projector(site.engine, rig.ALICE, "ledger")
    return receipt.unparked


async def test_a_retry_takes_the_entry_back_in(rig):
    """The views are rebuilt with it, beside the old ones, and equal a replay (docs/adr/0015)."""
    refused = {"poison"}
    projection = rig.projection(rig.ledger(refuses=refused.__contains__))
    async with rig.Site(projection) as site:
        engine = await site.open()
        for text in ("before", "poison", "after"):
            await rig.post(engine, text)
        await site.settle()
        without = rig.kept(engine)
        told = rig.announcements(engine)
        refused.clear()
        freed = await retried(rig, site)
        await site.settle()

        assert [told[1].event_id] == freed
        assert without["ledger"] != rig.kept(engine)["ledger"]
        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        assert told == rig.announcements(engine)
        assert [] == engine.inline.scan(1, "parked")


async def test_a_retry_that_fails_parks_again(rig):
    """The entry is parked again, the rows are those of before, nothing is announced twice."""
    projection, _ = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open()
        for text in ("before", "poison", "after"):
            await rig.post(engine, text)
        await site.settle()
        await retried(rig, site)
        await site.settle()

        names = rig.names_of(rig.announcements(engine))
        assert (2, 3, 3) == tuple(map(names.count, ("parked", "extracted", "consolidated")))
        assert 1 == len(engine.inline.scan(1, "parked"))
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_retry_survives_a_power_cut(rig):
    """Once the entry is unparked in the log, the rebuild will come, whatever happens next."""
    refused = {"poison"}
    projection = rig.projection(rig.ledger(refuses=refused.__contains__))
    async with rig.Site(projection) as site:
        engine = await site.open()
        for text in ("before", "poison", "after"):
            await rig.post(engine, text)
        await site.settle()
        refused.clear()
        await retried(rig, site)
        await site.kill(power_cut=True)
        engine = await site.open()
        await site.settle()

        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_retry_during_a_rebuild_begins_it_again(rig):
    """A build that has passed the entry without it cannot be finished: it starts over."""
    refused = {"poison"}
    projection = rig.projection(rig.ledger(refuses=refused.__contains__))
    async with rig.Site(projection, batch_entries=1) as site:
        engine = await site.open()
        for text in ("poison", "one", "two", "three"):
            await rig.post(engine, text)
        await site.settle()
        rebuild_projector(engine, rig.ALICE, "ledger")
        for _ in range(3):
            await site.step()
        assert 3 == engine.staged.state.building_checkpoint
        refused.clear()
        await retried(rig, site)
        await site.kill(power_cut=True)
        engine = await site.open()
        await site.settle()

        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_nothing_parked_is_nothing_to_retry(rig):
    """A retry without parked entries writes nothing and rebuilds nothing."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        await rig.post(engine, "fine")
        await site.settle()

        assert [] == await retried(rig, site)
        assert 1 == engine.log.head()
        assert not engine.daemon.is_rebuilding


# Rebuilding


async def filled(rig, site, count=6):
    """An engine whose daemon has carried some entries."""
    engine = await site.open()
    for number in range(count):
        await rig.post(engine, f"t{number}", scope=f"org:acme/user:u{number % 2}")
    await site.settle()
    return engine


async def test_a_new_version_is_built_beside_the_old(rig):
    """Readers see the old rows whole until the new ones are whole; then the old ones are gone."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        engine = await filled(rig, site)
        old, told = rig.kept(engine), rig.announcements(engine)
        await site.stop()
        engine = await site.open(rig.projection(rig.ledger(version=2)))
        served = []
        while engine.daemon.is_rebuilding:
            served.append(rig.kept(engine) == old)
            await site.step()

        assert [True] * 4 == served
        new = rig.kept(engine)
        assert old["ledger"] != new["ledger"]
        assert rig.replayed(engine, site.projection) == new
        assert told == rig.announcements(engine)
        assert [
            "view.control@1",
            "view.derives@2",
            "view.ledger@2",
            "view.opinions@2",
            "view.witness@1",
        ] == families(engine.kv)


async def test_entries_captured_during_a_rebuild_follow_it(rig):
    """What arrives while a generation is built is carried after the swap, and announced once."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        engine = await filled(rig, site)
        rebuild_projector(engine, rig.ALICE, "ledger")
        await site.step()
        late = await rig.post(engine, "late")
        assert ["captured"] == rig.names_of(rig.announcements(engine), late.event_id)
        await site.settle()

        assert STAGES == rig.names_of(rig.announcements(engine), late.event_id)
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


@pytest.mark.parametrize("power_cut", [True, False])
@pytest.mark.parametrize("steps", range(6))
async def test_a_rebuild_is_resumed_after_a_crash(rig, steps, power_cut):
    """Killed anywhere in it, a rebuild ends with the same rows and announces nothing again."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        engine = await filled(rig, site)
        told = rig.announcements(engine)
        await site.stop()
        engine = await site.open(rig.projection(rig.ledger(version=2)))
        for _ in range(steps):
            await site.step()
        await site.kill(power_cut=power_cut)
        engine = await site.open()
        await site.settle()

        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        assert told == rig.announcements(engine)
        assert 5 == len(families(engine.kv))


async def test_a_resumed_rebuild_does_not_start_over(rig):
    """What a build had written it keeps: a large log is not replayed from its beginning."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        await filled(rig, site)
        await site.stop()
        await site.open(rig.projection(rig.ledger(version=2)))
        await site.step()
        await site.kill(power_cut=True)
        engine = await site.open()

        assert 2 == engine.staged.cursor


async def test_a_third_version_does_not_finish_the_second(rig):
    """A build that another version began is not gone on with: no generation is of two minds."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        await filled(rig, site)
        await site.stop()
        await site.open(rig.projection(rig.ledger(version=2)))
        await site.step()
        await site.kill(power_cut=True)
        engine = await site.open(rig.projection(rig.ledger(version=3)))
        await site.settle()

        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        assert 5 == len(families(engine.kv))


async def test_a_crash_at_any_operation_of_a_rebuild(rig):
    """Whatever operation the power fails at, the next start ends where this one would have."""
    expected = None
    for after in range(40):
        async with rig.Site(rig.projection(), batch_entries=3) as site:
            await filled(rig, site)
            await site.stop()
            site.mains.trip(after)
            with suppress(StoreError):
                await site.open(rig.projection(rig.ledger(version=2)))
                await site.settle()
            finished = not site.mains.is_off
            await site.kill(power_cut=True)
            engine = await site.open(rig.projection(rig.ledger(version=2)))
            await site.settle()
            found = rig.kept(engine)
            expected = expected or found

            assert expected["ledger"] != []
            assert 5 == len(families(engine.kv)), after
            assert [len(rows) for rows in expected.values()] == [len(r) for r in found.values()]
            assert rig.replayed(engine, site.projection) == found
        if finished:
            break
    assert finished


async def test_rows_that_are_read_keep_up_with_a_rebuild(rig):
    """The same projectors build anew: what arrives meanwhile is derived and announced at once."""
    async with rig.Site(rig.projection(), batch_entries=2) as site:
        engine = await filled(rig, site)
        rebuild_projector(engine, rig.ALICE, "ledger")
        await site.step()
        late = await rig.post(engine, "late")
        await site.step()

        assert engine.daemon.is_rebuilding
        assert STAGES == rig.names_of(rig.announcements(engine), late.event_id)
        assert engine.log.head() == engine.staged.state.checkpoint
        assert 2 == engine.staged.state.building_checkpoint
        told = rig.announcements(engine)
        await site.settle()
        assert not engine.daemon.is_rebuilding
        assert told == rig.announcements(engine)
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_crash_at_any_operation_while_rows_keep_up(rig):
    """Entries come in between the steps of a rebuild, and the power fails: nothing differs."""
    for after in range(60):
        async with rig.Site(rig.projection(), batch_entries=2) as site:
            engine = await filled(rig, site)
            site.mains.trip(after)
            with suppress(StoreError, Unavailable):
                rebuild_projector(engine, rig.ALICE, "ledger")
                for number in range(3):
                    await site.step()
                    await rig.post(engine, f"late{number}")
                await site.settle()
            finished = not site.mains.is_off
            await site.kill(power_cut=True)
            engine = await site.open()
            await site.settle()

            assert rig.replayed(engine, site.projection) == rig.kept(engine), after
            for row in engine.log.read(1, 100):
                event_id = engine.entry_of(row).event_id
                assert STAGES == rig.names_of(rig.announcements(engine), event_id), after
        if finished:
            break
    assert finished


async def test_a_reader_moves_with_the_swap(rig):
    """A read that began on the old generation is answered from the new one, not with an error."""
    async with rig.Site(rig.projection()) as site:
        engine = await filled(rig, site)
        rebuild_projector(engine, rig.ALICE, "ledger")
        unit, asked = engine.staged, []

        def ask(rows):
            if not asked:
                asked.append(rows)
                while engine.daemon.is_rebuilding:
                    engine.daemon.step()
            return rows.get(1, "counts", (1).to_bytes(4, "big")).entries

        assert 3 == unit._steady(ask)


# Cancelling


async def test_a_cancel_in_time_skips_every_stage(rig):
    """Stages that had not run never run: here, after a restart, and in a replay."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        kept = await rig.post(engine, "kept")
        doomed = await rig.post(engine, "doomed")
        receipt = await cancel(engine, rig.ALICE, doomed.event_id, CancelRequest())
        assert STAGES[1:] == receipt.stages_cancelled
        await site.kill(power_cut=True)
        engine = await site.open()
        await site.settle()

        told = rig.announcements(engine)
        assert ["captured", "cancelled"] == rig.names_of(told, doomed.event_id)
        assert STAGES == rig.names_of(told, kept.event_id)
        assert [] == get_event(engine, rig.ALICE, doomed.event_id).derives
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_cancel_too_late_leaves_what_was_derived(rig):
    """Stages that have run stay, here and in a replay; the event is left out of recall."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        event = await rig.post(engine, "done already")
        await site.settle()
        receipt = await cancel(engine, rig.ALICE, event.event_id, CancelRequest())
        found = get_event(engine, rig.ALICE, event.event_id)
        await site.settle()

        assert [] == receipt.stages_cancelled
        assert (True, 2) == (found.excluded_from_recall, len(found.derives))
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_cancel_between_fold_and_write(rig):
    """A batch folded before the cancellation is folded again without the entry."""
    site = rig.Site()
    cancelled = []

    def meddle(entry, view):
        if entry.offset == 2 and not cancelled:
            cancelled.extend(site.engine.daemon.hold(1))
        return ()

    meddling = Projector(name="meddler", version=1, tables={}, project=meddle)
    async with site:
        engine = await site.open(rig.projection(late=meddling))
        for text in ("one", "two"):
            await rig.post(engine, text)
        rows = engine.log.read(1, 2)
        folded, overlay, _ = engine.daemon._fold(rows)
        assert [4, 4] == [len(step.stages) for step in folded.steps]

        assert not engine.daemon._write(folded, overlay)
        assert 0 == engine.staged.state.checkpoint


class StepsBeforeItIsWritten(Cancellation):
    """A cancellation with a daemon that is quicker than the writer."""

    def __init__(self, site, *rest):
        super().__init__(site.engine, *rest)
        self.site = site

    def decide(self, desk: Desk):
        """Decide, and let the daemon run before the decision is in the log."""
        answer = super().decide(desk)
        for _ in range(3):
            self.site.engine.daemon.step()
        self.left = self.site.kv.left_behind(self.site.mains, power_cut=True)
        return answer


async def test_a_cancellation_decided_but_not_written_is_not_acted_on(rig):
    """The daemon does not skip what the log does not yet tell it to: a crash would part them."""
    async with rig.Site(rig.projection(), batch_entries=1) as site:
        engine = await site.open()
        for text in ("one", "doomed", "two"):
            receipt = await rig.post(engine, text)
        entry = engine.entry_of(engine.log.read(2, 1)[0])
        decision = require(engine, rig.ALICE, "scope.write", entry.scope)
        proposal = StepsBeforeItIsWritten(site, rig.ALICE, decision, entry, None)
        await engine.committer.submit(proposal)
        await site.settle()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        assert receipt.wal_offset == 3
        await site.kill(power_cut=True)
        site.kv = proposal.left.left_behind(site.mains, power_cut=True)
        engine = await site.open()

        assert 3 == engine.log.head()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        await site.settle()
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_rebuild_remembers_a_cancellation_on_its_way(rig):
    """What was decided and is not yet durable is skipped by a rebuild that begins just then."""
    async with rig.Site(rig.projection()) as site:
        engine = await filled(rig, site)
        await rig.post(engine, "doomed")
        stages = engine.daemon.hold(7)
        engine.daemon.request_rebuild()
        await site.step()

        assert {(stage, 7) for stage in stages} <= engine.daemon.skips()


# Running by itself


async def test_the_daemon_runs_in_a_thread(rig):
    """Started, it carries what is captured without being asked; waiting is on the lifecycle."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open(run_daemon=True)
        receipt = await rig.post(engine, "hello")

        assert await engine.lifecycle.wait("consolidated", receipt.wal_offset, 30)
        assert STAGES == rig.names_of(rig.announcements(engine), receipt.event_id)


async def test_poison_is_parked_by_a_running_daemon(rig):
    """The directive goes through the one writer while the daemon's thread waits for it."""
    projection, _ = refusing(rig, "poison")
    async with rig.Site(projection) as site:
        engine = await site.open(run_daemon=True)
        await rig.post(engine, "poison")
        after = await rig.post(engine, "after")

        assert await engine.lifecycle.wait("consolidated", after.wal_offset, 30)
        assert 1 == len(engine.inline.scan(engine.names.known(TENANT, 0, "acme"), "parked"))


async def test_a_store_that_fails_stops_the_daemon_visibly(rig):
    """Projection stops and health says why; it does not spin and does not take reads with it."""
    async with rig.Site(with_jobs(rig.projection())) as site:
        engine = await site.open(run_daemon=True)
        receipt = await rig.post(engine, "one")
        assert await engine.lifecycle.wait("consolidated", 1, 30)
        site.mains.trip(1, "family")
        engine.daemon.request_rebuild()
        await asyncio.to_thread(engine.daemon._running.join, 30)

        assert "this family failed" in engine.daemon.failure
        assert [f"daemon: {engine.daemon.failure}"] == health(engine, rig.ALICE).reasons
        assert receipt.event_id == get_event(engine, rig.ALICE, receipt.event_id).id


# Whoever posts


async def until(is_so):
    """Come back when it is so; the suite's own limit says when that takes too long."""

    def look():
        while not is_so():
            os.sched_yield()

    await asyncio.to_thread(look)


async def test_a_gap_between_two_posts_is_not_their_end(rig):
    """The daemon minds those who post until none has for a while, by the clock."""

    class Watch(rig.HandClock):
        passed_s = 0.0

        def elapsed_s(self):
            return self.passed_s

    async with rig.Site(clock=Watch()) as site:
        engine = await site.open(run_daemon=True)
        daemon, way, looks = engine.daemon, engine.committer.way, []
        saw = daemon._posts.saw
        daemon._posts.saw = lambda *seen: looks.append(saw(*seen)) or looks[-1]
        await rig.post(engine, "one")
        await until(lambda: way.is_beside and daemon._beside_entries)
        few = daemon._beside_entries
        site.clock.passed_s += limits.POSTS_LATELY_S / 2
        seen = len(looks)
        daemon.wake()
        await until(lambda: len(looks) > seen)
        in_a_gap = way.is_beside
        site.clock.passed_s += limits.POSTS_LATELY_S
        daemon.wake()
        await until(lambda: not (way.is_beside or daemon._beside_entries))

        assert limits.WAITED_FOR_ENTRIES_MIN == few
        assert in_a_gap


# The feed


async def test_the_feed_names_what_changed(rig):
    """An index that follows the feed hears of every row, by entry, in order."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        for text in ("one", "two"):
            await rig.post(engine, text)
        await site.settle()
        rows = [msgspec.msgpack.decode(value)[1] for _, value in engine.kv.scan("feed")]
        assert [["counts", "put"], ["facts", "put"], ["derives", "put"]] == [
            [table, operation] for table, _, operation in rows[0]
        ][:3]
        assert ["counts", "put"] in [[table, operation] for table, _, operation in rows[1]]
        assert ["facts", "close"] in [[table, operation] for table, _, operation in rows[1]]


async def test_a_new_generation_begins_a_new_feed(rig):
    """After a swap what followed the old rows must start again; the feed does not pretend."""
    async with rig.Site(rig.projection()) as site:
        engine = await filled(rig, site)
        rebuild_projector(engine, rig.ALICE, "ledger")
        await site.settle()

        assert [] == list(engine.kv.scan("feed"))
