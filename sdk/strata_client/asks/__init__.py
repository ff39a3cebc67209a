"""What may be asked of it?  Written by scripts/client."""

from strata_client.asks.admin import FlushQuery
from strata_client.asks.audit import AuditQuery, VerifyRequest
from strata_client.asks.beliefs import BeliefsQuery, HistoryQuery, WhyQuery
from strata_client.asks.decode import PageQuery
from strata_client.asks.entities import EntitiesQuery, EntityQuery
from strata_client.asks.entry import Member, ScopePolicies
from strata_client.asks.envelope import (
    Actor,
    BlobContent,
    BulkItem,
    BulkRequest,
    Context,
    Directives,
    Envelope,
    JsonContent,
    Media,
    Message,
    PlainText,
    Term,
    Triple,
    TripleContent,
)
from strata_client.asks.episodes import EpisodesQuery
from strata_client.asks.erasures import ErasureRequest, ErasureSelector, HoldQuery, ManifestQuery
from strata_client.asks.events import EventsQuery
from strata_client.asks.experience import StatusQuery, WriteQuery
from strata_client.asks.facts import ConflictsQuery, FactsQuery, TimelineQuery
from strata_client.asks.forget import (
    ForgetRequest,
    HoldRequest,
    RebuildQuery,
    RollbackRequest,
    Selector,
)
from strata_client.asks.identity import RevokeRequest
from strata_client.asks.jobs import JobListRequest
from strata_client.asks.lifecycle import CancelRequest, LifecycleQuery, StreamQuery
from strata_client.asks.pack import (
    AnswerRequest,
    Budgets,
    LayerCaps,
    QueryVariant,
    RecallReceipt,
    RecallRequest,
    ReplayRequest,
    Treatments,
)
from strata_client.asks.policy import (
    AuditRules,
    EffectiveQuery,
    LayerRules,
    PolicyDocument,
    RateLimits,
    ScopeQuery,
)
from strata_client.asks.reads import SynthesizeRequest
from strata_client.asks.scopes import (
    DeleteQuery,
    ListQuery,
    MembersRequest,
    PathQuery,
    PruneRequest,
    RegisterRequest,
    ScopesQuery,
)
from strata_client.asks.temporal import (
    AsOfQuery,
    Between,
    PhraseRequest,
    PhraseResolution,
    TemporalBlock,
)
from strata_client.asks.transfer import (
    Destination,
    ExportRequest,
    ImportOptions,
    ImportRequest,
    ImportSource,
)
from strata_client.asks.understanding import (
    ConceptQuery,
    ConceptsQuery,
    CoverageQuery,
    RelatedQuery,
)
from strata_client.asks.vocabularies import (
    PredicateTerm,
    RelationTerm,
    VocabularyRequest,
    VocabularyUpdate,
)

__all__ = [
    "Actor",
    "AnswerRequest",
    "AsOfQuery",
    "AuditQuery",
    "AuditRules",
    "BeliefsQuery",
    "Between",
    "BlobContent",
    "Budgets",
    "BulkItem",
    "BulkRequest",
    "CancelRequest",
    "ConceptQuery",
    "ConceptsQuery",
    "ConflictsQuery",
    "Context",
    "CoverageQuery",
    "DeleteQuery",
    "Destination",
    "Directives",
    "EffectiveQuery",
    "EntitiesQuery",
    "EntityQuery",
    "Envelope",
    "EpisodesQuery",
    "ErasureRequest",
    "ErasureSelector",
    "EventsQuery",
    "ExportRequest",
    "FactsQuery",
    "FlushQuery",
    "ForgetRequest",
    "HistoryQuery",
    "HoldQuery",
    "HoldRequest",
    "ImportOptions",
    "ImportRequest",
    "ImportSource",
    "JobListRequest",
    "JsonContent",
    "LayerCaps",
    "LayerRules",
    "LifecycleQuery",
    "ListQuery",
    "ManifestQuery",
    "Media",
    "Member",
    "MembersRequest",
    "Message",
    "PageQuery",
    "PathQuery",
    "PhraseRequest",
    "PhraseResolution",
    "PlainText",
    "PolicyDocument",
    "PredicateTerm",
    "PruneRequest",
    "QueryVariant",
    "RateLimits",
    "RebuildQuery",
    "RecallReceipt",
    "RecallRequest",
    "RegisterRequest",
    "RelatedQuery",
    "RelationTerm",
    "ReplayRequest",
    "RevokeRequest",
    "RollbackRequest",
    "ScopePolicies",
    "ScopeQuery",
    "ScopesQuery",
    "Selector",
    "StatusQuery",
    "StreamQuery",
    "SynthesizeRequest",
    "TemporalBlock",
    "Term",
    "TimelineQuery",
    "Treatments",
    "Triple",
    "TripleContent",
    "VerifyRequest",
    "VocabularyRequest",
    "VocabularyUpdate",
    "WhyQuery",
    "WriteQuery",
]
