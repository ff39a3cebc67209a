"""Which scopes are registered, whose are they, and which has everybody left?  (001 §3.4, §8.8)"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from engine import policy
from engine.commit import Desk
from engine.forget import ForgetCall, forget
from engine.rows import About
from engine.state.names import SCOPE
from projectors.control import policy_key, scope_key
from projectors.control.rows import ScopeRow
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.checking import check_free_json
from schemas.entry import (
    KINDS,
    Directive,
    DropScope,
    Entry,
    Experience,
    Member,
    RegisterScope,
    ScopePolicies,
    SetMembers,
)
from schemas.errors import (
    IdempotencyConflict,
    InvalidBody,
    InvalidEnvelope,
    InvalidParameter,
    NotFound,
    ScopeExists,
    ScopeHasRecords,
    UnregisteredScopeType,
)
from schemas.forget import ForgetRequest
from schemas.ids import format_id
from schemas.scope import ancestors
from schemas.scopes import (
    BUILTIN_TYPES,
    MembersReceipt,
    RecordCounts,
    RegisterRequest,
    RoleChange,
    ScopePage,
    ScopeRecord,
)
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_FAMILY: Final = b"/v1/scopes"
_COUNTED_MAX: Final = 1000
"""Events counted per scope: a count is for people, and beyond this they know enough."""
_BLOCK: Final = 256
_canonical = msgspec.msgpack.Encoder(order="deterministic").encode


class ScopesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A page of registered scopes (001 §8.8.5)."""

    prefix: str = ""
    auto_provisioned: bool | None = None
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class Registered(msgspec.Struct, frozen=True):
    """The record, and whether an earlier call with the same key made it."""

    record: ScopeRecord
    replayed: bool


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def register_scope(engine: "Engine", caller: Caller, request: RegisterRequest) -> Registered:
    """Register a scope, or make an auto-provisioned one its owner's own (001 §8.8.1)."""
    decision = policy.require(engine, caller, "policy.administer.scope", request.path)
    _require_type(engine, caller, request.path)
    _require_hold(engine, caller, request.path)
    _check_members(request.members or [])
    _check_policies(request.policies)
    proposal = Registration(engine, caller, decision, request)
    registered: Registered = await engine.committer.submit(proposal)
    return registered


def get_scope(engine: "Engine", caller: Caller, path: str) -> ScopeRecord:
    """One scope; not found when it was never registered or written to (001 §8.8.2)."""
    policy.require(engine, caller, "scope.read.local", path)
    tenant_no = engine.tenant_no(caller)
    found = None
    if tenant_no is not None:
        row = engine.policies.scope_row(tenant_no, path)
        if row is None or row.detached:
            found = _unregistered(engine, tenant_no, path)
        else:
            found = _record(row)
    if found is None:
        raise NotFound(f"Nothing was ever written to {path}.", path=path)
    return found


def list_scopes(engine: "Engine", caller: Caller, request: ScopesRequest) -> ScopePage:
    """A page of the registered scopes that the caller may read; others are left out."""
    policy.require(engine, caller, "scope.read.local")
    question = (caller.tenant, "scopes", msgspec.structs.replace(request, cursor=None, limit=0))
    after = b"" if request.cursor is None else engine.cursors.read(request.cursor, *question)
    walk = ScopeWalk(engine, caller, after)
    items: list[ScopeRecord] = []
    while len(items) < request.limit and (row := walk.next()) is not None:
        if (
            not row.detached
            and row.path.startswith(request.prefix)
            and request.auto_provisioned in (None, row.auto_provisioned)
            and policy.may(engine, caller, "scope.read.local", row.path)
        ):
            items.append(_record(row))
    more = walk.has_more()
    cursor = engine.cursors.make(walk.after, *question) if more else None
    return ScopePage(items=items, next_cursor=cursor, has_more=more)


async def set_members(
    engine: "Engine", caller: Caller, path: str, members: list[Member]
) -> MembersReceipt:
    """Replace a scope's members, all at once (001 §8.8.3)."""
    decision = policy.require(engine, caller, "policy.administer.scope", path)
    _require_hold(engine, caller, path)
    _check_members(members)
    if not any(member.role == "owner" for member in members):
        raise InvalidParameter(field="members", reason="at least one owner must remain")
    proposal = MemberEdit(engine, caller, decision, path, members)
    receipt: MembersReceipt = await engine.committer.submit(proposal)
    return receipt


