"""What stretch of time do words mean?"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.natural import add_months, normal, parse
from schemas.intervals import Interval

WEDNESDAY = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
LAUNCH = Interval(datetime(2026, 2, 10, tzinfo=UTC), datetime(2026, 2, 11, tzinfo=UTC))

MEANINGS = {
    "today": ("2026-05-13", "2026-05-14"),
    "Yesterday": ("2026-05-12", "2026-05-13"),
    "tomorrow.": ("2026-05-14", "2026-05-15"),
    "the day before yesterday": ("2026-05-11", "2026-05-12"),
    "this week": ("2026-05-11", "2026-05-18"),
    "last week": ("2026-05-04", "2026-05-11"),
    "next week": ("2026-05-18", "2026-05-25"),
    "last weekend": ("2026-05-09", "2026-05-11"),
    "this month": ("2026-05-01", "2026-06-01"),
    "last month": ("2026-04-01", "2026-05-01"),
    "next month": ("2026-06-01", "2026-07-01"),
    "this quarter": ("2026-04-01", "2026-07-01"),
    "last quarter": ("2026-01-01", "2026-04-01"),
    "next quarter": ("2026-07-01", "2026-10-01"),
    "this year": ("2026-01-01", "2027-01-01"),
    "last year": ("2025-01-01", "2026-01-01"),
    "next year": ("2027-01-01", "2028-01-01"),
    "last 30 days": ("2026-04-13T15:42", "2026-05-13T15:42"),
    "over the past two weeks": ("2026-04-29T15:42", "2026-05-13T15:42"),
    "past week": ("2026-05-06T15:42", "2026-05-13T15:42"),
    "in the last 3 months": ("2026-02-13T15:42", "2026-05-13T15:42"),
    "last 6 hours": ("2026-05-13T09:42", "2026-05-13T15:42"),
    "next 2 weeks": ("2026-05-13T15:42", "2026-05-27T15:42"),
    "3 days ago": ("2026-05-10", "2026-05-11"),
    "a week ago": ("2026-05-04", "2026-05-11"),
    "two months ago": ("2026-03-01", "2026-04-01"),
    "2 hours ago": ("2026-05-13T13:00", "2026-05-13T14:00"),
    "in 3 days": ("2026-05-16", "2026-05-17"),
    "a year from now": ("2027-01-01", "2028-01-01"),
    "in April": ("2026-04-01", "2026-05-01"),
    "in June": ("2025-06-01", "2025-07-01"),
    "last May": ("2025-05-01", "2025-06-01"),
    "this May": ("2026-05-01", "2026-06-01"),
    "next April": ("2027-04-01", "2027-05-01"),
    "April 2026": ("2026-04-01", "2026-05-01"),
    "in Sept of 2024": ("2024-09-01", "2024-10-01"),
    "April 15": ("2026-04-15", "2026-04-16"),
    "on April 15th, 2025": ("2025-04-15", "2025-04-16"),
    "15 April": ("2026-04-15", "2026-04-16"),
    "the 3rd of June": ("2025-06-03", "2025-06-04"),
    "29 February": ("2024-02-29", "2024-03-01"),
    "Q3 2026": ("2026-07-01", "2026-10-01"),
    "2026-Q3": ("2026-07-01", "2026-10-01"),
    "Q3": ("2025-07-01", "2025-10-01"),
    "the first quarter of 2026": ("2026-01-01", "2026-04-01"),
    "second half of 2025": ("2025-07-01", "2026-01-01"),
    "2026": ("2026-01-01", "2027-01-01"),
    "in 2024": ("2024-01-01", "2025-01-01"),
    "2026-04": ("2026-04-01", "2026-05-01"),
    "2026-W20": ("2026-05-11", "2026-05-18"),
    "2026-04-15": ("2026-04-15", "2026-04-16"),
    "Friday": ("2026-05-08", "2026-05-09"),
    "on Wednesday": ("2026-05-13", "2026-05-14"),
    "last Wednesday": ("2026-05-06", "2026-05-07"),
    "last Friday": ("2026-05-08", "2026-05-09"),
    "this Friday": ("2026-05-15", "2026-05-16"),
    "next Wednesday": ("2026-05-20", "2026-05-21"),
    "since March": ("2026-03-01", "2026-05-13T15:42"),
    "since today": ("2026-05-13", "2026-05-14"),
    "since the launch": ("2026-02-10", "2026-05-13T15:42"),
    "the launch": ("2026-02-10", "2026-02-11"),
    "before the launch": (None, "2026-02-10"),
    "after the launch": ("2026-02-11", None),
    "until April": (None, "2026-04-01"),
    "through April": (None, "2026-05-01"),
    "between March and April": ("2026-03-01", "2026-05-01"),
    "from the launch to yesterday": ("2026-02-10", "2026-05-13"),
    "March to April 2026": ("2026-03-01", "2026-05-01"),
    "2026-03-01..2026-04-01": ("2026-03-01", "2026-04-02"),
}

NONSENSE = (
    "",
    "soon",
    "the other day",
    "April 31",
    "30 February 2026",
    "last 0 days",
    "last 999999 days",
    "last 10000 years",
    "13/05/2026",
    "2026-13",
    "2026-W60",
    "between April and March 2026",
    "since whenever",
    "Q5 2026",
    "\x00",
)


def instant(text):
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("phrase", MEANINGS)
def test_what_a_phrase_means(phrase):
    """Said on a Wednesday afternoon; weeks begin on Monday, and intervals are half-open."""
    start, end = map(instant, MEANINGS[phrase])

    assert Interval(start, end) == parse(phrase, WEDNESDAY, {"launch": LAUNCH})


@pytest.mark.parametrize("phrase", NONSENSE)
def test_what_is_not_understood(phrase):
    """Nothing is guessed: no such day, no such number, no such word."""
    assert parse(phrase, WEDNESDAY, {}) is None


def test_days_begin_in_the_reader_s_zone():
    """Late on the 13th in New York is the 14th in UTC, and yesterday there is the 12th."""
    reference = datetime(2026, 5, 14, 2, tzinfo=UTC).astimezone(ZoneInfo("America/New_York"))

    assert (
        Interval(datetime(2026, 5, 12, 4, tzinfo=UTC), datetime(2026, 5, 13, 4, tzinfo=UTC))
    ) == parse("yesterday", reference, {})


def test_a_day_is_a_day_when_the_clocks_change():
    """The day of a change has 23 hours, and two days ago is still two days ago."""
    reference = datetime(2026, 3, 30, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    found = parse("yesterday", reference, {})

    assert timedelta(hours=23) == found.end - found.start


def test_phrases_are_compared_without_case_commas_and_spaces():
    """`fiscal_q3` and "Fiscal  Q3" are one phrase."""
    assert normal("fiscal_q3") == normal(" Fiscal  Q3 ") == normal("fiscal, Q3.")


references = st.datetimes(
    min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
)
units = st.sampled_from(["day", "week", "month", "quarter", "year"])


@given(phrase=st.sampled_from(sorted(MEANINGS)), reference=references)
def test_every_interval_is_half_open_and_not_empty(phrase, reference):
    """Whenever it is asked: it begins before it ends, and its end is not in it."""
    found = parse(phrase, reference, {"launch": LAUNCH})
    if found is None:
        assert phrase.startswith(("from", "between", "March to"))  # the other way round by then
        return
    if found.start is not None:
        assert found.contains(found.start)
        assert found.start.tzinfo is UTC
    if found.end is not None:
        assert not found.contains(found.end)
    if found.start is not None and found.end is not None:
        assert found.start < found.end


@given(unit=units, reference=references)
def test_calendar_units_meet(unit, reference):
    """This one holds the moment; the last ends where it begins, the next begins where it ends."""
    last, this, following = (
        parse(f"{which} {unit}", reference, {}) for which in ("last", "this", "next")
    )

    assert this.contains(reference)
    assert last.end == this.start
    assert this.end == following.start


@given(unit=units, count=st.integers(1, 400), reference=references)
def test_lengths_end_now(unit, count, reference):
    """A length is counted back from the moment, and grows with the number."""
    found = parse(f"last {count} {unit}s", reference, {})
    longer = parse(f"last {count + 1} {unit}s", reference, {})

    assert reference == found.end == longer.end
    assert longer.start < found.start


@given(reference=references, months=st.integers(-600, 600))
def test_months_end_with_the_month(reference, months):
    """The same day of the month, or its last; never the one after."""
    moved = add_months(reference, months)
    ahead = (moved.year - reference.year) * 12 + moved.month - reference.month

    assert months == ahead
    assert moved.day <= reference.day
