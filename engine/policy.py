"""May this caller do this here, and which tier says no?  (001 §5)

The deployment tier decides by preset. Each question is answered with the tier that answered it.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from schemas.caller import Caller, Decision
from schemas.errors import PolicyDenied

if TYPE_CHECKING:
    from engine.engine import Engine


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment allows, whatever its tenants say (001 §5.3)."""

    name: str
    allow: tuple[str, ...]
    deny: tuple[str, ...] = ()
    require_signed: bool = True
    audit_retention: str


_SHARED_ALLOW: Final = (
    "scope.create.org",
    "scope.create.user",
    "scope.create.agent",
    "scope.create.ws",
    "scope.write",
    "scope.read.local",
    "scope.read.holistic",
    "scope.read.descend",
    "understanding.read",
    "understanding.synthesize",
    "forget.cascade.derived_only",
    "forget.cascade.redact_events",
    "forget.gdpr",
    "forget.gdpr.cross_workspace",
    "import.*",
    "export.*",
    "lifecycle.subscribe",
    "llm.invoke",
    "audit.read",
    "auth.revoke",
    "temporal.phrases.*",
    "vocabulary.*",
    "blob.*",
    "policy.administer.*",
    "admin.*",
)
_SHARED_DENY: Final = (
    "scope.create.global",
    "scope.create.cross_tenant",
    "scope.create.custom",
    "scope.read.cross_tenant",
    "understanding.read.cross_scope",
    "audit.read.cross_actor",
)
_CROSS_TENANT: Final = ("scope.create.cross_tenant", "scope.read.cross_tenant")

PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset(name="on_prem_enterprise", allow=("*",), audit_retention="P1Y"),
        Preset(
            name="cloud_shared_saas",
            allow=_SHARED_ALLOW,
            deny=_SHARED_DENY,
            audit_retention="P2Y",
        ),
        Preset(name="cloud_private", allow=("*",), deny=_CROSS_TENANT, audit_retention="P3Y"),
        Preset(name="dev_local", allow=("*",), require_signed=False, audit_retention="P7D"),
    )
}
"""The four of 001 §5.3, with the defaults of Appendix A."""


@lru_cache(maxsize=1024)
def decide(preset_name: str, capability: str) -> Decision:
    """The deployment tier's answer: a denial wins over an allowance, silence denies."""
    preset = PRESETS[preset_name]
    denied = any(fnmatchcase(capability, pattern) for pattern in preset.deny)
    allowed = not denied and any(fnmatchcase(capability, pattern) for pattern in preset.allow)
    return Decision(
        capability=capability,
        allowed=allowed,
        tier="deployment",
        preset=preset_name,
        remediation="" if allowed else f"preset {preset_name} does not grant {capability}",
    )


def require_all(
    engine: "Engine", caller: Caller, capability: str, scopes: Iterable[str]
) -> Decision:
    """Allow for every scope, or raise for the first that denies."""
    decision = decide(engine.settings.preset, capability)
    for scope in scopes:
        decision = require(engine, caller, capability, scope)
    return decision


def require(
    engine: "Engine", caller: Caller, capability: str, scope: str | None = None
) -> Decision:
    """Allow, or raise PolicyDenied with the capability, the tier and what to do about it."""
    decision = decide(engine.settings.preset, capability)
    if decision.allowed:
        return decision
    raise PolicyDenied(
        capability=capability,
        denied_by_tier=decision.tier,
        decided_by_tier=decision.tier,
        deployment_preset=decision.preset,
        remediation=decision.remediation,
        actor=caller.actor,
        scope=scope,
    )
