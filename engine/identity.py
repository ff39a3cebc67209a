"""Who am I here, and which tokens are no longer good?  (001 §8.16)"""

from datetime import timedelta
from typing import TYPE_CHECKING

from engine import policy
from engine.commit import Desk
from engine.rows import About
from projectors.control import revoked_key
from schemas.caller import Caller, Decision
from schemas.entry import Directive, Revoke
from schemas.identity import RevokeRequest, TokenSummary, Whoami
from schemas.policy import CAPABILITIES
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

_LONGEST = timedelta(days=31)
"""The longest a token can live, with its leeway: a revocation is needed no longer than that."""


def whoami(engine: "Engine", caller: Caller) -> Whoami:
    """The caller as the server sees it; open to every authenticated caller."""
    decisions = policy.of(engine, caller, CAPABILITIES)
    token = None
    if caller.token_id is not None:
        token = TokenSummary(jti=caller.token_id, iss=caller.issuer, exp=caller.expires_s)
    return Whoami(
        caller=caller.actor,
        actor=caller.actor,
        tenant_id=caller.tenant,
        deployment_preset=engine.policies.preset.name,
        token=token,
        effective_capabilities=[name for name, decision in decisions.items() if decision.allowed],
        scopes=[str(grant) for grant in caller.scopes] if caller.scopes is not None else None,
        natural_level=engine.policies.natural_level(caller.tenant, caller.actor),
    )


async def revoke(engine: "Engine", caller: Caller, request: RevokeRequest) -> None:
    """Refuse a token from now on; anyone may revoke the one in hand (001 §4.5)."""
    decision = policy.require_or_own(
        engine, caller, "auth.revoke", is_own=request.jti == caller.token_id
    )
    await engine.committer.submit(_Revocation(engine, caller, decision, request))


class _Revocation:
    """A proposal to revoke one token."""

    entry_count = 1
    byte_count = 512

    def __init__(
        self, engine: "Engine", caller: Caller, decision: Decision, request: RevokeRequest
    ) -> None:
        self._caller = caller
        self._decision = decision
        expires_at = from_us(engine.clock.now_us()) + _LONGEST
        self._command = Revoke(jti=request.jti, expires_at=expires_at, reason=request.reason)

    def decide(self, desk: Desk) -> str:
        """Revoke once; a repeat changes nothing."""
        tenant_no = desk.tenant_no(self._caller)
        if desk.overlay.get(tenant_no, "revoked", revoked_key(self._command.jti)) is None:
            desk.add(self._caller, Directive(command=self._command))
        return desk.audit(self._caller, self._decision, About(status=204))
