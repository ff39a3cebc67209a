"""Is every good token taken, and everything else refused with a code of its own?"""

import asyncio
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from hashlib import sha256

import jsonschema
import jwt
import msgspec
import pyseto
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.clock import Clock
from engine.issuers import Issuer, make_key
from engine.tokens import CACHE_S_MAX, CACHE_TOKENS_MAX, Verifier
from schemas.errors import (
    ActorMismatch,
    BadSignature,
    ExpiredToken,
    MissingToken,
    RevokedToken,
    Unauthenticated,
    WrongTenant,
)
from schemas.token import (
    LEEWAY_S,
    LIFETIME_S_MAX,
    SERVICE_LIFETIME_S_MAX,
    TOKEN_BYTES_MAX,
    Claims,
    Grant,
    tenant_of,
)

NOW_S = 1_770_000_000
PASETO_ISS = "https://auth.acme.com/cortexdb"
JWT_ISS = "https://acme.okta.example/oauth2/default"
ACTOR = "agent:planner_v3"
SERVICE = "service:importer"
RSA_KID, EC_KID, ED_KID = "rsa-1", "ec-1", "k4.pid.one"

APPENDIX_C = {
    "iss": PASETO_ISS,
    "sub": ACTOR,
    "aud": "cortexdb:tenant:acme",
    "exp": 1715836800,
    "iat": 1715750400,
    "jti": "01HX...",
    "deployment": "cloud_shared_saas",
    "caps": ["scope.write", "scope.read.local", "scope.read.holistic", "lifecycle.subscribe"],
    "scopes": ["scope.write:org:acme/dept:eng/*", "scope.read.holistic:org:acme/*"],
}


class HandClock(Clock):
    """Both clocks moved by hand, together."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        super().__init__(lambda: int((NOW_S + self.passed_s) * 1_000_000), seed=1)

    def elapsed_s(self) -> float:
        return self.passed_s


# ── who signs ────────────────────────────────────────────────────────────────────────────────


@cache
def rsa_key(name: str = "ours") -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(name: str = "ours") -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key(name: str = "ours") -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def pem(private) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def issuers() -> tuple[Issuer, ...]:
    jwt_keys = (
        make_key(rsa_key().public_key(), RSA_KID),
        make_key(ec_key().public_key(), EC_KID),
    )
    return (
        Issuer(iss=PASETO_ISS, kind="paseto", keys=(make_key(ed_key().public_key(), kid=ED_KID),)),
        Issuer(iss=JWT_ISS, kind="jwt", keys=jwt_keys),
    )


def claims(**changes) -> dict:
    """Good claims, with some replaced, and those that become None left out."""
    good = {
        "iss": PASETO_ISS,
        "sub": ACTOR,
        "aud": "cortexdb:tenant:acme",
        "exp": NOW_S + 3600,
        "iat": NOW_S,
        "jti": "jti-1",
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def paseto(footer=b"", *, key=None, version=4, payload=None, **changes) -> str:
    secret = (key or ed_key()).private_bytes_raw()
    signer = pyseto.Key.from_asymmetric_key_params(version, d=secret)
    body = json.dumps(claims(**changes)).encode() if payload is None else payload
    return pyseto.encode(signer, body, footer=footer).decode()


def signed_jwt(alg="RS256", key=None, headers=None, payload=None, **changes) -> str:
    body = json.dumps(claims(**{"iss": JWT_ISS} | changes)).encode() if payload is None else payload
    default = rsa_key() if alg.startswith(("RS", "PS")) else ec_key()
    return jwt.PyJWS().encode(body, key or default, algorithm=alg, headers=headers)


def encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def handmade_jwt(header: dict, signature: bytes | None = None) -> str:
    """A token that no library would make, signed with our RSA key all the same."""
    head = encoded(json.dumps(header).encode())
    body = encoded(json.dumps(claims(iss=JWT_ISS)).encode())
    if signature is None:
        signature = rsa_key().sign(f"{head}.{body}".encode(), PKCS1v15(), SHA256())
    return f"{head}.{body}.{encoded(signature)}"


def hs256(secret: bytes, **header) -> str:
    """The classic: the public key, which everyone has, taken for a shared secret."""
    head, body, _ = handmade_jwt({"alg": "HS256", "typ": "JWT"} | header).split(".")
    return f"{head}.{body}." + encoded(hmac.digest(secret, f"{head}.{body}".encode(), sha256))


def resigned(header: dict, key: rsa.RSAPrivateKey) -> str:
    """A JWT with a header of the attacker's, signed with a key of the attacker's."""
    return signed_jwt(key=key, headers=header)


def swapped(first: str, second: str, part: int) -> str:
    """The first token, with one part of the second."""
    parts, others = first.split("."), second.split(".")
    parts[part] = others[part]
    return ".".join(parts)


def other_spelling(token: str) -> str:
    """Another text that careless base64 decodes to the same bytes."""
    *rest, last = token.split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    index = alphabet.index(last[-1])
    twin = ".".join([*rest, last[:-1] + alphabet[index ^ 1]])
    assert len(last) % 4, "no spare bits in this one"
    assert urlsafe_b64decode(last + "==") == urlsafe_b64decode(twin.split(".")[-1] + "==")
    return twin


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def revoked() -> set[str]:
    return set()


@pytest.fixture
def verifier(clock, revoked) -> Verifier:
    return Verifier(issuers(), frozenset({"acme"}), clock, lambda known: known.token_id in revoked)


def finished(coroutine):
    """The outcome of a verification that waits for nothing, without a loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited for something")


