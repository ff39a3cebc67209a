"""What does a client post?  The experience envelope (001 §3.5), closed where the seed closes it.

These are made by the dozen for every experience and hold JSON, which has no cycles: the collector
need not look at them (`gc=False`).
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas import limits
from schemas.scope import ActorId, ScopePath
from schemas.times import Instant

Name = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
Label = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
Modality = Annotated[str, Meta(min_length=1, max_length=limits.MODALITY_CHARS_MAX)]
IdempotencyKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.IDEMPOTENCY_KEY_CHARS_MAX,
        pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)",
        description="Client-made; the same key with the same body replays the first answer.",
    ),
]
EventRef = Annotated[str, Meta(pattern=r"^evt_[A-Za-z0-9_-]{1,64}$(?!\n)")]
BlobRef = Annotated[str, Meta(pattern=r"^blob_[A-Za-z0-9_-]{1,64}$(?!\n)")]
Text = Annotated[str, Meta(min_length=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Duration = Annotated[
    str,
    Meta(
        pattern=(
            r"^P(?=.)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?"
            r"(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$(?!\n)"
        ),
        max_length=64,
        description="ISO 8601 duration.",
    ),
]

MODALITIES = ("conversation", "document", "tool_result", "observation", "feedback", "imported")
"""Those that trigger structured extraction; others are stored verbatim (001 §3.5.3)."""


class Actor(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Who did it, or who it is about."""

    id: ActorId
    type: Name | None = None
    session: Name | None = None


class Media(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """A blob uploaded before, referred to by id; hints are kept for later indexes (001 §3.5.4)."""

    blob_id: BlobRef
    content_type: Name | None = None
    caption: str | None = None
    hints: dict[str, Any] | None = None


MediaList = Annotated[list[Media], Meta(max_length=limits.MEDIA_MAX)]


class Message(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag="message",
):
    """A turn of a conversation."""

    role: Literal["user", "assistant", "tool", "system"]
    text: Text
    media: MediaList | UnsetType = UNSET


class PlainText(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag="text",
):
    """Prose without a speaker."""

    text: Text
    media: MediaList | UnsetType = UNSET


class JsonContent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag="json",
):
    """Structured content; flat objects become exact facts."""

    data: Any
    text: str | UnsetType = UNSET
    media: MediaList | UnsetType = UNSET


class BlobContent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag="blob_ref",
):
    """A blob as the experience itself, with its words when there are any."""

    blob_id: BlobRef
    text: str | UnsetType = UNSET
    transcript: str | UnsetType = UNSET
    media: MediaList | UnsetType = UNSET


class Term(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """One end of a triple: an entity or concept by id or name, or a literal (001 §7.3)."""

    type: Literal["entity", "concept", "literal"] | UnsetType = UNSET
    id: Name | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    datatype: Name | UnsetType = UNSET
    value: Any = UNSET


class Triple(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """An exact assertion."""

    subject: Term | Name
    predicate: Name
    object: Term | str | int | float | bool


class TripleContent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag="triple",
):
    """An exact assertion as the experience."""

    triple: Triple
    text: str | UnsetType = UNSET
    media: MediaList | UnsetType = UNSET


Content = Message | PlainText | JsonContent | BlobContent | TripleContent


class Context(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """When and where it happened. `recorded_at` is the server's and is not accepted here."""

    observed_at: Instant
    source_recorded_at: Instant | None = None
    location: str | dict[str, Any] | None = None
    preceded_by: Annotated[list[EventRef], Meta(max_length=limits.PRECEDED_BY_MAX)] = []
    intent: Name | None = None
    labels: Annotated[list[Label], Meta(max_length=limits.LABELS_MAX)] = []
    timezone: Name | None = None
    refers_to: Annotated[list[dict[str, Any]], Meta(max_length=limits.REFERS_TO_MAX)] = []


class Directives(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """What the client asks of the derivation."""

    extract: (
        list[Literal["facts", "entities", "beliefs", "episodes", "understanding"]] | UnsetType
    ) = UNSET
    consolidate_into: ScopePath | None = None
    confidence_floor: Fraction | None = None
    ttl_for_belief_layer: Duration | None = None
    ttl_for_event_layer: Duration | None = None
    no_supersede: bool = False
    embed: Literal["lazy", "eager", "none"] | None = None


class Envelope(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """One experience as posted (001 §3.5.3). The server adds id, caller, recorded_at, offset."""

    scope: ScopePath
    observed_actor: Actor | None = None
    subject: Actor | None = None
    modality: Modality
    content: Content
    context: Context
    directives: Directives | None = None
    idempotency_key: IdempotencyKey
    # Sent by the published CortexDB client beside the seed's fields; kept as they came.
    language: Name | None = None
    scripts: Annotated[list[Name], Meta(max_length=limits.SCRIPTS_MAX)] = []
    source: dict[str, Any] | None = None


class NoteContext(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """The context of a note: everything but when it was observed."""

    source_recorded_at: Instant | None = None
    location: str | dict[str, Any] | None = None
    preceded_by: Annotated[list[EventRef], Meta(max_length=limits.PRECEDED_BY_MAX)] = []
    intent: Name | None = None
    labels: Annotated[list[Label], Meta(max_length=limits.LABELS_MAX)] = []
    timezone: Name | None = None
    refers_to: Annotated[list[dict[str, Any]], Meta(max_length=limits.REFERS_TO_MAX)] = []


class Note(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """An experience with neither a time nor a key of its own: the server gives it both.

    The published command line sends these. Whoever states one of the two must state the other.
    """

    scope: ScopePath
    observed_actor: Actor | None = None
    subject: Actor | None = None
    modality: Modality
    content: Content
    context: NoteContext = NoteContext()
    directives: Directives | None = None
    language: Name | None = None
    scripts: Annotated[list[Name], Meta(max_length=limits.SCRIPTS_MAX)] = []
    source: dict[str, Any] | None = None

    def stated(self, observed_at: Instant, idempotency_key: str) -> Envelope:
        """The envelope it would have been."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        known = {name: getattr(self.context, name) for name in self.context.__struct_fields__}
        context = Context(observed_at=observed_at, **known)
        return Envelope(**fields | {"context": context, "idempotency_key": idempotency_key})


class BulkItem(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """One experience of a bulk call; what it leaves out comes from the shared header."""

    scope: ScopePath | None = None
    observed_actor: Actor | None = None
    actor: Actor | None = None
    subject: Actor | None = None
    modality: Modality
    content: Content
    context: Context
    directives: Directives | None = None
    idempotency_key: IdempotencyKey
    language: Name | None = None
    scripts: Annotated[list[Name], Meta(max_length=limits.SCRIPTS_MAX)] = []
    source: dict[str, Any] | None = None


class BulkRequest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Many experiences, all stored or none (001 §8.2). `actor` is read as `observed_actor`."""

    items: Annotated[list[BulkItem], Meta(min_length=1, max_length=limits.BULK_ITEMS_MAX)]
    scope: ScopePath | None = None
    observed_actor: Actor | None = None
    actor: Actor | None = None
    subject: Actor | None = None
    directives: Directives | None = None
    ordering: Literal["strict_temporal", "batch_throughput"] = "batch_throughput"
