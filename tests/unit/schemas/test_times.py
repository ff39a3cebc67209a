"""Are instants exact, zoned, and safe at the edges of the calendar?"""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import InvalidTimestamp
from schemas.times import EPOCH, Instant, as_utc, from_us, seconds_of, to_us

INSTANTS = st.datetimes(timezones=st.just(UTC))


@given(INSTANTS)
def test_microseconds_are_exact(instant):
    """No float in between: what goes in comes out."""
    assert instant == from_us(to_us(instant))


def test_the_epoch_is_nought():
    """Microseconds since 1970, before it negative."""
    assert 0 == to_us(EPOCH)
    assert -1 == to_us(EPOCH - timedelta(microseconds=1))


@given(INSTANTS, st.integers(min_value=-14 * 60, max_value=14 * 60))
def test_a_zone_does_not_change_the_moment(instant, minutes):
    """The same moment, said in UTC."""
    zone = timezone(timedelta(minutes=minutes))
    try:
        elsewhere = instant.astimezone(zone)
    except OverflowError:
        return
    found = as_utc(elsewhere, "at")

    assert instant == found
    assert UTC is found.tzinfo


@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-14))),
    ],
)
def test_a_moment_outside_the_calendar(instant):
    """InvalidTimestamp with the field, not an overflow."""
    with pytest.raises(InvalidTimestamp) as raised:
        as_utc(instant, "context.observed_at")

    assert "context.observed_at" == raised.value.details["field"]


@pytest.mark.parametrize("text", ["2026-05-13T15:42:00", "2026-05-13", "soon", "1747147320"])
def test_a_time_without_a_zone_is_refused(text):
    """Never guessed."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Instant)


def test_the_schema_says_date_time():
    """So that other readers check it, too."""
    assert {"type": "string", "format": "date-time"} == msgspec.json.schema(Instant)


@pytest.mark.parametrize(
    "duration, seconds",
    [
        ("PT0S", 0),
        ("PT1.5S", 1.5),
        ("PT2M", 120),
        ("PT3H", 10_800),
        ("P90D", 90 * 86_400),
        ("P2W", 14 * 86_400),
        ("P3M", 90 * 86_400),
        ("P1Y2DT3M", 367 * 86_400 + 180),
    ],
)
def test_a_duration_in_seconds(duration, seconds):
    """A month has 30 days and a year 365: a length, not a date."""
    assert seconds == seconds_of(duration)
