"""When?  Instants with a zone, kept to the microsecond, and half-open intervals."""

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
    return EPOCH + timedelta(microseconds=microseconds)


def as_utc(instant: datetime, field: str) -> datetime:
    """The same moment in UTC; at the edges of the calendar the conversion itself can fail."""
    if instant.tzinfo is UTC:
        return instant
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise InvalidTimestamp(field=field, reason="outside years 1 to 9999 in UTC") from error
