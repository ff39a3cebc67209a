"""Which versions of which records does a reader see?  Both times, half-open (001 §12, §18.2.1).

Pure: a `temporal` block, the present moment and the tenant's phrases go in, a window comes out; a
record is in the window or it is not. What is known and what is valid are asked separately:
`as_of` pins both, and a window of validity takes the place of the second pin.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from engine.natural import add_months, normal, parse
from schemas.errors import InvalidParameter, InvalidTimestamp, UnparseableTemporal
from schemas.intervals import Interval
from schemas.layers import Record
from schemas.temporal import During, Phrase, TemporalBlock
from schemas.times import Instant, as_utc, seconds_of

NATURAL_IGNORED: Final = "natural_not_understood"
"""What a lenient reader is warned of, instead of a 422."""

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS: Final = re.compile(r"(?P<sign>[+-]?)P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?P<rest>.*)")


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a reader asks about. Every window of a list must be met."""

    known_at: datetime
    valid_at: datetime | None
    valid_during: tuple[Interval, ...] = ()
    recorded_during: tuple[Interval, ...] = ()
    include_superseded: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a read answers, and what its reader is warned of."""

    value: Any
    warnings: tuple[str, ...] = ()


# ── deciding ─────────────────────────────────────────────────────────────────────────────────


def is_known(record: Record, window: Window) -> bool:
    """Whether it was known at the window's moment, or before when superseded ones are wanted."""
    return (
        record.recorded_from <= window.known_at
        and (
            window.include_superseded
            or record.recorded_to is None
            or window.known_at < record.recorded_to
        )
        and (
            not window.recorded_during
            or all(span.contains(record.recorded_from) for span in window.recorded_during)
        )
    )


def is_valid(record: Record, window: Window) -> bool:
    """Whether it is about the window's moment, or shares one with each of its windows."""
    at = window.valid_at
    if at is not None:
        return record.valid_from <= at and (record.valid_to is None or at < record.valid_to)
    return all(span.overlaps(record.valid_from, record.valid_to) for span in window.valid_during)


def is_visible(record: Record, window: Window) -> bool:
    """Both axes, each by itself (001 §18.2.1)."""
    return is_known(record, window) and is_valid(record, window)


# ── resolving ────────────────────────────────────────────────────────────────────────────────


