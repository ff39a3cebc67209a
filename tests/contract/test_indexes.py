"""Do the indexes keep the port's word?  Each against a naive twin, over random documents."""

import math
import threading
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state.blocks import pack_vectors, row_of, shape_of, unpack_vectors
from engine.state.index import LAYERS, Document
from engine.state.memory import MemoryKV
from engine.state.text_index import TantivyText, TextIndexFailed, terms_of
from engine.state.vector_index import BlockVectors, Gone, Placed
from schemas import limits

DIMENSIONS = 8
WORDS = ["anna", "berlin", "coffee", "disk", "espresso", "failed", "garden", "harbour", "invoice"]
QUICK = settings(max_examples=40, deadline=None)


def raw_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def document(number: int, text: str = "words", **changes) -> Document:
    values = {
        "layer": "events",
        "raw": raw_of(number),
        "tenant_no": 1,
        "scope_no": 1,
        "offset": number,
        "text": text,
        "gist": text,
        "observed_us": number,
        "recorded_us": number,
    }
    return Document(**(values | changes))


# ── text ─────────────────────────────────────────────────────────────────────────────────────


class Matched(NamedTuple):
    """A hit, in words."""

    score: float
    layer: str
    raw: bytes
    passage: int


def hits(index: TantivyText, query: str, scope_nos=(1,), **options) -> list[Matched]:
    """What a search of the first tenant's scopes finds."""
    asked = {"layers": LAYERS, "limit": 10} | options
    found = index.search(1, list(scope_nos), query, **asked)
    return [Matched(-less, *rest) for less, *rest in found]


@st.composite
def corpora(draw):
    """Documents of several scopes and layers, each with an id of its own."""
    count = draw(st.integers(1, 25))
    return [
        document(
            number,
            " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))),
            scope_no=draw(st.integers(1, 3)),
            tenant_no=draw(st.integers(1, 2)),
            layer=draw(st.sampled_from(LAYERS)),
        )
        for number in range(1, count + 1)
    ]


def bm25(corpus: list[Document], query: list[str]) -> dict[bytes, float]:
    """Scores by the book; the watermark counts as a document without words."""
    texts = {document.raw: Counter(terms_of(document.text)) for document in corpus}
    total = len(corpus) + 1
    average = sum(words.total() for words in texts.values()) / total
    scores: dict[bytes, float] = {}
    for term in query:
        having = sum(1 for words in texts.values() if term in words)
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        for raw, words in texts.items():
            if term in words:
                length = 1.2 * (1 - 0.75 + 0.75 * words.total() / average)
                weight = rarity * words[term] * 2.2 / (words[term] + length)
                scores[raw] = scores.get(raw, 0.0) + weight
    return scores


