"""How does an experience get in?"""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import astuple

from engine import policy
from engine.commit import Desk, Sealed, encode_body
from engine.read import entry_state, find_event
from engine.rows import About, Bulk, BulkCaptureRequest, CaptureRequest
from engine.state.directory import idem_place
from engine.state.kv import StoreWriteFailed
from engine.state.names import TENANT
from projectors.blobs import cited, cites
from schemas.caller import Caller, Decision
from schemas.checking import checked, full_envelopes, scopes_of
from schemas.entry import Experience
from schemas.envelope import Envelope
from schemas.errors import IdempotencyConflict, InvalidEnvelope, WalUnavailable
from schemas.ids import format_id, fresh_id, parse_id
from schemas.receipts import BulkReceipt, Receipt

if TYPE_CHECKING:
    from engine.engine import Engine

EXPERIENCE_FAMILY: Final = "/v1/experience"
BULK_FAMILY: Final = "/v1/experience/bulk"
"""Endpoint families of an idempotency key (001 §18.2.9)."""

_canonical = msgspec.msgpack.Encoder(order="deterministic").encode


async def capture(engine: "Engine", caller: Caller, request: CaptureRequest) -> Receipt:
    """Store one experience durably; with `wait`, answer when it has come that far."""
    decision = policy.require(engine, caller, "scope.write", request.envelope.scope)
    started = 0.0 if request.wait is None else engine.clock.elapsed_s()
    policy.require_level(engine, caller, request.envelope.scope)
    envelope = checked(request.envelope)
    policy.require_identities(engine, caller, envelope)
    proposal = Experiences(engine, caller, decision, family=EXPERIENCE_FAMILY, envelopes=[envelope])
    written: Written = (await engine.committer.submit(proposal))[0]
    if request.wait is None:
        return _receipt(engine, written, status="captured")
    capture_ms = (engine.clock.elapsed_s() - started) * 1000
    return await _after_waiting(engine, caller, request, written, capture_ms)


async def capture_bulk(
    engine: "Engine", caller: Caller, request: BulkCaptureRequest
) -> BulkReceipt:
    """Store many experiences in one atomic batch: all of them, or none (001 §8.2)."""
    decision = policy.require_all(engine, caller, "scope.write", scopes_of(request.bulk))
    for scope in scopes_of(request.bulk):
        policy.require_level(engine, caller, scope)
    full = full_envelopes(request.bulk)
    items = [f"items[{at}]." for at in range(len(full))]
    envelopes = [checked(envelope, at) for envelope, at in zip(full, items, strict=True)]
    for envelope, at in zip(envelopes, items, strict=True):
        policy.require_identities(engine, caller, envelope, at)
    order = list(range(len(envelopes)))
    if request.bulk.ordering == "strict_temporal":
        order.sort(key=lambda place: envelopes[place].context.observed_at)
    batch = Bulk(engine.clock.new_id("batch"), order)
    ordered = [envelopes[place] for place in order]
    proposal = Experiences(
        engine, caller, decision, family=BULK_FAMILY, envelopes=ordered, batch=batch
    )
    written: list[Written] = await engine.committer.submit(proposal)
    return await _bulk_receipt(engine, caller, request, written, batch.id)


def identity_of(envelope: Envelope) -> bytes:
    """What makes two posts the same write: all but the key and the time of observation."""
    # Fields in their order: the key is the eighth of an envelope, the time the first of a context.
    said: tuple[Any, ...] = astuple(envelope)
    context: tuple[Any, ...] = astuple(envelope.context)
    between = (context[1:], said[6])
    return _canonical(said[:5] + between + said[8:])


class Written:
    """Where an experience is, and whether it was there before."""

    __slots__ = ("offset", "raw", "replayed", "scope")

    def __init__(self, offset: int, raw: bytes, scope: str, *, replayed: bool) -> None:
        self.offset = offset
        self.raw = raw
        self.scope = scope
        self.replayed = replayed

    @property
    def event_id(self) -> str:
        """Its id; of a bulk call hardly ever asked for."""
        return fresh_id("evt", self.raw)


