"""Which documents hold these words?  BM25 over stems, kept by tantivy in files of one generation.

Events and records have a shelf each: what is derived repeats the words of what happened, and one
statistic for both would make the words that matter look common. A shelf says how far it is: the
watermark is a document of its own, replaced in the commit that makes it true, so after a crash it
is exactly right. A user's text is never read as query syntax: it is cut into terms here. Filters
are clauses worth nothing, so that they leave every score as it is.
"""

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import wait
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from engine.state.aside import helper
from engine.state.index import LAYERS, Document, Hit, Layer
from engine.state.picking import LAYER_MASK, picker
from schemas import limits

SCHEMA_VERSION: Final = 2
"""Of the fields and of how text is cut: another number is another generation."""

_ANALYZER: Final = "strata"
_LONGEST_TERM: Final = 64
_MARK: Final = 1
_SHELVES: Final = 2
_FEW: Final = 32
"""Values that are looked for one by one: a set of them is spread over all documents first."""

_UNSPACED: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff]")
_WORD: Final = re.compile(r"\w+")
_STOP: Final = frozenset(
    word
    for line in (
        "a about also am an and any are as at be been being but by can could d did do does doing",
        "don for from had has have he her him his how i if in into is it its just ll m me might my",
        "no not of on or our re s she should so some such t than that the their them then there",
        "these they this to too us ve very was we were what when where which who whom why will",
        "with would you your",
    )
    for word in line.split()
)


class TextIndexFailed(Exception):
    """The files of a generation cannot be opened, read or written: it is dropped and rebuilt."""


def _analyzer() -> Any:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(_LONGEST_TERM),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    return builder.build()


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_unsigned_field("place", indexed=True)  # tenant and scope
    builder.add_unsigned_field("tenant", indexed=True)
    builder.add_unsigned_field("layer", indexed=True)
    builder.add_unsigned_field("kind", fast=True)  # layer and passage
    builder.add_unsigned_field("high", indexed=True, fast=True)  # the halves of the raw id
    builder.add_unsigned_field("low", indexed=True, fast=True)
    builder.add_unsigned_field("recorded", fast=True)
    builder.add_unsigned_field("mark", indexed=True)
    builder.add_unsigned_field("watermark", fast=True)
    builder.add_unsigned_field("other", fast=True)
    return builder.build()


_PICK: Final = picker()
_SCHEMA: Final = _schema()
_ANALYZE: Final = _analyzer()


def spaced(text: str) -> str:
    """Scripts that are written without spaces are matched character by character."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def terms_of(query: str) -> list[str]:
    """The stems of a question's words; words that carry no meaning are left out, if others do."""
    words = _WORD.findall(spaced(query[: limits.QUERY_CHARS_MAX]).lower())
    telling = [word for word in words if word not in _STOP] or words
    found: list[str] = _ANALYZE.analyze(" ".join(telling))
    return found[: limits.QUERY_TERMS_MAX]