def resolve(
    block: TemporalBlock | None, now: datetime, phrases: Iterable[Phrase] = (), at: str = "temporal"
) -> Window:
    """The window a block means; `at` names the block in errors, and is empty for parameters."""
    if block is None:
        return Window(known_at=now, valid_at=now)
    where = f"{at}." if at else ""
    zone = zone_of(block.timezone, f"{where}timezone")
    known_at = now
    if block.as_of is not None:
        known_at = moment(block.as_of, f"{where}as_of", zone)
    valid = _spans(block.valid_during, f"{where}valid_during", zone)
    recorded = _spans(block.recorded_during, f"{where}recorded_during", zone)
    reference = now.astimezone(zone)
    if block.reference_date is not None:
        reference = moment(block.reference_date, f"{where}reference_date", zone).astimezone(zone)
    warnings: tuple[str, ...] = ()
    if block.natural is not None:
        found = read_natural(block.natural, reference, phrases)
        if found is None and block.natural_mode == "strict":
            raise UnparseableTemporal(
                field=f"{where}natural",
                reason=f"{block.natural[:80]!r} is no phrase of time",
                remediation="register it at POST /v1/temporal/phrases, or give valid_during",
            )
        valid += () if found is None else found.valid_during
        recorded += () if found is None else found.recorded_during
        if found is not None and found.as_of is not None:
            known_at = min(known_at, found.as_of)
        warnings = () if found is not None else (NATURAL_IGNORED,)
    return Window(
        known_at=known_at,
        valid_at=None if valid else known_at,
        valid_during=valid,
        recorded_during=recorded,
        include_superseded=block.include_superseded,
        warnings=warnings,
    )


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a phrase of time says, and about which axis."""

    valid_during: tuple[Interval, ...] = ()
    recorded_during: tuple[Interval, ...] = ()
    as_of: datetime | None = None


def read_natural(text: str, reference: datetime, phrases: Iterable[Phrase]) -> Meaning | None:
    """What the words mean; None when they are not understood.

    A registered phrase is about the axis it was registered for; all else is about validity.
    """
    meanings = {normal(phrase.pattern or phrase.name): phrase for phrase in phrases}
    exact = meanings.get(normal(text))
    if exact is not None:
        return meaning(exact, reference)
    named = {
        words: found
        for words, phrase in meanings.items()
        if (found := _interval(meaning(phrase, reference))) is not None
    }
    found = parse(text, reference, named)
    return None if found is None else Meaning(valid_during=(found,))


def _interval(found: Meaning) -> Interval | None:
    """The stretch of time that "since …" and "before …" may be said of."""
    return next(iter((*found.valid_during, *found.recorded_during)), None)


def meaning(phrase: Phrase, reference: datetime, at: str = "") -> Meaning:
    """What a registered phrase stands for, counted from the reference when it has no anchor."""
    zone = reference.tzinfo or UTC
    if phrase.expression is not None:
        anchor = reference
        if phrase.anchor is not None:
            anchor = moment(phrase.anchor, f"{at}anchor", zone)
        first, _, last = phrase.expression.partition("..")
        start, end = _later(anchor, first), _later(anchor, last)
        _check_order(start, end, f"{at}expression")
        return Meaning(valid_during=(Interval(start, end),))
    stands_for = phrase.resolves_to
    assert stands_for is not None, "checked when it was registered"
    where = f"{at}resolves_to."
    as_of = stands_for.as_of
    return Meaning(
        valid_during=_spans(stands_for.valid_during, f"{where}valid_during", zone),
        recorded_during=_spans(stands_for.recorded_during, f"{where}recorded_during", zone),
        as_of=None if as_of is None else moment(as_of, f"{where}as_of", zone),
    )


def _later(anchor: datetime, length: str) -> datetime:
    """A moment so far from another: months by the calendar, the rest by its length."""
    found = _PARTS.fullmatch(length)
    assert found is not None, f"{length!r} was not checked before"
    sign = -1 if found["sign"] == "-" else 1
    months = 12 * int(found["years"] or 0) + int(found["months"] or 0)
    try:
        moved = add_months(anchor, sign * months) if months else anchor.astimezone(UTC)
        rest = seconds_of(f"P{found['rest']}")
        return datetime.fromtimestamp(moved.timestamp() + sign * rest, UTC)
    except (OverflowError, ValueError) as error:
        reason = "outside years 1 to 9999"
        raise InvalidTimestamp(field="expression", reason=reason) from error


# ── moments ──────────────────────────────────────────────────────────────────────────────────


def zone_of(name: str | None, field: str = "timezone") -> tzinfo:
    """The zone in which days begin; UTC when none is named."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidParameter(field=field, reason=f"no zone {name[:64]!r} is known") from error


def moment(text: str, field: str, zone: tzinfo = UTC) -> datetime:
    """An instant in UTC: RFC 3339 with a zone, or a date, which is its start in the zone."""
    try:
        if _DATE.fullmatch(text):
            return as_utc(datetime.fromisoformat(text).replace(tzinfo=zone), field)
        # A `+` in a query means a space; in a time with an offset it was meant as a plus.
        return as_utc(msgspec.convert(text.replace(" ", "+"), Instant), field)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        reason = "neither RFC 3339 with a zone nor a date"
        raise InvalidTimestamp(field=field, reason=reason) from error


def interval(given: During, field: str, zone: tzinfo = UTC) -> Interval:
    """A half-open window; either end may be open, and it must not be empty."""
    start, end = given if isinstance(given, list) else (given.start, given.end)
    found = Interval(
        None if start is None else moment(start, f"{field}.from", zone),
        None if end is None else moment(end, f"{field}.to", zone),
    )
    _check_order(found.start, found.end, field)
    return found


def window_text(text: str, field: str) -> During:
    """A window as a parameter writes it: `2026-04-01..2026-05-01`, open where nothing stands."""
    start, separator, end = text.partition(".." if ".." in text else ",")
    if not separator or not (start.strip() or end.strip()):
        raise InvalidParameter(field=field, reason="write it as from..to")
    return [start.strip() or None, end.strip() or None]


def _spans(given: During | None, field: str, zone: tzinfo) -> tuple[Interval, ...]:
    return () if given is None else (interval(given, field, zone),)


def _check_order(start: datetime | None, end: datetime | None, field: str) -> None:
    if start is not None and end is not None and start >= end:
        raise InvalidParameter(field=field, reason="it must end after it begins")
