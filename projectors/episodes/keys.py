"""Where do episodes and their members lie, and when is one over?"""

from datetime import datetime
from typing import Final

from projectors.base import View
from projectors.episodes.rows import Member, Open
from schemas import limits
from schemas.times import to_us

_S: Final = 1_000_000


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
