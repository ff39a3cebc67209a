"""From when to when?  Half-open intervals."""

from datetime import datetime

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """From `start` on, before `end`; None is open on that side."""

    start: datetime | None
    end: datetime | None

    def contains(self, moment: datetime) -> bool:
        """Whether a moment lies in it."""
        return (self.start is None or self.start <= moment) and (
            self.end is None or moment < self.end
        )

    def overlaps(self, start: datetime, end: datetime | None) -> bool:
        """Whether another half-open interval shares a moment with it; an empty one shares none."""
        return (
            (end is None or start < end)
            and (self.end is None or start < self.end)
            and (self.start is None or end is None or self.start < end)
        )
