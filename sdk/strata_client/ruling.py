"""Scopes, words, policy, identity and audit (001 §8.8, §8.10, §8.14, §8.16, §8.17, §14)."""

from typing import Unpack

from strata_client import asks
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, NoContent, listing, method, new_key
from strata_client.models import (
    AuditChain,
    AuditPage,
    AuditRow,
    ChainReport,
    EffectivePolicy,
    Hold,
    MembersReceipt,
    PhrasePage,
    PhraseRecord,
    PolicyAnswer,
    PruneReceipt,
    ScopePage,
    ScopeRecord,
    Verification,
    VocabularyPage,
    VocabularyRecord,
    Whoami,
)


class Scopes(Group[M_co]):
    """Where memories live, and who may."""

    @method("POST /v1/scopes", ScopeRecord, is_safe=True)
    def register(self, path: str, **given: Unpack[asks.RegisterRequest]) -> Ask:
        """Register a scope, with its members and policies."""
        return Ask(body=present({"path": path, "idempotency_key": new_key(), **given}))

    @method("GET /v1/scopes", ScopeRecord)
    def get(self, path: str) -> Ask:
        """One scope."""
        return Ask(query={"path": path})

    @listing("GET /v1/scopes/list", ScopePage)
    def list(self, **query: Unpack[asks.ListQuery]) -> Ask:
        """Scopes that can be seen."""
        return Ask(query=query)

    @method("PUT /v1/scopes/members", MembersReceipt)
    def set_members(self, path: str, **given: Unpack[asks.MembersRequest]) -> Ask:
        """Make these the members; the answer says what changed."""
        return Ask(query={"path": path}, body=given)

    @method("DELETE /v1/scopes", NoContent)
    def delete(self, path: str, records: str | None = None) -> Ask:
        """Take a scope away; `records` says what becomes of what it holds: keep or forget."""
        return Ask(query={"path": path, "records": records})

    @method("POST /v1/scopes/prune", PruneReceipt)
    def prune(self, **given: Unpack[asks.PruneRequest]) -> Ask:
        """Scopes that made themselves and fell silent; asked only, unless `dry_run` is off."""
        return Ask(body=present(given))

    @method("GET /v1/scopes/hold", Hold)
    def hold(self, path: str) -> Ask:
        """Whether a legal hold keeps a scope from being erased."""
        return Ask(query={"path": path})

    @method("PUT /v1/scopes/hold", Hold)
    def set_hold(self, path: str, **given: Unpack[asks.HoldRequest]) -> Ask:
        """Begin or end a legal hold."""
        return Ask(query={"path": path}, body=present(given))


class Vocabularies(Group[M_co]):
    """The terms of a tenant."""

    @method("POST /v1/vocabularies", VocabularyRecord, is_safe=True)
    def register(self, name: str, **given: Unpack[asks.VocabularyRequest]) -> Ask:
        """Register one."""
        return Ask(body=present({"name": name, "idempotency_key": new_key(), **given}))

    @listing("GET /v1/vocabularies", VocabularyPage)
    def list(self, **query: Unpack[asks.PageQuery]) -> Ask:
        """All of them."""
        return Ask(query=query)

    @method("GET /v1/vocabularies/{name}", VocabularyRecord)
    def get(self, name: str) -> Ask:
        """One of them."""
        return Ask((name,))

    @method("PUT /v1/vocabularies/{name}", VocabularyRecord)
    def replace(self, name: str, **given: Unpack[asks.VocabularyUpdate]) -> Ask:
        """Say what it is from now on."""
        return Ask((name,), body=present({"idempotency_key": new_key(), **given}))

    @method("DELETE /v1/vocabularies/{name}", NoContent)
    def delete(self, name: str) -> Ask:
        """Take it away."""
        return Ask((name,))


