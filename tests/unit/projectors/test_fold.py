"""What follows from a run of entries, and what when one of them cannot be taken?"""

from datetime import datetime

import msgspec
import pytest

from projectors import INLINE, STAGES
from projectors.base import Close, Projector, Put, Stage
from projectors.derives import DERIVES
from projectors.fold import ProjectorFailed, fold_inline, fold_stages
from schemas.ids import derive_id
from schemas.lifecycle import STAGE_ORDER


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    recorded_to: datetime | None = None


def tally(name, refuses=(), table=None):
    """A projector that counts entries in a row of its own, and refuses some offsets."""
    table = table or name

    def project(entry, view):
        if entry.offset in refuses:
            raise ValueError(f"not {entry.offset}")
        before = view.get(table, b"n")
        yield Put(table=table, key=b"n", value=Tally(count=before.count + 1 if before else 1))

    return Projector(name=name, version=1, tables={table: Tally}, project=project)


def looking(name, at):
    """A projector that writes down what another one's row says when it is asked."""

    def project(entry, view):
        found = view.get(at, b"n")
        value = Tally(count=found.count if found else 0)
        yield Put(table=name, key=entry.offset.to_bytes(1, "big"), value=value)

    return Projector(name=name, version=1, tables={name: Tally}, project=project)


def counts(overlay, *tables):
    found = (overlay.get(1, table, b"n") for table in tables)
    return [row.count if row else 0 for row in found]


def test_every_stage_runs_in_order(said, overlay):
    """Each reports for each entry; later ones see what earlier ones made of the same entry."""
    stages = (Stage("extracted", (tally("a"), looking("b", "a"))), Stage("indexed", (tally("c"),)))
    outcomes = fold_stages([said(1), said(2)], stages, overlay, frozenset())

    assert [1, 2] == [outcome.entry.offset for outcome in outcomes]
    assert [["extracted", "indexed"]] * 2 == [[r.stage for r in o.reports] for o in outcomes]
    assert [1, 2] == [row.count for _, row in overlay.of(1).scan("b")]
    assert [2, 2] == counts(overlay, "a", "c")


def test_a_projector_sees_the_entries_before(said, overlay):
    """State as of the entry before: its own changes show from the next entry on."""
    early = Stage("extracted", (looking("b", "a"), tally("a")))
    fold_stages([said(1), said(2), said(3)], (early,), overlay, frozenset())

    assert [0, 1, 2] == [row.count for _, row in overlay.of(1).scan("b")]


def test_a_stage_without_projectors_reports_nothing_done(said, overlay):
    """It ran, and says only that."""
    (outcome,) = fold_stages([said(1)], (Stage("indexed", ()),), overlay, frozenset())

    (report,) = outcome.reports
    assert ("indexed", [], ()) == (report.stage, report.changes, report.parked)


def test_a_skipped_stage_does_not_report(said, overlay):
    """A cancelled stage of one entry: not run, not told; other entries and stages are."""
    stages = (Stage("extracted", (tally("a"),)), Stage("indexed", (tally("b"),)))
    skips = frozenset({("indexed", 2)})
    outcomes = fold_stages([said(1), said(2), said(3)], stages, overlay, skips)

    assert [2, 1, 2] == [len(outcome.reports) for outcome in outcomes]
    assert [3, 2] == counts(overlay, "a", "b")


def test_a_parked_projector_is_left_out_and_named(said, overlay):
    """The rest of its stage runs; the report says who did not."""
    stages = (Stage("extracted", (tally("a", refuses={2}), tally("b"))),)
    skips = frozenset({("a", 2), ("b", 99)})
    outcomes = fold_stages([said(1), said(2)], stages, overlay, skips)

    assert [(), ("a",)] == [outcome.reports[0].parked for outcome in outcomes]
    assert [1, 2] == counts(overlay, "a", "b")