# ── what is taken ────────────────────────────────────────────────────────────────────────────

GOOD = {
    "paseto": paseto,
    "paseto, key named": lambda: paseto(json.dumps({"kid": ED_KID}).encode()),
    "paseto, footer of its own": lambda: paseto(b"not json"),
    "paseto, aud listed": lambda: paseto(aud=["https://userinfo", "cortexdb:tenant:acme"]),
    "paseto, unknown claims": lambda: paseto(nonce=1, deployment="elsewhere"),
    "RS256, key named": lambda: signed_jwt(headers={"kid": RSA_KID}),
    "RS256, key not named": signed_jwt,
    "ES256, key named": lambda: signed_jwt("ES256", headers={"kid": EC_KID}),
    "ES256, key not named": lambda: signed_jwt("ES256"),
    "RS256, no typ": lambda: signed_jwt(headers={"typ": None}),
    "RS256, at+jwt": lambda: signed_jwt(headers={"typ": "at+JWT"}),
    "RS256, by hand": lambda: handmade_jwt({"alg": "RS256"}),
    "RS256, jku ignored": lambda: signed_jwt(headers={"kid": RSA_KID, "jku": "https://evil"}),
}


@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD)
async def test_a_good_token_is_taken(verifier, make):
    """PASETO v4.public and JWT with RS256 or ES256, with the key named or not (001 §4.1)."""
    verified = await verifier.verify(make(), ACTOR)

    assert (ACTOR, "acme", "jti-1") == (verified.actor, verified.tenant, verified.token_id)
    assert (NOW_S, NOW_S + 3600) == (verified.issued_at, verified.expires_at)
    assert verified.issuer in {PASETO_ISS, JWT_ISS}
    assert (None, None, False) == (verified.capabilities, verified.scopes, verified.is_service)


