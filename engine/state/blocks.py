"""How are the documents of a scope laid out, so that all of them can be compared at once?

A block is a set of columns that grow by doubling. Readers get views of them: rows join at the end
of what they hold, and where a document is revised or removed its row is overwritten in place, so
that nothing of it stays in memory because somebody still reads.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.state.block import Block
from engine.state.block_rows import BlockRow
from engine.state.graph import Graph
from engine.state.index import Document
from schemas import limits

Vectors = NDArray[np.float32]
_ROW_OVERHEAD: Final = 180
_BLOCK_OVERHEAD: Final = 4096
_FIRST_ROWS: Final = 8
_LARGE_ROWS: Final = 16_384
_NO_TOKENS: Final[NDArray[np.int32]] = np.empty(0, np.int32)
_COLUMNS: Final[dict[str, Any]] = {
    "offsets": np.int64,
    "observed_us": np.int64,
    "recorded_us": np.int64,
    "session": np.int32,
    "actor": np.int32,
    "words": np.int32,
    "is_question": np.bool_,
    "role": np.int8,
    "passage": np.int32,
    "serial": np.int64,
    "dead": np.bool_,
}


def row_of(document: Document, content: bytes, vector: bytes, tokens: bytes) -> BlockRow:
    """The row of a document; `content` is the keyed hash under which its vector is remembered."""
    words, asks = shape_of(document.gist)
    return BlockRow(
        document.raw,
        document.offset,
        document.observed_us,
        document.recorded_us,
        document.session,
        document.actor,
        document.role,
        words,
        asks,
        document.passage,
        content,
        vector,
        tokens if words <= limits.LATE_WORDS_MAX else b"",
    )


def shape_of(gist: str) -> tuple[int, bool]:
    """How many words a text has, and whether it mostly asks."""
    cut = gist[: limits.EMBED_CHARS_MAX]
    asked = cut.count("?")
    told = cut.count(". ") + cut.count("! ") + cut.rstrip().endswith((".", "!"))
    return len(cut.split()), asked > told


def unit(vectors: Vectors) -> Vectors:
    """Rows of unit length; a row of zeros stays so."""
    # As `np.linalg.norm` has it, which takes longer to look at what it was given.
    norms = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))
    norms[norms == 0] = 1
    scaled: Vectors = (vectors / norms).astype(np.float32, copy=False)
    return scaled


def pack_vectors(vectors: Vectors) -> list[bytes]:
    """Each row as it is kept: half the bytes, and the same ranking."""
    halves = vectors.astype("<f2")
    return [row.tobytes() if row.any() else b"" for row in halves]


def unpack_vectors(packed: Sequence[bytes], dimensions: int) -> Vectors:
    """Rows as they were kept, of unit length again."""
    found = np.zeros((len(packed), dimensions), np.float32)
    filled = [at for at, row in enumerate(packed) if len(row) == 2 * dimensions]
    if filled:
        flat = np.frombuffer(b"".join(packed[at] for at in filled), "<f2")
        found[filled] = flat.reshape(len(filled), dimensions).astype(np.float32)
    return unit(found)


class View(NamedTuple):
    """A block for readers, and what a search in it needs besides."""

    block: Block
    passage: NDArray[np.int32]
    serial: NDArray[np.int64]
    """Ascending, and a row's own for good, wherever it moves."""
    graph: Graph | None
    touched: frozenset[int]
    """Serial numbers of rows that the graph has as they were, and not as they are."""


class Numbers:
    """Small numbers for names, in the order they came; 0 is no name."""

    def __init__(self, most: int = 2**31 - 1) -> None:
        self.names = [""]
        self._numbers = {"": 0}
        self._most = most

    def of(self, name: str) -> int:
        """The number of a name; beyond the most there can be, none."""
        found = self._numbers.get(name)
        if found is None:
            if len(self.names) > self._most:
                return 0
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