@QUICK
@given(corpus=corpora(), query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
def test_text_is_ranked_by_bm25(corpus, query):
    """Hits and scores are those of BM25 over all events, or all records, whatever is filtered."""
    index = TantivyText()
    index.add(corpus)
    index.commit(len(corpus))
    events = [document for document in corpus if document.layer == "events"]
    records = [document for document in corpus if document.layer != "events"]
    terms = terms_of(" ".join(query))
    scores = bm25(events, terms) | bm25(records, terms)

    for layers in (LAYERS, LAYERS[:2]):
        found = hits(index, " ".join(query), [1, 2], layers=layers, limit=100)
        wanted = {
            document.raw: scores[document.raw]
            for document in corpus
            if document.raw in scores
            and document.tenant_no == 1
            and document.scope_no in (1, 2)
            and document.layer in layers
        }
        assert wanted.keys() == {hit.raw for hit in found}
        assert all(math.isclose(wanted[hit.raw], hit.score, rel_tol=1e-4) for hit in found)
        assert sorted(found, key=lambda hit: -hit.score) == found


@QUICK
@given(corpus=corpora(), until=st.integers(0, 30))
def test_filters_leave_scores_as_they_are(corpus, until):
    """A filter takes hits out and changes no score, to the last bit."""
    index = TantivyText()
    index.add(corpus)
    index.commit(1)
    query = " ".join(WORDS[:5])
    all_scopes = [1, 2, 3]
    scores = {hit.raw: hit.score for hit in hits(index, query, all_scopes, limit=99)}

    for layer in LAYERS:
        found = hits(index, query, [2], layers=[layer], limit=99, recorded_until_us=until)
        assert all(hit.score == scores[hit.raw] for hit in found)
        assert all(int.from_bytes(hit.raw, "big") < until for hit in found)


@pytest.mark.parametrize(
    "query",
    [
        "text:anna",
        '"anna',
        "anna AND (",
        "anna~2 OR *:*",
        "anna^9999",
        "+anna -anna",
        "\\",
        "[a TO b]",
    ],
)
def test_a_question_is_not_a_query_language(query):
    """What looks like query syntax is words and marks, and never an error."""
    index = TantivyText()
    index.add([document(1, "anna in berlin"), document(2, "nobody in paris")])
    index.commit(2)
    found = hits(index, query)

    assert {hit.raw for hit in found} <= {raw_of(1)}
    assert bool(found) == ("anna" in query)


@QUICK
@given(query=st.text(max_size=80))
def test_any_text_can_be_asked_for(query):
    """No text of a user breaks a search."""
    index = TantivyText()
    index.add([document(1, query or "x")])
    index.commit(1)

    assert all(hit.raw == raw_of(1) for hit in hits(index, query))


def test_stop_words_count_only_when_there_is_nothing_else():
    """Words that carry no meaning are left out of a question that has others."""
    assert ["anna", "live"] == terms_of("Where does Anna live?")
    assert ["what", "is", "it"] == terms_of("What is it?")
    assert [] == terms_of(" ?! ")


def test_words_without_spaces_are_found():
    """A script that is written without spaces is matched by its characters."""
    index = TantivyText()
    index.add([document(1, "昨日東京に行きました"), document(2, "大阪は寒い")])
    index.commit(2)

    assert [raw_of(1)] == [h.raw for h in hits(index, "東京")]


def test_a_record_is_found_by_its_best_passage():
    """Passages of one record are one hit, and it says which of them matched best."""
    index = TantivyText()
    index.add([document(1, "", passage=0)])
    index.add([document(1, f"page {n}" + " berlin" * (n == 3), passage=n) for n in (1, 2, 3)])
    index.commit(1)
    found = hits(index, "berlin page")

    assert [(raw_of(1), 3)] == [(hit.raw, hit.passage) for hit in found]


def test_what_is_not_committed_is_forgotten(tmp_path):
    """After a crash the watermark says exactly what can be found."""
    index = TantivyText(tmp_path)
    index.add([document(1, "kept")])
    index.commit(7)
    index.add([document(2, "lost")])
    index.remove(1, "events", raw_of(1))
    index.close()
    again = TantivyText(tmp_path)

    assert 7 == again.watermark()
    assert 1 == again.documents()
    assert [] == again.search(1, [1], "lost", layers=LAYERS, limit=5)
    assert [raw_of(1)] == [h.raw for h in hits(again, "kept")]
    again.close()


@pytest.mark.parametrize("commits", [["events"], ["facts"], ["events", "facts"], ["facts"] * 3, []])
def test_the_watermark_is_that_of_both_shelves(tmp_path, commits):
    """Events and records are written when they have news; together they say how far both are."""
    index = TantivyText(tmp_path)
    for number, layer in enumerate(commits, start=1):
        index.add([document(number, layer=layer)])
        index.commit(10 * number)
    seen = index.watermark()
    index.close()
    again = TantivyText(tmp_path)

    assert 10 * len(commits) == seen == again.watermark()
    again.close()


def test_a_crash_between_two_shelves(tmp_path):
    """One shelf ahead of the other is given nothing twice, and the other all it lacks."""
    index = TantivyText(tmp_path)
    both = [document(1), document(1, layer="facts")]
    index.add(both)
    index._events.commit(1, 1)
    index.close()
    again = TantivyText(tmp_path)
    before = again.watermark()
    again.add(both)
    again.commit(1)

    assert (0, 1) == (before, again.watermark())
    assert 2 == again.documents()
    again.close()


def test_removing_takes_one_record_of_one_tenant():
    """The same id in another tenant or layer is another record."""
    index = TantivyText()
    index.add([document(1), document(1, tenant_no=2), document(1, layer="facts"), document(2)])
    index.commit(1)
    index.remove(1, "events", raw_of(1))
    index.commit(2)

    def found(tenant_no: int) -> set[tuple[str, bytes]]:
        found = index.search(tenant_no, [1], "words", layers=LAYERS, limit=9)
        return {(layer, raw) for _, layer, raw, _ in found}

    assert {("facts", raw_of(1)), ("events", raw_of(2))} == found(1)
    assert {("events", raw_of(1))} == found(2)


def test_segments_stay_few():
    """Many small commits are merged: what a search visits does not grow with their number."""
    index = TantivyText()
    for number in range(1, 120):
        index.add([document(number)])
        index.commit(number)

    assert index.segments() < 40
    assert 119 == index.documents()


def test_damaged_files_are_refused(tmp_path):
    """A folder that is not an index any more says so, and can be built anew."""
    index = TantivyText(tmp_path)
    index.add([document(1)])
    index.commit(1)
    index.close()
    (tmp_path / "records" / "meta.json").write_text("{", encoding="ascii")

    with pytest.raises(TextIndexFailed):
        TantivyText(tmp_path)


# ── vectors ──────────────────────────────────────────────────────────────────────────────────


class Twin:
    """The vector index without an index: a dictionary, and a loop."""

    def __init__(self) -> None:
        self.rows = {}

    def put(self, document: Document, vector: np.ndarray) -> None:
        self.rows[document.tenant_no, document.layer, document.raw] = (document, vector)

    def remove(self, gone: Gone) -> None:
        self.rows.pop(tuple(gone), None)

    def search(self, tenant_no, scope_nos, wanted, *, layers, until=None):
        found = [
            (float(vector @ wanted), layer, raw)
            for (tenant, layer, raw), (document, vector) in self.rows.items()
            if tenant == tenant_no
            and document.scope_no in scope_nos
            and layer in layers
            and (until is None or document.recorded_us < until)
            and vector.any()
        ]
        return sorted(found, key=lambda hit: (-hit[0], hit[1], hit[2]))


def kept(vector: np.ndarray) -> np.ndarray:
    """A vector as the index keeps it."""
    return unpack_vectors(pack_vectors(vector[None].astype(np.float32)), len(vector))[0]


def put(index: BlockVectors, kv: MemoryKV, *pairs, gone=(), checkpoint=1) -> None:
    placed = []
    for document, vector in pairs:
        packed = pack_vectors(np.asarray(vector, np.float32)[None])[0]
        row = row_of(document, b"", packed, np.arange(document.offset % 4, dtype="<i4").tobytes())
        placed.append(Placed(document.tenant_no, document.scope_no, document.layer, row))
    index.write(kv.batch(), placed, list(gone), checkpoint)


def new_index(kv: MemoryKV | None = None, **options) -> tuple[BlockVectors, MemoryKV]:
    kv = kv or MemoryKV(["meta", "embeddings"])
    return BlockVectors(kv, 1, DIMENSIONS, **options), kv


class Found(NamedTuple):
    """A near document, in words."""

    score: float
    layer: str
    raw: bytes
    scope_no: int
    row: int


def near(index: BlockVectors, scope_nos: list[int], wanted: np.ndarray, **options) -> list[Found]:
    """What a search of the first tenant's scopes finds; every row is where it is said to be."""
    opened = index.open(1, scope_nos)
    parts = opened.search(wanted, **options)
    found = sorted(
        [
            Found(score, part.layer, raws[row], part.scope_no, row)
            for part in parts
            for raws in [opened.block(part.scope_no, part.layer).raws]
            for row, score in part.pairs()
        ],
        key=lambda one: (-one.score, one.layer, one.raw),
    )
    for part in parts:
        own = [one for one in found if (one.layer, one.scope_no) == (part.layer, part.scope_no)]
        assert [one.row for one in own] == [row for row, _ in part.pairs()]
    for one in found:
        likeness = opened.likeness(one.scope_no, one.layer, np.array([one.row]), wanted)
        assert one.score >= likeness[0] - 1e-5  # more, where a passage is nearer than the whole
    return found


@st.composite
def histories(draw):
    """Batches of documents put, revised and removed, and searches in between."""
    batches = []
    offset = 0
    for _ in range(draw(st.integers(1, 6))):
        pairs, gone = [], []
        for _ in range(draw(st.integers(0, 6))):
            offset += 1
            layer = draw(st.sampled_from(["events", "facts", "concepts"]))
            number = offset if layer == "events" else draw(st.integers(1, 6))
            made = document(
                number,
                "w " * draw(st.integers(0, 3)),
                layer=layer,
                offset=offset,
                recorded_us=offset,
                scope_no=1 + number % 2,
                tenant_no=draw(st.integers(1, 2)) if layer == "events" else 1,
                actor=draw(st.sampled_from(["", "user:a", "user:b"])),
                session=draw(st.sampled_from(["", "s1", "s2"])),
                role=draw(st.sampled_from(["", "user", "assistant"])),
            )
            seed = draw(st.integers(0, 2**16))
            vector = np.random.default_rng(seed).normal(size=DIMENSIONS) * (seed % 7 != 0)
            pairs.append((made, vector))
        for _ in range(draw(st.integers(0, 2))):
            layer = draw(st.sampled_from(["events", "facts"]))
            gone.append(Gone(1, layer, raw_of(draw(st.integers(1, max(offset, 1))))))
        named = {(p.tenant_no, p.layer, p.raw): (p, vector) for p, vector in pairs}
        gone = [item for item in gone if tuple(item) not in named]
        batches.append((list(named.values()), gone))
    return batches


@QUICK
@given(history=histories(), bytes_max=st.sampled_from([1, 20_000, limits.BLOCKS_BYTES_MAX]))
def test_vectors_are_found_as_by_a_loop(history, bytes_max):
    """Exact search over blocks is the search over everything, whatever fits into memory."""
    index, kv = new_index(bytes_max=bytes_max)
    twin = Twin()
    wanted = kept(np.random.default_rng(5).normal(size=DIMENSIONS))
    for checkpoint, (pairs, gone) in enumerate(history, start=1):
        put(index, kv, *pairs, gone=gone, checkpoint=checkpoint)
        for item in gone:
            twin.remove(item)
        for made, vector in pairs:
            twin.put(made, kept(vector))
        for until in (None, 4):
            same_as_twin(index, twin, wanted, until)
    again, _ = new_index(kv)
    same_as_twin(again, twin, wanted, None)
    columns_as_twin(index, twin)
    columns_as_twin(again, twin)
    assert len(twin.rows) == again.progress.documents
    assert len(history) == again.watermark()


def same_as_twin(index: BlockVectors, twin: Twin, wanted, until) -> None:
    layers = ["events", "facts", "concepts"]
    found = near(index, [1, 2], wanted, layers=layers, limit=99, recorded_until_us=until)
    naive = twin.search(1, [1, 2], wanted, layers=layers, until=until)
    assert [(layer, raw) for _, layer, raw in sorted(naive, key=lambda hit: hit[1:])] == sorted(
        (hit.layer, hit.raw) for hit in found
    )
    scores = {(layer, raw): score for score, layer, raw in naive}
    assert all(abs(scores[hit.layer, hit.raw] - hit.score) < 1e-5 for hit in found)
    assert sorted(found, key=lambda hit: -hit.score) == found
    few = near(index, [1, 2], wanted, layers=layers, limit=3, recorded_until_us=until)
    # The best of all blocks together, and not the best of each.
    assert [hit.score for hit in found[:3]] == [hit.score for hit in few]


def columns_as_twin(index: BlockVectors, twin: Twin) -> None:
    for scope_no in (1, 2):
        for layer in ("events", "facts"):
            mine = {
                raw: (made, vector)
                for (tenant, name, raw), (made, vector) in twin.rows.items()
                if (tenant, name, made.scope_no) == (1, layer, scope_no)
            }
            block = index.block(1, scope_no, layer)
            if block is None:
                assert {} == mine
                continue
            assert sorted(mine) == sorted(block.raws)
            if layer == "events":
                assert sorted(block.offsets.tolist()) == block.offsets.tolist()
            for at, raw in enumerate(block.raws):
                made, vector = mine[raw]
                assert at == block.rows[raw]
                assert made.offset == block.offsets[at]
                assert made.actor == block.actors[block.actor[at]]
                assert made.session == block.sessions[block.session[at]]
                assert made.role == block.roles[block.role[at]]
                assert shape_of(made.gist) == (block.words[at], block.is_question[at])
                assert np.allclose(vector, block.vectors[at], atol=1e-6)
                tokens = block.tokens[block.starts[at] : block.starts[at + 1]]
                assert list(range(made.offset % 4)) == tokens.tolist()


def test_a_reader_keeps_its_rows_and_loses_what_was_removed():
    """What somebody holds stays as long as it was; the vector of a removed row is blanked there."""
    index, kv = new_index()
    put(index, kv, (document(1), np.ones(DIMENSIONS)), (document(2), np.ones(DIMENSIONS)))
    held = index.block(1, 1, "events")
    put(index, kv, (document(3), np.ones(DIMENSIONS)), gone=[Gone(1, "events", raw_of(1))])
    now = index.block(1, 1, "events")

    assert [raw_of(1), raw_of(2)] == held.raws
    assert [False, True] == held.vectors.any(axis=1).tolist()
    assert [raw_of(2), raw_of(3)] == now.raws
    assert 0 == now.rows[raw_of(2)]


def test_what_was_opened_stays_while_others_write():
    """A row that is found is the row that is read, whatever joins, changes or goes meanwhile."""
    index, kv = new_index()
    axis = np.eye(DIMENSIONS)
    put(index, kv, *[(document(n), axis[n]) for n in range(1, 4)])
    opened = index.open(1, [1])
    held = opened.block(1, "events")
    put(index, kv, (document(9), axis[3]), gone=[Gone(1, "events", raw_of(1))], checkpoint=2)
    found = opened.search(axis[3], layers=["events"], limit=1)

    assert [("events", 1, [2])] == [
        (one.layer, one.scope_no, [row for row, _ in one.pairs()]) for one in found
    ]
    assert held is opened.block(1, "events")
    assert raw_of(3) == held.raws[2]
    assert 1 == index.open(1, [1]).block(1, "events").rows[raw_of(3)]


def test_a_vector_of_another_model_finds_nothing():
    """Other dimensions are another model's: no hit, and no error, while generations swap."""
    index, kv = new_index()
    put(index, kv, (document(1), np.ones(DIMENSIONS)))

    assert [] == near(index, [1], np.ones(DIMENSIONS + 1), layers=LAYERS, limit=5)
    opened = index.open(1, [1])
    assert [0.0] == opened.likeness(1, "events", np.array([0]), np.ones(DIMENSIONS + 1)).tolist()


def test_an_event_is_found_by_its_nearest_passage():
    """Passages stand beside the whole; the event is one hit with the nearest one's score."""
    index, kv = new_index()
    axis = np.eye(DIMENSIONS)
    pairs = [(document(1, passage=n), axis[n]) for n in range(4)]
    put(index, kv, *pairs)
    found = near(index, [1], axis[2], layers=["events"], limit=5)
    put(index, kv, gone=[Gone(1, "events", raw_of(1))], checkpoint=2)

    assert [(raw_of(1), 0)] == [(hit.raw, hit.row) for hit in found]
    assert math.isclose(1, found[0].score, abs_tol=1e-3)
    assert [raw_of(1)] == index_raws(found)
    assert [] == near(index, [1], axis[2], layers=["events"], limit=5)
    assert [] == list(kv.scan("blocks@1"))
    assert [] == list(kv.scan("places@1"))


def index_raws(hits) -> list[bytes]:
    return [hit.raw for hit in hits]


def test_a_text_that_changes_or_goes_leaves_no_vector_behind():
    """What was remembered of a text goes with the last word of it, so nothing piles up."""
    index, kv = new_index()
    for content in (b"one", b"two"):
        batch = kv.batch()
        batch.put("embeddings", content, b"vector")
        row = row_of(document(1, layer="facts"), content, b"", b"")
        index.write(batch, [Placed(1, 1, "facts", row)], [], 1)
    revised = [key for key, _ in kv.scan("embeddings")]
    index.write(kv.batch(), [], [Gone(1, "facts", raw_of(1))], 2)

    assert [b"two"] == revised
    assert [] == list(kv.scan("embeddings"))


def test_large_blocks_are_searched_by_a_graph():
    """Beyond a size a graph finds the nearest; revised, removed and new rows are exact."""
    index, kv = new_index(exact_rows_max=200)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(6000, DIMENSIONS))
    rows = [(document(n + 1, layer="facts"), vector) for n, vector in enumerate(vectors)]
    put(index, kv, *rows)
    index.block(1, 1, "facts")
    index._builder.join()
    put(
        index,
        kv,
        (document(17, layer="facts"), vectors[4000]),
        (document(9001, layer="facts"), vectors[4000]),
        gone=[Gone(1, "facts", raw_of(4001))],
        checkpoint=2,
    )
    wanted = kept(vectors[4000])
    found = near(index, [1], wanted, layers=["facts"], limit=20)
    exact = near(index, [1], wanted, layers=["facts"], limit=20, recorded_until_us=10**6)
    index.close()

    assert {raw_of(17), raw_of(9001)} == set(index_raws(found[:2]))
    assert raw_of(4001) not in index_raws(found)
    assert len(set(index_raws(found)) & set(index_raws(exact))) >= 18


def test_readers_miss_nothing_that_is_written_while_they_load():
    """A block on its way into memory takes what is written meanwhile, once."""
    index, kv = new_index(bytes_max=1)
    seen = []

    def read() -> None:
        while not seen or seen[-1] < 200:
            for scope_no in (1, 2):  # the other one pushes it out of memory again
                block = index.block(1, scope_no, "events")
            seen.append(0 if block is None else len(block.raws))

    put(index, kv, (document(1), np.ones(DIMENSIONS)))
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(2, 202):
        put(index, kv, (document(number, scope_no=2), np.ones(DIMENSIONS)), checkpoint=number)
    for thread in threads:
        thread.join()
    block = index.block(1, 2, "events")

    assert list(range(2, 202)) == block.offsets.tolist()
    assert len(set(block.raws)) == 200
