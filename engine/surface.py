"""What does a surface keep under its keys?  The keyed, versioned document (DESIGN §1, ADR 0029).

How a surface uses it, from `api/<surface>/`:

* `read_document(engine, caller, Address(surface=…, kind=…, key=…, scope=…, as_of=…))` gives the
  document that stands there, or stood there at a moment; None when there is none.
* `list_documents(engine, caller, Shelf(surface=…, kind=…))` gives those of a kind that the caller
  may read, in no order a client should see; `Shelf(…, labels=(…,))` those with one of these labels
  (`Write.labels`), at a cost that does not grow with the others.
* `await change_documents(engine, caller, Change(surface=…, scopes=(…,), decide=decide))` writes.
  `decide(held) -> Outcome(answer=…, writes=[Write(…)])` is pure and runs inside the decision of
  the single writer: `held.get(kind, key)` and `held.labelled(kind, label)` are as of the head of
  the log, and nobody writes between. Compare-and-set, idempotency keys and first-write-wins are
  plain ifs in it; to refuse, raise an `EngineError` (a surface has its own). No writes, no entry.

Deleting and archiving are states, `Write(state="deleted", …)`: which there are, and whether a read
shows them, is the surface's own business.
Every write says in words what it holds (`Write.words`): it is an experience in `Write.scope`, so
recall finds and cites it, and forgetting and erasing take it along. Words of an earlier version
are taken out of recall by the same batch.
What leads to a document and is no memory itself has no words: recall does not find it.
A kind of document that is found by several keys is written once under each, in one `Outcome`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.rows import About
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.checking import check_free_json
from schemas.entry import Cancel, Directive, Experience, PutDocument
from schemas.envelope import Context, Directives, Envelope, PlainText
from schemas.surfaces.document import (
    CURRENT,
    Document,
    kind_place,
    label_place,
    place,
    version_place,
)
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_NOTHING_DERIVED: Final = Directives(extract=[])
"""What stands in a document is its own summary; what it held before is not to outlive it."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """One document, in the scope whose policy guards it; as it stood at a moment.

    Without a scope it is looked for wherever it lies, and the scope it lies in is asked about.
    """

    surface: str
    kind: str
    key: str
    scope: str | None = None
    as_of: datetime | None = None


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """All documents of a kind; with labels, those that have one of them."""

    surface: str
    kind: str
    labels: tuple[str, ...] | None = None


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """What is to stand under a key from now on, how that reads in words, and what leads to it."""

    kind: str
    key: str
    scope: str
    words: str
    value: Any = None
    state: str = CURRENT
    labels: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller is told, and what is to be written."""

    answer: Any = None
    writes: Sequence[Write] = ()