class GrowingBlock:
    """The writer's side of a block; its owner keeps others out while it changes."""

    def __init__(self, dimensions: int, rows: Sequence[BlockRow] = ()) -> None:
        self.dimensions = dimensions
        self.count = 0
        self._next_serial = 0
        self._dead = 0
        room = max(len(rows), _FIRST_ROWS)
        self._columns = {name: np.zeros(room, kind) for name, kind in _COLUMNS.items()}
        self._vectors: Vectors = np.zeros((room, dimensions), np.float32)
        self._tokens = np.zeros(room * 8, np.int32)
        self._starts = np.zeros(room + 1, np.int64)
        self._changed: dict[int, NDArray[np.int32]] = {}
        self.raws: list[bytes] = []
        self._rows: dict[bytes, int] = {}
        self._pieces: dict[tuple[bytes, int], int] = {}
        self._sessions, self._actors, self._roles = Numbers(), Numbers(), Numbers(most=127)
        self._snapshot: View | None = None
        self._worked_out: dict[str, Any] = {}
        self.graph: Graph | None = None
        self._touched: set[int] = set()
        self.put(rows)

    @property
    def next_serial(self) -> int:
        """The serial number of the row that joins next."""
        return self._next_serial

    @property
    def touched_count(self) -> int:
        """How many rows the graph has as they were."""
        return len(self._touched)

    def memory_bytes(self) -> int:
        """About how much memory it takes."""
        columns = sum(column.nbytes for column in self._columns.values())
        arrays = columns + self._vectors.nbytes + self._tokens.nbytes + self._starts.nbytes
        graph = 0 if self.graph is None else self.graph.memory_bytes()
        return arrays + graph + self.count * _ROW_OVERHEAD + _BLOCK_OVERHEAD

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def put(self, rows: Sequence[BlockRow]) -> None:
        """Rows join at the end; one whose document is there already takes its place."""
        if not rows:
            return
        vectors = unpack_vectors([row.vector for row in rows], self.dimensions)
        fresh: list[int] = []
        for at, row in enumerate(rows):
            place = self._place_of(row.raw, row.passage)
            if place is None:
                self._take_place(row, self.count + len(fresh))
                fresh.append(at)
            elif place < self.count:
                self._overwrite(place, row, vectors[at])
            else:
                # It came twice in one call: the later one takes the place.
                fresh[place - self.count] = at
        self._append([rows[at] for at in fresh], vectors[fresh])
        self._snapshot = None

    def remove(self, raw: bytes) -> None:
        """A document is gone: its rows are blanked now and left out of the next view."""
        whole = self._rows.pop(raw, None)
        places = [] if whole is None else [whole]
        passage = 1
        while (piece := self._pieces.pop((raw, passage), None)) is not None:
            places.append(piece)
            passage += 1
        for place in places:
            self._vectors[place] = 0
            self._tokens[self._starts[place] : self._starts[place + 1]] = 0
            self._changed[place] = _NO_TOKENS
            self._columns["dead"][place] = True
            self._touch(place)
        self._dead += len(places)
        if places:
            self._snapshot = None

    def _place_of(self, raw: bytes, passage: int) -> int | None:
        return self._pieces.get((raw, passage)) if passage else self._rows.get(raw)

    def _take_place(self, row: BlockRow, place: int) -> None:
        if row.passage:
            self._pieces[row.raw, row.passage] = place
        else:
            self._rows[row.raw] = place

    def _append(self, rows: Sequence[BlockRow], vectors: Vectors) -> None:
        first, last = self.count, self.count + len(rows)
        self._make_room(last)
        self._vectors[first:last] = vectors
        tokens = [np.frombuffer(row.tokens, "<i4") for row in rows]
        starts = self._starts[first] + np.cumsum([0, *map(len, tokens)])
        self._make_token_room(int(starts[-1]))
        self._tokens[starts[0] : starts[-1]] = np.concatenate([_NO_TOKENS, *tokens])
        self._starts[first : last + 1] = starts
        self._fill(slice(first, last), rows)
        self._columns["serial"][first:last] = np.arange(len(rows)) + self._next_serial
        self._next_serial += len(rows)
        self.raws.extend(row.raw for row in rows)
        self.count = last

    def _overwrite(self, place: int, row: BlockRow, vector: Vectors) -> None:
        self._vectors[place], self._worked_out = vector, {}
        self._changed[place] = np.frombuffer(row.tokens, "<i4")
        self._fill(slice(place, place + 1), [row])
        self._touch(place)

    def _touch(self, place: int) -> None:
        """The graph has this row as it was."""
        if self.graph is not None:
            self._touched.add(int(self._columns["serial"][place]))

    def _fill(self, at: slice, rows: Sequence[BlockRow]) -> None:
        columns = self._columns
        columns["offsets"][at] = [row.offset for row in rows]
        columns["observed_us"][at] = [row.observed_us for row in rows]
        columns["recorded_us"][at] = [row.recorded_us for row in rows]
        columns["session"][at] = [self._sessions.of(row.session) for row in rows]
        columns["actor"][at] = [self._actors.of(row.actor) for row in rows]
        columns["role"][at] = [self._roles.of(row.role) for row in rows]
        columns["words"][at] = [row.words for row in rows]
        columns["is_question"][at] = [row.is_question for row in rows]
        columns["passage"][at] = [row.passage for row in rows]

    def fit(self) -> None:
        """Give back the room that is not needed now: most scopes are read and not written."""
        if len(self._vectors) > max(self.count, _FIRST_ROWS):
            self._resize(max(self.count, _FIRST_ROWS))
            self._tokens = self._tokens[: self._starts[self.count]].copy()
            self._snapshot = None

    def _make_room(self, rows: int) -> None:
        room = len(self._vectors)
        if rows > room:
            # By half when it is large: twice what is needed would be much.
            self._resize(max(rows, 2 * room if room < _LARGE_ROWS else room + room // 2))

    def _resize(self, room: int) -> None:
        # New arrays, not resized ones: readers hold views of the old.
        self._columns = {name: _sized(column, room) for name, column in self._columns.items()}
        self._vectors = _sized(self._vectors, room)
        self._starts = _sized(self._starts, room + 1)

    def _make_token_room(self, tokens: int) -> None:
        if tokens > len(self._tokens):
            self._tokens = _sized(self._tokens, max(tokens, 3 * len(self._tokens) // 2))

    def attach(self, graph: "Graph | None") -> None:
        """Search by this graph from now on; what changes meanwhile is remembered beside it."""
        self.graph, self._touched, self._snapshot = graph, set(), None

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def snapshot(self) -> "View":
        """The block as it is now, for readers; the same one until something changes."""
        if self._snapshot is None:
            if self._changed:
                self._lay_tokens_anew()
            if self._dead:
                self._close_ranks()
            self._snapshot = self._view()
        return self._snapshot

    def _view(self) -> "View":
        n, columns = self.count, self._columns
        block = Block(
            raws=list(self.raws),
            rows=self._rows,
            offsets=columns["offsets"][:n],
            observed_us=columns["observed_us"][:n],
            recorded_us=columns["recorded_us"][:n],
            session=columns["session"][:n],
            actor=columns["actor"][:n],
            words=columns["words"][:n],
            is_question=columns["is_question"][:n],
            vectors=self._vectors[:n],
            role=columns["role"][:n],
            tokens=self._tokens[: self._starts[n]],
            starts=self._starts[: n + 1],
            sessions=self._sessions.names,
            actors=self._actors.names,
            roles=self._roles.names,
            worked_out=self._worked_out,
        )
        return View(
            block=block,
            passage=columns["passage"][:n],
            serial=columns["serial"][:n],
            graph=self.graph,
            touched=frozenset(self._touched),
        )

    def _lay_tokens_anew(self) -> None:
        """Tokens of revised rows take another length, and everything behind them moves."""
        lengths = np.diff(self._starts[: self.count + 1])
        pieces: list[NDArray[np.int32]] = []
        done = 0
        for place in sorted(self._changed):
            pieces += [self._tokens[self._starts[done] : self._starts[place]], self._changed[place]]
            lengths[place] = len(self._changed[place])
            done = place + 1
        pieces.append(self._tokens[self._starts[done] : self._starts[self.count]])
        self._tokens = np.concatenate(pieces)
        starts = np.zeros(len(self._starts), np.int64)
        np.cumsum(lengths, out=starts[1 : self.count + 1])
        self._starts = starts
        self._changed = {}

    def _close_ranks(self) -> None:
        """Leave removed rows out, in new arrays: what readers hold keeps its rows."""
        alive = np.flatnonzero(~self._columns["dead"][: self.count])
        lengths = np.diff(self._starts[: self.count + 1])[alive]
        # Removed rows have no tokens any more, so the tokens stay as they lie.
        self._columns = {name: column[alive] for name, column in self._columns.items()}
        self._vectors = self._vectors[alive]
        self._starts = np.concatenate(([0], np.cumsum(lengths)))
        self.raws = [self.raws[at] for at in alive.tolist()]
        self.count, self._dead, self._worked_out = len(alive), 0, {}
        # New ones too: a reader's still say where its own rows are.
        self._rows, self._pieces = {}, {}
        for at, passage in enumerate(self._columns["passage"].tolist()):
            if passage:
                self._pieces[self.raws[at], passage] = at
            else:
                self._rows[self.raws[at]] = at


def _sized(column: Any, room: int) -> Any:
    fresh = np.zeros((room, *column.shape[1:]), column.dtype)
    kept = min(room, len(column))
    fresh[:kept] = column[:kept]
    return fresh
