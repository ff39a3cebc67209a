"""Which records did the request ask for?  The filters of 001 §8.3, read once, tried on records.

A condition on a field that a layer does not have says nothing about that layer: a belief has no
modality, and is neither let in nor kept out by one. `AND`, `OR` and `NOT` pass that on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
import numpy as np

from engine.state.block import Block
from engine.state.index import Layer
from schemas import limits
from schemas.envelope import Message
from schemas.errors import InvalidParameter
from schemas.ids import parse_id
from schemas.layers import Belief, Concept, Episode, Event, Fact, Record
from schemas.times import Instant, as_utc, to_us

Kind = Literal["text", "number", "time"]
Operator = Literal["eq", "ne", "in", "gte", "lte", "gt", "lt"]
Thing = Event | Record

_ORDER: Final = frozenset({"gte", "lte", "gt", "lt"})
_OPERATORS: Final = ("eq", "ne", "in", "gte", "lte", "gt", "lt")
_GROUPS: Final = ("AND", "OR", "NOT")


@dataclass(frozen=True)
class Test:
    """One condition on one field."""

    field: str
    operator: Operator
    value: Any


@dataclass(frozen=True)
class Group:
    """Conditions together; NOT has one part."""

    how: Literal["AND", "OR", "NOT"]
    parts: tuple["Test | Group", ...]


Condition = Test | Group


@dataclass(frozen=True)
class Filters:
    """What a request filters by, and the events it would have us imagine away."""

    condition: Condition | None = None
    without: frozenset[bytes] = frozenset()

    def applied(self) -> list[str]:
        """Every condition by its name, for diagnostics: `confidence.gte`."""
        named = [] if self.condition is None else list(_names(self.condition))
        return named + (["without"] if self.without else [])


def _names(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Test):
        yield f"{condition.field}.{condition.operator}"
    else:
        for part in condition.parts:
            yield from _names(part)


# ── the fields ───────────────────────────────────────────────────────────────────────────────

Getter = Callable[[Any], Any]


@dataclass(frozen=True)
class Field:
    """A documented field: its kind, and where each layer keeps it."""

    kind: Kind
    of: Mapping[type, Getter]


def _node_names(node: Any) -> list[str]:
    """What a subject or an object may be called: its id, its name, or its value."""
    named = [getattr(node, part, None) for part in ("id", "name", "value")]
    return [str(one) for one in named if one is not None]


def _role(event: Event) -> str | None:
    return event.content.role if isinstance(event.content, Message) else None


def _actor_id(actor: Any) -> str | None:
    return None if actor is msgspec.UNSET else actor.id


def _session(event: Event) -> str | None:
    actor = event.observed_actor
    return None if actor is msgspec.UNSET else actor.session


_DERIVED: Final = (Episode, Fact, Belief, Concept)
_actors: Final[Mapping[type, Getter]] = {
    Event: lambda event: event.actor,
    Episode: lambda episode: episode.actors_involved,
    Fact: lambda fact: fact.asserted_by,
}


def _on_derived(name: str) -> dict[type, Getter]:
    return {kind: lambda record: getattr(record, name) for kind in _DERIVED}


FIELDS: Final[Mapping[str, Field]] = {
    "id": Field("text", {kind: lambda record: record.id for kind in (Event, *_DERIVED)}),
    "scope": Field("text", {kind: lambda record: record.scope for kind in (Event, *_DERIVED)}),
    "layer": Field(
        "text",
        {
            Event: lambda _: "events",
            Episode: lambda _: "episodes",
            Fact: lambda _: "facts",
            Belief: lambda _: "beliefs",
            Concept: lambda _: "understanding",
        },
    ),
    "actor": Field("text", _actors),
    "observed_actor": Field("text", _actors),
    "subject": Field(
        "text",
        {
            Event: lambda event: _actor_id(event.subject),
            Fact: lambda fact: _node_names(fact.subject),
            Belief: lambda belief: _node_names(belief.claim.subject),
            Concept: lambda concept: [
                concept.name,
                *concept.aliases,
                *([concept.entity_id] if concept.entity_id else []),
            ],
        },
    ),
    "object": Field(
        "text",
        {
            Fact: lambda fact: _node_names(fact.object),
            Belief: lambda belief: _node_names(belief.claim.object),
        },
    ),
    "predicate": Field(
        "text",
        {Fact: lambda fact: fact.predicate, Belief: lambda belief: belief.claim.predicate},
    ),
    "caller": Field("text", {Event: lambda event: event.caller}),
    "modality": Field("text", {Event: lambda event: event.modality}),
    "kind": Field("text", {Event: lambda event: event.content.__struct_config__.tag}),
    "role": Field("text", {Event: _role}),
    "labels": Field("text", {Event: lambda event: event.context.labels}),
    "intent": Field("text", {Event: lambda event: event.context.intent}),
    "language": Field("text", {Event: lambda event: event.language}),
    "session": Field("text", {Event: _session, Episode: lambda episode: episode.session}),
    "topics": Field("text", {Concept: lambda concept: concept.topics}),
    "extractor": Field("text", {Fact: lambda fact: fact.extractor}),
    "polarity": Field("text", {Fact: lambda fact: fact.polarity}),
    "stance": Field(
        "text", {Belief: lambda belief: belief.stance, Concept: lambda concept: concept.stance}
    ),
    # What was seen is seen: events and the spans of them are as sure as can be (001 §3.1).
    "confidence": Field(
        "number",
        {
            Event: lambda _: 1.0,
            Episode: lambda _: 1.0,
            Fact: lambda fact: fact.confidence,
            Belief: lambda belief: belief.confidence,
            Concept: lambda concept: concept.confidence,
        },
    ),
    "observed_at": Field(
        "time",
        {
            Event: lambda event: event.context.observed_at,
            Episode: lambda episode: episode.started_at,
        },
    ),
    "recorded_at": Field(
        "time", {Event: lambda event: event.context.recorded_at, **_on_derived("recorded_from")}
    ),
    "valid_from": Field("time", _on_derived("valid_from")),
    "valid_to": Field("time", _on_derived("valid_to")),
    "recorded_from": Field("time", _on_derived("recorded_from")),
    "recorded_to": Field("time", _on_derived("recorded_to")),
}
"""Every field a filter may name; anything else is refused by name (DESIGN §8.7)."""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_filters(given: Mapping[str, Any] | None) -> Filters:
    """The filters of a request; InvalidParameter names what is not understood."""
    if not given:
        return Filters()
    rest = {name: value for name, value in given.items() if name != "without"}
    budget = [limits.FILTER_CONDITIONS_MAX]
    condition = _read(rest, "filters", 1, budget) if rest else None
    return Filters(condition, _read_without(given.get("without")))


def _read_without(given: Any) -> frozenset[bytes]:
    if given is None:
        return frozenset()
    if not isinstance(given, list) or len(given) > limits.WITHOUT_MAX:
        reason = f"a list of at most {limits.WITHOUT_MAX} event ids"
        raise InvalidParameter(field="filters.without", reason=reason)
    found = set()
    for index, name in enumerate(given):
        raw = parse_id("evt", name) if isinstance(name, str) else None
        if raw is None:
            raise InvalidParameter(field=f"filters.without[{index}]", reason="not an event id")
        found.add(raw)
    return frozenset(found)


def _read(given: Any, at: str, depth: int, budget: list[int]) -> Condition:
    if not isinstance(given, dict) or not given:
        raise InvalidParameter(field=at, reason="an object of fields, AND, OR or NOT")
    if depth > limits.FILTER_DEPTH_MAX:
        raise InvalidParameter(field=at, reason=f"deeper than {limits.FILTER_DEPTH_MAX} levels")
    parts = [
        part
        for name, value in given.items()
        for part in _read_entry(name, value, f"{at}.{name}", depth, budget)
    ]
    return parts[0] if len(parts) == 1 else Group("AND", tuple(parts))


def _read_entry(
    name: str, value: Any, at: str, depth: int, budget: list[int]
) -> Iterator[Condition]:
    if name == "metadata":  # the published client's form: plain values of the same fields
        yield _read(value, at, depth + 1, budget)
    elif name == "NOT":
        yield Group("NOT", (_read(value, at, depth + 1, budget),))
    elif name in _GROUPS:
        if not isinstance(value, list) or not value:
            raise InvalidParameter(field=at, reason="a list of conditions")
        parts = [_read(one, f"{at}[{i}]", depth + 1, budget) for i, one in enumerate(value)]
        yield Group("AND" if name == "AND" else "OR", tuple(parts))
    elif name not in FIELDS:
        raise InvalidParameter(
            field=at, reason="no field to filter by", fields=sorted(FIELDS), groups=list(_GROUPS)
        )
    else:
        yield from _read_field(name, value, at, budget)


def _read_field(name: str, value: Any, at: str, budget: list[int]) -> Iterator[Test]:
    """`{"gte": 0.6}`, or a bare value for `eq` and a bare list for `in`."""
    if isinstance(value, list):
        value = {"in": value}
    elif not isinstance(value, dict):
        value = {"eq": value}
    if not value:
        raise InvalidParameter(field=at, reason="no operator", operators=list(_OPERATORS))
    for operator, operand in value.items():
        place = f"{at}.{operator}"
        budget[0] -= 1
        if budget[0] < 0:
            reason = f"more than {limits.FILTER_CONDITIONS_MAX} conditions"
            raise InvalidParameter(field="filters", reason=reason)
        if operator not in _OPERATORS:
            raise InvalidParameter(field=place, reason="no operator", operators=list(_OPERATORS))
        kind = FIELDS[name].kind
        if kind == "text" and operator in _ORDER:
            raise InvalidParameter(field=place, reason=f"{name} is text and has no order")
        yield Test(name, operator, _operand(kind, operator, operand, place))


def _operand(kind: Kind, operator: str, given: Any, at: str) -> Any:
    if operator != "in":
        return _value(kind, given, at)
    if not isinstance(given, list) or len(given) > limits.FILTER_VALUES_MAX:
        reason = f"a list of at most {limits.FILTER_VALUES_MAX} values"
        raise InvalidParameter(field=at, reason=reason)
    return frozenset(_value(kind, one, f"{at}[{i}]") for i, one in enumerate(given))


def _value(kind: Kind, given: Any, at: str) -> Any:
    if kind == "text":
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise InvalidParameter(field=at, reason="a text")
        return str(given)
    if kind == "number":
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise InvalidParameter(field=at, reason="a number")
        return float(given)
    if not isinstance(given, str):
        raise InvalidParameter(field=at, reason="a time")
    return read_time(given, at)


def read_time(given: str, at: str) -> datetime:
    """RFC 3339 with a zone, or a date: its start in UTC."""
    text = f"{given}T00:00:00Z" if len(given) == 10 else given
    try:
        return as_utc(msgspec.convert(text, Instant), at)
    except msgspec.ValidationError as error:
        raise InvalidParameter(field=at, reason=f"not a time: {error}") from error


# ── trying a record ──────────────────────────────────────────────────────────────────────────


def admits(filters: Filters, thing: Thing) -> bool:
    """Whether a record may be in the pack, as far as the filters go."""
    return filters.condition is None or _holds(filters.condition, thing) is not False


def _holds(condition: Condition, thing: Thing) -> bool | None:
    """True, False, or None when the condition says nothing about this layer."""
    if isinstance(condition, Test):
        getter = FIELDS[condition.field].of.get(type(thing))
        return None if getter is None else _compare(condition, getter(thing))
    said = [_holds(part, thing) for part in condition.parts]
    if condition.how == "NOT":
        return None if said[0] is None else not said[0]
    known = [one for one in said if one is not None]
    if not known:
        return None
    return all(known) if condition.how == "AND" else any(known)


def _compare(test: Test, found: Any) -> bool:
    """One value, or any of several; what a record leaves empty equals nothing."""
    values = found if isinstance(found, list) else [] if found in (None, msgspec.UNSET) else [found]
    match test.operator:
        case "eq":
            return test.value in values
        case "ne":
            return test.value not in values
        case "in":
            return any(value in test.value for value in values)
        case "gte":
            return any(value >= test.value for value in values)
        case "lte":
            return any(value <= test.value for value in values)
        case "gt":
            return any(value > test.value for value in values)
        case "lt":
            return any(value < test.value for value in values)


# ── trying columns, before anything is read ──────────────────────────────────────────────────


def column_mask(filters: Filters) -> Callable[[Layer, Block], Any] | None:
    """Which rows of a block may pass, judged by its columns alone; None when they cannot tell.

    A row that is let through here is still tried as a record; one that is not, never is.
    """
    condition = filters.condition
    if filters.without or (condition is not None and any(_pushable(condition))):

        def mask(layer: Layer, block: Block) -> Any:
            admitted = np.ones(len(block.raws), np.bool_)
            if layer == "events":
                if condition is not None:
                    admitted &= _columns(condition, block)[0]
                for raw in filters.without:
                    row = block.rows.get(raw)
                    if row is not None and row < len(admitted):
                        admitted[row] = False
            return admitted

        return mask
    return None


_NAMED_COLUMNS: Final = {
    "actor": ("actor", "actors"),
    "observed_actor": ("actor", "actors"),
    "session": ("session", "sessions"),
    "role": ("role", "roles"),
}
_TIME_COLUMNS: Final = {"observed_at": "observed_us", "recorded_at": "recorded_us"}


def _pushable(condition: Condition) -> Iterator[bool]:
    if isinstance(condition, Test):
        yield condition.field in _NAMED_COLUMNS or condition.field in _TIME_COLUMNS
    else:
        for part in condition.parts:
            yield from _pushable(part)


def _columns(condition: Condition, block: Block) -> tuple[Any, bool]:
    """(rows that may pass, whether that is certain) of a block of events."""
    if isinstance(condition, Test):
        return _column(condition, block)
    tried = [_columns(part, block) for part in condition.parts]
    is_certain = all(certain for _, certain in tried)
    if condition.how == "NOT":
        rows = ~tried[0][0] if is_certain else np.ones(len(block.raws), np.bool_)
        return rows, is_certain
    combine = np.logical_and if condition.how == "AND" else np.logical_or
    return combine.reduce([rows for rows, _ in tried]), is_certain


def _column(test: Test, block: Block) -> tuple[Any, bool]:
    if test.field in _NAMED_COLUMNS:
        column, names = _NAMED_COLUMNS[test.field]
        wanted = test.value if test.operator == "in" else {test.value}
        numbers = [n for n, name in enumerate(getattr(block, names)) if name in wanted]
        rows = np.isin(getattr(block, column), numbers)
        return (~rows if test.operator == "ne" else rows), True
    if test.field in _TIME_COLUMNS:
        return _compare_times(test, getattr(block, _TIME_COLUMNS[test.field])), True
    return np.ones(len(block.raws), np.bool_), False


def _compare_times(test: Test, column: Any) -> Any:
    if test.operator == "in":
        return np.isin(column, [to_us(value) for value in test.value])
    compare: dict[str, Callable[[Any, int], Any]] = {
        "eq": np.equal,
        "ne": np.not_equal,
        "gte": np.greater_equal,
        "lte": np.less_equal,
        "gt": np.greater,
        "lt": np.less,
    }
    return compare[test.operator](column, to_us(test.value))
