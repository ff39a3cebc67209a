"""What do entries and changed records mean for the indexes?  Documents to put, and some to remove.

Reads the log, the change feed and the views, and writes to one generation of the indexes. An event
comes from its entry, a record from the views as they are now: only its latest version is indexed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from engine.clock import Clock
from engine.courtesy import Courtesy, Way
from engine.documents import event_documents, first_event, record_document
from engine.entries import EntryReader
from engine.rows import Feed
from engine.state.blocks import pack_vectors, row_of, shape_of
from engine.state.directory import Directory
from engine.state.embeddings import FAMILIES as EMBEDDINGS
from engine.state.embeddings import Embeddings, Kept
from engine.state.generations import Generation
from engine.state.index import Document, Embedder, Layer
from engine.state.kv import KV, StoreError
from engine.state.log import KvLog
from engine.state.names import SCOPE, TENANT, Names
from engine.state.rows import Row
from engine.state.vault import Vault, offset_key
from engine.state.vector_index import Gone, Placed
from engine.state.views import Halves, Unit
from projectors.records import LAYERS
from schemas import limits
from schemas.entry import Cancel, Directive, Entry, Forget
from schemas.ids import parse_id, raw_of
from schemas.layers import Record

FAMILIES = EMBEDDINGS
RECORD_LAYERS: Final[tuple[Layer, ...]] = ("episodes", "facts", "beliefs", "concepts")
_ROWS_AT_ONCE: Final = 16
_TEXTS_AT_ONCE: Final = 128
_FIRST_VERSION: Final = (1).to_bytes(4, "big")

Name = tuple[int, Layer, bytes]
"""(tenant, layer, raw id): what a document is about."""


_unpack_feed = msgspec.msgpack.Decoder(Feed).decode


@dataclass(frozen=True)
class Sources:
    """What the indexes follow from."""

    kv: KV
    log: KvLog
    staged: Unit
    names: Names
    vault: Vault
    clock: Clock
    way: Way


class Work:
    """What a run of entries means for the indexes: of each record the last word, and where from."""

    def __init__(self) -> None:
        self._documents: dict[Name, tuple[int, list[Document]]] = {}
        self._gone: dict[Name, int] = {}
        self._fresh: set[Name] = set()

    def put(self, name: Name, offset: int, documents: list[Document]) -> None:
        """These are the record's documents now."""
        self._documents[name] = (offset, documents)

    def remove(self, name: Name, offset: int) -> None:
        """The record is not to be found any more."""
        self._documents.pop(name, None)
        self._gone[name] = offset

    def after(self, offset: int) -> tuple[list[Document], list[Gone]]:
        """What entries beyond an offset bring and take away."""
        documents = [
            document
            for at, documents in self._documents.values()
            if at > offset
            for document in documents
        ]
        return documents, [Gone(*name) for name, at in self._gone.items() if at > offset]

    def compare(self, generation: Generation) -> None:
        """Leave out what reads as it did, and see what is new, where text and vectors are abreast.

        Most changes of a record are not seen in its document, and to remove one from the text that
        was never there costs more than to add one.
        """
        is_ahead = generation.text.furthest() > generation.text_cursor
        for name, (_, documents) in list(self._documents.items()):
            if name[1] == "events" or name in self._gone:
                continue
            known = generation.given.get(name)
            if known == documents:
                del self._documents[name]
            elif known is generation.given and not is_ahead and not generation.vectors.holds(*name):
                self._fresh.add(name)

    def is_fresh(self, document: Document) -> bool:
        """Whether the text has nothing of this record, for sure."""
        return (document.tenant_no, document.layer, document.raw) in self._fresh

    def was_given(self, given: Halves) -> None:
        """Text and vectors have all of this."""
        for name, (_, documents) in self._documents.items():
            if name[1] != "events":
                given.keep(name, documents)
        for name in self._gone:
            given.drop(name)


