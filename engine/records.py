"""Which versions of a record are there, and which does this reader see?

Over the tables of `projectors.records`; a layer whose projector does not run has no records. An
episode that was open at the moment asked about is put together from the events known then.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from engine.attached import Attached, same_reading
from engine.state.names import SCOPE
from engine.state.rows import UnitState
from engine.temporal import Window, is_visible
from projectors.beliefs.why import as_known as belief_as_known
from projectors.episodes import known
from projectors.records import LAYERS
from projectors.understanding.keys import tally_key
from projectors.understanding.reading import as_known as concept_as_known
from projectors.understanding.reading import unseen_range
from schemas import limits
from schemas.ids import parse_id
from schemas.layers import Belief, Concept, Episode, Fact, Record
from schemas.times import from_us, to_us

if TYPE_CHECKING:
    from engine.engine import Engine

_INSTANT: Final = timedelta(microseconds=1)
_read_now: Final[Attached[tuple[UnitState, Concept]]] = Attached()
"""A version of a concept -> how it reads to whoever asks now, until something is written."""


def present(engine: "Engine") -> datetime:
    """Now, and never before what was recorded last: the clock may have stepped back."""
    return from_us(max(engine.clock.now_us(), engine.log.last_recorded_us))


def raw_id(layer: str, record_id: str) -> bytes | None:
    """The sixteen bytes of a layer's id, or None when it is not one."""
    return parse_id(LAYERS[layer][0], record_id)


def get_latest(engine: "Engine", tenant_no: int, layer: str, raw: bytes) -> Record | None:
    """A record as it is known last, superseded or not."""
    if layer not in engine.staged.owner:
        return None
    found: Record | None = engine.staged.get(tenant_no, layer, raw)
    return found


def get_latest_of(
    engine: "Engine", tenant_no: int, layer: str, raws: Sequence[bytes]
) -> list[Record | None]:
    """Records as they are known last, in this order."""
    if layer not in engine.staged.owner:
        return [None] * len(raws)
    return engine.staged.get_many(tenant_no, layer, raws)


def get_versions(engine: "Engine", tenant_no: int, layer: str, raw: bytes) -> list[Record]:
    """All that was ever known of a record, newest version first."""
    latest = get_latest(engine, tenant_no, layer, raw)
    return [] if latest is None else [latest, *_past(engine, tenant_no, layer, raw, latest)]


