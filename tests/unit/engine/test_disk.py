"""Does a disk that fills up stop writes in time, and open again?"""

import os

import pytest

from engine.disk import Disk, used_bytes
from engine.keeper import Keeper
from engine.read import get_event
from schemas.errors import WalUnavailable
from schemas.limits import MIB


@pytest.fixture
def room(monkeypatch):
    """Sets how much room the file system says it has, in MiB."""

    def say(mib):
        monkeypatch.setattr(os, "statvfs", lambda path: Free(mib))

    return say


class Free:
    """What statvfs answers."""

    f_frsize = MIB

    def __init__(self, mib):
        self.f_bavail = mib


@pytest.mark.parametrize("free, expected", [(255, True), (256, False), (257, False), (0, True)])
def test_low_is_below_the_mark(tmp_path, room, free, expected):
    """At the mark there is still room; below it writes must stop."""
    room(free)

    assert expected == Disk(tmp_path, 256, 0).is_low()


def test_ballast_is_real_blocks(tmp_path):
    """A hole would hold nothing back."""
    disk = Disk(tmp_path, 0, 3)
    disk.lay_ballast()
    found = (tmp_path / "ballast").stat()

    assert (3 * MIB, 0o600) == (found.st_size, found.st_mode & 0o777)
    assert found.st_blocks * 512 >= 3 * MIB
    assert 3 * MIB == disk.health().ballast_bytes


def test_ballast_is_laid_once(tmp_path):
    """Laying it again touches nothing."""
    disk = Disk(tmp_path, 0, 2)
    disk.lay_ballast()
    before = (tmp_path / "ballast").stat().st_mtime_ns
    disk.lay_ballast()

    assert before == (tmp_path / "ballast").stat().st_mtime_ns


@pytest.mark.parametrize("size", [0, 1, 3])
def test_ballast_takes_its_new_size(tmp_path, size):
    """A changed setting is followed, down to nothing."""
    Disk(tmp_path, 0, 2).lay_ballast()
    Disk(tmp_path, 0, size).lay_ballast()
    path = tmp_path / "ballast"

    assert size * MIB == (path.stat().st_size if path.exists() else 0)


@pytest.mark.parametrize("free, laid", [(19, False), (20, True)])
def test_ballast_needs_plenty_of_room(tmp_path, room, free, laid):
    """It is laid only where it leaves writers more than the mark, and as much again."""
    room(free)
    Disk(tmp_path, 10, 5).lay_ballast()

    assert laid == (tmp_path / "ballast").exists()


def test_ballast_makes_room_once(tmp_path):
    """Given back, it is gone; there is no second time."""
    disk = Disk(tmp_path, 0, 1)
    disk.lay_ballast()

    assert [True, False] == [disk.make_room(), disk.make_room()]
    assert 0 == disk.health().ballast_bytes


def test_use_is_counted_without_the_ballast(tmp_path, room):
    """Health tells data and ballast apart."""
    disk = Disk(tmp_path, 1, 1)
    disk.lay_ballast()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * 1000)
    room(77)

    assert (77 * MIB, MIB, MIB, 1000) == (
        disk.health().free_bytes,
        disk.health().low_water_bytes,
        disk.health().ballast_bytes,
        disk.health().data_bytes,
    )
    assert MIB + 1000 == used_bytes(tmp_path)


async def test_a_low_disk_refuses_writes_and_recovers(rig, tmp_path, room):
    """503 WAL_UNAVAILABLE with its reason while room is short; reads go on; then writes again."""
    async with rig.Site() as site:
        engine = await site.open()
        before = await rig.post(engine, "before")
        disk = Disk(tmp_path, 10, 1)
        keeper = Keeper(engine.committer, engine.daemon, anchors=None, disk=disk)
        room(9)
        keeper._watch_disk()
        with pytest.raises(WalUnavailable, match="disk is nearly full") as refused:
            await rig.post(engine, "refused")
        assert ("WAL_UNAVAILABLE", True) == (refused.value.code, refused.value.retriable)
        assert before.event_id == get_event(engine, rig.ALICE, before.event_id).id
        assert 1 == engine.log.head()
        room(100)
        keeper._watch_disk()

        assert 2 == (await rig.post(engine, "after")).wal_offset
        assert (tmp_path / "ballast").exists()
