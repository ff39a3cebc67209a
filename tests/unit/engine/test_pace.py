"""How much of the interpreter does projection take?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pace import LOOK_S, Pace, Posts, entries_beside
from schemas import limits

WORKED_S = 0.05


def rest(pace, *, is_busy=True, behind=1000):
    return pace.rest_s(WORKED_S, is_busy=is_busy, behind=behind)


def test_a_busy_loop_gets_most_of_the_interpreter():
    """While the loop computes all it can, the rests grow to several times the work, and no more."""
    pace = Pace()
    rests = []
    for _ in range(8):
        pace.saw(0.95, LOOK_S)
        rests.append(rest(pace))

    assert sorted(rests) == rests
    assert WORKED_S < rests[0] < rests[-1]
    assert rests[-2] == rests[-1]


def test_a_loop_at_ease_gives_it_back():
    """When the loop has little to do each gets half again: readers compute, too."""
    pace = Pace()
    for _ in range(8):
        pace.saw(0.95, LOOK_S)
    pressed = rest(pace)
    for _ in range(8):
        pace.saw(0.1, LOOK_S)

    assert rest(pace) == WORKED_S < pressed


def test_a_rush_that_is_over_is_over():
    """One look at a loop at ease is enough; nobody waits for what was a rush."""
    pace = Pace()
    for _ in range(8):
        pace.saw(0.95, LOOK_S)
    assert pace.is_pressed
    pace.saw(0.1, LOOK_S)

    assert not pace.is_pressed
    assert rest(pace) == WORKED_S


def test_a_rush_that_does_not_end_is_none():
    """Who is far behind takes its share again, however busy the loop is."""
    pace = Pace()
    for _ in range(8):
        pace.saw(0.95, LOOK_S)
    near, far = limits.RUSH_ENTRIES_MAX, limits.RUSH_ENTRIES_MAX + 1

    assert rest(pace, behind=far) < rest(pace, behind=near) / 4


def test_a_glance_between_two_requests_changes_nothing():
    """A rush has its gaps: only a long look at a loop at ease ends it."""
    pace = Pace()
    for _ in range(8):
        pace.saw(0.95, LOOK_S)
    before = rest(pace)
    for _ in range(3):
        pace.saw(0.0, LOOK_S / 10)

    assert before == rest(pace)
    pace.saw(0.0, LOOK_S)
    assert rest(pace) == WORKED_S


def test_in_between_a_rush_does_not_linger_on():
    """Neither pressed nor at ease: projection has its fifth, and that does not swing."""
    pace = Pace()
    for share in (0.95, 0.95, 0.95, 0.95):
        pace.saw(share, LOOK_S)
    before = rest(pace)
    pace.saw(0.45, LOOK_S)
    after = rest(pace)
    pace.saw(0.5, LOOK_S)

    assert 4 * WORKED_S == after < before
    assert after == rest(pace)


@pytest.mark.parametrize("share", [0.0, 0.95])
def test_a_backlog_nobody_adds_to_is_worked_off_without_a_rest(share):
    """A rebuild with nobody posting does not rest: its batches are full anyway."""
    pace = Pace()
    pace.saw(share, LOOK_S)

    assert rest(pace, is_busy=False) == 0


def test_where_nobody_can_tell_it_rests_as_long_as_it_worked():
    """Without a clock for the loop's thread, each gets half."""
    pace = Pace()
    pace.saw(None, LOOK_S)

    assert rest(pace) == WORKED_S


@given(st.lists(st.floats(0, 1.2) | st.none()), st.floats(0, 10))
def test_the_rest_is_bounded(shares, worked_s):
    """Whatever was seen, projection gets a part of the time, and a fifth when it is far behind."""
    pace = Pace()
    for share in shares:
        pace.saw(share, LOOK_S)

    assert pace.rest_s(worked_s, is_busy=True, behind=0) <= min(max(0.01, 32 * worked_s), 2)
    assert pace.rest_s(worked_s, is_busy=True, behind=10**6) <= max(0.01, 4 * worked_s)


@given(came=st.integers(0, 10_000))
def test_a_batch_beside_others_keeps_up_with_them(came):
    """It takes all that came and as many again, and is never so large that others wait long."""
    most = entries_beside(came)

    assert limits.WAITED_FOR_ENTRIES_MIN <= most <= limits.WAITED_FOR_ENTRIES_MAX
    assert most >= min(2 * came, limits.WAITED_FOR_ENTRIES_MAX)


def test_a_gap_between_two_posts_is_not_the_end_of_them():
    """Else a batch between the two would be a large one, and the next of them would wait for it."""
    posts = Posts(written=7)
    at = 100.0
    seen = [posts.saw(7, at), posts.saw(8, at), posts.saw(8, at + limits.POSTS_LATELY_S / 2)]

    assert seen == [False, True, True]


def test_who_posts_now_and_then_is_not_minded_in_between():
    """A backlog beside a trickle of posts goes on in large batches."""
    posts = Posts(written=7)
    posts.saw(8, 100.0)

    assert not posts.saw(8, 100.0 + limits.POSTS_LATELY_S)
