"""What do readers get?  The five layers as records (001 §7): what happened, and what follows."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas.envelope import Actor, Content, Directives
from schemas.times import Instant

DerivedRef = Annotated[
    str, Meta(pattern=r"^(evt_|ep_|fact_|belief_|concept_|redacted:[a-z]+_)[A-Za-z0-9_-]+$(?!\n)")
]
"""A back-pointer of an event; what was erased stays visible as `redacted:<id>` (001 §18.2.2)."""


class EventContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The submitted context, with the server's own time of recording."""

    observed_at: Instant
    recorded_at: Instant
    source_recorded_at: Instant | None = None
    location: str | dict[str, Any] | None = None
    preceded_by: list[str] = []
    intent: str | None = None
    labels: list[str] = []
    timezone: str | None = None
    refers_to: list[dict[str, Any]] = []


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """One memory event. Immutable; `content` is as it was submitted."""

    id: str
    scope: str
    actor: str
    modality: str
    content: Content
    context: EventContext
    derives: list[DerivedRef]
    wal_offset: int
    tenant_id: str | UnsetType = UNSET
    caller: str | UnsetType = UNSET
    observed_actor: Actor | UnsetType = UNSET
    subject: Actor | UnsetType = UNSET
    directives: Directives | None = None
    idempotency_key: str | UnsetType = UNSET
    batch_id: str | None = None
    language: str | None = None
    scripts: list[str] = []
    source: dict[str, Any] | None = None
    excluded_from_recall: bool = False


# ── what records speak of ────────────────────────────────────────────────────────────────────


class EntityRef(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="entity"
):
    """A resolved entity of the tenant."""

    id: str
    name: str | None = None


class ConceptRef(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="concept"
):
    """A concept of the understanding."""

    id: str
    name: str | None = None


class LiteralValue(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="literal"
):
    """A value that is no thing of its own."""

    datatype: str
    value: Any


Node = EntityRef | ConceptRef | LiteralValue
"""A subject or an object: "typed reference" and "typed value" of 001 §7.3."""

Polarity = Literal["positive", "negative"]


# ── episodes (001 §7.2) ──────────────────────────────────────────────────────────────────────

EpisodePartial = Literal["episode_open"]
CausalRole = Literal["trigger", "step", "decision", "outcome"]


class CausalLink(msgspec.Struct, frozen=True, kw_only=True):
    """What part an event plays in its episode."""

    event: str
    role: CausalRole


