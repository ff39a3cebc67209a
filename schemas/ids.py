"""What does an identifier name, and how is one made without chance?

Every id is a prefix and a UUIDv7 (001 §3.6). The 48 time bits hold milliseconds and the next twelve
the microseconds within them, so that ids made from strictly increasing instants sort as they were
made: for entries that is the order of the log.
"""

import re
import struct
from functools import lru_cache
from hashlib import sha256
from typing import Final

PREFIXES: Final = {
    "evt": "memory event: an entry of the log",
    "ep": "episode",
    "fact": "fact",
    "belief": "belief",
    "concept": "understanding concept",
    "lce": "lifecycle event",
    "job": "async job without a prefix of its own",
    "batch": "bulk write",
    "imp": "import job",
    "exp": "export job",
    "ervw": "erasure preview",
    "erasure": "erasure execution",
    "pack": "recall pack",
    "audit": "audit row",
    "blob": "uploaded blob",
    "ent": "resolved entity",
    "concept_alias": "concept alias mapping",
    "req": "request correlation",
    "tok": "token revocation entry",
}
"""001 §3.6, every prefix."""

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME_MASK: Final = (1 << 48) - 1
_RANDOM_MASK: Final = (1 << 62) - 1
_VARIANT: Final = 0b10 << 62
_halves: Final = struct.Struct(">QQ").pack


def uuid7(instant_us: int, entropy: int) -> bytes:
    """The sixteen bytes of a UUIDv7 for a microsecond since 1970 and 62 bits to tell ids apart."""
    ms = instant_us // 1000
    high = (ms & _TIME_MASK) << 16 | 0x7000 | (instant_us - ms * 1000) * 4096 // 1000
    return _halves(high, _VARIANT | entropy & _RANDOM_MASK)


def uuid7_first(instant_us: int) -> bytes:
    """The smallest UUIDv7 of a microsecond: a bound for range reads by time."""
    return uuid7(instant_us, 0)


def uuid7_instant_us(raw: bytes) -> int:
    """The microsecond a UUIDv7 of ours was made from, exactly."""
    high = int.from_bytes(raw[:8], "big")
    fraction = high & 0xFFF
    return (high >> 16) * 1000 + (fraction * 1000 + 4095) // 4096


def fresh_id(prefix: str, raw: bytes) -> str:
    """The text form of an id that nobody has asked for before: `evt_0190c8e2-…`."""
    text = raw.hex()
    return f"{prefix}_{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


format_id: Final = lru_cache(maxsize=4096)(fresh_id)
"""The text form of an id, which is often asked for again."""


@lru_cache(maxsize=4096)
def parse_id(prefix: str, text: str) -> bytes | None:
    """The sixteen bytes behind an id of this prefix, or None when the text is not one."""
    if not text.startswith(prefix + "_"):
        return None
    body = text[len(prefix) + 1 :]
    if _UUID.fullmatch(body) is None:
        return None
    return bytes.fromhex(body.replace("-", ""))


def raw_of(prefix: str, text: str) -> bytes:
    """The sixteen bytes behind an id that the engine itself has written down."""
    raw = parse_id(prefix, text)
    assert raw is not None, f"{text} is not an id of {prefix}"
    return raw


def derive_id(prefix: str, source: bytes, ordinal: int) -> str:
    """The id of the n-th thing that follows from an entry: the same on every replay (I4)."""
    digest = sha256(f"{prefix}\0{ordinal}\0".encode() + source).digest()
    entropy = int.from_bytes(digest[:8], "big")
    return format_id(prefix, uuid7(uuid7_instant_us(source), entropy))
