"""Written by scripts/client: models of items."""

from datetime import datetime
from typing import Any

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
from strata_client.models.layers import (
    Calibration,
    CausalLink,
    Claim,
    ConceptRef,
    ConfidenceInterval,
    Contradiction,
    Edge,
    EntityRef,
    EventContext,
    Evidence,
    LiteralValue,
    RevisionPolicy,
    SupportedBy,
    SynthesisInputs,
)


class EventItem(Struct, frozen=True, kw_only=True):
    """One of the events of a pack: its record, and its place there."""

    id: str
    scope: str | None = None
    actor: str | None = None
    modality: str | None = None
    content: Message | PlainText | JsonContent | BlobContent | TripleContent | None = None
    context: EventContext | None = None
    derives: list[str] | None = None
    wal_offset: int | None = None
    tenant_id: str | None = None
    caller: str | None = None
    observed_actor: Actor | None = None
    subject: Actor | None = None
    directives: Directives | None = None
    idempotency_key: str | None = None
    batch_id: str | None = None
    language: str | None = None
    scripts: list[str] | None = None
    excluded_from_recall: bool | None = None
    ranked_position: int = 0
    score: float = 0.0
    tokens: int | None = None
    superseded: bool = False
    stale: bool = False
    low_trust: bool = False
    trust: str | None = None
    source: Any = None
    excerpt: dict[str, Any] | None = None


class EpisodeItem(Struct, frozen=True, kw_only=True):
    """One of the episodes of a pack: its record, and its place there."""

    id: str
    scope: str | None = None
    name: str | None = None
    summary: str | None = None
    events: list[str] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    actors_involved: list[str] | None = None
    centrality_score: float | None = None
    causal_chain: list[CausalLink] | None = None
    supports: list[str] | None = None
    sealed: bool | None = None
    version: int | None = None
    session: str | None = None
    causal_predecessor: str | None = None
    causal_successor: str | None = None
    excluded: list[str] | None = None
    partial: bool | None = msgspec.field(default=None, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")
    ranked_position: int = 0
    score: float = 0.0
    tokens: int | None = None
    superseded: bool = False
    stale: bool = False
    low_trust: bool = False
    trust: str | None = None
    source: Any = None
    excerpt: dict[str, Any] | None = None


class FactItem(Struct, frozen=True, kw_only=True):
    """One of the facts of a pack: its record, and its place there."""

    id: str
    scope: str | None = None
    subject: EntityRef | ConceptRef | LiteralValue | None = None
    predicate: str | None = None
    object: EntityRef | ConceptRef | LiteralValue | None = None
    supports: list[str] | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    confidence: float | None = None
    extractor: str | None = None
    superseded_by: str | None = None
    supersedes: str | None = None
    polarity: str | None = None
    asserted_by: str | None = None
    vocabulary: str | None = None
    vocabulary_confidence: float | None = None
    cardinality: str | None = None
    kind: str | None = None
    version: int | None = None
    partial: bool | None = msgspec.field(default=None, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")
    ranked_position: int = 0
    score: float = 0.0
    tokens: int | None = None
    superseded: bool = False
    stale: bool = False
    low_trust: bool = False
    trust: str | None = None
    source: Any = None
    excerpt: dict[str, Any] | None = None


class BeliefItem(Struct, frozen=True, kw_only=True):
    """One of the beliefs of a pack: its record, and its place there."""

    id: str
    scope: str | None = None
    claim: Claim | None = None
    stance: str | None = None
    confidence: float | None = None
    confidence_interval: ConfidenceInterval | None = None
    calibration: Calibration | None = None
    supports: list[Evidence] | None = None
    contradicts: list[Contradiction] | None = None
    revision_policy: RevisionPolicy | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    last_revised_at: datetime | None = None
    revision_count: int | None = None
    supporting_evidence_redacted: bool | None = None
    supporting_evidence_redacted_fraction: float | None = None
    why_url: str | None = None
    evidence_count: int | None = None
    held_from: datetime | None = None
    version: int | None = None
    superseded_by: str | None = None
    partial: bool | None = msgspec.field(default=None, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")
    ranked_position: int = 0
    score: float = 0.0
    tokens: int | None = None
    superseded: bool = False
    stale: bool = False
    low_trust: bool = False
    trust: str | None = None
    source: Any = None
    excerpt: dict[str, Any] | None = None


class ConceptItem(Struct, frozen=True, kw_only=True):
    """One of the understanding of a pack: its record, and its place there."""

    id: str
    scope: str | None = None
    name: str | None = None
    canonical_id: str | None = None
    version: int | None = None
    previous_version: int | str | None = None
    derived_from: list[str] | None = None
    summary: str | None = None
    summary_embedding: list[float] | None = None
    synthesis_inputs: SynthesisInputs | None = None
    supported_by: SupportedBy | None = None
    edges: list[Edge] | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    last_synthesized_at: datetime | None = None
    stance: str | None = None
    confidence: float | None = None
    staleness_score: float | None = None
    staleness_reason: str | None = None
    support_loss_fraction: float | None = None
    coverage_score: float | None = None
    supports: list[str] | None = None
    aliases: list[str] | None = None
    topics: list[str] | None = None
    entity_id: str | None = None
    input_count: int | None = None
    partial: bool | None = msgspec.field(default=None, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")
    ranked_position: int = 0
    score: float = 0.0
    tokens: int | None = None
    superseded: bool = False
    stale: bool = False
    low_trust: bool = False
    trust: str | None = None
    source: Any = None
    excerpt: dict[str, Any] | None = None
