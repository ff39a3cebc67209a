"""Who holds the keys, so that a payload can be destroyed for good?

One random secret lies in the vault for every offset of the log, made durable thousands of offsets
ahead of the head, so that a capture waits for one fsync and not for two (docs/adr/0011). The key of
a payload is the keyed hash (BLAKE2b) of its slot's secret under the tenant's key: without the slot
that payload is gone, without the tenant's key all of the tenant's payloads are.

The tenant's key is wrapped by one outside of the vault, which is changed when something was erased:
payloads that stay get rows with their own key under the new one, and an older copy of the vault
opens with nothing that is left (docs/adr/0033).
"""

import asyncio
import hmac
import os
import threading
from collections.abc import Iterable, Sequence
from hashlib import blake2b, sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.state.keyring import Keyring
from engine.state.kv import KV, CorruptStore
from engine.state.rows import PayloadKey
from schemas import limits

FAMILIES = ("slots", "tenants")
_NONCE_BYTES = 12
_SECRET_BYTES = 32
_OFFSET_BYTES = 8
_NUMBER_BYTES = 4
_TAG_BYTES = 16
_MAC_BYTES = 16
_SLOT_ROW_BYTES = _NONCE_BYTES + _SECRET_BYTES + _TAG_BYTES
_FIRST_ROW_BYTES = _NONCE_BYTES + 2 * _SECRET_BYTES + _TAG_BYTES
"""A tenant's row under the master key alone, as it is where there is no keyring."""
# A hash to begin with: to copy one costs less than to ask the library for it.
_committed = sha256(b"kc").copy
_REFILL = limits.VAULT_SLOTS_AHEAD // 4


def offset_key(offset: int) -> bytes:
    """Offsets sort as numbers when written big-endian."""
    return offset.to_bytes(8, "big")


Wanted = tuple[int, int, bytes]
"""(tenant, offset, commitment to the key) of a payload."""


class TenantKeys:
    """What belongs to one tenant: the key of its payloads and the pepper of its hashes.

    `former` is the key of its payloads before, while they are moved from one to the other.
    """

    def __init__(self, secret: bytes) -> None:
        self.payload_key = secret[:_SECRET_BYTES]
        self.pepper = secret[_SECRET_BYTES : 2 * _SECRET_BYTES]
        self.former = secret[2 * _SECRET_BYTES :]
        self._peppers: dict[int, bytes] = {}
        # Hashes that have taken in their key, to be copied: a keyed one begins with a whole block.
        self._keyed = blake2b(key=self.payload_key, digest_size=_SECRET_BYTES)
        self._peppered = blake2b(key=self.pepper, digest_size=_MAC_BYTES)

    def pepper_of(self, version: int) -> bytes:
        """The audit log's pepper of one quarter (001 §18.2.11); keys of retries never rotate."""
        found = self._peppers.get(version)
        if found is None:
            name = b"audit pepper %d" % version
            found = blake2b(name, key=self.pepper, digest_size=_SECRET_BYTES).digest()
            self._peppers[version] = found
        return found

    def mac(self, *parts: bytes) -> bytes:
        """Sixteen bytes that say two inputs are equal and nothing else about them.

        The parts before the last hold no NUL: they are actors and endpoint families.
        """
        return self.mac_of(b"\0".join(parts))

    def mac_of(self, whole: bytes) -> bytes:
        """The same of one part."""
        made = self._peppered.copy()
        made.update(sha256(whole).digest())
        return made.digest()

    def derive(self, secret: bytes) -> bytes:
        """The AES-256 key of the payload with this secret."""
        made = self._keyed.copy()
        made.update(secret)
        return made.digest()


