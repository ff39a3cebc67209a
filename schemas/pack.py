"""What is asked of recall and answer, and what comes back?  (001 §8.3, §8.4, §9)

A pack is layers of records, a context block that cites them, and the trail of how they were found.
An item is its layer's record (001 §7) with its place, its score and whatever marks it carries.
"""

from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas import limits
from schemas.envelope import Fraction, IdempotencyKey, Name
from schemas.scope import ScopePath
from schemas.temporal import TemporalBlock
from schemas.times import Instant

PackView = Literal["holistic", "local", "descend", "raw", "granular", "narrative", "structured"]
"""Traversal and shape in one enum (DESIGN §8.1): only holistic and descend leave the scope."""

LayerName = Literal["events", "episodes", "facts", "beliefs", "understanding"]
LAYER_NAMES: Final[tuple[LayerName, ...]] = get_args(LayerName)
CitationMode = Literal["none", "inline_with_markers", "block_at_end", "structured_only"]
Diagnostics = Literal["none", "summary", "full"]
Treatment = Literal["include", "demote", "exclude"]
Profile = Literal["auto", "lookup", "temporal", "multi_hop", "preference", "summary"]

Words = Annotated[str, Meta(min_length=1, max_length=limits.QUERY_CHARS_MAX)]
TokenBudget = Annotated[int, Meta(ge=0, le=limits.PACK_TOKENS_MAX)]
LayerCap = Annotated[int, Meta(ge=0, le=limits.PACK_LAYER_ITEMS_MAX)]
AnswerBudget = Annotated[int, Meta(ge=1, le=limits.ANSWER_TOKENS_MAX)]
Instructions = Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)]
Scripts = Annotated[list[Name], Meta(max_length=limits.SCRIPTS_MAX)]
PackRef = Annotated[str, Meta(pattern=r"^pack_[A-Za-z0-9_-]{1,64}$(?!\n)")]


