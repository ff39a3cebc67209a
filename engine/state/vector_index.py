"""Which documents mean nearly this?  Blocks of vectors by scope and layer, compared exactly.

The rows of a generation lie in the store, written in one batch with the checkpoint, so that a crash
leaves them as far as the checkpoint says. A block is read into memory when somebody asks about its
scope, follows the writer from then on, and leaves when memory is short.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.state.block import Block
from engine.state.block_rows import BlockRow, Place, Progress
from engine.state.blocks import GrowingBlock, Vectors, View
from engine.state.graph import Graph
from engine.state.index import LAYERS, NOWHERE, Apart, Layer, Near, by_block
from engine.state.kv import KV, Batch
from engine.state.picking import least, picker
from engine.state.views import prefix_end
from schemas import limits

SCHEMA_VERSION: Final = 1
"""Of rows and keys: another number is another generation."""

_PICK: Final = picker()
_NAMES: Final = sorted(LAYERS)
_EVENTS: Final = LAYERS.index("events")
_PASSAGES: Final = 0xFF
_GRAPH_LAG_MAX: Final = 4096
_GRAPH_ROWS: Final = 512
_ROWS_AT_ONCE: Final = 1024
_TOUCHED_MAX: Final = 2048
_pack = msgspec.msgpack.Encoder().encode
_unpack_row = msgspec.msgpack.Decoder(BlockRow).decode
_unpack_place = msgspec.msgpack.Decoder(Place).decode
_unpack_progress = msgspec.msgpack.Decoder(Progress).decode

BlockKey = tuple[int, int, int]
"""(tenant, scope, layer number)."""

Changed = dict[BlockKey, tuple[list[BlockRow], list[bytes]]]
"""What joins or is replaced in each block, and the raw ids of what leaves it first."""


class Placed(NamedTuple):
    """A row and the scope it belongs to."""

    tenant_no: int
    scope_no: int
    layer: Layer
    row: BlockRow


class Gone(NamedTuple):
    """A record that is not to be found any more."""

    tenant_no: int
    layer: Layer
    raw: bytes


def families_of(generation: int) -> tuple[str, str]:
    """Rows in the order of the log, and where the rows of a record are."""
    return f"blocks@{generation}", f"places@{generation}"


class _Loading:
    """A block on its way into memory, and what was written meanwhile."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.missed: list[tuple[list[BlockRow], list[bytes]]] = []


