"""Written by scripts/client: models of layers."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from strata_client.models.envelope import (
    Actor,
    BlobContent,
    Directives,
    JsonContent,
    Message,
    PlainText,
    TripleContent,
)


class EventContext(Struct, frozen=True, kw_only=True):
    """The submitted context, with the server's own time of recording."""

    observed_at: datetime
    recorded_at: datetime
    source_recorded_at: datetime | None = None
    location: str | dict[str, Any] | None = None
    preceded_by: list[str] = []
    intent: str | None = None
    labels: list[str] = []
    timezone: str | None = None
    refers_to: list[dict[str, Any]] = []


class Event(Struct, frozen=True, kw_only=True):
    """One memory event. Immutable; `content` is as it was submitted."""

    id: str
    scope: str
    actor: str
    modality: str
    content: Message | PlainText | JsonContent | BlobContent | TripleContent
    context: EventContext
    derives: list[str]
    wal_offset: int
    tenant_id: str | None = None
    caller: str | None = None
    observed_actor: Actor | None = None
    subject: Actor | None = None
    directives: Directives | None = None
    idempotency_key: str | None = None
    batch_id: str | None = None
    language: str | None = None
    scripts: list[str] = []
    source: dict[str, Any] | None = None
    excluded_from_recall: bool = False


class CausalLink(Struct, frozen=True, kw_only=True):
    """What part an event plays in its episode."""

    event: str
    role: str


class Episode(Struct, frozen=True, kw_only=True):
    """A bounded span of related events. Sealed at compress: then `events` never changes."""

    id: str
    scope: str
    name: str
    summary: str
    events: list[str]
    started_at: datetime
    ended_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    recorded_from: datetime
    recorded_to: datetime | None
    actors_involved: list[str]
    centrality_score: float
    causal_chain: list[CausalLink]
    supports: list[str] = []
    sealed: bool = False
    version: int = 1
    session: str | None = None
    causal_predecessor: str | None = None
    causal_successor: str | None = None
    excluded: list[str] = []
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


class EntityRef(Struct, frozen=True, kw_only=True, tag_field="type", tag="entity"):
    """A resolved entity of the tenant."""

    type: ClassVar[str] = "entity"
    id: str
    name: str | None = None


class ConceptRef(Struct, frozen=True, kw_only=True, tag_field="type", tag="concept"):
    """A concept of the understanding."""

    type: ClassVar[str] = "concept"
    id: str
    name: str | None = None


class LiteralValue(Struct, frozen=True, kw_only=True, tag_field="type", tag="literal"):
    """A value that is no thing of its own."""

    type: ClassVar[str] = "literal"
    datatype: str
    value: Any


class Fact(Struct, frozen=True, kw_only=True):
    """A triple with both times. `version` counts what was ever known of it under this id."""

    id: str
    scope: str
    subject: EntityRef | ConceptRef | LiteralValue
    predicate: str
    object: EntityRef | ConceptRef | LiteralValue
    supports: list[str]
    valid_from: datetime
    valid_to: datetime | None
    recorded_from: datetime
    recorded_to: datetime | None
    confidence: float
    extractor: str
    superseded_by: str | None = None
    supersedes: str | None = None
    polarity: str = "positive"
    asserted_by: str | None = None
    vocabulary: str | None = None
    vocabulary_confidence: float | None = None
    cardinality: str = "multi"
    kind: str = "state"
    trust: str = "high"
    version: int = 1
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


class Conflict(Struct, frozen=True, kw_only=True):
    """Two facts that cannot both be so, why neither simply gave way, and what came of it."""

    id: str
    scope: str
    subject: EntityRef | ConceptRef | LiteralValue
    predicate: str
    standing: str
    rival: str
    reason: str
    policy: str
    resolution: str
    at: datetime
    count: int
    last_at: datetime


class Claim(Struct, frozen=True, kw_only=True):
    """What is believed."""

    subject: EntityRef | ConceptRef | LiteralValue
    predicate: str
    object: EntityRef | ConceptRef | LiteralValue


class ConfidenceInterval(Struct, frozen=True, kw_only=True):
    """Where the confidence lies."""

    lower: float
    upper: float
    method: str = "beta_posterior"
    level: float = 0.9


class Calibration(Struct, frozen=True, kw_only=True):
    """How good earlier confidences of this kind turned out to be."""

    model: str
    brier_score_30d: float | None
    samples: int
    last_calibrated_at: datetime | None


class Evidence(Struct, frozen=True, kw_only=True):
    """A record that speaks for or against the claim."""

    type: str
    id: str
    weight: float
    polarity: str


class Contradiction(Struct, frozen=True, kw_only=True):
    """Another belief in tension with this one, and what came of it."""

    belief_id: str
    tension: float
    resolution: str


class RevisionPolicy(Struct, frozen=True, kw_only=True):
    """When a belief is revised."""

    trigger: str = "new_supporting_evidence_or_contradiction"
    min_evidence_delta: float = 0.05
    cooldown: str = "PT5M"
    max_revisions_per_hour: int = 12


class Belief(Struct, frozen=True, kw_only=True):
    """A claim, how sure we are, and why."""

    id: str
    scope: str
    claim: Claim
    stance: str
    confidence: float
    confidence_interval: ConfidenceInterval
    calibration: Calibration
    supports: list[Evidence]
    contradicts: list[Contradiction]
    revision_policy: RevisionPolicy
    valid_from: datetime
    valid_to: datetime | None
    recorded_from: datetime
    recorded_to: datetime | None
    last_revised_at: datetime
    revision_count: int
    supporting_evidence_redacted: bool
    supporting_evidence_redacted_fraction: float
    why_url: str
    evidence_count: int = 0
    held_from: datetime | None = None
    version: int = 1
    superseded_by: str | None = None
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


class SynthesisInputs(Struct, frozen=True, kw_only=True):
    """What a version of a concept was made from."""

    layers: list[str]
    filters: dict[str, Any]
    as_of: datetime
    synthesizer: str
    synthesizer_version: str


class SupportedBy(Struct, frozen=True, kw_only=True):
    """The records a concept rests on."""

    facts: list[str] = []
    episodes: list[str] = []
    beliefs: list[str] = []
    external: list[dict[str, Any]] = []


class Edge(Struct, frozen=True, kw_only=True):
    """A relation to another concept."""

    to: str
    relation: str
    weight: float
    vocabulary: str = "default"


class Concept(Struct, frozen=True, kw_only=True):
    """A node of the understanding. Its id stands for all its versions."""

    id: str
    scope: str
    name: str
    canonical_id: str | None
    version: int
    previous_version: int | str | None
    derived_from: list[str]
    summary: str
    summary_embedding: list[float] | None
    synthesis_inputs: SynthesisInputs
    supported_by: SupportedBy
    edges: list[Edge]
    valid_from: datetime
    valid_to: datetime | None
    recorded_from: datetime
    recorded_to: datetime | None
    last_synthesized_at: datetime
    stance: str
    confidence: float
    staleness_score: float
    staleness_reason: str | None
    support_loss_fraction: float
    coverage_score: float
    supports: list[str] = []
    aliases: list[str] = []
    topics: list[str] = []
    entity_id: str | None = None
    input_count: int = 0
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")
