"""What do beliefs and concepts make of facts?  Facts are put into the view by hand, and projected.

A `Hand` is a small log of its own: it counts offsets, moves its clock when told to, and runs the
projectors it was given over every entry, through an overlay as the daemon does.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from projectors.base import Projector, Put
from projectors.overlay import Overlay
from projectors.records import fact_about_key, name_key, past_key, record_key
from projectors.rows import Mark, Moved
from schemas.entry import KINDS, Body, Directive, Entry, Experience, Tick
from schemas.envelope import Context, Directives, Envelope, PlainText
from schemas.ids import derive_id, format_id, parse_id, uuid7
from schemas.layers import EntityRef, Episode, Fact, LiteralValue, Node
from schemas.times import to_us

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCOPE = "org:acme/user:alice"
SCOPE_NO = 4
TENANT = 1
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """A fact that an entry spoke of, and how surely."""

    fact: str
    confidence: float


class HeardRow(msgspec.Struct, frozen=True, array_like=True):
    """Every fact that an entry spoke of."""

    offset: int
    facts: list[Heard]


class Ids(msgspec.Struct, frozen=True, array_like=True):
    """What follows from an event."""

    ids: list[str]


class Laid(msgspec.Struct, frozen=True, array_like=True):
    """The line that a fact lies on."""

    line: bytes


class Rooted(msgspec.Struct, frozen=True, kw_only=True):
    """What an entity is the same as, what it is called, and since when it is known."""

    root: str
    name: str = ""
    first_seen_at: datetime


class Rows:
    """Rows as a store keeps them: bytes, decoded anew whenever they are read."""

    def __init__(self, tables: Mapping[str, type]) -> None:
        self.tables: dict[str, type] = {
            "derives": Ids,
            "facts": Fact,
            "facts_past": Fact,
            "facts_moved": Moved,
        }
        self.tables |= {"episodes": Episode, "episodes_moved": Moved}
        self.tables |= {"facts_heard": HeardRow, "entities": Rooted}
        self.tables |= {"facts_basis": Laid, "facts_about": Mark, **tables}
        self.rows: dict[tuple[int, str, bytes], bytes] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else msgspec.msgpack.decode(value, type=self.tables[table])

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.get(*place)

    def take(self, overlay: Overlay) -> None:
        for place, value in overlay.pending.items():
            if value is None:
                self.rows.pop(place, None)
            else:
                self.rows[place] = msgspec.msgpack.encode(value)


class Hand:
    """A log by hand over some projectors."""

    def __init__(self, *projectors: Projector) -> None:
        tables = {t: kind for p in projectors for t, kind in p.tables.items()}
        self.projectors = projectors
        self.store = Rows(tables)
        self.overlay = Overlay(self.store)
        self.view = self.overlay.of(TENANT)
        self.at = START
        self.offset = 0
        self.changes: list[Any] = []

    # ── entries ──────────────────────────────────────────────────────────────────────────────

    def flush(self) -> None:
        """Write what is pending to the rows below, as the end of a batch does."""
        self.store.take(self.overlay)
        self.overlay = Overlay(self.store)
        self.view = self.overlay.of(TENANT)

    def entry(self, body: Body | None = None, by: str = "user:alice", **changes: Any) -> Entry:
        """The next entry; a second later unless the clock was moved."""
        self.offset += 1
        self.at += timedelta(seconds=1)
        raw = uuid7(to_us(self.at), self.offset)
        fields: dict[str, Any] = {
            "offset": self.offset,
            "id": raw,
            "event_id": format_id("evt", raw),
            "tenant": "acme",
            "tenant_no": TENANT,
            "scope": SCOPE,
            "scope_no": SCOPE_NO,
            "caller": by,
            "recorded_at": self.at,
            "kind": 1 if body is None else KINDS[type(body)],
            "body": body,
        }
        return Entry(**fields | changes)

    def said(self, by: str = "user:alice", directives: Directives | None = None) -> Entry:
        """The next entry, as somebody's words."""
        envelope = Envelope(
            scope=SCOPE,
            modality="conversation",
            content=PlainText(text="…"),
            context=Context(observed_at=self.at),
            directives=directives,
            idempotency_key="k",
        )
        return self.entry(Experience(envelope=envelope), by)

    def tick(self, *due: str) -> Entry:
        """Time passed; these may be due."""
        entry = self.entry(Directive(command=Tick(due=list(due))))
        self.project(entry)
        return entry

    def project(self, entry: Entry) -> None:
        """Run every projector over an entry."""
        self.changes = []
        for projector in self.projectors:
            for change in tuple(projector.project(entry, self.view)):
                self.overlay.apply(TENANT, change)
                self.changes.append(change)

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    def fact(
        self,
        entry: Entry,
        value: Any,
        about: str = "alice",
        predicate: str = "lives_in",
        **more: Any,
    ) -> Fact:
        """A fact that follows from an entry, one value at a time; it is not put anywhere yet."""
        ordinal = more.pop("ordinal", 0)
        fields: dict[str, Any] = {
            "id": derive_id("fact", entry.id, ordinal),
            "scope": entry.scope,
            "subject": thing(about),
            "predicate": predicate,
            "object": value if isinstance(value, EntityRef) else literal(value),
            "supports": [entry.event_id],
            "valid_from": entry.recorded_at,
            "valid_to": None,
            "recorded_from": entry.recorded_at,
            "recorded_to": None,
            "confidence": 0.9,
            "extractor": "rules",
            "asserted_by": entry.caller,
            "cardinality": "single",
        }
        return Fact(**fields | more)

    def move(self, entry: Entry, facts: Sequence[Fact], gone: Sequence[str] = ()) -> None:
        """Put facts as an entry leaves them, forget some, and project."""
        for fact in facts:
            key = record_key("facts", fact.id)
            before = self.view.get("facts", key)
            if before is not None and fact.version > before.version:
                past = msgspec.structs.replace(before, recorded_to=entry.recorded_at)
                place = past_key("facts", fact.id, before.version)
                self.overlay.apply(TENANT, Put(table="facts_past", key=place, value=past))
            self.overlay.apply(TENANT, Put(table="facts", key=key, value=fact))
            if before is None:
                self._find(fact, key)
        for name in gone:
            self.overlay._set((TENANT, "facts", record_key("facts", name)), None)
        ids = [*(fact.id for fact in facts), *gone]
        row = Moved(offset=entry.offset, ids=ids)
        self.overlay.apply(TENANT, Put(table="facts_moved", key=b"", value=row))
        self.project(entry)

    def _find(self, fact: Fact, key: bytes) -> None:
        """A new fact is found by what it is about, and that is known from now on."""
        place = name_key(fact.subject.id)
        known = self.view.get("entities", place)
        if known is None:
            known = Rooted(root=fact.subject.id, name=fact.subject.name, first_seen_at=self.at)
            self.overlay.apply(TENANT, Put(table="entities", key=place, value=known))
        basis = self.view.get("facts_basis", key)
        scope_no = SCOPE_NO if basis is None else int.from_bytes(basis.line[:4], "big")
        about = fact_about_key(scope_no, known.root, fact.predicate, key)
        self.overlay.apply(TENANT, Put(table="facts_about", key=about, value=Mark()))

    def hear(self, entry: Entry, facts: Sequence[Fact], told: Mapping[str, float]) -> None:
        """Facts that an entry speaks of again, each as surely as that, and those it moves."""
        heard = HeardRow(entry.offset, [Heard(fact, sure) for fact, sure in told.items()])
        self.overlay.apply(TENANT, Put(table="facts_heard", key=b"", value=heard))
        if facts:
            self.move(entry, facts)
        else:
            self.project(entry)

    def point(self, event_id: str, *names: str) -> None:
        """An event knows what followed from it."""
        pointed = Put(table="derives", key=raw("evt", event_id), value=Ids([*names]))
        self.overlay.apply(TENANT, pointed)

    def lay(self, fact: Fact, scope_no: int) -> None:
        """A fact lies on a line of a scope."""
        row = Laid(line=scope_no.to_bytes(4, "big") + bytes(16))
        key = record_key("facts", fact.id)
        self.overlay.apply(TENANT, Put(table="facts_basis", key=key, value=row))

    def same(self, *names: str) -> None:
        """These are one thing."""
        root = thing(names[0]).id
        for name in names:
            row = Rooted(root=root, name=name.capitalize(), first_seen_at=START)
            key = name_key(thing(name).id)
            self.overlay.apply(TENANT, Put(table="entities", key=key, value=row))

    def tell(self, value: Any, by: str = "user:alice", **more: Any) -> Fact:
        """Somebody says something new."""
        entry = self.said(by, more.pop("directives", None))
        fact = self.fact(entry, value, **more)
        self.move(entry, [fact])
        return fact

    def change(self, before: Fact, value: Any, **more: Any) -> tuple[Fact, Fact]:
        """The world changes: another value holds from now on, and the former one until now."""
        entry = self.said(more.pop("by", "user:alice"))
        after = self.fact(
            entry, value, predicate=before.predicate, **{"supersedes": before.id, **more}
        )
        ended = revised(before, entry, valid_to=after.valid_from, superseded_by=after.id)
        self.move(entry, [ended, after])
        return ended, after

    def correct(self, before: Fact, value: Any, **more: Any) -> Fact:
        """It was never so: another value takes the place of a fact from its beginning."""
        entry = self.said()
        after = self.fact(
            entry, value, predicate=before.predicate, valid_from=before.valid_from, **more
        )
        closed = msgspec.structs.replace(
            before, recorded_to=entry.recorded_at, superseded_by=after.id
        )
        self.move(entry, [closed, after])
        return after

    def seal(self, name: str, *facts: Fact, episode: Episode | None = None) -> Episode:
        """An episode of the events behind some facts is over."""
        entry = self.entry()
        events = [event for fact in facts for event in fact.supports]
        for fact in facts:
            self.point(fact.supports[0], fact.id)
        sealed = Episode(
            id=derive_id("ep", entry.id, 0) if episode is None else episode.id,
            scope=SCOPE,
            name=name,
            summary=f"{name} happened.",
            events=events,
            started_at=START,
            ended_at=self.at,
            valid_from=START,
            valid_to=None,
            recorded_from=self.at,
            recorded_to=None,
            actors_involved=[],
            centrality_score=0.5,
            causal_chain=[],
            supports=events,
            sealed=True,
        )
        key = record_key("episodes", sealed.id)
        self.overlay.apply(TENANT, Put(table="episodes", key=key, value=sealed))
        row = Moved(offset=entry.offset, ids=[sealed.id])
        self.overlay.apply(TENANT, Put(table="episodes_moved", key=b"", value=row))
        self.project(entry)
        return sealed

    def retract(self, *facts: Fact) -> Entry:
        """Nothing supports these any more."""
        entry = self.entry()
        self.move(entry, [closed(fact, entry) for fact in facts])
        return entry

    def forget(self, *facts: Fact) -> Entry:
        """These are to be known no more, and not to have been."""
        entry = self.entry()
        self.move(entry, [], gone=[fact.id for fact in facts])
        return entry

    # ── what came of it ──────────────────────────────────────────────────────────────────────

    def records(self, layer: str) -> list[Any]:
        """The records of a layer as known last, in the order of their ids."""
        return [record for _, record in self.view.scan(layer)]

    def versions(self, layer: str, name: str) -> list[Any]:
        """All that was ever known of a record, oldest first."""
        key = record_key(layer, name)
        past = [record for _, record in self.view.scan(f"{layer}_past", key)]
        latest = self.view.get(layer, key)
        return [*past, *([latest] if latest is not None else [])]

    def known(self, layer: str, at: datetime) -> list[Any]:
        """The versions known at a moment."""
        every = [v for r in self.records(layer) for v in self.versions(layer, r.id)]
        return [version for version in every if is_known(version, at)]

    def state(self) -> dict[tuple[int, str, bytes], bytes]:
        """Every row there is, as bytes."""
        self.flush()
        return dict(sorted(self.store.rows.items()))


