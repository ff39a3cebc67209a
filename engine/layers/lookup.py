"""Which record does a reader name?"""

from datetime import datetime
from typing import TYPE_CHECKING

from engine import policy
from engine.records import as_known, get_latest, get_versions, present, raw_id
from engine.temporal import moment
from schemas.caller import Caller
from schemas.errors import NotFound, ResourceDeleted
from schemas.layers import Record

if TYPE_CHECKING:
    from engine.engine import Engine


def locate(
    engine: "Engine", caller: Caller, layer: str, record_id: str
) -> tuple[int, bytes, Record]:
    """(tenant's number, sixteen bytes, latest version) of a record whose scope may be read.

    Another tenant's id is not found; a scope closed to the caller is a denial (DESIGN §8.2).
    """
    raw, tenant_no = raw_id(layer, record_id), engine.tenant_no(caller)
    latest = None
    if raw is not None and tenant_no is not None:
        latest = get_latest(engine, tenant_no, layer, raw)
    if latest is None or raw is None or tenant_no is None:
        if tenant_no is not None and engine.inline.get(tenant_no, "gone", raw or b"") is not None:
            raise ResourceDeleted(id=record_id)
        raise missing(layer, record_id)
    policy.require(engine, caller, "scope.read.local", latest.scope)
    return tenant_no, raw, latest


def find_record(
    engine: "Engine", caller: Caller, layer: str, record_id: str, as_of: str | None = None
) -> Record:
    """A record as it is known last, superseded or not, or as it was known at a moment."""
    tenant_no, raw, latest = locate(engine, caller, layer, record_id)
    found: Record | None = latest
    at = present(engine)
    if as_of is not None:
        at = moment(as_of, "as_of")
        found = known_at(get_versions(engine, tenant_no, layer, raw), at)
    if found is not None:
        found = as_known(engine, tenant_no, raw, found, at)
    if found is None:
        raise missing(layer, record_id)
    return found


def known_at(versions: list[Record], at: datetime) -> Record | None:
    """The version that was known at a moment."""
    for version in versions:
        is_over = version.recorded_to is not None and version.recorded_to <= at
        if version.recorded_from <= at and not is_over:
            return version
    return None


def missing(layer: str, record_id: str) -> NotFound:
    """There is no such record, or none that this caller could know of."""
    name = {"concepts": "concept"}.get(layer, layer.removesuffix("s"))
    return NotFound(f"There is no {name} {record_id[:80]!r}.", id=record_id[:80])
