"""What are CogniRelay's tools called, and who may call them?  (000, discovery)

A tool is a route under a name: what it does and what it takes is said by the table of routes.
"""

from typing import Final

import msgspec


class Tool(msgspec.Struct, frozen=True):
    """What the catalogue says of a route; the manifest says the first scope, or its own words."""

    name: str
    scopes: tuple[str, ...] = ()
    is_idempotent: bool = False
    manifest: str | None = None


_READS: Final = ("read:files", "read_namespaces")
_SEARCHES: Final = ("search", "read_namespaces")
_WRITES: Final = ("write:projects", "write_namespaces")
_BOTH: Final = (*_WRITES, "read_namespaces")
_OWNED: Final = (*_WRITES, "authenticated owner")
_FILES: Final = ("read:files",)
_KNOWN: Final = ("authenticated",)

VERSION: Final = "1.4.13"
"""The version of the contract that is spoken."""
PROTOCOL: Final = {"name": "cognirelay-http", "style": "mcp-2025-11-25", "version": "2026-02-25"}
MCP_VERSIONS: Final = ("2025-06-18", "2025-11-25")
"""Versions of MCP that are spoken, the latest last."""
NOT_OFFERED: Final = ("/v1/continuity/refresh/plan", "/v1/continuity/retention/plan")
"""Routes that clients find in the manifest and that say here that they are not served."""

TOOLS: Final = {
    "GET /v1/manifest": Tool("system.manifest", (), is_idempotent=True),
    "GET /v1/discovery/tools": Tool("system.discovery_tools", (), is_idempotent=True),
    "POST /v1/schedule/items": Tool("schedule.create", _WRITES, is_idempotent=True),
    "GET /v1/schedule/items/{schedule_id}": Tool("schedule.get", _READS, is_idempotent=True),
    "GET /v1/schedule/items": Tool("schedule.list", _READS, is_idempotent=True),
    "PATCH /v1/schedule/items/{schedule_id}": Tool("schedule.update", _WRITES),
    "POST /v1/schedule/items/{schedule_id}/acknowledge": Tool("schedule.acknowledge", _WRITES),
    "POST /v1/schedule/items/{schedule_id}/retire": Tool("schedule.retire", _WRITES),
    "POST /v1/context/retrieve": Tool("context.retrieve", _SEARCHES, is_idempotent=True),
    "POST /v1/continuity/upsert": Tool("continuity.upsert", _WRITES),
    "POST /v1/continuity/read": Tool("continuity.read", _READS, is_idempotent=True),
    "POST /v1/continuity/compare": Tool("continuity.compare", _READS, is_idempotent=True),
    "POST /v1/continuity/revalidate": Tool("continuity.revalidate", _BOTH),
    "POST /v1/continuity/list": Tool("continuity.list", _READS, is_idempotent=True),
    "POST /v1/continuity/archive": Tool("continuity.archive", _BOTH),
    "POST /v1/continuity/delete": Tool("continuity.delete", _BOTH),
    "POST /v1/continuity/patch": Tool("continuity.patch", _WRITES),
    "POST /v1/continuity/lifecycle": Tool("continuity.lifecycle", _WRITES),
    "POST /v1/coordination/handoff/create": Tool("coordination.handoff_create", _WRITES),
    "GET /v1/coordination/handoff/{handoff_id}": Tool(
        "coordination.handoff_read",
        _KNOWN,
        is_idempotent=True,
        manifest="authenticated sender|recipient|admin",
    ),
    "GET /v1/coordination/handoffs/query": Tool(
        "coordination.handoffs_query", _FILES, is_idempotent=True
    ),
    "POST /v1/coordination/handoff/{handoff_id}/consume": Tool(
        "coordination.handoff_consume", _KNOWN, manifest="authenticated recipient"
    ),
    "POST /v1/coordination/shared/create": Tool("coordination.shared_create", _WRITES),
    "GET /v1/coordination/shared/{shared_id}": Tool(
        "coordination.shared_read",
        _KNOWN,
        is_idempotent=True,
        manifest="authenticated owner|participant|admin",
    ),
    "GET /v1/coordination/shared/query": Tool(
        "coordination.shared_query", _FILES, is_idempotent=True
    ),
    "POST /v1/coordination/shared/{shared_id}/update": Tool(
        "coordination.shared_update", _OWNED, manifest="authenticated owner"
    ),
    "POST /v1/coordination/reconciliation/open": Tool("coordination.reconciliation_open", _WRITES),
    "GET /v1/coordination/reconciliation/{reconciliation_id}": Tool(
        "coordination.reconciliation_read",
        _KNOWN,
        is_idempotent=True,
        manifest="authenticated owner|participant|admin",
    ),
    "GET /v1/coordination/reconciliations/query": Tool(
        "coordination.reconciliations_query", _FILES, is_idempotent=True
    ),
    "POST /v1/coordination/reconciliation/{reconciliation_id}/resolve": Tool(
        "coordination.reconciliation_resolve", _OWNED, manifest="authenticated owner|admin"
    ),
}
"""By method and path, in the order in which they are listed."""