async def test_what_a_token_narrows_is_carried(verifier):
    """Both claims arrive as they are; an empty list narrows to nothing, absence does not."""
    token = paseto(caps=["scope.write"], scopes=["scope.write:org:acme/*"], sub=SERVICE)
    bare = paseto(caps=[], scopes=[])

    verified = await verifier.verify(token, SERVICE)
    nothing = await verifier.verify(bare, ACTOR)

    assert ("scope.write",) == verified.capabilities
    assert (Grant("scope.write", "org:acme", is_deep=True),) == verified.scopes
    assert verified.is_service
    assert ((), ()) == (nothing.capabilities, nothing.scopes)


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW_S - LEEWAY_S + 1, "iat": NOW_S - 100},
        {"iat": NOW_S + LEEWAY_S},
        {"iat": NOW_S, "exp": NOW_S + LIFETIME_S_MAX},
        {"iat": NOW_S, "exp": NOW_S + SERVICE_LIFETIME_S_MAX, "sub": SERVICE},
    ],
)
async def test_the_last_moment_is_in_time(verifier, changes):
    """Clocks may be a minute apart; a day is allowed, a month to a service (001 §4.2-4.4)."""
    verified = await verifier.verify(paseto(**changes), changes.get("sub", ACTOR))

    assert "jti-1" == verified.token_id


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"exp": NOW_S - LEEWAY_S, "iat": NOW_S - 100}, None),
        ({"iat": NOW_S + LEEWAY_S + 1}, "iat is in the future"),
        ({"exp": NOW_S + LIFETIME_S_MAX + 1}, "exp is more than 24 h after iat"),
        ({"exp": NOW_S + SERVICE_LIFETIME_S_MAX + 1, "sub": SERVICE}, "exp is more than 720 h"),
    ],
)
async def test_a_moment_later_is_not(verifier, changes, reason):
    """Step 4 of 001 §4.3 has one code; the reason tells its cases apart."""
    with pytest.raises(ExpiredToken) as refused:
        await verifier.verify(paseto(**changes), changes.get("sub", ACTOR))

    assert (refused.value.details.get("reason") or "").startswith(reason or "")
    assert (reason is None) == ("reason" not in refused.value.details)


async def test_any_tenant_is_served_when_none_is_named(clock):
    """A deployment without a list of tenants takes them as they come."""
    open_to_all = Verifier(issuers(), None, clock, lambda _: False)

    verified = await open_to_all.verify(paseto(aud="cortexdb:tenant:umbrella"), ACTOR)

    assert "umbrella" == verified.tenant


async def test_an_issuer_speaks_for_its_own_tenants(clock):
    """The provider of one customer cannot mint its way into another's tenant."""
    paseto_issuer, _ = issuers()
    bound = msgspec.structs.replace(paseto_issuer, tenants=frozenset({"umbrella"}))
    bounded = Verifier([bound], None, clock, lambda _: False)

    verified = await bounded.verify(paseto(aud="cortexdb:tenant:umbrella"), ACTOR)
    with pytest.raises(WrongTenant):
        await bounded.verify(paseto(), ACTOR)

    assert "umbrella" == verified.tenant


# ── what is not ──────────────────────────────────────────────────────────────────────────────

