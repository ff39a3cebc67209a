"""Was the machine idle?"""

import os

from bench.calm import Pulse, Window, calm, counted, on_every_core


def _taking(*seconds):
    """Twenty pieces of work on an idle machine, and then these."""
    yield from [1.0] * 20
    yield from seconds


def test_a_window_is_calm_when_the_machine_is_before_and_after():
    """A neighbour who comes meanwhile is seen by what the piece of work takes afterwards."""
    beats = _taking(1.0, 1.1, 1.0, 1.6, 1.0, 1.0)
    pulse = Pulse(lambda: next(beats))
    values = iter("abc")
    found = pulse.windows(lambda: next(values), 2)

    assert [Window("a", True), Window("b", False), Window("c", True)] == found
    assert ["a", "c"] == calm(found)


def test_a_machine_that_is_never_idle_is_measured_all_the_same():
    """Windows end, whatever the machine does; then all of them count."""
    beats = _taking(*[2.0] * 10_000)
    pulse = Pulse(lambda: next(beats))
    assert not pulse.settle(lambda _: None)
    found = [Window(value, pulse.is_calm()) for value in (3, 1, 2)]

    assert ([], [3, 1, 2]) == (calm(found), counted(found))


def test_the_figure_does_not_decide_whether_it_counts():
    """A good figure of a busy moment is left out like a bad one."""
    found = [Window(1.0, False), Window(9.0, True)]

    assert [9.0] == counted(found)


def test_a_machine_that_becomes_faster_is_idle_by_its_new_pace():
    """The least is of the whole run: what was usual at first may have been a neighbour's doing."""
    beats = _taking(0.5, 1.0, 0.52)
    pulse = Pulse(lambda: next(beats))

    assert [True, False, True] == [pulse.is_calm() for _ in range(3)]


def test_every_core_is_asked_and_the_slowest_tells():
    """The measured server runs where it likes, and each core has neighbours of its own."""
    ours, asked = os.sched_getaffinity(0), []

    def work():
        asked.append(os.sched_getaffinity(0))
        return 1.0 / len(asked)

    assert 1.0 == on_every_core(work)
    assert [{core} for core in ours] == asked
    assert ours == os.sched_getaffinity(0)
