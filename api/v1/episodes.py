"""Episodes: a page of a scope's, or one by its id (001 §8.7.2)."""

from api.endpoint import STABLE, Call, Endpoint, Reply
from api.v1.temporal import READ_ERRORS, AsOfQuery, LayerQuery, request_of, warned
from engine.layers.episodes import EpisodesRequest, get_episode, list_episodes
from engine.temporal import window_text
from schemas.errors import InvalidTimestamp, NotFound, ResourceDeleted
from schemas.layers import Episode
from schemas.reads import EpisodePage


class EpisodesQuery(LayerQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a page of episodes."""

    actor: str | None = None
    session: str | None = None
    overlapping: str | None = None
    with_causal_chain: bool = True


def get_episodes(call: Call) -> Reply:
    """A page of a scope's episodes."""
    text = call.query.overlapping
    overlapping = None if text is None else window_text(text, "overlapping")
    request = request_of(EpisodesRequest, call.query, overlapping=overlapping)
    answer = list_episodes(call.engine, call.caller, request)
    return Reply(answer.value, headers=warned(answer))


def get_one(call: Call) -> Reply:
    """One episode."""
    episode_id, as_of = call.path["episode_id"], call.query.as_of
    return Reply(get_episode(call.engine, call.caller, episode_id, as_of))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/episodes",
        get_episodes,
        "A page of a scope's episodes, newest or oldest first.",
        capability="scope.read.local",
        tier=STABLE,
        query=EpisodesQuery,
        response=EpisodePage,
        errors=READ_ERRORS,
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/episodes/{episode_id}",
        get_one,
        "One episode by its id, as it is known or was known at a moment.",
        capability="scope.read.local",
        tier=STABLE,
        query=AsOfQuery,
        response=Episode,
        errors=(NotFound, ResourceDeleted, InvalidTimestamp),
        off_loop=True,
    ),
)
