"""Which versions of a record are there, and which does this reader see?

Over the tables of `projectors.records`; a layer whose projector does not run has no records.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from engine.temporal import Window, is_visible
from projectors.records import LAYERS
from schemas.ids import parse_id
from schemas.layers import Record
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine


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


def get_versions(engine: "Engine", tenant_no: int, layer: str, raw: bytes) -> list[Record]:
    """All that was ever known of a record, newest version first."""
    latest = get_latest(engine, tenant_no, layer, raw)
    return [] if latest is None else [latest, *_past(engine, tenant_no, layer, raw, latest)]


def visible_versions(
    engine: "Engine", tenant_no: int, layer: str, raw: bytes, window: Window
) -> list[Record]:
    """The versions a window shows, newest first: more than one only with superseded ones."""
    latest = get_latest(engine, tenant_no, layer, raw)
    if latest is None:
        return []
    found = [latest] if is_visible(latest, window) else []
    # What is known at the window's moment is known in one version: the latest, or one before it.
    is_settled = latest.recorded_from <= window.known_at and not window.include_superseded
    if not is_settled:
        past = _past(engine, tenant_no, layer, raw, latest)
        found += [version for version in past if is_visible(version, window)]
    return found


def visible_version(
    engine: "Engine", tenant_no: int, layer: str, raw: bytes, window: Window
) -> Record | None:
    """The newest version a window shows, or None."""
    found = visible_versions(engine, tenant_no, layer, raw, window)
    return found[0] if found else None


def _past(engine: "Engine", tenant_no: int, layer: str, raw: bytes, latest: Record) -> list[Record]:
    if latest.version <= 1:
        return []
    rows = engine.staged.scan(tenant_no, f"{layer}_past", raw)
    return [record for _, record in reversed(rows)]
