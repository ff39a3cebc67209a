"""When does a text say it was?  Words of time, resolved against the moment they were said.

Half-open intervals in UTC. A change dated with a period takes place at the period's start, so that
"left in May" and "joined in May" meet without overlap. Weeks begin on Monday.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from projectors.text.shapes import Interval, TimePhrase

Span = tuple[datetime, datetime]


def resolve(text: str, anchor: datetime, *, ahead: bool = False) -> Interval | None:
    """The first time a text names, or None. `ahead` reads "in May" and "on Monday" forwards."""
    found = find(text, anchor, ahead=ahead)
    return found[0].interval if found else None


def find(text: str, anchor: datetime, *, ahead: bool = False) -> list[TimePhrase]:
    """Every time a text names, in order."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length with their case
        lower = "".join(char.lower() if char.isascii() else char for char in text)
    anchor = anchor.astimezone(UTC)
    found: list[TimePhrase] = []
    opening: TimePhrase | None = None
    for match in _matches(lower):
        prefix = match["prefix"] or ""
        closes = prefix in _CLOSERS and opening is not None and opening.last == match.start() - 1
        phrase = _meaning(match, prefix, anchor, ahead=ahead, closes=closes)
        if phrase is None:
            continue
        if opening is not None and closes:
            found[-1] = _joined(opening, phrase)
            opening = None
            continue
        found.append(phrase)
        opening = phrase if prefix in {"from", "between"} else None
    return found


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Where the grammar of times applies. It is tried only around a word no time goes without."""
    at = 0
    for hint in _HINT.finditer(text):
        if hint.start() < at:
            continue
        match = _PHRASE.search(text, max(at, hint.start() - 32), hint.end() + 40)
        if match is not None:
            yield match
            at = match.end()


# ── the calendar ─────────────────────────────────────────────────────────────────────────────

_DAY: Final = timedelta(days=1)
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            *("january jan", "february feb", "march mar", "april apr", "may", "june jun"),
            *("july jul", "august aug", "september sept sep", "october oct", "november nov"),
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS: Final = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
_SEASONS: Final = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_NUMBERS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "couple": 2,
    "two": 2,
    "few": 3,
    "three": 3,
    "several": 4,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _month(year: int, month: int, count: int = 1) -> Span:
    """So many calendar months from this one; months may run over the year's edge."""
    return _first_of(year, month), _first_of(year, month + count)


def _first_of(year: int, month: int) -> datetime:
    years, months = divmod(month - 1, 12)
    return datetime(year + years, months + 1, 1, tzinfo=UTC)


def _unit(moment: datetime, unit: str, shift: int) -> Span:
    """The calendar unit `shift` away from the one this moment is in."""
    match unit:
        case "minute" | "hour":
            length = timedelta(minutes=1) if unit == "minute" else timedelta(hours=1)
            start = moment + shift * length
            return start, start + length
        case "day":
            start = _day(moment) + shift * _DAY
            return start, start + _DAY
        case "week":
            start = _day(moment) + (7 * shift - moment.weekday()) * _DAY
            return start, start + 7 * _DAY
        case "weekend":
            start = _day(moment) + (7 * shift + 5 - moment.weekday()) * _DAY
            return start, start + 2 * _DAY
        case "fortnight":
            return _unit(moment, "week", 2 * shift)
        case "month":
            return _month(moment.year, moment.month + shift)
        case "quarter":
            first = (moment.month - 1) // 3 * 3 + 1
            return _month(moment.year, first + 3 * shift, 3)
        case "decade":
            return _month(moment.year + 10 * shift, 1, 12)
    return _month(moment.year + shift, 1, 12)


def _back(moment: datetime, unit: str, count: int) -> datetime:
    """The moment so many units before: lengths, not calendar units."""
    match unit:
        case "minute":
            return moment - timedelta(minutes=count)
        case "hour":
            return moment - timedelta(hours=count)
        case "day":
            return _day(moment) - count * _DAY
        case "week":
            return _day(moment) - 7 * count * _DAY
        case "fortnight":
            return _day(moment) - 14 * count * _DAY
        case "month" | "quarter":
            months = count * (1 if unit == "month" else 3)
            first = _first_of(moment.year, moment.month - months)
        case _:
            years = count * (10 if unit == "decade" else 1)
            first = _first_of(moment.year - years, moment.month)
    last = _first_of(first.year, first.month + 1) - _DAY
    return first.replace(day=min(moment.day, last.day))


