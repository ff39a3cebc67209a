"""Who is calling?  A verified identity, and where the call came from."""

import msgspec

from schemas.token import Grant


class Origin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The request as the audit row remembers it (001 §14)."""

    request_id: str
    method: str
    path: str
    client_ip: str | None = None
    user_agent: str | None = None
    body: bytes = b""
    headers: list[tuple[bytes, bytes]] = []
    headers_digest: bytes = b""
    """Their hash for the audit row, where it was made before."""
    started_us: int = 0
    recorded: list[str] = []
    """Tenants whose audit has a row of this request already: a verb wrote it with its entries."""


class Caller(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The only identity inside the engine. Made in `api/auth.py`; nothing else reads a header."""

    actor: str
    tenant: str
    capabilities: tuple[str, ...] | None = None
    scopes: tuple[Grant, ...] | None = None
    token_id: str | None = None
    issuer: str | None = None
    expires_s: int | None = None
    origin: Origin | None = None
    surface_scopes: tuple[str, ...] | None = None
    """What a surface grants in its own words (000: `read:files`); None: as policy says."""


SYSTEM = Caller(actor="system:strata", tenant="system")
"""The engine itself, for directives it writes on its own behalf."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What policy said, and which tier said it (001 §5.1.2)."""

    capability: str
    allowed: bool
    tier: str
    preset: str
    remediation: str = ""