DEEP = b'{"iss": "%s", "x": ' % PASETO_ISS.encode() + b"[" * 2500 + b"]" * 2500 + b"}"
FORGED = {
    # The algorithm belongs to the key.
    "HS256 with the RSA key": (BadSignature, lambda: hs256(pem(rsa_key()))),
    "HS256 with the RSA key, named": (BadSignature, lambda: hs256(pem(rsa_key()), kid=RSA_KID)),
    "HS256 with the EC key": (BadSignature, lambda: hs256(pem(ec_key()), kid=EC_KID)),
    "HS256 said to be RS256": (BadSignature, lambda: hs256(pem(rsa_key()), alg="RS256")),
    "none": (BadSignature, lambda: handmade_jwt({"alg": "none"}, b"")),
    "none, with a signature": (BadSignature, lambda: handmade_jwt({"alg": "none"})),
    "nOnE": (BadSignature, lambda: handmade_jwt({"alg": "nOnE"})),
    "no alg": (BadSignature, lambda: handmade_jwt({"typ": "JWT"})),
    "RS512": (BadSignature, lambda: signed_jwt("RS512")),
    "PS256": (BadSignature, lambda: signed_jwt("PS256")),
    "ES384": (
        BadSignature,
        lambda: signed_jwt("ES384", ec.generate_private_key(ec.SECP384R1())),
    ),
    "EdDSA": (BadSignature, lambda: signed_jwt("EdDSA", ed_key(), iss=PASETO_ISS)),
    "RS256 with the EC kid": (BadSignature, lambda: signed_jwt(headers={"kid": EC_KID})),
    "ES256 with the RSA kid": (BadSignature, lambda: signed_jwt("ES256", headers={"kid": RSA_KID})),
    # The key belongs to the issuer, and the issuer to the list.
    "a stranger's RSA key": (BadSignature, lambda: signed_jwt(key=rsa_key("theirs"))),
    "a stranger's EC key": (BadSignature, lambda: signed_jwt("ES256", ec_key("theirs"))),
    "a stranger's Ed25519 key": (BadSignature, lambda: paseto(key=ed_key("theirs"))),
    "unknown iss": (BadSignature, lambda: paseto(iss="https://evil.example")),
    "iss with a slash": (BadSignature, lambda: paseto(iss=PASETO_ISS + "/")),
    "no iss": (BadSignature, lambda: paseto(iss=None)),
    "iss of the other form, PASETO": (BadSignature, lambda: paseto(iss=JWT_ISS)),
    "iss of the other form, JWT": (BadSignature, lambda: signed_jwt(iss=PASETO_ISS)),
    # Nothing in a header brings a key.
    "jku": (
        BadSignature,
        lambda: resigned({"jku": "https://evil.example/jwks.json"}, rsa_key("theirs")),
    ),
    "jwk": (
        BadSignature,
        lambda: resigned(
            {"jwk": json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("theirs").public_key()))},
            rsa_key("theirs"),
        ),
    ),
    "x5u": (BadSignature, lambda: resigned({"x5u": "https://evil/c.pem"}, rsa_key("theirs"))),
    "x5c": (BadSignature, lambda: resigned({"x5c": ["MIIB"]}, rsa_key("theirs"))),
    "kid as a path": (BadSignature, lambda: hs256(b"", kid="../../../../../../dev/null")),
    "kid as a path, RS256": (
        BadSignature,
        lambda: resigned({"kid": "../../../../../../dev/null"}, rsa_key("theirs")),
    ),
    "kid as SQL": (
        BadSignature,
        lambda: resigned({"kid": "x' UNION SELECT 'secret' --"}, rsa_key("theirs")),
    ),
    "kid that is unknown": (BadSignature, lambda: signed_jwt(headers={"kid": "rsa-2"})),
    "kid that is empty": (BadSignature, lambda: signed_jwt(headers={"kid": ""})),
    "kid that is no string": (BadSignature, lambda: handmade_jwt({"alg": "RS256", "kid": [1]})),
    "crit": (BadSignature, lambda: handmade_jwt({"alg": "RS256", "crit": ["exp"]})),
    "b64": (BadSignature, lambda: handmade_jwt({"alg": "RS256", "b64": True})),
    "b64 and crit": (
        BadSignature,
        lambda: handmade_jwt({"alg": "RS256", "b64": False, "crit": ["b64"]}),
    ),
    "typ of something else": (BadSignature, lambda: signed_jwt(headers={"typ": "dpop+jwt"})),
    "header that is no object": (BadSignature, lambda: "WzFd." + "e30.AAAA"),
    # What was signed stays as it was signed.
    "footer swapped": (BadSignature, lambda: swapped(paseto(b"one"), paseto(b"two"), 3)),
    "footer added": (BadSignature, lambda: paseto() + "." + encoded(b"{}")),
    "footer dropped": (BadSignature, lambda: paseto(b"one").rpartition(".")[0]),
    "footer empty": (BadSignature, lambda: paseto() + "."),
    "footer names another key": (BadSignature, lambda: paseto(b'{"kid": "k4.pid.two"}')),
    "payload swapped, PASETO": (
        BadSignature,
        lambda: (
            "v4.public."
            + encoded(
                json.dumps(claims(sub="user:root")).encode()
                + urlsafe_b64decode(paseto().split(".")[2] + "==")[-64:]
            )
        ),
    ),
    "payload swapped, JWT": (
        BadSignature,
        lambda: swapped(signed_jwt(), signed_jwt(sub="user:root"), 1),
    ),
    "header swapped, JWT": (
        BadSignature,
        lambda: swapped(signed_jwt(), signed_jwt(headers={"kid": RSA_KID}), 0),
    ),
    "signature swapped, JWT": (
        BadSignature,
        lambda: swapped(signed_jwt(), signed_jwt(sub="user:root"), 2),
    ),
    # Other forms, and no form at all.
    "v2.public": (BadSignature, lambda: paseto(version=2)),
    "v2.public said to be v4": (BadSignature, lambda: paseto(version=2).replace("v2", "v4")),
    "v3.public": (BadSignature, lambda: "v3.public." + encoded(b"{}" + b"x" * 96)),
    "v4.local": (
        BadSignature,
        lambda: pyseto.encode(
            pyseto.Key.new(4, "local", ed_key().public_key().public_bytes_raw()),
            json.dumps(claims()).encode(),
        ).decode(),
    ),
    "JWE": (BadSignature, lambda: signed_jwt() + ".AAAA.AAAA"),
    "an API key": (BadSignature, lambda: "sk_live_0123456789abcdef"),
    "one dot": (BadSignature, lambda: "AAAA.AAAA"),
    "PASETO cut short": (BadSignature, lambda: paseto()[:-1]),
    "PASETO cut to its signature": (BadSignature, lambda: "v4.public." + encoded(b"x" * 64)),
    "PASETO of nothing": (BadSignature, lambda: "v4.public."),
    "JWT cut short": (BadSignature, lambda: signed_jwt()[:-1]),
    "JWT without its signature": (BadSignature, lambda: signed_jwt().rpartition(".")[0] + "."),
    "JWT padded": (BadSignature, lambda: signed_jwt() + "=="),
    "base64 of one letter": (BadSignature, lambda: "v4.public.A"),
    "JWT spelt otherwise": (BadSignature, lambda: other_spelling(signed_jwt())),
    "PASETO spelt otherwise": (BadSignature, lambda: other_spelling(paseto(b"four"))),
    "a newline": (BadSignature, lambda: paseto() + "\n"),
    "letters of elsewhere": (BadSignature, lambda: paseto() + "é"),
    "too large": (BadSignature, lambda: paseto(filler="x" * TOKEN_BYTES_MAX)),
    "nested too deep": (BadSignature, lambda: paseto(payload=DEEP)),
    "payload that is no JSON": (BadSignature, lambda: paseto(payload=b"\xff\xfe")),
    "payload that is a list": (BadSignature, lambda: paseto(payload=b'["iss"]')),
    # Claims that are not those of 001 §4.2.
    "no sub": (BadSignature, lambda: paseto(sub=None)),
    "no aud": (BadSignature, lambda: paseto(aud=None)),
    "no exp": (BadSignature, lambda: paseto(exp=None)),
    "no iat": (BadSignature, lambda: paseto(iat=None)),
    "no jti": (BadSignature, lambda: paseto(jti=None)),
    "no exp, JWT": (BadSignature, lambda: signed_jwt(exp=None)),
    "exp as text": (BadSignature, lambda: paseto(exp="2099-01-01T00:00:00Z")),
    "exp with a fraction": (BadSignature, lambda: paseto(exp=NOW_S + 0.5)),
    "exp beyond all time": (BadSignature, lambda: paseto(exp=2**63)),
    "jti that is empty": (BadSignature, lambda: paseto(jti="")),
    "sub without a type": (BadSignature, lambda: paseto(sub="planner_v3")),
    "sub that cannot call": (BadSignature, lambda: paseto(sub="org:acme")),
    "sub with a newline": (BadSignature, lambda: paseto(sub=ACTOR + "\n")),
    "wildcard in caps": (BadSignature, lambda: paseto(caps=["scope.read.*"])),
    "star in caps": (BadSignature, lambda: paseto(caps=["*"])),
    "caps as text": (BadSignature, lambda: paseto(caps="scope.write")),
    "wildcard in a grant": (BadSignature, lambda: paseto(scopes=["scope.*:org:acme/*"])),
    "grant without a path": (BadSignature, lambda: paseto(scopes=["scope.write"])),
    "grant for everywhere": (BadSignature, lambda: paseto(scopes=["scope.write:*"])),
    # Bound to someone else.
    "another tenant": (WrongTenant, lambda: paseto(aud="cortexdb:tenant:umbrella")),
    "another tenant, JWT": (WrongTenant, lambda: signed_jwt(aud="cortexdb:tenant:umbrella")),
    "two tenants": (
        WrongTenant,
        lambda: paseto(aud=["cortexdb:tenant:acme", "cortexdb:tenant:umbrella"]),
    ),
    "no tenant in aud": (WrongTenant, lambda: paseto(aud="acme")),
    "empty tenant": (WrongTenant, lambda: paseto(aud="cortexdb:tenant:")),
    "tenant with a path": (WrongTenant, lambda: paseto(aud="cortexdb:tenant:acme/../umbrella")),
    "no audience at all": (WrongTenant, lambda: paseto(aud=[])),
    # At the wrong time.
    "expired": (ExpiredToken, lambda: paseto(iat=NOW_S - 7200, exp=NOW_S - 3600)),
    "expired, JWT": (ExpiredToken, lambda: signed_jwt(iat=NOW_S - 7200, exp=NOW_S - 3600)),
    "of the far future": (
        ExpiredToken,
        lambda: paseto(iat=NOW_S + 86400 * 365, exp=NOW_S + 86400 * 365 + 60),
    ),
    "for ever": (ExpiredToken, lambda: paseto(exp=NOW_S + 86400 * 3650)),
    "for a month, and no service": (ExpiredToken, lambda: paseto(exp=NOW_S + 86400 * 30)),
    # Taken back, or another's.
    "revoked": (RevokedToken, lambda: paseto(jti="taken-back")),
    "revoked, JWT": (RevokedToken, lambda: signed_jwt(jti="taken-back")),
    "of another actor": (ActorMismatch, lambda: paseto(sub="user:root")),
    "of another actor, JWT": (ActorMismatch, lambda: signed_jwt(sub="agent:planner_v30")),
    "nothing": (MissingToken, lambda: ""),
}


