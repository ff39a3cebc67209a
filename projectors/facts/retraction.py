"""What is left when an event no longer counts?

Every fact that rested on it alone is closed, every other loses one support and is weighed anew, and
what it had displaced comes back: the line closes over the gap, a fact that was closed for it is
known again, and so is a claim that did not get past it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from projectors.base import Change, View
from projectors.facts.keys import raw_of
from projectors.facts.rows import Rival
from projectors.facts.rulings import policy_of, rule
from projectors.facts.sheet import Draft, Sheet, own_end, own_start, segment_of, weigh
from schemas.ids import parse_id

replace: Final = msgspec.structs.replace


def retract(view: View, event_id: str, at: datetime, offset: int = 0) -> Iterator[Change]:
    """The changes by which an event stops supporting facts, as known from `at` on."""
    raw = parse_id("evt", event_id)
    row = None if raw is None else view.get("derives", raw)
    if row is None:
        return
    sheet = Sheet(view, at)
    facts = [sheet.draft(raw_of(fact)) for fact in row.ids if fact.startswith("fact_")]
    # First the event falls silent everywhere, so that nothing comes back on its word.
    touched = [draft for draft in facts if silence(draft, event_id)]
    for draft in touched:
        withdraw(sheet, draft)
    yield from sheet.changes(offset)


def silence(draft: Draft, event_id: str) -> bool:
    """Take one event's word from a fact; False when it had none."""
    kept = [telling for telling in draft.basis.tellings if telling.event != event_id]
    is_touched = len(kept) < len(draft.basis.tellings)
    if is_touched:
        draft.basis = replace(draft.basis, tellings=kept)
    return is_touched


def withdraw(sheet: Sheet, draft: Draft) -> None:
    """Let a fact that lost a support stand on the others, or fall."""
    is_known = draft.is_known(sheet.at)
    if _is_told(sheet, draft):
        # What is history already stays as it was told then.
        if is_known:
            _reconsider(sheet, draft)
        return
    if is_known:
        sheet.close(draft, None)
        _undo(sheet, draft)
    for one in draft.basis.rivals:
        if one.value is None and sheet.view.get("facts", one.fact) is not None:
            _yield(sheet, sheet.draft(one.fact), one)


def _is_told(sheet: Sheet, draft: Draft) -> bool:
    """Whether an event that has not lapsed still speaks for a fact."""
    ends = (telling.expires_us for telling in draft.basis.tellings)
    return any(end is None or end > sheet.now_us for end in ends)


def _reconsider(sheet: Sheet, draft: Draft) -> None:
    """A fact as those tell it who still do."""
    weigh(draft)
    start_us, ends_us = own_start(draft.basis.tellings), own_end(draft.basis.tellings)
    in_place = sheet.holding(draft.basis, start_us)
    is_taken = any(one.start_us == start_us for one in in_place)
    if is_taken or (ends_us is not None and ends_us <= start_us):
        start_us = draft.basis.start_us
    sheet.move(draft, start_us)


def _undo(sheet: Sheet, gone: Draft) -> None:
    """What a closed fact had displaced is as it would be without it."""
    before = gone.after.supersedes
    while before is not None and sheet.view.get("facts", raw_of(before)) is not None:
        displaced = sheet.draft(raw_of(before))
        if displaced.after.superseded_by != gone.after.id or _return(sheet, displaced):
            break
        before = displaced.after.supersedes
    for one in reversed(gone.basis.rivals):
        if one.value is not None and _release(sheet, one):
            break


def _return(sheet: Sheet, draft: Draft) -> bool:
    """Let a closed fact be known again, if someone still tells it and nothing is in its place."""
    if draft.is_known(sheet.at):
        return True
    if not _is_told(sheet, draft):
        return False
    segment, policy = segment_of(draft), policy_of(sheet.view, draft.after.scope)
    for there in sheet.holding(draft.basis, segment.start_us):
        ruling = rule(policy, there, segment.strength, segment.trust)
        if there.start_us == segment.start_us or ruling != "take":
            return False
    draft.is_closed = False
    draft.after = replace(draft.after, superseded_by=None)
    weigh(draft)
    sheet.lay(draft)
    return True


def _release(sheet: Sheet, one: Rival) -> bool:
    """What a claim could not get past is gone: it stands by itself, or comes back."""
    conflict, draft = sheet.conflict(one.conflict), sheet.draft(one.fact)
    is_back = False
    if conflict.resolution == "unresolved":
        if draft.is_known(sheet.at):
            draft.after = replace(draft.after, partial=False, partial_reason=None)
    elif conflict.resolution == "kept_standing":
        is_back = _return(sheet, draft)
    if is_back or conflict.resolution == "unresolved":
        sheet.conflicts[one.conflict] = replace(conflict, resolution="rival_taken")
    return is_back


def _yield(sheet: Sheet, stands: Draft, one: Rival) -> None:
    """A rival is gone: what stands is no longer disputed by it."""
    conflict = sheet.conflict(one.conflict)
    sheet.conflicts[one.conflict] = replace(conflict, resolution="rival_withdrawn")
    others = [sheet.conflict(other.conflict) for other in stands.basis.rivals]
    is_disputed = any(other.resolution == "unresolved" for other in others)
    if stands.is_known(sheet.at) and stands.after.partial and not is_disputed:
        stands.after = replace(stands.after, partial=False, partial_reason=None)
