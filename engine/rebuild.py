"""Do the views follow from the log?  Rebuilding them, and telling whether they are the same."""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from engine.state.kv import KV
from engine.state.log import KvLog
from engine.state.rows import Row
from engine.state.views import Unit, packed
from projectors.base import Stage
from projectors.fold import Skips, fold_inline, fold_stages
from projectors.overlay import Overlay
from schemas.entry import Entry

EntryOf = Callable[[Row], Entry]
Progress = Callable[[int, int], None]
_BATCH = 500


def _silent(done: int, total: int) -> None:
    """Progress nobody watches."""
    del done, total


def rebuild_inline(unit: Unit, log: KvLog, entry_of: EntryOf) -> None:
    """At start: build inline views anew when their projectors changed, or are new."""
    if unit.is_current() and unit.state.building is None:
        unit.ensure_families()
        unit.drop_leftovers()
        return
    unit.begin_build()
    replay_inline(unit, log, entry_of, log.head(), _silent)
    unit.swap()


def replay_inline(
    unit: Unit, log: KvLog, entry_of: EntryOf, until: int, progress: Progress
) -> None:
    """Fold the log into a unit's inline views, from its cursor to an offset."""
    while unit.cursor < until:
        rows = log.read(unit.cursor + 1, min(_BATCH, until - unit.cursor))
        overlay = Overlay(unit.moving())
        for row in rows:
            fold_inline(entry_of(row), unit.projectors, overlay)
        _write(unit, overlay, rows[-1].header.offset)
        progress(unit.cursor, until)


def replay_stages(
    unit: Unit,
    stages: tuple[Stage, ...],
    log: KvLog,
    entry_of: EntryOf,
    *,
    skips: Skips,
    until: int,
    progress: Progress,
) -> None:
    """Fold the log into a unit's staged views, from its cursor to an offset."""
    while unit.cursor < until:
        rows = log.read(unit.cursor + 1, min(_BATCH, until - unit.cursor))
        overlay = Overlay(unit.moving())
        fold_stages([entry_of(row) for row in rows], stages, overlay, skips)
        _write(unit, overlay, rows[-1].header.offset)
        progress(unit.cursor, until)


def _write(unit: Unit, overlay: Overlay, checkpoint: int) -> None:
    batch = unit.kv.batch()
    after = unit.write(batch, packed(overlay.pending), checkpoint)
    unit.kv.write(batch)
    unit.commit(after)


class ViewDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one view, as one number."""

    view: str
    rows: int
    digest: str


def digests(kv: KV, unit: Unit) -> list[ViewDigest]:
    """One digest a served view: equal digests mean equal bytes."""
    found = []
    for family in unit.families():
        state, rows = sha256(), 0
        for key, value in kv.scan(family):
            state.update(len(key).to_bytes(4, "big") + key)
            state.update(len(value).to_bytes(4, "big") + value)
            rows += 1
        name = family.removeprefix("view.").partition("@")[0]
        found.append(ViewDigest(view=name, rows=rows, digest=state.hexdigest()))
    return found