@pytest.mark.parametrize("kind, make", FORGED.values(), ids=FORGED)
async def test_a_forged_token_is_refused(verifier, revoked, kind, make):
    """Accepted = 0; each with the code of its step, and no part of the token in the answer."""
    revoked.add("taken-back")
    token = make()

    with pytest.raises(Unauthenticated) as refused:
        await verifier.verify(token, ACTOR)

    assert kind is type(refused.value)
    assert verifier.cached(token, ACTOR) is None
    said = f"{refused.value.message} {refused.value.details}"
    parts = [part for part in token.split(".") if len(part) > 8]
    assert [] == [part for part in (*parts, ACTOR, "jti-1", "umbrella") if part in said]


@pytest.mark.parametrize("actor", [None, "", "agent:planner_V3", ACTOR + " ", "user:alice"])
async def test_the_actor_must_be_the_subject(verifier, actor):
    """X-Cortex-Actor is required, and equals sub to the letter (001 §4.1)."""
    with pytest.raises(ActorMismatch):
        await verifier.verify(paseto(), actor)


WORSE = {"sub": "user:root", "jti": "taken-back"}
LATE = WORSE | {"iat": NOW_S - 7200, "exp": NOW_S - 3600}
ASTRAY = LATE | {"aud": "cortexdb:tenant:umbrella"}


