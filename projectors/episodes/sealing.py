"""When is an episode over, and what becomes of it then?

It is sealed at compress, by the log's own time: when a later entry has ended it, or when a tick
names it and nothing was heard of it for its gap. A sealed episode's `events` never change; a link
to a successor, or a cancelled event's mark, is another version of the record.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from projectors.base import Change, Close, Drop, Put, View
from projectors.episodes.compose import compose
from projectors.episodes.keys import due_key, is_idle, member_key, members_of, scope_key, spans_key
from projectors.episodes.rows import Ending, Member, Open, OpenIn, Sessions, Span, Spans
from projectors.overlay import Draft
from projectors.records import moved, revise
from projectors.rows import Moved
from schemas import limits
from schemas.entry import Cancel, Directive, Entry, Experience, Tick
from schemas.ids import format_id, parse_id
from schemas.layers import Episode
from schemas.times import from_us, to_us

_DAYS_MAX: Final = 16


def seal(entry: Entry, view: View) -> Iterator[Change]:
    """Seal what this entry ended, or what is due when it is a tick."""
    match entry.body:
        case Experience():
            ending: Ending | None = view.get("episodes_ending", b"")
            if ending is None or ending.offset != entry.offset:
                return
            ends = [(end.episode, end.successor) for end in ending.ends]
        case Directive(command=Tick(due=due)):
            ends = [(raw, None) for raw in _due(due, to_us(entry.recorded_at), view)]
        case _:
            return
    draft = Draft(view)
    sealed: list[str] = []
    for raw, successor in ends:
        changes = list(_end(entry.recorded_at, raw, successor, view, draft))
        if changes:
            sealed.append(format_id("ep", raw))
            yield from changes
    yield from draft.changes()
    if sealed:
        yield moved("episodes", entry.offset, [*_moved_before(entry, view), *sealed])


def _due(named: list[str], at_us: int, view: View) -> Iterator[bytes]:
    """Those of the named records that are open episodes, and idle by the log's time."""
    for record_id in dict.fromkeys(named):
        raw = parse_id("ep", record_id)
        state: Open | None = view.get("episode_open", raw) if raw is not None else None
        if raw is not None and state is not None and is_idle(state, at_us):
            yield raw


def _moved_before(entry: Entry, view: View) -> list[str]:
    row: Moved | None = view.get("episodes_moved", b"")
    return row.ids if row is not None and row.offset == entry.offset else []


def _end(
    at: datetime, raw: bytes, successor: bytes | None, view: View, draft: Draft
) -> Iterator[Change]:
    record: Episode | None = view.get("episodes", raw)
    if record is None or record.recorded_to is not None:
        return
    after = record.causal_successor
    if after is None and successor is not None:
        after = format_id("ep", successor)
    state: Open | None = view.get("episode_open", raw)
    if state is None:
        if after != record.causal_successor:
            yield from _again(record, at, causal_successor=after)
        return
    sealed = record
    if state.count > 1:  # of its first event alone the record says all already
        members = members_of(view, raw, state.count)
        sealed = compose(record, [member for member in members if member.removed_us is None])
    yield from _again(
        record,
        at,
        composed=sealed,
        causal_successor=after,
        sealed=True,
        partial=False,
        partial_reason=None,
    )
    yield from _leave(raw, state)
    free(raw, state, draft)
    _remember(raw, state, draft)


def _again(
    before: Episode, at: datetime, *, composed: Episode | None = None, **fields: object
) -> Iterator[Change]:
    """Another version of an episode. Its events point to it already, each by its own row."""
    after = msgspec.structs.replace(
        composed or before, version=before.version + 1, recorded_from=at, **fields
    )
    return revise("episodes", before, after, at, [])


def _leave(raw: bytes, state: Open) -> Iterator[Change]:
    yield Drop(table="episode_open", key=raw)
    yield Drop(table="episode_due", key=due_key(state.due, raw))


