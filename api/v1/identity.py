"""Identity: who am I, and taking a token back (001 §8.16)."""

from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.identity import revoke, whoami
from schemas.identity import RevokeRequest, Whoami


def get_whoami(call: Call) -> Reply:
    """The caller as the server sees it."""
    return Reply(whoami(call.engine, call.caller))


async def post_revoke(call: Call) -> Reply:
    """Refuse a token from now on."""
    await revoke(call.engine, call.caller, call.body)
    return Reply(status=204, raw=b"")


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/auth/whoami",
        get_whoami,
        "The effective identity and capabilities of the caller.",
        tier=STABLE,
        response=Whoami,
    ),
    Endpoint(
        "POST",
        "/v1/auth/revoke",
        post_revoke,
        "Revoke a token by its id; one's own needs no capability.",
        capability="auth.revoke",
        tier=STABLE,
        body=RevokeRequest,
        statuses=(204,),
    ),
)
