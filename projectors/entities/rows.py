"""What is remembered of those who are spoken of, and of what they are called?"""

import msgspec

from schemas.times import Instant


class EntityRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entity (`entities`, by the hash of its id). Facts of one root are facts of one thing."""

    id: str
    root: str
    name: str
    kind: str
    aliases: list[str]
    first_seen_at: Instant
    first_event: str
    actor: str | None = None
    is_given: bool = False


class Meaning(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a name means (`entity_names`); an empty id means that it names nothing."""

    id: str
    root: str
    name: str


class Named(msgspec.Struct, frozen=True, array_like=True):
    """What the last entry of a tenant speaks of: each candidate's two ends, and all of them once.

    An object that is a literal means nothing here: None.
    """

    offset: int
    subjects: list[Meaning]
    objects: list[Meaning | None]
    all: list[Meaning]
