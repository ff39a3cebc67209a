"""How is a layer walked, a page at a time?

Ids carry the moment at which a record was first known, so the rows that name a scope's records are
in that order, and those of several scopes can be merged by id alone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from engine.phrases import window_of
from engine.reach import Reach, View, reach_of
from engine.records import visible_versions
from engine.temporal import Window
from schemas import limits
from schemas.caller import Caller
from schemas.pack import Traversed
from schemas.temporal import TemporalBlock

if TYPE_CHECKING:
    from engine.engine import Engine

Order = Literal["newest", "oldest"]
_RAW: Final = 16
_VERSION: Final = 4
_BLOCK: Final = 256


class LayerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What every listing of a layer is asked."""

    scope: str
    view: View = "local"
    temporal: TemporalBlock = TemporalBlock()
    order: Order = "newest"
    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class Ground(msgspec.Struct, frozen=True):
    """Where a listing is read, once policy has said yes: the tenant, the scopes, the moments."""

    tenant_no: int | None
    reach: Reach
    window: Window


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One page, before it gets its shape."""

    items: list[Any]
    next_cursor: str | None
    has_more: bool
    scopes_traversed: list[Traversed] | UnsetType = UNSET


def survey(engine: "Engine", caller: Caller, request: LayerRequest) -> Ground:
    """The scopes and the moments that are meant, for a verb that has asked policy."""
    tenant_no = engine.tenant_no(caller)
    window = window_of(engine, tenant_no, request.temporal, at="")
    reach = reach_of(engine, caller, tenant_no, request.scope, request.view)
    return Ground(tenant_no, reach, window)


# ── sources ──────────────────────────────────────────────────────────────────────────────────


class Source(Protocol):
    """Ids of records, in the order of their ids."""

    def next(self, start: bytes | None, *, newest: bool, limit: int) -> list[bytes]:
        """Up to `limit` ids from one on, that one included, in reading order."""


class Rows:
    """The records that rows of a view name: the last sixteen bytes of the keys of a prefix."""

    def __init__(self, engine: "Engine", tenant_no: int, table: str, prefix: bytes) -> None:
        self._engine = engine
        self._tenant_no = tenant_no
        self._table = table
        self._prefix = prefix

    def next(self, start: bytes | None, *, newest: bool, limit: int) -> list[bytes]:
        """Up to `limit` ids from one on, that one included, in reading order."""
        staged = self._engine.staged
        if self._table not in staged.owner:
            return []
        first, last = self._prefix, self._prefix + b"\xff" * (_RAW + 1)
        if start is not None and newest:
            last = self._prefix + start + b"\0"
        elif start is not None:
            first = self._prefix + start
        found = staged.between(
            self._tenant_no, self._table, first, last, last_first=newest, limit=limit
        )
        return [key[-_RAW:] for key, _ in found]


class Among:
    """Records that were found some other way."""

    def __init__(self, raws: Sequence[bytes]) -> None:
        self._raws = sorted(set(raws))

    def next(self, start: bytes | None, *, newest: bool, limit: int) -> list[bytes]:
        """Up to `limit` ids from one on, that one included, in reading order."""
        raws = self._raws[::-1] if newest else self._raws
        if start is not None:
            raws = [raw for raw in raws if (raw <= start if newest else raw >= start)]
        return raws[:limit]


def in_scopes(engine: "Engine", tenant_no: int, layer: str, numbers: list[int]) -> list[Source]:
    """All records of a layer in these scopes."""
    return [Rows(engine, tenant_no, f"{layer}_in", number.to_bytes(4, "big")) for number in numbers]


# ── walking ──────────────────────────────────────────────────────────────────────────────────


class Walk:
    """Reads records of several sources merged by id, from a position on, each version once."""

    def __init__(self, sources: Sequence[Source], *, newest: bool, position: bytes | None) -> None:
        self._sources = sources
        self._newest = newest
        self.position = position

    def _next(self, count: int) -> list[bytes]:
        start = None if self.position is None else self.position[:_RAW]
        merged = {
            raw
            for source in self._sources
            for raw in source.next(start, newest=self._newest, limit=count)
        }
        return sorted(merged, reverse=self._newest)[:count]

    def _is_done(self, raw: bytes, version: int) -> bool:
        """Whether the position lies at or beyond this version of this record."""
        if self.position is None or self.position[:_RAW] != raw:
            return False
        reached = int.from_bytes(self.position[_RAW:], "big")
        return version >= reached if self._newest else version <= reached

    def collect(
        self,
        limit: int,
        versions: Callable[[bytes], list[Any]],
        wanted: Callable[[Any], bool],
    ) -> list[Any]:
        """Up to `limit` versions that are wanted; stops early after looking at very many."""
        items: list[Any] = []
        looked = 0
        while looked < limits.PAGE_SCAN_MAX:
            raws = [raw for raw in self._next(_BLOCK) if not self._is_passed(raw)]
            if not raws:
                break
            for raw in raws:
                looked += 1
                found = versions(raw)
                for record in found if self._newest else reversed(found):
                    if self._is_done(raw, record.version) or not wanted(record):
                        continue
                    if len(items) == limit:
                        return items
                    items.append(record)
                    self._move(raw, record.version)
                self._pass(raw)
                if len(items) == limit:
                    return items
        return items

    def has_more(self) -> bool:
        """Whether anything lies beyond the position."""
        return any(not self._is_passed(raw) for raw in self._next(2))

    def _move(self, raw: bytes, version: int) -> None:
        self.position = raw + version.to_bytes(_VERSION, "big")

    def _pass(self, raw: bytes) -> None:
        """Nothing of this record is left to read."""
        self._move(raw, 0 if self._newest else 2**32 - 1)

    def _is_passed(self, raw: bytes) -> bool:
        end = b"\0" * _VERSION if self._newest else b"\xff" * _VERSION
        return self.position == raw + end


def read_page(
    engine: "Engine",
    caller: Caller,
    ground: Ground,
    request: LayerRequest,
    layer: str,
    *,
    sources: Sequence[Source],
    wanted: Callable[[Any], bool],
) -> Found:
    """One page of a layer's records that a window shows and a filter wants."""
    question = (caller.tenant, layer, msgspec.structs.replace(request, cursor=None, limit=0))
    position = None
    if request.cursor is not None:
        position = engine.cursors.read(request.cursor, *question)
    tenant_no = ground.tenant_no
    walk = Walk(
        [] if tenant_no is None else sources, newest=request.order == "newest", position=position
    )
    items = walk.collect(
        request.limit,
        lambda raw: visible_versions(engine, tenant_no or 0, layer, raw, ground.window),
        wanted,
    )
    more = walk.has_more()
    cursor = None
    if more and walk.position is not None:
        cursor = engine.cursors.make(walk.position, *question)
    return Found(
        items=items,
        next_cursor=cursor,
        has_more=more,
        scopes_traversed=traversed(engine, ground, request.view, layer, items),
    )


def traversed(
    engine: "Engine", ground: Ground, view: View, layer: str, items: Sequence[Any]
) -> list[Traversed] | UnsetType:
    """What each scope on the way gave, and how much lies where the caller may not look."""
    if view not in ("holistic", "descend"):
        return UNSET
    gave = Counter(item.scope for item in items)
    read = [
        Traversed(scope=place.path, items=gave.get(place.path, 0)) for place in ground.reach.places
    ]
    closed = [
        Traversed(
            scope=barred.path,
            denied=True,
            item_count=_count(engine, ground.tenant_no, layer, barred.number),
            denied_reason=barred.reason,
        )
        for barred in ground.reach.barred
    ]
    return read + closed


def _count(engine: "Engine", tenant_no: int | None, layer: str, scope_no: int) -> int:
    if tenant_no is None:
        return 0
    rows = Rows(engine, tenant_no, f"{layer}_in", scope_no.to_bytes(4, "big"))
    return len(rows.next(None, newest=True, limit=limits.COUNTED_MAX))
