"""Policy: a document a tier, and what they come to (001 §5.5)."""

import msgspec

from api.endpoint import EXPERIMENTAL, STABLE, Call, Endpoint, Reply
from engine.rules import Target, TierName, effective_policy, get_policy, set_policy
from schemas.errors import InvalidScope, MissingField, NotFound
from schemas.policy import EffectivePolicy, PolicyAnswer, PolicyDocument
from schemas.scope import ScopePath


class ScopeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which scope: paths hold slashes, so they are parameters (001 §8.8.2)."""

    path: ScopePath


class EffectiveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom and where; oneself and anywhere when left out."""

    actor: str | None = None
    scope: ScopePath | None = None


def _target(call: Call, tier: TierName) -> Target:
    if tier == "scope":
        return Target(tier, call.query.path)
    return Target(tier, call.path.get("name", ""))


def _get(tier: TierName) -> Endpoint:
    def handle(call: Call) -> Reply:
        """A tier's document."""
        return Reply(get_policy(call.engine, call.caller, _target(call, tier)))

    return _endpoint(tier, "GET", handle)


def _put(tier: TierName) -> Endpoint:
    async def handle(call: Call) -> Reply:
        """Replace a tier's document."""
        target = _target(call, tier)
        return Reply(await set_policy(call.engine, call.caller, target, call.body))

    return _endpoint(tier, "PUT", handle)


def _endpoint(tier: TierName, method: str, handler: object) -> Endpoint:
    is_put = method == "PUT"
    path = f"/v1/policy/{tier}" + ("/{name}" if tier in ("tenant", "actor") else "")
    is_open = tier == "deployment" and not is_put
    return Endpoint(
        method,
        path,
        handler,  # type: ignore[arg-type]
        f"{'Replace' if is_put else 'Read'} the {tier}'s policy document.",
        capability=None if is_open else f"policy.administer.{tier}",
        tier=EXPERIMENTAL if is_put else STABLE,
        query=ScopeQuery if tier == "scope" else Endpoint.query,
        body=PolicyDocument if is_put else None,
        response=PolicyAnswer,
        errors=(InvalidScope, MissingField, NotFound) if tier == "scope" else (NotFound,),
    )


def get_effective(call: Call) -> Reply:
    """What remains after every tier."""
    query: EffectiveQuery = call.query
    actor = query.actor or call.caller.actor
    return Reply(effective_policy(call.engine, call.caller, actor, query.scope))


_TIERS: tuple[TierName, ...] = ("deployment", "tenant", "scope", "actor")

ENDPOINTS = (
    *(_get(tier) for tier in _TIERS),
    *(_put(tier) for tier in _TIERS),
    Endpoint(
        "GET",
        "/v1/policy/effective",
        get_effective,
        "The capabilities that remain for an actor at a scope, and who denied the others.",
        tier=STABLE,
        query=EffectiveQuery,
        response=EffectivePolicy,
        errors=(InvalidScope, NotFound),
    ),
)