class Episode(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A bounded span of related events. Sealed at compress: then `events` never changes.

    `excluded` are those of its events that were cancelled after that; the rest of the record no
    longer speaks of them.
    """

    id: str
    scope: str
    name: str
    summary: str
    events: list[str]
    started_at: Instant
    ended_at: Instant
    valid_from: Instant
    valid_to: Instant | None
    recorded_from: Instant
    recorded_to: Instant | None
    actors_involved: list[str]
    centrality_score: float
    causal_chain: list[CausalLink]
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    supports: list[str] = []
    sealed: bool = False
    version: int = 1
    session: str | None = None
    causal_predecessor: str | None = None
    causal_successor: str | None = None
    excluded: list[str] = []
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: EpisodePartial | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


# ── facts (001 §7.3) ─────────────────────────────────────────────────────────────────────────

FactPartial = Literal["extraction_pending", "conflict_unresolved", "supporting_evidence_redacted"]
Cardinality = Literal["single", "multi"]
Trust = Literal["high", "low"]


class Fact(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A triple with both times. `version` counts what was ever known of it under this id.

    `cardinality` says whether its subject and predicate hold one value at a time or many; `kind`
    what sort of thing is said, `trust` how far its source is believed about it (ADR 0022).
    """

    id: str
    scope: str
    subject: Node
    predicate: str
    object: Node
    supports: list[str]
    valid_from: Instant
    valid_to: Instant | None
    recorded_from: Instant
    recorded_to: Instant | None
    confidence: float
    extractor: str
    superseded_by: str | None = None
    supersedes: str | None = None
    polarity: Polarity = "positive"
    asserted_by: str | None = None
    vocabulary: str | None = None
    vocabulary_confidence: float | None = None
    cardinality: Cardinality = "multi"
    kind: str = "state"
    trust: Trust = "high"
    version: int = 1
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: FactPartial | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


ConflictReason = Literal[
    "below_confidence_band", "lower_confidence", "less_trusted", "policy_keeps_both"
]
Resolution = Literal["kept_standing", "unresolved", "rival_taken", "rival_withdrawn"]


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two facts that cannot both be so, why neither simply gave way, and what came of it.

    `count` is how often the rival was claimed, `last_at` when it was last.
    """

    id: str
    scope: str
    subject: Node
    predicate: str
    standing: str
    rival: str
    reason: ConflictReason
    policy: str
    resolution: Resolution
    at: Instant
    count: int
    last_at: Instant


# ── beliefs (001 §7.4) ───────────────────────────────────────────────────────────────────────

Stance = Literal["supported", "contradicted", "uncertain", "deprecated"]
BeliefPartial = Literal["revision_in_progress", "supporting_evidence_redacted", "calibration_stale"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What is believed."""

    subject: Node
    predicate: str
    object: Node


class ConfidenceInterval(msgspec.Struct, frozen=True, kw_only=True):
    """Where the confidence lies."""

    lower: float
    upper: float
    method: Literal["beta_posterior", "bootstrap", "wilson"] = "beta_posterior"
    level: float = 0.90


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How good earlier confidences of this kind turned out to be."""

    model: str
    brier_score_30d: float | None
    samples: int
    last_calibrated_at: Instant | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A record that speaks for or against the claim."""

    type: Literal["fact", "episode", "event"]
    id: str
    weight: float
    polarity: Literal["supports", "against"]


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """Another belief in tension with this one, and what came of it."""

    belief_id: str
    tension: float
    resolution: str


class RevisionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a belief is revised."""

    trigger: str = "new_supporting_evidence_or_contradiction"
    min_evidence_delta: float = 0.05
    cooldown: str = "PT5M"
    max_revisions_per_hour: int = 12


class Belief(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A claim, how sure we are, and why.

    `supports` names the newest and heaviest of the `evidence_count` facts weighed. From `held_from`
    on, evidence waited for the version after this one.
    """

    id: str
    scope: str
    claim: Claim
    stance: Stance
    confidence: float
    confidence_interval: ConfidenceInterval
    calibration: Calibration
    supports: list[Evidence]
    contradicts: list[Contradiction]
    revision_policy: RevisionPolicy
    valid_from: Instant
    valid_to: Instant | None
    recorded_from: Instant
    recorded_to: Instant | None
    last_revised_at: Instant
    revision_count: int
    supporting_evidence_redacted: bool
    supporting_evidence_redacted_fraction: float
    why_url: str
    evidence_count: int = 0
    held_from: Instant | None = None
    version: int = 1
    superseded_by: str | None = None
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: BeliefPartial | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


# ── understanding (001 §7.5) ─────────────────────────────────────────────────────────────────

ConceptPartial = Literal[
    "consolidation_in_progress",
    "insufficient_supporting_facts",
    "synthesis_disabled_by_policy",
    "no_implementation_yet",
    "stale_inputs_pending_resynthesis",
]


class SynthesisInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a version of a concept was made from."""

    layers: list[str]
    filters: dict[str, Any]
    as_of: Instant
    synthesizer: str
    synthesizer_version: str


class SupportedBy(msgspec.Struct, frozen=True, kw_only=True):
    """The records a concept rests on."""

    facts: list[str] = []
    episodes: list[str] = []
    beliefs: list[str] = []
    external: list[dict[str, Any]] = []


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A relation to another concept."""

    to: str
    relation: str
    weight: float
    vocabulary: str = "default"


class Concept(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A node of the understanding. Its id stands for all its versions."""

    id: str
    scope: str
    name: str
    canonical_id: str | None
    version: int
    # A number, for the id is the same in all versions; the seed's own example has an id here.
    previous_version: int | str | None
    derived_from: list[str]
    summary: str
    summary_embedding: list[float] | None
    synthesis_inputs: SynthesisInputs
    supported_by: SupportedBy
    edges: list[Edge]
    valid_from: Instant
    valid_to: Instant | None
    recorded_from: Instant
    recorded_to: Instant | None
    last_synthesized_at: Instant
    stance: Literal["supported", "uncertain", "deprecated"]
    confidence: float
    staleness_score: float
    staleness_reason: str | None
    support_loss_fraction: float
    coverage_score: float
    # Always sent; optional in the schema, because the seed's own example leaves it out.
    supports: list[str] = []
    aliases: list[str] = []
    topics: list[str] = []
    entity_id: str | None = None
    input_count: int = 0
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: ConceptPartial | None = msgspec.field(default=None, name="_partial_reason")
    progress: float | None = msgspec.field(default=None, name="_progress")


Record = Episode | Fact | Belief | Concept
"""A derived, bi-temporal row of a layer."""
