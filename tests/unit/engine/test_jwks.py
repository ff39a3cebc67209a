"""Are a provider's keys fetched rarely, bounded, and never believed for too long?

Against a real HTTP server on loopback, with a clock moved by hand.
"""

import asyncio
import contextlib
import gzip
import json
import ssl
from datetime import UTC, datetime, timedelta
from functools import cache

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from engine.clock import Clock
from engine.issuers import KEYS_MAX, Issuer, IssuerError
from engine.jwks import (
    BYTES_MAX,
    FETCH_S_MAX,
    REFRESH_S,
    RETRY_DOWN_S,
    RETRY_S,
    TTL_S,
    UNAVAILABLE,
    FetchFailed,
    Jwks,
    read_key_set,
)
from engine.tokens import Verifier
from schemas.errors import BadSignature

NOW_S = 1_770_000_000
ISS = "https://acme.okta.example/oauth2/default"
ALL = ("RS256", "ES256")
_PATIENCE_S = 60.0


class HandClock(Clock):
    """Both clocks moved by hand, together."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        super().__init__(lambda: int((NOW_S + self.passed_s) * 1_000_000), seed=1)

    def elapsed_s(self) -> float:
        return self.passed_s


class Provider:
    """An identity provider: answers every request with what it was told to, and counts them."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.status, self.headers, self.body = "200 OK", "", b""
        self.is_chunked = False
        self.asked, self.open = asyncio.Event(), asyncio.Event()
        self.open.set()

    def publish(self, *kids: str) -> None:
        self.body = json.dumps({"keys": [ec_jwk(kid) for kid in kids]}).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head.decode().splitlines()[0])
        self.asked.set()
        await self.open.wait()
        if self.is_chunked:
            length, body = "Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n"
            body %= (len(self.body), self.body)
        else:
            length, body = f"Content-Length: {len(self.body)}", self.body
        lines = f"HTTP/1.1 {self.status}\r\n{self.headers}{length}\r\nConnection: close\r\n\r\n"
        writer.write(lines.encode() + body)
        # A client that has seen enough hangs up.
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def listening(provider: Provider, **options):
    """The port at which this provider answers."""
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0, **options)
    async with server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def watched(*kids: str):
    """A provider with these keys, our view of it, and the clock that view goes by."""
    provider, clock = Provider(), HandClock()
    provider.publish(*kids)
    async with listening(provider) as port:
        issuer = Issuer(iss=ISS, kind="jwt", jwks_url=f"http://127.0.0.1:{port}/keys")
        yield provider, Jwks(issuer, clock, allow_loopback_http=True), clock


