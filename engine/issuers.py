"""Whose tokens are believed, and with which keys?  The allowlist of 001 §4.3, from a file.

A key belongs to one algorithm, which follows from what the key is: RSA to RS256, P-256 to ES256,
Ed25519 to PASETO v4.public. What a token says about itself never chooses the algorithm.
"""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from msgspec import Meta
from pyseto import Key as PasetoKey
from pyseto import KeyInterface

from schemas.token import Name, is_tenant

Algorithm = Literal["RS256", "ES256", "v4.public"]
JwtAlgorithm = Literal["RS256", "ES256"]

JWT_ALGORITHMS: Final[tuple[JwtAlgorithm, ...]] = ("RS256", "ES256")
"""Asymmetric only (001 §4.1)."""

RSA_BITS_MIN: Final = 2048
RSA_BITS_MAX: Final = 8192
"""Below it a key can be broken; above it one signature costs a millisecond and more."""

KEYS_MAX: Final = 32
"""Keys of one issuer: a token that names none is tried with each."""

_PASERK: Final = "k4.public."


class IssuerError(Exception):
    """An issuer cannot be used; the message names the entry and says what would do."""


class KeyRefused(Exception):
    """This key verifies nothing here; the message says why."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A public key, the one algorithm it is for, and the name its issuer gave it."""

    algorithm: Algorithm
    public: RSAPublicKey | EllipticCurvePublicKey | KeyInterface
    kid: str | None = None


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """Who may vouch for a caller: one form of token, with keys at hand or fetched."""

    iss: str
    kind: Literal["paseto", "jwt"]
    keys: tuple[Key, ...] = ()
    jwks_url: str | None = None
    algorithms: tuple[JwtAlgorithm, ...] = JWT_ALGORITHMS
    tenants: frozenset[str] | None = None
    """The tenants it may speak for; None for all. One customer's provider is not the next one's."""


def select(keys: tuple[Key, ...], kid: str | None) -> tuple[Key, ...]:
    """The keys of an issuer that may have signed: a kid narrows the choice, and adds nothing."""
    if kid is None:
        return keys
    return tuple(key for key in keys if key.kid == kid) or tuple(
        key for key in keys if key.kid is None
    )


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


def read_key(text: str, kid: str | None = None) -> Key:
    """A key from PEM, or an Ed25519 key from PASERK; KeyRefused for anything else."""
    text = text.strip()
    if "PRIVATE KEY" in text or text.startswith(("k4.secret", "k2.secret", "k3.secret")):
        raise KeyRefused("this is a private key: keep it with the issuer, and give the public one")
    if text.startswith("k"):
        return _from_paserk(text, kid)
    if not text.startswith("-----BEGIN PUBLIC KEY-----"):
        raise KeyRefused("expected a public key in PEM (BEGIN PUBLIC KEY) or PASERK (k4.public.)")
    try:
        return make_key(load_pem_public_key(text.encode()), kid)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyRefused("the PEM holds no public key that can be read") from error


def make_key(public: object, kid: str | None = None) -> Key:
    """A key with the algorithm it is for; KeyRefused when it is for none of ours."""
    if isinstance(public, RSAPublicKey):
        if not RSA_BITS_MIN <= public.key_size <= RSA_BITS_MAX:
            raise KeyRefused(
                f"an RSA key has {RSA_BITS_MIN} to {RSA_BITS_MAX} bits; this one {public.key_size}"
            )
        return Key(algorithm="RS256", public=public, kid=kid)
    if isinstance(public, EllipticCurvePublicKey):
        if not isinstance(public.curve, SECP256R1):
            raise KeyRefused(f"an elliptic key is on P-256; this one on {public.curve.name}")
        return Key(algorithm="ES256", public=public, kid=kid)
    if isinstance(public, Ed25519PublicKey):
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        paseto = PasetoKey.from_asymmetric_key_params(4, x=raw)
        return Key(algorithm="v4.public", public=paseto, kid=kid)
    raise KeyRefused("a key is a public one of RSA, P-256 or Ed25519")


def _from_paserk(text: str, kid: str | None) -> Key:
    if not text.startswith(_PASERK):
        raise KeyRefused(f"the only PASERK taken is {_PASERK}…")
    try:
        return Key(algorithm="v4.public", public=PasetoKey.from_paserk(text), kid=kid)
    except ValueError as error:
        raise KeyRefused("the PASERK holds no Ed25519 public key") from error


