"""What may recall ask of the indexes?  The port of text and vectors, without their libraries.

A document is one record of one layer, as it can be found: an event verbatim, a fact or a belief as
a sentence, an episode or a concept by its summary. Indexes are derived from the log and the change
feed, follow them with a checkpoint of their own, and can be thrown away.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec

from engine.state.block import Block

Layer = Literal["events", "episodes", "facts", "beliefs", "concepts"]
LAYERS: tuple[Layer, ...] = ("events", "episodes", "facts", "beliefs", "concepts")
"""The order is that of the numbers by which the indexes know a layer."""


class Document(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What the indexes keep of one record.

    `text` is what words are matched against (speaker and date included); `gist` is the bare
    utterance that is embedded: a participant's name in it hurts (measured, docs of the benchmark).
    A long text has a document for the whole and one for each passage, counted from 1: words are
    looked for in the passages (the whole has no `text`), vectors stand for both.
    """

    layer: Layer
    raw: bytes
    tenant_no: int
    scope_no: int
    offset: int
    text: str
    gist: str
    observed_us: int
    recorded_us: int
    actor: str = ""
    session: str = ""
    role: str = ""
    passage: int = 0
    embeds: bool = True


Hit = tuple[float, Layer, bytes, int]
"""A document that matched: (less its score, layer, raw id, passage), so that they sort as they are
given. The passage is the one that matched best, from 1; 0 when the text is short or matched as a
whole."""


class Near(NamedTuple):
    """Documents of a block that mean nearly the same, the nearest first."""

    layer: Layer
    scope_no: int
    rows: bytes
    """int64[k]: those of the whole documents."""
    scores: bytes
    """float32[k]: how like each is, or the nearest of its passages."""

    def pairs(self) -> Iterator[tuple[int, float]]:
        """Row and score, one after another."""
        rows, scores = memoryview(self.rows).cast("q"), memoryview(self.scores).cast("f")
        return zip(rows, scores, strict=True)


Apart = tuple[float, Layer, bytes, int, int]
"""One of them: (less its likeness, layer, raw id, scope number, row), so that they sort as they are
given."""

NOWHERE: Final = -1
"""The row of a document that is not there, while a passage of it is."""


def by_block(found: Iterable[Apart]) -> list[Near]:
    """The same block by block, in this order; without documents that are not there."""
    blocks: dict[tuple[Layer, int], tuple[list[int], list[float]]] = {}
    for less, layer, _, scope_no, row in found:
        if row != NOWHERE:
            rows, scores = blocks.setdefault((layer, scope_no), ([], []))
            rows.append(row)
            scores.append(-less)
    return [
        Near(layer, scope_no, array("q", rows).tobytes(), array("f", scores).tobytes())
        for (layer, scope_no), (rows, scores) in blocks.items()
    ]


class TextIndex(Protocol):
    """Words: BM25 with stemming."""

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
        """The best matches in these scopes; a filter never changes a score."""

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""


class VectorIndex(Protocol):
    """Meaning: blocks of vectors, exact while they are small."""

    def block(self, tenant_no: int, scope_no: int, layer: Layer) -> Block | None:
        """The documents of a scope; None when it has none."""

    def open(self, tenant_no: int, scope_nos: Sequence[int]) -> "OpenedBlocks":
        """The blocks of these scopes, as they are when each is first asked for."""

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""


class OpenedBlocks(Protocol):
    """Blocks of some scopes that stay as they are, whatever is written meanwhile."""

    def block(self, scope_no: int, layer: Layer) -> Block | None:
        """The documents of a scope; None when it has none."""

    def likeness(self, scope_no: int, layer: Layer, rows: Any, vector: Any) -> Any:
        """float32[k]: how like a vector these rows are; nothing to one of another model."""

    def search(
        self,
        vector: Any,
        *,
        layers: Sequence[Layer],
        limit: int,
        recorded_until_us: int | None = None,
    ) -> list[Near]:
        """The nearest documents, by cosine, block by block."""


class EmbedderUnavailable(Exception):
    """The model cannot be used now: not installed, not the one pinned, or not answering."""


class Embedder(Protocol):
    """Text to unit vectors; the same text and model always give the same vector.

    A model behind an endpoint may raise EmbedderUnavailable, and has no dimensions (0) until it
    has answered once.
    """

    name: str
    dimensions: int
    reads_context: bool
    """Whether what a word adds depends on the words around it: such vectors count for more."""
    is_at_hand: bool
    """Whether a question's vector is worked out here, with nobody to wait for."""

    def embed(self, texts: Sequence[str]) -> Any:
        """float32[n, d], unit length; zeros for a text without words."""

    def embed_query(self, text: str) -> Any:
        """float32[d] of a question: some models are told that it is one."""

    def tokens(self, text: str) -> Any:
        """The pieces of a text's distinct words in lower case, int32, one word after another.

        For late interaction; none when the model has no pieces.
        """

    def token_batches(self, texts: Sequence[str]) -> Sequence[Any]:
        """`tokens` of many texts."""

    def token_vectors(self, tokens: Any) -> Any:
        """float32[k, e], for the caller to change.

        A word's vector is the sum of its pieces', the longer the more it says.
        """

    def begins_word(self, tokens: Any) -> Any:
        """bool[k]: where a word begins."""

    def count(self, text: str) -> int:
        """How many tokens a text has, for budgets; an estimate when the model has none."""
