"""What has been understood?  Concepts, what they hang together with, and how much they cover.

001 §7.5 and §8.7.7 to §8.7.11.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from engine import policy
from engine.layers.lookup import find_record, locate, missing
from engine.layers.pages import (
    Among,
    Ground,
    LayerRequest,
    Source,
    in_scopes,
    read_page,
    survey,
)
from engine.records import get_versions, present, raw_id, visible_version
from engine.temporal import Answer, Window, moment
from schemas import limits
from schemas.caller import Caller
from schemas.layers import Concept
from schemas.reads import ConceptPage, Coverage, Related, RelatedPage, TopicCoverage

if TYPE_CHECKING:
    from engine.engine import Engine

_LAYER: Final = "concepts"
_ALIASES_MAX: Final = 8
"""Concepts that were one after the other found to be the same; beyond it something is wrong."""


class ConceptsRequest(LayerRequest, frozen=True, kw_only=True):
    """A page of concepts; with a depth also those that so many relations lead to."""

    topic: str | None = None
    depth: int = 0
    include_deprecated: bool = False


class ConceptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One concept: as it is, as it was known at a moment, or one of its versions."""

    concept_id: str
    version: int | None = None
    as_of: str | None = None


class RelatedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a concept is related to, by one relation or any, in so many steps."""

    concept_id: str
    relation: str | None = None
    depth: int = 1
    as_of: str | None = None
    include_deprecated: bool = False
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def list_concepts(engine: "Engine", caller: Caller, request: ConceptsRequest) -> Answer:
    """A page of a scope's concepts; the deprecated are there only when asked for."""
    policy.require_view(engine, caller, request.scope, request.view)
    policy.require(engine, caller, "understanding.read", request.scope)
    ground = survey(engine, caller, request)
    sources = in_scopes(engine, ground.tenant_no or 0, _LAYER, ground.reach.numbers)
    wanted = _wanted(request)
    if request.depth and request.topic is not None and ground.tenant_no is not None:
        seeds = [concept for concept in _all(engine, ground, sources) if wanted(concept)]
        near = _Neighbours(engine, caller, ground.tenant_no, ground.window)
        reached = near.walk(seeds, None, request.depth)
        found_ids = [seed.id for seed in seeds] + [one.concept.id for one in reached]
        raws = [raw for one in found_ids if (raw := raw_id(_LAYER, one)) is not None]
        sources, wanted = [Among(raws)], _is_shown(request.include_deprecated)
    found = read_page(engine, caller, ground, request, _LAYER, sources=sources, wanted=wanted)
    page = ConceptPage(
        items=found.items,
        next_cursor=found.next_cursor,
        has_more=found.has_more,
        scopes_traversed=found.scopes_traversed,
    )
    return Answer(page, ground.window.warnings)


def get_concept(engine: "Engine", caller: Caller, request: ConceptRequest) -> Concept:
    """One concept by its id; what was found to be another one leads there (001 §7.5.1)."""
    policy.require(engine, caller, "understanding.read")
    if request.version is not None:
        tenant_no, raw, _ = locate(engine, caller, _LAYER, request.concept_id)
        versions = get_versions(engine, tenant_no, _LAYER, raw)
        found = next((one for one in versions if one.version == request.version), None)
        if not isinstance(found, Concept):
            raise missing(_LAYER, f"{request.concept_id} version {request.version}")
        return found
    concept = _concept(engine, caller, request.concept_id, request.as_of)
    for _ in range(_ALIASES_MAX):
        if concept.canonical_id is None:
            break
        concept = _concept(engine, caller, concept.canonical_id, request.as_of)
    return concept


def list_related(engine: "Engine", caller: Caller, request: RelatedRequest) -> RelatedPage:
    """A page of the concepts that relations lead to from one, nearest first."""
    policy.require(engine, caller, "understanding.read")
    asked = ConceptRequest(concept_id=request.concept_id, as_of=request.as_of)
    concept = get_concept(engine, caller, asked)
    tenant_no, _, _ = locate(engine, caller, _LAYER, concept.id)
    now = present(engine)
    at = now if request.as_of is None else moment(request.as_of, "as_of")
    near = _Neighbours(engine, caller, tenant_no, Window(known_at=at, valid_at=at))
    is_shown = _is_shown(request.include_deprecated)
    found = [
        one
        for one in near.walk([concept], request.relation, request.depth)
        if is_shown(one.concept)
    ]
    question = (caller.tenant, "related", msgspec.structs.replace(request, cursor=None, limit=0))
    start = 0
    if request.cursor is not None:
        start = int.from_bytes(engine.cursors.read(request.cursor, *question), "big")
    end = start + request.limit
    more = end < len(found)
    return RelatedPage(
        concept_id=concept.id,
        items=found[start:end],
        next_cursor=engine.cursors.make(end.to_bytes(4, "big"), *question) if more else None,
        has_more=more,
    )


