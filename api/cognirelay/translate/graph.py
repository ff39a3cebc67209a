"""What is a thread or a task linked to, one step away?  (000, graph context)

Derived from tasks and capsules at the moment of asking, and never stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.cognirelay.translate.rules import Capsule

Graph = dict[str, Any]
Edge = tuple[str, str, str]
"""(relationship, source, target), each end by its id."""

ANCHORS: Final = ("thread", "task")
_MESSAGES: Final = {
    "graph_anchor_not_provided": "No graph anchor was provided.",
    "graph_anchor_not_supported": "The selected subject kind is not supported as a graph anchor.",
    "graph_anchor_not_found": "The selected graph anchor was not found.",
    "graph_truncated": "Graph context was truncated to configured caps.",
    "graph_suppressed_by_continuity_mode": (
        "Graph context was suppressed because continuity mode is off."
    ),
}
"""The warnings that can occur here, in their order; nothing of ours is malformed or missing."""


def anchor_of(kind: str, subject_id: str) -> str:
    """The id of a thread or task; and the label of the tasks that bear on it."""
    return f"{kind}:{subject_id}"


def task_labels(task: Mapping[str, Any]) -> tuple[str, ...]:
    """What a task is found by: itself, and its thread."""
    return tuple(anchor_of(kind, name) for kind in ANCHORS if (name := task.get(f"{kind}_id")))


def warning(code: str, **details: Any) -> dict[str, Any]:
    """A warning as it is said."""
    return {"code": code, "message": _MESSAGES[code], "details": details}


def empty(caps: Mapping[str, int], code: str, **details: Any) -> Graph:
    """A graph of nothing, and why."""
    return _shown(None, {name: [] for name in caps}, dict.fromkeys(caps, 0), caps) | {
        "warnings": [warning(code, **details)]
    }


def graph_of(
    kind: str,
    subject_id: str,
    tasks: Iterable[Mapping[str, Any]],
    capsules: Iterable[Capsule],
    caps: Mapping[str, int],
) -> Graph:
    """What lies one step from a thread or task, within the caps."""
    anchor_id = anchor_of(kind, subject_id)
    own_tasks = [task for task in tasks if task.get(f"{kind}_id") == subject_id]
    own = [c for c in capsules if (c["subject_kind"], c["subject_id"]) == (kind, subject_id)]
    if not own_tasks and not own:
        details = {"anchor_id": anchor_id, "kind": kind, "subject_id": subject_id}
        return empty(caps, "graph_anchor_not_found", **details)
    edges = {edge for task in own_tasks for edge in _task_edges(kind, task)}
    edges |= {edge for capsule in own for edge in _capsule_edges(kind, capsule)}
    ids = {end for _, source, target in edges for end in (source, target)} - {anchor_id}
    nodes = [_node(name) for name in sorted(ids)]
    kept = {anchor_id, *(node["id"] for node in nodes[: caps["nodes"]])}
    # An edge to what was cut off is no edge: the caps of edges come after.
    drawn = [edge for edge in sorted(edges) if {edge[1], edge[2]} <= kept]
    shown = drawn[: caps["edges"]]
    found = {
        "nodes": nodes,
        "edges": [
            dict(zip(("relationship", "source_id", "target_id"), e, strict=True)) for e in drawn
        ],
        "related_documents": _documents(shown),
        "blockers": _blockers(shown),
    }
    available = {name: len(items) for name, items in found.items()}
    return _shown(_node(anchor_id), found, available, caps)


def _task_edges(kind: str, task: Mapping[str, Any]) -> Iterable[Edge]:
    task_id, thread_id = task.get("task_id"), task.get("thread_id")
    if not _is_name(task_id):
        return
    if _is_name(thread_id):
        yield "linked_to_thread", f"task:{task_id}", f"thread:{thread_id}"
    if kind == "task":
        for other in task.get("blocked_by") or []:
            if _is_name(other):
                yield "depends_on", f"task:{task_id}", f"task:{other}"


def _capsule_edges(kind: str, capsule: Capsule) -> Iterable[Edge]:
    own = f"{kind}:{capsule['subject_id']}"
    for document in capsule["continuity"].get("related_documents", []):
        yield "references_document", own, f"document:{document['path']}"
    heir = capsule.get("thread_descriptor", {}).get("superseded_by")
    if _is_name(heir):
        yield "supersedes", f"{kind}:{heir}", own


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _node(name: str) -> dict[str, str]:
    kind, _, subject_id = name.partition(":")
    return {"id": name, "kind": kind, "subject_id": subject_id}


def _documents(edges: Iterable[Edge]) -> list[dict[str, str]]:
    rows = [
        {"path": target.partition(":")[2], "node_id": target, "source_id": source}
        for relationship, source, target in edges
        if relationship == "references_document"
    ]
    return sorted(rows, key=lambda row: (row["path"], row["source_id"]))


def _blockers(edges: Iterable[Edge]) -> list[dict[str, str]]:
    rows = [
        {
            "task_id": source.partition(":")[2],
            "blocked_by_task_id": target.partition(":")[2],
            "source_id": source,
            "target_id": target,
        }
        for relationship, source, target in edges
        if relationship == "depends_on"
    ]
    return sorted(rows, key=lambda row: (row["task_id"], row["blocked_by_task_id"]))


def _shown(
    anchor: dict[str, str] | None,
    found: Mapping[str, list[Any]],
    available: Mapping[str, int],
    caps: Mapping[str, int],
) -> Graph:
    cut = {name: items[: caps[name]] for name, items in found.items()}
    truncation = {
        name: {
            "limit": limit,
            "available": available[name],
            "returned": len(cut[name]),
            "truncated": available[name] > len(cut[name]),
        }
        for name, limit in caps.items()
    }
    warnings = [
        warning("graph_truncated", field=name, limit=caps[name], available=available[name])
        for name in sorted(caps)
        if truncation[name]["truncated"]
    ]
    return {"anchor": anchor, **cut, "truncation": truncation, "warnings": warnings}
