"""What is so, since when, and what was?  Facts, their timeline and their conflicts (001 §7.3)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine import policy
from engine.layers.lookup import find_record
from engine.layers.naming import meaning_of
from engine.layers.pages import (
    Among,
    Ground,
    LayerRequest,
    Rows,
    Source,
    in_scopes,
    read_page,
    survey,
    traversed,
)
from engine.records import visible_versions
from engine.temporal import Answer
from projectors.records import fact_about_key
from schemas import limits
from schemas.caller import Caller
from schemas.errors import NotFound
from schemas.layers import EntityRef, Fact, LiteralValue, Node, Polarity
from schemas.reads import ConflictPage, FactPage, FactTimeline, Named, TimelineRow
from schemas.temporal import TemporalBlock
from schemas.times import to_us

if TYPE_CHECKING:
    from engine.engine import Engine

_PREFIX_END: Final = b"\xff" * 25


class FactsRequest(LayerRequest, frozen=True, kw_only=True):
    """A page of facts. Subject and object are ids, actors or names; an object may be a value."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    polarity: Polarity | None = None
    min_confidence: float | None = None


class TimelineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that was so of one subject and predicate in a scope."""

    scope: str
    subject: str
    predicate: str
    temporal: TemporalBlock = TemporalBlock()
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def list_facts(engine: "Engine", caller: Caller, request: FactsRequest) -> Answer:
    """A page of a scope's facts that a window shows and every filter wants."""
    policy.require_view(engine, caller, request.scope, request.view)
    ground = survey(engine, caller, request)
    found = read_page(
        engine,
        caller,
        ground,
        request,
        "facts",
        sources=_sources(engine, ground, request),
        wanted=_wanted(engine, ground, request),
    )
    page = FactPage(
        items=found.items,
        next_cursor=found.next_cursor,
        has_more=found.has_more,
        scopes_traversed=found.scopes_traversed,
    )
    return Answer(page, ground.window.warnings)


def get_fact(engine: "Engine", caller: Caller, fact_id: str, as_of: str | None = None) -> Fact:
    """One fact by its id, as it is known last, or was known at a moment."""
    policy.require(engine, caller, "scope.read.local")
    found = find_record(engine, caller, "facts", fact_id, as_of)
    assert isinstance(found, Fact), "the layer's own shape"
    return found


def get_timeline(engine: "Engine", caller: Caller, request: TimelineRequest) -> Answer:
    """What was so of a subject and a predicate, in the order of time (001 §8.7.4)."""
    policy.require(engine, caller, "scope.read.local", request.scope)
    asked = FactsRequest(scope=request.scope, temporal=_all_of_time(request.temporal))
    ground = survey(engine, caller, asked)
    question = (caller.tenant, "timeline", msgspec.structs.replace(request, cursor=None, limit=0))
    after = None if request.cursor is None else engine.cursors.read(request.cursor, *question)
    numbers = ground.reach.numbers
    meaning = None
    if ground.tenant_no is not None and numbers:
        meaning = meaning_of(engine, ground.tenant_no, request.subject, numbers[0])
    if ground.tenant_no is None or meaning is None:
        raise NotFound(f"Nothing in {request.scope} is called {request.subject[:80]!r}.")
    prefix = fact_about_key(numbers[0], meaning.root, request.predicate)
    raws = Rows(engine, ground.tenant_no, "facts_about", prefix).next(
        None, newest=True, limit=limits.PAGE_SCAN_MAX
    )
    versions = [
        version
        for raw in raws
        for version in visible_versions(engine, ground.tenant_no, "facts", raw, ground.window)
    ]
    rows = sorted((_place(fact), fact) for fact in versions if isinstance(fact, Fact))
    left = [(place, fact) for place, fact in rows if after is None or place > after]
    shown = left[: request.limit]
    more = len(left) > len(shown)
    timeline = FactTimeline(
        subject=Named(id=meaning.id, name=meaning.name),
        predicate=request.predicate,
        timeline=[_row(fact) for _, fact in shown],
        next_cursor=engine.cursors.make(shown[-1][0], *question) if more else None,
        has_more=more,
    )
    return Answer(timeline, ground.window.warnings)


def list_conflicts(engine: "Engine", caller: Caller, request: LayerRequest) -> ConflictPage:
    """A page of claims that did not simply give way to each other, newest or oldest first."""
    policy.require_view(engine, caller, request.scope, request.view)
    ground = survey(engine, caller, request)
    question = (caller.tenant, "conflicts", msgspec.structs.replace(request, cursor=None, limit=0))
    start = None if request.cursor is None else engine.cursors.read(request.cursor, *question)
    newest, tenant_no = request.order == "newest", ground.tenant_no or 0
    raws = sorted(
        {
            raw
            for source in in_scopes(engine, tenant_no, "conflicts", ground.reach.numbers)
            for raw in source.next(start, newest=newest, limit=request.limit + 2)
            if raw != start
        },
        reverse=newest,
    )
    found = (engine.staged.get(tenant_no, "conflicts", raw) for raw in raws[: request.limit])
    items = [conflict for conflict in found if conflict is not None]
    more = len(raws) > request.limit
    return ConflictPage(
        items=items,
        next_cursor=engine.cursors.make(raws[request.limit - 1], *question) if more else None,
        has_more=more,
        scopes_traversed=traversed(engine, ground, request.view, "conflicts", items),
    )


