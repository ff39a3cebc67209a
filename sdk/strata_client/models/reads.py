"""Written by scripts/client: models of reads."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from strata_client.models.layers import Belief, Concept, Conflict, Episode, Event, Fact
from strata_client.models.pack import Traversed


class EventPage(Struct, frozen=True, kw_only=True):
    """A page of events."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Event]


class EpisodePage(Struct, frozen=True, kw_only=True):
    """A page of episodes."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Episode]


class FactPage(Struct, frozen=True, kw_only=True):
    """A page of facts; with superseded ones, a fact may be there in several versions."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Fact]


class Named(Struct, frozen=True, kw_only=True):
    """A thing by its id and its name."""

    id: str
    name: str | None


class TimelineRow(Struct, frozen=True, kw_only=True):
    """What was so from one moment on, before another."""

    fact_id: str
    value: Any
    valid_from: datetime
    valid_to: datetime | None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    confidence: float | None = None
    polarity: str = "positive"
    superseded_by: str | None = None
    supports: list[str] = []


class FactTimeline(Struct, frozen=True, kw_only=True):
    """All that was so of a subject and a predicate, in the order of time."""

    subject: Named
    predicate: str
    timeline: list[TimelineRow]
    next_cursor: str | None = None
    has_more: bool | None = None


class ConflictPage(Struct, frozen=True, kw_only=True):
    """A page of conflicts between facts."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Conflict]


class Entity(Struct, frozen=True, kw_only=True):
    """A thing that the facts of a scope speak of, under the names they have for it there."""

    id: str
    scope: str
    name: str
    names: list[str]
    kind: str
    fact_count: int


class EntityPage(Struct, frozen=True, kw_only=True):
    """A page of entities."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Entity]


class BeliefPage(Struct, frozen=True, kw_only=True):
    """A page of beliefs."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Belief]


class WhyNode(Struct, frozen=True, kw_only=True):
    """Something that a belief rests on, directly or through something else."""

    id: str
    type: str
    summary: str
    weight: float | None = None
    polarity: str | None = None


class WhyEdge(Struct, frozen=True, kw_only=True):
    """How two of them hang together."""

    start: str = msgspec.field(name="from")
    to: str
    relation: str


class SupportGraph(Struct, frozen=True, kw_only=True):
    """From the belief to the events."""

    nodes: list[WhyNode]
    edges: list[WhyEdge]


class Why(Struct, frozen=True, kw_only=True):
    """Why it is believed. `narrative_model` is `template` when no model wrote it."""

    belief: Belief
    support_graph: SupportGraph
    narrative: str
    narrative_model: str


class BeliefHistory(Struct, frozen=True, kw_only=True):
    """All that was ever believed under one id, newest first."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    belief_id: str
    items: list[Belief]
    current: Belief
    versions: list[Belief]
    revision_count: int


class SynthesizeReceipt(Struct, frozen=True, kw_only=True):
    """The job, and where to hear of it."""

    job_id: str
    status: str
    lifecycle_stream: str


class SynthesisState(Struct, frozen=True, kw_only=True):
    """How far a synthesis is: concepts looked at, and those that got a version."""

    job_id: str
    scope: str
    status: str
    looked_at: int
    made: int
    started_at: datetime
    updated_at: datetime | None


class ConceptPage(Struct, frozen=True, kw_only=True):
    """A page of concepts."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    items: list[Concept]


class TopicCoverage(Struct, frozen=True, kw_only=True):
    """How much is understood of a topic."""

    topic: str
    concepts: int
    avg_confidence: float


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of what a scope holds its concepts have taken in."""

    scope: str
    concept_count: int
    by_topic: list[TopicCoverage]
    synthesis_lag: str
    coverage_score: float | None = None
    partial: bool = msgspec.field(default=False, name="_partial")


class Related(Struct, frozen=True, kw_only=True):
    """A concept that others lead to: by which relation, from which, in how many steps."""

    concept: Concept
    relation: str
    weight: float
    via: str
    distance: int


class RelatedPage(Struct, frozen=True, kw_only=True):
    """A page of related concepts, nearest first."""

    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] = []
    concept_id: str
    items: list[Related]