def test_a_failure_names_projector_and_entry(said, overlay):
    """Entries before it are folded and may be kept; its cause travels along."""
    stages = (Stage("extracted", (tally("a", refuses={3}),)),)
    with pytest.raises(ProjectorFailed, match="a failed on entry 3") as failed:
        fold_stages([said(1), said(2), said(3), said(4)], stages, overlay, frozenset())

    assert ("a", 3, ValueError) == (
        failed.value.projector,
        failed.value.entry.offset,
        type(failed.value.cause),
    )
    assert [2] == counts(overlay, "a")


def test_an_entry_is_taken_whole_or_not_at_all(said, overlay):
    """A late stage that fails takes the early stage's changes with it: a retry adds them once."""
    stages = (Stage("extracted", (tally("a"),)), Stage("consolidated", (tally("b", refuses={2}),)))
    fold_stages([said(1)], stages, overlay, frozenset())
    before = dict(overlay.pending)
    for _ in range(3):
        with pytest.raises(ProjectorFailed):
            fold_stages([said(2)], stages, overlay, frozenset())
        assert before == overlay.pending
    fold_stages([said(2), said(3)], stages, overlay, frozenset({("b", 2)}))

    assert [3, 2] == counts(overlay, "a", "b")


def test_a_change_that_cannot_be_applied_is_a_failure(said, overlay):
    """Closing what is not there is the projector's fault, like any error it raises."""

    def project(entry, view):
        yield Close(table="a", key=b"nowhere", recorded_to=entry.recorded_at)

    closing = Projector(name="closing", version=1, tables={"a": Tally}, project=project)
    with pytest.raises(ProjectorFailed, match="closing failed on entry 1"):
        fold_stages([said(1)], (Stage("extracted", (closing,)),), overlay, frozenset())

    assert {} == overlay.pending


def test_records_leave_back_pointers_in_their_stage(said, overlay):
    """They are changes like the others: in the report, and in the feed that follows it."""

    def project(entry, view):
        name = derive_id("fact", entry.id, 0)
        value = Tally(count=1)
        yield Put(table="facts", key=b"k", value=value, record_id=name, supports=(entry.event_id,))

    facts = Projector(name="facts", version=1, tables={"facts": Tally}, project=project)
    stages = (Stage("extracted", (facts, DERIVES)),)
    (outcome,) = fold_stages([said(1)], stages, overlay, frozenset())
    (report,) = outcome.reports

    assert ["facts", "derives"] == [change.table for change in report.changes]
    assert [1, 1, 0] == [report.count(table) for table in ("facts", "derives", "episodes")]
    assert [derive_id("fact", said(1).id, 0)] == overlay.get(1, "derives", said(1).id).ids


def test_inline_changes_are_taken_in_order(said, overlay):
    """Each projector sees what the ones before it did with the same entry."""
    changes = fold_inline(said(1), (tally("a"), looking("b", "a")), overlay)

    assert ["a", "b"] == [change.table for change in changes]
    assert 1 == overlay.get(1, "b", b"\1").count


def test_tenants_are_folded_apart(said, overlay):
    """One tenant's entries never count for another (I6)."""
    stages = (Stage("extracted", (tally("a"),)),)
    fold_stages([said(1), said(2, tenant_no=2), said(3)], stages, overlay, frozenset())

    assert [2, 1] == [overlay.get(number, "a", b"n").count for number in (1, 2)]


def test_the_order_is_the_lifecycle_s():
    """Stages are named for what they announce, and stand in that order (001 §18.2.3)."""
    assert list(STAGE_ORDER[1:]) == [stage.name for stage in STAGES]
    assert "control" == INLINE[0].name


def test_tables_have_one_owner():
    """No two projectors of a unit keep a table of the same name, and names are given once."""
    staged = [projector for stage in STAGES for projector in stage.projectors]
    for unit in (INLINE, staged):
        tables = [table for projector in unit for table in projector.tables]
        names = [projector.name for projector in unit]
        assert sorted(set(tables)) == sorted(tables)
        assert sorted(set(names)) == sorted(names)
