"""Who is calling?  The only place where headers become an identity."""

from functools import lru_cache

from api.principals import LOCAL_TENANT, Principals
from engine.engine import Engine
from engine.tokens import ITSELF, Verified
from schemas import limits
from schemas.caller import Caller
from schemas.errors import BadSignature, InvalidActor, MissingToken
from schemas.scope import CALLER_TYPES, is_actor

LOCAL_ACTOR = "user:local"
NOBODY = Caller(actor="user:nobody", tenant="nobody", capabilities=())
"""Who calls an open endpoint without a token: it can do nothing else."""


def recognise(
    engine: Engine,
    headers: dict[bytes, bytes],
    *,
    is_open: bool,
    asserts_actor: bool = True,
    principals: Principals | None = None,
) -> Caller | None:
    """The caller; None when there is a token that was not seen before, which `verify` looks at.

    Under `dev_local` an unsigned actor is taken at its word. Where the contract has no header for
    the actor, the token alone names it.
    """
    token = _bearer(headers)
    if principals is not None:
        return _known(principals, headers, token, is_open=is_open)
    if token is not None and engine.verifier is not None:
        verified = engine.verifier.cached(token, _asserted(headers, asserts_actor=asserts_actor))
        return None if verified is None else _caller(verified)
    if not engine.policies.preset.require_signed:
        asserted = headers.get(b"x-cortex-actor")
        return _LOCAL if asserted is None else _unsigned(asserted)
    if is_open:
        return NOBODY
    raise MissingToken(
        reason=f"preset {engine.policies.preset.name} takes signed callers only",
        remediation="send Authorization: Bearer <token> and X-Cortex-Actor",
    )


async def verify(
    engine: Engine, headers: dict[bytes, bytes], *, asserts_actor: bool = True
) -> Caller:
    """The caller of a token, whose issuer's keys may have to be fetched."""
    token = _bearer(headers)
    assert token is not None, "who has none is recognised, or refused"
    assert engine.verifier is not None, "nobody else asks for tokens"
    actor = _asserted(headers, asserts_actor=asserts_actor)
    return _caller(await engine.verifier.verify(token, actor))


def _asserted(headers: dict[bytes, bytes], *, asserts_actor: bool) -> str | None:
    asserted = headers.get(b"x-cortex-actor")
    if asserted is not None:
        return asserted.decode("latin-1")
    return None if asserts_actor else ITSELF


def _known(
    principals: Principals, headers: dict[bytes, bytes], token: str | None, *, is_open: bool
) -> Caller:
    """The caller of a file of principals: nobody else is let in."""
    caller = None if token is None else principals.get(token)
    if caller is not None:
        return caller
    if is_open and token is None:
        return NOBODY
    if b"authorization" not in headers:
        raise MissingToken(reason="this server knows the callers of its file of principals only")
    if token is None:
        raise MissingToken(reason="the Authorization header has no bearer token", header="invalid")
    raise BadSignature(reason="no principal has this token")


def _bearer(headers: dict[bytes, bytes]) -> str | None:
    given = headers.get(b"authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" and token else None


def _caller(verified: Verified) -> Caller:
    return Caller(
        actor=verified.actor,
        tenant=verified.tenant,
        capabilities=verified.capabilities,
        scopes=verified.scopes,
        token_id=verified.token_id,
        issuer=verified.issuer,
        expires_s=verified.expires_at,
    )


_LOCAL = Caller(actor=LOCAL_ACTOR, tenant=LOCAL_TENANT)


@lru_cache(maxsize=limits.CALLERS_KEPT_MAX)
def _unsigned(asserted: bytes) -> Caller:
    """Who says to be this actor, on a machine of one's own."""
    actor = asserted.decode("latin-1")
    if not is_actor(actor) or actor.partition(":")[0] not in CALLER_TYPES:
        kinds = ", ".join(sorted(CALLER_TYPES))
        raise InvalidActor(field="X-Cortex-Actor", reason=f"expected type:id, type one of {kinds}")
    return Caller(actor=actor, tenant=LOCAL_TENANT)
