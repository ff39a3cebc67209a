"""Does one fsync serve everyone who waits, and nobody too early?"""

import threading

import pytest

from engine.state.kv import StoreWriteFailed
from engine.state.syncer import Syncer

PATIENCE_S = 120


class Disk:
    """A disk whose syncs start when they are let, one after the other."""

    def __init__(self):
        self.written = 0
        self.durable = 0
        self.began = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.count = 0
        self.error = None

    def sync(self):
        """Make durable what was written when it began."""
        covered = self.written
        self.count += 1
        self.began.release()
        assert self.allowed.acquire(timeout=PATIENCE_S)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.durable = max(self.durable, covered)


class Writer(threading.Thread):
    """Writes once, then syncs; remembers what was durable when its sync returned."""

    def __init__(self, disk, syncer, patience_s=0.0):
        super().__init__(daemon=True)
        self.patience_s = patience_s
        self.disk = disk
        self.syncer = syncer
        self.disk.written += 1
        self.mine = self.disk.written
        self.seen = None
        self.error = None
        self.start()

    def run(self):
        """Sync, and see."""
        try:
            self.syncer.sync(self.patience_s)
            self.seen = self.disk.durable
        except (OSError, StoreWriteFailed) as error:
            self.error = error

    def finished(self):
        """Wait for the end; whether its own write was durable by then."""
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.seen is not None and self.seen >= self.mine


class Turn(threading.Condition):
    """A condition that tells when someone has begun to wait on it."""

    def __init__(self):
        super().__init__()
        self.queued = threading.Semaphore(0)

    def wait(self, timeout=None):
        """Say so, then wait; the lock is held until the wait has begun."""
        self.queued.release()
        return super().wait(timeout)


def waiting(syncer, count):
    """Return when so many writers wait for their turn."""
    for _ in range(count):
        assert syncer._turn.queued.acquire(timeout=PATIENCE_S)


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def syncer(disk):
    made = Syncer(disk.sync)
    made._turn = Turn()
    return made


def test_the_patient_who_come_during_a_sync_share_the_next(disk, syncer):
    """Sixteen wait while one syncs: the next sync serves all of them, and it is the last."""
    first = Writer(disk, syncer)
    assert disk.began.acquire(timeout=PATIENCE_S)
    late = [Writer(disk, syncer, PATIENCE_S) for _ in range(16)]
    waiting(syncer, 16)
    disk.allowed.release()
    assert first.finished()
    disk.allowed.release()
    assert Writer(disk, syncer).finished()

    assert [True] * 16 == [writer.finished() for writer in late]
    assert 2 == disk.count


def test_a_sync_under_way_does_not_serve_a_later_write(disk, syncer):
    """It may have begun before the write: the writer asks for one that begins after, at once."""
    first = Writer(disk, syncer)
    assert disk.began.acquire(timeout=PATIENCE_S)
    second = Writer(disk, syncer)
    assert disk.began.acquire(timeout=PATIENCE_S)
    disk.allowed.release(2)

    assert [True, True] == [first.finished(), second.finished()]
    assert 2 == disk.count


def test_one_after_the_other_syncs_each_time(disk, syncer):
    """Nobody waits, nothing is shared: each write has a sync of its own."""
    for _ in range(3):
        disk.allowed.release()
        assert Writer(disk, syncer).finished()

    assert 3 == disk.count


def test_a_failed_sync_is_the_last(disk, syncer):
    """Who asked for it gets the error, and so do all who come later: what it lost is lost."""
    disk.error = OSError("the disk is gone")
    disk.allowed.release()
    first = Writer(disk, syncer)
    assert not first.finished()
    second = Writer(disk, syncer)

    assert not second.finished()
    assert isinstance(first.error, OSError)
    assert isinstance(second.error, StoreWriteFailed)
    assert 1 == disk.count


def test_who_syncs_beside_one_that_fails_is_told(disk, syncer):
    """The disk may say yes to the other and mean what it has lost: nobody takes it for durable."""
    disk.error = OSError("the disk is gone")
    both = [Writer(disk, syncer) for _ in range(2)]
    for _ in both:
        assert disk.began.acquire(timeout=PATIENCE_S)
    disk.allowed.release()
    while not any(isinstance(writer.error, OSError) for writer in both):
        assert any(writer.is_alive() for writer in both)
    disk.allowed.release()

    assert [False, False] == [writer.finished() for writer in both]
    assert {OSError, StoreWriteFailed} == {type(writer.error) for writer in both}


def test_many_writers_at_once(disk, syncer):
    """Whatever the interleaving, nobody returns before its write is durable."""
    for _ in range(200):
        disk.allowed.release()
    writers = [Writer(disk, syncer) for _ in range(50)]

    assert [True] * 50 == [writer.finished() for writer in writers]
    assert disk.count <= 50


def patient_and_hasty(disk):
    """One that waits for another's sync, and then another."""
    syncer = Syncer(disk.sync)
    turn = syncer._turn = Turn()
    patient = Writer(disk, syncer, PATIENCE_S)
    assert turn.queued.acquire(timeout=PATIENCE_S)
    hasty = Writer(disk, syncer)
    assert disk.began.acquire(timeout=PATIENCE_S)
    disk.allowed.release()
    return patient, hasty


def test_who_has_patience_is_served_by_another():
    """An announcement need not ask the disk when a capture does so anyway."""
    disk = Disk()
    patient, hasty = patient_and_hasty(disk)

    assert hasty.finished()
    assert patient.finished()
    assert disk.count == 1


def test_patience_ends():
    """When nobody else comes, who has waited asks by itself."""
    disk = Disk()
    disk.allowed.release()
    patient = Writer(disk, Syncer(disk.sync), 0.001)

    assert patient.finished()
    assert disk.count == 1


def test_the_patient_hear_that_the_disk_failed():
    """A sync that failed was not theirs alone: nothing is announced."""
    disk = Disk()
    disk.error = OSError("gone")
    patient, hasty = patient_and_hasty(disk)

    assert not hasty.finished()
    assert not patient.finished()
    assert isinstance(patient.error, StoreWriteFailed)


def test_some_waits_for_the_interpreter_do_not_make_a_disk_slow():
    """The middle counts: a disk is quick that mostly is."""
    times = iter([value for took in (0.0001, 0.02, 0.0001) for value in (0.0, took)])
    syncer = Syncer(lambda: None, clock=lambda: next(times))
    for _ in range(3):
        syncer.sync()

    assert syncer.is_quick()


def test_a_disk_that_mostly_takes_long_is_slow():
    """Then nobody waits for it on the event loop."""
    times = iter([value for took in (0.02, 0.0001, 0.02, 0.02) for value in (0.0, took)])
    syncer = Syncer(lambda: None, clock=lambda: next(times))
    for _ in range(4):
        syncer.sync()

    assert not syncer.is_quick()
