"""What do tests of facts stand on?  A log of candidates made by hand, and readers of what followed.

Everything runs through the fold that the daemon runs, over rows that are bytes between two batches;
only the reading of texts is left out: each entry brings its own extraction.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from engine.temporal import Window, is_visible
from projectors.base import Projector, Stage
from projectors.derives import DERIVES
from projectors.entities import ENTITIES
from projectors.entities import fold as fold_entities
from projectors.facts import FACTS
from projectors.facts import fold as fold_facts
from projectors.fold import Outcome, fold_stages
from projectors.overlay import Overlay
from projectors.settings import SETTINGS
from projectors.text import Candidate, Extraction, Mention, Value
from projectors.vocabularies import VOCABULARIES
from schemas.entry import KINDS, Body, Command, Directive, Entry, Experience
from schemas.envelope import Actor, Context, Directives, Envelope, Message, PlainText
from schemas.ids import format_id, uuid7
from schemas.intervals import Interval
from schemas.layers import Fact, LiteralValue
from schemas.times import to_us

START = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = "org:acme/user:alice"


def day(number: float) -> datetime:
    """Midnight of a day, counted from the first of the year."""
    return START + timedelta(days=number)


def mention(what: str | Mention | Value | float) -> Mention | Value:
    """An actor by its id, a name, or a literal."""
    if isinstance(what, Mention | Value):
        return what
    if isinstance(what, str):
        is_actor = ":" in what
        return Mention(
            text=what.partition(":")[2] or what,
            kind="actor" if is_actor else "thing",
            actor=what if is_actor else None,
        )
    return Value(datatype="integer" if isinstance(what, int) else "number", value=what)


def claim(subject: Any, predicate: str, what: Any, **fields: Any) -> Candidate:
    """A candidate; of a predicate that holds one value unless it is said otherwise."""
    fields = {"confidence": 0.9, "cardinality": "single"} | fields
    return Candidate(subject=mention(subject), predicate=predicate, object=mention(what), **fields)


class Store:
    """Rows as a store keeps them: bytes, decoded anew whenever they are read."""

    def __init__(self, tables: dict[str, type]) -> None:
        self._decoders = {t: msgspec.msgpack.Decoder(kind).decode for t, kind in tables.items()}
        self.rows: dict[tuple[int, str, bytes], bytes] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else self._decoders[table](value)

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.get(*place)

    def take(self, overlay: Overlay) -> None:
        """Write a batch."""
        for place, value in overlay.pending.items():
            if value is None:
                self.rows.pop(place, None)
            else:
                self.rows[place] = msgspec.msgpack.encode(value)


class World:
    """A log, and what followed from it. Entries are folded when something is asked."""

    def __init__(self) -> None:
        self.extractions: dict[int, Extraction] = {}
        self.entries: list[Entry] = []
        self.stage = Stage("extracted", tuple(self._projectors()))
        self.tables = {t: kind for p in self.stage.projectors for t, kind in p.tables.items()}
        self.store = Store(self.tables)
        self.outcomes: list[Outcome] = []
        self.scopes: dict[str, int] = {}
        self.folded = 0

    def _projectors(self) -> Iterator[Projector]:
        yield from (SETTINGS, VOCABULARIES)
        for one, fold in ((ENTITIES, fold_entities), (FACTS, fold_facts)):
            yield Projector(one.name, one.version, one.tables, self._instead(one, fold))
        yield DERIVES

    def _instead(self, one: Projector, fold: Any) -> Any:
        def project(entry: Entry, view: Any) -> Any:
            made = self.extractions.get(entry.offset)
            return one.project(entry, view) if made is None else fold(entry, made, view)

        return project

    # ── the log ──────────────────────────────────────────────────────────────────────────────

    def says(self, who: str, *candidates: Candidate, on: float, **options: Any) -> str:
        """Someone says something on a day; it is recorded then, or on the day `recorded`.

        Further options: scope, subject, role, modality, directives, content.
        """
        scope = options.pop("scope", SCOPE)
        recorded = options.pop("recorded", on)
        role = options.pop("role", None)
        subject = options.pop("subject", None)
        directives = options.pop("directives", {})
        content = options.pop("content", None)
        text = "words"
        if content is None:
            content = Message(role=role, text=text) if role else PlainText(text=text)
        envelope = Envelope(
            scope=scope,
            observed_actor=Actor(id=who),
            subject=None if subject is None else Actor(id=subject),
            modality=options.pop("modality", "conversation"),
            content=content,
            context=Context(observed_at=day(on)),
            directives=Directives(**directives) if directives else None,
            idempotency_key=f"k{len(self.entries)}",
        )
        assert not options, options
        entry = self._add(Experience(envelope=envelope), scope, day(recorded))
        self.extractions[entry.offset] = Extraction(candidates=candidates)
        return entry.event_id

    def orders(self, command: Command, *, on: float, scope: str = SCOPE) -> None:
        """A directive is recorded."""
        self._add(Directive(command=command, scope=scope), scope, day(on))

    def _add(self, body: Body, scope: str, recorded_at: datetime) -> Entry:
        offset = len(self.entries) + 1
        if self.entries:
            recorded_at = max(recorded_at, self.entries[-1].recorded_at + timedelta(microseconds=1))
        raw = uuid7(to_us(recorded_at), offset)
        asked = body.envelope.directives if isinstance(body, Experience) else None
        into = (asked.consolidate_into or "") if asked is not None else ""
        entry = Entry(
            offset=offset,
            id=raw,
            event_id=format_id("evt", raw),
            tenant="acme",
            tenant_no=1,
            scope=scope,
            scope_no=self.number(scope),
            caller="service:importer",
            recorded_at=recorded_at,
            kind=KINDS[type(body)],
            body=body,
            into_scope=into,
            into_scope_no=self.number(into) if into else 0,
        )
        self.entries.append(entry)
        return entry

    @staticmethod
    def erased(entry: Entry) -> Entry:
        """The entry, when its payload is no more."""
        return msgspec.structs.replace(entry, body=None)

    def number(self, scope: str) -> int:
        """The number that stands for a scope."""
        return self.scopes.setdefault(scope, len(self.scopes) + 1)

    # ── what followed ────────────────────────────────────────────────────────────────────────

    def fold(self, sizes: list[int] | None = None) -> Store:
        """Fold what was said since, in batches of these sizes and what is left in one."""
        for size in [*(sizes or []), len(self.entries)]:
            batch = self.entries[self.folded : self.folded + size]
            overlay = Overlay(self.store)
            self.outcomes += fold_stages(batch, [self.stage], overlay, frozenset())
            self.store.take(overlay)
            self.folded += len(batch)
        return self.store

    def again(self, sizes: list[int]) -> dict[tuple[int, str, bytes], bytes]:
        """The rows of the same log folded anew, in batches of these sizes."""
        twin = World()
        twin.entries, twin.extractions = self.entries, self.extractions
        return twin.fold(sizes).rows

    def view(self) -> Any:
        """What a projector would see now."""
        return Overlay(self.fold()).of(1)

    def rows(self, table: str) -> list[Any]:
        """Every row of a table."""
        return [row for _, row in self.fold().scan(1, table, b"")]

    def versions(self) -> list[Fact]:
        """All that was ever known."""
        return [*self.rows("facts"), *self.rows("facts_past")]

    def facts(self, known: datetime, valid: datetime | None = None, **more: Any) -> list[Fact]:
        """What was known at one moment about another, or the same."""
        window = Window(**{"known_at": known, "valid_at": valid or known} | more)
        return [fact for fact in self.versions() if is_visible(fact, window)]

    def values(self, known: float, valid: float | None = None, predicate: str = "") -> list[Any]:
        """The objects of what was known on one day about another, denials with a minus."""
        found = self.facts(day(known), day(known if valid is None else valid))
        return sorted(
            ("-" if fact.polarity == "negative" else "") + str(told(fact))
            for fact in found
            if not predicate or fact.predicate == predicate
        )

    def fact(self, what: Any, predicate: str = "") -> Fact:
        """The newest version of the fact with this object."""
        found = [f for f in self.rows("facts") if told(f) == what]
        (one,) = [f for f in found if not predicate or f.predicate == predicate]
        return one


def told(fact: Fact) -> Any:
    """What the object of a fact is: a name, or a value."""
    return fact.object.value if isinstance(fact.object, LiteralValue) else fact.object.name


def during(first: float, last: float) -> tuple[Interval, ...]:
    """A window of validity."""
    return (Interval(day(first), day(last)),)