async def drop_scope(
    engine: "Engine", caller: Caller, path: str, records: Literal["keep", "forget"] | None
) -> None:
    """Drop a scope's registration and policy; its events stay in the log (001 §8.8.4)."""
    decision = policy.require(engine, caller, "policy.administer.scope", path)
    _require_hold(engine, caller, path)
    if records == "forget":
        policy.require(engine, caller, "forget.gdpr", path)
        everything = ForgetRequest(scope=path, confirm_all=True)
        await forget(engine, caller, ForgetCall(body=everything))
    is_kept = records is not None
    await engine.committer.submit(Removal(engine, caller, decision, path, keep=is_kept))


# ── who may ──────────────────────────────────────────────────────────────────────────────────


def _require_type(engine: "Engine", caller: Caller, path: str) -> None:
    """The type of the last segment is of the closed set, or custom types may be registered."""
    kinds = [segment.partition(":")[0] for segment in path.split("/")]
    if "global" in kinds:
        policy.require(engine, caller, "scope.create.global", path)
    kind = kinds[-1]
    if kind in BUILTIN_TYPES:
        policy.require(engine, caller, f"scope.create.{kind}", path)
        return
    decision = engine.policies.decide(caller, "scope.create.custom", path)
    more = engine.policies.preset.scope_types
    if not decision.allowed or (more is not None and kind not in more):
        raise UnregisteredScopeType(
            field="path",
            reason=f"no type {kind!r} here",
            allowed_scope_types=sorted(BUILTIN_TYPES | (more or frozenset())),
            capability=decision.capability,
            denied_by_tier=decision.tier,
            remediation=decision.remediation,
        )


def _require_hold(engine: "Engine", caller: Caller, path: str) -> None:
    """What a first write provisioned is its owner's to keep, or a tenant administrator's to take.

    Policy lets anyone in who may administer scopes at all, since such a scope has no members'
    rules yet; without this the second comer could shut the first one out.
    """
    tenant_no = engine.tenant_no(caller)
    row = None if tenant_no is None else engine.policies.scope_row(tenant_no, path)
    if tenant_no is None or row is None or not row.auto_provisioned:
        return
    above = [engine.policies.scope_row(tenant_no, parent) for parent in ancestors(path)]
    mine = Member(actor=caller.actor, role="owner")
    if not any(mine in found.members for found in above if found is not None):
        policy.require(engine, caller, "policy.administer.tenant")


def _check_members(members: Sequence[Member]) -> None:
    seen: set[str] = set()
    for at, member in enumerate(members):
        if member.actor in seen:
            raise InvalidParameter(field=f"members[{at}].actor", reason="named twice")
        seen.add(member.actor)


def _check_policies(policies: ScopePolicies | None) -> None:
    if policies is None:
        return
    try:
        check_free_json(policies.children, "policies.children")
    except InvalidEnvelope as error:
        raise InvalidBody(**error.details) from error


# ── proposals ────────────────────────────────────────────────────────────────────────────────


