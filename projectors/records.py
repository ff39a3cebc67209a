"""How are derived records kept?  The newest version under its id, the older ones beside it.

Every layer has the same three tables, named after the layer (`facts`, `facts_past`, `facts_in`):

- `<layer>`: raw id (16) -> the record as it is known last;
- `<layer>_past`: raw id (16) + version (4) -> a version known before, its `recorded_to` set;
- `<layer>_in`: scope number (4) + raw id (16) -> nothing: which records live in a scope.

So what is current is one `get`, and what was known as of an earlier moment is still there.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from projectors.base import Put
from projectors.rows import Mark, Moved
from schemas.ids import parse_id
from schemas.layers import Belief, Concept, Episode, Fact, Record

LAYERS: Final[dict[str, tuple[str, type[Record]]]] = {
    "episodes": ("ep", Episode),
    "facts": ("fact", Fact),
    "beliefs": ("belief", Belief),
    "concepts": ("concept", Concept),
}
"""Table of the layer -> (id prefix, shape)."""


def record_key(layer: str, record_id: str) -> bytes:
    """The sixteen bytes of a record's id."""
    raw = parse_id(LAYERS[layer][0], record_id)
    assert raw is not None, f"{record_id} is not an id of {layer}"
    return raw


def past_key(layer: str, record_id: str, version: int) -> bytes:
    """Where a version known before is kept."""
    return record_key(layer, record_id) + version.to_bytes(4, "big")


def scope_row_key(layer: str, scope_no: int, record_id: str) -> bytes:
    """The row that says in which scope a record lives."""
    return scope_no.to_bytes(4, "big") + record_key(layer, record_id)


def fact_about_key(scope_no: int, root: str, predicate: str = "", raw: bytes = b"") -> bytes:
    """The facts about a root (and a predicate) in a scope (`facts_about`): a prefix, or a row."""
    key = scope_no.to_bytes(4, "big") + name_key(root)[:8]
    return key + name_key(predicate)[:8] + raw if predicate else key


def tables_of(layer: str) -> dict[str, type[msgspec.Struct]]:
    """The three tables of a layer, for its projector."""
    return {layer: LAYERS[layer][1], f"{layer}_past": LAYERS[layer][1], f"{layer}_in": Mark}


def create(layer: str, scope_no: int, record: Record, supports: list[str]) -> Iterator[Put]:
    """A record known for the first time; `supports` are the events it rests on."""
    yield put(layer, record, supports)
    yield Put(table=f"{layer}_in", key=scope_row_key(layer, scope_no, record.id), value=Mark())


def revise(
    layer: str, before: Record, after: Record, at: datetime, supports: list[str]
) -> Iterator[Put]:
    """What was known ends at `at`, and another version of the same record begins."""
    assert before.id == after.id, "a version of another record"
    assert after.version == before.version + 1, "versions count by one"
    assert after.recorded_from == at, "a version is known from when the former one is not"
    # What lapsed before (a TTL) is not known again by being followed.
    ended = at if before.recorded_to is None else min(at, before.recorded_to)
    past = msgspec.structs.replace(before, recorded_to=ended)
    key = past_key(layer, before.id, before.version)
    yield Put(table=f"{layer}_past", key=key, value=past)
    yield put(layer, after, supports)


def put(layer: str, record: Record, supports: list[str]) -> Put:
    """The record as it is now known; the events it cites point back to it (001 §7.1)."""
    return Put(
        table=layer,
        key=record_key(layer, record.id),
        value=record,
        record_id=record.id,
        supports=tuple(supports),
    )


def moved(layer: str, offset: int, ids: list[str], superseded: list[str] | None = None) -> Put:
    """Tell later stages of the same entry which records moved, and which of them gave way."""
    row = Moved(offset=offset, ids=ids, superseded=superseded or [])
    return Put(table=f"{layer}_moved", key=b"", value=row)


@lru_cache(maxsize=4096)
def name_key(*names: str) -> bytes:
    """Names are personal and stay out of keys: a row is found by their hash."""
    return sha256("\0".join(names).encode(errors="surrogatepass")).digest()[:16]
