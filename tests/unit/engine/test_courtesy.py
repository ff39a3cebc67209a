"""Do those who derive stand back for those who wait, and never for good?"""

import threading

import pytest

from engine.courtesy import GIVEN_S_MAX, TIMES, Courtesy, Way

PATIENCE_S = 120


class Waits(Way):
    """A way on which nobody really waits: how long they would have is kept."""

    def __init__(self):
        self.now = 0.0
        self.waited = []
        super().__init__(lambda: self.now)

    def wait(self, seconds):
        """Remember it."""
        self.waited.append(seconds)


@pytest.fixture
def way():
    return Waits()


def test_nobody_waits_on_a_free_way(way):
    """While nobody is being answered, deriving takes all it can."""
    courtesy = Courtesy(way)
    way.now = 1.0
    courtesy.give_way()

    assert way.waited == []


def test_who_worked_a_little_gives_way_a_little(way):
    """A few times what it worked: in a rush it becomes slower, and does not stop."""
    courtesy = Courtesy(way)
    with way.taken():
        way.now = GIVEN_S_MAX / TIMES / 2
        courtesy.give_way()
        courtesy.give_way()

    assert way.waited == [GIVEN_S_MAX / 2, 0.0]


def test_nobody_gives_way_for_long(way):
    """One who comes back after an hour waits no longer than a capture takes."""
    courtesy = Courtesy(way)
    way.now = 3600.0
    with way.taken():
        courtesy.give_way()

    assert way.waited == [GIVEN_S_MAX]


def test_the_way_is_free_when_all_were_answered():
    """Several are answered at a time: the last one leaves it."""
    way = Way(lambda: 0.0)
    way.take()
    with way.taken():
        way.take()
    assert not way.is_free
    way.leave()
    assert not way.is_free
    way.leave()
    assert way.is_free


def test_who_gave_way_goes_on_at_once_when_it_is_free():
    """It is told, and does not wait out its time."""
    way = Way(lambda: 0.0)
    way.take()
    waiting = threading.Thread(target=way.wait, args=(PATIENCE_S,), daemon=True)
    waiting.start()
    way.leave()
    waiting.join(PATIENCE_S / 2)

    assert not waiting.is_alive()


def test_a_failure_leaves_the_way():
    """Whatever happens to who is answered, nobody stands back for it any more."""
    way = Way(lambda: 0.0)
    with pytest.raises(ValueError, match="broken"), way.taken():
        raise ValueError("broken")

    assert way.is_free
