"""Written by scripts/client: asks of audit."""

from datetime import datetime
from typing import Literal, Required, TypedDict


class AuditQuery(TypedDict, total=False):
    """Filters of a page of audit rows; `since` and `until` bound `ts`, half-open."""

    scope: str | None
    actor: str | None
    capability: str | None
    decision: Literal["allow", "deny"] | None
    since: str | datetime | None
    until: str | datetime | None
    limit: int
    cursor: str | None


class VerifyRequest(TypedDict, total=False):
    """Was this the body of that call?"""

    audit_id: Required[str]
    body: Required[str]