@pytest.mark.parametrize(
    "changes, expected",
    [
        (ASTRAY | {"iss": "https://evil.example"}, BadSignature),
        (ASTRAY, WrongTenant),
        (LATE, ExpiredToken),
        (WORSE, RevokedToken),
        ({"sub": "user:root"}, ActorMismatch),
    ],
)
async def test_the_first_check_that_fails_answers(verifier, revoked, changes, expected):
    """Signature and issuer, audience, time, revocation, actor: the order of 001 §4.3."""
    revoked.add("taken-back")

    with pytest.raises(Unauthenticated) as refused:
        await verifier.verify(paseto(**changes), ACTOR)

    assert expected is type(refused.value)


async def test_a_bad_claim_is_named(verifier):
    """An operator who sets up a provider reads which claim is wrong, but not what it said."""
    with pytest.raises(BadSignature) as missing:
        await verifier.verify(paseto(jti=None), ACTOR)
    with pytest.raises(BadSignature) as malformed:
        await verifier.verify(paseto(caps=["secret.*"]), ACTOR)

    assert "its claim jti is missing or malformed" == missing.value.details["reason"]
    assert "its claim caps is missing or malformed" == malformed.value.details["reason"]


@cache
def whole() -> tuple[str, ...]:
    """One good token of each form."""
    return paseto(b'{"kid": "%s"}' % ED_KID.encode()), signed_jwt(), signed_jwt("ES256")


