"""How is the server, and what can be done about it?  (001 §8.15, §16)"""

from typing import Any, Unpack

from strata_client import asks
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, listing, method
from strata_client.models import (
    CompactReceipt,
    FlushReceipt,
    Health,
    JobItem,
    JobList,
    Problem,
    ProblemList,
    ProjectorList,
    Ready,
    RebuildReceipt,
    ReplayAnswer,
    RollbackReceipt,
    Version,
)


class Packs(Group[M_co]):
    """What recall gave out before."""

    @method("POST /v1/recall/replay", ReplayAnswer, is_safe=True)
    def replay(self, receipt: asks.RecallReceipt | dict[str, Any]) -> Ask:
        """Ask the same of the engine as it was; the receipt is in a pack's full diagnostics."""
        return Ask(body={"receipt": receipt})


class Admin(Group[M_co]):
    """For those who run it."""

    @method("GET /v1/admin/health", Health, also=(503,))
    def health(self) -> Ask:
        """How every part is; said as well when one is not well."""
        return Ask()

    @method("GET /v1/admin/ready", Ready, also=(503,))
    def ready(self) -> Ask:
        """Whether it takes requests."""
        return Ask()

    @method("GET /v1/admin/metrics", str)
    def metrics(self) -> Ask:
        """Figures for Prometheus."""
        return Ask()

    @method("GET /v1/admin/version", Version)
    def version(self) -> Ask:
        """What it is."""
        return Ask()

    @method("GET /v1/openapi.json", dict[str, Any])
    def openapi(self) -> Ask:
        """The description of every endpoint."""
        return Ask()

    @method("POST /v1/admin/flush-views", FlushReceipt, is_safe=True)
    def flush_views(self, **query: Unpack[asks.FlushQuery]) -> Ask:
        """Wait until what was written can be read."""
        return Ask(query=query)

    @method("POST /v1/admin/compact", CompactReceipt, is_safe=True)
    def compact(self) -> Ask:
        """Give room back to the disk."""
        return Ask(body={})

    @method("GET /v1/admin/projectors", ProjectorList)
    def projectors(self) -> Ask:
        """Versions, lag and parked entries."""
        return Ask()

    @method("POST /v1/admin/projectors/{name}/rebuild", RebuildReceipt)
    def rebuild_projector(self, name: str) -> Ask:
        """Build its views anew beside the old ones."""
        return Ask((name,), body={})

    @method("POST /v1/admin/projectors/{name}/retry", RebuildReceipt)
    def retry_projector(self, name: str) -> Ask:
        """Take parked entries back in."""
        return Ask((name,), body={})

    @method("POST /v1/admin/rebuild", RebuildReceipt)
    def rebuild(self, **query: Unpack[asks.RebuildQuery]) -> Ask:
        """Build every view anew."""
        return Ask(query=query)

    @method("POST /v1/admin/rollback", RollbackReceipt)
    def rollback(self, **given: Unpack[asks.RollbackRequest]) -> Ask:
        """Take somebody's events out of derivation; asked only, unless `dry_run` is off."""
        return Ask(body=present(given))

    @method("GET /v1/admin/rollback/{rollback_id}", RollbackReceipt)
    def get_rollback(self, rollback_id: str) -> Ask:
        """What a rollback took out."""
        return Ask((rollback_id,))

    @method("POST /v1/admin/rollback/{rollback_id}/revert", RollbackReceipt)
    def revert_rollback(self, rollback_id: str) -> Ask:
        """Take it back."""
        return Ask((rollback_id,))


class Jobs(Group[M_co]):
    """Long work of every kind, as an operator sees it."""

    @listing("GET /v1/admin/jobs", JobList)
    def list(self, **query: Unpack[asks.JobListRequest]) -> Ask:
        """Jobs, newest first."""
        return Ask(query=query)

    @method("GET /v1/admin/jobs/{job_id}", JobItem)
    def get(self, job_id: str) -> Ask:
        """One of them."""
        return Ask((job_id,))

    @method("POST /v1/admin/jobs/{job_id}/retry", JobItem)
    def retry(self, job_id: str) -> Ask:
        """Let one that failed go on from where it was."""
        return Ask((job_id,), body={})

    @method("POST /v1/admin/jobs/{job_id}/cancel", JobItem, is_safe=True)
    def cancel(self, job_id: str) -> Ask:
        """Stop one where it can stop."""
        return Ask((job_id,), body={})


class Problems(Group[M_co]):
    """What the error codes mean."""

    @method("GET /v1/errors", ProblemList)
    def list(self) -> Ask:
        """All of them."""
        return Ask()

    @method("GET /v1/errors/{code}", Problem)
    def get(self, code: str) -> Ask:
        """One of them."""
        return Ask((code,))