class Shelf:
    """One index of tantivy: one writer, any number of readers."""

    def __init__(self, folder: Path | None, heap_bytes: int) -> None:
        """Open the files in a folder, made when they are not there; None keeps them in memory."""
        with _failing("cannot be opened"):
            if folder is not None:
                folder.mkdir(mode=0o700, exist_ok=True)
            self._index = tantivy.Index(_SCHEMA, None if folder is None else str(folder))
            self._index.register_tokenizer(_ANALYZER, _ANALYZE)
            self._index.config_reader("manual")
            self._writer: Any = self._index.writer(heap_bytes, 1)
            self._index.reload()
            self.watermark, self.other = self._read_marks()
        self.pending = 0

    def add(self, document: Document) -> None:
        """Take a document in; it is found after the next `commit`."""
        with _failing("does not take documents"):
            self._writer.add_document(_encode(document))
        self.pending += 1

    def remove(self, tenant_no: int, layer: Layer, raw: bytes) -> None:
        """No document of this record is found after the next `commit`, but those added later."""
        with _failing("does not remove documents"):
            self._writer.delete_documents_by_query(_named(tenant_no, layer, raw))
        self.pending += 1

    def commit(self, watermark: int, other: int) -> None:
        """Everything up to this offset is in: durable, and seen by the next search.

        `other` is where the other shelf was committed last when this is true of both.
        """
        with _failing("does not commit"):
            # By query: by term, a plain number is taken for a signed one and nothing is deleted.
            self._writer.delete_documents_by_query(_term("mark", _MARK))
            mark = tantivy.Document()
            mark.add_unsigned("mark", _MARK)
            mark.add_unsigned("watermark", watermark)
            mark.add_unsigned("other", other)
            self._writer.add_document(mark)
            self._writer.commit()
            self._index.reload()
        self.watermark, self.other, self.pending = watermark, other, 0

    def close(self) -> None:
        """Let go of the files; what was not committed is forgotten."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with _failing("does not close"):
                writer.rollback()
                writer.wait_merging_threads()

    def counts(self) -> tuple[int, int]:
        """How many documents can be found, and how many segments a search visits."""
        with _failing("cannot be read"):
            searcher = self._index.searcher()
            return max(0, searcher.num_docs - 1), searcher.num_segments  # one is the watermark

    def search(self, query: Any, limit: int) -> list[Hit]:
        """The best matches, best first; equal scores in the order of layers and ids."""
        with _SEARCHING:
            searcher = self._index.searcher()
            # Passages of one record are one hit: a few more are fetched than wanted.
            most = limit + limits.TEXT_SPARE_HITS
            return _hits(searcher, searcher.search(query, most, count=False).hits, limit)

    def _read_marks(self) -> tuple[int, int]:
        searcher = self._index.searcher()
        found = searcher.search(_term("mark", _MARK), 1, count=False).hits
        if not found:
            return 0, 0
        names = ("watermark", "other")
        marks = [searcher.fast_field_values(name, [found[0][1]])[0] for name in names]
        return int(marks[0] or 0), int(marks[1] or 0)


class TantivyText:
    """One generation of the text index: a shelf of events and one of records."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the files in a folder, made when they are not there; None keeps them in memory."""
        heap = limits.TEXT_HEAP_BYTES
        # Whoever opens a shelf or commits starts the threads that index and merge.
        self._helper = helper(_SHELVES, "text-commit")
        opened = [
            self._helper.submit(Shelf, None if folder is None else folder / name, size)
            for name, size in (("events", heap), ("records", heap // 2))
        ]
        wait(opened)
        try:
            self._events, self._records = (shelf.result() for shelf in opened)
        except TextIndexFailed:
            self._helper.shutdown()
            for shelf in opened:
                if shelf.exception() is None:
                    shelf.result().close()
            raise
        self._shelves = (self._events, self._records)
        self._watermark = _common(self._events, self._records)
        self._asked: tuple[str, Any | None] = ("", None)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    @property
    def pending(self) -> int:
        """How many changes wait for a commit."""
        return sum(shelf.pending for shelf in self._shelves)

    def add(self, documents: Iterable[Document]) -> None:
        """Take documents in; they are found after the next `commit`."""
        for document in documents:
            shelf = self._shelf(document.layer)
            # After a crash a shelf may be ahead of the other: an event it has comes again then.
            is_there = document.layer == "events" and document.offset <= shelf.watermark
            if document.text and not is_there:
                shelf.add(document)

    def remove(self, tenant_no: int, layer: Layer, raw: bytes) -> None:
        """No document of this record is found after the next `commit`, but those added later."""
        self._shelf(layer).remove(tenant_no, layer, raw)

    def commit(self, watermark: int) -> None:
        """Everything up to this offset is in, and seen by the next search.

        A shelf with nothing new is not written: the other one says that it had nothing new.
        """
        events, records = self._shelves
        is_behind = watermark - _common(events, records) >= limits.TEXT_LAG_MAX
        if events.pending and records.pending:
            # Two commits wait for the disk at the same time, and not one after the other.
            self._commit(watermark, (events, watermark), (records, watermark))
        elif records.pending:
            self._commit(watermark, (records, events.watermark))
        elif events.pending or is_behind:
            self._commit(watermark, (events, records.watermark))
        self._watermark = watermark

    def _commit(self, watermark: int, *shelves: tuple[Shelf, int]) -> None:
        done = [self._helper.submit(shelf.commit, watermark, other) for shelf, other in shelves]
        wait(done)
        for one in done:
            one.result()

    def close(self) -> None:
        """Let go of the files; what was not committed is forgotten."""
        self._helper.shutdown()
        try:
            self._events.close()
        finally:
            self._records.close()

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""
        return self._watermark

    def furthest(self) -> int:
        """The last entry that either shelf knows of."""
        return max(shelf.watermark for shelf in self._shelves)

    def documents(self) -> int:
        """How many documents can be found."""
        return sum(shelf.counts()[0] for shelf in self._shelves)

    def segments(self) -> int:
        """How many segments a search visits."""
        return sum(shelf.counts()[1] for shelf in self._shelves)

    def search(
        self,
        tenant_no: int,
        scope_nos: Sequence[int],
        query: str,
        *,
        layers: Sequence[Layer],
        limit: int,
        recorded_until_us: int | None = None,
    ) -> list[Hit]:
        """The best matches in these scopes; a record with several passages counts by its best."""
        wanted = self._wanted(query)
        if wanted is None or not scope_nos or limit < 1:
            return []
        clauses = [
            (Occur.Must, wanted),
            (Occur.Must, _free(_among("place", [_place(tenant_no, no) for no in scope_nos]))),
        ]
        if recorded_until_us is not None:
            clauses.append((Occur.Must, _free(_recorded_before(recorded_until_us))))
        found: list[list[Hit]] = []
        if "events" in layers:
            found.append(self._events.search(Query.boolean_query(clauses), limit))
        codes = {LAYERS.index(layer) for layer in layers if layer != "events"}
        if codes:
            if len(codes) < len(LAYERS) - 1:
                clauses.append((Occur.Must, _free(_among("layer", sorted(codes)))))
            found.append(self._records.search(Query.boolean_query(clauses), limit))
        if len(found) == 1:
            return found[0]
        return sorted([hit for hits in found for hit in hits])[:limit]

    def _wanted(self, query: str) -> Any | None:
        """A clause with the words of a question; None when it has none.

        A question is asked of one shelf after the other: its words are cut once.
        """
        asked = self._asked
        if asked[0] != query:
            terms = terms_of(query)
            asked = self._asked = (query, _any_of("text", terms) if terms else None)
        return asked[1]

    def _shelf(self, layer: Layer) -> Shelf:
        return self._events if layer == "events" else self._records


def _common(one: Shelf, two: Shelf) -> int:
    """How far two shelves are together, by what each said of the other when it was written."""
    if two.watermark == one.other:
        return one.watermark
    if one.watermark == two.other:
        return two.watermark
    return min(one.watermark, two.watermark)


def documents_with(folder: Path, phrase: str) -> int:
    """How many documents below a folder have all words of a phrase, removed ones included.

    A word stays in a segment until that is merged, and no `grep` finds it: files are compressed.
    Nothing is locked, so it can look beside whoever writes.
    """
    found = 0
    words = terms_of(phrase)
    for shelf in sorted(path.parent for path in folder.rglob("meta.json")) if words else ():
        with _failing("cannot be looked through"):
            searcher = tantivy.Index.open(str(shelf)).searcher()
            found += min(searcher.doc_freq("text", word) for word in words)
    return found


class _failing:  # noqa: N801 - it reads as a verb where it is used
    """Errors of tantivy have many kinds, and one of ours says what failed."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        # Rust panics over damaged files, and a panic is not even an Exception.
        is_panic = type(error).__name__ == "PanicException"
        if is_panic or isinstance(error, (ValueError, OSError, RuntimeError)):
            raise TextIndexFailed(f"the text index {self._what}: {error}") from error


_SEARCHING: Final = _failing("cannot be searched")


# ── documents and clauses ────────────────────────────────────────────────────────────────────


def _encode(document: Document) -> Any:
    # Field by field: a document made from plain numbers takes them for signed, and one such
    # document kills the writer.
    encoded = tantivy.Document()
    layer = LAYERS.index(document.layer)
    encoded.add_text("text", spaced(document.text))
    encoded.add_unsigned("place", _place(document.tenant_no, document.scope_no))
    encoded.add_unsigned("tenant", document.tenant_no)
    encoded.add_unsigned("layer", layer)
    encoded.add_unsigned("kind", document.passage << 8 | layer)
    encoded.add_unsigned("high", int.from_bytes(document.raw[:8], "big"))
    encoded.add_unsigned("low", int.from_bytes(document.raw[8:], "big"))
    encoded.add_unsigned("recorded", document.recorded_us)
    return encoded


def _hits(searcher: Any, found: list[tuple[float, Any]], limit: int) -> list[Hit]:
    """The best of what was found, best first; a record with several passages by its best."""
    if not found:
        return []
    # Where each record is found once, what is not as good as the last of the best is not looked at.
    best_count = _as_good(found, limit)
    addresses = [address for _, address in found[:best_count]]
    kinds = searcher.fast_field_values("kind", addresses)
    has_passages = max(kinds) > LAYER_MASK
    if has_passages:
        addresses = [address for _, address in found]
        kinds = searcher.fast_field_values("kind", addresses)
    elif best_count < len(found):
        found = found[:best_count]
    highs: list[int] = searcher.fast_field_values("high", addresses)
    lows: list[int] = searcher.fast_field_values("low", addresses)
    hits: list[Hit] = _PICK.ordered(found, kinds, highs, lows, LAYERS)
    if has_passages:
        best: dict[tuple[Layer, bytes], Hit] = {}
        for hit in hits:
            best.setdefault((hit[1], hit[2]), hit)
        hits = list(best.values())
    return hits[:limit]


def _as_good(found: list[tuple[float, Any]], limit: int) -> int:
    """How many are as good as the last of the best; they come best first."""
    count = len(found)
    if count <= limit:
        return count
    least = found[limit - 1][0]
    return next((at for at in range(limit, count) if found[at][0] < least), count)


def _place(tenant_no: int, scope_no: int) -> int:
    return tenant_no << 32 | scope_no


def _term(field: str, value: Any) -> Any:
    return Query.term_query(_SCHEMA, field, value, "freq" if field == "text" else "basic")


def _any_of(field: str, values: Sequence[Any]) -> Any:
    return Query.boolean_query([(Occur.Should, _term(field, value)) for value in values])


def _among(field: str, values: Sequence[int]) -> Any:
    if len(values) == 1:
        return _term(field, values[0])
    if len(values) <= _FEW:
        return _any_of(field, values)
    return Query.term_set_query(_SCHEMA, field, list(values))


def _recorded_before(until_us: int) -> Any:
    return Query.range_query(
        _SCHEMA, "recorded", tantivy.FieldType.Unsigned, 0, max(until_us, 0), include_upper=False
    )


def _named(tenant_no: int, layer: Layer, raw: bytes) -> Any:
    return Query.boolean_query(
        [
            (Occur.Must, _term("low", int.from_bytes(raw[8:], "big"))),
            (Occur.Must, _term("high", int.from_bytes(raw[:8], "big"))),
            (Occur.Must, _term("layer", LAYERS.index(layer))),
            (Occur.Must, _term("tenant", tenant_no)),
        ]
    )


def _free(clause: Any) -> Any:
    """A clause that must hold and adds nothing to the score."""
    return Query.const_score_query(clause, 0.0)
