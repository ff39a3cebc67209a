"""Which partition of memory is meant?  Scope paths and actor names (001 §3.4)."""

import re
from typing import Annotated, Final

from msgspec import Meta

from schemas import limits
from schemas.errors import InvalidScope

# `$` also matches before a trailing newline in Python's dialect, and `\Z` is unknown to JSON
# Schema's: `$(?!\n)` means the same end in both.
_END: Final = r"$(?!\n)"
_SEGMENT: Final = r"[a-z][a-z0-9_]{0,31}:[A-Za-z0-9_-]{1,128}"
SCOPE_PATTERN: Final = rf"^{_SEGMENT}(/{_SEGMENT}){{0,31}}{_END}"
ACTOR_PATTERN: Final = rf"^[a-z][a-z0-9_]{{0,31}}:[A-Za-z0-9_.@+=~-]{{1,128}}{_END}"

ScopePath = Annotated[str, Meta(pattern=SCOPE_PATTERN, max_length=limits.SCOPE_CHARS_MAX)]
ActorId = Annotated[str, Meta(pattern=ACTOR_PATTERN, max_length=limits.ACTOR_ID_CHARS_MAX)]

CALLER_TYPES: Final = frozenset({"user", "agent", "service", "system"})
"""What may call (001 §0); an observed actor or a subject may be of any type."""

_scope: Final = re.compile(SCOPE_PATTERN)
_actor: Final = re.compile(ACTOR_PATTERN)


def parse_scope(text: str) -> str:
    """The path itself when it follows the grammar; InvalidScope otherwise."""
    if len(text) > limits.SCOPE_CHARS_MAX or _scope.match(text) is None:
        raise InvalidScope(field="scope", reason="not a path of type:id segments", value=text[:200])
    return text


def is_actor(text: str) -> bool:
    """Whether the text is an actor in type:id form."""
    return len(text) <= limits.ACTOR_ID_CHARS_MAX and _actor.match(text) is not None


def ancestors(scope: str) -> list[str]:
    """The scope itself, then its parents, nearest first: what a holistic read walks."""
    parts = scope.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
