"""When does a text say it was?"""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projectors.text.dates import find, resolve

ANCHOR = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)


def day(text):
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text, start, end",
    [
        ("yesterday", "2026-05-12", "2026-05-13"),
        ("last week", "2026-05-04", "2026-05-11"),
        ("in the past week", "2026-05-06", "2026-05-13T15:42"),
        ("in the last month", "2026-04-13", "2026-05-13T15:42"),
        ("over the past year", "2025-05-13", None),
        ("last month", "2026-04-01", "2026-05-01"),
        ("the last weekend", "2026-05-09", "2026-05-11"),
        ("this weekend", "2026-05-16", "2026-05-18"),
        ("next month", "2026-06-01", "2026-07-01"),
        ("last Friday", "2026-05-08", "2026-05-09"),
        ("on Monday", "2026-05-11", "2026-05-12"),
        ("last winter", "2025-12-01", "2026-03-01"),
        ("two years ago", "2024-01-01", "2025-01-01"),
        ("a couple of days ago", "2026-05-11", "2026-05-12"),
        ("in two weeks", "2026-05-25", "2026-06-01"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in June", "2025-06-01", "2025-07-01"),
        ("on 7 May 2023", "2023-05-07", "2023-05-08"),
        ("May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("2023-05-07", "2023-05-07", "2023-05-08"),
        ("Q3 2025", "2025-07-01", "2025-10-01"),
        ("the 90s", "1990-01-01", "2000-01-01"),
        ("since March", "2026-03-01", None),
        ("for 3 years", "2023-05-13", None),
        ("until May", None, "2026-05-01"),
        ("by Friday", None, "2026-05-15"),
        ("from 2010 to 2015", "2010-01-01", "2015-01-01"),
        ("between June 2020 and July 2021", "2020-06-01", "2021-07-01"),
    ],
)
def test_resolved(text, start, end):
    """Words of time are half-open intervals in UTC, told from the moment they were said."""
    found = resolve(text, ANCHOR)

    assert (day(start), day(end)) == (found.start, found.end)


def test_ahead():
    """What is planned lies ahead: the next May, the next Monday."""
    assert day("2027-04-01") == resolve("in April", ANCHOR, ahead=True).start
    assert day("2026-05-18") == resolve("on Monday", ANCHOR, ahead=True).start


@pytest.mark.parametrize(
    "text", ["I may go", "March on", "200 seats", "on 31 February 2023", "5000 years ago", ""]
)
def test_no_time(text):
    """Words that only look like times, and days that never were, are none."""
    assert resolve(text, ANCHOR) is None


def test_several():
    """Every time is found, in order, where it stands."""
    text = "I came in May and left yesterday."

    assert ["in May", "yesterday"] == [text[one.first : one.last] for one in find(text, ANCHOR)]


_WORDS = st.sampled_from(
    [
        "in",
        "since",
        "until",
        "from",
        "to",
        "between",
        "and",
        "last",
        "next",
        "this",
        "May",
        "2019",
        "7",
        "30",
        "3",
        "years",
        "ago",
        "Monday",
        "week",
        "the",
        "summer",
        "of",
        "weekend",
        "for",
        "by",
        "9999",
        "99/99/9999",
        "2023-13-45",
        "decades",
        "İ",
        "yesterday",
    ]
)
_MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(st.lists(_WORDS, max_size=9).map(" ".join), _MOMENTS, st.booleans())
def test_ordered(text, anchor, ahead):
    """Any words at any moment give intervals that begin before they end, or none."""
    for one in find(text, anchor, ahead=ahead):
        start, end = one.interval.start, one.interval.end

        assert 0 <= one.first < one.last <= len(text)
        assert start is None or end is None or start < end
