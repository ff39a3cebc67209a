"""May this caller do this here, and which tier says no?  (001 §5)

Four tiers narrow each other: deployment, tenant, scope, actor; a token narrows like a fifth. What a
tier does not speak of is as its parent says. Deciding is pure; `Policies` finds the documents.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.presets import Preset
from engine.state.names import SCOPE, TENANT, Names
from engine.state.views import Unit
from projectors.control import DEPLOYMENT_KEY, TENANT_KEY, policy_key, scope_key
from projectors.control.rows import ScopeRow
from schemas.caller import SYSTEM, Caller, Decision
from schemas.envelope import Envelope
from schemas.errors import Denied, InvalidEnvelope, NotAMember, NotFound, PolicyDenied
from schemas.policy import CAPABILITIES, OPERATOR_ONLY, PolicyDocument
from schemas.scope import ancestors
from schemas.token import Grant

if TYPE_CHECKING:
    from engine.engine import Engine


# ── deciding (pure) ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier's document, for a decision."""

    name: str
    document: PolicyDocument


def _specificity(pattern: str, capability: str) -> int:
    """How closely a pattern means a capability; 0 when it does not."""
    if pattern == capability:
        return len(capability) + 2
    if pattern == "*":
        return 1
    if pattern.endswith(".*") and capability.startswith(pattern[:-1]):
        return len(pattern)
    return 0


def verdict(document: PolicyDocument, capability: str) -> bool | None:
    """What a tier says: the closest pattern wins, a tie denies, no match is silence."""
    allow = max((_specificity(pattern, capability) for pattern in document.allow), default=0)
    deny = max((_specificity(pattern, capability) for pattern in document.deny), default=0)
    if not allow and not deny:
        return None
    return allow > deny


def decide(capability: str, tiers: Sequence[Tier], preset: str) -> Decision:
    """Every tier must allow; a tier can never grant what one above it denies (001 §5.1.1).

    The deployment's silence leaves the capability to the tenant, whose silence is a no.
    """
    first, *rest = tiers
    said = verdict(first.document, capability)
    if said is False:
        return _denied(capability, first.name, preset)
    speaker, is_granted = first.name, said is True
    for tier in rest:
        said = verdict(tier.document, capability)
        if said is False:
            return _denied(capability, tier.name, preset)
        if said is True:
            speaker = tier.name
            is_granted = is_granted or tier.name == "tenant"
    if not is_granted:
        return _denied(capability, "tenant" if rest else first.name, preset)
    return Decision(capability=capability, allowed=True, tier=speaker, preset=preset)


def _denied(capability: str, tier: str, preset: str) -> Decision:
    hints = {
        "deployment": f"preset {preset} does not grant {capability}",
        "tenant": f"a tenant administrator may allow {capability}",
        "scope": f"an owner of the scope may allow {capability}",
        "actor": f"the actor's own policy denies {capability}",
        "token": f"the token was minted without {capability} here",
    }
    return Decision(
        capability=capability, allowed=False, tier=tier, preset=preset, remediation=hints[tier]
    )


def token_allows(caller: Caller, capability: str, scope: str | None) -> bool:
    """Whether the token leaves a capability over, at this place (001 §4.2)."""
    if caller.capabilities is not None and capability not in caller.capabilities:
        return False
    if capability.startswith("forget.gdpr") and caller.actor.startswith("service:"):
        return False  # 001 §4.4: erasing takes a person's own session
    return caller.scopes is None or scope is None or grants(caller.scopes, capability, scope)


def grants(scopes: Sequence[Grant], capability: str, scope: str) -> bool:
    """Whether path-bound grants cover a capability at a scope.

    A capability that some grant names needs a grant that names it; any other may be used wherever
    the token is bound to at all: a token for one scope is good for no other, on any route.
    """
    if any(grant.capability == capability for grant in scopes):
        return any(grant.allows(capability, scope) for grant in scopes)
    return any(grant.covers(scope) for grant in scopes)


# ── finding the documents ────────────────────────────────────────────────────────────────────

_ROLES: Final = {"reader": 1, "writer": 2, "owner": 3}
_NEEDED: Final = (
    ("scope.write", 2),
    ("scope.read", 1),
    ("policy.administer.scope", 3),
    ("scope.administer", 3),
)


_PLAIN: Final = frozenset(
    name
    for name in CAPABILITIES
    if name not in OPERATOR_ONLY and not name.startswith("forget.gdpr")
)
"""Capabilities that do not depend on who asks, beyond what tiers and tokens say."""

