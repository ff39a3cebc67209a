"""What may recall ask of the indexes?  The port of text and vectors, without their libraries.

A document is one record of one layer, as it can be found: an event verbatim, a fact or a belief as
a sentence, an episode or a concept by its summary. Indexes are derived from the log and the change
feed, follow them with a checkpoint of their own, and can be thrown away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import msgspec

Layer = Literal["events", "episodes", "facts", "beliefs", "concepts"]
LAYERS: tuple[Layer, ...] = ("events", "episodes", "facts", "beliefs", "concepts")
"""The order is that of the numbers by which the indexes know a layer."""


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class Hit(msgspec.Struct, frozen=True, gc=False):
    """One document that matched, with the channel's own score (higher is better)."""

    layer: Layer
    raw: bytes
    score: float
    passage: int = 0
    """The passage that matched best, from 1; 0 when the text is short or matched as a whole."""


Near = tuple[float, Layer, bytes, int, int]
"""A document that means nearly the same: (less its likeness, layer, raw id, scope number, row), so
that they sort as they are given. The row is that of the whole document."""

NOWHERE: Final = -1
"""The row of a document that is not there, while a passage of it is."""


@dataclass(frozen=True)
class Block:
    """The documents of one layer of one scope, in log order, as columns of equal length.

    Rows only ever join at the end while a block is held, so a reader's copy stays consistent.
    `session`, `actor` and `role` are small numbers local to the block (`sessions`, `actors`,
    `roles` name them; 0 is none). `tokens` holds the pieces of the distinct words, for late
    interaction, row after row: those of row i are `tokens[starts[i]:starts[i + 1]]`. `rows` finds a
    document's row; it may be shared with the writer and know rows that joined later: leave those
    out. `worked_out` is for what readers find out about its rows: it goes when rows move.
    """

    raws: Sequence[bytes]
    rows: Mapping[bytes, int]
    offsets: Any  # int64[n]
    observed_us: Any  # int64[n]
    recorded_us: Any  # int64[n]
    session: Any  # int32[n]
    actor: Any  # int32[n]
    words: Any  # int32[n]
    is_question: Any  # bool[n]: it mostly asks
    vectors: Any  # float32[n, d], unit length; zeros where there is nothing to embed
    role: Any  # int8[n]
    tokens: Any  # int32[m]
    starts: Any  # int64[n + 1]
    sessions: Sequence[str]
    actors: Sequence[str]
    roles: Sequence[str]
    worked_out: dict[str, Any] = field(default_factory=dict)


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
        """The nearest documents, by cosine, best first."""


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
        """float32[k, e]: a word's vector is the sum of its pieces', the longer the more it says."""

    def begins_word(self, tokens: Any) -> Any:
        """bool[k]: where a word begins."""

    def count(self, text: str) -> int:
        """How many tokens a text has, for budgets; an estimate when the model has none."""
