"""An agent file of Letta (001 §15.3): its blocks, its archive, and what was said."""

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
    scope_of,
    text_of,
)

_ROLES = ("user", "assistant", "tool", "system")
_TAGS = {"persona": "actor_self_description", "human": "actor_subject_description"}


def rows(data: Any) -> Iterator[Row]:
    """Every agent's blocks, passages and messages; a file may hold one agent or several."""
    if not isinstance(data, dict):
        return
    blocks = {str(each.get("id")): each for each in items_of(data, "blocks") if _is_object(each)}
    agents = data.get("agents") if isinstance(data.get("agents"), list) else [data]
    line = 0
    for agent in agents or []:
        if not isinstance(agent, dict):
            continue
        context = {"agent_name": agent.get("name") or data.get("name") or "agent"}
        own = [blocks[str(each)] for each in agent.get("block_ids") or [] if str(each) in blocks]
        lists = (
            ("block", own or items_of(agent, "core_memory", "blocks", "memory")),
            ("passage", items_of(agent, "archival_memory", "passages", "archival")),
            ("message", items_of(agent, "messages", "in_context_messages")),
        )
        for kind, items in lists:
            for item in items:
                line += 1
                yield Row(line, kind, item, context)
    for item in items_of(data, "passages", "archival_memory") if "agents" in data else []:
        line += 1
        yield Row(line, "passage", item, {"agent_name": "agent"})


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def drafts(row: Row, options: Options) -> list[Draft]:
    """A block describes, a passage is a text, a message is a message."""
    if not isinstance(row.value, dict):
        raise BadRow(f"a {row.kind} is an object")
    made = {"block": _block, "passage": _passage, "message": _message}[row.kind](row, options)
    return [] if made is None else [Draft(made)]


def _block(row: Row, options: Options) -> Mapping | None:
    item = row.value
    name, value = item.get("label") or item.get("name") or "block", item.get("value")
    if not isinstance(value, str) or not value.strip():
        return None  # an empty block says nothing
    agent = str(row.context["agent_name"])
    tags = [label("letta_block", name)] + ([_TAGS[name]] if name in _TAGS else [])
    content: Mapping = {"kind": "text", "text": value}
    if options.map_core_blocks_to == "understanding":
        # Exact facts about what the block describes: concepts are made of facts.
        about = agent if name == "persona" else str(name)
        facts = {"name": about, "description": value[:2000], "described_in": f"{agent} {name}"}
        content = {"kind": "json", "data": facts, "text": value}
        tags.append(label("concept", name))
    return envelope(
        options,
        scope=scope_of(options, agent_name=agent),
        content=content,
        key=key_of("letta block", agent, name, value),
        at=instant(item.get("created_at")),
        labels=tags,
        observed_actor={"id": f"agent:{id_of(agent)}"},
    )


def _passage(row: Row, options: Options) -> Mapping | None:
    if options.map_archival_to == "none":
        return None
    item, agent = row.value, str(row.context["agent_name"])
    text = text_of(item.get("text", item.get("content")), "text")
    at = instant(item.get("created_at"))
    return envelope(
        options,
        scope=scope_of(options, agent_name=agent),
        content={"kind": "text", "text": text},
        key=key_of("letta passage", agent, item.get("id") or text),
        at=at,
        source_recorded_at=at,
        labels=[label("letta_passage", item["id"])] if item.get("id") else [],
        observed_actor={"id": f"agent:{id_of(agent)}"},
    )


def _message(row: Row, options: Options) -> Mapping | None:
    item, agent = row.value, str(row.context["agent_name"])
    role = str(item.get("role"))
    text = _text(item.get("content", item.get("text")))
    if role not in _ROLES or not text.strip():
        return None  # a call of a tool without words, or a role of its own
    actor = "user:human" if role == "user" else f"agent:{id_of(agent)}"
    return envelope(
        options,
        scope=scope_of(options, agent_name=agent),
        content={"kind": "message", "role": role, "text": text},
        key=key_of("letta message", agent, item.get("id") or [role, text, item.get("created_at")]),
        at=instant(item.get("created_at")),
        observed_actor={"id": actor},
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
