"""Which episode does an event belong to, and which does it end?  (001 §7.2)

A session holds events together, a pause or a change of topic parts them, `preceded_by` joins them
whatever the pause. A scope has one open episode a session, and beside each at most one for events
told late; so a late event does not break up what is going on.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Final, Literal

from projectors.base import Change, Drop, Put, View
from projectors.episodes.compose import compose
from projectors.episodes.keys import (
    due_after,
    due_key,
    gap_us,
    is_idle,
    member_key,
    scope_key,
    spans_key,
)
from projectors.episodes.rows import End, Ending, Member, Open, OpenIn, Sessions, Spans
from projectors.episodes.shapes import ASIDE, MAIN, Choice, Signs
from projectors.records import create, moved
from projectors.rows import Mark
from schemas import limits
from schemas.entry import Entry
from schemas.ids import derive_id, format_id, parse_id
from schemas.layers import Episode
from schemas.times import from_us, to_us

Boundary = Literal["full", "later", "earlier", "shift"]

_CLOCK_LOOKS: Final = 2
_FOREIGN: Final = 0.08
_RELATED: Final = 0.25


def take(entry: Entry, signs: Signs, view: View) -> Iterator[Change]:
    """Add an event to its episode, opening one when there is none for it."""
    places: OpenIn = view.get("episode_scopes", scope_key(signs.scope_no)) or OpenIn()
    choice = _choose(signs, places, view)
    if choice.episode is not None and choice.state is not None:
        return _extend(entry, signs, choice.episode, choice.state)
    return _open(entry, signs, choice, places, view)


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def _choose(signs: Signs, places: OpenIn, view: View) -> Choice:
    named = _named(signs, view)
    if named is not None:
        episode, state = named
        if state is not None and state.count < limits.EPISODE_EVENTS_MAX:
            return Choice(episode=episode, state=state)
        return _successor(signs, places, episode, state)
    return _by_slot(signs, places, view)


def _successor(signs: Signs, places: OpenIn, episode: bytes, state: Open | None) -> Choice:
    """A new episode after one that takes no more events."""
    if state is not None:
        ends = (episode, *_displaced(places, state.slot, episode))
        return Choice(slot=state.slot, ends=ends, predecessor=episode)
    main, aside = _slot(MAIN, signs.session), _slot(ASIDE, signs.session)
    slot = aside if main in places.slots else main
    return Choice(slot=slot, ends=_displaced(places, slot), predecessor=episode)


def _named(signs: Signs, view: View) -> tuple[bytes, Open | None] | None:
    """The episode of an event that this one is said to follow, with its state while it is open."""
    for event_id in signs.preceded_by:
        raw = parse_id("evt", event_id)
        row = view.get("derives", raw) if raw is not None else None
        found = (parse_id("ep", record_id) for record_id in (row.ids if row is not None else ()))
        for episode in filter(None, found):
            state: Open | None = view.get("episode_open", episode)
            if state is not None:
                if state.scope_no == signs.scope_no:
                    return episode, state
            elif _lives_in(view, signs.scope_no, episode):
                return episode, None
    return None


def _lives_in(view: View, scope_no: int, episode: bytes) -> bool:
    return view.get("episodes_in", scope_key(scope_no) + episode) is not None


def _by_slot(signs: Signs, places: OpenIn, view: View) -> Choice:
    """The open episode of the session, unless a boundary lies between it and the event."""
    main, aside = _slot(MAIN, signs.session), _slot(ASIDE, signs.session)
    episode = places.slots.get(main)
    state: Open | None = view.get("episode_open", episode) if episode is not None else None
    if episode is None or state is None:
        late = _late(signs, places, view)
        if late is not None:
            return _beside(signs, places, aside, late, view)
        return Choice(slot=main, predecessor=_session_before(signs, view))
    boundary = _boundary(state, signs)
    if boundary is None:
        late = _late(signs, places, view) if signs.member.observed_us < state.started_us else None
        if late is None:
            return Choice(episode=episode, state=state)
        return _beside(signs, places, aside, late, view)
    if boundary == "earlier":
        return _beside(signs, places, aside, _late(signs, places, view), view)
    before = episode if _goes_on(boundary, state, signs) else _late(signs, places, view)
    return Choice(slot=main, ends=(episode,), predecessor=before)


def _goes_on(boundary: Boundary, state: Open, signs: Signs) -> bool:
    """Whether what comes after a boundary still belongs to what was before it."""
    if boundary == "later":
        return signs.session is not None or _similarity(signs.topics, state.topics) >= _RELATED
    return boundary == "full"


def _beside(signs: Signs, places: OpenIn, slot: str, late: bytes | None, view: View) -> Choice:
    """An event told late: into the episode of such events, or into a new one beside the others."""
    episode = places.slots.get(slot)
    state: Open | None = view.get("episode_open", episode) if episode is not None else None
    if episode is not None and state is not None and _boundary(state, signs) is None:
        return Choice(episode=episode, state=state)
    return Choice(slot=slot, ends=_displaced(places, slot), predecessor=late)


def _displaced(places: OpenIn, slot: str, but: bytes | None = None) -> tuple[bytes, ...]:
    """Who holds a slot that is to be given to another."""
    episode = places.slots.get(slot)
    return () if episode is None or episode == but else (episode,)


def _slot(kind: str, session: str | None) -> str:
    return kind if session is None else f"{kind}{kind}{session}"


def _session_before(signs: Signs, view: View) -> bytes | None:
    """The sealed episode of the same session, if it had one."""
    if signs.session is None:
        return None
    ended: Sessions | None = view.get("episode_sessions", scope_key(signs.scope_no))
    return ended.last.get(signs.session) if ended is not None else None


def _late(signs: Signs, places: OpenIn, view: View) -> bytes | None:
    """The sealed episode during which an event without a session happened."""
    at_us, until_us = signs.member.observed_us, places.sealed_until_us
    if signs.session is not None or until_us is None or at_us > until_us:
        return None
    key = spans_key(signs.scope_no, from_us(at_us).toordinal())
    day: Spans | None = view.get("episode_spans", key)
    spans = day.spans if day is not None else []
    inside = (span.episode for span in reversed(spans) if span.started_us <= at_us <= span.ended_us)
    return next(inside, None)


# ── boundaries ───────────────────────────────────────────────────────────────────────────────


def _boundary(state: Open, signs: Signs) -> Boundary | None:
    """What parts an event from an open episode; None when it belongs there."""
    if state.count >= limits.EPISODE_EVENTS_MAX:
        return "full"
    gap, observed_us = gap_us(state.session), signs.member.observed_us
    if observed_us - state.ended_us >= gap:
        return "later"
    if state.started_us - observed_us >= gap:
        return "earlier"
    patience = limits.EPISODE_DRIFT_EVENTS * (1 if state.session is None else 2)
    # The events before spoke of something else already, and this one goes on with that.
    has_turned = state.drifting >= patience and _is_foreign(state, signs.topics)
    if has_turned and _similarity(signs.topics, state.drift) >= _RELATED:
        return "shift"
    return None


def _is_foreign(state: Open, topics: tuple[str, ...]) -> bool:
    """Whether an event is about something, and that is nothing the episode is about."""
    enough = len(topics) >= limits.EPISODE_TOPICS_MIN and state.count > state.drifting + 1
    return enough and _similarity(topics, state.topics) < _FOREIGN


def _similarity(topics: tuple[str, ...], counts: dict[str, int]) -> float:
    """The cosine of an event's topics and counted ones."""
    shared = sum(counts.get(topic, 0) for topic in topics)
    if not shared:
        return 0.0
    return shared / sqrt(len(topics) * sum(count * count for count in counts.values()))