class Follower:
    """Turns what happened into work for a generation, and gives it the work."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._give_way = Courtesy(sources.way).give_way
        self._read_entry = EntryReader(sources.names).read
        self._directory = Directory(sources.kv)
        self._embeddings: dict[tuple[str, int], Embeddings] = {}
        self._layers: dict[str, Layer] = {layer: layer for layer in _layers_of(sources.staged)}
        self.unreadable = 0
        """Entries and records of which no document could be made."""

    # ── what there is to do ──────────────────────────────────────────────────────────────────

    def read(self, start: int, last: int) -> list[Row]:
        """Some entries from `start` on: not too many, and not too large.

        Their rows are written at once, and whoever posts meanwhile waits for that.
        """
        rows: list[Row] = []
        size = 0
        is_beside = self._sources.way.is_beside
        most = limits.WAITED_FOR_ENTRIES_MAX if is_beside else limits.INDEX_ENTRIES_MAX
        last = min(last, start + most - 1)
        while start <= last and size < limits.INDEX_BYTES_MAX:
            found = self._sources.log.read(start, min(_ROWS_AT_ONCE, last - start + 1))
            if not found:
                break
            rows += found
            self._give_way()
            size += sum(row.header.body_bytes for row in found)
            start = rows[-1].header.offset + 1
        return rows

    def work(self, rows: Sequence[Row], feed_after: int) -> Work:
        """What these entries mean; of records only what the feed says beyond an offset."""
        found = Work()
        for row in rows:
            self._give_way()
            entry = self._read_entry(row)
            documents = self._made(event_documents, entry)
            if documents:
                found.put((entry.tenant_no, "events", entry.id), entry.offset, documents)
            for withdrawn in _withdrawn(entry):
                found.remove((entry.tenant_no, "events", withdrawn), entry.offset)
        first, last = rows[0].header.offset, rows[-1].header.offset
        start, end = offset_key(max(first, feed_after + 1)), offset_key(last + 1)
        if start < end:
            changed: dict[Name, int] = {}
            for key, value in self._sources.kv.scan("feed", start, end):
                self._note_changes(changed, int.from_bytes(key, "big"), _unpack_feed(value))
            for name, offset in changed.items():
                self._give_way()
                self._look_up(found, name, offset)
        return found

    def _note_changes(self, changed: dict[Name, int], offset: int, feed: Feed) -> None:
        """Which records an entry moved. One that moves often is looked up once, at the end."""
        for table, key, _ in feed.rows:
            layer = self._layers.get(table)
            if layer is not None:
                changed[feed.tenant_no, layer, key] = offset

    def _look_up(self, work: Work, name: Name, offset: int) -> None:
        tenant_no, layer, raw = name
        record = self._sources.staged.get(tenant_no, layer, raw)
        if record is None:
            work.remove(name, offset)
        else:
            work.put(name, offset, self._documents(tenant_no, layer, raw, record))

    def records(self) -> Iterator[Work]:
        """Every record there is now, a page at a time, for a generation that has none."""
        for tenant_no, _ in self._sources.names.all(TENANT, 0):
            for layer in self._layers.values():
                after = b""
                while page := self._sources.staged.page(
                    tenant_no, layer, after, limits.INDEX_ENTRIES_MAX
                ):
                    found = Work()
                    for raw, record in page:
                        documents = self._documents(tenant_no, layer, raw, record)
                        found.put((tenant_no, layer, raw), 1, documents)
                    yield found
                    after = page[-1][0]

    def _made(self, make: Callable[..., list[Document]], *given: Any) -> list[Document]:
        """The documents; one that cannot be made is counted, and holds up no other."""
        try:
            return make(*given)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - health shows how many there are
            self.unreadable += 1
            return []

    def _documents(
        self, tenant_no: int, layer: Layer, raw: bytes, record: Record
    ) -> list[Document]:
        return self._made(self._told, tenant_no, layer, raw, record)

    def _told(self, tenant_no: int, layer: Layer, raw: bytes, record: Record) -> list[Document]:
        scope_no = self._sources.names.known(SCOPE, tenant_no, record.scope) or 0
        event = parse_id("evt", first_event(record) or "")
        offset = 0 if event is None else self._directory.find(tenant_no, event) or 0
        document = record_document(
            layer,
            record,
            place=(tenant_no, scope_no),
            offset=offset,
            known_from=self._known_from(tenant_no, layer, raw, record),
        )
        return [document]

    def _known_from(self, tenant_no: int, layer: Layer, raw: bytes, record: Record) -> datetime:
        """When the first version of the record was recorded."""
        if record.version > 1:
            staged = self._sources.staged
            first: Record | None = staged.get(tenant_no, f"{layer}_past", raw + _FIRST_VERSION)
            if first is not None:
                return first.recorded_from
        return record.recorded_from

    # ── doing it ─────────────────────────────────────────────────────────────────────────────

    def give_text(self, generation: Generation, work: Work, last: int) -> None:
        """Hand the text index what entries up to `last` mean; it is found after a commit."""
        documents, gone = work.after(generation.text_cursor)
        for item in gone:
            generation.text.remove(*item)
        for document in documents:
            self._give_way()
            if document.layer != "events" and not work.is_fresh(document):
                generation.text.remove(document.tenant_no, document.layer, document.raw)
        for document in documents:
            self._give_way()
            generation.text.add([document])
        generation.text_cursor = last

    def give_vectors(self, generation: Generation, work: Work, last: int) -> None:
        """Hand the vector index what entries up to `last` mean, embedding what is new."""
        documents, gone = work.after(generation.vectors.watermark())
        kept = self._kept(generation.embedder)
        keys = [kept.key(document.tenant_no, gist_of(document)) for document in documents]
        found = dict(zip(keys, kept.find(keys), strict=True))
        batch = self._sources.kv.batch()
        missing = {
            key: gist_of(document)
            for key, document in zip(keys, documents, strict=True)
            if found[key] is None
        }
        for key, (vector, tokens) in self._embedded(generation.embedder, missing).items():
            found[key] = (vector, tokens)
            kept.keep(batch, key, vector, tokens)
        placed = []
        for key, document in zip(keys, documents, strict=True):
            self._give_way()
            vector, tokens = found[key] or (b"", b"")
            row = row_of(document, key, vector, tokens)
            placed.append(Placed(document.tenant_no, document.scope_no, document.layer, row))
        generation.vectors.write(batch, placed, gone, last)

    def _embedded(self, embedder: Embedder, texts: dict[bytes, str]) -> dict[bytes, Kept]:
        """Vectors and tokens of texts, by their keys."""
        keys = list(texts)
        found: dict[bytes, Kept] = {}
        for start in range(0, len(keys), _TEXTS_AT_ONCE):
            self._give_way()
            part = keys[start : start + _TEXTS_AT_ONCE]
            given = [texts[key] for key in part]
            vectors = pack_vectors(embedder.embed(given))
            short = [text if shape_of(text)[0] <= limits.LATE_WORDS_MAX else "" for text in given]
            tokens = embedder.token_batches(short)
            for key, vector, ids in zip(part, vectors, tokens, strict=True):
                found[key] = (vector, ids.astype("<i4").tobytes())
        return found

    def forget_other_models(self, embedder: Embedder) -> None:
        """What other models said of texts is not needed any more."""
        tenants = [number for number, _ in self._sources.names.all(TENANT, 0)]
        self._kept(embedder).drop_others(tenants)

    def _kept(self, embedder: Embedder) -> Embeddings:
        place = (embedder.name, embedder.dimensions)
        if place not in self._embeddings:
            sources = self._sources
            self._embeddings[place] = Embeddings(sources.kv, sources.vault, *place)
        return self._embeddings[place]


def _layers_of(staged: Unit) -> list[Layer]:
    """The layers that these projectors keep as records."""
    tables = {table: shape for one in staged.projectors for table, shape in one.tables.items()}
    return [layer for layer in RECORD_LAYERS if tables.get(layer) is LAYERS[layer][1]]


def gist_of(document: Document) -> str:
    """What is embedded of a document; nothing when the client asked for that."""
    return document.gist[: limits.EMBED_CHARS_MAX].strip() if document.embeds else ""


def _withdrawn(entry: Entry) -> Iterator[bytes]:
    """The events that this entry takes out of recall: cancelled, or without their payload."""
    command = entry.body.command if isinstance(entry.body, Directive) else None
    match command:
        case Cancel(event_id=event_id):
            yield raw_of("evt", event_id)
        case Forget(cascade=cascade, events=events) if cascade != "derived_only":
            for event in events:
                yield raw_of("evt", event.event_id)