def get_coverage(engine: "Engine", caller: Caller, scope: str) -> Coverage:
    """How many concepts a scope has, about what, and how far they are behind (001 §8.7.10)."""
    policy.require(engine, caller, "scope.read.local", scope)
    policy.require(engine, caller, "understanding.read", scope)
    ground = survey(engine, caller, LayerRequest(scope=scope))
    sources = in_scopes(engine, ground.tenant_no or 0, _LAYER, ground.reach.numbers)
    concepts = [one for one in _all(engine, ground, sources) if one.stance != "deprecated"]
    by_topic: dict[str, list[float]] = {}
    for concept in concepts:
        for topic in concept.topics:
            by_topic.setdefault(topic, []).append(concept.confidence)
    waiting = [one.last_synthesized_at for one in concepts if one.staleness_score > 0]
    scores = [one.coverage_score for one in concepts]
    return Coverage(
        scope=scope,
        concept_count=len(concepts),
        by_topic=[
            TopicCoverage(
                topic=topic,
                concepts=len(found),
                avg_confidence=round(sum(found) / len(found), 4),
            )
            for topic, found in sorted(by_topic.items(), key=lambda item: (-len(item[1]), item[0]))
        ],
        synthesis_lag=_lag(min(waiting), present(engine)) if waiting else "PT0S",
        coverage_score=round(sum(scores) / len(scores), 4) if scores else 0.0,
        partial=any(one.partial for one in concepts),
    )


# ── finding ──────────────────────────────────────────────────────────────────────────────────


def _concept(engine: "Engine", caller: Caller, concept_id: str, as_of: str | None) -> Concept:
    found = find_record(engine, caller, _LAYER, concept_id, as_of)
    assert isinstance(found, Concept), "the layer's own shape"
    return found


def _all(engine: "Engine", ground: Ground, sources: list[Source]) -> Iterator[Concept]:
    """The concepts a window shows, as many as one call may look at."""
    for source in sources:
        for raw in source.next(None, newest=True, limit=limits.PAGE_SCAN_MAX):
            found = visible_version(engine, ground.tenant_no or 0, _LAYER, raw, ground.window)
            if isinstance(found, Concept):
                yield found


def _wanted(request: ConceptsRequest) -> Callable[[Concept], bool]:
    """The filters of one request: a topic is in a concept's topics, or its words in its names."""
    is_shown = _is_shown(request.include_deprecated)
    if request.topic is None:
        return is_shown
    words = request.topic.casefold().replace("_", " ").split()

    def is_about(concept: Concept) -> bool:
        said = " ".join((concept.name, *concept.aliases, *concept.topics))
        said = said.casefold().replace("_", " ")
        return all(word in said for word in words)

    return lambda concept: is_shown(concept) and is_about(concept)


def _is_shown(include_deprecated: bool) -> Callable[[Concept], bool]:
    return lambda concept: include_deprecated or concept.stance != "deprecated"


class _Neighbours:
    """Follows relations from concept to concept, as far as the caller may see."""

    def __init__(self, engine: "Engine", caller: Caller, tenant_no: int, window: Window) -> None:
        self._engine = engine
        self._caller = caller
        self._tenant_no = tenant_no
        self._window = window
        self._readable: dict[str, bool] = {}

    def walk(self, seeds: list[Concept], relation: str | None, depth: int) -> list[Related]:
        """What is reached in so many steps, nearest first, then by weight; each concept once."""
        seen = {seed.id for seed in seeds}
        found: list[Related] = []
        front = seeds
        for distance in range(1, depth + 1):
            step: dict[str, Related] = {}
            for concept in front:
                for edge in concept.edges:
                    if edge.to in seen or relation not in (None, edge.relation):
                        continue
                    near = self._see(edge.to, concept.scope)
                    known = step.get(edge.to)
                    if near is not None and (known is None or known.weight < edge.weight):
                        step[edge.to] = Related(
                            concept=near,
                            relation=edge.relation,
                            weight=edge.weight,
                            via=concept.id,
                            distance=distance,
                        )
            seen |= set(step)
            found += sorted(step.values(), key=lambda one: (-one.weight, one.concept.id))
            front = [one.concept for one in step.values()]
            if len(found) >= limits.RELATED_MAX:
                break
        return found[: limits.RELATED_MAX]

    def _see(self, concept_id: str, scope: str) -> Concept | None:
        """A concept at the other end; in another scope only when both scopes may be read."""
        raw = raw_id(_LAYER, concept_id)
        if raw is None:
            return None
        found = visible_version(self._engine, self._tenant_no, _LAYER, raw, self._window)
        if not isinstance(found, Concept):
            return None
        return found if found.scope == scope or self._may_cross(found.scope) else None

    def _may_cross(self, scope: str) -> bool:
        if scope not in self._readable:
            self._readable[scope] = all(
                policy.may(self._engine, self._caller, capability, scope)
                for capability in ("scope.read.local", "understanding.read.cross_scope")
            )
        return self._readable[scope]


def _lag(since: datetime, now: datetime) -> str:
    """How long ago, as an ISO 8601 duration: days when there are some, else seconds."""
    seconds = max(0, int((now - since).total_seconds()))
    return f"P{seconds // 86400}D" if seconds >= 86400 else f"PT{seconds}S"