# ── changes ──────────────────────────────────────────────────────────────────────────────────


def _open(
    entry: Entry, signs: Signs, choice: Choice, places: OpenIn, view: View
) -> Iterator[Change]:
    member = signs.member
    record_id = derive_id("ep", entry.id, 0)
    observed_at = from_us(member.observed_us)
    before = choice.predecessor
    opened = Episode(
        id=record_id,
        scope=entry.scope,
        name="",
        summary="",
        events=[],
        started_at=observed_at,
        ended_at=observed_at,
        valid_from=observed_at,
        valid_to=None,
        recorded_from=entry.recorded_at,
        recorded_to=None,
        actors_involved=[],
        centrality_score=0.0,
        causal_chain=[],
        supports=[],
        sealed=False,
        session=signs.session,
        causal_predecessor=format_id("ep", before) if before is not None else None,
        partial=True,
        partial_reason="episode_open",
    )
    raw = parse_id("ep", record_id)
    assert raw is not None, "an id just made"
    yield from create("episodes", signs.scope_no, compose(opened, [member]), [entry.event_id])
    due = due_after(member.recorded_us, signs.session)
    state = Open(
        scope_no=signs.scope_no,
        slot=choice.slot,
        session=signs.session,
        count=1,
        live=1,
        started_us=member.observed_us,
        ended_us=member.observed_us,
        recorded_us=member.recorded_us,
        due=due,
        topics=dict.fromkeys(member.topics, 1),
    )
    yield Put(table="episode_events", key=member_key(raw, 0), value=member)
    yield Put(table="episode_open", key=raw, value=state)
    yield Put(table="episode_due", key=due_key(due, raw), value=Mark())
    yield from _take_slot(entry, raw, choice, places, view)
    yield moved("episodes", entry.offset, [record_id])


