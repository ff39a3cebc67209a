"""What does the engine keep beside the log, and hand from one part of it to another?"""

from typing import Any

import msgspec

from engine.state.embeddings import Kept as Vector
from engine.state.index import Document, Layer
from engine.state.rows import Packed
from schemas import limits
from schemas.entry import Entry
from schemas.envelope import BulkRequest, Envelope


class AuditNote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row as it is kept: its time is in its id, hashes and ids are bytes."""

    actor: str
    tenant: str
    scope: str | None
    method: str
    path: str
    capability: str
    allowed: bool
    tier: str
    body_hash: bytes
    headers_hash: bytes
    body_bytes: int | None
    status: int
    event: bytes | None
    client_ip: str | None
    user_agent: str | None
    request_id: str
    elapsed_us: int
    token_id: str | None
    note: str | None
    pepper_version: int
    gdpr: bool


class About(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call was about, and how it is answered."""

    status: int
    scope: str | None = None
    event: bytes | None = None
    note: str | None = None
    gdpr: bool = False


class Kept(msgspec.Struct, frozen=True, gc=False):
    """A row as it was read: `note` is None when its content was pruned, or cannot be read."""

    sequence: int
    leaf: bytes
    raw: bytes
    note: AuditNote | None
    is_intact: bool
    is_pruned: bool


class Mark(msgspec.Struct, frozen=True):
    """Rows before this one were looked at for pruning, and so many of them were pruned."""

    before: int = 0
    pruned: int = 0


class Note(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An announcement as it is kept: id and time are in its key, ids are sixteen bytes."""

    name: str
    scope: str | None
    event: bytes | None
    sequence: int | None
    batch_id: str | None
    payload: dict[str, Any]


class CaptureRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One experience, and how far to wait for it."""

    envelope: Envelope
    wait: str | None = None
    wait_ms: int = limits.WAIT_MS_DEFAULT


class BulkCaptureRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Many experiences, and how far to wait for them."""

    bulk: BulkRequest
    wait: str | None = None
    wait_ms: int = limits.WAIT_MS_DEFAULT


class Bulk(msgspec.Struct, frozen=True, gc=False):
    """A bulk call: its id, and where in the request each envelope stood before it was ordered."""

    id: str
    places: list[int]


class Replay(msgspec.Struct, frozen=True, gc=False):
    """An idempotency key was used before: where, and with which body."""

    offset: int
    body_mac: bytes


class Allowance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one call, and what is left."""

    limit: int
    remaining: int
    reset_s: int
    retry_after_s: int = 0

    @property
    def granted(self) -> bool:
        """Whether there was a token for the call."""
        return self.retry_after_s == 0


class Due(msgspec.Struct, frozen=True, array_like=True):
    """The stages of one entry that wait for the indexes."""

    tenant_no: int
    offset: int
    scope: str
    event: bytes | None
    batch_id: str | None
    extracted: bytes | None
    notes: list[tuple[str, dict[str, Any]]]


class Step(msgspec.Struct, frozen=True, array_like=True):
    """What one entry left: the stages that ran, its row of the change feed, what to announce."""

    offset: int
    stages: list[str]
    feed: bytes | None
    due: Due | None


class Folded(msgspec.Struct, frozen=True, array_like=True):
    """What a run of entries left. One that is not whole ends before an entry that failed."""

    rows: list[Packed]
    steps: list[Step]
    is_whole: bool = True
    described: bytes | None = None
    """What they mean for the indexes (`Described`), where somebody has said it already."""


class Described(msgspec.Struct, frozen=True, array_like=True):
    """What entries that were folded together mean for the indexes; each with where from."""

    told: list[tuple[int, Layer, bytes, int, list[Document]]]
    gone: list[tuple[int, Layer, bytes, int]]
    left: list[tuple[int, Layer, bytes]]
    """Records that are to be looked up."""
    unreadable: int = 0
    model: str = ""
    vectors: list[Vector] = []
    """Of each document, in their order, by this model; none where there is no model."""


class Waiting(msgspec.Struct, frozen=True, array_like=True):
    """What one batch of the projection left to be said; `first` is where the batch began."""

    first: int
    due: list[Due]


class Feed(msgspec.Struct, frozen=True, array_like=True):
    """The rows that one entry changed: (table, key, operation)."""

    tenant_no: int
    rows: list[tuple[str, bytes, str]]


class Hurry(msgspec.Struct, frozen=True, array_like=True):
    """How an ask begins: whether others post meanwhile, who come first."""

    is_beside: bool


class Ask(Hurry, frozen=True, array_like=True):
    """Entries to fold, after all that was asked before; or afresh, from what is written."""

    entries: list[Entry]
    skips: list[tuple[str, int]]
    is_indexed: bool
    is_afresh: bool
    is_again: bool
