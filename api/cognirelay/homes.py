"""Where does something lie that is about a subject, a thread or a task, or about none?

In the scope of what it is about (`access.py`): its subject, else its thread, else its task, else
the peer who made it. So policy guards a reminder as it guards the capsule beside it.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from api.cognirelay.access import scope_of, slug
from api.errors import Refusal
from engine.surface import Changed
from schemas.surfaces.document import Document

FOLDER: Final = "memory/continuity"


def path_of(kind: str, subject_slug: str) -> str:
    """The file of a subject's active capsule, where the original would keep it."""
    return f"{FOLDER}/{kind}-{subject_slug}.json"


def home_of(links: Mapping[str, Any], maker: str) -> str:
    """The scope of something with these links, made by this peer."""
    if links.get("subject_kind") and links.get("subject_id"):
        return _scope(links["subject_kind"], links["subject_id"])
    for kind in ("thread", "task"):
        if links.get(f"{kind}_id"):
            return _scope(kind, links[f"{kind}_id"])
    return _scope("peer", maker)


def _scope(kind: str, name: str) -> str:
    try:
        return scope_of(kind, slug(name))
    except Refusal:
        # Ids of tasks and threads may have no letter that a slug keeps.
        return scope_of(kind, sha256(name.encode()).hexdigest()[:16])


def commit_of(changed: Changed, seen: Document | None = None) -> dict[str, Any]:
    """Which entry of the log made it so, in the place where the original names a commit."""
    last = changed.documents[-1] if changed.documents else seen
    return {"latest_commit": None if last is None else last.event_id}
