"""What stands behind the candidates?  Records as they were known at the moment that is asked about.

Besides the search itself this is the only part of recall that reads: events from the log, derived
records in the version a window shows, and the events that each of them rests on.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from engine import policy, records
from engine.attached import Attached, same_reading
from engine.read import with_news
from engine.recall.filters import admits
from engine.recall.plan import Plan
from engine.recall.render import Thing
from engine.recall.shapes import UNMARKED, Found, Marks, Ranked, Shown
from engine.recall.sheet import LAYER_OF, Sheet, marks_when, raw_event, rests_on, sheet_of
from engine.recall.temporal import sees_event
from engine.state.block import Block
from engine.state.index import Layer
from engine.state.names import SCOPE
from projectors.derives.rows import DerivesRow
from schemas.caller import Caller
from schemas.ids import format_id, parse_id, uuid7_instant_us
from schemas.layers import Belief, Episode, Event, Fact, Record
from schemas.pack import LayerName
from schemas.times import to_us

if TYPE_CHECKING:
    from engine.engine import Engine

INDEXED: Final[Mapping[LayerName, Layer]] = {
    "events": "events",
    "episodes": "episodes",
    "facts": "facts",
    "beliefs": "beliefs",
    "understanding": "concepts",
}
"""What a layer is called on the wire -> what its tables and the indexes call it."""

_SPARE: Final = 8
_DEPTH_MAX: Final = 6
"""Steps from a concept to its events; there are three layers between them."""


_stood: Final[Attached[tuple[DerivesRow, Event]]] = Attached()
"""An event as it was submitted -> what followed from it, and how it reads with that."""


def _standing(submitted: Event, derives: DerivesRow) -> Event:
    """An event as it stands; as long as there is no news of it, the same object."""
    kept = _stood.get(submitted)
    if kept is not None and kept[0] is derives:
        return kept[1]
    event = same_reading(submitted, with_news(submitted, derives, is_cancelled=False))
    return _stood.keep(submitted, (derives, event))[1]


class Loader:
    """Reads for one recall; what it read once it remembers."""

    def __init__(
        self,
        engine: "Engine",
        caller: Caller,
        tenant_no: int,
        plan: Plan,
        open_blocks: Sequence[Block] = (),
    ) -> None:
        """`open_blocks` hold the events of scopes that the caller was found to be allowed."""
        self._open_blocks = open_blocks
        self._engine = engine
        self._caller = caller
        self._tenant_no = tenant_no
        self._plan = plan
        self._window = plan.window
        self._known_us = to_us(plan.window.known_at)
        self._without = {format_id("evt", raw) for raw in plan.filters.without}
        self._glanced = () if self._without or plan.is_past else open_blocks
        self._records: dict[bytes, Record | None] = {}
        self._readable: dict[str, bool] = {}
        self._latest: dict[bytes, Record | None] = {}
        self.looked = 0

    # ── candidates ───────────────────────────────────────────────────────────────────────────

    def collect(self, layer: LayerName, ranked: Sequence[Ranked]) -> list[Found]:
        """The best of a layer that the moments, the filters and the request let through."""
        cap, found = self._plan.caps[layer], list[Found]()
        filters, start = self._plan.filters, 0
        while start < len(ranked) and len(found) < cap:
            # Most are let through: what is missing is looked at, and a few to spare further on.
            missing = cap - len(found)
            part = ranked[start : start + (missing if start == 0 else max(missing, _SPARE))]
            start += len(part)
            self.looked += len(part)
            things = self._things(layer, part)
            sheets = [None if thing is None else sheet_of(thing) for thing in things]
            if layer == "events":
                # The first fact of an event mostly holds, and then no other is looked at.
                self._look_up("facts", [one.facts[0] for one in sheets if one and one.facts])
            for at, one in enumerate(part):
                thing, sheet = things[at], sheets[at]
                if thing is None or sheet is None:
                    continue
                if not (filters.condition is None or admits(filters, thing)):
                    continue
                marks = sheet.marks
                if marks is None:
                    marks = self._marks_of(thing, sheet)
                is_plain = marks is UNMARKED and not sheet.is_deprecated
                if is_plain or not self._is_left_out(layer, sheet, marks):
                    found.append(Found(layer, thing, sheet, one, marks))
        return found[:cap]

    def _things(self, layer: LayerName, part: Sequence[Ranked]) -> Sequence[Thing | None]:
        if layer == "events":
            return self._events(part)
        seen = self._seen(INDEXED[layer], [one.raw for one in part])
        if not self._without:
            return seen
        return [None if one is None or self._is_imagined_away(one) else one for one in seen]

    def _events(self, part: Sequence[Ranked]) -> list[Event | None]:
        """Events as they stand and were known then, where they are among what is asked about."""
        engine, tenant_no, plan = self._engine, self._tenant_no, self._plan
        told = engine.told.read([one.offset for one in part])
        news = engine.staged.get_many(tenant_no, "derives", [one.raw for one in part])
        places = [one.offset.to_bytes(8, "big") for one in part]
        cancelled = engine.inline.get_many(tenant_no, "cancelled", places)
        found: list[Event | None] = []
        for submitted, derives, cancel in zip(told, news, cancelled, strict=True):
            event = None
            if submitted is not None and cancel is None and sees_event(submitted, plan):
                event = submitted if derives is None else _standing(submitted, derives)
                if plan.is_past:
                    event = self._as_known(event)
                if self._without and event.id in self._without:
                    event = None
            found.append(event)
        return found

    def _as_known(self, event: Event) -> Event:
        """Its back-pointers as of then: an id carries the moment of what it was derived from."""
        kept = [name for name in event.derives if _instant_us(name) <= self._known_us]
        if len(kept) == len(event.derives):
            return event
        return msgspec.structs.replace(event, derives=kept)

    def record(self, table: Layer, raw: bytes) -> Record | None:
        """A derived record as the window shows it."""
        return self._seen(table, [raw])[0]

    def _seen(self, table: Layer, raws: Sequence[bytes]) -> list[Record | None]:
        """Derived records as the window shows them; each is looked up once."""
        known = self._records
        missing = [raw for raw in raws if raw not in known]
        if missing:
            found = records.newest_visible(
                self._engine, self._tenant_no, table, missing, self._window
            )
            for at, raw in enumerate(missing):
                known[raw] = found[at]
        return [known[raw] for raw in raws]

    def _look_up(self, table: Layer, raws: Sequence[bytes]) -> None:
        """Records that are asked for next, as they are known last: all at once."""
        known = self._latest
        missing = list({raw: None for raw in raws if raw not in known})
        found = records.get_latest_of(self._engine, self._tenant_no, table, missing)
        for at, raw in enumerate(missing):
            known[raw] = found[at]

    def _last(self, table: Layer, raw: bytes) -> Record | None:
        """A record as it is known last; each is looked up once."""
        if raw not in self._latest:
            self._look_up(table, [raw])
        return self._latest[raw]

    # ── marks ────────────────────────────────────────────────────────────────────────────────

    def _marks_of(self, thing: Thing, sheet: Sheet) -> Marks:
        """What a reader should know of a record at the moment that is asked about."""
        # By its very type: most that are asked about are events.
        if type(thing) is Fact or type(thing) is Belief:
            return marks_when(thing, is_over=self._is_over(thing))
        by = self._superseded_by(sheet)
        return Marks(by, is_superseded=True) if by else UNMARKED

    def _is_over(self, record: Fact | Belief) -> bool:
        """Whether it was already known then that something else holds instead."""
        window = self._plan.window
        if record.recorded_to is not None and record.recorded_to <= window.known_at:
            return True
        ended = record.valid_to is not None and record.valid_to <= window.known_at
        return ended and record.superseded_by is not None

    def _superseded_by(self, sheet: Sheet) -> tuple[str, ...]:
        """Facts that hold instead of all that an event says; empty when any of it still holds."""
        by: list[str] = []
        for raw in sheet.facts:
            fact = self._known(raw)
            if fact is None:
                continue
            if fact.superseded_by is None or not self._is_over(fact):
                return ()
            by.append(fact.superseded_by)
        return tuple(dict.fromkeys(by))

    def successors(self, thing: Thing, marks: Marks) -> list[str]:
        """What holds instead of a superseded record: the newer one, or for an event its events."""
        if not isinstance(thing, Event):
            later = getattr(thing, "superseded_by", None)
            return [] if later is None else [later]
        facts = (
            self._known(raw) for name in marks.superseded_by if (raw := parse_id("fact", name))
        )
        return [event for fact in facts if fact is not None for event in fact.supports]

    def _known(self, raw: bytes) -> Fact | None:
        """A fact as it was known then, whether or not it still held."""
        latest = self._last("facts", raw)
        if latest is None or latest.recorded_from <= self._plan.window.known_at:
            return latest if isinstance(latest, Fact) else None
        versions = records.get_versions(self._engine, self._tenant_no, "facts", raw)
        known = (one for one in versions if one.recorded_from <= self._plan.window.known_at)
        found = next(known, None)
        return found if isinstance(found, Fact) else None

    def _is_left_out(self, layer: LayerName, sheet: Sheet, marks: Marks) -> bool:
        # 001 §7.4.1: what is deprecated is kept for those who ask for the past.
        if sheet.is_deprecated and not self._plan.window.include_superseded:
            return True
        said = self._plan.treatments
        # An event is evidence of more than one fact of it: it is left out only when asked for.
        superseded = said.superseded_events if layer == "events" else said.superseded
        return (
            (marks.is_superseded and superseded == "exclude")
            or (marks.is_stale and said.stale == "exclude")
            or (marks.is_low_trust and said.low_trust == "exclude")
        )

    def last_known(self) -> int:
        """The offset of the last entry that was recorded by then."""
        log = self._engine.log

        def recorded_us(offset: int) -> int:
            return next(iter(log.headers(offset, offset + 1)))[0].recorded_us

        places = range(log.base_offset + 1, log.head() + 1)
        return log.base_offset + bisect_right(places, self._known_us, key=recorded_us)

    # ── evidence ─────────────────────────────────────────────────────────────────────────────

    def _is_imagined_away(self, record: Record) -> bool:
        """Whether it rests only on events that the request takes not to exist.

        An episode is told by all of its events: without one of them it would be another.
        """
        if not self._without:
            return False
        behind = set(self.events_of(record))
        if isinstance(record, Episode):
            return bool(behind & self._without)
        return bool(behind) and behind <= self._without

    def events_of(self, record: Record, depth: int = 0) -> list[str]:
        """Every event a record rests on, through whatever lies between."""
        found: dict[str, None] = {}
        for name in rests_on(record):
            if name.startswith("evt_"):
                found[name] = None
            elif depth < _DEPTH_MAX:
                prefix = name.partition("_")[0]
                between = self._cited(LAYER_OF.get(prefix), parse_id(prefix, name))
                for event in self.events_of(between, depth + 1) if between is not None else ():
                    found[event] = None
        return list(found)

    def _cited(self, table: Layer | None, raw: bytes | None) -> Record | None:
        """A record that another cites: as known then, even if it no longer held."""
        if table is None or raw is None:
            return None
        latest, window = self._last(table, raw), self._window
        if (
            latest is None
            or latest.recorded_from > window.known_at
            or window.include_superseded
            or (type(latest) is Episode and not latest.sealed)
        ):
            return self.record(table, raw) or latest
        # However it is seen, this version rests on the same.
        return latest

    def citations(self, told: Sequence[Shown]) -> tuple[dict[str, list[str]], dict[str, int]]:
        """(record -> what it cites, down to events; record -> events that are withheld).

        Only events the caller may read are named, and only records that lead to one.
        """
        graph: dict[str, list[str]] = {}
        withheld: dict[str, int] = {}
        named: dict[Layer, list[bytes]] = {}
        for one in told:
            for _, table, raw in one.sheet.ways:
                if table is not None and raw is not None:
                    named.setdefault(table, []).append(raw)
        for table, raws in named.items():
            self._look_up(table, raws)
        for one in told:
            if one.layer != "events" and one.id not in graph:
                self._cite(one.id, one.sheet, graph, withheld, 0)
        return graph, withheld

    def _cite(
        self,
        name: str,
        sheet: Sheet,
        graph: dict[str, list[str]],
        withheld: dict[str, int],
        depth: int,
    ) -> bool:
        """Add a record's part of the graph; whether it leads to an event at all."""
        if sheet.events is None:
            graph[name] = []  # it may cite itself only by mistake; then there is no way on
            leads, missing = self._leads(sheet, graph, withheld, depth)
        elif self._are_open(sheet.events):
            leads, missing = sheet.cited, 0
        else:
            leads = [event for event in sheet.cited if self._reads(event)]
            missing = len(sheet.cited) - len(leads)
        if missing:
            withheld[name] = missing
        if leads:
            graph[name] = leads
        else:
            graph.pop(name, None)
        return bool(leads)

    def _leads(
        self,
        sheet: Sheet,
        graph: dict[str, list[str]],
        withheld: dict[str, int],
        depth: int,
    ) -> tuple[list[str], int]:
        """What a record cites that leads to an event, and how many of its events are withheld."""
        leads, missing = list[str](), 0
        for name, table, raw in sheet.ways:
            if table == "events":
                if self._reads(name):
                    leads.append(name)
                else:
                    missing += 1
            elif name in graph:
                if graph[name]:
                    leads.append(name)
            elif depth < _DEPTH_MAX:
                between = self._cited(table, raw)
                if between is not None and self._cite(
                    name, sheet_of(between), graph, withheld, depth + 1
                ):
                    leads.append(name)
        return leads, missing

    def _are_open(self, events: tuple[bytes, ...]) -> bool:
        """Whether all of these can be read, as far as that is told at a glance."""
        for block in self._glanced:
            rows = block.rows
            for raw in events:
                if raw not in rows:
                    break
            else:
                return True
        return False

    def _reads(self, event_id: str) -> bool:
        """Whether an event can be read; each is looked up once."""
        found = self._readable.get(event_id)
        if found is None:
            found = self._readable[event_id] = self._may_read(event_id)
        return found

    def _may_read(self, event_id: str) -> bool:
        """Whether an event is there, was known then, and may be read by the caller."""
        engine, raw = self._engine, raw_event(event_id)
        if raw is None or event_id in self._without:
            return False
        if self._plan.is_past and uuid7_instant_us(raw) > self._known_us:
            return False
        for block in self._open_blocks:
            if raw in block.rows:
                return True
        offset = engine.directory.find(self._tenant_no, raw)
        if offset is None or offset > engine.log.head():
            return False
        if engine.inline.get(self._tenant_no, "cancelled", offset.to_bytes(8, "big")) is not None:
            return False
        header = next(iter(engine.log.headers(offset, offset + 1)))[0]
        scope = engine.names.name(SCOPE, self._tenant_no, header.scope_no)
        return policy.may(engine, self._caller, "scope.read.local", scope)


