"""Do those who derive stand back for those who wait, and never for good?"""

import sys
import threading

import pytest

from engine.courtesy import GIVEN_S_MAX, SWITCH_BESIDE_S, SWITCH_S, TIMES, Courtesy, Way

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


@pytest.fixture(autouse=True)
def _same_interval():
    """How soon threads ask for the interpreter is the whole process's, and others test in it."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


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


def test_while_others_post_who_derives_is_asked_sooner(way):
    """Who has just come is waited for by nobody else; who is being answered keeps what it has."""
    asked_s = []
    for is_busy in (True, False):
        way.mind_posts(is_busy=is_busy)
        asked_s.append(sys.getswitchinterval())
        with way.taken(), way.taken():
            asked_s.append(sys.getswitchinterval())
        asked_s.append(sys.getswitchinterval())

    assert asked_s == pytest.approx([SWITCH_BESIDE_S, SWITCH_S, SWITCH_BESIDE_S] + [SWITCH_S] * 3)
    assert SWITCH_BESIDE_S < SWITCH_S


def test_posts_that_begin_and_end_while_somebody_is_answered(way):
    """What was said meanwhile holds when everybody has been answered."""
    with way.taken():
        way.mind_posts(is_busy=True)
        is_kept = sys.getswitchinterval() == pytest.approx(SWITCH_S)
    is_short = sys.getswitchinterval() == pytest.approx(SWITCH_BESIDE_S)
    with way.taken():
        way.mind_posts(is_busy=False)

    assert is_kept
    assert is_short
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)


def test_where_nobody_posts_the_interval_is_left_alone(way):
    """It is the whole process's: somebody else may have a use for another."""
    sys.setswitchinterval(0.02)
    way.mind_posts(is_busy=False)
    with way.taken():
        pass

    assert sys.getswitchinterval() == pytest.approx(0.02)
