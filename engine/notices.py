"""What is the stream told of a directive?  (001 §13)"""

from typing import Any

from engine.rows import Note
from schemas.entry import Cancel, Directive, Forget, Park, SetPolicy
from schemas.ids import parse_id
from schemas.jobs import EndJob, MoveJob


def notes_of(body: Directive, by: str) -> list[Note]:
    """The announcements of one directive; most have none."""
    match body.command:
        case Cancel(event_id=event_id, stages=stages):
            event = parse_id("evt", event_id)
            return [Note("cancelled", body.scope, event, None, None, {"stages_cancelled": stages})]
        case Park() as park:
            event = parse_id("evt", park.event_id)
            payload: dict[str, Any] = {
                "projector": park.projector,
                "error": park.error,
                "attempts": park.attempts,
            }
            return [Note("parked", body.scope, event, None, None, payload)]
        case SetPolicy() as said:
            document = said.document
            payload = {
                "tier": said.tier,
                "scope_or_actor": said.target,
                "capability_diff": {"allow": document.allow, "deny": document.deny},
            }
            return [_about("policy_changed", body.scope, payload)]
        case Forget(counts=counts, cascade=cascade):
            return [
                _about(
                    "forgotten",
                    body.scope,
                    {"layer": layer, "count": count, "by_actor": by, "cascade": cascade},
                )
                for layer, count in counts.items()
                if count
            ]
        case MoveJob() as moved:
            return _moved(body.scope, moved)
        case EndJob() as ended:
            return _ended(body.scope, ended)
        case _:
            return []


def _about(name: str, scope: str | None, payload: dict[str, Any]) -> Note:
    return Note(name, scope, None, None, None, payload)


def _moved(scope: str | None, job: MoveJob) -> list[Note]:
    """Rows that failed, one by one, and how far the job is."""
    if job.kind == "synthesis":
        return []  # what it makes is announced where it is made
    field = f"{job.kind}_id"
    fraction = min(1.0, job.processed / job.total) if job.total else 0.0
    payload: dict[str, Any] = {field: job.job_id, "fraction_complete": round(fraction, 4)}
    failed: list[Note] = []
    if job.kind == "import":
        payload |= {"processed": job.processed, "total": job.total}
        failed = [
            _about(
                "import_error",
                scope,
                {field: job.job_id, "line": problem.line, "error": problem.error},
            )
            for problem in job.problems
        ]
    if job.kind == "erasure":
        payload |= {"phase": job.phase or "enumerate", **job.counts}
    return [*failed, _about(f"{job.kind}_progress", scope, payload)]


def _ended(scope: str | None, job: EndJob) -> list[Note]:
    """That it is over; an export that has no file has nothing to tell of one."""
    if job.kind == "synthesis":
        return [_about("compressed", scope, {"job_id": job.job_id, "status": job.status})]
    field, summary = f"{job.kind}_id", job.summary
    payload: dict[str, Any] = {field: job.job_id}
    if job.kind == "export":
        if job.status != "completed":
            return []
        payload |= {"url": summary["url"], "size_bytes": summary["size_bytes"]}
    else:
        payload["summary"] = {"status": job.status, **summary}
    return [_about(f"{job.kind}_complete", scope, payload)]
