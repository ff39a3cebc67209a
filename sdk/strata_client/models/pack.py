"""Written by scripts/client: models of pack."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from strata_client.models.items import BeliefItem, ConceptItem, EpisodeItem, EventItem, FactItem


class Traversed(Struct, frozen=True, kw_only=True):
    """A scope on the way, in one of two forms."""

    scope: str
    items: int | None = None
    denied: bool = False
    item_count: int | None = None
    denied_reason: str | None = None


class Layers(Struct, frozen=True, kw_only=True):
    """The five layers; a view that does not fill one leaves it empty."""

    beliefs: list[BeliefItem] = []
    facts: list[FactItem] = []
    episodes: list[EpisodeItem] = []
    events: list[EventItem] = []
    understanding: list[ConceptItem] = []


class Provenance(Struct, frozen=True, kw_only=True):
    """How the pack came about, and what each of its records rests on: a graph down to events."""

    trail: list[dict[str, Any]]
    citations: dict[str, list[str]]


class Citation(Struct, frozen=True, kw_only=True):
    """What a marker in the text stands for."""

    marker: str
    layer: str
    id: str
    support_strength: float | None = None


class Spent(Struct, frozen=True, kw_only=True):
    """Tokens that could be used and were; `counted_by` says with which tokenizer."""

    max_tokens: int
    used_tokens: int
    counted_by: str


class StratifiedPack(Struct, frozen=True, kw_only=True):
    """What recall answers."""

    request_id: str
    scope: str
    view: str
    context_block: str
    layers: Layers
    provenance: Provenance
    pack_id: str | None = None
    as_of: datetime | None = None
    expires_at: datetime | None = None
    watermark: int | None = None
    citations: list[Citation] = []
    scopes_traversed: list[Traversed] = []
    budget: Spent | None = None
    knowledge_subgraph: dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class ReplayDifference(Struct, frozen=True, kw_only=True):
    """What came out otherwise."""

    gone: list[str]
    new: list[str]
    moved: list[str]


class ReplayAnswer(Struct, frozen=True, kw_only=True):
    """Whether the same question to the engine as it was gives the same answer."""

    same: bool
    digest: str
    differences: ReplayDifference
    projectors: dict[str, int]
    pack: StratifiedPack


class AnswerResponse(Struct, frozen=True, kw_only=True):
    """What answer answers: recall's own provenance, and words."""

    pack_id: str
    answer: str
    citations: list[Citation]
    provenance: Provenance
    as_of: datetime
    request_id: str | None = None
    known: bool | None = None
    method: str | None = None
    diagnostics: dict[str, Any] | None = None
