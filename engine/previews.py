"""What was shown before something is destroyed, and is it still so?  (001 §8.6.1–8.6.3)

A preview keeps what was asked and a digest of what it came to; its manifest is worked out again
when it is asked for. A day later it is gone.
"""

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from engine.selection import Selection
from engine.state.views import prefix_end
from schemas import limits
from schemas.caller import Caller
from schemas.errors import Conflict, NotFound
from schemas.ids import parse_id, raw_of

if TYPE_CHECKING:
    from engine.engine import Engine

_PREFIX = b"preview."
_pack = msgspec.msgpack.Encoder(order="deterministic").encode


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """One preview, as it is kept beside the log: operation, and not replayed."""

    preview_id: str
    tenant_no: int
    by: str
    said: dict[str, Any]
    digest: bytes
    expires_us: int


_unpack = msgspec.msgpack.Decoder(Preview).decode


def digest_of(found: Selection) -> bytes:
    """What a selection comes to, as one number."""
    return sha256(_pack([sorted(found.records), sorted(found.events), found.held])).digest()


def keep_preview(
    engine: "Engine", caller: Caller, said: dict[str, Any], found: Selection
) -> Preview:
    """Keep a preview for a day. For verbs that have asked policy."""
    now = engine.clock.now_us()
    preview = Preview(
        preview_id=engine.clock.new_id("ervw"),
        tenant_no=engine.tenant_no(caller) or 0,
        by=caller.actor,
        said=said,
        digest=digest_of(found),
        expires_us=now + limits.PREVIEW_S * 1_000_000,
    )
    batch = engine.kv.batch()
    for key, value in engine.kv.scan("meta", _PREFIX, prefix_end(_PREFIX)):
        if _unpack(value).expires_us <= now:
            batch.delete("meta", key)
    batch.put("meta", _PREFIX + raw_of("ervw", preview.preview_id), _pack(preview))
    engine.kv.write(batch)
    return preview


def find_preview(engine: "Engine", caller: Caller, preview_id: str) -> Preview:
    """A preview of the caller's tenant that has not expired. For verbs that have asked policy."""
    raw = parse_id("ervw", preview_id)
    row = None if raw is None else engine.kv.get("meta", _PREFIX + raw)
    found = None if row is None else _unpack(row)
    tenant_no = engine.tenant_no(caller)
    if found is None or found.tenant_no != tenant_no or found.expires_us <= engine.clock.now_us():
        raise NotFound(f"There is no preview {preview_id[:80]!r}.", preview_id=preview_id[:80])
    return found


def check_preview(
    engine: "Engine", caller: Caller, preview_id: str, said: dict[str, Any], found: Selection
) -> None:
    """Refuse to do something else than was shown. For verbs that have asked policy."""
    preview = find_preview(engine, caller, preview_id)
    if _pack(preview.said) != _pack(said):
        raise Conflict("The preview was of another request.", preview_id=preview_id)
    if not hmac.compare_digest(preview.digest, digest_of(found)):
        raise Conflict(
            "Records came or went since the preview.",
            preview_id=preview_id,
            remediation="look at a fresh preview, then decide",
        )


def drop_previews(engine: "Engine", tenant_no: int) -> None:
    """Let go of a tenant's previews: they name scopes and what was searched for."""
    batch = engine.kv.batch()
    for key, value in engine.kv.scan("meta", _PREFIX, prefix_end(_PREFIX)):
        if _unpack(value).tenant_no == tenant_no:
            batch.delete("meta", key)
    engine.kv.write(batch)