class Phrases(Group[M_co]):
    """A tenant's own words for stretches of time."""

    @method("POST /v1/temporal/phrases", PhraseRecord, is_safe=True)
    def register(self, name: str, **given: Unpack[asks.PhraseRequest]) -> Ask:
        """Register one."""
        return Ask(body=present({"name": name, "idempotency_key": new_key(), **given}))

    @listing("GET /v1/temporal/phrases", PhrasePage)
    def list(self, **query: Unpack[asks.PageQuery]) -> Ask:
        """All of them."""
        return Ask(query=query)

    @method("DELETE /v1/temporal/phrases/{name}", NoContent)
    def delete(self, name: str) -> Ask:
        """Take it away."""
        return Ask((name,))


class Policy(Group[M_co]):
    """What the four tiers say, and what follows for somebody somewhere."""

    @method("GET /v1/policy/deployment", PolicyAnswer)
    def deployment(self) -> Ask:
        """What the deployment says."""
        return Ask()

    @method("GET /v1/policy/tenant/{name}", PolicyAnswer)
    def tenant(self, name: str) -> Ask:
        """What a tenant says."""
        return Ask((name,))

    @method("GET /v1/policy/scope", PolicyAnswer)
    def scope(self, path: str) -> Ask:
        """What a scope says."""
        return Ask(query={"path": path})

    @method("GET /v1/policy/actor/{name}", PolicyAnswer)
    def actor(self, name: str) -> Ask:
        """What is said of an actor."""
        return Ask((name,))

    @method("PUT /v1/policy/deployment", PolicyAnswer)
    def set_deployment(self, **given: Unpack[asks.PolicyDocument]) -> Ask:
        """Say it for the deployment."""
        return Ask(body=present(given))

    @method("PUT /v1/policy/tenant/{name}", PolicyAnswer)
    def set_tenant(self, name: str, **given: Unpack[asks.PolicyDocument]) -> Ask:
        """Say it for a tenant."""
        return Ask((name,), body=present(given))

    @method("PUT /v1/policy/scope", PolicyAnswer)
    def set_scope(self, path: str, **given: Unpack[asks.PolicyDocument]) -> Ask:
        """Say it for a scope."""
        return Ask(query={"path": path}, body=present(given))

    @method("PUT /v1/policy/actor/{name}", PolicyAnswer)
    def set_actor(self, name: str, **given: Unpack[asks.PolicyDocument]) -> Ask:
        """Say it of an actor."""
        return Ask((name,), body=present(given))

    @method("GET /v1/policy/effective", EffectivePolicy)
    def effective(self, **query: Unpack[asks.EffectiveQuery]) -> Ask:
        """What is left of it for an actor in a scope; oneself, anywhere, when left out."""
        return Ask(query=query)


class Auth(Group[M_co]):
    """Who one is to the server."""

    @method("GET /v1/auth/whoami", Whoami)
    def whoami(self) -> Ask:
        """The caller, and what it may do."""
        return Ask()

    @method("POST /v1/auth/revoke", NoContent, is_safe=True)
    def revoke(self, **given: Unpack[asks.RevokeRequest]) -> Ask:
        """Let a token no longer be good."""
        return Ask(body=present(given))


class Audit(Group[M_co]):
    """Who did what, and that nobody touched the proof."""

    @listing("GET /v1/audit", AuditPage)
    def list(self, **query: Unpack[asks.AuditQuery]) -> Ask:
        """Audit rows."""
        return Ask(query=query)

    @method("GET /v1/audit/{audit_id}", AuditRow)
    def get(self, audit_id: str) -> Ask:
        """One row."""
        return Ask((audit_id,))

    @method("GET /v1/audit/chain", AuditChain)
    def chain(self) -> Ask:
        """The head of the tree that all rows are leaves of."""
        return Ask()

    @method("POST /v1/audit/chain/verify", ChainReport, is_safe=True)
    def verify_chain(self) -> Ask:
        """Look at every row again."""
        return Ask(body={})

    @method("POST /v1/audit/verify", Verification, is_safe=True)
    def verify(self, **given: Unpack[asks.VerifyRequest]) -> Ask:
        """Whether this was the body of that call."""
        return Ask(body=given)
