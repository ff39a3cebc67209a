"""Which generation of the indexes is read, which is being built, and what were they made by?

Text and vectors of one number belong together: the text in a folder of its own, the vectors in
families of the store. One that cannot be opened, or that something else made, is built anew beside
the one that is read; then they swap.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from engine.state.index import Embedder
from engine.state.kv import KV, Batch
from engine.state.leaving import clear_away
from engine.state.text_index import SCHEMA_VERSION as TEXT_VERSION
from engine.state.text_index import TantivyText, TextIndexFailed
from engine.state.vector_index import SCHEMA_VERSION as VECTORS_VERSION
from engine.state.vector_index import BlockVectors, families_of
from engine.state.views import Halves
from schemas import limits

_STATE_KEY: Final = b"index"
_PREFIX: Final = "text-"
_MARK: Final = "generation"
_pack = msgspec.msgpack.Encoder().encode


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation was made by and from: when any of it changes, another is made."""

    embedder: str
    kind: str
    dimensions: int
    views: int
    text: int = TEXT_VERSION
    vectors: int = VECTORS_VERSION


class IndexState(msgspec.Struct, frozen=True, kw_only=True):
    """How the store remembers the generations. A name tells a folder of ours from another's."""

    generation: int = 0
    made: Made | None = None
    name: str = ""
    building: int = 0
    building_made: Made | None = None
    building_name: str = ""
    records_until: int | None = None
    """The building one has every record as of this entry; what came later is in the feed."""


_decode_state = msgspec.msgpack.Decoder(IndexState).decode


class Generation:
    """Text and vectors that are followed together."""

    def __init__(
        self, number: int, made: Made, text: TantivyText, vectors: BlockVectors, embedder: Embedder
    ) -> None:
        self.number = number
        self.made = made
        self.text = text
        self.vectors = vectors
        self.embedder = embedder
        self.feed_after = 0
        """Records as of this entry were taken from the views; later ones are in the feed."""
        self.text_cursor = text.watermark()
        """The last entry whose documents the text index was given, committed or not."""
        self.is_broken = False
        """It can be read perhaps, and not followed."""
        self.forget_given()

    def forget_given(self) -> None:
        """Text and vectors may not have the same of every record: nothing is taken for granted."""
        self.given = Halves(limits.INDEX_GIVEN_MAX)
        """What both were last given of the records that were indexed lately."""

    def watermark(self) -> int:
        """Every entry up to this offset can be found, by words and by meaning."""
        return min(self.text.watermark(), self.vectors.watermark())

    def has_news(self) -> bool:
        """Whether a commit would let something be found."""
        return self.text_cursor > self.text.watermark()

    def commit(self) -> None:
        """What the text index was given is found from now on."""
        self.text.commit(self.text_cursor)


class Generations:
    """The generations of a data directory; without a folder the text is kept in memory."""

    def __init__(self, kv: KV, folder: Path | None) -> None:
        self._kv = kv
        self._folder = folder
        found = kv.get("meta", _STATE_KEY)
        self.state = IndexState() if found is None else _decode_state(found)

    # ── opening ──────────────────────────────────────────────────────────────────────────────

    def open_served(self, embedder: Embedder) -> Generation | None:
        """The generation that was read before, if it is still whole; what is left is cleared."""
        state = self.state
        found = None
        if state.generation and state.made is not None:
            found = self._open(state.generation, state.name, state.made, embedder)
        if found is None and state.generation:
            self._save(generation=0, made=None, name="")
        return found

    def open_building(self, embedder: Embedder) -> Generation | None:
        """The generation that was being built, if it can be gone on with."""
        state = self.state
        if not state.building or state.building_made is None or state.records_until is None:
            return None
        found = self._open(state.building, state.building_name, state.building_made, embedder)
        if found is not None:
            found.feed_after = state.records_until
        return found

    def _open(self, number: int, name: str, made: Made, embedder: Embedder) -> Generation | None:
        if (made.text, made.vectors) != (TEXT_VERSION, VECTORS_VERSION):
            return None
        if self._folder is None or self._name_of(number) != name:
            return None
        try:
            text = TantivyText(self._path(number))
        except TextIndexFailed:
            return None
        vectors = BlockVectors(self._kv, number, made.dimensions)
        if not vectors.is_known:
            text.close()
            return None
        return Generation(number, made, text, vectors, embedder)

    # ── building ─────────────────────────────────────────────────────────────────────────────

    def begin(self, made: Made, embedder: Embedder) -> Generation:
        """An empty generation beside the one that is read."""
        number = max(self.state.generation, self.state.building) + 1
        name = os.urandom(8).hex()
        self._clear(number)
        self._save(building=number, building_made=made, building_name=name, records_until=None)
        text = TantivyText(self._make_folder(number, name))
        return Generation(
            number, made, text, BlockVectors(self._kv, number, made.dimensions), embedder
        )

    def reopen(self, generation: Generation) -> None:
        """Open the text of a generation again, as far as it was committed."""
        with contextlib.suppress(TextIndexFailed):
            generation.text.close()
        if self._folder is None:
            raise TextIndexFailed("the text index was in memory, and is lost")
        generation.text = TantivyText(self._path(generation.number))
        generation.text_cursor = generation.text.watermark()
        generation.forget_given()

    def has_records(self, generation: Generation, until: int) -> None:
        """The building one has every record as it was at this entry; the log is followed next."""
        generation.commit()
        generation.vectors.write(self._kv.batch(), [], [], 0)
        generation.feed_after = until
        self._save(records_until=until)

    def swap(self) -> None:
        """Read the generation that was built."""
        state = self.state
        self._save(
            generation=state.building,
            made=state.building_made,
            name=state.building_name,
            building=0,
            building_made=None,
            building_name="",
            records_until=None,
        )

    def drop_leftovers(self) -> None:
        """Remove the files and families of generations that are neither read nor built."""
        used = {self.state.generation, self.state.building}
        for family in self._kv.families():
            kind, at, number = family.partition("@")
            if kind in ("blocks", "places") and at and int(number) not in used:
                self._clear(int(number))
        if self._folder is not None and self._folder.exists():
            for path in self._folder.iterdir():
                number = path.name.removeprefix(_PREFIX)
                if number.isdigit() and int(number) not in used:
                    clear_away(path)

    def _clear(self, number: int) -> None:
        for family in families_of(number):
            self._kv.drop_family(family)
        batch = self._kv.batch()
        batch.delete("meta", b"index.vectors@%d" % number)
        self._kv.write(batch)
        if self._folder is not None:
            clear_away(self._path(number))

    def _save(self, **fields: object) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)
        batch: Batch = self._kv.batch()
        batch.put("meta", _STATE_KEY, _pack(self.state))
        self._kv.write(batch)

    # ── folders ──────────────────────────────────────────────────────────────────────────────

    def _path(self, number: int) -> Path:
        assert self._folder is not None, "in memory there are no folders"
        return self._folder / f"{_PREFIX}{number}"

    def _make_folder(self, number: int, name: str) -> Path | None:
        if self._folder is None:
            return None
        path = self._path(number)
        try:
            path.mkdir(mode=0o700, parents=True)
            (path / _MARK).write_text(name, encoding="ascii")
        except OSError as error:
            raise TextIndexFailed(f"the text index has no folder: {error}") from error
        return path

    def _name_of(self, number: int) -> str | None:
        try:
            return (self._path(number) / _MARK).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
