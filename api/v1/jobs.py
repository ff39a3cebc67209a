"""Long work, for operators: what is under way, what failed, and running it on."""

from api.endpoint import EXPERIMENTAL, Call, Endpoint, Reply
from api.v1.admin import Empty
from engine.backlog import cancel_job, list_jobs, rerun_job, show_job
from schemas.errors import Conflict, NotFound, WalUnavailable
from schemas.jobs import JobItem, JobList, JobListRequest


def get_jobs(call: Call) -> Reply:
    """A page of jobs."""
    return Reply(list_jobs(call.engine, call.caller, call.query))


def get_job(call: Call) -> Reply:
    """One job."""
    return Reply(show_job(call.engine, call.caller, call.path["job_id"]))


async def post_retry(call: Call) -> Reply:
    """Run a failed one on."""
    return Reply(await rerun_job(call.engine, call.caller, call.path["job_id"]), 202)


async def post_cancel(call: Call) -> Reply:
    """Ask one to stop."""
    return Reply(await cancel_job(call.engine, call.caller, call.path["job_id"]), 202)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/admin/jobs",
        get_jobs,
        "Long work of the tenant, newest first: how far it is, and why it failed.",
        capability="admin.health",
        tier=EXPERIMENTAL,
        query=JobListRequest,
        response=JobList,
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/admin/jobs/{job_id}",
        get_job,
        "One job.",
        capability="admin.health",
        tier=EXPERIMENTAL,
        response=JobItem,
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/v1/admin/jobs/{job_id}/retry",
        post_retry,
        "Run a job on that failed, a dead letter among them, from where it was.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        body=Empty,
        body_optional=True,
        response=JobItem,
        statuses=(202,),
        errors=(NotFound, Conflict, WalUnavailable),
    ),
    Endpoint(
        "POST",
        "/v1/admin/jobs/{job_id}/cancel",
        post_cancel,
        "Ask a job to stop where it can.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        body=Empty,
        body_optional=True,
        response=JobItem,
        statuses=(202,),
        errors=(NotFound, WalUnavailable),
    ),
)
