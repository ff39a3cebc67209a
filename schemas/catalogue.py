"""Which JSON Schemas follow from the structs?  (draft 2020-12; 001 Appendix D)"""

from typing import Any, Final

import msgspec

from schemas.audit import AuditRow
from schemas.envelope import BulkRequest, Envelope
from schemas.erasures import ErasurePreview, ErasureReceipt, ErasureRequest, ErasureState, Manifest
from schemas.forget import ForgetPreview, ForgetReceipt, ForgetRequest, Selector
from schemas.health import Health
from schemas.layers import Belief, Concept, Episode, Event, Fact
from schemas.lifecycle import (
    CancelReceipt,
    CancelRequest,
    LifecycleEvent,
    LifecycleRow,
    MemoryEventState,
)
from schemas.pack import (
    AnswerRequest,
    AnswerResponse,
    RecallReceipt,
    RecallRequest,
    ReplayAnswer,
    StratifiedPack,
)
from schemas.policy import EffectivePolicy, PolicyDocument
from schemas.problem import ErrorEnvelope
from schemas.reads import (
    BeliefHistory,
    BeliefPage,
    ConceptPage,
    ConflictPage,
    Coverage,
    EntityPage,
    EpisodePage,
    EventPage,
    FactPage,
    FactTimeline,
    RelatedPage,
    SynthesizeReceipt,
    SynthesizeRequest,
    Why,
)
from schemas.receipts import BulkReceipt, Receipt, WriteStatus
from schemas.temporal import PhrasePage, PhraseRecord, TemporalBlock
from schemas.token import Claims
from schemas.vocabularies import VocabularyRecord, VocabularyRequest

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

CATALOGUE: Final[dict[str, Any]] = {
    "experience_envelope": Envelope,
    "experience_bulk": BulkRequest,
    "experience_receipt": Receipt,
    "bulk_receipt": BulkReceipt,
    "write_status": WriteStatus,
    "event": Event,
    "event_page": EventPage,
    "episode": Episode,
    "episode_page": EpisodePage,
    "fact": Fact,
    "fact_page": FactPage,
    "fact_timeline": FactTimeline,
    "conflict_page": ConflictPage,
    "belief": Belief,
    "belief_page": BeliefPage,
    "belief_why": Why,
    "belief_history": BeliefHistory,
    "concept": Concept,
    "concept_page": ConceptPage,
    "related_page": RelatedPage,
    "understanding_coverage": Coverage,
    "synthesize_request": SynthesizeRequest,
    "synthesize_receipt": SynthesizeReceipt,
    "entity_page": EntityPage,
    "lifecycle_event": LifecycleEvent,
    "lifecycle_row": LifecycleRow,
    "memory_event_state": MemoryEventState,
    "cancel_request": CancelRequest,
    "cancel_receipt": CancelReceipt,
    "forget_request": ForgetRequest,
    "forget_selector": Selector,
    "forget_preview": ForgetPreview,
    "forget_receipt": ForgetReceipt,
    "erasure_request": ErasureRequest,
    "erasure_preview": ErasurePreview,
    "erasure_receipt": ErasureReceipt,
    "erasure_state": ErasureState,
    "erasure_manifest": Manifest,
    "recall_request": RecallRequest,
    "stratified_pack": StratifiedPack,
    "recall_receipt": RecallReceipt,
    "replay_answer": ReplayAnswer,
    "answer_request": AnswerRequest,
    "answer_response": AnswerResponse,
    "error_envelope": ErrorEnvelope,
    "audit_row": AuditRow,
    "health": Health,
    "token_claims": Claims,
    "policy": PolicyDocument,
    "capability_set": EffectivePolicy,
    "temporal_block": TemporalBlock,
    "temporal_phrase": PhraseRecord,
    "temporal_phrase_page": PhrasePage,
    "vocabulary": VocabularyRecord,
    "vocabulary_request": VocabularyRequest,
}
"""File stem -> type. The names of Appendix D where it has them."""


def documents() -> dict[str, bytes]:
    """File name -> bytes, the same on every run."""
    return {f"{stem}.schema.json": _document(stem, kind) for stem, kind in CATALOGUE.items()}


def _document(stem: str, kind: Any) -> bytes:
    schema = {"$schema": DIALECT, "$id": f"{stem}.schema.json", **msgspec.json.schema(kind)}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"