TRAVERSALS: Final = {"holistic": "scope.read.holistic", "descend": "scope.read.descend"}
"""Views that leave the scope they are asked of, and what that takes."""


_DOCUMENTS: Final = frozenset({"policies", "actor_policies"})
_DECIDING: Final = _DOCUMENTS | {"scopes"}
"""Tables whose rows can change a decision; who belongs to a scope is in the last of them."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What bears on an actor's decisions whatever the scope: documents above scopes, and its own.

    A tenant that has no number yet has no documents of its own; its first one clears what is
    remembered.
    """

    tenant_no: int | None
    above: list[Tier]
    own: list[Tier]


class Policies:
    """The documents of every tier, remembered until control state changes."""

    def __init__(self, preset: Preset, inline: Unit, names: Names) -> None:
        self.preset = preset
        self._views = inline
        self._names = names
        self._decisions: dict[tuple[str, str, str, str | None], Decision] = {}
        self._standing: dict[tuple[str, str], Standing] = {}
        self._admitted: set[tuple[str, str, str, str]] = set()
        self._levels: dict[int, Levels] = {}
        self._body_bytes: dict[str, bool] = {}
        self.epoch = 0

    def changed(self, pending: Mapping[tuple[int, str, bytes], Any]) -> None:
        """Control rows were written: what was remembered may no longer hold.

        Most batches write none: a document of a surface or a cancellation decides nothing.
        """
        tables = {table for _, table, _ in pending}
        if not tables & _DECIDING:
            return
        self.epoch += 1
        if not all(_is_first_write(table, row) for (_, table, _), row in pending.items()):
            self._admitted.clear()
        if tables & _DOCUMENTS:
            self._decisions.clear()
            self._standing.clear()
            self._body_bytes.clear()
        for (tenant_no, table, _), row in pending.items():
            if table == "scopes" and tenant_no in self._levels:
                if isinstance(row, ScopeRow):
                    self._levels[tenant_no].take(row)
                else:
                    del self._levels[tenant_no]

    def decide(self, caller: Caller, capability: str, scope: str | None) -> Decision:
        """The tiers' answer for this caller, the token's word included."""
        place = (caller.tenant, caller.actor, capability, scope)
        found = self._decisions.get(place)
        if found is None:
            if len(self._decisions) > _REMEMBERED_MAX:
                self._decisions.clear()
                self._standing.clear()
                self._admitted.clear()
            tiers = self.tiers(caller.tenant, caller.actor, scope)
            found = self._decisions[place] = decide(capability, tiers, self.preset.name)
        if not found.allowed:
            return found
        if caller.capabilities is None and caller.scopes is None and capability in _PLAIN:
            return found  # no token narrows it, and it is nobody's in particular
        if not token_allows(caller, capability, scope):
            return _denied(capability, "token", self.preset.name)
        if capability in OPERATOR_ONLY and not self.is_operator(caller):
            return _denied(capability, "deployment", self.preset.name)
        return found

    def is_operator(self, caller: Caller) -> bool:
        """Who runs the deployment: the system's tenant, and everyone on a machine of one's own."""
        return caller.tenant == SYSTEM.tenant or not self.preset.require_signed

    def tiers(self, tenant: str, actor: str, scope: str | None) -> list[Tier]:
        """Every document that bears on a decision, widest first."""
        standing = self._standing.get((tenant, actor))
        if standing is None:
            standing = self._standing[tenant, actor] = self._stand(tenant, actor)
        found = [*standing.above]
        if standing.tenant_no is not None and scope:
            for path in reversed(ancestors(scope)):
                document = self.scope_document(standing.tenant_no, path)
                if document is not None:
                    found.append(Tier("scope", document))
        return [*found, *standing.own]

    def _stand(self, tenant: str, actor: str) -> "Standing":
        above = [Tier("deployment", self.deployment())]
        tenant_no = self._names.known(TENANT, 0, tenant)
        if tenant_no is None:
            return Standing(None, above, [])
        row = self._views.get(tenant_no, "policies", TENANT_KEY)
        if row is not None:
            above.append(Tier("tenant", row.document))
        own = self.actor_document(tenant_no, actor)
        return Standing(tenant_no, above, [] if own is None else [Tier("actor", own)])

    def deployment(self) -> PolicyDocument:
        """The preset, or what an operator set in its place."""
        system_no = self._names.known(TENANT, 0, SYSTEM.tenant)
        row = None
        if system_no is not None:
            row = self._views.get(system_no, "policies", DEPLOYMENT_KEY)
        return self.preset.document if row is None else row.document

    def tenant_document(self, tenant: str) -> PolicyDocument | None:
        """What the tenant says."""
        tenant_no = self._names.known(TENANT, 0, tenant)
        row = None if tenant_no is None else self._views.get(tenant_no, "policies", TENANT_KEY)
        return None if row is None else row.document

    def stores_body_bytes(self, tenant: str) -> bool:
        """Whether the tenant's audit rows say how long a body was (001 §18.2.15)."""
        found = self._body_bytes.get(tenant)
        if found is None:
            document = self.tenant_document(tenant)
            rules = document.audit if document is not None else None
            found = self._body_bytes[tenant] = rules is None or rules.store_body_bytes
        return found

    def scope_document(self, tenant_no: int, scope: str) -> PolicyDocument | None:
        """What a scope's owner says."""
        scope_no = self._names.known(SCOPE, tenant_no, scope)
        if scope_no is None:
            return None
        row = self._views.get(tenant_no, "policies", policy_key(scope_no))
        return None if row is None else row.document

    def actor_document(self, tenant_no: int, actor: str) -> PolicyDocument | None:
        """What is said of one actor."""
        row = self._views.get(tenant_no, "actor_policies", b"")
        found = None if row is None else row.actors.get(actor)
        return None if found is None else found.document

    # ── membership ───────────────────────────────────────────────────────────────────────────

    def scope_row(self, tenant_no: int, scope: str) -> ScopeRow | None:
        """A scope's registration."""
        scope_no = self._names.known(SCOPE, tenant_no, scope)
        if scope_no is None:
            return None
        row: ScopeRow | None = self._views.get(tenant_no, "scopes", scope_key(scope_no))
        return row

    def check_membership(self, caller: Caller, capability: str, scope: str) -> None:
        """A registered scope is its members'; roles are inherited from the scopes above it."""
        place = (caller.tenant, caller.actor, capability, scope)
        if place in self._admitted:
            return
        self._check_role(caller, capability, scope)
        self._admitted.add(place)

    def _check_role(self, caller: Caller, capability: str, scope: str) -> None:
        needed = next((level for name, level in _NEEDED if capability.startswith(name)), 0)
        tenant_no = self._names.known(TENANT, 0, caller.tenant)
        if not needed or tenant_no is None:
            return
        row = self.scope_row(tenant_no, scope)
        if row is None or row.auto_provisioned:
            return  # 001 §3.4.4: the scratchpad is anyone's who may write at all
        if row.detached and self._may_claim(caller, capability):
            return
        rows = [self.scope_row(tenant_no, path) for path in ancestors(scope)]
        members = [member for found in rows if found is not None for member in found.members]
        roles = [_ROLES[member.role] for member in members if member.actor == caller.actor]
        if max(roles, default=0) < needed:
            wanted = next(role for role, level in _ROLES.items() if level == needed)
            raise NotAMember(
                f"{caller.actor} is not a {wanted} of {scope}.",
                scope=scope,
                capability=capability,
                role_needed=wanted,
                denied_by_tier="scope",
                decided_by_tier="scope",
            )

    def _may_claim(self, caller: Caller, capability: str) -> bool:
        """Nobody is left in a detached scope: a tenant's administrator may give it members."""
        tenant = "policy.administer.tenant"
        return capability == "policy.administer.scope" and self.decide(caller, tenant, None).allowed

    def natural_level(self, tenant: str, actor: str) -> str | None:
        """The deepest scope in which the actor is an owner or writer (001 §18.2.5)."""
        paths = self._paths(tenant, actor)
        return max(paths, key=lambda path: (path.count("/"), path), default=None)

    def is_elevated(self, tenant: str, actor: str, scope: str) -> bool:
        """Whether a write to this scope is above where the actor belongs."""
        paths = self._paths(tenant, actor)
        return scope not in paths and any(path.startswith(scope + "/") for path in paths)

    def _paths(self, tenant: str, actor: str) -> set[str]:
        tenant_no = self._names.known(TENANT, 0, tenant)
        if tenant_no is None:
            return set()
        levels = self._levels.get(tenant_no)
        if levels is None:
            levels = self._levels[tenant_no] = Levels()
            for _, row in self._views.scan(tenant_no, "scopes"):
                levels.take(row)
        return levels.paths.get(actor, set())


