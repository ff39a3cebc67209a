"""Is this token good, and whom does it name?  (001 §4)

The checks run in the order of 001 §4.3, and the first that fails answers with its code:

1. signature  INVALID_TOKEN_SIGNATURE, also for what is no token of ours: another form or algorithm,
              an issuer off the allowlist (no key can be its own), claims not as in 001 §4.2
2. iss        as 1: which keys are tried follows from it, so the two are one check
3. aud        WRONG_TENANT
4. exp, iat   EXPIRED_TOKEN, also for a token of the future and one that lives too long
5. jti        REVOKED_TOKEN
6. actor      ACTOR_MISMATCH

Of an unverified token only three things are read: its form, its issuer, and the kid. They choose
among keys that we hold already; nothing in a token can bring a key, an address or an algorithm.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final, NoReturn

import msgspec
import pyseto
from jwt import PyJWS
from jwt.exceptions import PyJWTError
from pyseto import KeyInterface
from pyseto.exceptions import PysetoError

from engine.clock import Clock
from engine.issuers import JWT_ALGORITHMS, Issuer, Key, select
from engine.jwks import Jwks
from schemas.caller import SYSTEM
from schemas.errors import (
    ActorMismatch,
    BadSignature,
    ExpiredToken,
    MissingToken,
    RevokedToken,
    WrongTenant,
)
from schemas.scope import CALLER_TYPES
from schemas.token import (
    LEEWAY_S,
    TOKEN_BYTES_MAX,
    Claims,
    Grant,
    is_service,
    lifetime_s_max,
    tenant_of,
)

CACHE_S_MAX: Final = 60.0
"""How long a checked signature is believed: an issuer taken off the list is off within a minute."""

CACHE_TOKENS_MAX: Final = 10_000
"""Verified tokens kept, a kilobyte each; beyond it the least used one is checked again."""

_PASETO = re.compile(r"v4\.public\.([A-Za-z0-9_-]+)(?:\.([A-Za-z0-9_-]+))?")
_OTHER_PASETO = re.compile(r"v[0-9]+\.(local|public)\.")
_JWT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_FIELD = re.compile(r"(?:\$\.|field `)(\w+)")
_PASETO_SIGNATURE_BYTES: Final = 64
_JWT_TYPES: Final = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_jws = PyJWS(algorithms=list(JWT_ALGORITHMS))

ITSELF: Final = "\n"
"""What a caller asserts whose contract has no header for that; no header can hold it."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """A caller whose token held. Times are Unix seconds, as in the token."""

    actor: str
    tenant: str
    capabilities: tuple[str, ...] | None
    """What the token narrows the caller to; None when it does not (001 §5.2)."""
    scopes: tuple[Grant, ...] | None
    token_id: str
    issuer: str
    issued_at: int
    expires_at: int
    is_service: bool


class _Presented(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it came: nothing of it is believed, all of it is well formed."""

    kind: str
    text: str
    iss: str
    kid: str | None
    alg: str


class _Peek(msgspec.Struct):
    iss: str


class _Footer(msgspec.Struct):
    kid: str | None = None