@st.composite
def mutants(draw):
    """A good token in which a few letters are others, or which goes on as another one does."""
    token, other = draw(st.permutations(whole()))[:2]
    start = draw(st.integers(0, len(token)))
    if draw(st.booleans()):
        return token[:start] + other[draw(st.integers(0, len(other))) :]
    letters = draw(st.text(st.characters(codec="ascii"), max_size=8))
    return token[:start] + letters + token[start + draw(st.integers(0, 8)) :]


@settings(max_examples=400, deadline=None)
@given(mutants())
def test_a_changed_token_is_never_taken(mutant):
    """Whatever is changed, cut or spliced: it was not signed like that."""
    assume(mutant not in whole())
    verifier = Verifier(issuers(), None, HandClock(), lambda _: False)

    with pytest.raises(Unauthenticated):
        finished(verifier.verify(mutant, ACTOR))


# ── what is remembered ───────────────────────────────────────────────────────────────────────


async def test_a_verified_token_is_remembered_for_a_minute(verifier, clock):
    """A signature is not checked on every call, nor believed for longer than a minute."""
    token = paseto()

    before = verifier.cached(token, ACTOR)
    verified = await verifier.verify(token, ACTOR)
    clock.passed_s = CACHE_S_MAX - 1
    soon = verifier.cached(token, ACTOR)
    clock.passed_s = CACHE_S_MAX
    later = verifier.cached(token, ACTOR)

    assert before is None
    assert soon is verified
    assert later is None


async def test_a_use_does_not_prolong_the_minute(verifier, clock):
    """Counted from the check, or a busy token would outlive its issuer's place on the list."""
    token = paseto()
    await verifier.verify(token, ACTOR)

    clock.passed_s = CACHE_S_MAX - 1
    verifier.cached(token, ACTOR)
    clock.passed_s = CACHE_S_MAX + 1

    assert verifier.cached(token, ACTOR) is None


async def test_a_remembered_token_expires(verifier, clock):
    """Nothing is remembered past exp; within the leeway it is checked in full each time."""
    token = paseto(exp=NOW_S + 10)
    await verifier.verify(token, ACTOR)

    clock.passed_s = 10
    remembered = verifier.cached(token, ACTOR)
    verified = await verifier.verify(token, ACTOR)
    again = verifier.cached(token, ACTOR)

    assert (None, None) == (remembered, again)
    assert "jti-1" == verified.token_id


async def test_a_remembered_token_can_be_revoked(verifier, revoked):
    """A revocation takes effect with the next call, remembered or not (001 §4.5)."""
    token = paseto()
    await verifier.verify(token, ACTOR)

    revoked.add("jti-1")

    with pytest.raises(RevokedToken):
        verifier.cached(token, ACTOR)
    with pytest.raises(RevokedToken):
        await verifier.verify(token, ACTOR)


@pytest.mark.parametrize("actor", [None, "user:root"])
async def test_a_remembered_token_names_one_actor(verifier, actor):
    """Who has seen a token go through cannot use it as someone else."""
    token = paseto()
    await verifier.verify(token, ACTOR)

    with pytest.raises(ActorMismatch):
        verifier.cached(token, actor)


async def test_a_refused_token_is_not_remembered(verifier):
    """A token that failed on its actor is checked again, signature and all."""
    token = paseto()
    with pytest.raises(ActorMismatch):
        await verifier.verify(token, "user:root")

    assert verifier.cached(token, ACTOR) is None


async def test_memory_for_tokens_is_bounded(verifier):
    """Beyond ten thousand the least used is forgotten; forgetting costs a check, no more."""
    used, unused = paseto(), paseto(jti="jti-2")
    verified = await verifier.verify(used, ACTOR)
    await verifier.verify(unused, ACTOR)

    verifier.cached(used, ACTOR)
    for number in range(CACHE_TOKENS_MAX - 1):
        verifier._keep(f"token {number}", verified)

    assert verified is verifier.cached(used, ACTOR)
    assert verifier.cached(unused, ACTOR) is None
    assert CACHE_TOKENS_MAX == len(verifier._kept)


