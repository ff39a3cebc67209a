"""Can views be built again, told apart, copied and brought back, on a real disk?"""

import pytest

from engine.engine import Projection, open_engine, open_stores
from engine.rebuild import digests
from engine.settings import Settings
from engine.state.kv import CorruptStore, StoreError
from engine.state.rocks import RocksKV
from engine.upkeep import RestoreRequest, backup, restore, verify
from engine.watch import CancelRequest, cancel
from projectors.base import Projector
from projectors.control import CONTROL


def silent(what, done, total):
    """Progress nobody watches."""


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path / "data", disk_low_water_mb=1, ballast_mb=0)


async def lived_in(rig, settings, projection=None):
    """A data directory where something happened, and the views as its engine kept them."""
    stores = open_stores(settings)
    async with open_engine(settings, stores=stores, projection=projection) as engine:
        for number in range(12):
            receipt = await rig.post(engine, f"t{number}", scope=f"org:acme/user:u{number % 3}")
        late = await rig.post(engine, "poison")
        await cancel(engine, rig.ALICE, receipt.event_id, CancelRequest())
        assert await engine.lifecycle.wait("consolidated", late.wal_offset + 1, 30)
        while engine.staged.state.checkpoint < engine.log.head():
            await engine.lifecycle.wait("consolidated", engine.log.head(), 30)
        return rig.kept(engine), rig.replayed(engine, projection or rig.Projection())


async def test_replay_equals_what_was_kept_on_disk(rig, settings):
    """Stages, a cancellation and a poison entry over RocksDB: byte for byte the same (I4)."""
    projection = rig.projection(rig.ledger(refuses=lambda text: text == "poison"))
    kept, replayed = await lived_in(rig, settings, projection)

    assert kept == replayed
    assert {"control", "witness", "ledger", "derives", "opinions"} == set(kept)
    assert all(rows for rows in kept.values())


async def test_verify_with_replay(rig, settings):
    """`strata verify --replay` finds chain, anchors, indexes and every view in order."""
    await lived_in(rig, settings)
    report = verify(settings, silent, replay=True)

    assert report.is_good
    assert (14, 14, 0) == (report.log.entries, report.log.head, report.log.erased)
    assert report.log.anchors >= 1
    assert {p.name for p in Projection().inline + Projection().staged} == {
        view.view for view in report.views
    }
    assert 5 == next(view.rows for view in report.views if view.view == "control")


