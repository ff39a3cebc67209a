"""What does folding an entry leave to be written?

Rows, what the indexes follow, and what may be said of it: all of it bytes, so that it is the same
to the one who writes whether it was folded in the server or in a process beside it.
"""

from typing import Final

import msgspec

from engine.announcer import said
from engine.rows import Step
from projectors.base import Close, Drop, Put, Stage
from projectors.fold import Outcome, Skips, fold_stages
from projectors.overlay import Overlay
from schemas.entry import Entry

_OPERATIONS: Final = {Put: "put", Close: "close", Drop: "drop"}
_pack = msgspec.msgpack.Encoder().encode


def fold_entry(
    entry: Entry,
    stages: tuple[Stage, ...],
    overlay: Overlay,
    skips: Skips,
    *,
    indexed: bool,
    is_again: bool,
) -> Step:
    """Fold one entry; its rows are pending in the overlay. Raises ProjectorFailed.

    One that is folded again was announced and followed before: that is not put together anew.
    """
    (outcome,) = fold_stages([entry], stages, overlay, skips)
    return Step(
        offset=entry.offset,
        stages=[report.stage for report in outcome.reports],
        feed=None if is_again else _feed(outcome),
        due=None if is_again else said(outcome, indexed=indexed),
    )


def _feed(outcome: Outcome) -> bytes | None:
    """The rows that an entry changed, for the indexes that follow."""
    rows = [
        (change.table, change.key, _OPERATIONS[type(change)])
        for report in outcome.reports
        for change in report.changes
    ]
    return _pack([outcome.entry.tenant_no, rows]) if rows else None