def thing(name: str) -> EntityRef:
    """An entity; the same name is the same thing."""
    number = sum(byte * 257**at for at, byte in enumerate(name.encode()[:12]))
    return EntityRef(id=format_id("ent", uuid7(0, number)), name=name.capitalize())


def literal(value: Any) -> Node:
    """A literal value."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return LiteralValue(datatype=kinds.get(type(value), "json"), value=value)


def revised(before: Fact, entry: Entry, **fields: Any) -> Fact:
    """The next version of a fact."""
    return msgspec.structs.replace(
        before, version=before.version + 1, recorded_from=entry.recorded_at, **fields
    )


def closed(fact: Fact, entry: Entry) -> Fact:
    """A fact that is known no more."""
    return msgspec.structs.replace(fact, recorded_to=entry.recorded_at)


def is_known(record: Any, at: datetime) -> bool:
    """Whether a version was known at a moment."""
    return record.recorded_from <= at and (record.recorded_to is None or at < record.recorded_to)


def is_valid(record: Any, at: datetime) -> bool:
    """Whether a version speaks of a moment."""
    return record.valid_from <= at and (record.valid_to is None or at < record.valid_to)


def raw(prefix: str, name: str) -> bytes:
    """The sixteen bytes of an id."""
    found = parse_id(prefix, name)
    assert found is not None
    return found
