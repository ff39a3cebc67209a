"""What may be allowed, and what does a tier say about it?  (001 §5)"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.scope import ScopePath

CAPABILITIES: Final[dict[str, str]] = {
    "scope.create.global": "registering a global:* scope",
    "scope.create.cross_tenant": "registering a scope path that crosses tenants",
    "scope.create.org": "registering an org:* scope",
    "scope.create.user": "registering a user:* scope",
    "scope.create.agent": "registering an agent:* scope",
    "scope.create.service": "registering a service:* scope",
    "scope.create.ws": "registering a ws:* scope",
    "scope.create.project": "registering a project:* scope",
    "scope.create.team": "registering a team:* scope",
    "scope.create.dept": "registering a dept:* scope",
    "scope.create.app": "registering an app:* scope",
    "scope.create.system": "registering a system:* scope",
    "scope.create.custom": "registering a scope of a type of one's own",
    "scope.administer": "acting for the owner of a scope",
    "scope.write": "writing to a scope",
    "scope.write.elevated": "writing above the actor's natural level",
    "scope.write.on_behalf_of": "recording what another actor did",
    "scope.write.about_other": "recording what is about another than the actor",
    "scope.read.local": "reading exactly the named scope",
    "scope.read.holistic": "reading up the hierarchy",
    "scope.read.descend": "reading down the hierarchy",
    "scope.read.cross_tenant": "reading across tenants",
    "understanding.read": "reading concepts",
    "understanding.read.cross_scope": "reading concepts of sibling scopes",
    "understanding.synthesize": "forcing a synthesis",
    "forget.cascade.derived_only": "forgetting what was derived",
    "forget.cascade.redact_events": "blanking event payloads",
    "forget.gdpr": "erasing events for good",
    "forget.gdpr.cross_workspace": "erasing across shared workspaces",
    "import.from.mem0": "importing from Mem0",
    "import.from.zep": "importing from Zep",
    "import.from.letta": "importing from Letta",
    "import.from.openai": "importing a ChatGPT memory export",
    "import.from.jsonl": "importing JSONL",
    "export.format.mem0": "exporting as Mem0",
    "export.format.zep": "exporting as Zep",
    "export.format.letta": "exporting as Letta",
    "export.format.jsonl": "exporting as JSONL",
    "lifecycle.subscribe": "watching the lifecycle",
    "llm.invoke": "having a language model called",
    "diagnostics.read": "diagnostics in recall and answer",
    "audit.read": "reading one's own audit rows",
    "audit.read.cross_actor": "reading others' audit rows",
    "auth.revoke": "revoking tokens",
    "temporal.phrases.read": "listing temporal phrases",
    "temporal.phrases.write": "registering temporal phrases",
    "vocabulary.read": "listing vocabularies",
    "vocabulary.write": "editing vocabularies",
    "policy.administer.deployment": "setting the deployment's policy",
    "policy.administer.tenant": "setting a tenant's policy",
    "policy.administer.scope": "setting a scope's policy and members",
    "policy.administer.actor": "setting an actor's policy",
    "blob.upload": "uploading blobs",
    "blob.read": "reading blobs",
    "admin.flush": "waiting for views, rebuilding them",
    "admin.compact": "compacting the store",
    "admin.health": "full health and metrics",
}
"""The catalogue of 001 §5.2 and Appendix A, with `scope.administer` (§8.9.5), the closed
`scope.create.<type>` set (§18.2.19) and the fourth export format (§8.12.1)."""

OPERATOR_ONLY: Final = frozenset({"policy.administer.deployment", "admin.flush", "admin.compact"})
"""`Y(op)` in Appendix A."""

TIERS: Final = ("deployment", "tenant", "scope", "actor", "token")
"""From the widest to the narrowest; a token narrows like a tier of its own (001 §4.2)."""

Pattern = Annotated[
    str, Meta(pattern=r"^(\*|[a-z_]+(\.[a-z0-9_]+)*(\.\*)?)$(?!\n)", max_length=128)
]
"""A capability, a family of them (`scope.read.*`), or all (`*`)."""

Rate = Annotated[str, Meta(pattern=r"^[0-9]{1,9}/(s|m|h)$(?!\n)", description="e.g. 100/s")]


class RateLimits(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Calls an actor may make; the importer has a bucket of its own (001 §18.2.6)."""

    write: Rate | None = None
    read: Rate | None = None
    importer: Rate | None = None


class AuditRules(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a tenant's audit rows hold (001 §18.2.15)."""

    store_body_bytes: bool = True


Share = Annotated[float, Meta(ge=0, le=1)]


class LayerRules(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How a tenant wants its derived layers kept (001 §7.4, §7.5.1, §11.3); no other tier is asked.

    It holds for what is derived from then on: a past answer stays what it was.
    """

    confidence_floor: Share = limits.CONFIDENCE_FLOOR
    confidence_after_full_redaction_factor: Share = limits.REDACTION_FACTOR
    understanding_invalidation_threshold: Share = limits.INVALIDATION_THRESHOLD


class PolicyDocument(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What one tier says. Silence means: as the parent says (001 §5.1)."""

    allow: list[Pattern] = []
    deny: list[Pattern] = []
    rate_limits: RateLimits | None = None
    audit: AuditRules | None = None
    layers: LayerRules | None = None
    note: str | None = None


class Denial(msgspec.Struct, frozen=True, kw_only=True):
    """A capability the caller does not have, and who says so."""

    capability: str
    denied_by_tier: str


class EffectivePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What remains after every tier (001 §5.5)."""

    actor: str
    scope: ScopePath | None
    deployment_preset: str
    allowed: list[str]
    denied: list[Denial]
    rate_limits: dict[str, str]
    natural_level: ScopePath | None


class PolicyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A tier's document as it stands."""

    tier: Literal["deployment", "tenant", "scope", "actor"]
    target: str
    policy: PolicyDocument
    preset: str | None = None
    defaults: dict[str, Any] = {}
