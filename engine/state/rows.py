"""What is an entry in the log, and on its way out of it?"""

import msgspec


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What stays of an entry for ever, and says nothing about anyone."""

    version: int
    offset: int
    id: bytes
    tenant_no: int
    scope_no: int
    actor_no: int
    kind: int
    schema_version: int
    recorded_us: int
    body_bytes: int
    cipher_bytes: int
    cipher_sha256: bytes
    key_commitment: bytes
    idem: bytes
    body_mac: bytes


class Row(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is read: `body` is None when it was erased."""

    header: Header
    chain: bytes
    body: bytes | None


class UnitState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a unit of projectors has come."""

    generation: int = 0
    checkpoint: int = 0
    versions: dict[str, int] = {}
    building: int | None = None
    building_checkpoint: int = 0
    building_versions: dict[str, int] = {}
    announced: int = 0


Packed = tuple[int, str, bytes, bytes | None]
"""A row as it is to be written: its place and its bytes, None when it is gone."""


class PayloadKey(bytes):
    """The key of a payload itself, and not a secret from which it follows."""

    __slots__ = ()
