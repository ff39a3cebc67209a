"""What does a task look like, and a job of upkeep?  (000: the rows a graph is drawn from)"""

from typing import Final

from schemas.limits import COGNIRELAY_ID_CHARS_MAX, TASK_LINKS_MAX, TASK_TEXT_CHARS_MAX
from schemas.surfaces.shapes import Choice, Field, Items, Maybe, Model, Table, Text

_ID: Final = Text(COGNIRELAY_ID_CHARS_MAX, 1)
_IDS: Final = Field(Items(_ID, TASK_LINKS_MAX), list)

TASK: Final = Model(
    "TaskCreateRequest",
    {
        "task_id": _ID,
        "title": Text(TASK_TEXT_CHARS_MAX),
        "description": Field(Text(TASK_TEXT_CHARS_MAX), ""),
        "status": Field(Choice(("open", "in_progress", "blocked", "done")), "open"),
        "owner_peer": _ID,
        "collaborators": _IDS,
        "thread_id": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "blocked_by": _IDS,
        "due_at": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "metadata": Field(Table(), dict),
    },
)
RUN: Final = Model(
    "OpsRunRequest",
    {"job_id": Choice(("continuity_cold_store",)), "arguments": Field(Table(), dict)},
)