class Registration:
    """A proposal to register one scope."""

    entry_count = 1

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, request: RegisterRequest
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._request = request
        self.byte_count = _size(request.members or [])

    def decide(self, desk: Desk) -> Registered:
        """Register once; a repeat with the same key answers as the first did."""
        request, caller = self._request, self._caller
        tenant_no = desk.tenant_no(caller)
        idem, body_mac = self._macs(tenant_no)
        about = About(status=201, scope=request.path)
        earlier = desk.replayed(tenant_no, idem) if idem else None
        if earlier is not None:
            if earlier.body_mac != body_mac:
                raise IdempotencyConflict(
                    field="idempotency_key",
                    reason="used before with another body",
                    idempotency_key=request.idempotency_key,
                )
            desk.audit(caller, self._decision, about)
            return Registered(self._first_answer(desk, tenant_no, earlier.offset), replayed=True)
        row = row_of(self._engine, desk, tenant_no, request.path)
        if row is not None and not row.auto_provisioned and not row.detached:
            raise ScopeExists(path=request.path, created_at=row.created_at)
        members = _founders(request, row, caller.actor)
        command = RegisterScope(members=members, policies=request.policies)
        body = Directive(command=command, scope=request.path)
        entry = desk.add(caller, body, idem=idem, body_mac=body_mac)
        desk.audit(caller, self._decision, about)
        made = desk.overlay.get(tenant_no, "scopes", scope_key(entry.scope_no))
        assert made is not None, "registering leaves a row"
        return Registered(_record(made), replayed=False)

    def _macs(self, tenant_no: int) -> tuple[bytes, bytes]:
        key = self._request.idempotency_key
        if key is None:
            return b"", b""
        keys = self._engine.vault.tenant(tenant_no)
        said = _canonical(msgspec.structs.replace(self._request, idempotency_key=None))
        return keys.mac(self._caller.actor.encode(), _FAMILY, key.encode()), keys.mac(said)

    def _first_answer(self, desk: Desk, tenant_no: int, offset: int) -> ScopeRecord:
        """The record as it was when the entry had just been written."""
        engine = self._engine
        if offset >= desk.first:
            entry = desk.entry(offset)
        else:
            entry = engine.entry_of(engine.log.read_many([offset])[0])
        assert isinstance(entry.body, Directive), "the key's family holds registrations only"
        command = entry.body.command
        assert isinstance(command, RegisterScope), "the key's family holds registrations only"
        row = row_of(engine, desk, tenant_no, entry.scope)
        # An upgraded scope began with its first write; one that was dropped since began here.
        is_older = row is not None and row.created_at <= entry.recorded_at
        made = ScopeRow(
            path=entry.scope,
            members=command.members,
            auto_provisioned=False,
            created_at=row.created_at if row is not None and is_older else entry.recorded_at,
            created_by=row.created_by if row is not None and is_older else entry.event_id,
            policies=command.policies,
            updated_at=entry.recorded_at,
        )
        return _record(made)


class MemberEdit:
    """A proposal to replace one scope's members."""

    entry_count = 1

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, path: str, members: list[Member]
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._path = path
        self._members = members
        self.byte_count = _size(members)

    def decide(self, desk: Desk) -> MembersReceipt:
        """Write the list if it says anything new, and tell how it differs."""
        tenant_no = desk.tenant_no(self._caller)
        row = row_of(self._engine, desk, tenant_no, self._path)
        if row is None or row.detached:
            raise NotFound(f"{self._path} is not registered.", path=self._path)
        before = {member.actor: member for member in row.members}
        after = {member.actor: member for member in self._members}
        if before != after or row.auto_provisioned:
            command = SetMembers(members=self._members)
            desk.add(self._caller, Directive(command=command, scope=self._path))
        desk.audit(self._caller, self._decision, About(status=200, scope=self._path))
        return MembersReceipt(
            path=self._path,
            members=self._members,
            added=[after[actor] for actor in after if actor not in before],
            removed=[before[actor] for actor in before if actor not in after],
            changed=[
                RoleChange(actor=actor, role=after[actor].role, role_before=before[actor].role)
                for actor in after
                if actor in before and before[actor] != after[actor]
            ],
        )


class Removal:
    """A proposal to drop one scope's registration and policy."""

    entry_count = 1
    byte_count = 512

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, path: str, *, keep: bool
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._decision = decision
        self._path = path
        self._keep = keep

    def decide(self, desk: Desk) -> None:
        """Drop what is there; events are in the way unless the caller says to keep them."""
        engine, path = self._engine, self._path
        tenant_no = desk.tenant_no(self._caller)
        scope_no = engine.names.known(SCOPE, tenant_no, path) or 0
        said = desk.overlay.get(tenant_no, "policies", policy_key(scope_no))
        row = row_of(engine, desk, tenant_no, path)
        if said is None and (row is None or row.detached):
            raise NotFound(f"{path} is not registered.", path=path)
        held = count_events(engine, tenant_no, scope_no, desk.entries)
        if held.events and not self._keep:
            raise ScopeHasRecords(
                path=path,
                records=held,
                remediation="say records=keep to leave the events in the log",
            )
        command = DropScope(records="keep" if held.events else "none")
        desk.add(self._caller, Directive(command=command, scope=path))
        desk.audit(self._caller, self._decision, About(status=204, scope=path))


