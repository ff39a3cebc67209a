"""What does a token claim, and how far do its path-bound grants reach?  (001 §4.2, Appendix C)"""

import re
from typing import Annotated, Final, Self

import msgspec
from msgspec import Meta

from schemas.scope import SCOPE_PATTERN, ActorId

TOKEN_BYTES_MAX: Final = 8 * 1024
"""A token travels in a header; ours are half a kilobyte, an identity provider's two or three."""

LEEWAY_S: Final = 60
"""How far apart the clocks of issuer and server may be (001 §4.3)."""

LIFETIME_S_MAX: Final = 24 * 3600
SERVICE_LIFETIME_S_MAX: Final = 30 * 24 * 3600
"""From issue to expiry: 001 §4.2, and §4.4 for service accounts."""

AUDIENCE_PREFIX: Final = "cortexdb:tenant:"
"""How an audience names a tenant (001 §4.2)."""

# `$` also matches before a trailing newline in Python's dialect, and `\Z` is unknown to JSON
# Schema's: `$(?!\n)` means the same end in both.
_END: Final = r"$(?!\n)"
_CAPABILITY: Final = r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*"
_PATH: Final = SCOPE_PATTERN.removeprefix("^").removesuffix(_END)
CAPABILITY_PATTERN: Final = rf"^{_CAPABILITY}{_END}"
GRANT_PATTERN: Final = rf"^({_CAPABILITY}):({_PATH})(/\*)?{_END}"
TENANT_PATTERN: Final = rf"^[A-Za-z0-9_-]{{1,128}}{_END}"

# 001 §5.2: wildcards are for policy; the pattern leaves no room for one in a token.
Capability = Annotated[str, Meta(pattern=CAPABILITY_PATTERN, max_length=128)]
GrantText = Annotated[str, Meta(pattern=GRANT_PATTERN)]
Name = Annotated[str, Meta(min_length=1, max_length=512)]
UnixSeconds = Annotated[int, Meta(ge=0, le=2**53 - 1)]

_grant = re.compile(GRANT_PATTERN)
_tenant = re.compile(TENANT_PATTERN)


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says, in either form. Claims that are not listed here are ignored."""

    iss: Name
    sub: ActorId
    # Identity providers list several audiences; one of them is ours.
    aud: Name | tuple[Name, ...]
    exp: UnixSeconds
    iat: UnixSeconds
    jti: Name
    deployment: str | None = None
    caps: tuple[Capability, ...] | None = None
    scopes: tuple[GrantText, ...] | None = None


class Grant(msgspec.Struct, frozen=True):
    """A capability bound to a place: one scope, or with `/*` that scope and all below it."""

    capability: str
    path: str
    is_deep: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """`scope.write:org:acme/dept:eng/*` as a grant; ValueError for anything else."""
        found = _grant.match(text)
        if found is None:
            raise ValueError("a grant is capability:path, with /* at the end for all below")
        # The path's own pattern has groups too: the star is the last one, whatever their number.
        return cls(found[1], found[2], found[found.re.groups] is not None)

    def __str__(self) -> str:
        return f"{self.capability}:{self.path}" + ("/*" if self.is_deep else "")

    def allows(self, capability: str, scope: str) -> bool:
        """Whether the grant covers this capability in this scope; both are taken literally."""
        return capability == self.capability and self.covers(scope)

    def covers(self, scope: str) -> bool:
        """Whether the scope lies where the grant is bound to."""
        return scope == self.path or (self.is_deep and scope.startswith(f"{self.path}/"))


def audience_of(tenant: str) -> str:
    """The audience that binds a token to a tenant."""
    return AUDIENCE_PREFIX + tenant


def tenant_of(aud: str | tuple[str, ...]) -> str | None:
    """The one tenant a token is bound to; None when it names none, or several."""
    audiences = (aud,) if isinstance(aud, str) else aud
    ours = [text for text in audiences if text.startswith(AUDIENCE_PREFIX)]
    tenant = ours[0].removeprefix(AUDIENCE_PREFIX) if len(ours) == 1 else ""
    return tenant if is_tenant(tenant) else None


def is_tenant(text: str) -> bool:
    """Whether the text can name a tenant."""
    return _tenant.match(text) is not None


def is_service(actor: str) -> bool:
    """Whether the actor is a service account (001 §4.4)."""
    return actor.startswith("service:")


def lifetime_s_max(actor: str) -> int:
    """How long a token of this actor may live."""
    return SERVICE_LIFETIME_S_MAX if is_service(actor) else LIFETIME_S_MAX
