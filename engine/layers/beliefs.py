"""What is believed, how surely, and how did that come about?  (001 §7.4, §8.7.5)"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from engine import policy
from engine.layers.lookup import find_record, locate, missing
from engine.layers.naming import meaning_of
from engine.layers.pages import (
    Ground,
    LayerRequest,
    Rows,
    Source,
    in_scopes,
    read_page,
    survey,
)
from engine.records import get_versions, raw_id
from engine.temporal import Answer, moment
from projectors.beliefs.keys import identity_key
from projectors.beliefs.rows import Deleted, Identity
from projectors.records import name_key
from schemas import limits
from schemas.caller import Caller
from schemas.errors import NotFound, ResourceDeleted
from schemas.layers import Belief, Stance
from schemas.reads import BeliefHistory, BeliefPage
from schemas.times import to_us

if TYPE_CHECKING:
    from engine.engine import Engine


class BeliefsRequest(LayerRequest, frozen=True, kw_only=True):
    """A page of beliefs. `about` is an id, an actor or a name: what a claim is about, or speaks of.

    A claim whose words or subject have changed is there only when asked for (001 §7.4.1).
    """

    about: str | None = None
    predicate: str | None = None
    stance: Stance | None = None
    min_confidence: float | None = None
    include_deprecated: bool = False


class HistoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that was ever believed under one id."""

    belief_id: str
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def list_beliefs(engine: "Engine", caller: Caller, request: BeliefsRequest) -> Answer:
    """A page of a scope's beliefs; what fell below the floor is in none (001 §18.2.16)."""
    policy.require_view(engine, caller, request.scope, request.view)
    ground = survey(engine, caller, request)
    found = read_page(
        engine,
        caller,
        ground,
        request,
        "beliefs",
        sources=_sources(engine, ground, request),
        wanted=_wanted(engine, ground, request),
    )
    page = BeliefPage(
        items=found.items,
        next_cursor=found.next_cursor,
        has_more=found.has_more,
        scopes_traversed=found.scopes_traversed,
    )
    return Answer(page, ground.window.warnings)


def get_belief(
    engine: "Engine", caller: Caller, belief_id: str, as_of: str | None = None
) -> Belief:
    """One belief by its id; one that was deleted is gone, and was there before (001 §18.2.16)."""
    policy.require(engine, caller, "scope.read.local")
    _require_kept(engine, caller, belief_id, None if as_of is None else moment(as_of, "as_of"))
    found = find_record(engine, caller, "beliefs", belief_id, as_of)
    assert isinstance(found, Belief), "the layer's own shape"
    return found


def get_history(engine: "Engine", caller: Caller, request: HistoryRequest) -> BeliefHistory:
    """How a belief came to be what it is: every version, newest first."""
    policy.require(engine, caller, "scope.read.local")
    belief_id = request.belief_id
    _require_kept(engine, caller, belief_id, None)
    tenant_no, raw, latest = locate(engine, caller, "beliefs", belief_id)
    assert isinstance(latest, Belief), "the layer's own shape"
    question = (caller.tenant, "history", belief_id)
    left = get_versions(engine, tenant_no, "beliefs", raw)
    if request.cursor is not None:
        last = int.from_bytes(engine.cursors.read(request.cursor, *question), "big")
        left = [version for version in left if version.version < last]
    items = left[: request.limit]
    more = len(left) > len(items)
    cursor = None
    if more:
        cursor = engine.cursors.make(items[-1].version.to_bytes(4, "big"), *question)
    beliefs = [version for version in items if isinstance(version, Belief)]
    return BeliefHistory(
        belief_id=belief_id,
        items=beliefs,
        current=latest,
        versions=[belief for belief in beliefs[::-1] if belief.version != latest.version],
        revision_count=latest.revision_count,
        next_cursor=cursor,
        has_more=more,
    )


def _require_kept(engine: "Engine", caller: Caller, belief_id: str, as_of: datetime | None) -> None:
    """Say that a belief was deleted, to those who may know that it was there."""
    raw, tenant_no = raw_id("beliefs", belief_id), engine.tenant_no(caller)
    mark = None
    if raw is not None and tenant_no is not None:
        mark = deletion(engine, tenant_no, raw)
    if mark is None or raw is None or (as_of is not None and as_of < mark.at):
        return
    try:
        locate(engine, caller, "beliefs", belief_id)
    except NotFound:
        if not mark.forgotten:
            raise missing("beliefs", belief_id) from None
    raise ResourceDeleted(id=belief_id, deleted_at=mark.at)


def deletion(engine: "Engine", tenant_no: int, raw: bytes) -> Deleted | None:
    """That a belief was deleted, and when."""
    if "beliefs_deleted" not in engine.staged.owner:
        return None
    mark: Deleted | None = engine.staged.get(tenant_no, "beliefs_deleted", raw)
    return mark


# ── filters ──────────────────────────────────────────────────────────────────────────────────


def _sources(engine: "Engine", ground: Ground, request: BeliefsRequest) -> list[Source]:
    """The beliefs of the scopes, or only those that speak of what is named there."""
    tenant_no, numbers = ground.tenant_no, ground.reach.numbers
    if tenant_no is None:
        return []
    if request.about is None:
        return in_scopes(engine, tenant_no, "beliefs", numbers)
    sources: list[Source] = []
    for number in numbers:
        meaning = meaning_of(engine, tenant_no, request.about, number)
        root = request.about if meaning is None else meaning.root
        for one in _known_as(engine, ground, number, root):
            prefix = number.to_bytes(4, "big") + name_key(one)
            sources.append(Rows(engine, tenant_no, "beliefs_about", prefix))
    return sources


def _known_as(engine: "Engine", ground: Ground, scope_no: int, root: str) -> list[str]:
    """A thing, and what it was known to be the same as: there is what is believed of either."""
    if ground.tenant_no is None or "belief_identity" not in engine.staged.owner:
        return [root]
    key = identity_key(scope_no, root)
    row: Identity | None = engine.staged.get(ground.tenant_no, "belief_identity", key)
    known = root if row is None else row.at(to_us(ground.window.known_at))
    return list(dict.fromkeys((root, known)))


def _wanted(engine: "Engine", ground: Ground, request: BeliefsRequest) -> Callable[[Belief], bool]:
    """The filters of one request; a filter not set is not tested."""
    tests: list[Callable[[Belief], bool]] = []
    if request.predicate is not None:
        tests.append(lambda belief: belief.claim.predicate == request.predicate)
    if request.stance is not None:
        tests.append(lambda belief: belief.stance == request.stance)
    elif not request.include_deprecated:
        tests.append(lambda belief: belief.stance != "deprecated")
    if request.min_confidence is not None:
        least = request.min_confidence
        tests.append(lambda belief: belief.confidence >= least)

    def is_kept(belief: Belief) -> bool:
        raw = raw_id("beliefs", belief.id)
        if belief.recorded_to is None or raw is None or ground.tenant_no is None:
            return True
        mark = deletion(engine, ground.tenant_no, raw)
        return mark is None or ground.window.known_at < mark.at

    return lambda belief: all(test(belief) for test in tests) and is_kept(belief)
