"""Which pack was that?  Packs of the last minute, and what only this server can say about them.

A pack can be referred to for sixty seconds from when it was made, never longer (001 §18.2.20); it
belongs to the actor it was made for. Fence words, pack ids and the signatures of receipts are made
from a secret: the same request at the same point of the log gives the same ones, and nobody else
can tell them beforehand.
"""

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from engine.clock import Clock
from schemas import limits
from schemas.caller import Caller
from schemas.errors import IdempotencyConflict, PackExpired
from schemas.ids import format_id, uuid7
from schemas.pack import Evidence, StratifiedPack

_decode_pack: Final = msgspec.json.Decoder(StratifiedPack).decode
_decode_evidence: Final = msgspec.msgpack.Decoder(list[Evidence]).decode
_SECOND_US: Final = 1_000_000
_OVERHEAD_BYTES: Final = 2048


def _sha256(begun: bytes = b"") -> Any:
    # Not by its name: the library looks a name up for every message, which costs ten times as much.
    return sha256(begun)


@dataclass(frozen=True)
class Kept:
    """A pack as it was sent, and what a stream or an answer needs of it, as bytes."""

    pack_id: str
    raw: bytes
    evidence: bytes
    plan: dict[str, Any]
    is_narrative: bool
    items: tuple[str, ...]
    scopes: tuple[str, ...]
    warnings: tuple[str, ...]
    digest: str
    """Of what the pack says."""
    asked: bytes
    """Of the request: a key stands for one of them."""
    total_ms: float
    expires_us: int

    def pack(self) -> StratifiedPack:
        """The pack itself."""
        return _decode_pack(self.raw)

    def proof(self) -> list[Evidence]:
        """What the pack shows, in the order of its markers."""
        return _decode_evidence(self.evidence)


Owner = tuple[str, str]


class Packs:
    """The packs of the last minute."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        # The key is worked in once, and what is begun is copied for every message.
        own = hmac.digest(secret, b"strata packs", "sha256")
        self._begun = hmac.new(own, digestmod=_sha256)
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Owner, str], Kept] = OrderedDict()
        self._bytes = 0

    # ── what is made from the secret ─────────────────────────────────────────────────────────

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """Bytes that follow from the parts, for one purpose, and from nothing anyone else has."""
        framed = [len(part).to_bytes(8, "big") + part for part in parts]
        said = self._begun.copy()
        said.update(b"".join([purpose.encode(), b"\0", *framed]))
        return said.digest()

    def new_id(self, moment_us: int, *parts: bytes) -> str:
        """The id of the pack that answers a request, told apart by all that decides it."""
        entropy = int.from_bytes(self.mac("id", *parts)[:8], "big")
        return format_id("pack", uuid7(moment_us, entropy))

    def nonce(self, *parts: bytes) -> str:
        """The word of a fence."""
        return self.mac("fence", *parts).hex()[: limits.FENCE_CHARS]

    # ── keeping ──────────────────────────────────────────────────────────────────────────────

    def expiry_us(self) -> int:
        """When a pack made now is no longer known."""
        return self._clock.now_us() + limits.PACK_S * _SECOND_US

    def keep(self, caller: Caller, kept: Kept, key: str | None = None) -> None:
        """Remember a pack under its id, and under the caller's key when there is one."""
        owner = (caller.tenant, caller.actor)
        names = [kept.pack_id] if key is None else [kept.pack_id, _key(key)]
        with self._lock:
            for name in names:
                self._forget((owner, name))
                self._kept[owner, name] = kept
                self._bytes += _size(kept)
            self._sweep()

    def find(self, caller: Caller, pack_id: str) -> Kept:
        """A pack of this caller's; PackExpired when it is gone, another's, or never was."""
        found = self._get((caller.tenant, caller.actor), pack_id)
        if found is None:
            raise PackExpired(
                pack_id=pack_id[:80],
                lifetime_s=limits.PACK_S,
                remediation="recall again; keep the ids of provenance.citations for longer",
            )
        return found

    def replayed(self, caller: Caller, key: str, asked: bytes) -> Kept | None:
        """What a key stands for; another request under the same key is a conflict (001 §8.3)."""
        found = self._get((caller.tenant, caller.actor), _key(key))
        if found is not None and found.asked != asked:
            raise IdempotencyConflict(idempotency_key=key)
        return found

    def drop(self, concerns: Callable[[str, Kept], bool]) -> None:
        """Let go of packs at once: what was forgotten is in no cache either (I8)."""
        with self._lock:
            for place in [p for p, kept in self._kept.items() if concerns(p[0][0], kept)]:
                self._forget(place)

    def _get(self, owner: Owner, name: str) -> Kept | None:
        with self._lock:
            found = self._kept.get((owner, name))
        return None if found is None or found.expires_us <= self._clock.now_us() else found

    def _sweep(self) -> None:
        """Drop what has expired, and the oldest when there is too much."""
        now = self._clock.now_us()
        while self._kept:
            place, kept = next(iter(self._kept.items()))
            if kept.expires_us > now and self._bytes <= limits.PACKS_BYTES_MAX:
                return
            self._forget(place)

    def _forget(self, place: tuple[Owner, str]) -> None:
        kept = self._kept.pop(place, None)
        if kept is not None:
            self._bytes -= _size(kept)


def _key(key: str) -> str:
    """Keys and ids share one table; no id begins like this."""
    return "key:" + key


def _size(kept: Kept) -> int:
    return len(kept.raw) + len(kept.evidence) + _OVERHEAD_BYTES
