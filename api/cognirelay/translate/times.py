"""Which moment does a client of CogniRelay mean?  Pure."""

from datetime import UTC, datetime

from api.cognirelay.errors import refuse

UNKNOWN_AGE_S = 2**31 - 1
"""The age of what has no readable time: older than anything."""


def parsed(text: object) -> datetime | None:
    """A moment, taken for UTC when it names no zone; None when it is none."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def utc(text: str, field: str) -> datetime:
    """A moment that says of itself that it is UTC, or a refusal that names the field."""
    moment = parsed(text) if text else None
    if moment is None:
        raise refuse(400, f"Invalid UTC timestamp for {field}")
    if not text.endswith(("Z", "+00:00")):
        raise refuse(400, f"Timestamp must be UTC for {field}")
    return moment


def said(moment: datetime) -> str:
    """A moment as it is written in answers."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def second(moment: datetime) -> str:
    """A moment of the server's, to the second."""
    return said(moment.replace(microsecond=0))


def compact(moment: datetime) -> str:
    """A moment in a name."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def age_s(text: object, now: datetime) -> int | None:
    """Whole seconds since a moment, never less than none; None when it cannot be read."""
    moment = parsed(text) if text else None
    return None if moment is None else max(0, int((now - moment).total_seconds()))
