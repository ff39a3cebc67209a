"""Tasks, and the graph they draw with capsules (000: tasks, graph context)."""

from typing import Any, Final

from api.cognirelay.access import SURFACE, need, scope_of, slug
from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.homes import commit_of, home_of, path_of
from api.cognirelay.translate import graph
from api.cognirelay.translate.capsule import ARCHIVED, CAPSULE_KIND, GONE
from api.cognirelay.translate.times import second
from api.endpoint import Call, Endpoint, Reply
from engine.surface import (
    Address,
    Change,
    Held,
    Outcome,
    Shelf,
    Write,
    change_documents,
    list_documents,
    read_document,
)
from schemas.errors import Denied
from schemas.limits import GRAPH_CAPS, GRAPH_STARTUP_CAPS
from schemas.surfaces.cognirelay.tasks import TASK
from schemas.surfaces.document import CURRENT

TASK_KIND: Final = "task"
ARCHIVE_KIND: Final = "archive"


async def _create_task(call: Call) -> Reply:
    need(call, "write:projects")
    task = TASK.filled(call.body)
    name = task["task_id"]
    folder = "done" if task["status"] == "done" else "open"
    scope = home_of({"task_id": name}, "")

    def decide(held: Held) -> Outcome:
        if held.get(TASK_KIND, name) is not None:
            raise refuse(409, f"Task already exists: {name}")
        made = task | {"created_at": second(held.now), "updated_at": second(held.now)}
        words = f"task {name}: {task['title']}\n{task['description']}".strip()
        write = Write(
            kind=TASK_KIND,
            key=name,
            scope=scope,
            words=words,
            value=made,
            labels=graph.task_labels(made),
        )
        return Outcome(answer=made, writes=[write])

    change = Change(surface=SURFACE, scopes=(scope,), decide=decide)
    changed = await change_documents(call.engine, call.caller, change)
    path = f"tasks/{folder}/{name}.json"
    answer = {"ok": True, "task": changed.answer, "path": path, "committed": True}
    return Reply(answer | commit_of(changed))


def startup_graph(call: Call, kind: str, subject_id: str) -> graph.Graph:
    """The graph of an agent that starts."""
    return _graph(call, kind, subject_id, GRAPH_STARTUP_CAPS)


def context_graph(call: Call, kind: str | None, subject_id: str | None) -> graph.Graph:
    """The graph of an orientation."""
    if kind is None or subject_id is None:
        return graph.empty(GRAPH_CAPS, "graph_anchor_not_provided")
    return _graph(call, kind, subject_id, GRAPH_CAPS)


def suppressed_graph() -> graph.Graph:
    """The graph of an orientation that wants none."""
    return graph.empty(GRAPH_CAPS, "graph_suppressed_by_continuity_mode")


def _graph(call: Call, kind: str, subject_id: str, caps: dict[str, int]) -> graph.Graph:
    if kind not in graph.ANCHORS:
        return graph.empty(caps, "graph_anchor_not_supported", subject_kind=kind)
    tasks = _values(call, TASK_KIND, CURRENT, graph.anchor_of(kind, subject_id))
    path = path_of(kind, slug(subject_id))
    archived = [kept["capsule"] for kept in _values(call, ARCHIVE_KIND, ARCHIVED, path)]
    return graph.graph_of(
        kind, subject_id, tasks, [*_last(call, kind, subject_id), *archived], caps
    )


def _last(call: Call, kind: str, subject_id: str) -> list[Any]:
    """The last accepted capsule of a subject, whether it stands or not."""
    name = slug(subject_id)
    address = Address(
        surface=SURFACE, kind=CAPSULE_KIND, key=f"{kind}-{name}", scope=scope_of(kind, name)
    )
    try:
        row = read_document(call.engine, call.caller, address)
    except Denied:
        return []
    return [] if row is None or row.state == GONE else [row.value]


def _values(call: Call, kind: str, state: str, label: str) -> list[Any]:
    shelf = Shelf(surface=SURFACE, kind=kind, labels=(label,))
    rows = list_documents(call.engine, call.caller, shelf)
    return [row.value for row in rows if row.state == state]


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/tasks",
        _create_task,
        "Create a task.",
        capability="scope.write",
        body=Any,
        shape=TASK,
        dialect=DIALECT,
    ),
)
