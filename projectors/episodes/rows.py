"""What does the grouping of events remember between two of them?

An episode's record is written when it opens and when it is sealed, never in between: while it is
open, every event adds one small row of its own (`episode_events`), and one state row moves.
Sessions and words stand in values only: keys hold numbers (ARCHITECTURE.md, "On disk").
"""

import msgspec

from projectors.records import tables_of
from projectors.rows import Mark, Moved


class Member(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event of an episode, with what a summary needs of it. Times are microseconds."""

    event: bytes
    observed_us: int
    recorded_us: int
    actors: tuple[str, ...]
    gist: str
    topics: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    cues: int = 0
    intent: str | None = None
    removed_us: int | None = None


class Open(msgspec.Struct, frozen=True, array_like=True):
    """The state of an open episode: its place, its two times, and what it has been about."""

    scope_no: int
    slot: str
    session: str | None
    count: int
    live: int
    started_us: int
    ended_us: int
    recorded_us: int
    due: int
    topics: dict[str, int]
    drift: dict[str, int] = {}
    drifting: int = 0


class OpenIn(msgspec.Struct, frozen=True, array_like=True):
    """The open episodes of a scope by slot, oldest first, and how far its sealed past reaches."""

    slots: dict[str, bytes] = {}
    sealed_until_us: int | None = None


class Sessions(msgspec.Struct, frozen=True, array_like=True):
    """The last sealed episode of each of a scope's recent sessions."""

    last: dict[str, bytes] = {}


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When a sealed episode without a session took place."""

    started_us: int
    ended_us: int
    episode: bytes


class Spans(msgspec.Struct, frozen=True, array_like=True):
    """The sealed episodes of one scope and day."""

    spans: list[Span] = []


class End(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An episode that is over, or has got a successor, or both."""

    episode: bytes
    successor: bytes | None = None


class Ending(msgspec.Struct, frozen=True, array_like=True):
    """What the entry at this offset ended: told by the one stage, sealed by the other."""

    offset: int
    ends: list[End]


TABLES: dict[str, type[msgspec.Struct]] = {
    **tables_of("episodes"),
    "episodes_moved": Moved,
    "episode_events": Member,
    "episode_open": Open,
    "episode_due": Mark,
    "episode_scopes": OpenIn,
    "episode_sessions": Sessions,
    "episode_spans": Spans,
    "episodes_ending": Ending,
}
