"""How is something forgotten, and how is that taken back?  (001 §8.5, §11)

A forget is a directive that names what its selector came to: replay does the same, also after a
restart and a rebuild. Derived records go at once; with `redact_events` the payloads of their events
go too, for good, and every view is built anew without them.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.previews import Preview, check_preview, keep_preview
from engine.records import present
from engine.redaction import command_of, redact
from engine.rows import About, Replay
from engine.selection import (
    TABLES,
    Filters,
    Selection,
    behind,
    entries_in,
    event_of_id,
    is_held,
    latest,
    records_in,
    scope_no_of,
    take_dependants,
    take_events,
)
from engine.state.log import erasure_due
from engine.state.names import SCOPE, TENANT
from projectors.forgets.rows import ForgetRow
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Directive, Entry, Forget, Unforget
from schemas.errors import (
    AmbiguousConfirmAll,
    Conflict,
    EmptySelector,
    IdempotencyConflict,
    InvalidParameter,
    NotFound,
)
from schemas.forget import ForgetPreview, ForgetReceipt, ForgetRequest, LayerCounts, RevertReceipt
from schemas.health import RebuildReceipt
from schemas.ids import parse_id
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_FAMILY: Final = b"/v1/forget"
_canonical: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class ForgetCall(msgspec.Struct, frozen=True, kw_only=True):
    """A forget, and how long its answer waits for what is read to show it."""

    body: ForgetRequest
    wait_s: float = limits.FORGET_WAIT_S


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def forget(engine: "Engine", caller: Caller, call: ForgetCall) -> ForgetReceipt:
    """Forget what a selector matches in one scope."""
    decision = _require(engine, caller, call.body)
    body = call.body
    check(body)
    proposal = Forgetting(engine, caller, decision, body)
    earlier = proposal.replayed()
    if earlier is None:
        found = await asyncio.to_thread(select, engine, caller, body)
        _require_events(engine, caller, body.scope, found, body.cascade)
        if body.from_preview_id is not None:
            check_preview(engine, caller, body.from_preview_id, said(body), found)
        proposal.take(found)
    entries: list[Entry] = await engine.committer.submit(proposal)
    if not entries:
        return ForgetReceipt(
            deleted=LayerCounts(),
            audit_id=proposal.audit_id,
            cascade=body.cascade,
            events_under_legal_hold=proposal.held,
        )
    return await _carry_out(engine, caller, entries, call.wait_s, held=proposal.held)


async def preview_forget(engine: "Engine", caller: Caller, body: ForgetRequest) -> ForgetPreview:
    """What a forget would do now (001 §8.5); nothing changes."""
    _require(engine, caller, body)
    check(body)
    found = await asyncio.to_thread(select, engine, caller, body)
    _require_events(engine, caller, body.scope, found, body.cascade)
    kept: Preview = keep_preview(engine, caller, said(body), found)
    counts = found.counts(with_events=body.cascade == "redact_events")
    return ForgetPreview(
        preview_id=kept.preview_id,
        scope=body.scope,
        cascade=body.cascade,
        estimated_deleted=counts,
        estimated_total=counts.total,
        events_under_legal_hold=found.held,
        expires_at=from_us(kept.expires_us),
    )


async def revert_forget(engine: "Engine", caller: Caller, audit_id: str) -> RevertReceipt:
    """Take a forget of derived records back, within a day: they are derived again."""
    policy.require(engine, caller, "forget.cascade.derived_only")
    row = _find(engine, caller, audit_id)
    decision = policy.require(engine, caller, "forget.cascade.derived_only", row.scope)
    policy.require(engine, caller, "scope.write", row.scope)
    if row.cascade != "derived_only":
        raise Conflict("What was redacted or erased cannot be brought back.", audit_id=audit_id)
    if present(engine) > row.at + timedelta(seconds=limits.FORGET_REVERT_S):
        raise Conflict("A forget can be taken back for 24 hours.", audit_id=audit_id)
    if row.reverted:
        return _reverted(row, audit_id, "nothing to do")
    made: str = await engine.committer.submit(_Lifting(caller, decision, row))
    engine.daemon.request_rebuild()
    return _reverted(row, made, "rebuilding")


async def rebuild_all(engine: "Engine", caller: Caller, *, ignore_forgets: bool) -> RebuildReceipt:
    """Build every staged view anew; the operator may take every forget of derived records back.

    Each is lifted by a directive of its own, however old, so that replay agrees.
    """
    decision = policy.require(engine, caller, "admin.flush")
    if ignore_forgets:
        policy.require(engine, caller, "policy.administer.deployment")
    lifted: list[str] = []
    for number, tenant in engine.names.all(TENANT, 0) if ignore_forgets else ():
        for _, row in engine.inline.scan(number, "forgets"):
            if row.cascade == "derived_only" and not row.reverted:
                there = msgspec.structs.replace(caller, tenant=tenant)
                await engine.committer.submit(_Lifting(there, decision, row))
                lifted.append(row.audit_id)
    engine.daemon.request_rebuild()
    return RebuildReceipt(projector="*", status="rebuilding", unparked=lifted)


# ── what is meant ────────────────────────────────────────────────────────────────────────────


def _require(engine: "Engine", caller: Caller, body: ForgetRequest) -> Decision:
    """The capability of the cascade, and the right to write there: forgetting is a change."""
    policy.require(engine, caller, "scope.write", body.scope)
    return policy.require(engine, caller, f"forget.cascade.{body.cascade}", body.scope)


def check(body: ForgetRequest) -> None:
    """Refuse what could mean more than was said (001 §8.5, §18.2.13)."""
    selector = body.selector
    if selector.is_empty and not body.confirm_all:
        raise EmptySelector(
            field="selector",
            reason="an empty selector means everything in the scope",
            remediation="say confirm_all: true, or set a filter",
        )
    if body.confirm_all and not selector.is_empty:
        raise AmbiguousConfirmAll(
            field="confirm_all", reason="a selector and confirm_all contradict each other"
        )
    if selector.recorded_during is not None and selector.created_during is not None:
        raise InvalidParameter(
            field="selector.created_during", reason="the older name of recorded_during: give one"
        )
    if "events" in body.layers and body.cascade == "derived_only":
        raise InvalidParameter(
            field="layers",
            reason="derived_only leaves events as they are",
            remediation="use redact_events, or /v1/erasures",
        )


def said(body: ForgetRequest) -> dict[str, object]:
    """What decides what a forget does, for previews and retries to compare."""
    return {
        "scope": body.scope,
        "layers": sorted(body.layers),
        "selector": msgspec.to_builtins(body.selector),
        "cascade": body.cascade,
        "confirm_all": body.confirm_all,
    }


def select(engine: "Engine", caller: Caller, body: ForgetRequest) -> Selection:
    """What a forget comes to as of now. For verbs that have asked policy."""
    policy.require(engine, caller, "scope.read.local", body.scope)
    found = Selection()
    tenant_no = engine.tenant_no(caller)
    scope_no = None if tenant_no is None else engine.names.known(SCOPE, tenant_no, body.scope)
    if tenant_no is None or scope_no is None:
        return found
    filters = Filters(engine, tenant_no, scope_no, body.selector)
    if body.confirm_all or body.selector.has_filters:
        for layer, table in TABLES.items():
            if body.layers and layer not in body.layers:
                continue
            for record in records_in(engine, tenant_no, table, scope_no):
                if filters.wants(record):
                    found.add(record, scope_no)
    events = list(_named(engine, tenant_no, body, found))
    if body.cascade == "redact_events":
        events += _behind(engine, tenant_no, body, found, filters)
        if is_held(engine, tenant_no, body.scope):
            found.held = len({entry.offset for entry in events})
            events = []
    take_events(engine, tenant_no, found, events)
    take_dependants(engine, tenant_no, found)
    return found


def _named(
    engine: "Engine", tenant_no: int, body: ForgetRequest, found: Selection
) -> Iterator[Entry]:
    """What is meant by id, if it lives in the scope: records are taken, events are told."""
    for name in dict.fromkeys(body.selector.memory_ids):
        entry = event_of_id(engine, tenant_no, name)
        if entry is not None:
            if entry.scope == body.scope:
                yield entry
            continue
        record = latest(engine, tenant_no, name)
        if record is not None and record.scope == body.scope:
            found.add(record, scope_no_of(engine, tenant_no, record))


def _behind(
    engine: "Engine", tenant_no: int, body: ForgetRequest, found: Selection, filters: Filters
) -> list[Entry]:
    """The events of the scope behind what was found, and those that the filters mean directly."""
    names = [
        event_id
        for name in found.records
        if (record := latest(engine, tenant_no, name)) is not None
        for event_id in behind(engine, tenant_no, record)
    ]
    found_by_id = (event_of_id(engine, tenant_no, name) for name in dict.fromkeys(names))
    events = [entry for entry in found_by_id if entry is not None and entry.scope == body.scope]
    is_asked = not body.layers or "events" in body.layers
    has_filters = body.confirm_all or body.selector.has_filters
    if is_asked and has_filters and filters.can_match_events:
        every = entries_in(engine, tenant_no, filters.scope_no)
        events += [entry for entry in every if filters.wants_event(entry)]
    return events


def _require_events(
    engine: "Engine", caller: Caller, scope: str, found: Selection, cascade: str
) -> None:
    """Another's words are blanked by who administers the scope, as they are cancelled (§8.9.5)."""
    if cascade == "redact_events" and found.callers - {caller.actor}:
        policy.require(engine, caller, "scope.administer", scope)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