def contents(folder):
    """Every file below, byte for byte."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_verify_writes_nothing(rig, settings):
    """It looks at a data directory and leaves it as it was."""
    await lived_in(rig, settings)
    before = contents(settings.data)
    verify(settings, silent, replay=True)

    assert before == contents(settings.data)


async def test_a_view_that_does_not_follow_from_the_log_is_seen(rig, settings):
    """One row too many in one view: that view is told apart, the others are equal."""
    await lived_in(rig, settings)
    kv = RocksKV.open(settings.data / "store", [])
    batch = kv.batch()
    batch.put("view.derives@1", b"\0\0\0\1derives\0x", b"\x81\xa3ids\x90")
    kv.write(batch)
    kv.close()
    report = verify(settings, silent, replay=True)

    assert not report.is_good
    assert ["derives"] == [view.view for view in report.views if not view.is_equal]


async def test_digests_tell_rows_apart(rig):
    """Equal digests mean equal bytes: where a key ends and its value begins counts."""
    first, second = rig.MemoryKV(["meta"]), rig.MemoryKV(["meta"])
    found = []
    for kv, key, value in ((first, b"ab", b"c"), (second, b"a", b"bc")):
        unit = rig.Unit(kv, "inline", [CONTROL])
        unit.begin_build()
        unit.swap()
        batch = kv.batch()
        batch.put("view.control@1", key, value)
        kv.write(batch)
        found += digests(kv, unit)

    assert [("control", 1)] * 2 == [(one.view, one.rows) for one in found]
    assert found[0].digest != found[1].digest


# Inline views


async def test_a_new_inline_version_is_built_at_start(rig):
    """Before anything is served; old families are gone, and entries go on from there."""
    async with rig.Site(rig.projection()) as site:
        engine = await site.open()
        for number in range(5):
            await rig.post(engine, f"t{number}")
        await site.stop()
        newer = Projector(
            name="witness", version=2, tables=rig.WITNESS.tables, project=rig.WITNESS.project
        )
        engine = await site.open(rig.projection(inline=(CONTROL, newer)))
        await rig.post(engine, "after")
        await site.settle()

        assert rig.replayed(engine, site.projection) == rig.kept(engine)
        inline = [n for n in engine.kv.families() if n.startswith(("view.control", "view.wit"))]
        assert ["view.control@2", "view.witness@2"] == inline


async def test_an_inline_build_cut_off_is_begun_again(rig):
    """Whatever operation the power fails at, the next start serves whole views and no leftovers."""
    newer = Projector(
        name="witness", version=2, tables=rig.WITNESS.tables, project=rig.WITNESS.project
    )
    changed = rig.projection(inline=(CONTROL, newer))
    for after in range(30):
        async with rig.Site(rig.projection()) as site:
            engine = await site.open()
            for number in range(3):
                await rig.post(engine, f"t{number}")
            await site.stop()
            site.mains.trip(after)
            cut = False
            try:
                await site.open(changed)
            except StoreError:
                cut = True
            await site.kill(power_cut=True)
            engine = await site.open(changed)
            await site.settle()

            assert rig.replayed(engine, changed) == rig.kept(engine)
            inline = [n for n in engine.kv.families() if n.startswith(("view.control", "view.wit"))]
            assert 2 == len(inline), after
        if not cut:
            break
    assert after > 5


# Backups


async def test_a_backup_restores_and_verifies(rig, settings, tmp_path):
    """Copied, checked file by file, brought to a new place: the same log, and replay equality."""
    await lived_in(rig, settings)
    made = backup(settings, tmp_path / "backup", silent)
    there = Settings(data=tmp_path / "there", disk_low_water_mb=1, ballast_mb=0)
    found, report = restore(RestoreRequest(source=tmp_path / "backup"), there, silent)

    assert made == found
    assert (14, made.chain) == (report.log.head, report.log.chain)
    assert verify(there, silent, replay=True).is_good


async def test_a_damaged_backup_is_refused(rig, settings, tmp_path):
    """A file that is not the one the manifest names stops the restore, by name."""
    await lived_in(rig, settings)
    backup(settings, tmp_path / "backup", silent)
    victim = tmp_path / "backup" / "anchors.log"
    victim.write_bytes(victim.read_bytes() + b"x")
    there = Settings(data=tmp_path / "there")

    with pytest.raises(CorruptStore, match=r"anchors\.log is not the file the manifest names"):
        restore(RestoreRequest(source=tmp_path / "backup"), there, silent)
    assert not there.data.exists()


def test_what_is_no_backup_is_refused(tmp_path):
    """No manifest, no backup; and nothing is written over."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")

    with pytest.raises(StoreError, match="is not a backup"):
        restore(RestoreRequest(source=tmp_path), Settings(data=tmp_path / "there"), silent)
    with pytest.raises(StoreError, match="is not empty"):
        backup(Settings(data=tmp_path / "data"), tmp_path / "full", silent)


async def test_a_backup_holds_no_key_and_nothing_derived(rig, settings, tmp_path):
    """The keys lie apart, one folder for all backups; what was derived is derived again."""
    await lived_in(rig, settings)
    backup(settings, tmp_path / "one", silent)
    backup(settings, tmp_path / "two", silent)
    kv = RocksKV.open(tmp_path / "one" / "store", [], read_only=True)
    families = set(kv.families())
    kv.close()

    assert [] == [path for path in tmp_path.glob("one/**/*") if path.suffix == ".key"]
    assert {"anchor.key", "master.key", "1-1.key"} == {
        path.name for path in (tmp_path / "keys").rglob("*") if path.is_file()
    }
    assert {"log", "payload", "names", "audit"} <= families
    assert not [name for name in families if name.startswith(("view.", "blocks", "embeddings"))]


async def test_keys_are_kept_apart(rig, settings, tmp_path):
    """Not in the backup, not in the data directory; and without them nothing is restored."""
    await lived_in(rig, settings)
    for keys in (tmp_path / "backup" / "keys", settings.data / "copy"):
        with pytest.raises(StoreError, match="may not lie in"):
            backup(settings, tmp_path / "backup", silent, keys=keys)
    backup(settings, tmp_path / "backup", silent, keys=tmp_path / "safe")
    there = Settings(data=tmp_path / "there", disk_low_water_mb=1, ballast_mb=0)

    with pytest.raises(StoreError, match="there are no keys at"):
        restore(RestoreRequest(source=tmp_path / "backup"), there, silent)
    assert not there.data.exists()
    asked = RestoreRequest(source=tmp_path / "backup", keys=tmp_path / "safe")
    assert 14 == restore(asked, there, silent)[1].log.head
