"""What happened, in which stretches?  Episodes of a scope (001 §7.2, §8.7.2)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from engine import policy
from engine.layers.lookup import find_record
from engine.layers.pages import LayerRequest, in_scopes, read_page, survey
from engine.temporal import Answer, interval, zone_of
from schemas.caller import Caller
from schemas.intervals import Interval
from schemas.layers import Episode
from schemas.reads import EpisodePage
from schemas.temporal import During

if TYPE_CHECKING:
    from engine.engine import Engine


class EpisodesRequest(LayerRequest, frozen=True, kw_only=True):
    """A page of episodes. `overlapping` is about when they took place."""

    actor: str | None = None
    session: str | None = None
    overlapping: During | None = None
    with_causal_chain: bool = True


def list_episodes(engine: "Engine", caller: Caller, request: EpisodesRequest) -> Answer:
    """A page of a scope's episodes; one that is still open is as it stands at the moment asked."""
    policy.require_view(engine, caller, request.scope, request.view)
    ground = survey(engine, caller, request)
    found = read_page(
        engine,
        caller,
        ground,
        request,
        "episodes",
        sources=in_scopes(engine, ground.tenant_no or 0, "episodes", ground.reach.numbers),
        wanted=_wanted(request),
    )
    items = found.items
    if not request.with_causal_chain:
        items = [msgspec.structs.replace(episode, causal_chain=[]) for episode in items]
    page = EpisodePage(
        items=items,
        next_cursor=found.next_cursor,
        has_more=found.has_more,
        scopes_traversed=found.scopes_traversed,
    )
    return Answer(page, ground.window.warnings)


def get_episode(
    engine: "Engine", caller: Caller, episode_id: str, as_of: str | None = None
) -> Episode:
    """One episode by its id, as it is known, or was known at a moment."""
    policy.require(engine, caller, "scope.read.local")
    found = find_record(engine, caller, "episodes", episode_id, as_of)
    assert isinstance(found, Episode), "the layer's own shape"
    return found


def _wanted(request: EpisodesRequest) -> Callable[[Episode], bool]:
    """The filters of one request; a filter not set is not tested."""
    tests: list[Callable[[Episode], bool]] = []
    if request.actor is not None:
        tests.append(lambda episode: request.actor in episode.actors_involved)
    if request.session is not None:
        tests.append(lambda episode: request.session == episode.session)
    if request.overlapping is not None:
        zone = zone_of(request.temporal.timezone)
        span = interval(request.overlapping, "overlapping", zone)
        tests.append(lambda episode: _took_place_in(episode, span))
    return lambda episode: all(test(episode) for test in tests)


def _took_place_in(episode: Episode, span: Interval) -> bool:
    """From its first event to its last, both of which belong to it."""
    return (span.end is None or episode.started_at < span.end) and (
        span.start is None or span.start <= episode.ended_at
    )