class Forgetting:
    """A proposal to forget what was found: one directive, or a few when there is much."""

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, body: ForgetRequest
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._body = body
        self._said = _canonical(said(body))
        self.audit_id = ""
        self.take(Selection())

    @property
    def held(self) -> int:
        """Events that a legal hold kept."""
        return self.found.held

    def take(self, found: Selection) -> None:
        """This is what was found."""
        self.found = found
        many = len(found.records) + len(found.events)
        self.entry_count = many // limits.FORGET_STEP + 2
        self.byte_count = limits.KIB + 512 * many

    def _macs(self, tenant_no: int) -> tuple[bytes, bytes]:
        key = self._body.idempotency_key
        if key is None:
            return b"", b""
        keys = self._engine.vault.tenant(tenant_no)
        return keys.mac(self._caller.actor.encode(), _FAMILY, key.encode()), keys.mac(self._said)

    def replayed(self) -> int | None:
        """The offset first written under this key, before anything is looked for."""
        tenant_no = self._engine.tenant_no(self._caller)
        idem = b"" if tenant_no is None else self._macs(tenant_no)[0]
        found = self._engine.directory.replayed(tenant_no or 0, idem) if idem else None
        return None if found is None else found[0]

    def decide(self, desk: Desk) -> list[Entry]:
        """The directives, or those of the first call under the same key."""
        tenant_no = desk.tenant_no(self._caller)
        idem, body_mac = self._macs(tenant_no)
        earlier = desk.replayed(tenant_no, idem) if idem else None
        about = About(status=200, scope=self._body.scope, note=self._body.note)
        if earlier is not None:
            return self._earlier(desk, tenant_no, earlier, body_mac, about)
        audit_id = self.audit_id = desk.audit(self._caller, self._decision, about)
        entries: list[Entry] = []
        if not idem and not self.found.records and not self.found.events:
            return entries  # nothing to say, and nobody to say it to again
        for at, command in enumerate(self._commands(audit_id)):
            body = Directive(command=command, scope=self._body.scope)
            macs = {"idem": idem, "body_mac": body_mac} if at == 0 else {}
            entries.append(desk.add(self._caller, body, **macs))
        return entries

    def _earlier(
        self, desk: Desk, tenant_no: int, earlier: Replay, body_mac: bytes, about: About
    ) -> list[Entry]:
        if earlier.body_mac != body_mac:
            raise IdempotencyConflict(
                field="idempotency_key",
                reason="used before with another body",
                idempotency_key=self._body.idempotency_key,
            )
        desk.audit(self._caller, self._decision, about)
        engine = self._engine
        first = engine.entry_of(engine.log.read_many([earlier.offset])[0])
        raw = parse_id("audit", command_of(first).audit_id) or b""
        row: Any = desk.overlay.get(tenant_no, "forgets", raw)
        return [engine.entry_of(one) for one in engine.log.read_many(row.offsets)]

    def _commands(self, audit_id: str) -> Iterator[Forget]:
        records = list(self.found.records.values())
        events = list(self.found.events.values())
        is_redaction = self._body.cascade == "redact_events"
        counts = msgspec.to_builtins(self.found.counts(with_events=is_redaction))
        step = limits.FORGET_STEP
        for at in range(0, max(len(records), len(events), 1), step):
            yield Forget(
                cascade=self._body.cascade,
                audit_id=audit_id,
                records=records[at : at + step],
                events=events[at : at + step],
                counts=counts if at == 0 else {},
                note=self._body.note,
            )