def _is_first_write(table: str, row: Any) -> bool:
    """Whether a scope's first write registered it: that admits further people, and bars nobody."""
    if table != "scopes":
        return table not in _DECIDING
    return isinstance(row, ScopeRow) and row.auto_provisioned and row.updated_at is None


class Levels:
    """Where each actor of a tenant is an owner or writer."""

    def __init__(self) -> None:
        self.paths: dict[str, set[str]] = {}
        self._writers: dict[str, list[str]] = {}

    def take(self, row: ScopeRow) -> None:
        """A scope's members are now these."""
        for actor in self._writers.pop(row.path, ()):
            self.paths[actor].discard(row.path)
        writers = [member.actor for member in row.members if member.role != "reader"]
        for actor in writers:
            self.paths.setdefault(actor, set()).add(row.path)
        self._writers[row.path] = writers


_REMEMBERED_MAX: Final = 100_000


def of(engine: "Engine", caller: Caller, capabilities: Iterable[str]) -> dict[str, Decision]:
    """What each capability comes to for a caller, wherever it may be used."""
    return {name: engine.policies.decide(caller, name, None) for name in capabilities}


def may(engine: "Engine", caller: Caller, capability: str, scope: str | None) -> bool:
    """The same question without the exception, for listings that leave out what is not allowed."""
    try:
        require(engine, caller, capability, scope or None)
    except Denied:
        return False
    return True


