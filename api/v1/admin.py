"""Operating it: health, metrics, version, and the few commands an operator has (001 §8.15)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from api.endpoint import EXPERIMENTAL, STABLE, Call, Endpoint, Reply
from api.openapi import document
from engine.admin import (
    compact,
    flush_views,
    health,
    list_projectors,
    package_version,
    readiness,
    rebuild_projector,
    retry_projector,
)
from engine.metrics import exposition
from schemas import limits
from schemas.errors import NotFound, WalUnavailable
from schemas.health import (
    CompactReceipt,
    FlushReceipt,
    Health,
    ProjectorList,
    Ready,
    RebuildReceipt,
    Version,
)


class FlushQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the views."""

    wait_ms: Annotated[int, Meta(ge=1, le=limits.WAIT_MS_MAX)] = limits.WAIT_MS_MAX


class Empty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command without arguments."""


def get_health(call: Call) -> Reply:
    """The state of every part; 503 when it cannot do its work."""
    found = health(call.engine, call.caller)
    return Reply(found, 200 if found.live and found.ready else 503)


def get_ready(call: Call) -> Reply:
    """Whether writes and projection work."""
    reasons = readiness(call.engine)
    ready = Ready(ready=not reasons, reasons=reasons, checks={"log": not reasons})
    return Reply(ready, 503 if reasons else 200)


def get_metrics(call: Call) -> Reply:
    """Prometheus text."""
    text = exposition(call.engine, call.caller, call.counts)
    return Reply(raw=text, media_type=CONTENT_TYPE_LATEST.encode())


def get_version(call: Call) -> Reply:
    """What is running."""
    tiers: dict[str, int] = {}
    for endpoint in call.table:
        tiers[endpoint.tier] = tiers.get(endpoint.tier, 0) + 1
    capabilities = sorted({e.capability for e in call.table if e.capability is not None})
    found = Version(
        name="strata",
        version=package_version(),
        api_version="v1",
        capabilities=capabilities,
        endpoints=tiers,
    )
    return Reply(found)


async def post_flush(call: Call) -> Reply:
    """Wait for every view."""
    return Reply(await flush_views(call.engine, call.caller, call.query.wait_ms))


def post_compact(call: Call) -> Reply:
    """Rewrite the files without what was deleted."""
    return Reply(compact(call.engine, call.caller))


def get_projectors(call: Call) -> Reply:
    """Every projector."""
    return Reply(list_projectors(call.engine, call.caller))


def post_rebuild(call: Call) -> Reply:
    """Rebuild beside the old rows."""
    return Reply(rebuild_projector(call.engine, call.caller, call.path["name"]), 202)


async def post_retry(call: Call) -> Reply:
    """Take parked entries back in."""
    return Reply(await retry_projector(call.engine, call.caller, call.path["name"]), 202)


def get_openapi(call: Call) -> Reply:
    """This very interface, as OpenAPI 3.1."""
    return Reply(document(call.table))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/admin/health",
        get_health,
        "Liveness, readiness, projector lag, durability and disk.",
        capability="admin.health",
        tier=STABLE,
        response=Health,
        statuses=(200, 503),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/admin/ready",
        get_ready,
        "Whether writes and projection work.",
        tier=STABLE,
        is_open=True,
        response=Ready,
        statuses=(200, 503),
    ),
    Endpoint(
        "GET",
        "/v1/admin/metrics",
        get_metrics,
        "Prometheus metrics.",
        capability="admin.health",
        tier=STABLE,
        response=str,
        media_type="text/plain",
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/admin/version",
        get_version,
        "Build and API version.",
        tier=STABLE,
        is_open=True,
        response=Version,
    ),
    Endpoint(
        "POST",
        "/v1/admin/flush-views",
        post_flush,
        "Wait until every view has caught up with the log.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        query=FlushQuery,
        body=Empty,
        body_optional=True,
        response=FlushReceipt,
    ),
    Endpoint(
        "POST",
        "/v1/admin/compact",
        post_compact,
        "Rewrite the files without what was deleted.",
        capability="admin.compact",
        tier=EXPERIMENTAL,
        body=Empty,
        body_optional=True,
        response=CompactReceipt,
        errors=(WalUnavailable,),
        off_loop=True,
    ),
    Endpoint(
        "GET",
        "/v1/admin/projectors",
        get_projectors,
        "Every projector: version, state, lag, parked entries.",
        capability="admin.health",
        tier=EXPERIMENTAL,
        response=ProjectorList,
        off_loop=True,
    ),
    Endpoint(
        "POST",
        "/v1/admin/projectors/{name}/rebuild",
        post_rebuild,
        "Rebuild a projector's views beside the old ones, then swap.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        body=Empty,
        body_optional=True,
        response=RebuildReceipt,
        statuses=(202,),
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/v1/admin/projectors/{name}/retry",
        post_retry,
        "Take a projector's parked entries back in.",
        capability="admin.flush",
        tier=EXPERIMENTAL,
        body=Empty,
        body_optional=True,
        response=RebuildReceipt,
        statuses=(202,),
        errors=(NotFound, WalUnavailable),
    ),
    Endpoint(
        "GET",
        "/v1/openapi.json",
        get_openapi,
        "This interface as OpenAPI 3.1.",
        tier=STABLE,
        is_open=True,
        response=dict[str, Any],
    ),
)
