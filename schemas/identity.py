"""What does a caller learn about itself, and how is a token taken back?  (001 §8.16)"""

from typing import Annotated

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.scope import ScopePath


class TokenSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The token in hand, without its secret part."""

    jti: str
    iss: str | None
    exp: int | None


class Whoami(msgspec.Struct, frozen=True, kw_only=True):
    """The effective identity and what it may do."""

    caller: str
    actor: str
    tenant_id: str
    deployment_preset: str
    token: TokenSummary | None
    effective_capabilities: list[str]
    scopes: list[str] | None
    natural_level: ScopePath | None


class RevokeRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which token, and why."""

    jti: Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
    reason: Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)] | None = None
