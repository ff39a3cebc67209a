"""What was forgotten, what is held, and what cites what?  Control state of forgetting (001 §11).

Rows are sets keyed by ids and never counts: an erased payload adds nothing on replay, so what a
directive takes away must be the same whether it was ever there.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from projectors.forgets.rows import ForgetRow, GoneRow, HoldRow, RollbackRow
from projectors.rows import Mark
from schemas.entry import (
    Annotation,
    Directive,
    Entry,
    Exclude,
    Experience,
    Forget,
    Include,
    SetHold,
    Unforget,
)
from schemas.ids import parse_id, raw_of


def project(entry: Entry, view: View) -> Iterable[Change]:
    """What one entry says about forgetting, or adds to what would have to be forgotten."""
    body = entry.body
    if isinstance(body, Experience):
        preceded_by = body.envelope.context.preceded_by
        return _cited(entry, preceded_by) if preceded_by else ()
    return _commanded(entry, view)


def _cited(entry: Entry, preceded_by: list[str]) -> Iterator[Change]:
    for event_id in dict.fromkeys(preceded_by):
        raw = parse_id("evt", event_id)
        if raw is not None:
            yield Put(table="cited", key=raw + entry.id, value=Mark())


def _commanded(entry: Entry, view: View) -> Iterator[Change]:
    match entry.body:
        case Annotation(about=about, output=output):
            # What a model writes of a concept says something of every event behind it.
            raw = _concept_of(output) or parse_id("evt", about)
            if raw is not None:
                key = raw + entry.offset.to_bytes(8, "big")
                yield Put(table="annotated", key=key, value=Mark())
        case Directive(command=Forget() as forget):
            yield from _forgotten(entry, forget, view)
        case Directive(command=Unforget() as lifted):
            yield from _lifted(lifted, view)
        case Directive(command=SetHold() as hold):
            key = entry.scope_no.to_bytes(4, "big")
            if hold.held:
                row = HoldRow(
                    path=entry.scope, by=entry.caller, at=entry.recorded_at, reason=hold.reason
                )
                yield Put(table="holds", key=key, value=row)
            else:
                yield Drop(table="holds", key=key)
        case Directive(command=(Exclude() | Include()) as command):
            yield _rolled(entry, command, view)
        case _:
            return


def _forgotten(entry: Entry, forget: Forget, view: View) -> Iterator[Change]:
    key = raw_of("audit", forget.audit_id)
    known: ForgetRow | None = view.get("forgets", key)
    row = ForgetRow(
        audit_id=forget.audit_id,
        cascade=forget.cascade,
        scope=entry.scope,
        by=entry.caller,
        at=entry.recorded_at if known is None else known.at,
        offsets=[*([] if known is None else known.offsets), entry.offset],
        counts=forget.counts or ({} if known is None else known.counts),
    )
    yield Put(table="forgets", key=key, value=row)
    for record in forget.records:
        gone = GoneRow(audit_id=forget.audit_id)
        yield Put(table="gone", key=record_raw(record.id), value=gone)
    if forget.cascade == "derived_only":
        return
    for event in forget.events:
        raw = raw_of("evt", event.event_id)
        for cited in event.cites:
            yield Drop(table="cited", key=raw_of("evt", cited) + raw)
        for offset in event.annotations:
            yield Drop(table="annotated", key=raw + offset.to_bytes(8, "big"))
        for concept, offset in event.told:
            key = raw_of("concept", concept) + offset.to_bytes(8, "big")
            yield Drop(table="annotated", key=key)


def _concept_of(output: dict[str, Any]) -> bytes | None:
    name = output.get("concept_id")
    return parse_id("concept", name) if isinstance(name, str) else None


def _lifted(lifted: Unforget, view: View) -> Iterator[Change]:
    key = raw_of("audit", lifted.audit_id)
    known: ForgetRow | None = view.get("forgets", key)
    if known is not None:
        yield Put(table="forgets", key=key, value=msgspec.structs.replace(known, reverted=True))
    for place, row in view.scan("gone"):
        if row.audit_id == lifted.audit_id:
            yield Drop(table="gone", key=place)


def _rolled(entry: Entry, command: Exclude | Include, view: View) -> Change:
    key = raw_of("job", command.rollback_id)
    known: RollbackRow | None = view.get("rollbacks", key)
    if isinstance(command, Include):
        assert known is not None, "what is lifted was rolled back"
        row = msgspec.structs.replace(known, reverted=True)
    else:
        earlier = [] if known is None else known.offsets
        row = RollbackRow(
            rollback_id=command.rollback_id,
            by=entry.caller,
            at=entry.recorded_at if known is None else known.at,
            offsets=[*earlier, *command.offsets],
            note=command.note,
        )
    return Put(table="rollbacks", key=key, value=row)


def record_raw(record_id: str) -> bytes:
    """The sixteen bytes of a record's id, whatever its layer."""
    prefix, _, _ = record_id.partition("_")
    return raw_of(prefix, record_id)


FORGETS = Projector(
    name="forgets",
    version=2,
    tables={
        "forgets": ForgetRow,
        "gone": GoneRow,
        "cited": Mark,
        "annotated": Mark,
        "holds": HoldRow,
        "rollbacks": RollbackRow,
    },
    project=project,
    concerns=lambda body: bool(body.envelope.context.preceded_by),
)
