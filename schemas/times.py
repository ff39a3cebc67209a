"""When?  Instants with a zone, kept to the microsecond, and lengths of time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta

from schemas.errors import InvalidTimestamp

Instant = Annotated[datetime, Meta(tz=True)]
"""A moment in time; a time without a zone is refused, never guessed."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_us(instant: datetime) -> int:
    """Microseconds since 1970."""
    return (instant - EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The UTC instant of a microsecond since 1970."""
    return EPOCH + timedelta(0, 0, microseconds)


def as_utc(instant: datetime, field: str) -> datetime:
    """The same moment in UTC; at the edges of the calendar the conversion itself can fail."""
    if instant.tzinfo is UTC:
        return instant
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise InvalidTimestamp(field=field, reason="outside years 1 to 9999 in UTC") from error


_DURATION: Final = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
_PART_S: Final = (365 * 86400, 30 * 86400, 7 * 86400, 86400, 3600, 60, 1)


def seconds_of(duration: str) -> float:
    """The length of an ISO 8601 duration; a year is 365 days here, and a month 30."""
    found = _DURATION.fullmatch(duration)
    assert found is not None, f"{duration!r} was not checked before"
    parts = zip(found.groups(), _PART_S, strict=True)
    # A list: mypyc would add up a generator by itself, and another way than Python 3.12 does.
    return sum([float(part) * length for part, length in parts if part is not None])
