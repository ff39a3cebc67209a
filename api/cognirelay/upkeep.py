"""Jobs of upkeep that the original runs on its own host (000: cold storage)."""

from typing import Any

from api.cognirelay.access import ADMIN, SURFACE, need
from api.cognirelay.continuity import ARCHIVE, cold_paths, cold_stored, now_of
from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.homes import commit_of
from api.cognirelay.translate.times import compact
from api.endpoint import Call, Endpoint, Reply
from engine.surface import Address, Change, change_documents, read_document
from schemas.surfaces.cognirelay.tasks import RUN


async def _run(call: Call) -> Reply:
    need(call, ADMIN)
    path = call.body.get("arguments", {}).get("source_archive_path")
    if not isinstance(path, str):
        raise refuse(400, "source_archive_path is required")
    address = Address(surface=SURFACE, kind=ARCHIVE, key=path)
    row = read_document(call.engine, call.caller, address)
    change = Change(
        surface=SURFACE,
        scopes=() if row is None else (row.scope,),
        decide=lambda held: cold_stored(held, str(path)),
    )
    changed = await change_documents(call.engine, call.caller, change)
    cold_path, stub = cold_paths(path)
    result = {
        "ok": True,
        "artifact_state": "cold",
        "source_archive_path": path,
        "cold_storage_path": cold_path,
        "cold_stub_path": stub,
        "cold_stored_at": changed.answer,
        "committed_files": [cold_path, stub, path],
        "durable": True,
        **commit_of(changed, row),
        "warnings": [],
        "recovery_warnings": [],
    }
    run_id = f"ops_{compact(now_of(call))}_{call.engine.clock.entropy() & 0xFFFFFFFF:08x}"
    answer = {"ok": True, "run_id": run_id, "job_id": call.body["job_id"], "status": "succeeded"}
    return Reply(answer | {"local_only": True, "job_result": result})


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/ops/run",
        _run,
        "Run a job of upkeep.",
        capability="scope.write",
        body=Any,
        shape=RUN,
        dialect=DIALECT,
    ),
)
