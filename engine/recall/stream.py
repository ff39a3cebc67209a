"""How is a pack told piece by piece?  Server-sent events of 001 §10.1 and §10.2, resumable.

Every frame has an id, `<pack id>:<number>`: for sixty seconds a client that names the last one it
had gets the rest, from the pack that is kept.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from engine.recall.pack import LAYER_ORDER
from schemas.pack import StratifiedPack

Frame = tuple[str, Any]
"""(event, data)."""

_PIECE: Final = re.compile(r"\s*\S+")
_LAST: Final = re.compile(r"(?P<pack>pack_[A-Za-z0-9_-]{1,64}):(?P<number>[0-9]{1,9})")
_json: Final = msgspec.json.Encoder(order="deterministic").encode


def frame(frame_id: str | None, event: str, data: Any) -> bytes:
    """One server-sent event, encoded; the plan comes before there is a pack to name."""
    named = "" if frame_id is None else f"id: {frame_id}\n"
    return f"{named}event: {event}\ndata: ".encode() + _json(data) + b"\n\n"


def last_heard(header: str) -> tuple[str, int] | None:
    """(pack, number) of a Last-Event-ID of ours."""
    found = _LAST.fullmatch(header)
    return None if found is None else (found["pack"], int(found["number"]))


def granular(pack: StratifiedPack, total_ms: float) -> Iterator[Frame]:
    """The pack after its plan: layer by layer, then what was made of them (001 §10.1)."""
    for layer in LAYER_ORDER:
        items = getattr(pack.layers, layer)
        if items:
            yield "layer", {"layer": layer, "items": items, "elapsed_ms": total_ms}
    if pack.knowledge_subgraph is not None:
        yield "knowledge_subgraph", pack.knowledge_subgraph
    yield "context_block", {"text": pack.context_block}
    yield "citations", pack.citations
    yield "provenance", pack.provenance
    yield "diagnostics", _diagnostics(pack)
    yield "done", _done(pack, total_ms)


def narrative(pack: StratifiedPack, total_ms: float) -> Iterator[Frame]:
    """Words as they come, then what they rest on (001 §10.2)."""
    yield from tokens(pack.context_block)
    yield "citations", pack.citations
    yield "provenance", pack.provenance
    yield "diagnostics", _diagnostics(pack)
    yield "done", _done(pack, total_ms)


def tokens(text: str) -> Iterator[Frame]:
    """A text in pieces that give it back when they are put together."""
    end = 0
    for piece in _PIECE.finditer(text):
        end = piece.end()
        yield "token", {"text": piece[0]}
    if text[end:]:
        yield "token", {"text": text[end:]}


def _diagnostics(pack: StratifiedPack) -> dict[str, Any]:
    said = dict(pack.diagnostics or {})
    said["scopes_traversed"] = pack.scopes_traversed
    said["budget"] = pack.budget
    return said


def _done(pack: StratifiedPack, total_ms: float) -> dict[str, Any]:
    return {
        "total_ms": total_ms,
        "pack_id": pack.pack_id,
        "request_id": pack.request_id,
        "as_of": pack.as_of,
        "watermark": pack.watermark,
        "expires_at": pack.expires_at,
    }