def test_unpaired_surrogates_are_no_token(verifier):
    """A header can be decoded to text that is not Unicode; it is refused, and breaks nothing."""
    token = "\ud800"

    assert verifier.cached(token, ACTOR) is None
    with pytest.raises(BadSignature):
        asyncio.run(verifier.verify(token, ACTOR))


# ── what a token says ────────────────────────────────────────────────────────────────────────


def test_the_sample_of_appendix_c_can_be_read():
    """The claims of 001 Appendix C, grant by grant."""
    found = msgspec.convert(APPENDIX_C, Claims)

    assert tuple(APPENDIX_C["caps"]) == found.caps
    assert [Grant("scope.write", "org:acme/dept:eng", is_deep=True), "org:acme"] == [
        Grant.parse(found.scopes[0]),
        Grant.parse(found.scopes[1]).path,
    ]
    assert "acme" == tenant_of(found.aud)


@pytest.mark.parametrize(
    "aud, expected",
    [
        ("cortexdb:tenant:acme", "acme"),
        (("https://userinfo", "cortexdb:tenant:acme"), "acme"),
        (("cortexdb:tenant:acme", "cortexdb:tenant:umbrella"), None),
        ("cortexdb:tenant:", None),
        ("cortexdb:tenant:a/b", None),
        ("cortexdb:tenant:acme\n", None),
        ("CORTEXDB:tenant:acme", None),
        ("acme", None),
        ((), None),
    ],
)
def test_an_audience_names_one_tenant(aud, expected):
    """Several audiences may be listed, one tenant; its name is letters, digits, - and _."""
    assert expected == tenant_of(aud)


@pytest.mark.parametrize(
    "changes, is_good",
    [
        ({}, True),
        ({"aud": ["cortexdb:tenant:acme"]}, True),
        ({"caps": ["scope.read.*"]}, False),
        ({"scopes": ["scope.write:org:acme/*/*"]}, False),
        ({"sub": "planner"}, False),
        ({"exp": "soon"}, False),
    ],
)
def test_the_schema_says_the_same(changes, is_good):
    """token_claims.schema.json follows from the struct, so both refuse the same (Appendix D)."""
    schema = msgspec.json.schema(Claims)
    checker = jsonschema.Draft202012Validator(schema)

    assert is_good == checker.is_valid(APPENDIX_C | changes)


@pytest.mark.parametrize(
    "grant, capability, scope, expected",
    [
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme/dept:eng", True),
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme/dept:eng/user:a", True),
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme/dept:eng/x:y/z:w", True),
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme", False),
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme/dept:engine", False),
        ("scope.write:org:acme/dept:eng/*", "scope.write", "org:acme/dept:ops", False),
        ("scope.write:org:acme/dept:eng/*", "scope.write.elevated", "org:acme/dept:eng", False),
        ("scope.write:org:acme/dept:eng/*", "scope", "org:acme/dept:eng", False),
        ("scope.write:org:acme", "scope.write", "org:acme", True),
        ("scope.write:org:acme", "scope.write", "org:acme/dept:eng", False),
    ],
)
def test_a_grant_reaches_so_far(grant, capability, scope, expected):
    """With /* that scope and all below it, without exactly that scope; no prefix of a name."""
    parsed = Grant.parse(grant)

    assert expected is parsed.allows(capability, scope)
    assert grant == str(parsed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "scope.write",
        "scope.write:",
        "scope.write:*",
        "scope.write:/*",
        "scope.write:org",
        "scope.*:org:acme",
        "Scope.write:org:acme",
        "scope.write:org:acme/",
        "scope.write:org:acme/**",
        "scope.write:org:acme/*/dept:eng",
        "scope.write:org:acme/../org:umbrella",
        "scope.write:org:acme/*\n",
        " scope.write:org:acme",
    ],
)
def test_what_is_no_grant_is_refused(text):
    """A grant that cannot be read grants nothing: it makes the token invalid."""
    with pytest.raises(ValueError):
        Grant.parse(text)
