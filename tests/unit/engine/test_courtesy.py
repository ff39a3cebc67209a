"""Do those who derive stand back for those who wait, and never for good?"""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.courtesy import (
    COMING_S,
    GIVEN_S_MAX,
    LINGER_S,
    MOMENT_S,
    PIECE_S,
    STILL_S_MAX,
    SWITCH_BESIDE_S,
    SWITCH_S,
    TIMES,
    Courtesy,
    Hush,
    Way,
)

PATIENCE_S = 120


class Waits(Way):
    """A way on which nobody really waits: how long they would have is kept."""

    def __init__(self):
        self.now = 0.0
        self.waited = []
        self.slept = []
        super().__init__(lambda: self.now)

    def wait(self, seconds):
        """Remember it."""
        self.waited.append(seconds)

    def sleep(self, seconds):
        """Remember it."""
        self.slept.append(seconds)


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
    assert way.slept == []


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
    """Also while somebody is being answered: others than who answers may have it just then."""
    asked_s = []
    for is_busy in (True, False):
        with way.taken():
            way.mind_posts(is_busy=is_busy)
            asked_s.append(sys.getswitchinterval())
        asked_s.append(sys.getswitchinterval())

    assert asked_s == pytest.approx([SWITCH_BESIDE_S] * 2 + [SWITCH_S] * 2)
    assert SWITCH_BESIDE_S < SWITCH_S


def test_where_nobody_posts_the_interval_is_left_alone(way):
    """It is the whole process's: somebody else may have a use for another."""
    sys.setswitchinterval(0.02)
    way.mind_posts(is_busy=False)
    with way.taken():
        pass

    assert sys.getswitchinterval() == pytest.approx(0.02)


# ── while others post ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_busy, slept", [(False, []), (True, [MOMENT_S])])
def test_after_a_piece_of_work_there_is_a_moment_for_others(way, is_busy, slept):
    """A small one needs none, and where nobody posts there is nobody to have it."""
    way.mind_posts(is_busy=is_busy)
    courtesy = Courtesy(way)
    way.now = PIECE_S / 2
    courtesy.give_way()
    way.now = PIECE_S
    courtesy.give_way()
    courtesy.give_way()

    assert way.slept == slept
    assert way.waited == []


def test_who_is_answered_after_that_moment_is_waited_for(way):
    """The moment is for who has woken; then it may well have begun."""
    way.mind_posts(is_busy=True)
    courtesy = Courtesy(way)
    way.now = PIECE_S
    with way.taken():
        courtesy.give_way()

    assert (way.slept, way.waited) == ([MOMENT_S], [pytest.approx(PIECE_S * TIMES)])


def test_who_has_come_will_be_answered_soon(way):
    """Between its first bytes and the way it takes nobody begins anything."""
    way.mind_posts(is_busy=True)
    courtesy = Courtesy(way)
    way.came()
    courtesy.give_way()
    way.now = COMING_S
    courtesy.give_way()

    assert way.slept == [COMING_S]


def test_who_comes_where_nobody_posts_disturbs_nobody(way):
    """A recall now and then is no reason to stop anything."""
    told = []
    way.on_came = lambda: told.append(True)
    way.came()

    assert (way.has_come(1.0), told) == (False, [])


# ── and what another process does ────────────────────────────────────────────────────────────


class Other:
    """One that can be kept still."""

    def __init__(self, way, *, is_there=True):
        self._way = way
        self.is_there = is_there
        self.is_still = False
        self.stops = []
        """From when to when it was still."""

    def hold(self):
        """It stops, if there is one."""
        if self.is_there:
            self.is_still = True
            self.stops.append((self._way.now, None))
        return self.is_there

    def let_go(self):
        """It goes on."""
        self.is_still = False
        self.stops.append((self.stops.pop()[0], self._way.now))


class Hushed:
    """A way on which others post, one who is kept still, and the event loop's looks."""

    def __init__(self, **kind):
        self.way = Waits()
        self.way.mind_posts(is_busy=True)
        self.other = Other(self.way, **kind)
        self.looks = []
        hush = Hush(self.way, self.other.hold, self.other.let_go, self.later)
        self.way.on_came = hush.came

    def later(self, seconds, look):
        """What the event loop does."""
        self.looks.append((self.way.now + seconds, look))

    def pass_time(self, seconds):
        """The loop looks when it is time."""
        until = self.way.now + seconds
        while self.looks and self.looks[0][0] <= until:
            self.way.now, look = self.looks.pop(0)
            look()
        self.way.now = until


@pytest.fixture
def hushed():
    return Hushed()


def test_the_other_is_still_until_nobody_has_come_for_a_moment(hushed):
    """Where one came there may be more of them."""
    hushed.way.came()
    hushed.pass_time(LINGER_S / 2)
    hushed.way.came()
    still = [hushed.other.is_still]
    hushed.pass_time(LINGER_S)
    still.append(hushed.other.is_still)
    hushed.pass_time(LINGER_S)
    still.append(hushed.other.is_still)

    assert still == [True, True, False]
    assert hushed.looks == []


def test_the_other_is_still_until_all_were_answered(hushed):
    """An answer may take longer than anybody comes after another."""
    hushed.way.came()
    with hushed.way.taken():
        hushed.pass_time(LINGER_S * 3)
        is_still = hushed.other.is_still
    hushed.pass_time(LINGER_S)

    assert is_still
    assert not hushed.other.is_still


@pytest.mark.parametrize("every_s", [LINGER_S / 4, LINGER_S * 1.05, STILL_S_MAX * 0.7])
def test_a_rush_does_not_keep_the_other_still_for_good(hushed, every_s):
    """Half of the time is its own, however those come who are answered."""
    still_s, step_s, next_s = 0.0, LINGER_S / 20, 0.0
    for _ in range(20 * 100):
        if hushed.way.now >= next_s:
            hushed.way.came()
            next_s += every_s
        still_s += step_s if hushed.other.is_still else 0.0
        hushed.pass_time(step_s)

    assert 0.2 < still_s / hushed.way.now < 0.55


def test_where_there_is_nobody_to_be_kept_still_nobody_looks():
    """The folding process comes and goes."""
    hushed = Hushed(is_there=False)
    hushed.way.came()

    assert hushed.looks == []


@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["came", "take", "leave", "post"]), st.floats(0, STILL_S_MAX)),
        max_size=60,
    )
)
def test_whatever_happens_the_other_goes_on(moves):
    """Never still for longer than it may be, and not once everybody has gone."""
    hushed = Hushed()
    taken = 0
    for what, seconds in moves:
        if what == "came":
            hushed.way.came()
        elif what == "take":
            hushed.way.take()
            taken += 1
        elif what == "post":
            hushed.way.mind_posts(is_busy=not hushed.way.is_beside)
        elif taken:
            hushed.way.leave()
            taken -= 1
        hushed.pass_time(seconds)
    for _ in range(taken):
        hushed.way.leave()
    hushed.pass_time(STILL_S_MAX)

    stops = hushed.other.stops
    assert not hushed.other.is_still
    assert hushed.looks == []
    assert all(until - since <= STILL_S_MAX + 1e-9 for since, until in stops)
    for first in range(len(stops)):
        still_s = sum(until - since for since, until in stops[first:])
        all_s = stops[-1][1] - stops[first][0]
        assert still_s <= all_s / 2 + STILL_S_MAX, "half of the time is its own"