async def _carry_out(
    engine: "Engine", caller: Caller, entries: list[Entry], wait_s: float, *, held: int = 0
) -> ForgetReceipt:
    """Wait until what is read shows it, destroy what is to be destroyed, and answer."""
    command = command_of(entries[0])
    engine.packs.drop(lambda tenant, _: tenant == caller.tenant)
    engine.daemon.wake()
    is_shown = await engine.lifecycle.wait("consolidated", entries[-1].offset, wait_s)
    if command.cascade != "derived_only":
        for entry in entries:
            if engine.kv.get("meta", erasure_due(entry.offset)) is not None:
                await redact(engine, caller, entry, is_last=entry is entries[-1])
    is_reversible = command.cascade == "derived_only"
    until = entries[0].recorded_at + timedelta(seconds=limits.FORGET_REVERT_S)
    counts = msgspec.convert(command.counts, LayerCounts)
    return ForgetReceipt(
        deleted=counts,
        audit_id=command.audit_id,
        cascade="derived_only" if is_reversible else "redact_events",
        deleted_count=counts.total,
        forgotten=counts.total,
        events_under_legal_hold=held,
        reversible_until=until if is_reversible else None,
        pending=not is_shown,
    )


# ── taking back ──────────────────────────────────────────────────────────────────────────────