def _take_slot(
    entry: Entry, episode: bytes, choice: Choice, places: OpenIn, view: View
) -> Iterator[Change]:
    """Put a new episode in its slot; end what it displaces, and what the scope has no room for."""
    ended = {raw: choice.predecessor == raw for raw in choice.ends}
    if choice.predecessor is not None:
        ended[choice.predecessor] = True
    slots = {slot: raw for slot, raw in places.slots.items() if raw not in ended}
    # Like the hand of a clock: each opening looks at the two longest unlooked at, ends what is
    # idle, and turns past what is not. So a scope's sessions are kept in check by `get`s alone.
    for slot in list(slots)[:_CLOCK_LOOKS]:
        raw = slots.pop(slot)
        state: Open | None = view.get("episode_open", raw)
        if state is None or is_idle(state, to_us(entry.recorded_at)):
            ended[raw] = False
        else:
            slots[slot] = raw
    while len(slots) >= limits.EPISODES_OPEN_MAX:
        ended[slots.pop(next(iter(slots)))] = False
    slots[choice.slot] = episode
    value = OpenIn(slots=slots, sealed_until_us=places.sealed_until_us)
    yield Put(table="episode_scopes", key=scope_key(entry.scope_no), value=value)
    if ended:
        ends = [End(raw, episode if follows else None) for raw, follows in ended.items()]
        yield Put(table="episodes_ending", key=b"", value=Ending(entry.offset, ends))


def _extend(entry: Entry, signs: Signs, episode: bytes, state: Open) -> Iterator[Change]:
    member, record_id = signs.member, format_id("ep", episode)
    due = due_after(member.recorded_us, state.session)
    if due != state.due:
        yield Drop(table="episode_due", key=due_key(state.due, episode))
        yield Put(table="episode_due", key=due_key(due, episode), value=Mark())
    yield Put(table="episode_open", key=episode, value=_after(state, member, due))
    yield Put(
        table="episode_events",
        key=member_key(episode, state.count),
        value=member,
        record_id=record_id,
        supports=(entry.event_id,),
    )
    yield moved("episodes", entry.offset, [record_id])


def _after(state: Open, member: Member, due: int) -> Open:
    """The state of an episode after one more event."""
    topics, drift, drifting = state.topics, state.drift, state.drifting
    if _is_foreign(state, member.topics):
        # Kept apart from what the episode is about, or the next such event would seem at home.
        drift, drifting = _counted(drift, member.topics), drifting + 1
    elif len(member.topics) >= limits.EPISODE_TOPICS_MIN:
        topics, drift, drifting = _counted(topics, member.topics), {}, 0
    return Open(
        scope_no=state.scope_no,
        slot=state.slot,
        session=state.session,
        count=state.count + 1,
        live=state.live + 1,
        started_us=min(state.started_us, member.observed_us),
        ended_us=max(state.ended_us, member.observed_us),
        recorded_us=member.recorded_us,
        due=due,
        topics=topics,
        drift=drift,
        drifting=drifting,
    )


def _counted(counts: dict[str, int], topics: tuple[str, ...]) -> dict[str, int]:
    """Counts with these topics added, the rarest and stalest left out when there are too many."""
    counted = dict(counts)
    for topic in topics:
        counted[topic] = counted.pop(topic, 0) + 1
    if len(counted) <= limits.EPISODE_TOPICS_MAX * 3 // 2:
        # Some slack, so that not every event has to rank them.
        return counted
    freshest = reversed(list(counted))
    ranked = sorted(freshest, key=lambda topic: -counted[topic])
    kept = set(ranked[: limits.EPISODE_TOPICS_MAX])
    return {topic: count for topic, count in counted.items() if topic in kept}
