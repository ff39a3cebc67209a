"""What does a surface keep under a key?  A versioned value (DESIGN §1, ADR 0029)."""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec

from schemas.times import Instant

CURRENT: Final = "current"
"""The state of a document that is simply there; a surface names further states itself."""

_KIND_BYTES: Final = 4
_KEY_BYTES: Final = 16
_LABEL_BYTES: Final = 8


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a keyed value: what the experience at `offset` made of it.

    What a surface deletes or archives stays, in another `state`; the version before says what it
    was. `scope` is where its words are found and whose policy guards it; `labels` are names under
    which it is found together with others of its kind.
    """

    surface: str
    kind: str
    key: str
    version: int
    state: str
    value: Any
    scope: str
    by: str
    at: Instant
    offset: int
    event_id: str
    labels: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def kind_place(surface: str, kind: str) -> bytes:
    """Where all documents of a kind lie together."""
    return sha256(f"{surface}/{kind}".encode()).digest()[:_KIND_BYTES]


def place(surface: str, kind: str, key: str) -> bytes:
    """Where a document lies: names are a tenant's own and stay out of keys."""
    return kind_place(surface, kind) + sha256(key.encode()).digest()[:_KEY_BYTES]


def label_place(surface: str, kind: str, label: str) -> bytes:
    """Where the documents of a kind with one label are named."""
    return kind_place(surface, kind) + sha256(label.encode()).digest()[:_LABEL_BYTES]


def version_place(at: bytes, version: int) -> bytes:
    """Where one version of it lies, in the order of versions."""
    return at + version.to_bytes(4, "big")
