"""Written by scripts/client: asks of pack."""

from datetime import datetime
from typing import Any, Literal, Required, TypedDict

from strata_client.asks.temporal import TemporalBlock


class LayerCaps(TypedDict, total=False):
    """How many items of each layer at most; what is left out is the view's."""

    events: int | None
    episodes: int | None
    facts: int | None
    beliefs: int | None
    understanding: int | None


class Budgets(TypedDict, total=False):
    """How much may come back. §8.3 and §9.2 have a name each for the same two things."""

    max_events: int | None
    max_tokens: int | None
    per_layer_limits: LayerCaps | None
    total_tokens: int | None
    per_layer: LayerCaps | None


class Treatments(TypedDict, total=False):
    """What becomes of items that carry a mark: shown as they rank, ranked down, or left out."""

    superseded: Literal["include", "demote", "exclude"] | None
    superseded_events: Literal["include", "demote", "exclude"]
    stale: Literal["include", "demote", "exclude"]
    low_trust: Literal["include", "demote", "exclude"]
    cancelled: Literal["exclude"]


class QueryVariant(TypedDict, total=False):
    """The same question in other words; the published client sends them."""

    text: Required[str]
    language: str | None
    weight: float | None


class RecallRequest(TypedDict, total=False):
    """A question to memory. Without a query the newest of every layer comes back."""

    scope: str
    view: Literal["holistic", "local", "descend", "raw", "granular", "narrative", "structured"]
    include: (
        list[Literal["events", "episodes", "facts", "beliefs", "understanding", "concepts"]] | None
    )
    layers: (
        list[Literal["events", "episodes", "facts", "beliefs", "understanding", "concepts"]] | None
    )
    exclude_content: bool
    temporal: TemporalBlock | None
    filters: dict[str, Any] | None
    budgets: Budgets | None
    limits: Budgets | None
    citation_mode: Literal["none", "inline_with_markers", "block_at_end", "structured_only"]
    diagnostics: Literal["none", "summary", "full"]
    profile: Literal["auto", "lookup", "temporal", "multi_hop", "preference", "summary"]
    include_superseded: bool
    treatments: Treatments
    mmr_lambda: float | None
    idempotency_key: str | None
    language: str | None
    scripts: list[str]
    query_variants: list[QueryVariant]


class RecallReceipt(TypedDict, total=False):
    """All it takes to ask the same again of the engine as it was; signed by the server."""

    request: Required[RecallRequest]
    plan: Required[str]
    as_of: Required[str | datetime]
    watermark: Required[int]
    projectors: Required[dict[str, int]]
    embedder: Required[str]
    items: Required[list[str]]
    digest: Required[str]
    signature: Required[str]


class ReplayRequest(TypedDict, total=False):
    """A receipt to be tried again."""

    receipt: Required[RecallReceipt]


class AnswerRequest(TypedDict, total=False):
    """A question to be answered. With `use_pack_id` nothing is recalled again."""

    scope: str
    view: Literal["holistic", "local", "descend", "raw", "granular", "narrative", "structured"]
    include: (
        list[Literal["events", "episodes", "facts", "beliefs", "understanding", "concepts"]] | None
    )
    layers: (
        list[Literal["events", "episodes", "facts", "beliefs", "understanding", "concepts"]] | None
    )
    exclude_content: bool
    temporal: TemporalBlock | None
    filters: dict[str, Any] | None
    budgets: Budgets | None
    limits: Budgets | None
    citation_mode: Literal["none", "inline_with_markers", "block_at_end", "structured_only"]
    diagnostics: Literal["none", "summary", "full"]
    profile: Literal["auto", "lookup", "temporal", "multi_hop", "preference", "summary"]
    include_superseded: bool
    treatments: Treatments
    mmr_lambda: float | None
    idempotency_key: str | None
    language: str | None
    scripts: list[str]
    answer_model: str | None
    answer_max_tokens: int | None
    answer_instructions: str | None
    use_pack_id: str | None
    cite_sources: bool
    question_type: str | None
    question_date: str | None
