"""What does a read of a layer answer?  Pages, timelines, reasons, coverage (001 §8.7)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas import limits
from schemas.envelope import IdempotencyKey
from schemas.layers import Belief, Concept, Conflict, Episode, Event, Fact, Polarity
from schemas.pack import Traversed
from schemas.scope import ScopePath
from schemas.times import Instant


class _Page(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every page has; `scopes_traversed` when the view walks (001 §18.2.4)."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] | UnsetType = UNSET


class EventPage(_Page, frozen=True, kw_only=True):
    """A page of events."""

    items: list[Event]


class EpisodePage(_Page, frozen=True, kw_only=True):
    """A page of episodes."""

    items: list[Episode]


class FactPage(_Page, frozen=True, kw_only=True):
    """A page of facts; with superseded ones, a fact may be there in several versions."""

    items: list[Fact]


class BeliefPage(_Page, frozen=True, kw_only=True):
    """A page of beliefs."""

    items: list[Belief]


class ConceptPage(_Page, frozen=True, kw_only=True):
    """A page of concepts."""

    items: list[Concept]


class ConflictPage(_Page, frozen=True, kw_only=True):
    """A page of conflicts between facts."""

    items: list[Conflict]


# ── facts ────────────────────────────────────────────────────────────────────────────────────


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A thing by its id and its name."""

    id: str
    name: str | None


class TimelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """What was so from one moment on, before another."""

    fact_id: str
    value: Any
    valid_from: Instant
    valid_to: Instant | None
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    recorded_from: Instant | UnsetType = UNSET
    recorded_to: Instant | None = None
    confidence: float | UnsetType = UNSET
    polarity: Polarity = "positive"
    superseded_by: str | None = None
    supports: list[str] = []


class FactTimeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that was so of a subject and a predicate, in the order of time (001 §8.7.4)."""

    subject: Named
    predicate: str
    timeline: list[TimelineRow]
    next_cursor: str | UnsetType | None = UNSET
    has_more: bool | UnsetType = UNSET


# ── beliefs ──────────────────────────────────────────────────────────────────────────────────


class WhyNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a belief rests on, directly or through something else."""

    id: str
    type: Literal["belief", "fact", "episode", "event"]
    summary: str
    weight: float | UnsetType = UNSET
    polarity: Literal["supports", "against"] | UnsetType = UNSET


class WhyEdge(msgspec.Struct, frozen=True, kw_only=True):
    """How two of them hang together."""

    start: str = msgspec.field(name="from")
    to: str
    relation: Literal["supported_by", "opposed_by", "extracted_from", "contains", "contradicts"]


class SupportGraph(msgspec.Struct, frozen=True, kw_only=True):
    """From the belief to the events."""

    nodes: list[WhyNode]
    edges: list[WhyEdge]


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why it is believed (001 §8.7.6). `narrative_model` is `template` when no model wrote it."""

    belief: Belief
    support_graph: SupportGraph
    narrative: str
    narrative_model: str


class BeliefHistory(_Page, frozen=True, kw_only=True):
    """All that was ever believed under one id, newest first.

    `current` and `versions`, those before it on this page, oldest first, are for the published
    client, which reads them.
    """

    belief_id: str
    items: list[Belief]
    current: Belief
    versions: list[Belief]
    revision_count: int


# ── understanding ────────────────────────────────────────────────────────────────────────────


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """A concept that others lead to: by which relation, from which, in how many steps."""

    concept: Concept
    relation: str
    weight: float
    via: str
    distance: int


class RelatedPage(_Page, frozen=True, kw_only=True):
    """A page of related concepts, nearest first."""

    concept_id: str
    items: list[Related]


class TopicCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much is understood of a topic."""

    topic: str
    concepts: int
    avg_confidence: float


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what a scope holds its concepts have taken in (001 §8.7.10)."""

    scope: ScopePath
    concept_count: int
    by_topic: list[TopicCoverage]
    synthesis_lag: str
    coverage_score: float | UnsetType = UNSET
    partial: bool = msgspec.field(default=False, name="_partial")


Topic = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]


class SynthesizeRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Make the concepts of a scope anew; those of some topics only, or all of them."""

    scope: ScopePath
    topics: Annotated[list[Topic], Meta(max_length=limits.LABELS_MAX)] = []
    force: bool = False
    idempotency_key: IdempotencyKey | None = None


class SynthesizeReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The job, and where to hear of it."""

    job_id: str
    status: str
    lifecycle_stream: str


class SynthesisState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a synthesis is: concepts looked at, and those that got a version."""

    job_id: str
    scope: ScopePath
    status: str
    looked_at: int
    made: int
    started_at: Instant
    updated_at: Instant | None


# ── entities ─────────────────────────────────────────────────────────────────────────────────


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """A thing that the facts of a scope speak of, under the names they have for it there."""

    id: str
    scope: ScopePath
    name: str
    names: list[str]
    kind: str
    fact_count: int


class EntityPage(_Page, frozen=True, kw_only=True):
    """A page of entities."""

    items: list[Entity]
