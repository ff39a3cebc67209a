"""What can be found of entries and of the records they moved?  Documents, and their vectors.

Whoever folds an entry has it and its records at hand, so the process beside the server can say what
the indexes will be given, and the server only gives it to them (ADR 0049). What that process does
not know, it leaves to the server, which looks it up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from engine.documents import Unplaced, event_documents, first_event, record_document
from engine.rows import Described
from engine.state.blocks import pack_vectors, shape_of
from engine.state.embeddings import Kept
from engine.state.index import Document, Embedder, Layer
from engine.state.kv import StoreError
from projectors.base import Projector
from projectors.records import LAYERS
from schemas import limits
from schemas.entry import Cancel, Directive, Entry, Forget
from schemas.ids import parse_id, raw_of
from schemas.layers import Record

RECORD_LAYERS: Final[tuple[Layer, ...]] = ("episodes", "facts", "beliefs", "concepts")
_FIRST_VERSION: Final = (1).to_bytes(4, "big")
_TEXTS_AT_ONCE: Final = 128

Name = tuple[int, Layer, bytes]
"""(tenant, layer, raw id): what a document is about."""


class Places(Protocol):
    """Where things are, by their names."""

    def scope_no(self, tenant_no: int, scope: str) -> int:
        """The number of a scope."""

    def offset(self, tenant_no: int, event: bytes) -> int:
        """Where an event is in the log; 0 when it is not there."""

    def row(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """A row of the views."""


class Describer:
    """Makes documents, by what is known of places."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.unreadable = 0
        """Entries and records of which no document could be made."""

    def event(self, entry: Entry) -> list[Document]:
        """The documents of an entry."""
        return self._made(event_documents, entry)

    def record(self, tenant_no: int, layer: Layer, raw: bytes, record: Record) -> list[Document]:
        """The documents of a record as it is now."""
        return self._made(self._told, tenant_no, layer, raw, record)

    def _made(self, make: Callable[..., list[Document]], *given: Any) -> list[Document]:
        """The documents; one that cannot be made is counted, and holds up no other."""
        try:
            return make(*given)
        except (StoreError, Unplaced):
            raise
        except Exception:  # noqa: BLE001 - health shows how many there are
            self.unreadable += 1
            return []

    def _told(self, tenant_no: int, layer: Layer, raw: bytes, record: Record) -> list[Document]:
        places = self._places
        scope_no = places.scope_no(tenant_no, record.scope)
        event = parse_id("evt", first_event(record) or "")
        document = record_document(
            layer,
            record,
            place=(tenant_no, scope_no),
            offset=0 if event is None else places.offset(tenant_no, event),
            known_from=self._known_from(tenant_no, layer, raw, record),
        )
        return [document]

    def _known_from(self, tenant_no: int, layer: Layer, raw: bytes, record: Record) -> datetime:
        """When the first version of the record was recorded."""
        if record.version > 1:
            first: Record | None = self._places.row(
                tenant_no, f"{layer}_past", raw + _FIRST_VERSION
            )
            if first is not None:
                return first.recorded_from
        return record.recorded_from


def layers_of(projectors: Sequence[Projector]) -> dict[str, Layer]:
    """The layers that these projectors keep as records, by their tables."""
    tables = {table: shape for one in projectors for table, shape in one.tables.items()}
    return {layer: layer for layer in RECORD_LAYERS if tables.get(layer) is LAYERS[layer][1]}


def describe(
    describer: Describer,
    layers: Mapping[str, Layer],
    entries: Sequence[Entry],
    pending: Mapping[tuple[int, str, bytes], Any],
) -> Described:
    """What entries that were folded together, and the rows they left, mean for the indexes."""
    before = describer.unreadable
    told: list[tuple[int, Layer, bytes, int, list[Document]]] = []
    gone: list[tuple[int, Layer, bytes, int]] = []
    left: list[Name] = []
    for entry in entries:
        documents = describer.event(entry)
        if documents:
            told.append((entry.tenant_no, "events", entry.id, entry.offset, documents))
        gone.extend(
            (entry.tenant_no, "events", withdrawn, entry.offset)
            for withdrawn in withdrawn_by(entry)
        )
    last = entries[-1].offset
    for (tenant_no, table, key), record in pending.items():
        layer = layers.get(table)
        if layer is None:
            continue
        if record is None:
            gone.append((tenant_no, layer, key, last))
            continue
        try:
            told.append(
                (tenant_no, layer, key, last, describer.record(tenant_no, layer, key, record))
            )
        except Unplaced:
            left.append((tenant_no, layer, key))
    return Described(told, gone, left, describer.unreadable - before)


def withdrawn_by(entry: Entry) -> Iterator[bytes]:
    """The events that this entry takes out of recall: cancelled, or without their payload."""
    command = entry.body.command if isinstance(entry.body, Directive) else None
    match command:
        case Cancel(event_id=event_id):
            yield raw_of("evt", event_id)
        case Forget(cascade=cascade, events=events) if cascade != "derived_only":
            for event in events:
                yield raw_of("evt", event.event_id)


# ── vectors ──────────────────────────────────────────────────────────────────────────────────


def gist_of(document: Document) -> str:
    """What is embedded of a document; nothing when the client asked for that."""
    return document.gist[: limits.EMBED_CHARS_MAX].strip() if document.embeds else ""


def embedded(
    embedder: Embedder, texts: Sequence[str], between: Callable[[], None]
) -> Iterator[Kept]:
    """Vectors and tokens of texts; something is done between two handfuls of them."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        between()
        given = texts[start : start + _TEXTS_AT_ONCE]
        vectors = pack_vectors(embedder.embed(given))
        short = [text if shape_of(text)[0] <= limits.LATE_WORDS_MAX else "" for text in given]
        tokens = embedder.token_batches(short)
        for vector, ids in zip(vectors, tokens, strict=True):
            yield vector, ids.astype("<i4").tobytes()