class _Header(msgspec.Struct):
    """The header of a JWT. What is not listed (jku, jwk, x5u, x5c) is not even read."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    b64: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Verifier:
    """Checks tokens against the allowlist, and remembers for a minute which ones held.

    Belongs to one event loop. `tenants` are those this deployment serves, None for any;
    `is_revoked` is asked on every call, so that a revocation takes effect at once.
    """

    def __init__(
        self,
        issuers: Iterable[Issuer],
        tenants: frozenset[str] | None,
        clock: Clock,
        is_revoked: Callable[[Verified], bool],
        *,
        allow_loopback_http: bool = False,
    ) -> None:
        self._issuers = {issuer.iss: issuer for issuer in issuers}
        self._tenants = tenants
        self._clock = clock
        self._is_revoked = is_revoked
        self.remote = {
            issuer.iss: Jwks(issuer, clock, allow_loopback_http=allow_loopback_http)
            for issuer in self._issuers.values()
            if issuer.jwks_url is not None
        }
        """Issuers whose keys are fetched, by iss."""
        self._kept: OrderedDict[bytes, tuple[Verified, float]] = OrderedDict()

    def cached(self, token: str, actor: str | None) -> Verified | None:
        """What a token said when it held, less than a minute ago; None when that is not known.

        Raises as `verify` does for a token that was revoked since, and for another actor than the
        one asserted; `ITSELF` asserts whoever the token names.
        """
        key = _digest(token)
        kept = self._kept.get(key)
        if kept is None:
            return None
        verified, until_s = kept
        if self._clock.elapsed_s() >= until_s or self._now_s() >= verified.expires_at:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        self._admit(verified, actor)
        return verified

    async def verify(self, token: str, actor: str | None) -> Verified:
        """The caller a token names, checked in full; an Unauthenticated error says what failed."""
        if not token:
            raise MissingToken
        presented = _read(token)
        issuer = self._issuers.get(presented.iss)
        if issuer is None or issuer.kind != presented.kind:
            _refuse("its issuer is not on the allowlist")
        payload = _verified_payload(presented, await self._keys(issuer, presented.kid))
        verified = self._check(issuer, _read_claims(payload))
        self._admit(verified, actor)
        self._keep(token, verified)
        return verified

    async def _keys(self, issuer: Issuer, kid: str | None) -> tuple[Key, ...]:
        remote = self.remote.get(issuer.iss)
        return select(issuer.keys, kid) if remote is None else await remote.keys(kid)

    def _check(self, issuer: Issuer, claims: Claims) -> Verified:
        """Steps 2 to 4 of 001 §4.3."""
        assert claims.iss == issuer.iss, "the signed bytes are those the issuer was read from"
        tenant = tenant_of(claims.aud)
        if tenant is None:
            raise WrongTenant(reason="aud names no tenant, or several")
        for served in (self._tenants, issuer.tenants):
            if served is not None and tenant not in served:
                raise WrongTenant
        named = (self._tenants or frozenset()) | (issuer.tenants or frozenset())
        if tenant == SYSTEM.tenant and tenant not in named:
            # Whoever speaks for the system's tenant is an operator: no provider is by default.
            raise WrongTenant(reason="operators' tokens need the tenant to be listed by name")
        now_s = self._now_s()
        if claims.exp + LEEWAY_S <= now_s:
            raise ExpiredToken
        if claims.iat > now_s + LEEWAY_S:
            raise ExpiredToken("The token is not valid yet.", reason="iat is in the future")
        hours = lifetime_s_max(claims.sub) // 3600
        if claims.exp - claims.iat > hours * 3600:
            raise ExpiredToken(
                "The token lives too long.", reason=f"exp is more than {hours} h after iat"
            )
        return Verified(
            actor=claims.sub,
            tenant=tenant,
            capabilities=claims.caps,
            scopes=None if claims.scopes is None else tuple(map(Grant.parse, claims.scopes)),
            token_id=claims.jti,
            issuer=claims.iss,
            issued_at=claims.iat,
            expires_at=claims.exp,
            is_service=is_service(claims.sub),
        )

    def _admit(self, verified: Verified, actor: str | None) -> None:
        """Steps 5 and 6: what may change between two calls with the same token."""
        if self._is_revoked(verified):
            raise RevokedToken
        if actor is None:
            raise ActorMismatch("X-Cortex-Actor is missing.", reason="the header is required")
        if actor not in (ITSELF, verified.actor):
            raise ActorMismatch

    def _keep(self, token: str, verified: Verified) -> None:
        self._kept[_digest(token)] = (verified, self._clock.elapsed_s() + CACHE_S_MAX)
        if len(self._kept) > CACHE_TOKENS_MAX:
            self._kept.popitem(last=False)

    def _now_s(self) -> int:
        return self._clock.now_us() // 1_000_000


def _digest(token: str) -> bytes:
    """What the cache knows a token by: whoever reads our memory finds no token in it."""
    return blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _refuse(reason: str) -> NoReturn:
    raise BadSignature(f"The token cannot be verified: {reason}.", reason=reason) from None


# ── what a token looks like ──────────────────────────────────────────────────────────────────


def _read(token: str) -> _Presented:
    """Tell the form of a token by its spelling (001 §4.1), and read what chooses the key."""
    if len(token) > TOKEN_BYTES_MAX:
        _refuse(f"it has more than {TOKEN_BYTES_MAX} bytes")
    if found := _PASETO.fullmatch(token):
        return _read_paseto(token, found[1], found[2])
    if _OTHER_PASETO.match(token):
        _refuse("of PASETO only v4.public is taken")
    if found := _JWT.fullmatch(token):
        return _read_jwt(token, found[1], found[2], found[3])
    _refuse("it is neither PASETO v4.public nor a signed JWT")


def _read_paseto(token: str, body: str, footer: str | None) -> _Presented:
    payload = _base64(body)[:-_PASETO_SIGNATURE_BYTES]
    kid = None
    if footer is not None:
        try:
            kid = msgspec.json.decode(_base64(footer), type=_Footer).kid
        except _UNREADABLE:
            # A footer may hold anything; only one that names a key means something to us.
            kid = None
    return _Presented(kind="paseto", text=token, iss=_peek(payload), kid=kid, alg="v4.public")


def _read_jwt(token: str, head: str, body: str, signature: str) -> _Presented:
    _base64(signature)
    try:
        header = msgspec.json.decode(_base64(head), type=_Header)
    except _UNREADABLE:
        _refuse("its header cannot be read")
    if header.alg not in JWT_ALGORITHMS:
        _refuse(f"the algorithm is none of {', '.join(JWT_ALGORITHMS)}")
    if (header.typ.lower() if header.typ else header.typ) not in _JWT_TYPES:
        _refuse("its typ is not that of an access token")
    if header.crit is not msgspec.UNSET or header.b64 is not msgspec.UNSET:
        _refuse("its header asks for extensions")
    iss = _peek(_base64(body))
    return _Presented(kind="jwt", text=token, iss=iss, kid=header.kid, alg=header.alg)


def _base64(text: str) -> bytes:
    """Decode strictly: one spelling for each value, or two texts would be the same token."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Base64Error:
        _refuse("it is not base64url")
    if urlsafe_b64encode(raw).rstrip(b"=") != text.encode():
        _refuse("it is not base64url")
    return raw


