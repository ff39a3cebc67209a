"""What is said outright?  Triples, flat JSON and a model's facts: nothing here is guessed.

A flat object's scalar keys become facts about what it says it is (`subject`, `name` or `id`), or
else about the speaker. An object inside it is taken one level down under a dotted predicate; what
lies deeper is kept as one JSON value. A list of scalars is several facts, a list of objects that
name themselves is facts about each.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from msgspec import UNSET

from projectors.text.candidates import Candidate, Mention, Value
from projectors.text.predicates import behaviour
from schemas import limits
from schemas.envelope import Envelope, Term, Triple
from schemas.ids import parse_id
from schemas.scope import CALLER_TYPES, is_actor

_DATATYPES: Final = frozenset(
    {"string", "integer", "number", "boolean", "date", "duration", "money", "json"}
)
_OWN_NAMES: Final = ("subject", "name", "id")
"""The keys under which an object may say what it is, the best first."""


@lru_cache(maxsize=4096)
def mention_of(name: str) -> Mention:
    """What a name given outright means: an actor, a record by its id, or something so called."""
    if is_actor(name):
        return Mention(text=name.partition(":")[2], kind="actor", actor=name)
    if parse_id("ent", name) is not None or parse_id("concept", name) is not None:
        return Mention(text=name, ref=name)
    return Mention(text=name)


# ── triples ──────────────────────────────────────────────────────────────────────────────────


def from_triple(triple: Triple, envelope: Envelope) -> Iterator[Candidate]:
    """The fact a triple states; none when an end of it names nothing.

    When it was true, where that is not from `observed_at` on, stands in `context.refers_to`; how
    sure another system was of it, in `source.confidence` (001 §15.2).
    """
    begins, ends = _interval(envelope.context.refers_to)
    sure = (envelope.source or {}).get("confidence", 1.0)
    is_sure = isinstance(sure, int | float) and not isinstance(sure, bool) and 0 <= sure <= 1
    predicate = behaviour(triple.predicate)
    subject = _end(triple.subject, things=True)
    value = _end(triple.object, things=predicate.names_things)
    if isinstance(subject, Mention) and value is not None:
        yield Candidate(
            subject=subject,
            predicate=triple.predicate,
            object=value,
            confidence=float(sure) if is_sure else 1.0,
            cardinality=predicate.cardinality,
            kind=predicate.kind,
            valid_from=begins,
            valid_to=ends,
            ends=ends is not None,
        )


def _interval(refers_to: list[dict[str, Any]]) -> tuple[datetime | None, datetime | None]:
    """The one stretch of time an experience says it is about; none when it names none, or many."""
    if len(refers_to) != 1:
        return None, None
    begins, ends = (_instant(refers_to[0].get(name)) for name in ("from", "to"))
    if begins is not None and ends is not None and ends <= begins:
        return None, None
    return begins, ends


def _end(term: Term | str | float, *, things: bool) -> Mention | Value | None:
    """One end of a triple. A bare string is a thing where the predicate says so, else a literal."""
    if not isinstance(term, Term):
        return _literal(term, things=things)
    if term.type == "literal" or (term.type is UNSET and term.value is not UNSET):
        value = None if term.value is UNSET else term.value
        return _value(value, term.datatype if term.datatype is not UNSET else None)
    name = term.name if term.name is not UNSET else term.id
    if name is UNSET:
        return None
    if term.id is UNSET:
        return mention_of(name)
    known = mention_of(term.id)
    if known.actor is not None:
        return known
    return Mention(text=name, ref=term.id)


def _literal(value: Any, *, things: bool = False) -> Mention | Value | None:
    if isinstance(value, str):
        if not value.strip():
            return None
        named = mention_of(value)
        is_caller = named.actor is not None and value.partition(":")[0] in CALLER_TYPES
        if things or is_caller or named.ref is not None:
            return named
    return _value(value, None)


def _value(value: Any, datatype: str | None) -> Value:
    if datatype in _DATATYPES:
        return Value(datatype=datatype, value=value)  # type: ignore[arg-type]
    match value:
        case bool():
            return Value(datatype="boolean", value=value)
        case int():
            return Value(datatype="integer", value=value)
        case float():
            return Value(datatype="number", value=value)
        case str():
            return Value(datatype="string", value=value)
    return Value(datatype="json", value=value)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def from_json(data: Any, speaker: Mention) -> Iterator[Candidate]:
    """The facts of an object, or of every object in a list that says what it is."""
    if isinstance(data, Mapping):
        yield from _from_object(data, speaker)
    elif isinstance(data, list):
        for item in data[: limits.CANDIDATES_MAX]:
            if isinstance(item, Mapping) and _own_name(item) is not None:
                yield from _from_object(item, speaker)


def _own_name(data: Mapping[str, Any]) -> str | None:
    """The key that says what an object is."""
    for key in _OWN_NAMES:
        if isinstance(data.get(key), str) and data[key].strip():
            return key
    return None


def _from_object(data: Mapping[str, Any], speaker: Mention) -> Iterator[Candidate]:
    own = _own_name(data)
    subject = mention_of(data[own]) if own is not None else speaker
    for key, value in data.items():
        if key == own or not isinstance(key, str) or not key.strip():
            continue
        if isinstance(value, Mapping):
            for inner, deep in value.items():
                yield from _from_pair(subject, f"{key}.{inner}", deep)
        else:
            yield from _from_pair(subject, key, value)


def _from_pair(subject: Mention, key: str, value: Any) -> Iterator[Candidate]:
    if value is None:
        return
    name = key[: limits.NAME_CHARS_MAX]
    predicate = behaviour(name)
    many = isinstance(value, list) and all(isinstance(v, str | int | float) for v in value)
    for one in value if many else [value]:
        known = _literal(one, things=predicate.names_things)
        if known is not None:
            yield Candidate(
                subject=subject,
                predicate=name,
                object=known,
                confidence=1.0,
                cardinality="multi" if many else predicate.cardinality,
                kind=predicate.kind,
            )


# ── a model's facts ──────────────────────────────────────────────────────────────────────────


def from_model(output: Mapping[str, Any], recorded_at: datetime) -> Iterator[Candidate]:
    """The facts of an annotation; one that is no fact is left out, the others stand."""
    facts = output.get("facts")
    for fact in facts[: limits.CANDIDATES_MAX] if isinstance(facts, list) else ():
        found = _from_fact(fact, recorded_at) if isinstance(fact, Mapping) else None
        if found is not None:
            yield found


def _from_fact(fact: Mapping[str, Any], recorded_at: datetime) -> Candidate | None:
    subject, name = fact.get("subject"), fact.get("predicate")
    if not isinstance(subject, str) or not isinstance(name, str):
        return None
    if not subject.strip() or not name.strip():
        return None
    predicate = behaviour(name)
    value = fact.get("object")
    known = None if value is None else _literal(value, things=predicate.names_things)
    if known is None:
        return None
    confidence = fact.get("confidence", 0.8)
    is_share = isinstance(confidence, int | float) and 0 <= confidence <= 1
    valid_from, valid_to = _instant(fact.get("valid_from")), _instant(fact.get("valid_to"))
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        valid_to = None
    cardinality = fact.get("cardinality")
    return Candidate(
        subject=mention_of(subject),
        predicate=name[: limits.NAME_CHARS_MAX],
        object=known,
        confidence=float(confidence) if is_share else 0.8,
        polarity="negative" if fact.get("polarity") == "negative" else "positive",
        cardinality=cardinality if cardinality in {"single", "multi"} else predicate.cardinality,
        kind=predicate.kind,
        valid_from=valid_from,
        valid_to=valid_to,
        ends=valid_to is not None and valid_to <= recorded_at,
    )


def _instant(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
