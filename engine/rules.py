"""What does policy say, and who may change it?  (001 §5.5)"""

from typing import TYPE_CHECKING, Literal

import msgspec

from engine import policy
from engine.commit import Desk
from engine.rates import in_force
from engine.rows import About
from schemas.caller import SYSTEM, Caller, Decision
from schemas.entry import Directive, SetPolicy
from schemas.errors import InvalidBody, NotFound
from schemas.policy import (
    CAPABILITIES,
    Denial,
    EffectivePolicy,
    PolicyAnswer,
    PolicyDocument,
)
from schemas.scope import is_actor

if TYPE_CHECKING:
    from engine.engine import Engine

_WAY_BACK = "policy.administer.deployment"
TierName = Literal["deployment", "tenant", "scope", "actor"]


class Target(msgspec.Struct, frozen=True):
    """A tier, and which of its documents: a tenant's, a scope's, an actor's."""

    tier: TierName
    name: str = ""


def get_policy(engine: "Engine", caller: Caller, target: Target) -> PolicyAnswer:
    """A tier's document as it stands; the deployment's is open to every caller (001 §5.5)."""
    policy.require_tier(engine, caller, target.tier, target.name, is_reading=True)
    return _answer(engine, caller, target)


async def set_policy(
    engine: "Engine", caller: Caller, target: Target, document: PolicyDocument
) -> PolicyAnswer:
    """Replace a tier's document: a directive in the log, in force for the next request."""
    decision = policy.require_tier(engine, caller, target.tier, target.name)
    _check_patterns(document)
    if target.tier == "deployment" and not policy.verdict(document, _WAY_BACK):
        raise InvalidBody(field="allow", reason=f"without {_WAY_BACK} nobody could change it back")
    await engine.committer.submit(_Change(caller, decision, target, document))
    return _answer(engine, caller, target)


def effective_policy(
    engine: "Engine", caller: Caller, actor: str, scope: str | None
) -> EffectivePolicy:
    """What remains for an actor at a scope after every tier; one's own is open."""
    policy.require_or_own(engine, caller, "policy.administer.actor", is_own=actor == caller.actor)
    if not is_actor(actor):
        raise NotFound(f"There is no actor {actor[:80]!r}.")
    whose = caller if actor == caller.actor else Caller(actor=actor, tenant=caller.tenant)
    decisions = [engine.policies.decide(whose, name, scope) for name in CAPABILITIES]
    return EffectivePolicy(
        actor=actor,
        scope=scope,
        deployment_preset=engine.policies.preset.name,
        allowed=[decision.capability for decision in decisions if decision.allowed],
        denied=[
            Denial(capability=decision.capability, denied_by_tier=decision.tier)
            for decision in decisions
            if not decision.allowed
        ],
        rate_limits=_rates(engine, whose, scope),
        natural_level=engine.policies.natural_level(caller.tenant, actor),
    )


def _answer(engine: "Engine", caller: Caller, target: Target) -> PolicyAnswer:
    policies, tenant_no = engine.policies, engine.tenant_no(caller)
    document: PolicyDocument | None = None
    if target.tier == "deployment":
        document = policies.deployment()
    elif target.tier == "tenant":
        document = policies.tenant_document(caller.tenant)
    elif tenant_no is not None and target.tier == "scope":
        document = policies.scope_document(tenant_no, target.name)
    elif tenant_no is not None:
        document = policies.actor_document(tenant_no, target.name)
    return PolicyAnswer(
        tier=target.tier,
        target=target.name or policies.preset.name,
        policy=document or PolicyDocument(),
        preset=policies.preset.name,
        defaults={
            "actor.require_signed": policies.preset.require_signed,
            "scope.auto_register": True,
            "forget.cascade.default": "derived_only",
            "audit.retention": policies.preset.audit_retention,
        },
    )


def _check_patterns(document: PolicyDocument) -> None:
    """A pattern that means nothing is a typing error, and would silently allow or deny nothing."""
    for field in ("allow", "deny"):
        for at, pattern in enumerate(getattr(document, field)):
            probe = PolicyDocument(allow=[pattern])
            if not any(policy.verdict(probe, name) for name in CAPABILITIES):
                raise InvalidBody(field=f"{field}[{at}]", reason=f"{pattern} means no capability")


def _rates(engine: "Engine", caller: Caller, scope: str | None) -> dict[str, str]:
    """The limits in force, as they are enforced."""
    limits = in_force(engine.policies.tiers(caller.tenant, caller.actor, scope))
    named = {kind: getattr(limits, kind) for kind in ("write", "read", "importer")}
    return {kind: rate for kind, rate in named.items() if rate is not None}


class _Change:
    """A proposal to replace one document."""

    entry_count = 1
    byte_count = 1024

    def __init__(
        self, caller: Caller, decision: Decision, target: Target, document: PolicyDocument
    ) -> None:
        # The deployment's own policy belongs to no tenant: it is kept with the system's.
        is_wide = target.tier == "deployment"
        self._writer = msgspec.structs.replace(caller, tenant=SYSTEM.tenant) if is_wide else caller
        self._caller = caller
        self._decision = decision
        self._target = target
        self._document = document

    def decide(self, desk: Desk) -> str:
        """Write it; the last word of two at once is the later one in the log."""
        tier, name = self._target.tier, self._target.name
        scope = name if tier == "scope" else None
        command = SetPolicy(tier=tier, target=name or tier, document=self._document)
        desk.add(self._writer, Directive(command=command, scope=scope))
        return desk.audit(self._caller, self._decision, About(status=200, scope=scope))
