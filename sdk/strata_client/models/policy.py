"""Written by scripts/client: models of policy."""

from typing import Any

from msgspec import Struct


class RateLimits(Struct, frozen=True, kw_only=True):
    """Calls an actor may make; the importer has a bucket of its own."""

    write: str | None = None
    read: str | None = None
    importer: str | None = None


class AuditRules(Struct, frozen=True, kw_only=True):
    """What a tenant's audit rows hold."""

    store_body_bytes: bool = True


class LayerRules(Struct, frozen=True, kw_only=True):
    """How a tenant wants its derived layers kept; no other tier is asked."""

    confidence_floor: float = 0.3
    confidence_after_full_redaction_factor: float = 0.5
    understanding_invalidation_threshold: float = 0.5


class PolicyDocument(Struct, frozen=True, kw_only=True):
    """What one tier says. Silence means: as the parent says."""

    allow: list[str] = []
    deny: list[str] = []
    rate_limits: RateLimits | None = None
    audit: AuditRules | None = None
    layers: LayerRules | None = None
    note: str | None = None


class PolicyAnswer(Struct, frozen=True, kw_only=True):
    """A tier's document as it stands."""

    tier: str
    target: str
    policy: PolicyDocument
    preset: str | None = None
    defaults: dict[str, Any] = {}


class Denial(Struct, frozen=True, kw_only=True):
    """A capability the caller does not have, and who says so."""

    capability: str
    denied_by_tier: str


class EffectivePolicy(Struct, frozen=True, kw_only=True):
    """What remains after every tier."""

    actor: str
    scope: str | None
    deployment_preset: str
    allowed: list[str]
    denied: list[Denial]
    rate_limits: dict[str, str]
    natural_level: str | None