class Experiences:
    """A proposal to write experiences, all or none."""

    def __init__(
        self,
        engine: "Engine",
        caller: Caller,
        decision: Decision,
        *,
        family: str,
        envelopes: list[Envelope],
        batch: Bulk | None = None,
    ) -> None:
        self._engine = engine
        self._batch = batch
        self._caller = caller
        self._decision = decision
        self._tenant_no = engine.names.number(TENANT, 0, caller.tenant)
        try:
            self._keys = engine.vault.tenant(self._tenant_no)
        except StoreWriteFailed as error:
            engine.log.fail(f"the vault does not take keys: {error}")
            raise WalUnavailable(reason=engine.log.failure) from error
        place, batch_id = f"{caller.actor}\0{family}\0", None if batch is None else batch.id
        keys = self._keys
        self._sealed: list[Sealed] = []
        self.keys: list[bytes] = []
        self.entry_count, self.byte_count = len(envelopes), 0
        for envelope in envelopes:
            body = Experience(envelope=envelope, batch_id=batch_id)
            encoded, body_mac = encode_body(body), keys.mac_of(identity_of(envelope))
            idem = keys.mac_of((place + envelope.idempotency_key).encode())
            at = idem_place(self._tenant_no, idem)
            self._sealed.append(Sealed(body, encoded, idem, body_mac, at))
            self.keys.append(at)
            self.byte_count += len(encoded)

    def decide(self, desk: Desk) -> list[Written]:
        """Replay what was written before, refuse a key with another body, write the rest."""
        written = [self._write(desk, at, sealed) for at, sealed in enumerate(self._sealed)]
        event = written[0].raw if len(written) == 1 else None
        about = About(status=202, scope=written[0].scope, event=event)
        desk.record(self._caller, self._decision, about)
        return written

    def _require_blobs(self, desk: Desk, at: int, envelope: Envelope) -> None:
        """What an experience cites must be there (001 §8.13), and of this tenant."""
        if not cites(envelope):
            return
        for field, blob_id in cited(envelope):
            raw = parse_id("blob", blob_id)
            if raw is None or desk.overlay.get(self._tenant_no, "blobs", raw) is None:
                item = f"items[{self._batch.places[at]}]." if self._batch else ""
                reason = f"there is no blob {blob_id[:80]!r}; upload it first"
                raise InvalidEnvelope(field=item + field, reason=reason)

    def _write(self, desk: Desk, at: int, sealed: Sealed) -> Written:
        body = sealed.said
        assert isinstance(body, Experience), "nothing else is proposed here"
        envelope = body.envelope
        earlier = desk.replayed_at(sealed.place)
        if earlier is None:
            self._require_blobs(desk, at, envelope)
            made = desk.put(self._caller, sealed)
            return Written(made.offset, made.id, envelope.scope, replayed=False)
        raw = desk.event(earlier.offset)
        if earlier.body_mac != sealed.body_mac:
            item = f"items[{self._batch.places[at]}]." if self._batch else ""
            raise IdempotencyConflict(
                field=f"{item}idempotency_key",
                reason="used before with another body",
                idempotency_key=envelope.idempotency_key,
                event_id=format_id("evt", raw),
            )
        return Written(earlier.offset, raw, envelope.scope, replayed=True)


def _receipt(engine: "Engine", written: Written, status: str, **more: Any) -> Receipt:
    event_id = written.event_id
    return Receipt(
        event_id=event_id,
        status=status,
        wal_offset=written.offset,
        scope=written.scope,
        durability=engine.settings.durability,
        lifecycle_stream=f"/v1/lifecycle/stream?event_id={event_id}",
        replayed_from_idempotency=written.replayed,
        **more,
    )


async def _after_waiting(
    engine: "Engine", caller: Caller, request: CaptureRequest, written: Written, capture_ms: float
) -> Receipt:
    stage = "consolidated" if request.wait == "settled" else str(request.wait)
    await engine.lifecycle.wait(stage, written.offset, request.wait_ms / 1000)
    tenant_no, offset, raw = find_event(engine, caller.tenant, written.event_id)
    state = entry_state(engine, tenant_no, offset, raw)
    elapsed = {"capture": round(capture_ms, 3), **state.elapsed_ms}
    cancelled = stage in state.stages_cancelled
    partial = stage not in state.stages_completed
    return _receipt(
        engine,
        written,
        state.status,
        stages_completed=state.stages_completed,
        derives=state.derives,
        elapsed_ms=elapsed,
        partial=partial,
        partial_reason=("cancelled" if cancelled else "wait_deadline") if partial else None,
    )


async def _bulk_receipt(
    engine: "Engine",
    caller: Caller,
    request: BulkCaptureRequest,
    written: list[Written],
    batch_id: str,
) -> BulkReceipt:
    replayed = sum(1 for one in written if one.replayed)
    if replayed == len(written):
        # The whole call is a replay: answer with the batch it was first written in.
        rows = engine.log.read_many([written[0].offset])
        first = engine.entry_of(rows[0]).body
        batch_id = getattr(first, "batch_id", None) or batch_id
    status, missed = "captured", None
    if request.wait is not None:
        stage = "consolidated" if request.wait == "settled" else request.wait
        last = max(one.offset for one in written)
        if not await engine.lifecycle.wait(stage, last, request.wait_ms / 1000):
            missed = "wait_deadline"
        elif _any_cancelled(engine, caller, stage, written):
            missed = "cancelled"
        else:
            status = stage
    return BulkReceipt(
        batch_id=batch_id,
        accepted=len(written),
        status=status,
        durability=engine.settings.durability,
        lifecycle_stream=f"/v1/lifecycle/stream?batch_id={batch_id}",
        replayed=replayed,
        partial=missed is not None,
        partial_reason=missed,
    )


def _any_cancelled(engine: "Engine", caller: Caller, stage: str, written: list[Written]) -> bool:
    """Whether an event of a batch will never have a stage: then the batch has not reached it."""
    tenant_no = engine.names.number(TENANT, 0, caller.tenant)
    rows = (
        engine.inline.get(tenant_no, "cancelled", one.offset.to_bytes(8, "big")) for one in written
    )
    return any(stage in row.stages for row in rows if row is not None)