def _peek(payload: bytes) -> str:
    """The issuer as the token states it: it only says whose keys to try."""
    try:
        return msgspec.json.decode(payload, type=_Peek).iss
    except _UNREADABLE:
        _refuse("its payload is not an object with an iss")


# ── what a signature covers ──────────────────────────────────────────────────────────────────


def _verified_payload(presented: _Presented, keys: tuple[Key, ...]) -> bytes:
    """The payload, as one of these keys signed it."""
    for key in keys:
        # The key says the algorithm; a token that says another was not signed with this key.
        if key.algorithm == presented.alg:
            payload = _signed_payload(presented.text, key)
            if payload is not None:
                return payload
    _refuse("no key of the issuer verifies it")


def _signed_payload(token: str, key: Key) -> bytes | None:
    """The payload when this key signed it, else None."""
    if isinstance(key.public, KeyInterface):
        try:
            # No deserializer: with one, pyseto reads the clock and takes dates as text only, while
            # ours are Unix seconds (001 §4.2); without one it checks no claim, so we check them.
            payload = pyseto.decode(key.public, token, implicit_assertion=b"").payload
        except (PysetoError, ValueError):
            return None
        assert isinstance(payload, bytes), "what was not deserialized is bytes"
        return payload
    try:
        signed: bytes = _jws.decode(token, key.public, algorithms=[key.algorithm])
    except (PyJWTError, RecursionError):
        return None
    return signed


def _read_claims(payload: bytes) -> Claims:
    try:
        claims = msgspec.json.decode(payload, type=Claims)
    except _UNREADABLE as error:
        # Which claim, but not what it says: errors end up in logs.
        named = _FIELD.search(str(error))
        _refuse(f"its claim {named[1]} is missing or malformed" if named else "it has no claims")
    if claims.sub.partition(":")[0] not in CALLER_TYPES:
        _refuse("its sub is not a caller")
    return claims