class Vault:
    """Slot secrets by offset and tenant keys by number, each wrapped by the master key."""

    def __init__(self, kv: KV, master_key: bytes, keyring: Keyring | None = None) -> None:
        self._kv = kv
        self._wrap = AESGCM(hmac.digest(master_key, b"strata vault wrapping key", "sha256"))
        self._keyring = keyring
        self._changing = threading.Lock()
        self.rotating = asyncio.Lock()
        self._ready: dict[int, bytes] = {}
        self._tenants: dict[int, TenantKeys] = {}
        self._meeting = threading.Lock()
        last = next(iter(kv.scan("slots", reverse=True, limit=1)), None)
        self.end = int.from_bytes(last[0], "big") if last else 0

    # ── slots ────────────────────────────────────────────────────────────────────────────────

    def wants_keys(self, head: int) -> bool:
        """Whether it is time to lay more keys ahead of the head."""
        return self.end < head + limits.VAULT_SLOTS_AHEAD - _REFILL

    def lay_ahead(self, head: int) -> None:
        """Make keys durable for the offsets after the head; call before they are needed."""
        wanted = head + limits.VAULT_SLOTS_AHEAD
        if not self.wants_keys(head):
            return
        batch = self._kv.batch()
        first = max(self.end, head) + 1
        # The system is asked once for all of them: a secret and a nonce for every slot.
        each = _SECRET_BYTES + _NONCE_BYTES
        chance = os.urandom(each * (wanted - first + 1))
        fresh: dict[int, bytes] = {}
        rows: list[tuple[bytes, bytes]] = []
        for index, offset in enumerate(range(first, wanted + 1)):
            at, place = index * each, offset_key(offset)
            secret = chance[at : at + _SECRET_BYTES]
            nonce = chance[at + _SECRET_BYTES : at + each]
            rows.append((place, nonce + self._wrap.encrypt(nonce, secret, place)))
            fresh[offset] = secret
        batch.put_many("slots", rows)
        self._kv.write(batch)
        self._kv.sync()
        self._ready.update(fresh)
        self.end = wanted

    def take(self, offset: int) -> bytes:
        """The secret for an entry about to be appended; its slot is durable already."""
        secret = self._ready.pop(offset, None)
        if secret is None:
            secret = self.slot(offset)
        assert secret is not None, f"no key was laid ahead for offset {offset}"
        assert not isinstance(secret, PayloadKey), f"the key of offset {offset} is in use"
        return secret

    def slot(self, offset: int) -> bytes | None:
        """The secret of an offset, or None when it was destroyed."""
        return self.slots([offset])[0]

    def slots(self, offsets: list[int]) -> list[bytes | None]:
        """Many secrets at once."""
        keys = [offset_key(offset) for offset in offsets]
        rows = self._kv.get_many("slots", keys)
        return [
            None if row is None else self._secret(row, key)
            for row, key in zip(rows, keys, strict=True)
        ]

    def _secret(self, row: bytes, place: bytes) -> bytes:
        if len(row) == _SLOT_ROW_BYTES:
            return self._open(row, place)
        return PayloadKey(self._unwrap(row[_NUMBER_BYTES:], row[:_NUMBER_BYTES], place))

    def key(self, tenant_no: int, secret: bytes, committed: bytes) -> bytes:
        """The key of a payload from what its slot holds."""
        if isinstance(secret, PayloadKey):
            return secret
        keys = self.tenant(tenant_no)
        found = payload_key(keys, secret)
        if keys.former and commitment(found) != committed:
            return blake2b(secret, key=keys.former, digest_size=_SECRET_BYTES).digest()
        return found

    def destroy(self, offsets: Iterable[int]) -> None:
        """Destroy slots for good: out of memory, out of the rows, out of the files."""
        batch = self._kv.batch()
        doomed = sorted(offsets)
        for offset in doomed:
            self._ready.pop(offset, None)
            batch.delete("slots", offset_key(offset))
        with self._changing:  # or a change of wrapping keys could write one back
            self._kv.write(batch)
        self._kv.sync()
        if doomed:
            self._kv.compact("slots", offset_key(doomed[0]), offset_key(doomed[-1] + 1))

    def cut(self, head: int) -> None:
        """Drop the slots after a head: a vault that is newer than its log has given them out."""
        batch = self._kv.batch()
        batch.delete_range("slots", offset_key(head + 1), b"\xff" * (_OFFSET_BYTES + 1))
        self._kv.write(batch)
        self._kv.sync()
        self._ready.clear()
        self.end = head

    # ── tenants ──────────────────────────────────────────────────────────────────────────────

    def tenant(self, tenant_no: int) -> TenantKeys:
        """A tenant's keys; made durable at first use."""
        keys = self._tenants.get(tenant_no)
        if keys is None:
            # Readers come in threads of their own: two keys for one tenant would lose its payloads.
            with self._meeting:
                keys = self._tenants.get(tenant_no)
                if keys is None:
                    keys = self._tenants[tenant_no] = TenantKeys(self._tenant_secret(tenant_no))
        return keys

    def _tenant_secret(self, tenant_no: int) -> bytes:
        place = tenant_no.to_bytes(_NUMBER_BYTES, "big")
        row = self._kv.get("tenants", place)
        if row is not None:
            return self._open(row, place) if _is_first(row) else self._unwrap(row, place, place)
        secret = os.urandom(2 * _SECRET_BYTES)
        self._save_tenant(tenant_no, secret, 1)
        return secret

    def _save_tenant(self, tenant_no: int, secret: bytes, generation: int) -> None:
        """The tenant's row under a generation of its wrapping key, which is durable before."""
        place = tenant_no.to_bytes(_NUMBER_BYTES, "big")
        batch = self._kv.batch()
        if self._keyring is None:
            batch.put("tenants", place, self._seal(secret, place))
        else:
            self._keyring.make(tenant_no, generation)
            batch.put("tenants", place, self._wrapped(place, generation, place, secret))
        self._kv.write(batch)
        self._kv.sync()

    # ── the wrapping keys of tenants ─────────────────────────────────────────────────────────

    def generations(self) -> dict[int, int]:
        """Which generation of its wrapping key opens each tenant's row."""
        return {
            int.from_bytes(place, "big"): 0 if _is_first(row) else _number(row)
            for place, row in self._kv.scan("tenants")
        }

    def tidy(self) -> None:
        """At start: no tenant is without a wrapping key, and what was replaced is destroyed."""
        for tenant_no, generation in self.generations().items() if self._keyring else ():
            if generation == 0:
                self._save_tenant(tenant_no, self._tenant_secret(tenant_no), 1)
            elif self._keyring is not None and not self.tenant(tenant_no).former:
                self._keyring.destroy_before(tenant_no, generation)

    @property
    def can_rotate(self) -> bool:
        """Whether there are wrapping keys to change."""
        return self._keyring is not None

    def begin_rotation(self, tenant_no: int) -> TenantKeys | None:
        """A new wrapping key and a new payload key, durable and not yet in use; then `adopt`.

        None when a rotation is under way already.
        """
        keys = self.tenant(tenant_no)
        if keys.former:
            return None
        secret = os.urandom(_SECRET_BYTES) + keys.pepper + keys.payload_key
        self._save_tenant(tenant_no, secret, self.generations()[tenant_no] + 1)
        return TenantKeys(secret)

    def adopt(self, tenant_no: int, keys: TenantKeys) -> None:
        """Use these for what is written from now on; call it where entries are written."""
        self._tenants[tenant_no] = keys

    def rewrap(self, wanted: Sequence[Wanted]) -> None:
        """Give payloads of a tenant rows of their own under its newest wrapping key."""
        places = [offset_key(offset) for _, offset, _ in wanted]
        newest = self.generations()
        with self._changing:
            batch = self._kv.batch()
            rows = self._kv.get_many("slots", places)
            for (tenant_no, _, committed), place, row in zip(wanted, places, rows, strict=True):
                if row is None:
                    continue
                generation = newest[tenant_no]
                if len(row) != _SLOT_ROW_BYTES and _number(row[_NUMBER_BYTES:]) == generation:
                    continue
                key = self.key(tenant_no, self._secret(row, place), committed)
                if commitment(key) != committed:
                    continue  # damaged: it does not open, and must not look as if it could
                owner = tenant_no.to_bytes(_NUMBER_BYTES, "big")
                batch.put("slots", place, owner + self._wrapped(owner, generation, place, key))
            self._kv.write(batch)

    def end_rotation(self, tenant_no: int) -> int:
        """Every payload has its row: destroy what wrapped them before. The newest generation."""
        keys = self.tenant(tenant_no)
        self._kv.sync()
        generation = self.generations()[tenant_no]
        self._save_tenant(tenant_no, keys.payload_key + keys.pepper, generation)
        keys.former = b""
        if self._keyring is not None:
            self._keyring.destroy_before(tenant_no, generation)
        return generation

    def _wrapped(self, owner: bytes, generation: int, place: bytes, secret: bytes) -> bytes:
        number = generation.to_bytes(_NUMBER_BYTES, "big")
        nonce = os.urandom(_NONCE_BYTES)
        return number + nonce + self._wrapping(owner, number, place).encrypt(nonce, secret, place)

    def _unwrap(self, row: bytes, owner: bytes, place: bytes) -> bytes:
        number, rest = row[:_NUMBER_BYTES], row[_NUMBER_BYTES:]
        wrap = self._wrapping(owner, number, place)
        return _opened(wrap, rest, place)

    def _wrapping(self, owner: bytes, number: bytes, place: bytes) -> AESGCM:
        tenant_no, generation = _number(owner), _number(number)
        key = None if self._keyring is None else self._keyring.key(tenant_no, generation)
        if key is None:
            what = "" if place == owner else f" of entry {int.from_bytes(place, 'big')}"
            raise CorruptStore(
                f"the key{what} of tenant {tenant_no} does not open: its wrapping key of "
                f"generation {generation} is not here, and may have been destroyed by an erasure"
            )
        return AESGCM(key)

    # ── wrapping ─────────────────────────────────────────────────────────────────────────────

    def _seal(self, secret: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._wrap.encrypt(nonce, secret, place)

    def _open(self, row: bytes, place: bytes) -> bytes:
        return _opened(self._wrap, row, place)


def _opened(wrap: AESGCM, row: bytes, place: bytes) -> bytes:
    try:
        return wrap.decrypt(row[:_NONCE_BYTES], row[_NONCE_BYTES:], place)
    except (InvalidTag, ValueError) as error:
        whose = "entry" if len(place) == _OFFSET_BYTES else "tenant"
        number = int.from_bytes(place, "big")
        message = f"the key of {whose} {number} does not open: wrong master key, or damaged"
        raise CorruptStore(message) from error


def _number(row: bytes) -> int:
    return int.from_bytes(row[:_NUMBER_BYTES], "big")


def _is_first(row: bytes) -> bool:
    return len(row) == _FIRST_ROW_BYTES


def payload_key(tenant: TenantKeys, secret: bytes) -> bytes:
    """The AES-256 key of one payload."""
    return tenant.derive(secret)


def commitment(key: bytes) -> bytes:
    """Ties a header to its key: AES-GCM alone lets one ciphertext open under two."""
    made = _committed()
    made.update(key)
    return made.digest()[:16]
