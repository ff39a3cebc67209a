"""Which number stands for this tenant, scope or actor?

Headers and keys hold numbers only: the names are personal, and this table can be erased.
"""

import hmac
import threading

from engine.state.kv import KV, Batch
from schemas import limits

FAMILIES = ("names",)
TENANT, SCOPE, ACTOR = b"t", b"s", b"a"


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


class Names:
    """Numbers for names, per tenant, counted from 1; written in the batch that first uses them."""

    def __init__(self, kv: KV, secret: bytes) -> None:
        self._kv = kv
        # Keyed once: a fresh HMAC for every name costs more, and lets go of the interpreter.
        self._keyed = hmac.new(hmac.digest(secret, b"strata names", "sha256"), digestmod="sha256")
        self._numbers: dict[tuple[bytes, int, str], int] = {}
        self._names: dict[tuple[bytes, int, int], str] = {}
        self._last: dict[tuple[bytes, int], int] = {}
        self._fresh: list[tuple[bytes, int, str, int]] = []
        # Readers look names up in threads of their own, and one number may not be given twice.
        self._lock = threading.RLock()

    def number(self, kind: bytes, tenant_no: int, name: str) -> int:
        """The number of a name, given now if it is new; `write_fresh` must follow."""
        place = (kind, tenant_no, name)
        found = self._numbers.get(place)
        if found is None:
            with self._lock:
                found = self.known(kind, tenant_no, name)
                if found is None:
                    found = self._give(kind, tenant_no, name)
        return found

    def known(self, kind: bytes, tenant_no: int, name: str) -> int | None:
        """The number of a name, or None when the log has never seen it."""
        place = (kind, tenant_no, name)
        found = self._numbers.get(place)
        if found is None:
            row = self._kv.get("names", self._name_key(kind, tenant_no, name))
            if row is None:
                return None
            found = int.from_bytes(row, "big")
            self._remember(kind, tenant_no, name, found)
        return found

    def name(self, kind: bytes, tenant_no: int, number: int) -> str:
        """The name behind a number; the empty string when it was erased."""
        if number == 0:
            return ""
        found = self._names.get((kind, tenant_no, number))
        if found is None:
            row = self._kv.get("names", self._number_key(kind, tenant_no, number))
            if row is None:
                return ""
            found = row.decode()
            self._remember(kind, tenant_no, found, number)
        return found

    def all(self, kind: bytes, tenant_no: int) -> list[tuple[int, str]]:
        """Every (number, name) of a kind, in the order they were given."""
        prefix = self._prefix(kind.upper(), tenant_no)
        end = prefix + b"\xff\xff\xff\xff\xff"
        return [
            (int.from_bytes(key[len(prefix) :], "big"), value.decode())
            for key, value in self._kv.scan("names", prefix, end)
        ]

    def write_fresh(self, batch: Batch) -> None:
        """Put the names given since the last call into the batch that uses them."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
        for kind, tenant_no, name, number in fresh:
            batch.put("names", self._name_key(kind, tenant_no, name), _number(number))
            batch.put("names", self._number_key(kind, tenant_no, number), name.encode())

    def _give(self, kind: bytes, tenant_no: int, name: str) -> int:
        last = self._last.get((kind, tenant_no))
        if last is None:
            last = self._last_given(kind, tenant_no)
        number = self._last[kind, tenant_no] = last + 1
        self._fresh.append((kind, tenant_no, name, number))
        self._remember(kind, tenant_no, name, number)
        return number

    def _last_given(self, kind: bytes, tenant_no: int) -> int:
        prefix = self._prefix(kind.upper(), tenant_no)
        end = prefix + b"\xff\xff\xff\xff\xff"
        for key, _ in self._kv.scan("names", prefix, end, reverse=True, limit=1):
            return int.from_bytes(key[len(prefix) :], "big")
        return 0

    def _remember(self, kind: bytes, tenant_no: int, name: str, number: int) -> None:
        with self._lock:
            if len(self._numbers) >= limits.NAME_CACHE_MAX and not self._fresh:
                self._numbers.clear()
                self._names.clear()
            self._numbers[kind, tenant_no, name] = number
            self._names[kind, tenant_no, number] = name

    @staticmethod
    def _prefix(kind: bytes, tenant_no: int) -> bytes:
        return _number(tenant_no) + kind

    def _name_key(self, kind: bytes, tenant_no: int, name: str) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(kind + _number(tenant_no) + name.encode())
        return self._prefix(kind, tenant_no) + keyed.digest()[:16]

    def _number_key(self, kind: bytes, tenant_no: int, number: int) -> bytes:
        return self._prefix(kind.upper(), tenant_no) + _number(number)
