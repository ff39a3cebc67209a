"""Who holds what was derived, and which generation of it is served?

Projectors run in two units: INLINE, in the batch of the entry, and the staged ones, in the daemon.
A unit's rows live in families of one generation, `view.<projector>@<generation>`; a new version is
built in the next generation from the log while the old one is read, and then they swap.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from engine.state.kv import KV, Batch, Readable, StoreError
from engine.state.rows import Packed, UnitState
from projectors.base import Projector
from schemas import limits

_pack = msgspec.msgpack.Encoder().encode
Answer = TypeVar("Answer")
Place = tuple[int, str, bytes]
"""Tenant, table and key of a row."""

Table = tuple[int, str]
"""Tenant and table."""

_EMPTY: Final[dict[bytes, Any]] = {}
"""The rows of a table of which nothing is kept."""


_decode_state = msgspec.msgpack.Decoder(UnitState).decode


def family_of(projector: str, generation: int) -> str:
    """The family that holds a projector's rows of a generation."""
    return f"view.{projector}@{generation}"


def build_request(unit: str) -> bytes:
    """The row that asks for a unit to be built anew; it rides with what makes that needed."""
    return b"rebuild." + unit.encode()


def row_key(tenant_no: int, table: str, key: bytes) -> bytes:
    """Tenancy is the first bytes of every key."""
    return tenant_no.to_bytes(4, "big") + table.encode() + b"\0" + key


def packed(pending: Mapping[Place, Any]) -> list[Packed]:
    """Rows as they are to be written."""
    return [(*at, None if value is None else _pack(value)) for at, value in pending.items()]