def _year_of_month(month: int, anchor: datetime, ahead: bool) -> int:
    """The year of a month named without one: the nearest on the side the speaker means."""
    if ahead:
        return anchor.year + (month < anchor.month)
    return anchor.year - (month > anchor.month)


# ── the phrases ──────────────────────────────────────────────────────────────────────────────

_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY: Final = "|".join(_WEEKDAYS)
_SHORT_DAY: Final = "mon|tues?|wed|thurs?|thu|fri|sat|sun"
_SEASON: Final = "|".join(_SEASONS)
_UNIT: Final = "minute|hour|day|weekend|week|fortnight|month|quarter|year|decade"
_UNIT_NAMES: Final = frozenset(_UNIT.split("|"))
_LENGTH: Final = "week|fortnight|month|quarter|year|decade"
"""What may be a length that ends now: the past month, the last month; last month is another."""
_COUNT: Final = (
    r"\d{1,4}|an?(?:\ couple(?:\ of)?|\ few)?|couple(?:\ of)?|few|several|one|two|three|four|five"
    r"|six|seven|eight|nine|ten|eleven|twelve"
)
_YEAR: Final = r"(?:19|20)\d\d"
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_ABOUT: Final = r"(?:(?:about|around|over|almost|nearly|exactly|just|at\ least|more\ than)\ )?"

_PHRASE: Final = re.compile(
    rf"""
    \b(?:(?P<prefix>as\ of|ever\ since|starting|beginning|up\ to|since|from|after|until|till|before
        |by|between|and|to|through|on|in|during|at|around|back\ in|of|over|for)\ )?
    (?:(?P<vague>early|late|mid|the\ end\ of|the\ start\ of|the\ beginning\ of)[ -])?
    (?:
      (?P<iso>\d{{4}}-\d\d-\d\d)
    | (?P<slash>\d{{1,2}}/\d{{1,2}}/(?:\d{{4}}|\d\d))
    | (?:the\ )?(?P<dmy>{_ORDINAL}\ (?:of\ )?(?:{_MONTH})\b\.?(?:,?\ {_YEAR})?)
    | (?P<mdy>(?:{_MONTH})\b\.?\ (?:the\ )?{_ORDINAL}(?![\d:])(?:,?\ {_YEAR})?)
    | (?P<my>(?:{_MONTH})\b\.?,?\ (?:of\ )?{_YEAR})
    | (?:the\ )?(?P<sy>(?:{_SEASON})\ (?:of\ )?{_YEAR})
    | (?P<quarter>q[1-4](?:\ (?:of\ )?{_YEAR})?)
    | (?P<word>the\ day\ before\ yesterday|the\ day\ after\ tomorrow|yesterday|tomorrow|today
        |tonight|last\ night|this\ (?:morning|afternoon|evening)|the\ other\ (?:day|week))
    | (?:the\ )?(?P<ago>{_ABOUT}(?:{_COUNT})\ (?:{_UNIT})s?\ (?:ago|back|earlier))
    | (?P<hence>(?:{_COUNT})\ (?:{_UNIT})s?(?:['’]s?\ time|\ from\ now))
    | (?:the\ )?(?P<past>(?:past|last)\ (?:{_COUNT})\ (?:{_UNIT})s
        |(?:past|(?<=the\ )last)\ (?:{_LENGTH})(?!\ of\b))
    | (?P<span>{_ABOUT}(?:{_COUNT})\ (?:{_UNIT})s?)(?:\ now)?
    | (?:the\ )?(?P<rel>(?:earlier\ |later\ )?
        (?:last|this|next|past|coming|upcoming|previous|following)
        \ (?:{_UNIT}|{_SEASON}|{_WEEKDAY}|{_MONTH}|{_SHORT_DAY}))
    | the\ (?P<decade>(?:(?:19|20)\d|\d)0['’]?s)
    | (?P<clock>\d{{1,2}}(?::\d\d)?\ ?[ap]\.?m|noon|midnight)
    | (?P<weekday>{_WEEKDAY})
    | the\ (?P<near>{_SEASON}|weekend)
    | (?P<year>{_YEAR})(?![%$€£]|[,.]\d)
    | (?P<month>{_MONTH})
    )\b(?:\ (?:morning|afternoon|evening|night))?
    """,
    re.VERBOSE,
)
_HINT: Final = re.compile(
    r"\b(?:\d|q[1-4]\b|today|tonight|yesterday|tomorrow|last night"
    r"|this (?:morning|afternoon|evening)|noon|midnight"
    rf"|(?:{_UNIT})s?\b|(?:{_SHORT_DAY})\b|(?:{_WEEKDAY})\b|(?:{_SEASON})\b|(?:{_MONTH})\b)"
)

