"""What follows from a run of entries, stage by stage?

Pure, and the same whatever the size of the run: that is what replay equality (I4) rests on.
"""

from collections.abc import Iterable, Sequence

from projectors.base import Change, Projector, Put, Stage
from projectors.derives import back_pointers
from projectors.overlay import Overlay
from schemas.entry import Entry, Experience

Skips = frozenset[tuple[str, int]]
"""What replay must leave out: (projector or stage name, offset), from parks and cancellations."""


class ProjectorFailed(Exception):
    """A projector raised on an entry; the entries before it are folded and may be kept."""

    def __init__(self, projector: str, entry: Entry, cause: Exception) -> None:
        super().__init__(f"{projector} failed on entry {entry.offset}: {cause!r}")
        self.projector = projector
        self.entry = entry
        self.cause = cause


class StageReport:
    """What one stage did with one entry, and nothing it did not do."""

    # No dataclass, whose __init__ is not compiled: four of these are made for every entry.
    __slots__ = ("_puts", "changes", "parked", "stage")

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.changes: list[Change] = []
        self.parked: tuple[str, ...] = ()
        self._puts: dict[str, list[Put]] | None = None

    def puts(self, table: str) -> list[Put]:
        """The rows of a table that it put; asked for when the stage is over."""
        if self._puts is None:
            self._puts = {}
            for change in self.changes:
                if isinstance(change, Put):
                    self._puts.setdefault(change.table, []).append(change)
        return self._puts.get(table, [])

    def count(self, table: str) -> int:
        """How many they are."""
        return len(self.puts(table))


class Outcome:
    """An entry and what every stage that ran did with it."""

    __slots__ = ("entry", "reports")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.reports: list[StageReport] = []


def fold_inline(entry: Entry, projectors: Iterable[Projector], overlay: Overlay) -> list[Change]:
    """Changes of the inline projectors, taken into the overlay."""
    view = overlay.of(entry.tenant_no)
    changes: list[Change] = []
    is_experience = isinstance(entry.body, Experience)
    for projector in projectors:
        if is_experience and not projector.reads_experiences:
            continue
        for change in tuple(projector.project(entry, view)):
            overlay.apply(entry.tenant_no, change)
            changes.append(change)
    return changes


def fold_stages(
    entries: Sequence[Entry], stages: Sequence[Stage], overlay: Overlay, skips: Skips
) -> list[Outcome]:
    """Every stage over every entry, in log order. Raises ProjectorFailed at the first failure."""
    return [_fold_entry(entry, stages, overlay, skips) for entry in entries]


def _fold_entry(entry: Entry, stages: Sequence[Stage], overlay: Overlay, skips: Skips) -> Outcome:
    # An entry is taken whole or not at all: a failure in a late stage must not leave the changes
    # of an early one behind, or a retry would apply them twice.
    outcome = Outcome(entry)
    overlay.mark()
    try:
        for stage in stages:
            if not skips or (stage.name, entry.offset) not in skips:
                outcome.reports.append(_run_stage(entry, stage, overlay, skips))
    except BaseException:
        overlay.take_back()
        raise
    return outcome


def _run_stage(entry: Entry, stage: Stage, overlay: Overlay, skips: Skips) -> StageReport:
    report = StageReport(stage.name)
    if not stage.projectors:
        return report
    view = overlay.of(entry.tenant_no)
    is_experience = isinstance(entry.body, Experience)
    for projector in stage.projectors:
        if is_experience and not projector.reads_experiences:
            continue
        if skips and (projector.name, entry.offset) in skips:
            report.parked += (projector.name,)
            continue
        try:
            changes = tuple(projector.project(entry, view))
            for change in changes:
                overlay.apply(entry.tenant_no, change)
        except Exception as error:
            raise ProjectorFailed(projector.name, entry, error) from error
        report.changes.extend(changes)
    for change in back_pointers(report.changes, view) if report.changes else ():
        overlay.apply(entry.tenant_no, change)
        report.changes.append(change)
    return report
