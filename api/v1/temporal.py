"""The moments a layer is read at, as query parameters (001 §12.2)."""

from typing import TypeVar

import msgspec

from api.decode import PageLimit
from engine.layers.pages import Order
from engine.reach import View
from engine.temporal import Answer, window_text
from schemas import limits
from schemas.errors import InvalidCursor, InvalidScope, InvalidTimestamp, MissingField
from schemas.errors import UnparseableTemporal as Unparseable
from schemas.scope import ScopePath
from schemas.temporal import During, Moment, Natural, NaturalMode, TemporalBlock, ZoneName

Request = TypeVar("Request", bound=msgspec.Struct)

READ_ERRORS = (InvalidScope, InvalidTimestamp, Unparseable, InvalidCursor, MissingField)
"""What every listing of a layer may answer, besides what every route may."""


class TemporalQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `temporal` block as parameters; windows are written `from..to`."""

    as_of: Moment | None = None
    valid_during: str | None = None
    recorded_during: str | None = None
    natural: Natural | None = None
    reference_date: Moment | None = None
    timezone: ZoneName | None = None
    natural_mode: NaturalMode = "strict"
    include_superseded: bool = False


class LayerQuery(TemporalQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every listing of a layer takes."""

    scope: ScopePath
    view: View = "local"
    order: Order = "newest"
    limit: PageLimit = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class AsOfQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When one record is meant as it was known at a moment."""

    as_of: Moment | None = None


def block_of(query: TemporalQuery) -> TemporalBlock:
    """The block that the parameters mean."""
    return TemporalBlock(
        as_of=query.as_of,
        valid_during=_window(query.valid_during, "valid_during"),
        recorded_during=_window(query.recorded_during, "recorded_during"),
        natural=query.natural,
        reference_date=query.reference_date,
        timezone=query.timezone,
        natural_mode=query.natural_mode,
        include_superseded=query.include_superseded,
    )


def _window(text: str | None, field: str) -> During | None:
    return None if text is None else window_text(text, field)


def request_of(kind: type[Request], query: TemporalQuery, **changes: object) -> Request:
    """The verb's request: fields of the same name, and the moments as one block."""
    fields = {
        name: getattr(query, name)
        for name in kind.__struct_fields__
        if name in query.__struct_fields__
    }
    return kind(**(fields | {"temporal": block_of(query)} | changes))


def warned(answer: Answer) -> tuple[tuple[bytes, bytes], ...]:
    """What the reader is warned of, as headers (001 §18.2.17)."""
    return tuple((b"x-cortex-warning", warning.encode()) for warning in answer.warnings)
