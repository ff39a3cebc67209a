"""What control state follows from an entry?"""

from projectors.base import Drop, Put
from projectors.control import CONTROL, Member, park_key, scope_key
from projectors.control.rows import CancelRow, ParkRow, ScopeRow
from schemas.entry import Annotation, Cancel, Directive, Park, Unpark


def changes(entry, overlay):
    return list(CONTROL.project(entry, overlay.of(entry.tenant_no)))


def take(entry, overlay):
    """Fold one entry."""
    for change in changes(entry, overlay):
        overlay.apply(entry.tenant_no, change)


def test_the_first_write_registers_its_scope(said, overlay):
    """With the caller as owner, at the entry's time (001 §3.4.4)."""
    first = said(3)
    row = ScopeRow(
        path="org:acme/user:alice",
        members=[Member(actor="user:alice", role="owner")],
        auto_provisioned=True,
        created_at=first.recorded_at,
        created_by=first.event_id,
    )

    assert [Put(table="scopes", key=scope_key(4), value=row)] == changes(first, overlay)


def test_later_writes_change_nothing(said, overlay):
    """A scope has one beginning, whoever writes next."""
    take(said(1), overlay)

    assert [] == changes(said(2, caller="user:bob"), overlay)


def test_every_scope_and_tenant_has_its_own(said, overlay):
    """The same number in another tenant is another scope."""
    take(said(1), overlay)

    assert 1 == len(changes(said(2, scope_no=5), overlay))
    assert 1 == len(changes(said(3, tenant_no=2, caller="user:eve"), overlay))


def test_a_cancellation_is_kept_by_offset(entry, overlay):
    """Which stages it stopped, by whom, when, and why."""
    command = Cancel(event_id="evt_x", offset=7, stages=["extracted"], note="typo")
    cancel = entry(9, Directive(command=command, scope="org:acme"), caller="user:bob")
    row = CancelRow(
        offset=7, stages=["extracted"], by="user:bob", at=cancel.recorded_at, note="typo"
    )

    expected = Put(table="cancelled", key=(7).to_bytes(8, "big"), value=row)
    assert [expected] == changes(cancel, overlay)


def parked(entry, offset, projector="ledger", about=7):
    command = Park(
        projector=projector, offset=about, event_id="evt_x", error="ValueError()", attempts=3
    )
    return entry(offset, Directive(command=command, scope="org:acme"))


def test_a_parked_entry_is_kept_by_projector(entry, overlay):
    """What an operator needs to know is in the row."""
    park = parked(entry, 9)
    row = ParkRow(
        projector="ledger",
        offset=7,
        event_id="evt_x",
        error="ValueError()",
        attempts=3,
        at=park.recorded_at,
    )

    assert [Put(table="parked", key=park_key("ledger", 7), value=row)] == changes(park, overlay)


def test_unparking_takes_the_named_entries_only(entry, overlay):
    """Another projector's, or another offset's, stay parked."""
    for offset, projector, about in ((8, "ledger", 5), (9, "ledger", 7), (10, "other", 5)):
        take(parked(entry, offset, projector, about), overlay)
    unpark = entry(11, Directive(command=Unpark(projector="ledger", offsets=[5])))
    assert [Drop(table="parked", key=park_key("ledger", 5))] == changes(unpark, overlay)
    take(unpark, overlay)

    rows = [row for _, row in overlay.of(1).scan("parked")]
    assert [("ledger", 7), ("other", 5)] == [(row.projector, row.offset) for row in rows]


def test_a_models_output_changes_nothing(entry, overlay):
    """It is no command."""
    body = Annotation(about="evt_x", model="m", version="1", output={})

    assert [] == changes(entry(1, body), overlay)


def test_an_erased_first_write_still_registered_its_scope(entry, overlay):
    """That somebody wrote there first is in the header, which stays: replay finds the same."""
    (put,) = changes(entry(1, None), overlay)

    assert ("scopes", True) == (put.table, put.value.auto_provisioned)


def test_parked_entries_sort_by_offset():
    """By projector, then in log order; no projector's keys run into another's."""
    keys = [park_key(*place) for place in (("a", 2), ("a", 256), ("ab", 1), ("b", 1))]

    assert sorted(keys) == keys