class BlockVectors:
    """One generation of the vector index: one writer, any number of readers."""

    def __init__(
        self,
        kv: KV,
        generation: int,
        dimensions: int,
        *,
        bytes_max: int = limits.BLOCKS_BYTES_MAX,
        exact_rows_max: int = limits.EXACT_ROWS_MAX,
    ) -> None:
        self._kv = kv
        self._rows_family, self._places_family = families_of(generation)
        self._progress_key = b"index.vectors@%d" % generation
        self.dimensions = dimensions
        self._bytes_max = bytes_max
        self._exact_rows_max = exact_rows_max
        self._lock = threading.Lock()
        self._blocks: OrderedDict[BlockKey, GrowingBlock] = OrderedDict()
        self._sizes: dict[BlockKey, int] = {}
        self._total = 0
        self._loading: dict[BlockKey, _Loading] = {}
        self._builder: threading.Thread | None = None
        self._closing = threading.Event()
        for family in families_of(generation):
            kv.create_family(family)
        found = kv.get("meta", self._progress_key)
        self.is_known = found is not None
        """Whether anything was ever written here."""
        self.progress = Progress() if found is None else _unpack_progress(found)

    def close(self) -> None:
        """Stop what runs in the background, and let go of the memory."""
        self._closing.set()
        if self._builder is not None:
            self._builder.join()
        with self._lock:
            self._blocks.clear()
            self._sizes.clear()
            self._total = 0

    def drop(self) -> None:
        """Remove the generation for good."""
        self.close()
        for family in (self._rows_family, self._places_family):
            self._kv.drop_family(family)
        batch = self._kv.batch()
        batch.delete("meta", self._progress_key)
        self._kv.write(batch)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def watermark(self) -> int:
        """Every entry up to this offset can be found."""
        return self.progress.checkpoint

    def write(
        self, batch: Batch, placed: Sequence[Placed], gone: Sequence[Gone], checkpoint: int
    ) -> None:
        """Add rows, or replace those of the same records; remove others; all in one batch.

        `batch` may hold more that belongs to it: the vectors to be remembered.
        """
        documents = self.progress.documents
        changed: Changed = {}
        for lost in dict.fromkeys(gone):
            documents -= self._remove(batch, lost, changed)
        passages = Counter(item.row.raw for item in placed if item.row.passage)
        removed = set(gone)
        for item in placed:
            row = item.row
            code = _PASSAGES if row.passage else LAYERS.index(item.layer)
            if row.passage == 0:
                # What was removed in this batch is still in the store, and is new here.
                is_back = Gone(item.tenant_no, item.layer, row.raw) in removed
                documents += self._place(batch, item, passages[row.raw], is_back=is_back)
            key = (item.tenant_no, item.scope_no, code)
            batch.put(self._rows_family, _row_key(key, row), _pack(row))
            changed.setdefault(key, ([], []))[0].append(row)
        progress = Progress(checkpoint, documents)
        batch.put("meta", self._progress_key, _pack(progress))
        self._kv.write(batch)
        self.progress = progress
        self._take(changed)

    def holds(self, tenant_no: int, layer: Layer, raw: bytes) -> bool:
        """Whether a record has rows here."""
        return self._kv.get(self._places_family, _place_key(tenant_no, layer, raw)) is not None

    def _place(self, batch: Batch, item: Placed, passages: int, *, is_back: bool) -> int:
        """Remember where a record's rows lie; 1 when it is new."""
        tenant_no, scope_no, layer, row = item
        key = _place_key(tenant_no, layer, row.raw)
        code = LAYERS.index(layer)
        order = _order(code, row)
        # An event comes once, and never again: only records are revised.
        is_new = is_back or code == _EVENTS
        found = None if is_new else self._kv.get(self._places_family, key)
        if found is not None:
            self._forget_content(batch, (tenant_no, scope_no, code), order, row.content)
        batch.put(self._places_family, key, _pack(Place(scope_no, order, passages)))
        return 1 if found is None else 0

    def _remove(self, batch: Batch, item: Gone, changed: Changed) -> int:
        """Delete a record's rows and what was remembered of its text; 1 when it was there."""
        place_key = _place_key(item.tenant_no, item.layer, item.raw)
        found = self._kv.get(self._places_family, place_key)
        if found is None:
            return 0
        place = _unpack_place(found)
        key = (item.tenant_no, place.scope_no, LAYERS.index(item.layer))
        pieces = (item.tenant_no, place.scope_no, _PASSAGES)
        orders = [place.order + number.to_bytes(2, "big") for number in _numbers(place.passages)]
        for owner, order in [(key, place.order), *((pieces, order) for order in orders)]:
            self._forget_content(batch, owner, order, b"")
            batch.delete(self._rows_family, _prefix(owner) + order)
        batch.delete(self._places_family, place_key)
        changed.setdefault(key, ([], []))[1].append(item.raw)
        if orders:
            changed.setdefault(pieces, ([], []))[1].append(item.raw)
        return 1

    def _forget_content(self, batch: Batch, key: BlockKey, order: bytes, but: bytes) -> None:
        """A text that is not there any more leaves no vector behind."""
        old = self._kv.get(self._rows_family, _prefix(key) + order)
        content = b"" if old is None else _unpack_row(old).content
        if content and content != but:
            batch.delete("embeddings", content)

    def _take(self, changed: Changed) -> None:
        """Bring what was written to the blocks in memory, and to those on their way there."""
        with self._lock:
            for key, (rows, raws) in changed.items():
                loading = self._loading.get(key)
                if loading is not None:
                    loading.missed.append((rows, raws))
                block = self._blocks.get(key)
                if block is not None:
                    _apply(block, rows, raws)
                    self._weigh(key, block)
            self._evict()

    # ── blocks in memory ─────────────────────────────────────────────────────────────────────

    def block(self, tenant_no: int, scope_no: int, layer: Layer) -> Block | None:
        """The documents of a scope; None when it has none."""
        view = self._view((tenant_no, scope_no, LAYERS.index(layer)))
        return view.block if view.block.raws else None

    def memory_bytes(self) -> int:
        """About how much memory the blocks take."""
        return self._total

    def _view(self, key: BlockKey) -> View:
        while True:
            with self._lock:
                block = self._blocks.get(key)
                if block is not None:
                    self._blocks.move_to_end(key)
                    if block.count > self._exact_rows_max:
                        self._build_graphs()
                    return block.snapshot()
                loading = self._loading.get(key)
                mine = loading is None
                if loading is None:
                    loading = self._loading[key] = _Loading()
            if mine:
                self._load(key, loading)
            else:
                loading.done.wait()

    def _load(self, key: BlockKey, loading: _Loading) -> None:
        try:
            prefix = _prefix(key)
            found = self._kv.scan(self._rows_family, prefix, prefix_end(prefix))
            block = GrowingBlock(self.dimensions)
            # A piece at a time: rows of a large scope would take as much again while it is read.
            while part := [_unpack_row(value) for _, value in islice(found, _ROWS_AT_ONCE)]:
                block.put(part)
            block.fit()
            with self._lock:
                for rows, raws in loading.missed:
                    _apply(block, rows, raws)
                self._blocks[key] = block
                self._weigh(key, block)
                self._evict(but=key)
        finally:
            with self._lock:
                del self._loading[key]
            loading.done.set()

    def _evict(self, but: BlockKey | None = None) -> None:
        """The blocks not asked for the longest go, until the others fit."""
        while self._total > self._bytes_max and len(self._blocks) > 1:
            key = next(key for key in self._blocks if key != but)
            del self._blocks[key]
            self._total -= self._sizes.pop(key)

    def _weigh(self, key: BlockKey, block: GrowingBlock) -> None:
        size = block.memory_bytes()
        self._total += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    # ── search ───────────────────────────────────────────────────────────────────────────────

    def open(self, tenant_no: int, scope_nos: Sequence[int]) -> "Opened":
        """The blocks of these scopes, as they are when each is first asked for."""

        def view_of(scope_no: int, code: int) -> View:
            return self._view((tenant_no, scope_no, code))

        return Opened(view_of, scope_nos, self.dimensions)

    # ── graphs ───────────────────────────────────────────────────────────────────────────────

    def _build_graphs(self) -> None:
        """Have the graphs of large blocks follow them, in the background. Holds the lock."""
        is_idle = self._builder is None or not self._builder.is_alive()
        if is_idle and not self._closing.is_set() and self._next_lag() is not None:
            self._builder = threading.Thread(target=self._follow, name="graphs", daemon=True)
            self._builder.start()

    def _next_lag(self) -> BlockKey | None:
        for key, block in self._blocks.items():
            end = 0 if block.graph is None else block.graph.end
            is_far = block.count > self._exact_rows_max and block.next_serial - end > _GRAPH_LAG_MAX
            if is_far or block.touched_count > _TOUCHED_MAX:
                return key
        return None

    def _follow(self) -> None:
        while not self._closing.is_set():
            with self._lock:
                key = self._next_lag()
                if key is None:
                    return
                block = self._blocks[key]
                if block.graph is None or block.touched_count > _TOUCHED_MAX:
                    # Rows change while it grows: from now on they are remembered as touched.
                    block.attach(Graph(self.dimensions))
                graph, view = block.graph, block.snapshot()
            assert graph is not None, "it was attached"
            first = int(np.searchsorted(view.serial, graph.end))
            part = slice(first, first + _GRAPH_ROWS)
            graph.extend(view.serial[part], view.block.vectors[part])
            with self._lock:
                if self._blocks.get(key) is block:
                    self._weigh(key, block)


