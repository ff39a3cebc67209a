"""Which JSON Schemas follow from the structs?  (draft 2020-12; 001 Appendix D)"""

from typing import Any, Final

import msgspec

from schemas.audit import AuditRow
from schemas.envelope import BulkRequest, Envelope
from schemas.health import Health
from schemas.layers import Episode, Event
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
from schemas.reads import EpisodePage, EventPage
from schemas.receipts import BulkReceipt, Receipt, WriteStatus
from schemas.temporal import PhraseRecord, TemporalBlock
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
    "lifecycle_event": LifecycleEvent,
    "lifecycle_row": LifecycleRow,
    "memory_event_state": MemoryEventState,
    "cancel_request": CancelRequest,
    "cancel_receipt": CancelReceipt,
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
