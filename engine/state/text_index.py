"""Which documents hold these words?  BM25 over stems, kept by tantivy in files of one generation.

The index follows the log and says how far it is: the watermark is a document of its own, replaced
in the commit that makes it true, so after a crash it is exactly right. A user's text is never read
as query syntax: it is cut into terms here. Filters are clauses worth nothing, so that they leave
every score as it is.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from engine.state.index import LAYERS, Document, Hit, Layer
from schemas import limits

SCHEMA_VERSION: Final = 1
"""Of the fields and of how text is cut: another number is another generation."""

_ANALYZER: Final = "strata"
_LONGEST_TERM: Final = 64
_MARK: Final = 1
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
    return builder.build()


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


class TantivyText:
    """One generation of the text index: one writer, any number of readers."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the files in a folder, made when they are not there; None keeps them in memory."""
        with _failing("cannot be opened"):
            self._index = tantivy.Index(_SCHEMA, None if folder is None else str(folder))
            self._index.register_tokenizer(_ANALYZER, _ANALYZE)
            self._index.config_reader("manual")
            self._writer: Any = self._index.writer(limits.TEXT_HEAP_BYTES, 1)
            self._index.reload()
            self._watermark = self._read_watermark()
        self.pending = 0

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def add(self, documents: Iterable[Document]) -> None:
        """Take documents in; they are found after the next `commit`."""
        with _failing("does not take documents"):
            for document in documents:
                if document.text:
                    self._writer.add_document(_encode(document))
                    self.pending += 1

    def remove(self, tenant_no: int, layer: Layer, raw: bytes) -> None:
        """No document of this record is found after the next `commit`, but those added later."""
        with _failing("does not remove documents"):
            self._writer.delete_documents_by_query(_named(tenant_no, layer, raw))
        self.pending += 1

    def commit(self, watermark: int) -> None:
        """Everything up to this offset is in: durable, and seen by the next search."""
        with _failing("does not commit"):
            # By query: by term, a plain number is taken for a signed one and nothing is deleted.
            self._writer.delete_documents_by_query(_term("mark", _MARK))
            mark = tantivy.Document()
            mark.add_unsigned("mark", _MARK)
            mark.add_unsigned("watermark", watermark)
            self._writer.add_document(mark)
            self._writer.commit()
            self._index.reload()
        self._watermark, self.pending = watermark, 0

    def close(self) -> None:
        """Let go of the files; what was not committed is forgotten."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with _failing("does not close"):
                writer.rollback()
                writer.wait_merging_threads()

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""
        return self._watermark

    def documents(self) -> int:
        """How many documents can be found."""
        with _failing("cannot be read"):
            count: int = self._index.searcher().num_docs
        return max(0, count - 1)  # one is the watermark

    def segments(self) -> int:
        """How many segments a search visits."""
        with _failing("cannot be read"):
            count: int = self._index.searcher().num_segments
        return count

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
        terms = terms_of(query)
        if not terms or not scope_nos or not layers or limit < 1:
            return []
        clauses = [
            (Occur.Must, _any_of("text", terms)),
            (Occur.Must, _free(_among("place", [_place(tenant_no, no) for no in scope_nos]))),
        ]
        if len(layers) < len(LAYERS):
            clauses.append((Occur.Must, _free(_among("layer", [LAYERS.index(x) for x in layers]))))
        if recorded_until_us is not None:
            clauses.append((Occur.Must, _free(_recorded_before(recorded_until_us))))
        with _failing("cannot be searched"):
            searcher = self._index.searcher()
            # Passages of one record are one hit: a few more are fetched than wanted.
            most = limit + limits.TEXT_SPARE_HITS
            found = searcher.search(Query.boolean_query(clauses), most, count=False).hits
            return _hits(searcher, found)[:limit]

    def _read_watermark(self) -> int:
        searcher = self._index.searcher()
        found = searcher.search(_term("mark", _MARK), 1, count=False).hits
        if not found:
            return 0
        return int(searcher.fast_field_values("watermark", [found[0][1]])[0] or 0)


@contextlib.contextmanager
def _failing(what: str) -> Any:
    """Errors of tantivy have many kinds, and one of ours says what failed."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        raise TextIndexFailed(f"the text index {what}: {error}") from error
    except BaseException as error:
        # Rust panics over damaged files, and a panic is not even an Exception.
        if type(error).__name__ == "PanicException":
            raise TextIndexFailed(f"the text index {what}: {error}") from error
        raise


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


def _hits(searcher: Any, found: list[tuple[float, Any]]) -> list[Hit]:
    addresses = [address for _, address in found]
    columns = [searcher.fast_field_values(name, addresses) for name in ("kind", "high", "low")]
    best: dict[tuple[int, bytes], Hit] = {}
    for (score, _), kind, high, low in zip(found, *columns, strict=True):
        raw = high.to_bytes(8, "big") + low.to_bytes(8, "big")
        if (kind & 0xFF, raw) not in best:
            best[kind & 0xFF, raw] = Hit(LAYERS[kind & 0xFF], raw, score, kind >> 8)
    # Equal scores come in the order of ids, not of segments, which merges change.
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.layer, hit.raw))


def _place(tenant_no: int, scope_no: int) -> int:
    return tenant_no << 32 | scope_no


def _term(field: str, value: Any) -> Any:
    return Query.term_query(_SCHEMA, field, value, "freq" if field == "text" else "basic")


def _any_of(field: str, values: Sequence[Any]) -> Any:
    return Query.boolean_query([(Occur.Should, _term(field, value)) for value in values])


def _among(field: str, values: Sequence[int]) -> Any:
    if len(values) == 1:
        return _term(field, values[0])
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