class Opened:
    """Blocks of some scopes: each stays as it was first seen, so a row that is found is there."""

    def __init__(
        self, view_of: Callable[[int, int], View], scope_nos: Sequence[int], dimensions: int
    ) -> None:
        self._view_of = view_of
        self._scope_nos = scope_nos
        self._dimensions = dimensions
        self._views: dict[tuple[int, int], View] = {}
        self._compared: dict[tuple[int, int], tuple[Any, Any]] = {}

    def block(self, scope_no: int, layer: Layer) -> Block | None:
        """The documents of a scope; None when it has none."""
        view = self._view(scope_no, LAYERS.index(layer))
        return view.block if view.block.raws else None

    def likeness(self, scope_no: int, layer: Layer, rows: Any, vector: Any) -> Any:
        """float32[k]: how like a vector these rows are; nothing to one of another model."""
        place = (scope_no, LAYERS.index(layer))
        compared = self._compared.get(place)
        if compared is not None and compared[0] is vector:
            return compared[1].take(rows)
        vectors = self._view(*place).block.vectors
        if vector is None or vectors.shape[1:] != vector.shape:
            return np.zeros(len(rows), np.float32)
        return vectors.take(rows, axis=0) @ vector

    def search(
        self,
        vector: Any,
        *,
        layers: Sequence[Layer],
        limit: int,
        recorded_until_us: int | None = None,
    ) -> list[Near]:
        """The nearest documents, by cosine; one with passages by its nearest.

        A vector of another model finds nothing.
        """
        vector = np.asarray(vector, np.float32)
        if vector.shape != (self._dimensions,) or limit < 1:
            return []
        parts = [
            _Compared(
                layer,
                scope_no,
                code,
                *self._compare(scope_no, code, vector, limit, recorded_until_us),
            )
            for scope_no in self._scope_nos
            for layer, code in _codes(layers)
            if self._view(scope_no, code).block.raws
        ]
        if any(part.code == _PASSAGES for part in parts):
            ranked = self._with_passages([_best_of(part, limit) for part in parts])
            return by_block(sorted(ranked)[:limit])
        given = [
            (_NAMES.index(part.layer), part.rows, part.scores, self._raws(part)) for part in parts
        ]
        picked: list[tuple[bytes, bytes]] = _PICK.nearest(given, limit)
        return [
            Near(part.layer, part.scope_no, rows, scores)
            for part, (rows, scores) in zip(parts, picked, strict=True)
        ]

    def _raws(self, part: "_Compared") -> list[bytes]:
        return self._view(part.scope_no, part.code).block.raws

    def _view(self, scope_no: int, code: int) -> View:
        found = self._views.get((scope_no, code))
        if found is None:
            found = self._views[scope_no, code] = self._view_of(scope_no, code)
        return found

    def _compare(
        self, scope_no: int, code: int, vector: Vectors, limit: int, until_us: int | None
    ) -> tuple[Any, Any]:
        """Rows of a block that may be among the best, None for all of them; how like they are."""
        view = self._view(scope_no, code)
        rows, scores = _by_graph(view, vector, limit) if until_us is None else (None, None)
        if scores is None:
            scores = self._every(scope_no, code, vector)
            if until_us is not None:
                scores = np.where(view.block.recorded_us >= until_us, np.float32(0), scores)
        return rows, scores

    def _every(self, scope_no: int, code: int, vector: Any) -> Any:
        """How like every row of a block is: kept for the rows that become candidates."""
        compared = self._compared.get((scope_no, code))
        if compared is None or compared[0] is not vector:
            scores = self._view(scope_no, code).block.vectors @ vector
            compared = self._compared[scope_no, code] = (vector, scores)
        return compared[1]

    def _apart(self, part: "_Compared") -> list[Apart]:
        layer, scope_no, _, rows, scores = part
        raws = self._raws(part)
        # A row without a vector is like nothing.
        return [
            (-score, layer, raws[row], scope_no, row)
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
            if score != 0
        ]

    def _with_passages(self, parts: Sequence["_Compared"]) -> list[Apart]:
        """Each document once, by the nearest of its passages or by itself."""
        best: dict[tuple[Layer, bytes], Apart] = {}
        for part in parts:
            for less, layer, raw, scope_no, row in self._apart(part):
                known = best.get((layer, raw))
                if known is None or less < known[0]:
                    whole = self._whole(scope_no, raw) if part.code == _PASSAGES else row
                    best[layer, raw] = (less, layer, raw, scope_no, whole)
        return list(best.values())

    def _whole(self, scope_no: int, raw: bytes) -> int:
        """The row of the event that a passage is of."""
        block = self._view(scope_no, _EVENTS).block
        row = block.rows.get(raw, NOWHERE)
        return row if row < len(block.raws) else NOWHERE


