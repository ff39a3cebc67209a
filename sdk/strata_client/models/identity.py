"""Written by scripts/client: models of identity."""

from msgspec import Struct


class TokenSummary(Struct, frozen=True, kw_only=True):
    """The token in hand, without its secret part."""

    jti: str
    iss: str | None
    exp: int | None


class Whoami(Struct, frozen=True, kw_only=True):
    """The effective identity and what it may do."""

    caller: str
    actor: str
    tenant_id: str
    deployment_preset: str
    token: TokenSummary | None
    effective_capabilities: list[str]
    scopes: list[str] | None
    natural_level: str | None
