"""What stretch of time do these words mean?  (001 §12.4)

Small, deterministic and pure: words, a reference moment in its zone, and a tenant's own phrases go
in; a half-open interval comes out, or nothing. Weeks are ISO weeks. "Last week" is the calendar
week before this one, "the past week" and "last 7 days" are lengths that end now. A month, a day or
a weekday without a year is the most recent one, for memory looks back.
"""

import re
from calendar import isleap
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from schemas import limits
from schemas.intervals import Interval

Days = tuple[date, date]
"""From a day on, before another."""

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tues tue",
            "wednesday wed",
            "thursday thurs thur thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
_WORDS: Final = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS: Final = {
    **{word: number for number, word in enumerate(_WORDS.split(), start=1)},
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "couple": 2,
    "a few": 3,
    "few": 3,
}
_NAMED_DAYS: Final = {
    "day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_COUNT: Final = r"(?P<count>\d{1,6}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT: Final = r"(?P<unit>minute|hour|day|week|fortnight|month|quarter|year)s?"
_MONTH: Final = r"(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_WEEKDAY: Final = r"(?P<weekday>" + "|".join(sorted(_WEEKDAYS, key=len, reverse=True)) + ")s?"
_YEAR: Final = r"(?P<year>[12]\d{3})"
_WHICH: Final = r"(?P<which>last|previous|this|current|next|coming|following)"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"

_RANGE: Final = (
    re.compile(r"between (?P<first>.+?) and (?P<last>.+)"),
    re.compile(r"from (?P<first>.+?) (?:to|until|till|through) (?P<last>.+)"),
    re.compile(r"(?P<first>.+?)(?: to | until | till | through | ?\.\. ?)(?P<last>.+)"),
)
_BOUND: Final = re.compile(r"(?P<how>ever since|since|after|before|until|till|through|up to) (.+)")
_FILLER: Final = re.compile(r"(?:in|on|during|within|over|for|at|the|throughout) (.+)")


def parse(text: str, reference: datetime, named: Mapping[str, Interval]) -> Interval | None:
    """The interval a phrase means, in UTC; None when it is not understood.

    `reference` has the zone in which days begin; `named` are the tenant's phrases by `normal` form.
    """
    try:
        return _whole(normal(text), reference, named)
    except (OverflowError, ValueError):
        return None  # a 31 April, or a year that no calendar has


def normal(text: str) -> str:
    """Lower case, single spaces, no commas and no closing full stop: how phrases are compared."""
    return " ".join(text.casefold().replace(",", " ").replace("_", " ").split()).rstrip(" .?!")


def _whole(text: str, reference: datetime, named: Mapping[str, Interval]) -> Interval | None:
    operand = _operand(text, reference, named)
    if operand is not None:
        return operand
    bound = _BOUND.fullmatch(text)
    if bound is not None:
        found = _operand(bound[2], reference, named)
        return None if found is None else _bounded(bound["how"], found, reference)
    for pattern in _RANGE:
        found_range = pattern.fullmatch(text)
        if found_range is not None:
            first = _operand(found_range["first"], reference, named)
            last = _operand(found_range["last"], reference, named)
            if first is not None and last is not None:
                return _closed(first.start, last.end)
    return None


def _bounded(how: str, found: Interval, reference: datetime) -> Interval | None:
    """Up to a stretch of time, or from it on: `since` runs until now, or to the stretch's end."""
    match how:
        case "after":
            return None if found.end is None else Interval(found.end, None)
        case "before" | "until" | "till":
            return None if found.start is None else Interval(None, found.start)
        case "through" | "up to":
            return None if found.end is None else Interval(None, found.end)
    now = reference.astimezone(UTC)
    return _closed(found.start, None if found.end is None else max(found.end, now))


def _closed(start: datetime | None, end: datetime | None) -> Interval | None:
    is_backwards = start is not None and end is not None and start >= end
    return None if is_backwards else Interval(start, end)


def _operand(text: str, reference: datetime, named: Mapping[str, Interval]) -> Interval | None:
    """A phrase of the tenant, or a piece of the calendar, with or without "in", "on", "the"."""
    rest: str | None = text
    while rest is not None:
        if rest in named:
            return named[rest]
        for pattern, read in _READERS:
            found = pattern.fullmatch(rest)
            if found is not None:
                return read(found, reference)
        filler = _FILLER.fullmatch(rest)
        rest = None if filler is None else filler[1]
    return None


# ── the calendar ─────────────────────────────────────────────────────────────────────────────


def _days(reference: datetime, days: Days) -> Interval:
    """Whole days in the reference's zone, as instants."""
    start, end = (datetime.combine(day, time.min, reference.tzinfo).astimezone(UTC) for day in days)
    return Interval(start, end)


def _first_of(year: int, month: int) -> date:
    """The first day of a month; months may run over the year's edge."""
    years, months = divmod(month - 1, 12)
    return date(year + years, months + 1, 1)


def _months(year: int, month: int, count: int) -> Days:
    return _first_of(year, month), _first_of(year, month + count)


def _unit_at(today: date, unit: str, shift: int) -> Days:
    """The calendar unit so many away from the one that holds a day."""
    match unit:
        case "day":
            start = today + timedelta(days=shift)
            return start, start + timedelta(days=1)
        case "week" | "fortnight":
            count = 2 if unit == "fortnight" else 1
            start = today + timedelta(days=7 * shift * count - today.weekday())
            return start, start + timedelta(days=7)
        case "weekend":
            start = today + timedelta(days=7 * shift + 5 - today.weekday())
            return start, start + timedelta(days=2)
        case "month":
            return _months(today.year, today.month + shift, 1)
        case "quarter":
            return _months(today.year, (today.month - 1) // 3 * 3 + 1 + 3 * shift, 3)
    return _months(today.year + shift, 1, 12)


def _moved(reference: datetime, unit: str, count: int) -> datetime:
    """A moment so many units away, the same time of day for whole days; the month's last at most.

    Hours and minutes are lengths, and days are days of the zone, whatever its clocks do between.
    """
    if unit in ("minute", "hour"):
        return reference.astimezone(UTC) + timedelta(**{f"{unit}s": count})
    days = {"day": 1, "week": 7, "fortnight": 14}.get(unit)
    if days is not None:
        return (reference + timedelta(days=days * count)).astimezone(UTC)
    return add_months(reference, {"month": 1, "quarter": 3, "year": 12}[unit] * count)


def add_months(moment: datetime, count: int) -> datetime:
    """The same day so many months away, or the last of that month when it has no such day."""
    first = _first_of(moment.year, moment.month + count)
    last = _first_of(first.year, first.month + 1) - timedelta(days=1)
    day = min(moment.day, last.day)
    return moment.replace(year=first.year, month=first.month, day=day).astimezone(UTC)


def _count(found: re.Match[str]) -> int:
    word = found["count"]
    count = int(word) if word.isdigit() else _NUMBERS[word]
    if not 0 < count <= limits.NATURAL_COUNT_MAX:
        raise ValueError(count)
    return count


def _shift(which: str | None) -> int:
    return {"last": -1, "previous": -1, "next": 1, "coming": 1, "following": 1}.get(which or "", 0)


# ── readers: one a form ──────────────────────────────────────────────────────────────────────


def _named_day(found: re.Match[str], reference: datetime) -> Interval:
    return _days(reference, _unit_at(reference.date(), "day", _NAMED_DAYS[found[0]]))


def _relative_unit(found: re.Match[str], reference: datetime) -> Interval:
    return _days(
        reference, _unit_at(reference.date(), found["unit"].rstrip("s"), _shift(found["which"]))
    )


def _length_back(found: re.Match[str], reference: datetime) -> Interval:
    count = _count(found) if found.groupdict().get("count") else 1
    return Interval(_moved(reference, found["unit"], -count), reference.astimezone(UTC))


def _length_ahead(found: re.Match[str], reference: datetime) -> Interval:
    return Interval(reference.astimezone(UTC), _moved(reference, found["unit"], _count(found)))


def _away(sign: int) -> Callable[[re.Match[str], datetime], Interval]:
    """The calendar unit that lies so many of its kind before or after."""

    def read(found: re.Match[str], reference: datetime) -> Interval:
        unit, count = found["unit"], sign * _count(found)
        if unit in ("minute", "hour"):
            at = _moved(reference, unit, count)
            start = at.replace(second=0, microsecond=0)
            start = start.replace(minute=0) if unit == "hour" else start
            return Interval(start, start + timedelta(**{f"{unit}s": 1}))
        return _days(reference, _unit_at(reference.date(), unit, count))

    return read


def _weekday(found: re.Match[str], reference: datetime) -> Interval:
    """The last one before today, this week's, the next after today; bare: the most recent one."""
    today, wanted = reference.date(), _WEEKDAYS[found["weekday"]]
    back = (today.weekday() - wanted) % 7
    shift = _shift(found["which"])
    if found["which"] in ("this", "current"):
        offset = wanted - today.weekday()
    elif shift == 0:
        offset = -back
    else:
        offset = -(back or 7) if shift < 0 else 7 - back
    return _days(reference, _unit_at(today, "day", offset))


def _month(found: re.Match[str], reference: datetime) -> Interval:
    month, today = _MONTHS[found["month"]], reference.date()
    if found["year"]:
        return _days(reference, _months(int(found["year"]), month, 1))
    which = found["which"]
    year = today.year
    if which not in ("this", "current"):
        year -= 1 if month > today.month else 0
        if _shift(which) < 0 and month == today.month:
            year -= 1
        year += 1 if _shift(which) > 0 else 0
    return _days(reference, _months(year, month, 1))


def _date(found: re.Match[str], reference: datetime) -> Interval:
    """A day of a month; without a year the most recent one."""
    month, day, today = _MONTHS[found["month"]], int(found["day"]), reference.date()
    if found["year"]:
        return _days(reference, _unit_at(date(int(found["year"]), month, day), "day", 0))
    year = today.year - ((month, day) > (today.month, today.day))
    if (month, day) == (2, 29):
        year = next(leap for leap in range(year, year - 9, -1) if isleap(leap))
    return _days(reference, _unit_at(date(year, month, day), "day", 0))


def _quarter(found: re.Match[str], reference: datetime) -> Interval:
    part = found["quarter"]
    number = _ORDINALS.get(part) or int(part)
    today = reference.date()
    year = int(found["year"]) if found["year"] else today.year
    first = 3 * number - 2
    if not found["year"] and first > today.month:
        year -= 1
    return _days(reference, _months(year, first, 3))


def _half(found: re.Match[str], reference: datetime) -> Interval:
    part = found["half"]
    first = 6 * (_ORDINALS.get(part) or int(part)) - 5
    return _days(reference, _months(int(found["year"]), first, 6))


def _year(found: re.Match[str], reference: datetime) -> Interval:
    return _days(reference, _months(int(found["year"]), 1, 12))


def _iso_month(found: re.Match[str], reference: datetime) -> Interval:
    return _days(reference, _months(int(found["year"]), int(found["number"]), 1))


def _iso_week(found: re.Match[str], reference: datetime) -> Interval:
    monday = date.fromisocalendar(int(found["year"]), int(found["number"]), 1)
    return _days(reference, (monday, monday + timedelta(days=7)))


def _iso_day(found: re.Match[str], reference: datetime) -> Interval:
    return _days(reference, _unit_at(date.fromisoformat(found[0]), "day", 0))


Reader = Callable[[re.Match[str], datetime], Interval]


def _compiled(*forms: tuple[str, Reader]) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    return tuple((re.compile(form), read) for form, read in forms)


_READERS: Final = _compiled(
    ("|".join(_NAMED_DAYS), _named_day),
    (rf"{_WHICH} (?P<unit>days?|weeks?|weekends?|months?|quarters?|years?)", _relative_unit),
    (rf"(?:last|past|previous) {_COUNT} {_UNIT}", _length_back),
    (rf"past {_UNIT}", _length_back),
    (rf"(?:next|coming|following) {_COUNT} {_UNIT}", _length_ahead),
    (rf"{_COUNT} {_UNIT} (?:ago|back|before now)", _away(-1)),
    (rf"in {_COUNT} {_UNIT}", _away(1)),
    (rf"{_COUNT} {_UNIT} from now", _away(1)),
    (rf"(?:{_WHICH} )?{_WEEKDAY}", _weekday),
    (rf"(?:{_WHICH} )?{_MONTH}(?: (?:of )?{_YEAR})?", _month),
    (rf"{_MONTH} {_DAY}(?: (?:of )?{_YEAR})?", _date),
    (rf"{_DAY} (?:of )?{_MONTH}(?: (?:of )?{_YEAR})?", _date),
    (rf"q(?P<quarter>[1-4])(?: (?:of )?{_YEAR})?", _quarter),
    (rf"(?P<quarter>first|second|third|fourth) quarter(?: (?:of )?{_YEAR})?", _quarter),
    (rf"{_YEAR}[ -]?q(?P<quarter>[1-4])", _quarter),
    (rf"h(?P<half>[12]) (?:of )?{_YEAR}", _half),
    (rf"(?P<half>first|second) half (?:of )?{_YEAR}", _half),
    (_YEAR, _year),
    (rf"{_YEAR}-(?P<number>0[1-9]|1[0-2])", _iso_month),
    (rf"{_YEAR}-?w(?P<number>\d\d?)", _iso_week),
    (r"\d{4}-\d\d-\d\d", _iso_day),
)
