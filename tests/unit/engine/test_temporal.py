"""Which versions does a reader see?  Both axes, half-open."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.temporal import (
    NATURAL_IGNORED,
    interval,
    is_known,
    is_valid,
    is_visible,
    moment,
    resolve,
    window_text,
)
from schemas.errors import InvalidParameter, InvalidTimestamp, UnparseableTemporal
from schemas.intervals import Interval
from schemas.layers import EntityRef, Fact, LiteralValue
from schemas.temporal import Between, Phrase, Resolution, TemporalBlock

NOW = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
LAUNCH = Phrase(name="launch", resolves_to=Resolution(valid_during=["2026-02-10", "2026-02-11"]))


def on(month, day):
    return datetime(2026, month, day, tzinfo=UTC)


def fact(valid_from, valid_to, recorded_from, recorded_to):
    """A fact with these times; nothing else about it matters here."""
    return Fact(
        id="fact_x",
        scope="org:acme",
        subject=EntityRef(id="ent_acme"),
        predicate="deal_stage",
        object=LiteralValue(datatype="string", value="poc"),
        supports=[],
        valid_from=valid_from,
        valid_to=valid_to,
        recorded_from=recorded_from,
        recorded_to=recorded_to,
        confidence=1.0,
        extractor="rules",
    )


# What a block means


def test_nothing_said_is_now_on_both_axes():
    """001 §12.3: the defaults."""
    window = resolve(None, NOW)

    assert (NOW, NOW) == (window.known_at, window.valid_at)
    assert window == resolve(TemporalBlock(), NOW)


def test_as_of_pins_both_axes():
    """001 §18.2.1."""
    window = resolve(TemporalBlock(as_of="2026-04-15T00:00:00Z"), NOW)

    assert (on(4, 15), on(4, 15)) == (window.known_at, window.valid_at)


def test_a_window_takes_the_place_of_the_second_pin():
    """Known on May 1 about April 15."""
    block = TemporalBlock(as_of="2026-05-01", valid_during=["2026-04-15", "2026-04-16"])
    window = resolve(block, NOW)

    assert (on(5, 1), None) == (window.known_at, window.valid_at)
    assert (Interval(on(4, 15), on(4, 16)),) == window.valid_during


def test_the_block_of_the_seed():
    """001 §12.2, as it stands there: all that is said must hold."""
    raw = b"""{"as_of": "2026-04-15T00:00:00Z", "valid_during": ["2026-03-01", "2026-04-01"],
               "recorded_during": null, "natural": "last 30 days"}"""
    window = resolve(msgspec.json.decode(raw, type=TemporalBlock), NOW)

    assert (
        Interval(on(3, 1), on(4, 1)),
        Interval(NOW - timedelta(days=30), NOW),
    ) == window.valid_during


@pytest.mark.parametrize(
    "given",
    [
        ["2026-04-01", "2026-05-01"],
        Between(start="2026-04-01", end="2026-05-01"),
        ["2026-04-01T00:00:00Z", "2026-05-01T02:00:00+02:00"],
    ],
)
def test_windows_are_arrays_or_objects_of_dates_or_times(given):
    """All three mean April."""
    assert Interval(on(4, 1), on(5, 1)) == interval(given, "valid_during")


def test_an_end_may_be_open():
    """Nothing, or null."""
    assert Interval(None, on(5, 1)) == interval([None, "2026-05-01"], "valid_during")
    assert Interval(on(4, 1), None) == interval(Between(start="2026-04-01"), "valid_during")


def test_a_date_begins_in_the_reader_s_zone():
    """Midnight in New York, when that is the zone."""
    window = resolve(TemporalBlock(as_of="2026-05-01", timezone="America/New_York"), NOW)

    assert datetime(2026, 5, 1, 4, tzinfo=UTC) == window.known_at


@pytest.mark.parametrize(
    "block, field, error",
    [
        (TemporalBlock(as_of="May"), "temporal.as_of", InvalidTimestamp),
        (TemporalBlock(as_of="2026-05-01T00:00:00"), "temporal.as_of", InvalidTimestamp),
        (TemporalBlock(as_of="0001-01-01T00:00:00+10:00"), "temporal.as_of", InvalidTimestamp),
        (
            TemporalBlock(valid_during=["2026-02-30", None]),
            "temporal.valid_during.from",
            InvalidTimestamp,
        ),
        (
            TemporalBlock(recorded_during=["2026-05-01", "2026-04-01"]),
            "temporal.recorded_during",
            InvalidParameter,
        ),
        (TemporalBlock(timezone="Mars/Olympus"), "temporal.timezone", InvalidParameter),
        (TemporalBlock(reference_date="now"), "temporal.reference_date", InvalidTimestamp),
        (TemporalBlock(natural="when pigs fly"), "temporal.natural", UnparseableTemporal),
    ],
)
def test_what_cannot_be_read_is_named(block, field, error):
    """The field, and in what is wrong with it."""
    with pytest.raises(error) as caught:
        resolve(block, NOW)

    assert field == caught.value.details["field"]


def test_a_lenient_reader_is_warned_instead():
    """As if the words had not been there."""
    block = TemporalBlock(natural="when pigs fly", natural_mode="lenient")
    window = resolve(block, NOW)

    assert (NATURAL_IGNORED,) == window.warnings
    assert NOW == window.valid_at


def test_words_are_read_against_the_reference_date():
    """Not against now."""
    block = TemporalBlock(natural="yesterday", reference_date="2026-02-02T09:00:00Z")

    assert (Interval(on(2, 1), on(2, 2)),) == resolve(block, NOW).valid_during


# Registered phrases


def test_a_phrase_stands_for_its_window():
    """Exactly, or after "since"."""
    exact = resolve(TemporalBlock(natural="Launch"), NOW, [LAUNCH])
    since = resolve(TemporalBlock(natural="since the launch"), NOW, [LAUNCH])

    assert (Interval(on(2, 10), on(2, 11)),) == exact.valid_during
    assert (Interval(on(2, 10), NOW),) == since.valid_during


def test_a_phrase_may_be_counted_from_an_anchor():
    """The running system's own shape, months by the calendar."""
    phrase = Phrase(name="fiscal Q3", anchor="2026-01-31T00:00:00Z", expression="+P6M..+P9M")

    assert (Interval(on(7, 31), on(10, 31)),) == resolve(
        TemporalBlock(natural="fiscal q3"), NOW, [phrase]
    ).valid_during