# ── timelines ────────────────────────────────────────────────────────────────────────────────


def _all_of_time(block: TemporalBlock) -> TemporalBlock:
    """A timeline is about all moments, unless a window says which; `as_of` is what was known."""
    if block.valid_during is not None or block.natural is not None:
        return block
    return msgspec.structs.replace(block, valid_during=["0001-01-01", None])


def _place(fact: Fact) -> bytes:
    """Where a version of a fact stands in its timeline; the id tells those of one moment apart."""
    us = to_us(fact.valid_from) + 2**63
    return us.to_bytes(8, "big") + fact.id.encode() + fact.version.to_bytes(4, "big")


def _row(fact: Fact) -> TimelineRow:
    return TimelineRow(
        fact_id=fact.id,
        value=_value(fact.object),
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recorded_from=fact.recorded_from,
        recorded_to=fact.recorded_to,
        confidence=fact.confidence,
        polarity=fact.polarity,
        superseded_by=fact.superseded_by,
        supports=fact.supports,
    )


def _value(node: Node) -> Any:
    return node.value if isinstance(node, LiteralValue) else node.name or node.id


# ── filters ──────────────────────────────────────────────────────────────────────────────────


def _sources(engine: "Engine", ground: Ground, request: FactsRequest) -> list[Source]:
    """The facts of the scopes, or only those about what is named there."""
    tenant_no, numbers = ground.tenant_no, ground.reach.numbers
    if tenant_no is None:
        return []
    if request.subject is None:
        return in_scopes(engine, tenant_no, "facts", numbers)
    sources: list[Source] = []
    for number in numbers:
        meaning = meaning_of(engine, tenant_no, request.subject, number)
        if meaning is None:
            continue
        if request.predicate is not None:
            prefix = fact_about_key(number, meaning.root, request.predicate)
            sources.append(Rows(engine, tenant_no, "facts_about", prefix))
        else:
            sources.append(_about(engine, tenant_no, number, meaning.root))
    return sources


def _about(engine: "Engine", tenant_no: int, scope_no: int, root: str) -> Source:
    """The facts about one thing lie by predicate: few enough are brought into order."""
    prefix = fact_about_key(scope_no, root)
    keys = engine.staged.between(
        tenant_no,
        "facts_about",
        prefix,
        prefix + _PREFIX_END,
        last_first=False,
        limit=limits.PAGE_SCAN_MAX + 1,
    )
    if len(keys) > limits.PAGE_SCAN_MAX:
        return Rows(engine, tenant_no, "facts_in", scope_no.to_bytes(4, "big"))
    return Among([key[-16:] for key, _ in keys])


def _wanted(engine: "Engine", ground: Ground, request: FactsRequest) -> Callable[[Fact], bool]:
    """The filters of one request; a filter not set is not tested."""
    tests: list[Callable[[Fact], bool]] = []
    roots: dict[tuple[str, str], str | None] = {}

    def root_of(text: str, scope: str) -> str | None:
        place = (text, scope)
        if place not in roots:
            number = next((p.number for p in ground.reach.places if p.path == scope), None)
            meaning = None
            if ground.tenant_no is not None and number is not None:
                meaning = meaning_of(engine, ground.tenant_no, text, number)
            roots[place] = None if meaning is None else meaning.root
        return roots[place]

    def means(node: Node, text: str, scope: str) -> bool:
        if isinstance(node, LiteralValue):
            return _is_said(node.value, text)
        if node.id == text:
            return True
        return isinstance(node, EntityRef) and (
            root_of(text, scope) is not None and root_of(node.id, scope) == root_of(text, scope)
        )

    if request.subject is not None:
        subject = request.subject
        tests.append(lambda fact: means(fact.subject, subject, fact.scope))
    if request.predicate is not None:
        tests.append(lambda fact: fact.predicate == request.predicate)
    if request.object is not None:
        wanted = request.object
        tests.append(lambda fact: means(fact.object, wanted, fact.scope))
    if request.polarity is not None:
        tests.append(lambda fact: fact.polarity == request.polarity)
    if request.min_confidence is not None:
        least = request.min_confidence
        tests.append(lambda fact: fact.confidence >= least)
    return lambda fact: all(test(fact) for test in tests)


def _is_said(value: Any, text: str) -> bool:
    """Whether a parameter means a literal: 200 is 200.0, and Paris is paris."""
    if isinstance(value, bool) or value is None:
        return text.casefold() == str(value).casefold()
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return " ".join(str(value).split()).casefold() == " ".join(text.split()).casefold()
