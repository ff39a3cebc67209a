"""When do workers embed?  When the model is slow: a transformer, or an endpoint.

A static model takes less time for a text than it takes to send its vector, so it stays here.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.state.index import Embedder
from engine.work.board import Board, NobodyThere, TaskDead
from engine.work.computes import EMBED, Refused
from engine.work.wire import embed_queue
from schemas import limits

_SLOW: Final = ("onnx", "http")


def is_slow(kind: str) -> bool:
    """Whether handing texts of this kind of embedder to others pays."""
    return kind in _SLOW


class SharedEmbedder:
    """An embedder whose batches workers take, where there are some of the same model."""

    def __init__(self, own: Embedder, board: Board) -> None:
        self._own = own
        self._board = board
        self.name = own.name
        self.reads_context = own.reads_context
        # Workers answer by way of the event loop: who stands on it would wait for itself.
        self.is_at_hand = False

    @property
    def dimensions(self) -> int:
        """As the model has them; an endpoint's are known when it has answered."""
        return self._own.dimensions

    @dimensions.setter
    def dimensions(self, dimensions: int) -> None:
        self._own.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Any:
        """Rows of workers, a few batches at once; or of our own model."""
        queue = embed_queue(self.name)
        if len(texts) < limits.WORK_TEXTS or not self._board.is_able(queue):
            return self._own.embed(texts)
        size = limits.WORK_TEXTS
        parts = [list(texts[at : at + size]) for at in range(0, len(texts), size)]
        try:
            found = self._board.hand_out_from_thread(EMBED, parts, queue)
        except (NobodyThere, TaskDead, Refused):
            return self._own.embed(texts)
        rows = [np.frombuffer(one.rows, "<f4").reshape(-1, one.dimensions) for one in found]
        whole = np.vstack(rows).astype(np.float32)
        self.dimensions = self.dimensions or int(whole.shape[1])
        return whole if whole.shape == (len(texts), self.dimensions) else self._own.embed(texts)

    def embed_query(self, text: str) -> Any:
        """A question is embedded here: somebody waits for it."""
        return self._own.embed_query(text)

    def tokens(self, text: str) -> Any:
        """As the model has it."""
        return self._own.tokens(text)

    def token_batches(self, texts: Sequence[str]) -> Sequence[Any]:
        """As the model has it."""
        return self._own.token_batches(texts)

    def token_vectors(self, tokens: Any) -> Any:
        """As the model has it."""
        return self._own.token_vectors(tokens)

    def begins_word(self, tokens: Any) -> Any:
        """As the model has it."""
        return self._own.begins_word(tokens)

    def count(self, text: str) -> int:
        """As the model has it."""
        return self._own.count(text)