class Held:
    """What stands under the keys of a surface at the head of the log, for who decides there."""

    def __init__(self, desk: Desk, tenant_no: int, surface: str, now: datetime) -> None:
        self._desk = desk
        self._tenant_no = tenant_no
        self._surface = surface
        self.now = now
        """The one moment of this decision."""

    def get(self, kind: str, key: str) -> Document | None:
        """The document, in whatever state it is."""
        at = place(self._surface, kind, key)
        row: Document | None = self._desk.overlay.get(self._tenant_no, "documents", at)
        return row

    def labelled(self, kind: str, label: str) -> list[Document]:
        """The documents of a kind that have a label, in whatever state."""
        prefix, overlay = label_place(self._surface, kind, label), self._desk.overlay
        led = overlay.scan(self._tenant_no, "document_labels", prefix)
        rows = [overlay.get(self._tenant_no, "documents", found.place) for _, found in led]
        return [row for row in rows if row is not None]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about documents: where it may write, and which it is."""

    surface: str
    scopes: tuple[str, ...]
    decide: Callable[[Held], Outcome]


class Changed(msgspec.Struct, frozen=True):
    """What was decided, and the documents as they stand now; none when nothing was written."""

    answer: Any
    documents: list[Document]


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def read_document(engine: "Engine", caller: Caller, address: Address) -> Document | None:
    """A document that the caller may read, in whatever state it is."""
    policy.require(engine, caller, "scope.read.local", address.scope)
    tenant_no = engine.tenant_no(caller)
    if tenant_no is None:
        return None
    at = place(address.surface, address.kind, address.key)
    row: Document | None = engine.inline.get(tenant_no, "documents", at)
    if row is None:
        return None
    if row.scope != address.scope:
        policy.require(engine, caller, "scope.read.local", row.scope)
    if address.as_of is None or row.at <= address.as_of:
        return row
    return _earlier(engine, tenant_no, at, address.as_of)


def list_documents(engine: "Engine", caller: Caller, shelf: Shelf) -> list[Document]:
    """The documents of a kind that the caller may read, in whatever state."""
    policy.require(engine, caller, "scope.read.local")
    tenant_no = engine.tenant_no(caller)
    if tenant_no is None:
        return []
    rows = _shelved(engine, tenant_no, shelf)
    scopes = {row.scope for row in rows}
    may = {scope for scope in scopes if policy.may(engine, caller, "scope.read.local", scope)}
    return [row for row in rows if row.scope in may]


async def change_documents(engine: "Engine", caller: Caller, change: Change) -> Changed:
    """Decide at the head of the log, and write what was decided, all or nothing."""
    decision = policy.require_all(engine, caller, "scope.write", change.scopes)
    for scope in change.scopes:
        policy.require_level(engine, caller, scope)
    changed: Changed = await engine.committer.submit(_Deciding(engine, caller, decision, change))
    return changed


# ── deciding ─────────────────────────────────────────────────────────────────────────────────


class _Deciding:
    """A proposal that asks a surface what is to be written."""

    entry_count = limits.DOCUMENTS_AT_ONCE_MAX
    byte_count = limits.DOCUMENT_BYTES_MAX

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, change: Change
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._change = change

    def decide(self, desk: Desk) -> Changed:
        """Let the surface decide; then write its documents, and withdraw what they replace."""
        change, caller = self._change, self._caller
        tenant_no = desk.tenant_no(caller)
        held = Held(desk, tenant_no, change.surface, from_us(self._engine.clock.now_us()))
        outcome = change.decide(held)
        for write in outcome.writes:
            assert write.scope in change.scopes, "policy was asked about every scope written to"
            check_free_json(write.value, write.kind)
        replaced = [held.get(write.kind, write.key) for write in outcome.writes]
        for row in replaced:
            if row is not None and row.scope not in change.scopes:
                # What moves from one scope to another is taken out of the first.
                policy.require(self._engine, caller, "scope.write", row.scope)
        for write, before in zip(outcome.writes, replaced, strict=True):
            self._put(desk, write, before, held.now)
        rows = [held.get(write.kind, write.key) for write in outcome.writes]
        written = [row for row in rows if row is not None]
        words = [write.words for write in outcome.writes]
        mute = [row for row, said in zip(written, words, strict=True) if not said]
        for row in (*replaced, *mute):
            if row is not None:
                self._withdraw(desk, tenant_no, row)
        scope = outcome.writes[0].scope if outcome.writes else next(iter(change.scopes), None)
        desk.audit(caller, self._decision, About(status=200, scope=scope))
        return Changed(outcome.answer, written)

    def _put(self, desk: Desk, write: Write, before: Document | None, now: datetime) -> None:
        surface, version = self._change.surface, 1 if before is None else before.version + 1
        at = version_place(place(surface, write.kind, write.key), version)
        envelope = Envelope(
            scope=write.scope,
            modality=f"{surface}.{write.kind}"[: limits.MODALITY_CHARS_MAX],
            content=PlainText(text=write.words or write.kind),
            context=Context(observed_at=now),
            directives=_NOTHING_DERIVED,
            idempotency_key=f"{surface}:{at.hex()}",
        )
        put = PutDocument(
            surface=surface,
            kind=write.kind,
            key=write.key,
            version=version,
            state=write.state,
            value=write.value,
            labels=write.labels,
        )
        desk.add(self._caller, Experience(envelope=envelope, document=put))

    def _withdraw(self, desk: Desk, tenant_no: int, row: Document) -> None:
        """The words of a version that no longer stands are left out of recall."""
        if desk.overlay.get(tenant_no, "cancelled", row.offset.to_bytes(8, "big")) is None:
            stages = self._engine.daemon.hold(row.offset)
            command = Cancel(event_id=row.event_id, offset=row.offset, stages=stages)
            desk.add(self._caller, Directive(command=command, scope=row.scope))


def _shelved(engine: "Engine", tenant_no: int, shelf: Shelf) -> list[Document]:
    if shelf.labels is None:
        prefix = kind_place(shelf.surface, shelf.kind)
        return [row for _, row in engine.inline.scan(tenant_no, "documents", prefix)]
    places: dict[bytes, None] = {}
    for label in shelf.labels:
        prefix = label_place(shelf.surface, shelf.kind, label)
        led = engine.inline.scan(tenant_no, "document_labels", prefix)
        places |= dict.fromkeys(found.place for _, found in led)
    rows = [engine.inline.get(tenant_no, "documents", at) for at in places]
    return [row for row in rows if row is not None]


def _earlier(engine: "Engine", tenant_no: int, at: bytes, moment: datetime) -> Document | None:
    """The version that stood at a moment: the last one written by then."""
    end = version_place(at, limits.DOCUMENT_VERSIONS_MAX)
    while True:
        rows = engine.inline.between(
            tenant_no, "document_versions", at, end, last_first=True, limit=limits.VERSIONS_STEP
        )
        for _, row in rows:
            if row.at <= moment:
                found: Document = row
                return found
        if len(rows) < limits.VERSIONS_STEP:
            return None
        end = rows[-1][0]
