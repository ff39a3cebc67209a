"""Written by scripts/client: asks of policy."""

from typing import Required, TypedDict


class ScopeQuery(TypedDict, total=False):
    """Which scope: paths hold slashes, so they are parameters."""

    path: Required[str]


class RateLimits(TypedDict, total=False):
    """Calls an actor may make; the importer has a bucket of its own."""

    write: str | None
    read: str | None
    importer: str | None


class AuditRules(TypedDict, total=False):
    """What a tenant's audit rows hold."""

    store_body_bytes: bool


class LayerRules(TypedDict, total=False):
    """How a tenant wants its derived layers kept; no other tier is asked."""

    confidence_floor: float
    confidence_after_full_redaction_factor: float
    understanding_invalidation_threshold: float


class PolicyDocument(TypedDict, total=False):
    """What one tier says. Silence means: as the parent says."""

    allow: list[str]
    deny: list[str]
    rate_limits: RateLimits | None
    audit: AuditRules | None
    layers: LayerRules | None
    note: str | None


class EffectiveQuery(TypedDict, total=False):
    """For whom and where; oneself and anywhere when left out."""

    actor: str | None
    scope: str | None
