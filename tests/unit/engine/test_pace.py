"""How much of the interpreter does projection take?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pace import Pace

WORKED_S = 0.05


def rest(pace, *, is_busy=True, is_behind=True):
    return pace.rest_s(WORKED_S, is_busy=is_busy, is_behind=is_behind)


def test_a_busy_loop_gets_most_of_the_interpreter():
    """While the loop computes all it can, the rests grow to several times the work, and no more."""
    pace = Pace()
    rests = []
    for _ in range(8):
        pace.saw(0.95)
        rests.append(rest(pace))

    assert sorted(rests) == rests
    assert WORKED_S < rests[0] < rests[-1]
    assert rests[-2] == rests[-1]


def test_a_loop_at_ease_gives_it_back():
    """When the loop has little to do each gets half again: readers compute, too."""
    pace = Pace()
    for _ in range(8):
        pace.saw(0.95)
    pressed = rest(pace)
    for _ in range(8):
        pace.saw(0.1)

    assert rest(pace) == WORKED_S < pressed


def test_in_between_nothing_changes():
    """Neither pressed nor at ease: the rests stay as they are, and do not swing."""
    pace = Pace()
    for share in (0.95, 0.95, 0.95):
        pace.saw(share)
    before = rest(pace)
    pace.saw(0.45)

    assert before == rest(pace)


@pytest.mark.parametrize("share", [0.0, 0.95])
def test_a_backlog_nobody_adds_to_is_worked_off_without_a_rest(share):
    """A rebuild with nobody posting does not rest: its batches are full anyway."""
    pace = Pace()
    pace.saw(share)

    assert rest(pace, is_busy=False, is_behind=True) == 0


def test_where_nobody_can_tell_it_rests_as_long_as_it_worked():
    """Without a clock for the loop's thread, each gets half."""
    pace = Pace()
    pace.saw(None)

    assert rest(pace) == WORKED_S


@given(st.lists(st.floats(0, 1.2) | st.none()), st.floats(0, 10))
def test_the_rest_is_bounded(shares, worked_s):
    """Whatever was seen, projection gets at least a fifth of the time."""
    pace = Pace()
    for share in shares:
        pace.saw(share)

    assert pace.rest_s(worked_s, is_busy=True, is_behind=False) <= max(0.01, 4 * worked_s)