@cache
def ec_key(kid: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def ec_jwk(name: str, **changes) -> dict:
    jwk = ECAlgorithm.to_jwk(ec_key(name).public_key(), as_dict=True)
    return jwk | {"kid": name, "use": "sig"} | changes


def rsa_jwk(bits: int = 2048, **changes) -> dict:
    return RSAAlgorithm.to_jwk(rsa_key(bits).public_key(), as_dict=True) | changes


def names(keys) -> list[str | None]:
    return [key.kid for key in keys]


# ── when it asks ─────────────────────────────────────────────────────────────────────────────


async def test_keys_are_fetched_once():
    """The first token waits for the keys; the next ones find them."""
    async with watched("one", "two") as (provider, jwks, _):
        found = [names(await jwks.keys(kid)) for kid in ("one", "two", None)]

        assert [["one"], ["two"], ["one", "two"]] == found
        assert ["GET /keys HTTP/1.1"] == provider.requests
        assert jwks.failure is None


async def test_many_at_once_ask_once():
    """A thousand callers after a restart are one request to the provider."""
    async with watched("one") as (provider, jwks, _):
        found = await asyncio.gather(*(jwks.keys("one") for _ in range(20)))

        assert [["one"]] * 20 == [names(keys) for keys in found]
        assert 1 == len(provider.requests)


async def test_a_caller_who_hangs_up_takes_nobody_along():
    """The fetch belongs to all who wait for it, not to the one who began it."""
    async with watched("one") as (provider, jwks, _):
        provider.open.clear()
        first = asyncio.create_task(jwks.keys("one"))
        second = asyncio.create_task(jwks.keys("one"))
        await asyncio.wait_for(provider.asked.wait(), _PATIENCE_S)
        first.cancel()
        provider.open.set()

        assert ["one"] == names(await second)
        assert first.cancelled()
        assert 1 == len(provider.requests)


async def test_an_unknown_kid_asks_once_a_minute():
    """A provider may have a new key; a thousand made-up names must not become its problem."""
    async with watched("one") as (provider, jwks, clock):
        await jwks.keys("one")

        counts = []
        for passed_s in (1, RETRY_S - 1, RETRY_S, RETRY_S + 1, 2 * RETRY_S - 1, 2 * RETRY_S):
            clock.passed_s = passed_s
            assert () == await jwks.keys(f"made up at {passed_s}")
            counts.append(len(provider.requests))

        assert [1, 1, 2, 2, 2, 3] == counts


async def test_a_new_key_is_found_by_its_name():
    """After a rotation the first token of the new key brings it here."""
    async with watched("one") as (provider, jwks, clock):
        await jwks.keys("one")
        provider.publish("one", "two")
        clock.passed_s = RETRY_S

        assert ["two"] == names(await jwks.keys("two"))


async def test_keys_are_looked_up_again_while_they_serve():
    """Past half their time the keys are fetched in the background: no caller waits for it."""
    async with watched("one") as (provider, jwks, clock):
        await jwks.keys("one")
        provider.publish("two")
        clock.passed_s = REFRESH_S
        provider.open.clear()
        provider.asked.clear()

        meanwhile = names(await jwks.keys("one"))
        await asyncio.wait_for(provider.asked.wait(), _PATIENCE_S)
        provider.open.set()
        await jwks.refresh()

        assert ["one"] == meanwhile
        assert ["two"] == names(await jwks.keys(None))
        assert 2 == len(provider.requests)


async def test_a_refresh_is_no_way_around_the_pause():
    """Whoever asks for fresh keys gets those of the last minute."""
    async with watched("one") as (provider, jwks, _):
        await jwks.refresh()
        await jwks.refresh()

        assert 1 == len(provider.requests)


async def test_a_withdrawn_key_dies():
    """A key that is no longer published verifies nothing, ten minutes later at the latest."""
    async with watched("one", "two") as (provider, jwks, clock):
        await jwks.keys("one")
        provider.publish("two")
        clock.passed_s = TTL_S

        assert () == await jwks.keys("one")
        assert ["two"] == names(await jwks.keys("two"))


# ── when it fails ────────────────────────────────────────────────────────────────────────────


async def test_old_keys_serve_while_the_provider_is_away_and_then_no_longer():
    """Within the ten minutes an outage goes unnoticed; after them nobody gets in."""
    async with watched("one") as (provider, jwks, clock):
        await jwks.keys("one")
        provider.status = "503 Service Unavailable"

        clock.passed_s = TTL_S - 1
        served = names(await jwks.keys("one"))
        await jwks.refresh()
        clock.passed_s = TTL_S
        with pytest.raises(BadSignature) as refused:
            await jwks.keys("one")

        assert ["one"] == served
        assert UNAVAILABLE == refused.value.details["reason"]
        assert "the provider answered 503" == jwks.failure


async def test_it_comes_back_by_itself():
    """Without keys the provider is asked again after seconds, and in between not at all."""
    async with watched("one") as (provider, jwks, clock):
        provider.status = "500 Internal Server Error"
        for passed_s in (0, 1, RETRY_DOWN_S - 1):
            clock.passed_s = passed_s
            with pytest.raises(BadSignature):
                await jwks.keys("one")
        asked = len(provider.requests)
        provider.status = "200 OK"
        clock.passed_s = RETRY_DOWN_S

        assert 1 == asked
        assert ["one"] == names(await jwks.keys("one"))
        assert jwks.failure is None


async def test_nobody_there_lets_nobody_in():
    """A provider that cannot be reached is no reason to believe a token."""
    async with watched("one") as (_, jwks, _clock):
        pass

    with pytest.raises(BadSignature, match="keys are unavailable"):
        await jwks.keys("one")
    assert jwks.failure


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_refused(status):
    """Whoever can redirect the request could choose the keys; the target is not even asked."""
    async with watched("one") as (provider, jwks, _):
        provider.status, provider.headers = status, "Location: /elsewhere\r\n"

        with pytest.raises(BadSignature):
            await jwks.keys("one")

        assert ["GET /keys HTTP/1.1"] == provider.requests


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("excess, is_good", [(0, True), (1, False)])
async def test_size_is_bounded(is_chunked, excess, is_good):
    """64 KiB, whether the length is announced or not."""
    async with watched("one") as (provider, jwks, _):
        provider.is_chunked = is_chunked
        provider.body += b" " * (BYTES_MAX - len(provider.body) + excess)

        if is_good:
            assert ["one"] == names(await jwks.keys("one"))
        else:
            with pytest.raises(BadSignature):
                await jwks.keys("one")
            assert f"the key set has more than {BYTES_MAX} bytes" == jwks.failure


async def test_compressed_data_is_refused():
    """It was not asked for, and a kilobyte of it can be a gigabyte."""
    async with watched("one") as (provider, jwks, _):
        provider.headers = "Content-Encoding: gzip\r\n"
        provider.body = gzip.compress(provider.body)

        with pytest.raises(BadSignature):
            await jwks.keys("one")

        assert "the provider answered compressed data" == jwks.failure


async def test_time_is_bounded(monkeypatch):
    """A provider that accepts and says nothing holds a caller for seconds, not for ever."""
    asked_for, timeout = [], asyncio.timeout

    def hurried(limit_s):
        asked_for.append(limit_s)
        return timeout(0.05)

    monkeypatch.setattr(asyncio, "timeout", hurried)
    async with watched("one") as (provider, jwks, _):
        provider.open.clear()

        with pytest.raises(BadSignature):
            await jwks.keys("one")

        assert [FETCH_S_MAX] == asked_for
        assert "TimeoutError" == jwks.failure
        provider.open.set()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"keys": {}}', b"<html>", b"\xff", b"[" * 5000]
)
async def test_what_is_no_key_set_is_refused(body):
    """A captive portal answers 200 too."""
    async with watched("one") as (provider, jwks, _):
        provider.body = body

        with pytest.raises(BadSignature):
            await jwks.keys("one")

        assert "the provider's answer is not a key set" == jwks.failure


