"""What does a reader hold of a scope?  The documents of one layer, as columns.

By itself, so that it is compiled: whoever reads a column finds it at a known place (ADR 0040).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


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

    raws: list[bytes]
    rows: dict[bytes, int]
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