def free(raw: bytes, state: Open, draft: Draft) -> None:
    """Give back the slot, if it is still this episode's."""
    key = scope_key(state.scope_no)
    places = draft.get("episode_scopes", key)
    assert isinstance(places, OpenIn), "an open episode stands in its scope"
    until_us = places.sealed_until_us
    if state.session is None:
        until_us = state.ended_us if until_us is None else max(until_us, state.ended_us)
    slots = places.slots
    if slots.get(state.slot) == raw:
        slots = {slot: held for slot, held in slots.items() if held != raw}
    if slots is not places.slots or until_us != places.sealed_until_us:
        draft.put("episode_scopes", key, OpenIn(slots, until_us))


def _remember(raw: bytes, state: Open, draft: Draft) -> None:
    """Let late events find their way: by session, or by the days it took place on."""
    if state.session is not None:
        key = scope_key(state.scope_no)
        known = draft.get("episode_sessions", key)
        last = dict(known.last) if isinstance(known, Sessions) else {}
        last.pop(state.session, None)
        last[state.session] = raw
        if len(last) > limits.EPISODE_SESSIONS_KEPT:
            del last[next(iter(last))]
        draft.put("episode_sessions", key, Sessions(last))
        return
    first, final = from_us(state.started_us).toordinal(), from_us(state.ended_us).toordinal()
    for day in range(max(first, final - _DAYS_MAX + 1), final + 1):
        key = spans_key(state.scope_no, day)
        known = draft.get("episode_spans", key)
        spans = known.spans if isinstance(known, Spans) else []
        span = Span(state.started_us, state.ended_us, raw)
        draft.put("episode_spans", key, Spans([*spans, span][-limits.EPISODE_SPANS_KEPT :]))


# ── withdrawing an event ─────────────────────────────────────────────────────────────────────


def withdraw(entry: Entry, cancel: Cancel, view: View) -> Iterator[Change]:
    """Take a cancelled event out of its episode; out of a sealed one only what speaks of it."""
    event = parse_id("evt", cancel.event_id)
    row = view.get("derives", event) if event is not None else None
    for record_id in row.ids if row is not None else ():
        raw = parse_id("ep", record_id)
        record: Episode | None = view.get("episodes", raw) if raw is not None else None
        if raw is not None and record is not None and record.recorded_to is None:
            changes = list(_withdrawn(entry, raw, event, record, view))
            yield from changes
            if changes:
                yield moved("episodes", entry.offset, [record_id])


def _withdrawn(
    entry: Entry, raw: bytes, event: bytes | None, record: Episode, view: View
) -> Iterator[Change]:
    state: Open | None = view.get("episode_open", raw)
    members = members_of(view, raw, limits.EPISODE_EVENTS_MAX if state is None else state.count)
    found = [at for at, member in enumerate(members) if member.event == event]
    if not found or members[found[0]].removed_us is not None:
        return
    at = found[0]
    gone = msgspec.structs.replace(members[at], removed_us=to_us(entry.recorded_at))
    yield Put(table="episode_events", key=member_key(raw, at), value=gone)
    left = [member for member in members if member.removed_us is None and member.event != event]
    if not left:
        yield Close(table="episodes", key=raw, recorded_to=entry.recorded_at)
        if state is not None:
            draft = Draft(view)
            yield from _leave(raw, state)
            free(raw, state, draft)
            yield from draft.changes()
    elif state is not None:
        yield Put(table="episode_open", key=raw, value=without(state, left))
    else:
        yield from _again(
            record,
            entry.recorded_at,
            composed=compose(record, left),
            events=record.events,
            excluded=[*record.excluded, format_id("evt", gone.event)],
        )


def without(state: Open, left: list[Member]) -> Open:
    """The state of an open episode that lost some of its events."""
    return msgspec.structs.replace(
        state,
        live=len(left),
        started_us=min(member.observed_us for member in left),
        ended_us=max(member.observed_us for member in left),
    )
