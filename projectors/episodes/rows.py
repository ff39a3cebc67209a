"""What does the grouping of events remember between two of them?

An episode's record is written when it opens and when it is sealed, never in between: while it is
open, every event adds one small row of its own (`episode_events`), and one state row moves.
Sessions and words stand in values only: keys hold numbers (ARCHITECTURE.md, "On disk").
"""

from datetime import datetime

import msgspec

from projectors.base import View
from projectors.records import Mark, Moved, tables_of
from schemas import limits
from schemas.times import to_us

_S = 1_000_000


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


def member_key(episode: bytes, ordinal: int) -> bytes:
    """An episode's events, in the order they came."""
    return episode + ordinal.to_bytes(2, "big")


def scope_key(scope_no: int) -> bytes:
    """Scopes are kept by number."""
    return scope_no.to_bytes(4, "big")


def spans_key(scope_no: int, day: int) -> bytes:
    """A scope's sealed past, by days since the year 1."""
    return scope_no.to_bytes(4, "big") + day.to_bytes(4, "big")


def due_key(due: int, episode: bytes) -> bytes:
    """Open episodes by when they are due, so that whoever looks finds the first ones first."""
    return due.to_bytes(8, "big") + episode


def due_before(now_us: int) -> bytes:
    """The end of the rows of `episode_due` whose time has come."""
    return (now_us // (limits.EPISODE_DUE_S * _S) + 1).to_bytes(8, "big")


def due_episode(key: bytes) -> bytes:
    """Whose row of `episode_due` this is."""
    return key[8:]


def gap_us(session: str | None) -> int:
    """The pause that ends an episode: longer when a session holds it together."""
    gap_s = limits.EPISODE_GAP_S if session is None else limits.EPISODE_SESSION_GAP_S
    return gap_s * _S


def due_after(recorded_us: int, session: str | None) -> int:
    """When an episode last heard of is due, rounded up so that the row seldom moves."""
    return -(-(recorded_us + gap_us(session)) // (limits.EPISODE_DUE_S * _S))


def is_idle(state: Open, at_us: int) -> bool:
    """Whether nothing was heard of an episode for its gap, by the log's own time."""
    return at_us - state.recorded_us >= gap_us(state.session)


def known(members: list[Member], at: datetime) -> list[Member]:
    """The members of an episode as they were known at a moment."""
    at_us = to_us(at)
    return [
        member
        for member in members
        if member.recorded_us <= at_us and (member.removed_us is None or at_us < member.removed_us)
    ]


def members_of(view: View, episode: bytes, count: int) -> list[Member]:
    """Every member an episode ever had, in the order they came."""
    # One `get` each: that is cheaper than a scan until an episode has very many.
    return [
        row
        for ordinal in range(count)
        if (row := view.get("episode_events", member_key(episode, ordinal))) is not None
    ]