class TenantRows:
    """One tenant's derived rows, as a projector's own functions like to look them up."""

    def __init__(self, engine: "Engine", tenant_no: int) -> None:
        self._engine = engine
        self._tenant_no = tenant_no

    def get(self, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        staged = self._engine.staged
        return staged.get(self._tenant_no, table, key) if table in staged.owner else None

    def scan(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        staged = self._engine.staged
        return iter(staged.scan(self._tenant_no, table, prefix) if table in staged.owner else [])


def as_known(
    engine: "Engine", tenant_no: int, raw: bytes, record: Record, at: datetime
) -> Record | None:
    """A version as a reader at a moment knows it; None when nothing was left of it then."""
    if isinstance(record, Belief):
        latest = get_latest(engine, tenant_no, "beliefs", raw)
        is_latest = latest is not None and latest.version == record.version
        held = engine.staged.get(tenant_no, "beliefs_held", raw) if is_latest else None
        return same_reading(record, belief_as_known(record, at, held))
    if isinstance(record, Concept):
        return _concept(engine, tenant_no, record, at)
    if not isinstance(record, Episode) or record.sealed:
        return record
    return _open_episode(engine, tenant_no, raw, record, at)


def _open_episode(
    engine: "Engine", tenant_no: int, raw: bytes, opened: Episode, at: datetime
) -> Episode | None:
    # With every write the unit has another state: until then all who ask now see the same.
    state, is_now = engine.staged.state, to_us(at) >= engine.log.last_recorded_us
    kept = engine.told.composed(opened, state) if is_now else None
    if kept is not None:
        return kept
    rows = engine.staged.scan(tenant_no, "episode_events", raw)
    members = known([member for _, member in rows], at)
    return engine.told.episode(opened, members, state if is_now else None) if members else None


def _concept(engine: "Engine", tenant_no: int, concept: Concept, at: datetime) -> Concept:
    state, is_now = engine.staged.state, to_us(at) >= engine.log.last_recorded_us
    kept = _read_now.get(concept) if is_now else None
    if kept is not None and kept[0] is state:
        return kept[1]
    unseen = _unseen(engine, tenant_no, concept, at)
    reading = same_reading(concept, concept_as_known(concept, unseen))
    return _read_now.keep(concept, (state, reading))[1] if is_now else reading


def _unseen(engine: "Engine", tenant_no: int, concept: Concept, at: datetime) -> int:
    """Updates of a concept's inputs that a version had not seen at a moment; counted to a bound."""
    scope_no = engine.names.known(SCOPE, tenant_no, concept.scope)
    if scope_no is None:
        return 0
    start, end = unseen_range(tally_key(scope_no, concept), concept, at)
    rows = engine.staged.between(
        tenant_no, "concept_inputs", start, end, last_first=False, limit=limits.COUNTED_MAX
    )
    return len(rows)


def visible_versions(
    engine: "Engine", tenant_no: int, layer: str, raw: bytes, window: Window
) -> list[Record]:
    """The versions a window shows, newest first: more than one only with superseded ones."""
    latest = get_latest(engine, tenant_no, layer, raw)
    if latest is None:
        return []
    versions = [latest]
    # What is known at the window's moment is known in one version: the latest, or one before it.
    if latest.recorded_from > window.known_at or window.include_superseded:
        versions += _past(engine, tenant_no, layer, raw, latest)
    found = (
        as_known(engine, tenant_no, raw, version, _moment(version, window)) for version in versions
    )
    return [version for version in found if version is not None and is_visible(version, window)]


def visible_version(
    engine: "Engine", tenant_no: int, layer: str, raw: bytes, window: Window
) -> Record | None:
    """The newest version a window shows, or None."""
    return newest_visible(engine, tenant_no, layer, [raw], window)[0]


def newest_visible(
    engine: "Engine", tenant_no: int, layer: str, raws: Sequence[bytes], window: Window
) -> list[Record | None]:
    """The newest version a window shows of each of these records, or None."""
    latest = get_latest_of(engine, tenant_no, layer, raws)
    is_held = layer == "beliefs" and layer in engine.staged.owner
    held = engine.staged.get_many(tenant_no, "beliefs_held", raws) if is_held else latest
    return [
        None
        if one is None
        else _newest_visible(engine, tenant_no, layer, raw, one, window=window, held=waits)
        for raw, one, waits in zip(raws, latest, held, strict=True)
    ]


def _newest_visible(
    engine: "Engine",
    tenant_no: int,
    layer: str,
    raw: bytes,
    latest: Record,
    *,
    window: Window,
    held: Any,
) -> Record | None:
    if window.include_superseded or latest.recorded_from > window.known_at:
        found = visible_versions(engine, tenant_no, layer, raw, window)
        return found[0] if found else None
    # By its very type: to ask whether it is an instance takes as long as all the rest.
    if type(latest) is Fact:
        return latest if is_visible(latest, window) else None
    if type(latest) is Episode and not latest.sealed:
        known = as_known(engine, tenant_no, raw, latest, _moment(latest, window))
        return known if known is not None and is_visible(known, window) else None
    # Reading closely changes no time of any other record: what is out of sight is not read.
    if not is_visible(latest, window):
        return None
    if type(latest) is Belief:
        return same_reading(latest, belief_as_known(latest, _moment(latest, window), held))
    if type(latest) is Concept:
        return _concept(engine, tenant_no, latest, _moment(latest, window))
    return latest


def _past(engine: "Engine", tenant_no: int, layer: str, raw: bytes, latest: Record) -> list[Record]:
    if latest.version <= 1:
        return []
    rows = engine.staged.scan(tenant_no, f"{layer}_past", raw)
    return [record for _, record in rows[::-1]]


def _moment(version: Record, window: Window) -> datetime:
    """When a version is read: when asked about, or just before it was followed by another."""
    at, ended = window.known_at, version.recorded_to
    return at if ended is None or at < ended else ended - _INSTANT
