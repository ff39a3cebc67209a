"""Written by scripts/client: models of envelope."""

from typing import Any, ClassVar

from msgspec import Struct


class Media(Struct, frozen=True, kw_only=True):
    """A blob uploaded before, referred to by id; hints are kept for later indexes."""

    blob_id: str
    content_type: str | None = None
    caption: str | None = None
    hints: dict[str, Any] | None = None


class Message(Struct, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    """A turn of a conversation."""

    kind: ClassVar[str] = "message"
    role: str
    text: str
    media: list[Media] = []


class PlainText(Struct, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """Prose without a speaker."""

    kind: ClassVar[str] = "text"
    text: str
    media: list[Media] = []


class JsonContent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="json"):
    """Structured content; flat objects become exact facts."""

    kind: ClassVar[str] = "json"
    data: Any
    text: str | None = None
    media: list[Media] = []


class BlobContent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="blob_ref"):
    """A blob as the experience itself, with its words when there are any."""

    kind: ClassVar[str] = "blob_ref"
    blob_id: str
    text: str | None = None
    transcript: str | None = None
    media: list[Media] = []


class Term(Struct, frozen=True, kw_only=True):
    """One end of a triple: an entity or concept by id or name, or a literal."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    datatype: str | None = None
    value: Any = None


class Triple(Struct, frozen=True, kw_only=True):
    """An exact assertion."""

    subject: Term | str
    predicate: str
    object: Term | str | int | float | bool


class TripleContent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="triple"):
    """An exact assertion as the experience."""

    kind: ClassVar[str] = "triple"
    triple: Triple
    text: str | None = None
    media: list[Media] = []


class Actor(Struct, frozen=True, kw_only=True):
    """Who did it, or who it is about."""

    id: str
    type: str | None = None
    session: str | None = None


class Directives(Struct, frozen=True, kw_only=True):
    """What the client asks of the derivation."""

    extract: list[str] = []
    consolidate_into: str | None = None
    confidence_floor: float | None = None
    ttl_for_belief_layer: str | None = None
    ttl_for_event_layer: str | None = None
    no_supersede: bool = False
    embed: str | None = None