def certificate() -> tuple[bytes, bytes]:
    """A certificate for 127.0.0.1 that nobody vouches for, and its key."""
    key, name = ec_key("tls"), x509.Name([])
    day = timedelta(days=1)
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    signed = made.sign(key, SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return signed.public_bytes(Encoding.PEM), secret


async def test_a_certificate_must_be_vouched_for(tmp_path):
    """Over https the provider has to be the one that was asked."""
    path = tmp_path / "tls.pem"
    path.write_bytes(b"".join(certificate()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    provider = Provider()
    provider.publish("one")

    async with listening(provider, ssl=context) as port:
        issuer = Issuer(iss=ISS, kind="jwt", jwks_url=f"https://127.0.0.1:{port}/keys")
        jwks = Jwks(issuer, HandClock())
        with pytest.raises(BadSignature):
            await jwks.keys("one")

        assert "CERTIFICATE_VERIFY_FAILED" in jwks.failure
        assert [] == provider.requests


def test_plain_http_is_not_even_tried():
    """The rule of the issuers file holds for issuers made by hand as well."""
    with pytest.raises(IssuerError):
        Jwks(Issuer(iss=ISS, kind="jwt", jwks_url="http://127.0.0.1/keys"), HandClock())


# ── what it takes ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "make, algorithm",
    [
        (lambda: ec_jwk("one"), "ES256"),
        (lambda: ec_jwk("one", alg="ES256"), "ES256"),
        (lambda: rsa_jwk(kid="one"), "RS256"),
        (lambda: rsa_jwk(kid="one", alg="RS256", use="sig", key_ops=["verify"]), "RS256"),
        (lambda: rsa_jwk(kid="one", x5c=["junk"], x5u="https://evil.example"), "RS256"),
    ],
)
def test_a_key_for_signatures_is_taken(make, algorithm):
    """The algorithm follows from the kind of key; certificates beside it are not looked at."""
    (key,) = read_key_set(json.dumps({"keys": [make()]}).encode(), ALL)

    assert (algorithm, "one") == (key.algorithm, key.kid)


IGNORED = {
    "symmetric": lambda: {"kty": "oct", "k": "c2VjcmV0", "kid": "x", "alg": "HS256"},
    "symmetric, said to be RS256": lambda: {"kty": "oct", "k": "c2VjcmV0", "alg": "RS256"},
    "for encryption": lambda: ec_jwk("x", use="enc"),
    "for other operations": lambda: ec_jwk("x", key_ops=["sign"]),
    "operations of no kind": lambda: ec_jwk("x", key_ops=7),
    "for RS512": lambda: rsa_jwk(alg="RS512"),
    "for PS256": lambda: rsa_jwk(alg="PS256"),
    "for HS256": lambda: rsa_jwk(alg="HS256"),
    "weak": lambda: rsa_jwk(1024),
    "with its private half": lambda: RSAAlgorithm.to_jwk(rsa_key(), as_dict=True),
    "Ed25519": lambda: {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43},
    "on P-384": lambda: ECAlgorithm.to_jwk(
        ec.generate_private_key(ec.SECP384R1()).public_key(), as_dict=True
    ),
    "off the curve": lambda: ec_jwk("x", y=ec_jwk("x")["x"]),
    "without its numbers": lambda: {"kty": "RSA"},
    "with numbers of no kind": lambda: rsa_jwk(n=7),
    "kid of no kind": lambda: ec_jwk("x", kid=7),
    "of no kind": dict,
}


@pytest.mark.parametrize("make", IGNORED.values(), ids=IGNORED)
def test_other_keys_are_ignored(make):
    """What is not for us does not spoil what is (RFC 7517 §5); alone, it is no key set."""
    found = read_key_set(json.dumps({"keys": [make(), ec_jwk("good")]}).encode(), ALL)

    assert ["good"] == names(found)
    with pytest.raises(FetchFailed):
        read_key_set(json.dumps({"keys": [make()]}).encode(), ALL)


def test_only_the_issuer_s_algorithms_are_taken():
    """An issuer registered for RS256 cannot begin to sign with ES256 by publishing a key."""
    body = json.dumps({"keys": [ec_jwk("ec"), rsa_jwk(kid="rsa")]}).encode()

    assert ["rsa"] == names(read_key_set(body, ("RS256",)))


def test_the_number_of_keys_is_bounded():
    """A token without a kid is tried with every key."""
    body = json.dumps({"keys": [ec_jwk("one")] * (KEYS_MAX + 1)}).encode()

    assert KEYS_MAX == len(read_key_set(body, ALL))


# ── with tokens ──────────────────────────────────────────────────────────────────────────────


def token(name: str, **headers) -> str:
    claims = {
        "iss": ISS,
        "sub": "user:alice",
        "aud": "cortexdb:tenant:acme",
        "iat": NOW_S,
        "exp": NOW_S + 3600,
        "jti": f"jti-{name}",
    }
    return jwt.encode(claims, ec_key(name), "ES256", headers={"kid": name} | headers)


async def test_tokens_of_a_provider_are_verified_with_its_keys():
    """A token of a key that is published is taken; one of another key, or by its name, is not."""
    provider, clock = Provider(), HandClock()
    provider.publish("one")
    async with listening(provider) as port:
        issuer = Issuer(iss=ISS, kind="jwt", jwks_url=f"http://127.0.0.1:{port}/keys")
        verifier = Verifier([issuer], None, clock, lambda _: False, allow_loopback_http=True)

        verified = await verifier.verify(token("one"), "user:alice")
        for forged in (token("two"), token("two", kid="one")):
            with pytest.raises(BadSignature):
                await verifier.verify(forged, "user:alice")
        clock.passed_s = RETRY_S
        provider.publish("two")
        rotated = await verifier.verify(token("two"), "user:alice")

        assert ("jti-one", "jti-two") == (verified.token_id, rotated.token_id)


async def test_remembered_tokens_outlive_a_provider_s_absence_by_no_more_than_a_minute():
    """Fail closed: without keys a token that is not remembered is refused, with the reason."""
    provider, clock = Provider(), HandClock()
    provider.publish("one")
    async with listening(provider) as port:
        issuer = Issuer(iss=ISS, kind="jwt", jwks_url=f"http://127.0.0.1:{port}/keys")
        verifier = Verifier([issuer], None, clock, lambda _: False, allow_loopback_http=True)
        await verifier.verify(token("one"), "user:alice")
        provider.status = "500 Internal Server Error"
        clock.passed_s = TTL_S

        with pytest.raises(BadSignature, match="keys are unavailable"):
            await verifier.verify(token("one"), "user:alice")
        assert verifier.cached(token("one"), "user:alice") is None
        assert "the provider answered 500" == verifier.remote[ISS].failure
