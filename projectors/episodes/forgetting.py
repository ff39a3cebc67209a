"""What is left when an episode, or an event of one, is forgotten?

A forgotten episode leaves no row. One that only loses an event is told anew from the others, and
none of its earlier versions stays: they would still say what was forgotten.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from projectors.base import Change, View
from projectors.episodes.compose import compose
from projectors.episodes.keys import due_key, member_key, members_of
from projectors.episodes.rows import Open
from projectors.episodes.sealing import free, without
from projectors.overlay import Draft
from projectors.records import moved, past_key, scope_row_key
from schemas import limits
from schemas.entry import Entry, Forget
from schemas.ids import format_id, parse_id, raw_of
from schemas.layers import Episode


def forget(entry: Entry, command: Forget, view: View) -> Iterator[Change]:
    """The changes by which episodes and events of episodes are forgotten."""
    draft = Draft(view)
    touched: dict[bytes, int] = {}
    for record in command.records:
        raw = parse_id("ep", record.id)
        if raw is not None and draft.get("episodes", raw) is not None:
            _drop(draft, raw, record.scope_no)
            touched[raw] = record.scope_no
    losses: dict[bytes, set[bytes]] = {}
    scopes: dict[bytes, int] = {}
    for event in command.events:
        lost = raw_of("evt", event.event_id)
        row = view.get("derives", lost)
        for name in (*event.derived, *(row.ids if row is not None else ())):
            raw = parse_id("ep", name)
            if raw is not None and raw not in touched:
                losses.setdefault(raw, set()).add(lost)
                scopes[raw] = event.scope_no
    for raw, events in losses.items():
        if _lessen(draft, raw, scopes[raw], events, entry.recorded_at):
            touched[raw] = scopes[raw]
    if touched:
        draft.take([moved("episodes", entry.offset, [format_id("ep", raw) for raw in touched])])
    yield from draft.changes()


def _drop(draft: Draft, raw: bytes, scope_no: int) -> None:
    record: Episode | None = draft.get("episodes", raw)
    assert record is not None, "an episode that is there"
    state: Open | None = draft.get("episode_open", raw)
    count = limits.EPISODE_EVENTS_MAX if state is None else state.count
    for ordinal in range(count):
        if draft.get("episode_events", member_key(raw, ordinal)) is not None:
            draft.drop("episode_events", member_key(raw, ordinal))
    if state is not None:
        draft.drop("episode_open", raw)
        draft.drop("episode_due", due_key(state.due, raw))
        free(raw, state, draft)
    _drop_past(draft, record)
    draft.drop("episodes", raw)
    draft.drop("episodes_in", scope_row_key("episodes", scope_no, record.id))


def _drop_past(draft: Draft, record: Episode) -> None:
    for version in range(1, record.version):
        key = past_key("episodes", record.id, version)
        if draft.get("episodes_past", key) is not None:
            draft.drop("episodes_past", key)


def _lessen(draft: Draft, raw: bytes, scope_no: int, events: set[bytes], at: datetime) -> bool:
    """Take events out of an episode; False when they were not in it."""
    record: Episode | None = draft.get("episodes", raw)
    if record is None:
        return False
    state: Open | None = draft.get("episode_open", raw)
    count = limits.EPISODE_EVENTS_MAX if state is None else state.count
    ordinals = [
        ordinal
        for ordinal in range(count)
        if (row := draft.get("episode_events", member_key(raw, ordinal))) is not None
        and row.event in events
    ]
    if not ordinals:
        return False
    for ordinal in ordinals:
        draft.drop("episode_events", member_key(raw, ordinal))
    members = members_of(draft, raw, count)  # type: ignore[arg-type]
    left = [member for member in members if member.removed_us is None]
    if not left:
        _drop(draft, raw, scope_no)
        return True
    if state is not None:
        draft.put("episode_open", raw, without(state, left))
    _drop_past(draft, record)
    after = msgspec.structs.replace(
        compose(record, left), version=record.version + 1, recorded_from=at
    )
    draft.put("episodes", raw, after)
    return True