class _Lifting:
    """A proposal to lift a forget."""

    entry_count = 1
    byte_count = 1024

    def __init__(self, caller: Caller, decision: Decision, row: ForgetRow) -> None:
        self._caller = caller
        self._decision = decision
        self._row = row

    def decide(self, desk: Desk) -> str:
        """The id of the audit row."""
        about = About(status=200, scope=self._row.scope or None)
        audit_id = desk.audit(self._caller, self._decision, about)
        command = Unforget(audit_id=self._row.audit_id, offsets=self._row.offsets)
        desk.add(self._caller, Directive(command=command, scope=self._row.scope or None))
        return audit_id


def _find(engine: "Engine", caller: Caller, audit_id: str) -> ForgetRow:
    raw, tenant_no = parse_id("audit", audit_id), engine.tenant_no(caller)
    row: ForgetRow | None = None
    if raw is not None and tenant_no is not None:
        row = engine.inline.get(tenant_no, "forgets", raw)
    if row is None:
        raise NotFound(f"Nothing was forgotten under {audit_id[:80]!r}.", audit_id=audit_id[:80])
    return row


def _reverted(row: ForgetRow, audit_id: str, status: str) -> RevertReceipt:
    return RevertReceipt(
        audit_id=audit_id,
        reverted=row.audit_id,
        restored=msgspec.convert(row.counts, LayerCounts),
        status="rebuilding" if status == "rebuilding" else "nothing to do",
    )
