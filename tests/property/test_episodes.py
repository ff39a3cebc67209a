"""Is every event in one episode, whatever is told in whatever order, and is that never unsaid?"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from projectors.base import Stage
from projectors.derives import DERIVES
from projectors.episodes import EPISODES, SEALS, compose, known
from projectors.fold import fold_stages
from projectors.overlay import Overlay
from schemas.entry import KINDS, Cancel, Directive, Entry, Experience, Tick
from schemas.envelope import Actor, Context, Envelope, PlainText
from schemas.ids import derive_id, format_id, parse_id, uuid7
from schemas.layers import Episode

STAGES = (Stage("extracted", (EPISODES, DERIVES)), Stage("compressed", (SEALS,)))
TABLES = {t: kind for s in STAGES for p in s.projectors for t, kind in p.tables.items()}
START = datetime(2026, 5, 13, tzinfo=UTC)
SCOPE = "org:acme/user:alice"
TEXTS = (
    "Acme wants two hundred seats in the contract",
    "The seats of the contract are signed by Acme",
    "The hotel in Lisbon has a garden and a pool",
    "The beach of the hotel in Lisbon is decided",
    "ok",
)

pauses = st.sampled_from([0, 1, 5, 29, 31, 200, 3000])
told = st.tuples(
    st.just("event"),
    pauses,
    st.integers(-400, 5),
    st.sampled_from([None, None, "s1", "s2"]),
    st.none() | st.integers(1, 40),
    st.sampled_from(TEXTS),
)
cancelled = st.tuples(st.just("cancel"), pauses, st.integers(1, 40))
ticked = st.tuples(st.just("tick"), pauses, st.integers(1, 40))
runs = st.lists(told | told | told | cancelled | ticked, max_size=40)
cuts = st.lists(st.integers(1, 7), max_size=20)


class Store:
    """Rows as a store keeps them: bytes, decoded anew whenever they are read."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str, bytes], bytes] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> object | None:
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else msgspec.msgpack.decode(value, type=TABLES[table])

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


def event_at(offset: int) -> bytes:
    return uuid7(1_778_600_000_000_000 + offset, offset)


def first_episode_of(offset: int) -> str:
    return derive_id("ep", event_at(offset), 0)


def entries_of(run: list[tuple]) -> list[Entry]:
    """A run of the log; events name earlier and later ones, some of which are no events."""
    made, now = [], START
    for offset, (kind, pause, *what) in enumerate(run, 1):
        now += timedelta(minutes=pause, microseconds=1)
        if kind == "cancel":
            command = Cancel(event_id=format_id("evt", event_at(what[0])), offset=1, stages=[])
            body = Directive(command=command, scope=SCOPE)
        elif kind == "tick":
            body = Directive(command=Tick(due=[first_episode_of(n) for n in range(what[0])]))
        else:
            late, session, before, text = what
            follows = [] if before is None else [format_id("evt", event_at(before))]
            envelope = Envelope(
                scope=SCOPE,
                observed_actor=Actor(id="user:alice", session=session),
                modality="conversation",
                content=PlainText(text=text),
                context=Context(observed_at=now + timedelta(minutes=late), preceded_by=follows),
                idempotency_key=f"k{offset}",
            )
            body = Experience(envelope=envelope)
        raw = event_at(offset)
        made.append(
            Entry(
                offset=offset,
                id=raw,
                event_id=format_id("evt", raw),
                tenant="acme",
                tenant_no=1,
                scope="" if kind == "tick" else SCOPE,
                scope_no=0 if kind == "tick" else 4,
                caller="user:alice",
                recorded_at=now,
                kind=KINDS[type(body)],
                body=body,
            )
        )
    return made


def fold(entries: list[Entry], sizes: list[int]) -> tuple[Store, list]:
    store, reports, left = Store(), [], list(entries)
    for size in (*sizes, len(entries) + 1):
        overlay = Overlay(store)
        outcomes = fold_stages(left[:size], STAGES, overlay, frozenset())
        reports += [[(r.stage, r.changes) for r in outcome.reports] for outcome in outcomes]
        left = left[size:]
        store.take(overlay)
    return store, reports


def known_at(store: Store, at: datetime) -> list[Episode]:
    """What a reader gets as of a moment, without the ends that were not known then."""
    records = [r for t in ("episodes", "episodes_past") for _, r in store.scan(1, t, b"")]
    there = (
        record
        for record in records
        if record.recorded_from <= at and (record.recorded_to is None or at < record.recorded_to)
    )
    read = (msgspec.structs.replace(opened(store, r, at), recorded_to=None) for r in there)
    return sorted(read, key=lambda record: record.id)


def opened(store: Store, record: Episode, at: datetime) -> Episode:
    """An open episode with what was known of it."""
    if record.sealed:
        return record
    rows = store.scan(1, "episode_events", parse_id("ep", record.id))
    return compose(record, known([member for _, member in rows], at))


@given(run=runs, sizes=cuts)
@settings(deadline=None, max_examples=40)
def test_episodes_do_not_depend_on_batches(run, sizes):
    """I4: rows and reports are the same for any batch sizes."""
    entries = entries_of(run)
    whole, single, mixed = (fold(entries, p) for p in ([], [1] * len(entries), sizes))

    assert whole[0].rows == single[0].rows == mixed[0].rows
    assert whole[1] == single[1] == mixed[1]


@given(run=runs)
@settings(deadline=None, max_examples=40)
def test_every_event_is_in_one_episode(run):
    """At every moment: each event that is there in one, a cancelled one in none that is open."""
    entries = entries_of(run)
    store, _ = fold(entries, [])
    events, gone = [], set()
    for entry in entries:
        if isinstance(entry.body, Experience):
            events.append(entry.event_id)
        elif isinstance(entry.body.command, Cancel):
            gone |= {entry.body.command.event_id} & set(events)
        episodes = known_at(store, entry.recorded_at)
        held = [event for e in episodes for event in e.events if event not in e.excluded]
        assert sorted(set(events) - gone) == sorted(held)


@given(run=runs)
@settings(deadline=None, max_examples=40)
def test_a_later_entry_changes_no_earlier_answer(run):
    """What was known as of an entry is what a reader is told as of then, ever after."""
    entries = entries_of(run)
    store = Store()
    answers = []
    for entry in entries:
        overlay = Overlay(store)
        fold_stages([entry], STAGES, overlay, frozenset())
        store.take(overlay)
        answers.append(known_at(store, entry.recorded_at))

    assert answers == [known_at(store, entry.recorded_at) for entry in entries]


@given(run=runs)
@settings(deadline=None, max_examples=40)
def test_what_is_open_is_kept_in_order(run):
    """Each open episode has one state, one due row, and a slot at most; sealed ones have none."""
    store, _ = fold(entries_of(run), [])
    live = {k for k, r in store.scan(1, "episodes", b"") if not r.sealed and r.recorded_to is None}
    states = dict(store.scan(1, "episode_open", b""))
    slots = [raw for _, row in store.scan(1, "episode_scopes", b"") for raw in row.slots.values()]
    versions: dict[str, list[list[str]]] = {}
    for table in ("episodes_past", "episodes"):
        for _, record in store.scan(1, table, b""):
            if record.sealed:
                versions.setdefault(record.id, []).append(record.events)

    assert live == set(states) == {key[8:] for key, _ in store.scan(1, "episode_due", b"")}
    assert set(slots) <= live
    assert len(set(slots)) == len(slots)
    assert all(
        state.count == len(list(store.scan(1, "episode_events", raw)))
        for raw, state in states.items()
    )
    assert all(events == found[0] for found in versions.values() for events in found)
