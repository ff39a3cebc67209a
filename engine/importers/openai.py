"""What ChatGPT remembers, and what was said to it (001 §15.4): `memories`, or conversations."""

from collections.abc import Iterator
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
    object_of,
    scope_of,
    text_of,
)

_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "system": "system"}


def rows(data: Any) -> Iterator[Row]:
    """Memories as they are listed, conversations message by message in the order of their tree."""
    line = 0
    for item in items_of(data, "memories", "conversations", "items"):
        if isinstance(item, dict) and isinstance(item.get("mapping"), dict):
            for message in _messages(item):
                line += 1
                context = {"id": item.get("id") or item.get("conversation_id")}
                yield Row(line, "message", message, context | {"title": item.get("title")})
        else:
            line += 1
            yield Row(line, "memory", item)


def _messages(conversation: Mapping) -> Iterator[Mapping]:
    nodes = conversation["mapping"].values()
    found = [node.get("message") for node in nodes if isinstance(node, dict)]
    said = [message for message in found if isinstance(message, dict)]
    yield from sorted(said, key=lambda message: message.get("create_time") or 0)


def drafts(row: Row, options: Options) -> list[Draft]:
    """A memory is a text, a message is a message; what has no words has nothing to remember."""
    if not isinstance(row.value, dict):
        raise BadRow("a memory is an object")
    made = _memory(row.value, options) if row.kind == "memory" else _message(row, options)
    return [] if made is None else [Draft(made)]


def _memory(item: Mapping, options: Options) -> Mapping:
    text = text_of(item.get("text", item.get("content")), "text")
    source = object_of(item.get("source"))
    at = instant(item.get("created", item.get("created_at")))
    session = source.get("session_id")
    more: Mapping = {}
    if session:
        more = {"observed_actor": {"id": "user:chatgpt", "session": str(session)[:256]}}
    return envelope(
        options,
        scope=scope_of(options, user_id=item.get("user_id"), session_id=session),
        content={"kind": "text", "text": text},
        key=key_of("openai", item.get("id"), text),
        at=at,
        source_recorded_at=at,
        labels=[label("openai_source_id", item["id"])] if item.get("id") else [],
        **more,
    )


def _message(row: Row, options: Options) -> Mapping | None:
    message = row.value
    author = object_of(message.get("author"))
    content = object_of(message.get("content"))
    parts = [part for part in content.get("parts") or [] if isinstance(part, str) and part.strip()]
    role = _ROLES.get(str(author.get("role")))
    if not parts or role is None:
        return None
    actor = "agent:chatgpt" if role in ("assistant", "tool") else "user:chatgpt"
    session = str(row.context.get("id") or "conversation")
    return envelope(
        options,
        scope=scope_of(options, conversation_id=session, user_id=None),
        content={"kind": "message", "role": role, "text": "\n".join(parts)},
        key=key_of("openai message", session, message.get("id"), parts),
        at=instant(message.get("create_time")),
        labels=[label("title", row.context["title"])] if row.context.get("title") else [],
        observed_actor={"id": actor, "session": id_of(session)[:256]},
    )
