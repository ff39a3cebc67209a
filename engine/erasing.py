"""What would an erasure do?  Events by scope, each with who else refers to it (001 §11.3).

References from other scopes alone count: what a scope derived from its own events holds nothing
back. None means delete, some mean redact, a legal hold means neither.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from engine.selection import (
    Selection,
    behind,
    beliefs_on,
    entries_in,
    event_of_id,
    is_held,
    latest,
    records_in,
    scope_no_of,
    take_dependants,
    take_events,
)
from engine.state.names import SCOPE
from projectors.control import scope_key
from projectors.records import LAYERS, name_key
from schemas.entry import Entry, Forget, ForgottenEvent, ForgottenRecord, KeptFact
from schemas.erasures import AffectedWorkspace, ErasureRequest, ManifestLine
from schemas.ids import format_id, raw_of
from schemas.layers import Fact, LiteralValue

if TYPE_CHECKING:
    from engine.engine import Engine


class Plan(msgspec.Struct, kw_only=True):
    """What an erasure comes to."""

    tenant_no: int
    scope: str
    found: Selection
    references: dict[int, list[str]] = {}
    held: list[ForgottenEvent] = []
    kept: list[KeptFact] = []
    demoted: list[ForgottenRecord] = []
    holds: list[str] = []

    def events(self, engine: "Engine") -> Iterator[ForgottenEvent]:
        """The events whose payloads go, each with how often others refer to it, and who."""
        for offset, event in sorted(self.found.events.items()):
            scopes = self.references.get(offset, [])
            numbers = (engine.names.known(SCOPE, self.tenant_no, scope) for scope in set(scopes))
            yield msgspec.structs.replace(
                event, references=len(scopes), referring=sorted(filter(None, numbers))
            )

    def shown(self) -> Selection:
        """What may not differ from a preview (001 §8.6.3): the events; records where none are.

        What is derived moves by itself, as an episode that is sealed, and goes with its events.
        """
        found = self.found
        return Selection(events=found.events, held=found.held) if found.events else found

    def workspaces(self, engine: "Engine") -> list[AffectedWorkspace]:
        """The other scopes that refer to what goes, and who owns them."""
        counted: dict[str, int] = {}
        for scopes in self.references.values():
            for scope in set(scopes):
                counted[scope] = counted.get(scope, 0) + 1
        return [
            AffectedWorkspace(
                scope=scope,
                events_referenced=count,
                co_owners=_owners(engine, self.tenant_no, scope),
            )
            for scope, count in sorted(counted.items())
        ]

    def lines(self, engine: "Engine") -> Iterator[ManifestLine]:
        """Line by line, in a fixed order: events, records, and who else is concerned."""
        for event in self.events(engine):
            yield _line(
                engine,
                self.tenant_no,
                event,
                "redact" if event.references else "delete",
                self.references.get(event.offset, []),
            )
        for event in self.held:
            yield _line(engine, self.tenant_no, event, "hold", [])
        for name, record in sorted(self.found.records.items()):
            path = engine.names.name(SCOPE, self.tenant_no, record.scope_no)
            yield ManifestLine(kind="record", id=name, action="delete", scope=path)
        weaker = [(one.fact.id, one.fact.scope) for one in self.kept]
        weaker += [
            (one.id, engine.names.name(SCOPE, self.tenant_no, one.scope_no)) for one in self.demoted
        ]
        for name, path in sorted(weaker):
            yield ManifestLine(kind="record", id=name, action="demote", scope=path)
        for space in self.workspaces(engine):
            yield ManifestLine(
                kind="workspace",
                id=space.scope,
                action="refer",
                scope=space.scope,
                events_referenced=space.events_referenced,
                co_owners=space.co_owners,
            )


def _line(
    engine: "Engine", tenant_no: int, event: ForgottenEvent, action: str, references: list[str]
) -> ManifestLine:
    return msgspec.convert(
        {
            "kind": "event",
            "id": event.event_id,
            "action": action,
            "scope": engine.names.name(SCOPE, tenant_no, event.scope_no),
            "wal_offset": event.offset,
            "references": sorted(set(references)),
        },
        ManifestLine,
    )


def plan_done(engine: "Engine", tenant_no: int, scope: str, commands: list[Forget]) -> Plan:
    """The plan that directives have carried out, as they say themselves."""
    done = Plan(tenant_no=tenant_no, scope=scope, found=Selection())
    for command in commands:
        done.found.records |= {record.id: record for record in command.records}
        done.found.events |= {event.offset: event for event in command.events}
        done.kept += command.kept
        done.demoted += command.demoted
        for event in command.events:
            scopes = [engine.names.name(SCOPE, tenant_no, number) for number in event.referring]
            if event.references:
                done.references[event.offset] = scopes
    return done


def plan_of(engine: "Engine", tenant_no: int | None, request: ErasureRequest) -> Plan:
    """The plan as of now; what was erased before is no part of it."""
    found = Selection()
    plan = Plan(tenant_no=tenant_no or 0, scope=request.scope, found=found)
    if tenant_no is None:
        return plan
    inside = {
        number: path
        for number, path in engine.names.all(SCOPE, tenant_no)
        if path == request.scope or path.startswith(request.scope + "/")
    }
    plan.holds = sorted(path for path in inside.values() if is_held(engine, tenant_no, path))
    entries = list(_entries(engine, tenant_no, request, inside, found))
    free = [entry for entry in entries if entry.scope not in plan.holds]
    take_events(engine, tenant_no, found, free)
    # What lives elsewhere is not ours to delete: it outlives its evidence, and weighs less.
    outside = [name for name, record in found.records.items() if record.scope_no not in inside]
    for name in outside:
        del found.records[name]
    plan.kept = [one for name in outside if (one := _kept(engine, tenant_no, name)) is not None]
    take_dependants(engine, tenant_no, found)
    facts = {*found.records, *(one.fact.id for one in plan.kept)}
    plan.demoted = [
        ForgottenRecord(belief.id, scope_no)
        for belief, scope_no in beliefs_on(engine, tenant_no, facts)
        if belief.id not in found.records
    ]
    held = Selection()
    take_events(engine, tenant_no, held, [e for e in entries if e.scope in plan.holds])
    plan.held = list(held.events.values())
    found.held = len(plan.held)
    for offset, event in found.events.items():
        others = list(_references(engine, tenant_no, event, set(inside.values())))
        if others:
            plan.references[offset] = others
    return plan


def _kept(engine: "Engine", tenant_no: int, name: str) -> KeptFact | None:
    """A fact with all that its projector needs to have it again."""
    fact = latest(engine, tenant_no, name)
    if not isinstance(fact, Fact) or isinstance(fact.subject, LiteralValue):
        return None
    basis = engine.staged.get(tenant_no, "facts_basis", raw_of("fact", name))
    row = engine.staged.get(tenant_no, "entities", name_key(fact.subject.id))
    root = fact.subject.id if row is None else row.root
    return None if basis is None else KeptFact(fact, msgspec.msgpack.encode(basis), root)


def _entries(
    engine: "Engine",
    tenant_no: int,
    request: ErasureRequest,
    inside: dict[int, str],
    found: Selection,
) -> Iterator[Entry]:
    """The events that are meant; records are taken into the selection on the way."""
    if request.selector is None or not request.selector.memory_ids:
        for number in sorted(inside):
            yield from entries_in(engine, tenant_no, number)
            for table in LAYERS:
                for record in records_in(engine, tenant_no, table, number):
                    if not is_held(engine, tenant_no, record.scope):
                        found.add(record, number)
        return
    for name in dict.fromkeys(request.selector.memory_ids):
        entry, named = event_of_id(engine, tenant_no, name), latest(engine, tenant_no, name)
        if entry is not None and entry.scope_no in inside:
            yield entry
        elif named is not None and scope_no_of(engine, tenant_no, named) in inside:
            found.add(named, scope_no_of(engine, tenant_no, named))
            for event_id in behind(engine, tenant_no, named):
                cited = event_of_id(engine, tenant_no, event_id)
                if cited is not None and cited.scope_no in inside:
                    yield cited


def _references(
    engine: "Engine", tenant_no: int, event: ForgottenEvent, inside: set[str]
) -> Iterator[str]:
    """The other scopes whose records or events refer to an event, once a reference."""
    for name in event.derived:
        record = latest(engine, tenant_no, name)
        if record is not None and record.scope not in inside:
            yield record.scope
    raw = raw_of("evt", event.event_id)
    for key, _ in engine.inline.scan(tenant_no, "cited", raw):
        citing = event_of_id(engine, tenant_no, format_id("evt", key[16:]))
        if citing is not None and citing.scope not in inside:
            yield citing.scope


def _owners(engine: "Engine", tenant_no: int, scope: str) -> list[str]:
    number = engine.names.known(SCOPE, tenant_no, scope)
    row = None if number is None else engine.inline.get(tenant_no, "scopes", scope_key(number))
    return [member.actor for member in row.members if member.role == "owner"] if row else []