def _size(members: Sequence[Member]) -> int:
    """Roughly the bytes of a directive with so many members."""
    return limits.KIB + 256 * len(members)


def _founders(request: RegisterRequest, row: ScopeRow | None, caller: str) -> list[Member]:
    """The members a scope begins with: those given, or those it has; and always an owner."""
    given = list(request.members) if request.members is not None else []
    if request.members is None and request.owner is None and row is not None:
        given = list(row.members)
    owner = request.owner
    if owner is None and not any(member.role == "owner" for member in given):
        owner = caller
    if owner is None:
        return given
    rest = [member for member in given if member.actor != owner]
    return [Member(actor=owner, role="owner"), *rest]


def row_of(engine: "Engine", desk: Desk, tenant_no: int, path: str) -> ScopeRow | None:
    """A scope's registration as of the head, this batch included."""
    scope_no = engine.names.known(SCOPE, tenant_no, path)
    if scope_no is None:
        return None
    row: ScopeRow | None = desk.overlay.get(tenant_no, "scopes", scope_key(scope_no))
    return row


# ── records ──────────────────────────────────────────────────────────────────────────────────


def _record(row: ScopeRow) -> ScopeRecord:
    owner = next((member.actor for member in row.members if member.role == "owner"), None)
    return ScopeRecord(
        path=row.path,
        owner=owner,
        members=row.members,
        member_count=len(row.members),
        policies=row.policies,
        registered=True,
        auto_provisioned=row.auto_provisioned,
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
    )


def _unregistered(engine: "Engine", tenant_no: int, path: str) -> ScopeRecord | None:
    """What was written to and is registered no more: a scratchpad, from its first event on."""
    scope_no = engine.names.known(SCOPE, tenant_no, path)
    if scope_no is None:
        return None
    first = engine.directory.scope_offsets(
        tenant_no, scope_no, after=0, newest_first=False, limit=1
    )
    if not first or first[0] > engine.log.head():
        return None
    header = next(engine.log.headers(first[0], first[0] + 1))[0]
    return ScopeRecord(
        path=path,
        owner=None,
        members=[],
        member_count=0,
        policies=None,
        registered=False,
        auto_provisioned=True,
        created_at=from_us(header.recorded_us),
        created_by=format_id("evt", header.id),
        updated_at=None,
    )


class ScopeWalk:
    """A tenant's registered scopes in the order of their numbers, a bounded number of them."""

    def __init__(self, engine: "Engine", caller: Caller, after: bytes) -> None:
        self._inline = engine.inline
        self._tenant_no = engine.tenant_no(caller)
        self._block: list[tuple[bytes, ScopeRow]] = []
        self._looked = 0
        self.after = after

    def next(self) -> ScopeRow | None:
        """The next scope; None at the end, or when this call has looked at enough."""
        if self._tenant_no is None or self._looked >= limits.PAGE_SCAN_MAX:
            return None
        if not self._block:
            found = self._inline.page(self._tenant_no, "scopes", self.after, _BLOCK)
            self._block = found[::-1]
        if not self._block:
            return None
        self._looked += 1
        self.after, row = self._block.pop()
        return row

    def has_more(self) -> bool:
        """Whether anything lies beyond the last one."""
        if self._tenant_no is None:
            return False
        return bool(self._block or self._inline.page(self._tenant_no, "scopes", self.after, 1))


# ── what a scope holds ───────────────────────────────────────────────────────────────────────


def is_write_to(entry: Entry, tenant_no: int, scope_no: int) -> bool:
    """Whether an entry is an experience of this scope."""
    place = (entry.tenant_no, entry.scope_no, entry.kind)
    return place == (tenant_no, scope_no, KINDS[Experience])


def count_events(
    engine: "Engine", tenant_no: int, scope_no: int, fresh: Sequence[Entry] = ()
) -> RecordCounts:
    """A scope's events, those of an unwritten batch included; counted up to a bound."""
    found = engine.directory.scope_offsets(
        tenant_no, scope_no, after=0, newest_first=False, limit=_COUNTED_MAX + 1
    )
    events = len(found) + sum(1 for entry in fresh if is_write_to(entry, tenant_no, scope_no))
    if events > _COUNTED_MAX:
        return RecordCounts(events=_COUNTED_MAX, at_least=True)
    return RecordCounts(events=events)
