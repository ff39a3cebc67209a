"""Written by scripts/client: asks of envelope."""

from datetime import datetime
from typing import Any, Literal, Required, TypedDict


class Actor(TypedDict, total=False):
    """Who did it, or who it is about."""

    id: Required[str]
    type: str | None
    session: str | None


class Media(TypedDict, total=False):
    """A blob uploaded before, referred to by id; hints are kept for later indexes."""

    blob_id: Required[str]
    content_type: str | None
    caption: str | None
    hints: dict[str, Any] | None


class Message(TypedDict, total=False):
    """A turn of a conversation."""

    kind: Required[Literal["message"]]
    role: Required[Literal["user", "assistant", "tool", "system"]]
    text: Required[str]
    media: list[Media] | None


class PlainText(TypedDict, total=False):
    """Prose without a speaker."""

    kind: Required[Literal["text"]]
    text: Required[str]
    media: list[Media] | None


class JsonContent(TypedDict, total=False):
    """Structured content; flat objects become exact facts."""

    kind: Required[Literal["json"]]
    data: Required[Any]
    text: str | None
    media: list[Media] | None


class BlobContent(TypedDict, total=False):
    """A blob as the experience itself, with its words when there are any."""

    kind: Required[Literal["blob_ref"]]
    blob_id: Required[str]
    text: str | None
    transcript: str | None
    media: list[Media] | None


class Term(TypedDict, total=False):
    """One end of a triple: an entity or concept by id or name, or a literal."""

    type: Literal["entity", "concept", "literal"] | None
    id: str | None
    name: str | None
    datatype: str | None
    value: Any


class Triple(TypedDict, total=False):
    """An exact assertion."""

    subject: Required[Term | str]
    predicate: Required[str]
    object: Required[Term | str | int | float | bool]


class TripleContent(TypedDict, total=False):
    """An exact assertion as the experience."""

    kind: Required[Literal["triple"]]
    triple: Required[Triple]
    text: str | None
    media: list[Media] | None


class Context(TypedDict, total=False):
    """When and where it happened. `recorded_at` is the server's and is not accepted here."""

    observed_at: str | datetime
    source_recorded_at: str | datetime | None
    location: str | dict[str, Any] | None
    preceded_by: list[str]
    intent: str | None
    labels: list[str]
    timezone: str | None
    refers_to: list[dict[str, Any]]


class Directives(TypedDict, total=False):
    """What the client asks of the derivation."""

    extract: list[Literal["facts", "entities", "beliefs", "episodes", "understanding"]] | None
    consolidate_into: str | None
    confidence_floor: float | None
    ttl_for_belief_layer: str | None
    ttl_for_event_layer: str | None
    no_supersede: bool
    embed: Literal["lazy", "eager", "none"] | None


class Envelope(TypedDict, total=False):
    """One experience as posted. The server adds id, caller, recorded_at, offset."""

    scope: str
    observed_actor: Actor | None
    subject: Actor | None
    modality: str
    context: Context
    directives: Directives | None
    idempotency_key: str
    language: str | None
    scripts: list[str]
    source: dict[str, Any] | None


class BulkItem(TypedDict, total=False):
    """One experience of a bulk call; what it leaves out comes from the shared header."""

    scope: str | None
    observed_actor: Actor | None
    actor: Actor | None
    subject: Actor | None
    modality: str
    content: Required[Message | PlainText | JsonContent | BlobContent | TripleContent]
    context: Context
    directives: Directives | None
    idempotency_key: str
    language: str | None
    scripts: list[str]
    source: dict[str, Any] | None


class BulkRequest(TypedDict, total=False):
    """Many experiences, all stored or none. `actor` is read as `observed_actor`."""

    scope: str | None
    observed_actor: Actor | None
    actor: Actor | None
    subject: Actor | None
    directives: Directives | None
    ordering: Literal["strict_temporal", "batch_throughput"]