# ── where a provider's keys are ──────────────────────────────────────────────────────────────


def check_jwks_url(url: str, *, allow_loopback_http: bool = False) -> str:
    """The URL itself when keys may be fetched from it; IssuerError otherwise.

    Plain HTTP would let anyone on the way choose the keys; tests may use it on their own machine.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise IssuerError(f"jwks_url: {error}") from error
    if not host or parts.username is not None or parts.fragment:
        raise IssuerError("jwks_url: expected https://host/path, without user or fragment")
    if parts.scheme == "https":
        return url
    if parts.scheme == "http" and allow_loopback_http and _is_loopback(host):
        return url
    raise IssuerError("jwks_url: keys are fetched over https only")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        # A name can be made to resolve anywhere, `localhost` included.
        return False


# ── the file ─────────────────────────────────────────────────────────────────────────────────


class _NamedKey(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    kid: Name | None = None


class _Entry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    iss: Name
    kind: Literal["paseto", "jwt"]
    keys: Annotated[list[str | _NamedKey], Meta(max_length=KEYS_MAX)] = []
    jwks_url: str | None = None
    algorithms: Annotated[list[JwtAlgorithm], Meta(min_length=1)] | None = None
    tenants: list[str] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    issuers: list[_Entry]


def load_issuers(path: Path, *, allow_loopback_http: bool = False) -> tuple[Issuer, ...]:
    """The issuers of a YAML or JSON file; IssuerError names the file, the entry and the fault."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IssuerError(f"{path}: {error.strerror}") from error
    try:
        # JSON with tabs is no YAML, so the suffix decides.
        is_json = path.suffix == ".json"
        decode = msgspec.json.decode if is_json else msgspec.yaml.decode
        entries = decode(content, type=_File).issuers
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IssuerError(f"{path}: {error}") from error
    issuers: dict[str, Issuer] = {}
    for index, entry in enumerate(entries):
        try:
            if entry.iss in issuers:
                raise IssuerError("iss: another entry has it too")
            issuers[entry.iss] = _checked(entry, allow_loopback_http=allow_loopback_http)
        except IssuerError as error:
            raise IssuerError(f"{path}: issuers[{index}] ({entry.iss}): {error}") from error
    return tuple(issuers.values())


def _checked(entry: _Entry, *, allow_loopback_http: bool) -> Issuer:
    if bool(entry.keys) == (entry.jwks_url is not None):
        raise IssuerError("give either keys or jwks_url")
    if entry.kind == "paseto" and entry.jwks_url is not None:
        raise IssuerError("jwks_url: a PASETO issuer has keys; a key set is for JWT")
    if entry.kind == "paseto" and entry.algorithms is not None:
        raise IssuerError("algorithms: PASETO v4.public has one, and no choice")
    if entry.jwks_url is not None:
        check_jwks_url(entry.jwks_url, allow_loopback_http=allow_loopback_http)
    for tenant in entry.tenants or ():
        if not is_tenant(tenant):
            raise IssuerError("tenants: a tenant is letters, digits, - and _, at most 128")
    algorithms = tuple(entry.algorithms or JWT_ALGORITHMS)
    wanted: tuple[Algorithm, ...] = algorithms if entry.kind == "jwt" else ("v4.public",)
    return Issuer(
        iss=entry.iss,
        kind=entry.kind,
        keys=tuple(_key(number, given, wanted) for number, given in enumerate(entry.keys)),
        jwks_url=entry.jwks_url,
        algorithms=algorithms,
        tenants=None if entry.tenants is None else frozenset(entry.tenants),
    )


def _key(number: int, given: str | _NamedKey, wanted: tuple[Algorithm, ...]) -> Key:
    named = _NamedKey(given) if isinstance(given, str) else given
    try:
        key = read_key(named.key, named.kid)
    except KeyRefused as error:
        raise IssuerError(f"keys[{number}]: {error}") from error
    if key.algorithm not in wanted:
        raise IssuerError(f"keys[{number}]: a key for {key.algorithm}; here {', '.join(wanted)}")
    return key