def test_a_phrase_without_an_anchor_is_counted_from_the_reader():
    """Backwards too."""
    phrase = Phrase(name="sprint", expression="-P2W..P0D")

    assert (Interval(NOW - timedelta(days=14), NOW),) == resolve(
        TemporalBlock(natural="sprint"), NOW, [phrase]
    ).valid_during


def test_a_phrase_may_be_about_what_was_known():
    """Its axis is the one it was registered for."""
    learnt = Phrase(name="audit", resolves_to=Resolution(recorded_during=["2026-03-01", None]))
    pinned = Phrase(name="board meeting", resolves_to=Resolution(as_of="2026-04-01"))

    window = resolve(TemporalBlock(natural="audit"), NOW, [learnt])
    assert ((Interval(on(3, 1), None),), NOW) == (window.recorded_during, window.valid_at)
    window = resolve(TemporalBlock(natural="board meeting"), NOW, [pinned])
    assert (on(4, 1), on(4, 1)) == (window.known_at, window.valid_at)


def test_parameters_write_windows_with_dots():
    """Open where nothing stands; something must."""
    assert ["2026-04-01", "2026-05-01"] == window_text("2026-04-01..2026-05-01", "overlapping")
    assert ["2026-04-01", None] == window_text("2026-04-01..", "overlapping")
    assert [None, "2026-05-01"] == window_text(",2026-05-01", "overlapping")
    for text in ("2026-04-01", "..", ""):
        with pytest.raises(InvalidParameter):
            window_text(text, "overlapping")


def test_a_plus_that_became_a_space_is_a_plus():
    """`as_of=…+02:00` in a query, not percent-encoded."""
    assert on(5, 1) == moment("2026-05-01T02:00:00 02:00", "as_of")


# What is visible

moments = st.integers(0, 40).map(lambda day: on(1, 1) + timedelta(days=day))
maybe = st.none() | moments


@st.composite
def facts(draw):
    """Any times whose ends are not before their beginnings."""
    valid_from, recorded_from = draw(moments), draw(moments)
    ends = [draw(maybe), draw(maybe)]
    valid_to = max(ends[0], valid_from) if ends[0] else None
    recorded_to = max(ends[1], recorded_from) if ends[1] else None
    return fact(valid_from, valid_to, recorded_from, recorded_to)


spans = st.tuples(moments, st.integers(1, 20)).map(lambda at: (at[0], at[0] + at[1] * DAY))
DAY = timedelta(days=1)


@given(record=facts(), at=moments)
def test_nothing_is_visible_outside_its_two_intervals(record, at):
    """As of a moment: both intervals hold it, and that is all there is to it."""
    known = record.recorded_from <= at and (record.recorded_to is None or at < record.recorded_to)
    valid = record.valid_from <= at and (record.valid_to is None or at < record.valid_to)

    assert (known and valid) == is_visible(record, resolve(None, at))


@given(record=facts(), at=moments, span=spans)
def test_a_window_shows_what_is_valid_at_some_moment_of_it(record, at, span):
    """Overlap is the same as: valid on a day of the window."""
    start, end = span
    block = TemporalBlock(as_of=at.isoformat(), valid_during=[start.isoformat(), end.isoformat()])
    days = [start + n * DAY for n in range((end - start).days)]
    valid = any(
        record.valid_from <= day and (record.valid_to is None or day < record.valid_to)
        for day in days
    )

    assert valid == is_valid(record, resolve(block, NOW))


@given(record=facts(), at=moments)
def test_superseded_versions_are_added_and_nothing_is_lost(record, at):
    """001 §18.2.1: what is shown without is shown with, and the valid filter still holds."""
    block = TemporalBlock(as_of=at.isoformat())
    plain = resolve(block, NOW)
    wide = resolve(msgspec.structs.replace(block, include_superseded=True), NOW)

    assert is_known(record, wide) or not is_known(record, plain)
    assert is_valid(record, wide) == is_valid(record, plain)
    assert not is_known(record, wide) or record.recorded_from <= at


@given(record=facts(), span=spans)
def test_recorded_during_is_about_when_it_was_learnt(record, span):
    """The beginning of its being known lies in the window."""
    start, end = span
    block = TemporalBlock(
        recorded_during=[start.isoformat(), end.isoformat()], include_superseded=True
    )

    assert (start <= record.recorded_from < end) == is_known(record, resolve(block, NOW))
