"""Who calls, in CogniRelay's words: which peer, with which of its scopes, for which of ours?

A subject's scope follows from its kind and its slug, within the caller's tenant:

| subject | scope |
|---|---|
| `user` alice | `user:alice` |
| `peer` bob | `agent:bob` |
| `thread` wal-engine | `ws:thread-wal-engine` |
| `task` t-1 | `ws:task-t-1` |

So what an agent experiences at `user:alice` through `/v1` and the capsule of user alice are in one
place. A slug that a segment of a path cannot hold is cut, with a hash of the whole.
"""

import re
from hashlib import sha256
from typing import Final

from api.cognirelay.errors import refuse
from api.endpoint import Call
from schemas.caller import Caller

SURFACE: Final = "cognirelay"
ADMIN: Final = "admin:peers"
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+")
_SEGMENT_CHARS: Final = 128
_PREFIX: Final = {"user": "user:", "peer": "agent:", "thread": "ws:thread-", "task": "ws:task-"}
_SLUG_CHARS: Final = 120
_IMPLIED: Final = {
    "read": ("scope.read.local",),
    "search": ("scope.read.local",),
    "write": ("scope.write",),
    "admin": ("policy.administer.actor",),
}
"""What policy must grant for a scope of CogniRelay's, where the caller has a token of ours."""


def peer_of(caller: Caller) -> str:
    """The id by which other peers know the caller: an agent's own, anybody else's with its type.

    So a user of the same id cannot take what was handed to an agent.
    """
    kind, _, name = caller.actor.partition(":")
    return name if kind == "agent" else caller.actor


def has(call: Call, wanted: str) -> bool:
    """Whether the caller has one of CogniRelay's scopes."""
    caller = call.caller
    if caller.surface_scopes is not None:
        return wanted in caller.surface_scopes or ADMIN in caller.surface_scopes
    policies = call.engine.policies
    needed = _IMPLIED[wanted.partition(":")[0]]
    return all(policies.decide(caller, capability, None).allowed for capability in needed)


def is_admin(call: Call) -> bool:
    """Whether the caller sees what is others'."""
    return has(call, ADMIN)


def need(call: Call, *scopes: str) -> None:
    """Go on only with these scopes."""
    for wanted in scopes:
        if not has(call, wanted):
            raise refuse(403, f"Missing scope: {wanted}")


def slug(subject_id: str) -> str:
    """The name under which a subject is kept: two spellings of one slug are one subject."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", subject_id.strip().lower()).strip("-")
    cut = plain[:_SLUG_CHARS].strip("-")
    if not cut:
        raise refuse(400, "Normalized subject_id is empty")
    return cut


def scope_of(subject_kind: str, subject_slug: str) -> str:
    """The scope of a subject, by its slug."""
    return _segment(_PREFIX[subject_kind], subject_slug)


def own_scope(caller: Caller) -> str:
    """The scope of what belongs to the caller and to no subject."""
    kind, _, name = caller.actor.partition(":")
    return _segment("user:" if kind == "user" else "agent:", name.lower())


def _segment(prefix: str, name: str) -> str:
    kind, _, start = prefix.partition(":")
    whole = start + name
    if not _SEGMENT.fullmatch(whole) or len(whole) > _SEGMENT_CHARS:
        mark = sha256(whole.encode()).hexdigest()[:12]
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", whole)
        whole = f"{plain[: _SEGMENT_CHARS - 13]}-{mark}"
    return f"{kind}:{whole}"