def require_or_own(engine: "Engine", caller: Caller, capability: str, *, is_own: bool) -> Decision:
    """What one may do with one's own needs no capability."""
    if is_own:
        preset = engine.policies.preset.name
        return Decision(capability=capability, allowed=True, tier="actor", preset=preset)
    return require(engine, caller, capability)


def require_tier(
    engine: "Engine", caller: Caller, tier: str, name: str, *, is_reading: bool = False
) -> Decision:
    """To read or set a tier's document; another tenant's does not exist (DESIGN §8.2)."""
    if tier == "tenant" and name != caller.tenant:
        raise NotFound(f"There is no tenant {name[:80]!r}.")
    is_own = tier == "actor" and name == caller.actor
    if is_reading and (tier == "deployment" or is_own):
        return require_or_own(engine, caller, f"policy.administer.{tier}", is_own=True)
    return require(engine, caller, f"policy.administer.{tier}", name if tier == "scope" else None)


def require_all(
    engine: "Engine", caller: Caller, capability: str, scopes: Iterable[str]
) -> Decision:
    """Allow for every scope, or raise for the first that denies."""
    decision: Decision | None = None
    for scope in scopes:
        decision = require(engine, caller, capability, scope)
    return decision or require(engine, caller, capability)


def require_view(engine: "Engine", caller: Caller, scope: str, view: str) -> Decision:
    """To read a scope, and to walk up or down from it when the view does (001 §3.4.2)."""
    decision = require(engine, caller, "scope.read.local", scope)
    if view in TRAVERSALS:
        require(engine, caller, TRAVERSALS[view], scope)
    return decision


def require(
    engine: "Engine", caller: Caller, capability: str, scope: str | None = None
) -> Decision:
    """Allow, or raise PolicyDenied with the capability, the tier and what to do about it."""
    assert capability in CAPABILITIES, f"{capability} is not in the catalogue"
    policies = engine.policies
    decision = policies.decide(caller, capability, scope)
    if not decision.allowed:
        raise PolicyDenied(
            capability=capability,
            denied_by_tier=decision.tier,
            decided_by_tier=decision.tier,
            deployment_preset=decision.preset,
            remediation=decision.remediation,
            actor=caller.actor,
            scope=scope,
        )
    if scope is not None:
        policies.check_membership(caller, capability, scope)
    return decision


def require_level(engine: "Engine", caller: Caller, scope: str) -> None:
    """Writing above where one belongs is a capability of its own (001 §18.2.5)."""
    policies = engine.policies
    # Most may: then where the caller belongs need not be worked out.
    if policies.decide(caller, "scope.write.elevated", scope).allowed:
        return
    if policies.is_elevated(caller.tenant, caller.actor, scope):
        require(engine, caller, "scope.write.elevated", scope)


def require_identities(engine: "Engine", caller: Caller, envelope: Envelope, at: str = "") -> None:
    """Writing for or about someone else is a capability of its own (001 §3.5.1)."""
    actor = envelope.observed_actor.id if envelope.observed_actor else caller.actor
    if actor != caller.actor:
        require(engine, caller, "scope.write.on_behalf_of", envelope.scope)
    if envelope.subject is not None and envelope.subject.id != actor:
        require(engine, caller, "scope.write.about_other", envelope.scope)
    into = envelope.directives.consolidate_into if envelope.directives else None
    if into is None:
        return
    try:
        require(engine, caller, "scope.write", into)
    except PolicyDenied as denied:
        # 001 §18.2(12): refused at validation time, not as a denial.
        field = f"{at}directives.consolidate_into"
        raise InvalidEnvelope(field=field, reason=denied.message) from denied