_SINCE: Final = frozenset(
    {"since", "ever since", "from", "after", "as of", "starting", "beginning"}
)
_UNTIL: Final = frozenset({"until", "till", "before", "by", "up to"})
_CLOSERS: Final = frozenset({"to", "and", "until", "till", "through", "up to"})
_LOOSE: Final = frozenset({"to", "and", "for", "of", "at", "through"})
_BARE: Final = frozenset({"month", "year", "weekday", "near"})
_SHIFT: Final = {"last": -1, "past": -1, "previous": -1, "this": 0}
_WORDS: Final[dict[str, tuple[int, int]]] = {
    # Days from the anchor's: the first, and the one after the last.
    "the day before yesterday": (-2, -1),
    "the day after tomorrow": (2, 3),
    "yesterday": (-1, 0),
    "last night": (-1, 0),
    "tomorrow": (1, 2),
    "the other day": (-7, 0),
    "the other week": (-21, -7),
}


def _meaning(
    match: re.Match[str], prefix: str, anchor: datetime, *, ahead: bool, closes: bool
) -> TimePhrase | None:
    kind = match.lastgroup or ""
    words = match[kind]
    if kind in _BARE and not closes and not _is_time(match, kind, prefix):
        return None
    if kind == "span" and prefix not in {"for", "over", "in"}:
        return None
    try:
        span = _span(kind, words, prefix, anchor, ahead or prefix == "by")
    except (ValueError, OverflowError):  # no such day, or outside years 1 to 9999
        return None
    if span is None:
        return None
    start, end = span
    if kind in {"span", "past"} and prefix != "in":
        return TimePhrase(match.start(), match.end(), Interval(start, None), "for")
    if prefix in _SINCE:
        return TimePhrase(match.start(), match.end(), Interval(start, None), "since")
    if prefix in _UNTIL:
        return TimePhrase(match.start(), match.end(), Interval(None, start), "until")
    first = match.start() if prefix not in {"and", "to", "of"} else match.end("prefix") + 1
    return TimePhrase(first, match.end(), Interval(start, end), "at")


def _is_time(match: re.Match[str], kind: str, prefix: str) -> bool:
    """May, March and 2019 are times after a preposition, and where nothing else is said."""
    if prefix and prefix not in _LOOSE:
        return True
    rest = match.string[match.end() :].strip()
    return not rest.strip(".,;!?") if kind == "weekday" else not rest and not match.start()


def _joined(opening: TimePhrase, closing: TimePhrase) -> TimePhrase:
    """From X to Y: what is dated with Y ends where Y begins."""
    start, end = opening.interval.start, closing.interval.start or closing.interval.end
    if start is not None and end is not None and end <= start:
        end = closing.interval.end if closing.interval.end is not None else None
    return TimePhrase(opening.first, closing.last, Interval(start, end), "between")


