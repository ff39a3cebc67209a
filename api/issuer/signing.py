"""How is a key made, shown and used?  Ed25519 pairs, and the tokens they sign (001 §4.1)."""

import re
import secrets
from typing import Final

import msgspec
import pyseto
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pyseto import Key as PasetoKey

from api.issuer.store import Minted, SigningKey, Store
from schemas.scope import CALLER_TYPES
from schemas.token import TOKEN_BYTES_MAX, Claims, audience_of, is_tenant, lifetime_s_max

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TTL = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_FIELD = re.compile(r"\$\.(\w+)")
_JTI_BYTES: Final = 16


class MintRefused(Exception):
    """The token asked for would be taken by no server; the message says why."""


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


class PublicHalf(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a key: three spellings of the same."""

    kid: str
    pem: str
    paserk: str
    jwk: dict[str, str]


def make_key(store: Store, *, drop_old: bool = False) -> SigningKey:
    """A new key pair, which signs from here on."""
    secret = Ed25519PrivateKey.generate().private_bytes_raw()
    kid = PasetoKey.from_asymmetric_key_params(4, d=secret).to_peer_paserk_id()
    store.add_key(kid, secret, drop_old=drop_old)
    return store.list_keys()[0]


def public_half(key: SigningKey) -> PublicHalf:
    """The half of a key that others check signatures with."""
    public = Ed25519PrivateKey.from_private_bytes(key.secret).public_key()
    paserk = PasetoKey.from_asymmetric_key_params(4, x=public.public_bytes_raw()).to_paserk()
    return PublicHalf(
        kid=key.kid,
        pem=public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        paserk=paserk,
        jwk={
            "kty": "OKP",
            "crv": "Ed25519",
            "x": paserk.removeprefix("k4.public."),
            "kid": key.kid,
            "use": "sig",
            "alg": "EdDSA",
        },
    )


def issuers_file(store: Store) -> str:
    """The entry that makes a server believe this issuer, as YAML."""
    lines = ["issuers:", f"  - iss: {_quoted(store.issuer())}", "    kind: paseto", "    keys:"]
    for key in store.list_keys():
        half = public_half(key)
        lines += [f"      - kid: {_quoted(half.kid)}", f"        key: {_quoted(half.paserk)}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # A string of JSON is a string of YAML too, whatever is in it.
    return msgspec.json.encode(text).decode()


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The token that is asked for; caps and scopes only ever narrow (001 §4.2)."""

    actor: str
    tenant: str
    ttl: str
    caps: tuple[str, ...] | None = None
    scopes: tuple[str, ...] | None = None


def mint(store: Store, wish: Wish) -> tuple[str, Minted]:
    """A signed token and what is remembered of it; MintRefused when no server would take it."""
    keys = store.list_keys()
    if not keys:
        raise MintRefused("there is no key to sign with; `rotate` makes one")
    if not is_tenant(wish.tenant):
        raise MintRefused("tenant: letters, digits, - and _, at most 128")
    key, now_s = keys[0], store.now_s()
    claims = _checked(
        {
            "iss": store.issuer(),
            "sub": wish.actor,
            "aud": audience_of(wish.tenant),
            "exp": now_s + _ttl_s(wish),
            "iat": now_s,
            "jti": secrets.token_hex(_JTI_BYTES),
            "caps": wish.caps,
            "scopes": wish.scopes,
        }
    )
    minted = Minted(
        jti=claims.jti,
        sub=claims.sub,
        aud=audience_of(wish.tenant),
        kid=key.kid,
        iat=claims.iat,
        exp=claims.exp,
    )
    token = pyseto.encode(
        PasetoKey.from_asymmetric_key_params(4, d=key.secret),
        msgspec.json.encode(claims),
        footer=msgspec.json.encode({"kid": key.kid}),
    )
    if len(token) > TOKEN_BYTES_MAX:
        raise MintRefused(f"the token would have more than {TOKEN_BYTES_MAX} bytes: ask for less")
    # Remembered before anyone has it: a token that nobody can name cannot be revoked.
    store.record(minted)
    return token.decode(), minted


def _ttl_s(wish: Wish) -> int:
    found = _TTL.fullmatch(wish.ttl)
    if found is None:
        raise MintRefused("ttl: a number and one of s, m, h, d, as in 90s, 15m, 1h, 7d")
    ttl_s = int(found[1]) * _UNITS[found[2]]
    longest = lifetime_s_max(wish.actor)
    if ttl_s > longest:
        raise MintRefused(f"ttl: a token of this actor lives at most {longest // 3600} h")
    return ttl_s


def _checked(claims: dict[str, object]) -> Claims:
    """The claims, by the schema the server reads them with."""
    given = {name: value for name, value in claims.items() if value is not None}
    if str(claims["sub"]).partition(":")[0] not in CALLER_TYPES:
        raise MintRefused(f"actor: type:id, type one of {', '.join(sorted(CALLER_TYPES))}")
    try:
        return msgspec.convert(given, Claims)
    except msgspec.ValidationError as error:
        field = _FIELD.search(str(error))
        raise MintRefused(_EXPECTED.get(field[1] if field else "", str(error))) from error


_EXPECTED: Final = {
    "iss": "issuer: 1 to 512 characters",
    "sub": "actor: type:id, as in agent:planner_v3",
    "caps": "cap: a capability in full, as in scope.read.local; wildcards are for policy",
    "scopes": "scope-grant: capability:path, as in scope.write:org:acme/*",
}
"""What to say of a claim that does not follow the schema, in the words of the command line."""
