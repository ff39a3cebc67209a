"""Who is calling?  The only place where headers become an identity."""

from api.principals import LOCAL_TENANT, Principals
from engine.engine import Engine
from engine.tokens import ITSELF, Verified
from schemas.caller import Caller
from schemas.errors import BadSignature, InvalidActor, MissingToken
from schemas.scope import CALLER_TYPES, is_actor

LOCAL_ACTOR = "user:local"
NOBODY = Caller(actor="user:nobody", tenant="nobody", capabilities=())
"""Who calls an open endpoint without a token: it can do nothing else."""


async def authenticate(
    engine: Engine,
    headers: dict[bytes, bytes],
    *,
    is_open: bool,
    asserts_actor: bool = True,
    principals: Principals | None = None,
) -> Caller:
    """The caller, verified; under `dev_local` an unsigned actor is taken at its word.

    Where the contract has no header for the actor, the token alone names it.
    """
    asserted = headers.get(b"x-cortex-actor")
    token = _bearer(headers)
    verifier = engine.verifier
    if principals is not None:
        return _known(principals, headers, token, is_open=is_open)
    if token is not None and verifier is not None:
        unsaid = None if asserts_actor else ITSELF
        actor = unsaid if asserted is None else asserted.decode("latin-1")
        verified = verifier.cached(token, actor)
        return _caller(verified or await verifier.verify(token, actor))
    if not engine.policies.preset.require_signed:
        actor = LOCAL_ACTOR if asserted is None else _checked_actor(asserted)
        return Caller(actor=actor, tenant=LOCAL_TENANT)
    if is_open:
        return NOBODY
    raise MissingToken(
        reason=f"preset {engine.policies.preset.name} takes signed callers only",
        remediation="send Authorization: Bearer <token> and X-Cortex-Actor",
    )


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
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
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


def _checked_actor(asserted: bytes) -> str:
    actor = asserted.decode("latin-1")
    if not is_actor(actor) or actor.partition(":")[0] not in CALLER_TYPES:
        kinds = ", ".join(sorted(CALLER_TYPES))
        raise InvalidActor(field="X-Cortex-Actor", reason=f"expected type:id, type one of {kinds}")
    return actor