def _span(kind: str, words: str, prefix: str, anchor: datetime, ahead: bool) -> Span | None:
    match kind:
        case "iso" | "slash":
            return _numeric(kind, words)
        case "dmy" | "mdy" | "my" | "month":
            return _dated(words, anchor, ahead)
        case "sy":
            season, year = words.split(maxsplit=1)[0], int(words[-4:])
            return _month(year, _SEASONS[season], 3)
        case "quarter":
            year = int(words[-4:]) if len(words) > 4 else anchor.year
            return _month(year, 3 * int(words[1]) - 2, 3)
        case "word":
            first, last = _WORDS.get(words, (0, 1))
            return _day(anchor) + first * _DAY, _day(anchor) + last * _DAY
        case "ago" | "hence" | "span" | "past":
            return _counted(kind, words, prefix, anchor)
        case "rel":
            return _relative(words.split()[-2:], anchor)
        case "clock":
            return _clock(words, anchor)
        case "near" if words == "weekend":
            return _unit(anchor, "weekend", 0 if ahead else -1)
        case "near":
            return _relative(["next" if ahead else "last", words], anchor)
        case "decade":
            return _decade(words, anchor)
        case "weekday":
            away = (_WEEKDAYS[words] - anchor.weekday()) % 7
            return _unit(anchor, "day", (away or 7) if ahead else (away or 7) - 7)
    return _month(int(words), 1, 12)


def _numeric(kind: str, words: str) -> Span:
    if kind == "iso":
        start = datetime.strptime(words, "%Y-%m-%d").replace(tzinfo=UTC)
        return start, start + _DAY
    one, two, year = (int(part) for part in words.split("/"))
    month, day = (two, one) if one > 12 else (one, two)
    start = datetime(year if year > 99 else 2000 + year, month, day, tzinfo=UTC)
    return start, start + _DAY


def _dated(words: str, anchor: datetime, ahead: bool) -> Span:
    """A month by name, with a day and a year or without."""
    day = year = None
    month = 1
    for part in re.findall(r"\d+|[a-z]{3,}", words):
        if part in _MONTHS:
            month = _MONTHS[part]
        elif part.isdigit():
            year, day = (int(part), day) if len(part) == 4 else (year, int(part))
    if year is None:
        year = _year_of_month(month, anchor, ahead)
    if day is None:
        return _month(year, month)
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + _DAY


def _counted(kind: str, words: str, prefix: str, anchor: datetime) -> Span | None:
    numbers = re.findall(r"\d+|[a-z]+", words)
    unit = next(u for u in (word.removesuffix("s") for word in numbers) if u in _UNIT_NAMES)
    known = (int(n) if n.isdigit() else _NUMBERS.get(n, 0) for n in numbers)
    count = max((n for n in known if n), default=1)
    if kind == "ago":
        if unit in {"minute", "hour"}:
            return _back(anchor, unit, count), _back(anchor, unit, count - 1)
        return _unit(anchor, unit, -count)
    if kind == "hence" or (kind == "span" and prefix == "in"):
        return _unit(anchor, unit, count)
    return _back(anchor, unit, count), anchor


def _relative(pair: list[str], anchor: datetime) -> Span:
    which, unit = pair
    if len(unit) < 6:  # `Fri` is Friday, while no short month begins as a day does
        unit = next((day for day in _WEEKDAYS if day.startswith(unit)), unit)
    shift = _SHIFT.get(which, 1)
    if unit in _WEEKDAYS:
        away = (_WEEKDAYS[unit] - anchor.weekday()) % 7
        days = {-1: away - 7, 0: _WEEKDAYS[unit] - anchor.weekday(), 1: away or 7}[shift]
        return _unit(anchor, "day", days)
    if unit not in _SEASONS and unit not in _MONTHS:
        return _unit(anchor, unit, shift)
    month, count = (_SEASONS[unit], 3) if unit in _SEASONS else (_MONTHS[unit], 1)
    year = anchor.year
    if shift < 0 and (month + count - 1) >= anchor.month:
        year -= 1
    elif shift > 0 and month <= anchor.month:
        year += 1
    return _month(year, month, count)


def _clock(words: str, anchor: datetime) -> Span:
    """A time of the anchor's day, to the minute."""
    if not words[0].isdigit():
        hour, minute = (12 if words == "noon" else 0), 0
    else:
        digits = re.findall(r"\d+", words)
        hour = int(digits[0]) % 12 + (12 if "p" in words else 0)
        minute = int(digits[1]) if len(digits) > 1 else 0
    start = anchor.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return start, start + timedelta(minutes=1)


def _decade(words: str, anchor: datetime) -> Span:
    """The 90s are the last such decade that has begun."""
    number = int(re.sub(r"\D", "", words))
    year = number if number > 99 else anchor.year // 100 * 100 + number
    if year > anchor.year:
        year -= 100
    return _month(year, 1, 120)