class Unit:
    """A set of projectors that share a checkpoint and a generation."""

    def __init__(
        self, kv: KV, name: str, projectors: Sequence[Projector], *, keeps_recent: bool = False
    ) -> None:
        """With `keeps_recent`, rows that are read stay decoded; it is committed once written."""
        self.kv = kv
        self.name = name
        self._kind = Recent if keeps_recent else Rows
        self.projectors = tuple(projectors)
        self.versions = {projector.name: projector.version for projector in self.projectors}
        self.owner = {t: p.name for p in self.projectors for t in p.tables}
        self.decoders = {
            table: msgspec.msgpack.Decoder(kind).decode
            for projector in self.projectors
            for table, kind in projector.tables.items()
        }
        self._remembered: dict[int, Remembered] = {}
        self._rows: Rows | None = None
        self._written: Sequence[Packed] = ()
        row = kv.get("meta", self._state_key())
        self.state = _decode_state(row) if row is not None else UnitState()
        self.keeps_up = False
        """While a generation is built: whether the one that is read is moved just now."""

    def _state_key(self) -> bytes:
        return b"unit." + self.name.encode()

    # ── generations ──────────────────────────────────────────────────────────────────────────

    def is_current(self) -> bool:
        """Whether the rows served were made by the projectors as they are now."""
        return self.state.versions == self.versions and self.state.generation > 0

    def needs_build(self) -> bool:
        """Whether one was asked for, or the rows there are were made by other projectors."""
        if self.kv.get("meta", build_request(self.name)) is not None:
            return True
        if self.state.building is not None:
            return self.state.building_versions != self.versions
        return not self.is_current()

    def begin_build(self) -> None:
        """Start the next generation, empty, beside the one that is read."""
        generation = max(self.state.generation, self.state.building or 0) + 1
        for projector in self.projectors:
            self.kv.drop_family(family_of(projector.name, generation))
            self.kv.create_family(family_of(projector.name, generation))
        batch = self.kv.batch()
        batch.delete("meta", build_request(self.name))
        self._save(
            batch, building=generation, building_checkpoint=0, building_versions=self.versions
        )

    def ensure_families(self) -> None:
        """Families of the generation in use exist, also after a crash while they were made."""
        generations = {self.state.generation, self.state.building} - {0, None}
        for generation in generations:
            for projector in self.projectors:
                self.kv.create_family(family_of(projector.name, generation or 0))

    def swap(self) -> None:
        """Serve the generation that was built; the old rows are dropped."""
        assert self.state.building is not None, "nothing was built"
        self._save(
            self.kv.batch(),
            generation=self.state.building,
            checkpoint=self.state.building_checkpoint,
            versions=self.versions,
            building=None,
            building_checkpoint=0,
            building_versions={},
        )
        self.kv.sync()
        self.drop_leftovers()

    def drop_leftovers(self) -> None:
        """Families of generations that are neither served nor being built."""
        in_use = {self.state.generation, self.state.building}
        for name in self.kv.families():
            owner, _, generation = name.removeprefix("view.").partition("@")
            if (
                name.startswith("view.")
                and owner in self.versions
                and int(generation) not in in_use
            ):
                self.kv.drop_family(name)

    def _save(self, batch: Batch, **fields: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)
        batch.put("meta", self._state_key(), _pack(self.state))
        self.kv.write(batch)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    @property
    def target(self) -> int:
        """The generation that moves: the one being built, if any, or the one that keeps up."""
        building = self.state.building
        return self.state.generation if building is None or self.keeps_up else building

    @property
    def cursor(self) -> int:
        """The last offset folded into the generation that moves."""
        if self.target == self.state.building:
            return self.state.building_checkpoint
        return self.state.checkpoint

    def write(
        self,
        batch: Batch,
        rows: Sequence[Packed],
        checkpoint: int,
        give_way: Callable[[], None] = lambda: None,
    ) -> UnitState:
        """Put rows and the checkpoint into one batch; `commit` after it is written."""
        generation = self.target
        families = {table: family_of(name, generation) for table, name in self.owner.items()}
        for tenant_no, table, key, value in rows:
            give_way()
            place = row_key(tenant_no, table, key)
            if value is None:
                batch.delete(families[table], place)
            else:
                batch.put(families[table], place, value)
        announced = max(self.state.announced, checkpoint)
        if generation == self.state.building:
            after = msgspec.structs.replace(
                self.state, building_checkpoint=checkpoint, announced=announced
            )
        else:
            after = msgspec.structs.replace(self.state, checkpoint=checkpoint, announced=announced)
        batch.put("meta", self._state_key(), _pack(after))
        self._written = rows
        return after

    def commit(self, after: UnitState) -> None:
        """The batch that `write` filled is in the store."""
        self.state = after
        rows = self._rows
        if isinstance(rows, Recent):
            rows.changed(self._written)
        self._written = ()

    def remembering(self) -> "Remembered":
        """What this unit's only writer sees, with the rows it saw lately kept decoded."""
        found = self._remembered.get(self.target)
        if found is None:
            in_use = (self.state.generation, self.state.building)
            kept = {at: rows for at, rows in self._remembered.items() if at in in_use}
            found = kept[self.target] = Remembered(self.moving())
            self._remembered = kept
        return found

    def forget_remembered(self) -> None:
        """Others wrote the generation that moves: what was kept of it may be old."""
        self._remembered.pop(self.target, None)

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def served(self) -> "Rows":
        """What the writer of this unit sees."""
        return Rows(self, self.state.generation)

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """One row, for readers: a swap under way moves them to the new generation."""
        generation = self.state.generation
        try:
            return self._rows_of(generation).get(tenant_no, table, key)
        except StoreError:
            if generation == self.state.generation:
                raise
            return self.get(tenant_no, table, key)

    def get_many(self, tenant_no: int, table: str, keys: Sequence[bytes]) -> list[Any | None]:
        """Rows in the order of their keys, for readers, all from one generation."""
        while True:
            generation = self.state.generation
            try:
                return self._rows_of(generation).get_many(tenant_no, table, keys)
            except StoreError:
                if generation == self.state.generation:
                    raise

    def scan(self, tenant_no: int, table: str, prefix: bytes = b"") -> list[tuple[bytes, Any]]:
        """Rows by prefix, for readers, all from one generation."""
        return self._steady(lambda rows: list(rows.scan(tenant_no, table, prefix)))

    def page(self, tenant_no: int, table: str, after: bytes, limit: int) -> list[tuple[bytes, Any]]:
        """Rows beyond a key (from the first on when it is empty), in key order, for readers."""
        return self._steady(lambda rows: list(rows.page(tenant_no, table, after, limit)))

    def between(
        self, tenant_no: int, table: str, start: bytes, end: bytes, *, last_first: bool, limit: int
    ) -> list[tuple[bytes, Any]]:
        """Rows whose key is in [start, end), in key order or the other way round, for readers."""
        return self._steady(
            lambda rows: list(
                rows.between(tenant_no, table, start, end, last_first=last_first, limit=limit)
            )
        )

    def _steady(self, ask: Callable[["Rows"], Answer]) -> Answer:
        while True:
            generation = self.state.generation
            try:
                return ask(self._rows_of(generation))
            except StoreError:
                if generation == self.state.generation:
                    raise

    def _rows_of(self, generation: int) -> "Rows":
        """The rows of a generation: made once, for every read asks for them."""
        rows = self._rows
        if rows is None or rows.generation != generation:
            rows = self._rows = self._kind(self, generation)
        return rows

    def moving(self) -> "Rows":
        """What projectors see: the generation that is being written."""
        return Rows(self, self.target)

    def families(self) -> list[str]:
        """The families that are served."""
        return [family_of(p.name, self.state.generation) for p in self.projectors]