class _Compared(NamedTuple):
    layer: Layer
    scope_no: int
    code: int
    rows: Any
    """int64[k]; None when there is a score for every row of the block."""
    scores: Any


def _from(part: _Compared, least: Any) -> _Compared:
    """The rows of a part that score as much, or more."""
    layer, scope_no, code, rows, scores = part
    chosen = (scores >= least).nonzero()[0]
    return _Compared(
        layer, scope_no, code, chosen if rows is None else rows[chosen], scores.take(chosen)
    )


def _best_of(part: _Compared, limit: int) -> _Compared:
    """The best of a part, and all that are as good as the last of them: ids decide later."""
    return _from(part, least(part.scores, limit))


def _by_graph(
    view: View, vector: Vectors, limit: int
) -> tuple[NDArray[np.int64], Vectors] | tuple[None, None]:
    """Rows worth comparing and their scores: the graph's, and all it does not have as they are.

    None while most rows are not in the graph: then comparing all of them is quicker.
    """
    graph, count = view.graph, len(view.serial)
    if graph is None or 2 * int(np.searchsorted(view.serial, graph.end)) < count:
        return None, None
    end, serials = graph.nearest(vector, limit + len(view.touched))
    touched = np.fromiter(view.touched, np.int64, len(view.touched))
    near = np.unique(np.concatenate([serials, touched]))
    places = np.searchsorted(view.serial, near)
    tail = int(np.searchsorted(view.serial, end))
    inside = places < tail
    places, near = places[inside], near[inside]
    places = places[view.serial[places] == near]
    rows = np.concatenate([places, np.arange(tail, count)])
    vectors = view.block.vectors
    return rows, np.concatenate([vectors[places] @ vector, vectors[tail:] @ vector])


