"""Memories of Mem0 (001 §15.1): a list of them, `results` or `memories`, and perhaps relations."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from engine.importers.rows import (
    BadRow,
    Draft,
    Mapping,
    Options,
    Row,
    duration,
    envelope,
    id_of,
    instant,
    items_of,
    key_of,
    label,
    object_of,
    scope_of,
    text_of,
)


def rows(data: Any) -> Iterator[Row]:
    """Memories, then the edges of a graph export."""
    line = 0
    for item in items_of(data, "results", "memories", "items"):
        line += 1
        is_edge = isinstance(item, dict) and "relationship" in item and "memory" not in item
        yield Row(line, "relation" if is_edge else "memory", item)
    for item in items_of(data if isinstance(data, dict) else {}, "relations"):
        line += 1
        yield Row(line, "relation", item)


def drafts(row: Row, options: Options) -> list[Draft]:
    """One event, and one more for an update; an edge is a triple."""
    item = row.value
    if not isinstance(item, dict):
        raise BadRow("a memory is an object")
    if row.kind == "relation":
        return [Draft(_relation(item, options))]
    created, updated = instant(item.get("created_at")), instant(item.get("updated_at"))
    first = _memory(item, options, created, "created")
    if updated is None or created is None or updated <= created:
        return [Draft(first)]
    return [Draft(first), Draft(_memory(item, options, updated, "updated"), follows=0)]


def _memory(item: Mapping, options: Options, at: datetime | None, version: str) -> Mapping:
    text = text_of(item.get("memory", item.get("text")), "memory")
    metadata = object_of(item.get("metadata"))
    labels = [label("mem0_source_id", item["id"])] if item.get("id") else []
    labels += [label("mem0_hash", item["hash"])] if item.get("hash") else []
    labels += [label(f"mem0_metadata.{name}", value) for name, value in metadata.items()]
    if options.map_categories_to != "none":
        labels += [label("concept", category) for category in item.get("categories") or []]
    return envelope(
        options,
        scope=_scope(item, options),
        content={"kind": "text", "text": text},
        key=key_of("mem0", item.get("id") or text, item.get("hash"), version),
        at=at,
        labels=labels,
        source_recorded_at=at,
        directives=_directives(item, at),
        **_actor(item),
    )


def _scope(item: Mapping, options: Options) -> str:
    names = ("user_id", "app_id", "agent_id", "run_id")
    return scope_of(options, **{name: item.get(name) for name in names})


def _actor(item: Mapping) -> Mapping:
    """The agent said it, where there was one; else the user."""
    for kind in ("agent", "user"):
        name = item.get(f"{kind}_id")
        if name:
            session = item.get("run_id")
            more = {"session": str(session)[:256]} if session else {}
            return {"observed_actor": {"id": f"{kind}:{id_of(name)}", **more}}
    return {}


def _directives(item: Mapping, at: datetime | None) -> Mapping:
    made: Mapping = {"no_supersede": True} if item.get("immutable") else {}
    ends = instant(item.get("expiration_date"))
    if ends is not None and at is not None:
        made["ttl_for_event_layer"] = duration(ends - at)
    return made


def _relation(item: Mapping, options: Options) -> Mapping:
    ends = [item.get("source"), item.get("target", item.get("destination"))]
    subject, target = (text_of(end, "an end of a relation") for end in ends)
    predicate = text_of(item.get("relationship", item.get("relation")), "the relationship")
    return envelope(
        options,
        scope=_scope(item, options),
        content={
            "kind": "triple",
            "triple": {
                "subject": {"type": "entity", "name": subject[:256]},
                "predicate": predicate[:256],
                "object": {"type": "entity", "name": target[:256]},
            },
        },
        key=key_of("mem0 relation", subject, predicate, target, item.get("user_id")),
        at=instant(item.get("created_at")),
        **_actor(item),
    )
