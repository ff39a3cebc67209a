"""Who holds the keys, so that a payload can be destroyed for good?

One random secret lies in the vault for every offset of the log, made durable thousands of offsets
ahead of the head, so that a capture waits for one fsync and not for two (docs/adr/0011). The key of
a payload is the keyed hash (BLAKE2b) of its slot's secret under the tenant's key: without the slot
that payload is gone, without the tenant's key all of the tenant's payloads are.
"""

import hmac
import os
import threading
from collections.abc import Iterable
from hashlib import blake2b, sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.state.kv import KV, CorruptStore
from schemas import limits

FAMILIES = ("slots", "tenants")
_NONCE_BYTES = 12
_SECRET_BYTES = 32
_OFFSET_BYTES = 8
_REFILL = limits.VAULT_SLOTS_AHEAD // 4


def offset_key(offset: int) -> bytes:
    """Offsets sort as numbers when written big-endian."""
    return offset.to_bytes(8, "big")


class TenantKeys:
    """What belongs to one tenant: the key of its payloads and the pepper of its hashes."""

    def __init__(self, secret: bytes) -> None:
        self.payload_key = secret[:_SECRET_BYTES]
        self.pepper = secret[_SECRET_BYTES:]
        self._peppers: dict[int, bytes] = {}

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
        content = parts[0] if len(parts) == 1 else b"\0".join(parts)
        return blake2b(sha256(content).digest(), key=self.pepper, digest_size=16).digest()


class Vault:
    """Slot secrets by offset and tenant keys by number, each wrapped by the master key."""

    def __init__(self, kv: KV, master_key: bytes) -> None:
        self._kv = kv
        self._wrap = AESGCM(hmac.digest(master_key, b"strata vault wrapping key", "sha256"))
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
        secrets = os.urandom(_SECRET_BYTES * (wanted - first + 1))
        fresh: dict[int, bytes] = {}
        for index, offset in enumerate(range(first, wanted + 1)):
            secret = secrets[index * _SECRET_BYTES : (index + 1) * _SECRET_BYTES]
            batch.put("slots", offset_key(offset), self._seal(secret, offset_key(offset)))
            fresh[offset] = secret
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
        return secret

    def slot(self, offset: int) -> bytes | None:
        """The secret of an offset, or None when it was destroyed."""
        row = self._kv.get("slots", offset_key(offset))
        return None if row is None else self._open(row, offset_key(offset))

    def slots(self, offsets: list[int]) -> list[bytes | None]:
        """Many secrets at once."""
        keys = [offset_key(offset) for offset in offsets]
        rows = self._kv.get_many("slots", keys)
        return [
            None if row is None else self._open(row, key)
            for row, key in zip(rows, keys, strict=True)
        ]

    def destroy(self, offsets: Iterable[int]) -> None:
        """Destroy slots for good: out of memory, out of the rows, out of the files."""
        batch = self._kv.batch()
        doomed = sorted(offsets)
        for offset in doomed:
            self._ready.pop(offset, None)
            batch.delete("slots", offset_key(offset))
        self._kv.write(batch)
        self._kv.sync()
        if doomed:
            self._kv.compact("slots", offset_key(doomed[0]), offset_key(doomed[-1] + 1))

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
        place = tenant_no.to_bytes(4, "big")
        row = self._kv.get("tenants", place)
        if row is not None:
            return self._open(row, place)
        secret = os.urandom(2 * _SECRET_BYTES)
        batch = self._kv.batch()
        batch.put("tenants", place, self._seal(secret, place))
        self._kv.write(batch)
        self._kv.sync()
        return secret

    # ── wrapping ─────────────────────────────────────────────────────────────────────────────

    def _seal(self, secret: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._wrap.encrypt(nonce, secret, place)

    def _open(self, row: bytes, place: bytes) -> bytes:
        try:
            return self._wrap.decrypt(row[:_NONCE_BYTES], row[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError) as error:
            whose = "entry" if len(place) == _OFFSET_BYTES else "tenant"
            number = int.from_bytes(place, "big")
            message = f"the key of {whose} {number} does not open: wrong master key, or damaged"
            raise CorruptStore(message) from error


def payload_key(tenant: TenantKeys, secret: bytes) -> bytes:
    """The AES-256 key of one payload."""
    return blake2b(secret, key=tenant.payload_key, digest_size=32).digest()


def commitment(key: bytes) -> bytes:
    """Ties a header to its key: AES-GCM alone lets one ciphertext open under two."""
    return sha256(b"kc" + key).digest()[:16]