class LayerCaps(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How many items of each layer at most; what is left out is the view's."""

    events: LayerCap | None = None
    episodes: LayerCap | None = None
    facts: LayerCap | None = None
    beliefs: LayerCap | None = None
    understanding: LayerCap | None = None


class Budgets(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How much may come back. §8.3 and §9.2 have a name each for the same two things.

    `max_events` is the published command line's cap on events.
    """

    max_events: LayerCap | None = None
    max_tokens: TokenBudget | None = None
    per_layer_limits: LayerCaps | None = None
    total_tokens: TokenBudget | None = None
    per_layer: LayerCaps | None = None


class Treatments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What becomes of items that carry a mark: shown as they rank, ranked down, or left out.

    Superseded records are left out unless `include_superseded` says otherwise; then they are ranked
    down. An event is evidence of more than what was superseded, so it is only ranked down.
    """

    superseded: Treatment | None = None
    superseded_events: Treatment = "demote"
    stale: Treatment = "demote"
    low_trust: Treatment = "demote"
    cancelled: Literal["exclude"] = "exclude"


class QueryVariant(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The same question in other words; the published client sends them."""

    text: Words
    language: Name | None = None
    weight: Fraction | None = None


Variants = Annotated[list[QueryVariant], Meta(max_length=limits.QUERY_VARIANTS_MAX)]


class _Reading(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What recall and answer have in common."""

    scope: ScopePath
    view: PackView = "holistic"
    include: list[Literal[LayerName, "concepts"]] | None = None
    layers: list[Literal[LayerName, "concepts"]] | None = None
    exclude_content: bool = False
    temporal: TemporalBlock | None = None
    filters: dict[str, Any] | None = None
    budgets: Budgets | None = None
    limits: Budgets | None = None
    citation_mode: CitationMode = "inline_with_markers"
    diagnostics: Diagnostics = "none"
    stream: bool = False
    profile: Profile = "auto"
    include_superseded: bool = False
    treatments: Treatments = Treatments()
    mmr_lambda: Fraction | None = None
    idempotency_key: IdempotencyKey | None = None
    language: Name | None = None
    scripts: Scripts = []


class RecallRequest(
    _Reading, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A question to memory (001 §8.3). Without a query the newest of every layer comes back."""

    query: Words | None = None
    query_variants: Variants = []


class AnswerRequest(
    _Reading, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A question to be answered (001 §8.4). With `use_pack_id` nothing is recalled again."""

    question: Words
    answer_model: Name | None = None
    answer_max_tokens: AnswerBudget | None = None
    answer_instructions: Instructions | None = None
    use_pack_id: PackRef | None = None
    cite_sources: bool = True
    # The published client sends these two; a date in the question is read against the second.
    question_type: Name | None = None
    question_date: Name | None = None


# ── what comes back ──────────────────────────────────────────────────────────────────────────

Item = Annotated[
    dict[str, Any],
    Meta(
        description="The record of the layer, with its place in the pack.",
        extra_json_schema={
            "properties": {
                "id": {"type": "string"},
                "scope": {"type": "string"},
                "ranked_position": {"type": "integer", "minimum": 1},
                "score": {"type": "number", "minimum": 0, "maximum": 1},
                "trust": {"enum": ["first_hand", "external", "derived"]},
                "source": {"type": "string"},
                "tokens": {"type": "integer"},
                "superseded": {"type": "boolean"},
                "stale": {"type": "boolean"},
                "low_trust": {"type": "boolean"},
                "excerpt": {"type": "object"},
            },
            "required": ["id", "ranked_position", "score"],
        },
    ),
]
"""A plain object: its fields are those of the record, and with `exclude_content` fewer."""


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """The five layers; a view that does not fill one leaves it empty."""

    beliefs: list[Item] = []
    facts: list[Item] = []
    episodes: list[Item] = []
    events: list[Item] = []
    understanding: list[Item] = []


class Citation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a marker in the text stands for."""

    marker: str
    layer: Literal["event", "episode", "fact", "belief", "understanding"]
    id: str
    support_strength: float | UnsetType = UNSET


class Evidence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item of a pack as an answer reads it; never sent as such."""

    marker: str
    layer: LayerName
    id: str
    text: str
    when: Instant
    source: str
    trust: str
    score: float
    is_superseded: bool = False


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """How the pack came about, and what each of its records rests on: a graph down to events."""

    trail: list[dict[str, Any]]
    citations: dict[str, list[str]]


class Traversed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scope on the way, in one of two forms (001 §18.2.4).

    Read: `{scope, items}`, how much of the pack it gave. Not to be read by this caller: `{scope,
    denied, item_count, denied_reason}`, how much is there and who says no, not what.
    """

    scope: str
    items: int | UnsetType = UNSET
    denied: bool = False
    item_count: int | UnsetType = UNSET
    denied_reason: str | UnsetType = UNSET


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that could be used and were; `counted_by` says with which tokenizer."""

    max_tokens: int
    used_tokens: int
    counted_by: str


class RecallReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All it takes to ask the same again of the engine as it was; signed by the server."""

    request: RecallRequest
    plan: str
    as_of: Instant
    watermark: int
    projectors: dict[str, int]
    embedder: str
    items: list[str]
    digest: str
    signature: str


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receipt to be tried again."""

    receipt: RecallReceipt


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What came out otherwise."""

    gone: list[str]
    new: list[str]
    moved: list[str]


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the same question to the engine as it was gives the same answer."""

    same: bool
    digest: str
    differences: ReplayDifference
    projectors: dict[str, int]
    pack: "StratifiedPack"


class StratifiedPack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What recall answers (001 §9)."""

    request_id: str
    scope: str
    view: PackView
    context_block: str
    layers: Layers
    provenance: Provenance
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    pack_id: str | UnsetType = UNSET
    as_of: Instant | UnsetType = UNSET
    expires_at: Instant | UnsetType = UNSET
    watermark: int | UnsetType = UNSET
    citations: list[Citation] | UnsetType = UNSET
    scopes_traversed: list[Traversed] | UnsetType = UNSET
    budget: Spent | UnsetType = UNSET
    knowledge_subgraph: dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    partial: bool = msgspec.field(default=False, name="_partial")
    partial_reason: str | None = msgspec.field(default=None, name="_partial_reason")


class AnswerResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What answer answers (001 §8.4): recall's own provenance, and words."""

    pack_id: str
    answer: str
    citations: list[Citation]
    provenance: Provenance
    as_of: Instant
    # Always sent; optional in the schema, because the seed's own example leaves them out.
    request_id: str | UnsetType = UNSET
    known: bool | UnsetType = UNSET
    method: Literal["extractive", "model"] | UnsetType = UNSET
    diagnostics: dict[str, Any] | None = None
