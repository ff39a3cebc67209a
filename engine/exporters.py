"""How does a record look in another system's file?  Pure maps, the other way round (001 §8.12).

Every line of a `jsonl` export that is an event is an envelope that imports again; a derived record
is a line of its own, which an import passes over: it follows from the events.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from schemas.layers import Belief, Concept, Episode, Event, Fact, LiteralValue, Node, Record

Line = dict[str, Any]


def jsonl(layer: str, record: Event | Record) -> Line | None:
    """An envelope, or a record under its layer's name."""
    if isinstance(record, Event):
        return envelope_of(record)
    return {"layer": layer, "record": msgspec.to_builtins(record)}


def envelope_of(event: Event) -> Line:
    """What was posted, as it was posted."""
    made = msgspec.to_builtins(event)
    context = made["context"]
    context.pop("recorded_at", None)
    kept = ("scope", "modality", "content", "observed_actor", "subject", "directives")
    more = ("idempotency_key", "language", "scripts", "source")
    line = {name: made[name] for name in (*kept, *more) if made.get(name)}
    return line | {"context": context}


def mem0(layer: str, record: Event | Record) -> Line | None:
    """A memory a fact or event."""
    text = text_of(record)
    if text is None or layer not in ("events", "facts"):
        return None
    made: Line = {"id": record.id, "memory": text, "metadata": {"layer": layer}}
    if isinstance(record, Event):
        actor = record.actor.partition(":")
        made[f"{'agent' if actor[0] == 'agent' else 'user'}_id"] = actor[2]
        made["created_at"] = _time(record.context.observed_at)
        return made
    assert isinstance(record, Fact)
    made["created_at"] = _time(record.valid_from)
    made["score"] = record.confidence
    return made


def zep(layer: str, record: Event | Record) -> Line | None:
    """A message an event, an edge a fact, with both times."""
    del layer
    if isinstance(record, Fact):
        return {
            "type": "edge",
            "uuid": record.id,
            "name": record.predicate,
            "fact": text_of(record),
            "source_node_name": _node(record.subject),
            "target_node_name": _node(record.object),
            "valid_at": _time(record.valid_from),
            "invalid_at": _time(record.valid_to),
            "created_at": _time(record.recorded_from),
            "rating": record.confidence,
            "episodes": record.supports,
        }
    text = text_of(record)
    if not isinstance(record, Event) or text is None:
        return None
    role = getattr(record.content, "role", "user")
    return {
        "type": "message",
        "uuid": record.id,
        "role_type": role,
        "role": record.actor.partition(":")[2],
        "content": text,
        "created_at": _time(record.context.observed_at),
    }


def letta(layer: str, record: Event | Record) -> Line | None:
    """A passage a record: the archive of an agent."""
    text = text_of(record)
    if text is None:
        return None
    at = record.context.observed_at if isinstance(record, Event) else record.valid_from
    return {
        "id": record.id,
        "text": text,
        "created_at": _time(at),
        "metadata": {"layer": layer, "scope": record.scope},
    }


EXPORTERS: Final[dict[str, Callable[[str, Event | Record], Line | None]]] = {
    "jsonl": jsonl,
    "mem0": mem0,
    "zep": zep,
    "letta": letta,
}


def text_of(record: Event | Record) -> str | None:
    """A record in words; None for an event without any."""
    match record:
        case Event(content=content):
            text = getattr(content, "text", None)
            return text if isinstance(text, str) and text else None
        case Fact():
            words = record.predicate.replace("_", " ")
            return f"{_node(record.subject)} {words} {_node(record.object)}"
        case Belief(claim=claim):
            words = claim.predicate.replace("_", " ")
            return f"{_node(claim.subject)} {words} {_node(claim.object)}"
        case Episode() | Concept():
            return f"{record.name}: {record.summary}"


def _node(node: Node) -> str:
    if isinstance(node, LiteralValue):
        return str(node.value)
    return node.name or node.id


def _time(at: Any) -> str | None:
    return None if at is None else at.isoformat()
