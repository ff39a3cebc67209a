"""Has this text been embedded before?  Vectors by content and model, so that none is made twice.

A key is a keyed hash of the text under its tenant's secret: it tells nobody anything. What is kept
is lost without loss: a vector that is not here is made again.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from engine.state.kv import KV, Batch
from engine.state.vault import Vault
from engine.state.views import prefix_end

FAMILIES = ("embeddings",)
_TAG_BYTES: Final = 4

Kept = tuple[bytes, bytes]
"""(vector as float16, tokens as int32)."""


class Embeddings:
    """The vectors of one model."""

    def __init__(self, kv: KV, vault: Vault, model: str, dimensions: int) -> None:
        self._kv = kv
        self._vault = vault
        self._model = model.encode()
        self._tag = blake2b(self._model, digest_size=_TAG_BYTES).digest()
        self._vector_bytes = 2 * dimensions

    def key(self, tenant_no: int, text: str) -> bytes:
        """Where the vector of a text is kept."""
        content = self._vault.tenant(tenant_no).mac(b"embedding", self._model, text.encode())
        return tenant_no.to_bytes(4, "big") + self._tag + content

    def find(self, keys: Sequence[bytes]) -> list[Kept | None]:
        """What is kept, in the order of the keys."""
        cut = self._vector_bytes
        found = self._kv.get_many("embeddings", keys)
        return [None if value is None else (value[:cut], value[cut:]) for value in found]

    def keep(self, batch: Batch, key: bytes, vector: bytes, tokens: bytes) -> None:
        """Remember a vector, in the batch of the row that has it."""
        # A text without words has no vector: zeros, so that the tokens begin where they should.
        batch.put("embeddings", key, vector.ljust(self._vector_bytes, b"\0") + tokens)

    def drop_others(self, tenant_nos: Sequence[int]) -> None:
        """Forget what other models said."""
        batch = self._kv.batch()
        for tenant_no in tenant_nos:
            tenant = tenant_no.to_bytes(4, "big")
            batch.delete_range("embeddings", tenant, tenant + self._tag)
            after = prefix_end(tenant + self._tag)
            end = prefix_end(tenant)
            if after is not None and end is not None:
                batch.delete_range("embeddings", after, end)
        self._kv.write(batch)
