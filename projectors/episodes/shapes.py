"""What is an event to the episodes, and where does it go?  Handed on, and never kept."""

from typing import Final

import msgspec

from projectors.episodes.rows import Member, Open

MAIN: Final = "="
ASIDE: Final = "<"
"""The slots of a session: one for what goes on, one for what is told late."""


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """One event as the grouping sees it."""

    member: Member
    scope_no: int
    session: str | None
    preceded_by: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """What the event is about."""
        return self.member.topics


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event goes: into an open episode, or into a new one in a slot."""

    episode: bytes | None = None
    state: Open | None = None
    slot: str = MAIN
    ends: tuple[bytes, ...] = ()
    predecessor: bytes | None = None
