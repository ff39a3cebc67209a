"""Is what follows from a run of entries the same, however the run is cut up?"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from projectors.control import CONTROL
from projectors.fold import fold_inline, fold_stages
from projectors.overlay import Overlay
from schemas.entry import KINDS, Cancel, Directive, Entry, Experience
from schemas.envelope import Context, Envelope, PlainText
from schemas.ids import format_id, uuid7

START = datetime(2026, 5, 13, tzinfo=UTC)
STAGE_NAMES = ("extracted", "indexed", "consolidated", "compressed")
PARKABLE = ("ledger", "opinions")

sentences = st.tuples(st.integers(1, 2), st.integers(1, 3), st.text(min_size=1, max_size=8))
commands = st.tuples(st.integers(1, 2), st.integers(1, 3), st.none())
runs = st.lists(sentences | commands, max_size=24)
cuts = st.lists(st.integers(1, 7), max_size=24)
skipped = st.sets(st.tuples(st.sampled_from(STAGE_NAMES + PARKABLE), st.integers(1, 24)))


def entry_of(offset: int, tenant_no: int, scope_no: int, text: str | None) -> Entry:
    """The n-th entry of a run; everything about it follows from its place and its words."""
    raw = uuid7(1_778_600_000_000_000 + offset, offset)
    scope = f"org:acme/user:u{scope_no}"
    if text is None:
        body = Directive(command=Cancel(event_id="evt_x", offset=offset, stages=[]), scope=scope)
    else:
        envelope = Envelope(
            scope=scope,
            modality="conversation",
            content=PlainText(text=text),
            context=Context(observed_at=START),
            idempotency_key=f"k{offset}",
        )
        body = Experience(envelope=envelope)
    return Entry(
        offset=offset,
        id=raw,
        event_id=format_id("evt", raw),
        tenant=f"tenant {tenant_no}",
        tenant_no=tenant_no,
        scope=scope,
        scope_no=scope_no,
        caller="user:alice",
        recorded_at=START + timedelta(microseconds=offset),
        kind=KINDS[type(body)],
        body=body,
    )


class Store:
    """Rows as a store keeps them: bytes, decoded anew whenever they are read."""

    def __init__(self, tables: dict[str, type]) -> None:
        self._tables = tables
        self.rows: dict[tuple[int, str, bytes], bytes] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> object | None:
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else msgspec.msgpack.decode(value, type=self._tables[table])

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, object]]:
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.get(*place)

    def take(self, overlay: Overlay) -> None:
        for place, value in overlay.pending.items():
            if value is None:
                self.rows.pop(place, None)
            else:
                self.rows[place] = msgspec.msgpack.encode(value)


def batches(entries: list[Entry], sizes: list[int]) -> Iterator[list[Entry]]:
    """The run in pieces of these sizes, and what is left in one."""
    left = list(entries)
    for size in sizes:
        yield left[:size]
        left = left[size:]
    yield left


@given(run=runs, sizes=cuts, skips=skipped)
@settings(deadline=None)
def test_stages_do_not_depend_on_batches(rig, run, sizes, skips):
    """I4, in the small: rows and reports are the same for any batch sizes, whatever is skipped."""
    projection = rig.projection()
    tables = {t: kind for p in projection.staged for t, kind in p.tables.items()}
    entries = [entry_of(at, *what) for at, what in enumerate(run, 1)]
    found = []
    for plan in ([], [1] * len(entries), sizes):
        store, reports = Store(tables), []
        for batch in batches(entries, plan):
            overlay = Overlay(store)
            outcomes = fold_stages(batch, projection.stages, overlay, frozenset(skips))
            reports += [[(r.stage, r.changes, r.parked) for r in o.reports] for o in outcomes]
            store.take(overlay)
        found.append((store.rows, reports))

    assert found[0] == found[1] == found[2]
    assert len(entries) == len(found[0][1])


@given(run=runs, sizes=cuts)
@settings(deadline=None)
def test_inline_does_not_depend_on_batches(rig, run, sizes):
    """A group commit of any size leaves the same documents as one entry at a time."""
    projectors = (CONTROL, rig.WITNESS)
    tables = {t: kind for p in projectors for t, kind in p.tables.items()}
    entries = [entry_of(at, *what) for at, what in enumerate(run, 1)]
    found = []
    for plan in ([], [1] * len(entries), sizes):
        store = Store(tables)
        for batch in batches(entries, plan):
            overlay = Overlay(store)
            for entry in batch:
                fold_inline(entry, projectors, overlay)
            store.take(overlay)
        found.append(store.rows)

    assert found[0] == found[1] == found[2]


changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "drop"]),
        st.integers(1, 2),
        st.sampled_from(["seen", "other"]),
        st.binary(max_size=3),
        st.binary(max_size=2),
    ),
    max_size=30,
)


@given(changes=changes, flushes=st.sets(st.integers(0, 30)), prefix=st.binary(max_size=2))
def test_an_overlay_is_the_store_it_will_become(rig, changes, flushes, prefix):
    """Base and pending rows together read as a plain dictionary would, wherever it was written."""
    kinds = {"seen": rig.Seen, "other": rig.Seen}
    model: dict[tuple[int, str, bytes], object] = {}
    store = Store(kinds)
    overlay = Overlay(store)
    for at, (what, tenant_no, table, key, digest) in enumerate(changes):
        if at in flushes:
            store.take(overlay)
            overlay = Overlay(Overlay(store))
        if what == "put":
            value = rig.Seen(digest=digest)
            overlay.apply(tenant_no, rig.Put(table=table, key=key, value=value))
            model[tenant_no, table, key] = value
        else:
            overlay.apply(tenant_no, rig.Drop(table=table, key=key))
            model.pop((tenant_no, table, key), None)

    for tenant_no in (1, 2):
        for table in kinds:
            expected = [
                (place[2], model[place])
                for place in sorted(model)
                if place[:2] == (tenant_no, table) and place[2].startswith(prefix)
            ]
            assert expected == list(overlay.of(tenant_no).scan(table, prefix))
    places = {(tenant_no, table, key) for _, tenant_no, table, key, _ in changes}
    assert {place: model.get(place) for place in places} == {
        place: overlay.get(*place) for place in places
    }
