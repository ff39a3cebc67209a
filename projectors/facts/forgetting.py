"""What is left when facts are forgotten?  Neither they nor any version of them (001 §8.5, §11).

Like a retraction, but for what was closed or is history too: a forgotten fact gives back its place,
what it had displaced returns, and nothing that stays leads to it.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from projectors.base import Change, Drop, View
from projectors.facts.keys import fact_id
from projectors.facts.retraction import silence, withdraw
from projectors.facts.rows import Basis
from projectors.facts.sheet import Draft, Sheet
from projectors.records import fact_about_key, moved, name_key, past_key, scope_row_key
from schemas.entry import Entry, Forget, ForgottenEvent, KeptFact
from schemas.ids import parse_id, raw_of
from schemas.layers import Fact, LiteralValue

replace: Final = msgspec.structs.replace
_decode_basis: Final = msgspec.msgpack.Decoder(Basis).decode
_REDACTED: Final = "supporting_evidence_redacted"


def forget(entry: Entry, command: Forget, view: View) -> Iterator[Change]:
    """The changes by which facts, and events as their supports, are forgotten."""
    sheet = Sheet(view, entry.recorded_at)
    gone = {draft.raw: draft for draft in _named(sheet, command)}
    weakened = []
    kept = {raw_of("fact", one.fact.id) for one in command.kept}
    for event in command.events:
        for draft in _told_by(sheet, event):
            if draft.raw in kept:
                continue
            silence(draft, event.event_id)
            if not draft.basis.tellings:
                gone[draft.raw] = draft
            elif draft.raw not in gone:
                weakened.append(draft)
    # First all of them fall silent, so that nothing comes back on a forgotten word.
    for draft in gone.values():
        draft.basis = replace(draft.basis, tellings=[])
    for draft in {draft.raw: draft for draft in weakened}.values():
        if draft.raw not in gone:
            withdraw(sheet, draft)
    for draft in gone.values():
        withdraw(sheet, draft)
        sheet.lift(draft)
        yield from _unlinked(sheet, draft, set(gone))
    for raw in gone:
        del sheet.drafts[raw]
    for one in command.kept:
        _keep(sheet, one)
    ids, superseded = [fact_id(raw) for raw in gone], []
    for change in sheet.changes(entry.offset):
        if change.table == "facts_moved":
            ids = [*change.value.ids, *ids]  # type: ignore[union-attr]
            superseded = change.value.superseded  # type: ignore[union-attr]
        else:
            yield change
    if ids:
        yield moved("facts", entry.offset, ids, superseded)
    for draft in gone.values():
        yield from _rows(view, draft)


def _keep(sheet: Sheet, one: KeptFact) -> None:
    """A fact that others still need outlives its evidence, and says so (001 §11.3, phase 5)."""
    raw = raw_of("fact", one.fact.id)
    if sheet.view.get("facts", raw) is not None:
        draft = sheet.draft(raw)
        if draft.is_known(sheet.at):
            draft.after = replace(draft.after, partial=True, partial_reason=_REDACTED)
        return
    fact = replace(one.fact, partial=True, partial_reason=_REDACTED, version=1)
    draft = sheet.add(fact, _decode_basis(one.basis), one.root)
    if draft.is_known(sheet.at):
        sheet.lay(draft)


def _named(sheet: Sheet, command: Forget) -> Iterator[Draft]:
    for record in command.records:
        raw = parse_id("fact", record.id)
        if raw is not None and sheet.view.get("facts", raw) is not None:
            yield sheet.draft(raw)


def _told_by(sheet: Sheet, event: ForgottenEvent) -> Iterator[Draft]:
    row = sheet.view.get("derives", raw_of("evt", event.event_id))
    for name in dict.fromkeys((*event.derived, *(row.ids if row is not None else ()))):
        raw = parse_id("fact", name)
        if raw is not None and sheet.view.get("facts", raw) is not None:
            yield sheet.draft(raw)


def _unlinked(sheet: Sheet, draft: Draft, gone: set[bytes]) -> Iterator[Change]:
    """Nothing that stays speaks of it: neither who followed it, nor who disagreed with it."""
    known = draft.before or draft.after
    follower = None if known.superseded_by is None else raw_of("fact", known.superseded_by)
    if follower is not None and follower not in gone:
        after = sheet.draft(follower) if sheet.view.get("facts", follower) is not None else None
        if after is not None and after.after.supersedes == known.id:
            after.after = replace(after.after, supersedes=_bridge(sheet, known, gone))
    for rival in (draft.was or draft.basis).rivals:
        yield Drop(table="conflicts", key=rival.conflict)
        sheet.conflicts.pop(rival.conflict, None)
        other = sheet.view.get("facts_basis", rival.fact)
        for line in (draft.basis.line, other.line if other is not None else draft.basis.line):
            yield Drop(table="conflicts_in", key=line[:4] + rival.conflict)
        if rival.fact not in gone and other is not None:
            there = sheet.draft(rival.fact)
            kept = [one for one in there.basis.rivals if one.fact != draft.raw]
            there.basis = replace(there.basis, rivals=kept)


def _bridge(sheet: Sheet, known: Fact, gone: set[bytes]) -> str | None:
    """What a forgotten fact had followed, as far back as is still known."""
    before = known.supersedes
    while before is not None:
        raw = raw_of("fact", before)
        fact: Fact | None = sheet.view.get("facts", raw)
        if raw not in gone or fact is None:
            return None if fact is None else before
        before = fact.supersedes
    return None


def _rows(view: View, draft: Draft) -> Iterator[Change]:
    """Every row of a fact, out."""
    known = draft.before or draft.after
    scope_no = int.from_bytes(draft.basis.line[:4], "big")
    yield Drop(table="facts", key=draft.raw)
    for version in range(1, known.version):
        yield Drop(table="facts_past", key=past_key("facts", known.id, version))
    yield Drop(table="facts_in", key=scope_row_key("facts", scope_no, known.id))
    subject = known.subject
    named = None if isinstance(subject, LiteralValue) else subject.id
    row = None if named is None else view.get("entities", name_key(named))
    root = (named or "") if row is None else row.root
    key = fact_about_key(scope_no, root, known.predicate, draft.raw)
    yield Drop(table="facts_about", key=key)
    yield Drop(table="facts_basis", key=draft.raw)
