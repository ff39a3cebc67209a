"""What do entries and changed records mean for the indexes?  Documents to put, and some to remove.

Reads the log, the change feed and the views, and writes to one generation of the indexes. An event
comes from its entry, a record from the views as they are now: only its latest version is indexed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine.clock import Clock
from engine.courtesy import Courtesy, Way
from engine.describing import Describer, Name, embedded, gist_of, layers_of, withdrawn_by
from engine.entries import EntryReader
from engine.rows import Described, Feed
from engine.state.blocks import row_of
from engine.state.directory import Directory
from engine.state.embeddings import FAMILIES as EMBEDDINGS
from engine.state.embeddings import Embeddings, Kept
from engine.state.generations import Generation
from engine.state.index import Document, Embedder
from engine.state.kv import KV, Batch
from engine.state.log import KvLog
from engine.state.names import SCOPE, TENANT, Names
from engine.state.rows import Row
from engine.state.vault import Vault, offset_key
from engine.state.vector_index import Gone, Placed
from engine.state.views import Halves, Unit
from schemas import limits

FAMILIES = EMBEDDINGS
_ROWS_AT_ONCE: Final = 16


_unpack_feed = msgspec.msgpack.Decoder(Feed).decode
_unpack_described = msgspec.msgpack.Decoder(Described).decode


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


class Stored:
    """Where things are, by what is written."""

    def __init__(self, sources: Sources) -> None:
        self._names = sources.names
        self._directory = Directory(sources.kv)
        self._staged = sources.staged

    def scope_no(self, tenant_no: int, scope: str) -> int:
        """The number of a scope; 0 is none."""
        return self._names.known(SCOPE, tenant_no, scope) or 0

    def offset(self, tenant_no: int, event: bytes) -> int:
        """Where an event is in the log; 0 when it is not there."""
        return self._directory.find(tenant_no, event) or 0

    def row(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """A row of the views as they are now."""
        return self._staged.get(tenant_no, table, key)


class Work:
    """What a run of entries means for the indexes: of each record the last word, and where from."""

    def __init__(self) -> None:
        self.model = ""
        self.vectors: dict[str, Kept] = {}
        """Of texts, by this model, where somebody has made them already."""
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
        self._describer = Describer(Stored(sources))
        self._embeddings: dict[tuple[str, int], Embeddings] = {}
        self._layers = layers_of(sources.staged.projectors)
        self._unreadable = 0

    @property
    def unreadable(self) -> int:
        """Entries and records of which no document could be made."""
        return self._unreadable + self._describer.unreadable

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
            documents = self._describer.event(entry)
            if documents:
                found.put((entry.tenant_no, "events", entry.id), entry.offset, documents)
            for withdrawn in withdrawn_by(entry):
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
            work.put(name, offset, self._describer.record(tenant_no, layer, raw, record))

    def described(self, message: bytes, last: int) -> Work:
        """The same of entries up to `last`, by who folded them; what is missing is looked up."""
        said = _unpack_described(message)
        found = Work()
        for tenant_no, layer, raw, offset, documents in said.told:
            found.put((tenant_no, layer, raw), offset, documents)
        for tenant_no, layer, raw, offset in said.gone:
            found.remove((tenant_no, layer, raw), offset)
        for name in said.left:
            self._give_way()
            self._look_up(found, name, last)
        found.model = said.model
        if said.vectors:
            texts = [gist_of(document) for one in said.told for document in one[4]]
            found.vectors = dict(zip(texts, said.vectors, strict=True))
        self._unreadable += said.unreadable
        return found

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
                        documents = self._describer.record(tenant_no, layer, raw, record)
                        found.put((tenant_no, layer, raw), 1, documents)
                    yield found
                    after = page[-1][0]

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
        kept, batch = self._kept(generation.embedder), self._sources.kv.batch()
        keys = [kept.key(document.tenant_no, gist_of(document)) for document in documents]
        texts = dict(zip(keys, map(gist_of, documents), strict=True))
        vectors = self._vectors(generation.embedder, work, texts, batch)
        placed = []
        for key, document in zip(keys, documents, strict=True):
            self._give_way()
            row = row_of(document, key, *vectors[key])
            placed.append(Placed(document.tenant_no, document.scope_no, document.layer, row))
        generation.vectors.write(batch, placed, gone, last)

    def _vectors(
        self, embedder: Embedder, work: Work, texts: dict[bytes, str], batch: Batch
    ) -> dict[bytes, Kept]:
        """Vectors of texts by their keys: brought along, kept from before, or else made now."""
        kept = self._kept(embedder)
        brought = work.vectors if work.model == embedder.name else {}
        new = {key: brought[text] for key, text in texts.items() if text in brought}
        asked = [key for key in texts if key not in new]
        found = dict(zip(asked, kept.find(asked), strict=True))
        missing = [key for key in asked if found[key] is None]
        made = embedded(embedder, [texts[key] for key in missing], self._give_way)
        new.update(zip(missing, made, strict=True))
        for key, (vector, tokens) in new.items():
            self._give_way()
            kept.keep(batch, key, vector, tokens)
        known = {key: one for key, one in found.items() if one is not None}
        return known | new

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
