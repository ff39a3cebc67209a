"""How does a command become an entry, once however often it is sent?  (001 §6.3)"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.commit import Desk
from engine.rows import About
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.entry import Command, Directive, Entry
from schemas.errors import IdempotencyConflict

if TYPE_CHECKING:
    from engine.engine import Engine

Choice = Callable[[Desk, int], Command | None]
"""The command, as of the head of the log; None when it would change nothing. It may refuse."""

_canonical: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is to become a directive: by which route, under which key, saying what."""

    family: str
    said: Any
    key: str | None = None
    status: int = 200
    scope: str | None = None


class Written(msgspec.Struct, frozen=True):
    """The entry; none when nothing had to change, an earlier one when the key was used before."""

    entry: Entry | None
    is_replay: bool


class Order:
    """A proposal of one directive. Its key is good once: then it answers as the first did."""

    entry_count = 1

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, asked: Asked, choose: Choice
    ) -> None:
        self._engine = engine
        self.caller = caller
        self._decision = decision
        self._asked = asked
        self._choose = choose
        self._said = _canonical(asked.said)
        self.byte_count = limits.KIB + len(self._said)

    def is_known(self) -> bool:
        """Whether its key was used before: then it is answered as the first was, or refused."""
        tenant_no = self._engine.tenant_no(self.caller)
        idem = b"" if tenant_no is None else self._macs(tenant_no)[0]
        found = self._engine.directory.replayed(tenant_no or 0, idem) if idem else None
        return found is not None

    def decide(self, desk: Desk) -> Written:
        """Write it, unless it was written under this key or says nothing new."""
        asked, caller = self._asked, self.caller
        tenant_no = desk.tenant_no(caller)
        idem, body_mac = self._macs(tenant_no)
        earlier = desk.replayed(tenant_no, idem) if idem else None
        if earlier is not None:
            if earlier.body_mac != body_mac:
                raise IdempotencyConflict(
                    field="idempotency_key",
                    reason="used before with another body",
                    idempotency_key=asked.key,
                )
            written = Written(self._entry_at(desk, earlier.offset), is_replay=True)
        else:
            command = self._choose(desk, tenant_no)
            entry = None
            if command is not None:
                body = Directive(command=command, scope=asked.scope)
                entry = desk.add(caller, body, idem=idem, body_mac=body_mac)
            written = Written(entry, is_replay=entry is None)
        desk.audit(caller, self._decision, About(status=asked.status, scope=asked.scope))
        return written

    def _macs(self, tenant_no: int) -> tuple[bytes, bytes]:
        key = self._asked.key
        if key is None:
            return b"", b""
        keys = self._engine.vault.tenant(tenant_no)
        family = self._asked.family.encode()
        return keys.mac(self.caller.actor.encode(), family, key.encode()), keys.mac(self._said)

    def _entry_at(self, desk: Desk, offset: int) -> Entry:
        if offset >= desk.first:
            return desk.entry(offset)
        return self._engine.entry_of(self._engine.log.read_many([offset])[0])
