"""Messages, facts and episodes of Zep (001 §15.2), both times kept.

An edge says when it was true (`valid_at`, `invalid_at`); a triple about an interval carries it in
`context.refers_to`, where the facts projector reads it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from engine.importers.rows import (
    BadRow,
    Draft,
    Mapping,
    Options,
    Row,
    envelope,
    id_of,
    instant,
    items_of,
    key_of,
    label,
    scope_of,
    text_of,
)

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_ROLES_OF = _ROLES | {"system": "system", "tool": "tool", "function": "tool"}


def rows(data: Any) -> Iterator[Row]:
    """Nodes are what edges are about; messages, edges and episodes are rows."""
    whole = data if isinstance(data, dict) else {}
    nodes = {
        str(node.get("uuid")): node
        for node in items_of(whole, "nodes", "entities")
        if isinstance(node, dict)
    }
    shared = {name: whole.get(name) for name in ("group_id", "user_id", "session_id")}
    lists = (
        (
            "message",
            items_of(data, "messages") if whole else data if isinstance(data, list) else [],
        ),
        ("edge", items_of({"edges": whole.get("edges") or whole.get("facts") or []}, "edges")),
        ("episode", items_of({"episodes": whole.get("episodes") or []}, "episodes")),
    )
    line = 0
    for kind, items in lists:
        for item in items:
            line += 1
            yield Row(line, _kind_of(item, kind), item, shared | {"nodes": nodes})


def _kind_of(item: Any, kind: str) -> str:
    if isinstance(item, dict) and ("source_node_uuid" in item or "fact" in item):
        return "edge"
    return kind


def drafts(row: Row, options: Options) -> list[Draft]:
    """One event a row."""
    item = row.value
    if not isinstance(item, dict):
        raise BadRow(f"{'an' if row.kind[0] == 'e' else 'a'} {row.kind} is an object")
    made = _edge(row, item, options) if row.kind == "edge" else _said(row, item, options)
    return [Draft(made)]


def _scope(row: Row, item: Mapping, options: Options) -> str:
    names = ("group_id", "user_id", "session_id")
    return scope_of(options, **{name: item.get(name) or row.context.get(name) for name in names})


def _said(row: Row, item: Mapping, options: Options) -> Mapping:
    text = text_of(item.get("content"), "content")
    role = _ROLES_OF.get(str(item.get("role_type") or item.get("role") or "").lower())
    name = item.get("name") or (item.get("role") if item.get("role_type") else None)
    session = item.get("session_id") or row.context.get("session_id") or item.get("thread_id")
    kind = "agent" if role in ("assistant", "tool") else "user"
    actor = {"id": f"{kind}:{id_of(name or kind)}"}
    if session:
        actor["session"] = str(session)[:256]
    content = {"kind": "text", "text": text}
    if role is not None:
        content = {"kind": "message", "role": role, "text": text}
    at = instant(item.get("created_at"))
    return envelope(
        options,
        scope=_scope(row, item, options),
        content=content,
        key=key_of("zep", item.get("uuid") or text, str(at)),
        at=at,
        source_recorded_at=at,
        labels=[label("zep_uuid", item["uuid"])] if item.get("uuid") else [],
        observed_actor=actor,
    )


def _edge(row: Row, item: Mapping, options: Options) -> Mapping:
    nodes = row.context.get("nodes", {})
    name = str(item.get("name") or item.get("fact") or "")
    predicate = options.ontology_mapping.get(name, name)
    created = instant(item.get("created_at"))
    begins, ends = instant(item.get("valid_at")), instant(item.get("invalid_at"))
    if begins is not None and ends is not None and ends < begins:
        raise BadRow("invalid_at lies before valid_at")
    return envelope(
        options,
        scope=_scope(row, item, options),
        content={
            "kind": "triple",
            "triple": {
                "subject": _node(nodes, item, "source"),
                "predicate": text_of(predicate, "name")[:256],
                "object": _node(nodes, item, "target"),
            },
            "text": str(item.get("fact") or predicate),
        },
        key=key_of("zep edge", item.get("uuid") or [name, item.get("fact")]),
        at=begins or created,
        source_recorded_at=created,
        refers_to=_interval(begins, ends) if options.preserve_bi_temporal else None,
        labels=[label("zep_uuid", item["uuid"])] if item.get("uuid") else [],
        **_source(item),
    )


def _interval(begins: datetime | None, ends: datetime | None) -> list[Mapping] | None:
    if begins is None and ends is None:
        return None
    made = {"from": begins.isoformat()} if begins is not None else {}
    return [made | ({"to": ends.isoformat()} if ends is not None else {})]


def _source(item: Mapping) -> Mapping:
    """The rating of a fact is its confidence here."""
    rating = item.get("rating", item.get("fact_rating"))
    if not isinstance(rating, (int, float)) or isinstance(rating, bool):
        return {}
    return {"source": {"system": "zep", "confidence": min(1.0, max(0.0, float(rating)))}}


def _node(nodes: Mapping, item: Mapping, end: str) -> Mapping:
    uuid = item.get(f"{end}_node_uuid")
    known = nodes.get(str(uuid), {})
    name = known.get("name") or item.get(f"{end}_node_name") or uuid
    return {"type": "entity", "name": text_of(name, f"the {end} of a fact")[:256]}
