"""Does a job's row say how far it is, and does it begin again only when it failed?"""

import pytest

from projectors.jobs import DEAD_LETTER, JOBS, job_key
from schemas.entry import Directive
from schemas.jobs import CancelJob, EndJob, MoveJob, RetryJob, StartJob

JOB = "imp_019a8f3e-0000-7000-8000-000000000001"


def told(entry, overlay, *commands):
    """The row, after these commands."""
    for offset, command in enumerate(commands, start=1):
        for change in tuple(JOBS.project(entry(offset, Directive(command=command)), overlay.of(1))):
            overlay.apply(1, change)
    return overlay.get(1, "jobs", job_key(JOB))


START = StartJob(job_id=JOB, kind="import", request={})
MOVED = MoveJob(job_id=JOB, kind="import", processed=200, total=300, position="200")
RETRY = RetryJob(job_id=JOB)


def end(status, **summary):
    return EndJob(job_id=JOB, kind="import", status=status, summary=summary)


def test_a_failed_job_is_run_on_from_where_it_was(entry, overlay):
    """It keeps its position, and counts that it was tried again."""
    failed = told(entry, overlay, START, MOVED, end("failed", error_code=DEAD_LETTER))
    again = told(entry, overlay, RETRY)

    assert (True, True) == (failed.is_dead_letter, failed.is_over)
    assert ("running", "200", 1, {}) == (
        again.status,
        again.position,
        again.retries,
        again.summary,
    )
    assert not again.is_dead_letter


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_what_is_over_stays_so(entry, overlay, status):
    """Neither a retry nor anything else changes it."""
    over = told(entry, overlay, START, MOVED, end(status))
    left = told(entry, overlay, RETRY, MOVED, CancelJob(job_id=JOB), end("failed"))

    assert over == left


def test_a_job_that_runs_is_not_begun_again(entry, overlay):
    """It is running already."""
    running = told(entry, overlay, START, MOVED)

    assert running == told(entry, overlay, RETRY)


def test_a_failure_is_no_dead_letter_by_itself(entry, overlay):
    """What its caller asked for may have been impossible."""
    assert not told(entry, overlay, START, end("failed", error_code="NOT_FOUND")).is_dead_letter