class Rows:
    """The rows of one generation, decoded."""

    def __init__(self, unit: Unit, generation: int, kv: Readable | None = None) -> None:
        """With `kv`, from there and not from the unit's own store."""
        self._kv = kv if kv is not None else unit.kv
        self.generation = generation
        self._families = {t: family_of(p, generation) for t, p in unit.owner.items()}
        self._decoders = unit.decoders

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        value = self._kv.get(self._families[table], row_key(tenant_no, table, key))
        return None if value is None else self._decoders[table](value)

    def get_many(self, tenant_no: int, table: str, keys: Sequence[bytes]) -> list[Any | None]:
        """The values in the order of the keys, None for each that is missing."""
        prefix, decode = row_key(tenant_no, table, b""), self._decoders[table]
        values = self._kv.get_many(self._families[table], [prefix + key for key in keys])
        return [None if value is None else decode(value) for value in values]

    def scan(self, tenant_no: int, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        start = row_key(tenant_no, table, prefix)
        cut = len(start) - len(prefix)
        for key, value in self._kv.scan(self._families[table], start, prefix_end(start)):
            yield key[cut:], self._decoders[table](value)

    def page(
        self, tenant_no: int, table: str, after: bytes, limit: int
    ) -> Iterator[tuple[bytes, Any]]:
        """Rows whose key is beyond another, in key order."""
        first = row_key(tenant_no, table, b"")
        start = first + after + b"\0" if after else first
        for key, value in self._kv.scan(
            self._families[table], start, prefix_end(first), limit=limit
        ):
            yield key[len(first) :], self._decoders[table](value)

    def between(
        self, tenant_no: int, table: str, start: bytes, end: bytes, *, last_first: bool, limit: int
    ) -> Iterator[tuple[bytes, Any]]:
        """Rows whose key is in [start, end), in key order or the other way round."""
        first = row_key(tenant_no, table, b"")
        for key, value in self._kv.scan(
            self._families[table], first + start, first + end, reverse=last_first, limit=limit
        ):
            yield key[len(first) :], self._decoders[table](value)


class Halves:
    """A bounded number of rows by place: those asked for lately.

    Two halves: when the young one is full it becomes the old one, and what nobody asked for since
    goes.
    """

    def __init__(self, most: int) -> None:
        self._most = most // 2
        self._young: dict[Table, dict[bytes, Any]] = {}
        self._old: dict[Table, dict[bytes, Any]] = {}
        self._count = 0
        """How many the young half has."""

    def get(self, place: Place) -> Any:
        """The value kept, or this object itself when there is none."""
        tenant_no, table, key = place
        return self.get_many(tenant_no, table, [key])[0]

    def get_many(self, tenant_no: int, table: str, keys: Sequence[bytes]) -> list[Any]:
        """The same of many rows of one table, which is looked up once."""
        young = self._young.get((tenant_no, table), _EMPTY)
        found = [young.get(key, self) for key in keys]
        for at, value in enumerate(found):
            if value is self:
                found[at] = self._back((tenant_no, table, keys[at]))
        return found

    def _back(self, place: Place) -> Any:
        """What the old half has goes to the young one."""
        tenant_no, table, key = place
        found = self._old.get((tenant_no, table), _EMPTY).get(key, self)
        if found is not self:
            self.keep(place, found)
        return found

    def keep(self, place: Place, value: Any) -> None:
        """Keep a value that was asked for."""
        tenant_no, table, key = place
        if self._count >= self._most:
            self._old, self._young, self._count = self._young, {}, 0
        rows = self._young.setdefault((tenant_no, table), {})
        self._count += key not in rows
        rows[key] = value

    def revise(self, place: Place, value: Any) -> None:
        """Another value for what is kept; what is not kept stays so."""
        tenant_no, table, key = place
        for half in (self._young, self._old):
            rows = half.get((tenant_no, table), _EMPTY)
            if key in rows:
                rows[key] = value
                return

    def drop(self, place: Place) -> None:
        """Keep it no longer."""
        tenant_no, table, key = place
        young = self._young.get((tenant_no, table), _EMPTY)
        if key in young:
            del young[key]
            self._count -= 1
        self._old.get((tenant_no, table), _EMPTY).pop(key, None)


class Recent(Rows):
    """Rows of one generation for readers, those read lately kept decoded.

    A row is kept only if nothing was written between looking it up and keeping it: what a reader
    finds after a commit is never older than that commit.
    """

    def __init__(self, unit: Unit, generation: int) -> None:
        super().__init__(unit, generation)
        self._kept = Halves(limits.READ_CACHE_ROWS_MAX)
        self._lock = threading.Lock()
        self._commits = 0

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        place = (tenant_no, table, key)
        with self._lock:
            found = self._kept.get(place)
            commits = self._commits
        if found is self._kept:
            found = super().get(tenant_no, table, key)
            with self._lock:
                if commits == self._commits:
                    self._kept.keep(place, found)
        return found

    def get_many(self, tenant_no: int, table: str, keys: Sequence[bytes]) -> list[Any | None]:
        """The values in the order of the keys, None for each that is missing."""
        kept = self._kept
        with self._lock:
            found = kept.get_many(tenant_no, table, keys)
            commits = self._commits
        missing = [at for at, value in enumerate(found) if value is kept]
        if missing:
            values = super().get_many(tenant_no, table, [keys[at] for at in missing])
            with self._lock:
                is_same = commits == self._commits
                for at, value in zip(missing, values, strict=True):
                    found[at] = value
                    if is_same:
                        kept.keep((tenant_no, table, keys[at]), value)
        return found

    def changed(self, rows: Iterable[Packed]) -> None:
        """These rows were just written."""
        with self._lock:
            self._commits += 1
            for tenant_no, table, key, _ in rows:
                self._kept.drop((tenant_no, table, key))


class Remembered:
    """Rows of one generation that were looked up lately; right only for the unit's one writer.

    What is written and never looked up is not kept.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._kept = Halves(limits.VIEW_CACHE_ROWS_MAX)

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None; that there is none is remembered as well."""
        place = (tenant_no, table, key)
        found = self._kept.get(place)
        if found is self._kept:
            found = self._rows.get(tenant_no, table, key)
            self._kept.keep(place, found)
        return found

    def scan(self, tenant_no: int, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        return self._rows.scan(tenant_no, table, prefix)

    def written(self, pending: dict[Place, Any]) -> None:
        """These rows were just written."""
        for place, value in pending.items():
            self._kept.revise(place, value)


def prefix_end(prefix: bytes) -> bytes | None:
    """The first key after every key that starts with the prefix."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
