"""What followed from this event?  The back-pointers from an event to its records (001 §7.1)."""

from collections.abc import Iterable, Iterator
from typing import Final

from projectors.base import Change, Drop, Projector, Put, View
from projectors.derives.rows import DerivesRow
from projectors.records import LAYERS
from schemas.entry import Directive, Entry, Forget
from schemas.ids import parse_id, raw_of

_LAYER_OF: Final = {prefix: layer for layer, (prefix, _) in LAYERS.items()}


def back_pointers(changes: Iterable[Change], view: View) -> list[Change]:
    """One row for every event that the new records cite."""
    known: dict[bytes, list[str]] = {}
    grown: dict[bytes, None] = {}
    for change in changes:
        if not isinstance(change, Put) or change.record_id is None:
            continue
        for event_id in change.supports:
            key = parse_id("evt", event_id)
            if key is None:
                continue
            ids = known.get(key)
            if ids is None:
                row = view.get("derives", key)
                ids = known[key] = [] if row is None else list(row.ids)
            if change.record_id not in ids:
                ids.append(change.record_id)
                grown[key] = None
    return [Put(table="derives", key=key, value=DerivesRow(ids=known[key])) for key in grown]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """Records move back-pointers, through `back_pointers`; of entries only a forget does."""
    if isinstance(entry.body, Directive) and isinstance(entry.body.command, Forget):
        return _forgotten(entry.body.command, view)
    return ()


def _forgotten(forget: Forget, view: View) -> Iterator[Change]:
    """Nothing leads to what is forgotten; of what was erased it stays visible that it was."""
    gone = {record.id for record in forget.records}
    kept: dict[bytes, list[str]] = {}
    for name in gone:
        for event_id in _behind(name, view):
            raw = raw_of("evt", event_id)
            row: DerivesRow | None = view.get("derives", raw)
            kept[raw] = [] if row is None else [one for one in row.ids if one not in gone]
    for event in forget.events if forget.cascade != "derived_only" else ():
        kept[raw_of("evt", event.event_id)] = [f"redacted:{name}" for name in event.derived]
    for raw, ids in kept.items():
        if ids:
            yield Put(table="derives", key=raw, value=DerivesRow(ids=ids))
        elif view.get("derives", raw) is not None:
            yield Drop(table="derives", key=raw)


def _behind(name: str, view: View, depth: int = 0) -> Iterator[str]:
    """The events that a record rests on, through the records it cites."""
    layer = _LAYER_OF.get(name.partition("_")[0])
    record = None if layer is None else view.get(layer, raw_of(name.partition("_")[0], name))
    for one in record.supports if record is not None else ():
        cited = one if isinstance(one, str) else one.id
        if cited.startswith("evt_"):
            yield cited
        elif depth == 0:
            yield from _behind(cited, view, depth + 1)


DERIVES = Projector(
    name="derives",
    version=2,
    tables={"derives": DerivesRow},
    project=project,
    reads_experiences=False,
)