def events_behind(
    engine: "Engine", tenant_no: int, layer: Layer, raws: Sequence[bytes]
) -> dict[bytes, Sequence[bytes]]:
    """The events that records rest on, as they are known now: what a hit on them speaks for."""
    latest = zip(raws, records.get_latest_of(engine, tenant_no, layer, raws), strict=True)
    return {raw: _behind(engine, tenant_no, one) for raw, one in latest if one is not None}


def _behind(engine: "Engine", tenant_no: int, record: Record) -> Sequence[bytes]:
    """The events a record rests on; where it cites nothing else, that is known once for all."""
    sheet = sheet_of(record)
    if sheet.behind is None:
        named = _events_below(engine, tenant_no, record, 0)
        raws = tuple(raw for name in named if (raw := parse_id("evt", name)) is not None)
        if any(not name.startswith("evt_") for name in rests_on(record)):
            return raws
        sheet.behind = raws
    return sheet.behind


def _events_below(engine: "Engine", tenant_no: int, record: Record, depth: int) -> list[str]:
    below: dict[str, None] = {}
    for name in rests_on(record):
        prefix = name.partition("_")[0]
        raw = parse_id(prefix, name)
        if prefix == "evt":
            below[name] = None
        elif raw is not None and prefix in LAYER_OF and depth < _DEPTH_MAX:
            between = records.get_latest(engine, tenant_no, LAYER_OF[prefix], raw)
            if between is not None:
                below |= dict.fromkeys(_events_below(engine, tenant_no, between, depth + 1))
    return list(below)


def _instant_us(name: str) -> int:
    """The moment an id carries; what is not an id of ours is from before everything."""
    prefix, _, _ = name.partition("_")
    raw = parse_id(prefix, name)
    return 0 if raw is None else uuid7_instant_us(raw)