def _codes(layers: Sequence[Layer]) -> list[tuple[Layer, int]]:
    codes = [(layer, LAYERS.index(layer)) for layer in layers]
    return codes + ([("events", _PASSAGES)] if "events" in layers else [])


def _apply(block: GrowingBlock, rows: list[BlockRow], raws: list[bytes]) -> None:
    for raw in raws:
        block.remove(raw)
    block.put(rows)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


def _prefix(key: BlockKey) -> bytes:
    tenant_no, scope_no, code = key
    return tenant_no.to_bytes(4, "big") + scope_no.to_bytes(4, "big") + bytes([code])


def _order(code: int, row: BlockRow) -> bytes:
    """Events in the order of the log, records in the order in which they became known."""
    if code == _PASSAGES:
        return row.offset.to_bytes(8, "big") + row.passage.to_bytes(2, "big")
    return row.offset.to_bytes(8, "big") if code == _EVENTS else row.raw


def _row_key(key: BlockKey, row: BlockRow) -> bytes:
    return _prefix(key) + _order(key[2], row)


def _place_key(tenant_no: int, layer: Layer, raw: bytes) -> bytes:
    return tenant_no.to_bytes(4, "big") + bytes([LAYERS.index(layer)]) + raw


def _numbers(passages: int) -> range:
    return range(1, passages + 1)
