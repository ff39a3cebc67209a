"""Is each issuer in the file believed as it says, and what cannot be used refused by name?"""

import json
from functools import cache

import pyseto
import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from engine.issuers import (
    JWT_ALGORITHMS,
    KEYS_MAX,
    Issuer,
    IssuerError,
    KeyRefused,
    check_jwks_url,
    load_issuers,
    make_key,
    read_key,
    select,
)

JWKS = "https://acme.okta.example/oauth2/default/v1/keys"
MAKERS = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "weak RSA": lambda: rsa.generate_private_key(65537, 1024),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "DSA": lambda: dsa.generate_private_key(1024),
}


@cache
def private(name: str):
    return MAKERS[name]()


@cache
def pem(name: str) -> str:
    public = private(name).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(name: str) -> str:
    return private(name).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def paserk(kind: str = "public") -> str:
    raw = private("Ed25519").private_bytes_raw()
    if kind == "secret":
        return pyseto.Key.from_asymmetric_key_params(4, d=raw).to_paserk()
    public = private("Ed25519").public_key().public_bytes_raw()
    return pyseto.Key.from_asymmetric_key_params(4, x=public).to_paserk()


@pytest.fixture
def load(tmp_path):
    """The issuers of a file with these entries."""

    def loaded(*entries: dict, **options) -> tuple[Issuer, ...]:
        path = tmp_path / "issuers.json"
        path.write_text(json.dumps({"issuers": entries}), encoding="utf-8")
        return load_issuers(path, **options)

    return loaded


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name, algorithm", [("RSA", "RS256"), ("P-256", "ES256"), ("Ed25519", "v4.public")]
)
def test_a_key_has_one_algorithm(name, algorithm):
    """The algorithm follows from the key: there is nothing left for a token to choose."""
    key = read_key(pem(name), "k1")

    assert (algorithm, "k1") == (key.algorithm, key.kid)


def test_paserk_is_the_same_key_as_pem():
    """Two spellings of one Ed25519 key."""
    assert read_key(paserk()).public.to_paserk() == read_key(pem("Ed25519")).public.to_paserk()


@pytest.mark.parametrize(
    "text, reason",
    [
        (lambda: pem("weak RSA"), "an RSA key has 2048 to 8192 bits; this one 1024"),
        (lambda: pem("P-384"), "an elliptic key is on P-256; this one on secp384r1"),
        (lambda: pem("DSA"), "a key is a public one of RSA, P-256 or Ed25519"),
        (lambda: private_pem("RSA"), "this is a private key"),
        (lambda: private_pem("Ed25519"), "this is a private key"),
        (lambda: paserk("secret"), "this is a private key"),
        (lambda: "k4.public.AAAA", "the PASERK holds no Ed25519 public key"),
        (lambda: "k4.local.AAAA", "the only PASERK taken is k4.public."),
        (lambda: paserk().replace("k4", "k2"), "the only PASERK taken is k4.public."),
        (lambda: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "can be read"),
        (lambda: "-----BEGIN CERTIFICATE-----", "expected a public key in PEM"),
        (lambda: "ssh-rsa AAAA", "expected a public key in PEM"),
        (lambda: "", "expected a public key in PEM"),
    ],
)
def test_what_is_no_key_of_ours_is_refused(text, reason):
    """Weak keys, other curves, private halves: the message says which, and repeats no key."""
    with pytest.raises(KeyRefused, match=reason.replace(".", r"\.")) as refused:
        read_key(text())

    assert "AAAA" not in str(refused.value)


def test_a_private_key_object_is_refused():
    """Only public halves verify; the other half has no business here."""
    with pytest.raises(KeyRefused):
        make_key(private("RSA"))


def test_a_kid_only_narrows_the_choice():
    """A name that is known chooses its key; one that is not leaves those without a name."""
    one, two, unnamed = (read_key(pem("P-256"), kid) for kid in ("one", "two", None))

    assert (one, two, unnamed) == select((one, two, unnamed), None)
    assert (two,) == select((one, two, unnamed), "two")
    assert (unnamed,) == select((one, two, unnamed), "three")
    assert () == select((one, two), "three")


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def test_yaml_names_keys_in_each_spelling(tmp_path):
    """PEM as a block, PASERK on a line, with and without a kid."""
    block = "\n".join("          " + line for line in pem("Ed25519").splitlines())
    path = tmp_path / "issuers.yaml"
    path.write_text(
        f"""
issuers:
  - iss: https://auth.acme.com/cortexdb
    kind: paseto
    tenants: [acme]
    keys:
      - {paserk()}
      - kid: k4.pid.one
        key: |
{block}
  - iss: https://acme.okta.example/oauth2/default
    kind: jwt
    jwks_url: {JWKS}
    algorithms: [RS256]
""",
        encoding="utf-8",
    )

    ours, okta = load_issuers(path)

    assert ("https://auth.acme.com/cortexdb", "paseto", None) == (
        ours.iss,
        ours.kind,
        ours.jwks_url,
    )
    assert [("v4.public", None), ("v4.public", "k4.pid.one")] == [
        (key.algorithm, key.kid) for key in ours.keys
    ]
    assert (frozenset({"acme"}), None) == (ours.tenants, okta.tenants)
    assert ("jwt", (), JWKS, ("RS256",)) == (okta.kind, okta.keys, okta.jwks_url, okta.algorithms)


def test_json_is_read_too(load):
    """A file named .json is JSON, tabs and all."""
    (issuer,) = load({"iss": "a", "kind": "jwt", "keys": [pem("RSA"), {"key": pem("P-256")}]})

    assert ["RS256", "ES256"] == [key.algorithm for key in issuer.keys]
    assert JWT_ALGORITHMS == issuer.algorithms


def test_no_issuer_is_an_answer(load):
    """An empty list is a deployment that believes nobody."""
    assert () == load()


@pytest.mark.parametrize(
    "entry, fault",
    [
        ({"kind": "saml"}, "Invalid enum value 'saml' - at `$.issuers[1].kind`"),
        ({"iss": ""}, "at `$.issuers[1].iss`"),
        ({"jwks": JWKS}, "unknown field `jwks` - at `$.issuers[1]`"),
        ({"algorithms": ["HS256"]}, "at `$.issuers[1].algorithms[0]`"),
        ({"algorithms": []}, "at `$.issuers[1].algorithms`"),
        ({"keys": ["x"] * (KEYS_MAX + 1)}, "at `$.issuers[1].keys`"),
        ({"iss": "first"}, "issuers[1] (first): iss: another entry has it too"),
        ({"keys": [], "jwks_url": None}, "issuers[1] (second): give either keys or jwks_url"),
        ({"keys": ["x"]}, "issuers[1] (second): give either keys or jwks_url"),
        ({"kind": "paseto"}, "issuers[1] (second): jwks_url: a PASETO issuer has keys"),
        ({"jwks_url": "http://acme.example/"}, "issuers[1] (second): jwks_url: keys are fetched"),
        ({"jwks_url": None, "keys": ["x"]}, "issuers[1] (second): keys[0]: expected a public key"),
        ({"tenants": ["a/b"]}, "issuers[1] (second): tenants: a tenant is letters"),
    ],
)
def test_a_fault_is_found_by_its_entry(load, entry, fault):
    """The message names the file, the entry and the field, and says what would do."""
    first = {"iss": "first", "kind": "jwt", "jwks_url": JWKS}

    with pytest.raises(IssuerError) as refused:
        load(first, {"iss": "second", "kind": "jwt", "jwks_url": JWKS} | entry)

    assert fault in str(refused.value)
    assert "issuers.json: " in str(refused.value)


@pytest.mark.parametrize(
    "entry, fault",
    [
        ({"kind": "paseto", "key": "RSA"}, "a key for RS256; here v4.public"),
        ({"kind": "jwt", "key": "Ed25519"}, "a key for v4.public; here RS256, ES256"),
        ({"kind": "jwt", "key": "RSA", "algorithms": ["ES256"]}, "a key for RS256; here ES256"),
        ({"kind": "paseto", "key": "Ed25519", "algorithms": ["RS256"]}, "algorithms: PASETO"),
    ],
)
def test_a_key_of_another_form_is_refused(load, entry, fault):
    """An Ed25519 key verifies PASETO alone, RSA and P-256 keys JWT alone."""
    keys = [pem(entry.pop("key"))]

    with pytest.raises(IssuerError, match=fault):
        load({"iss": "a", "keys": keys} | entry)


@pytest.mark.parametrize("content", [b"issuers: [", b"issuer: []", b"- a", b"\xff\xfe\x00", b""])
def test_what_is_no_list_of_issuers_is_refused(tmp_path, content):
    """The file is named; nobody is believed by accident."""
    path = tmp_path / "issuers.yaml"
    path.write_bytes(content)

    with pytest.raises(IssuerError, match=r"issuers\.yaml: "):
        load_issuers(path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    """A misspelt path must not mean that nobody is on the list."""
    with pytest.raises(IssuerError, match=r"none\.yaml: No such file"):
        load_issuers(tmp_path / "none.yaml")


# ── where keys may be fetched from ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url",
    [
        "http://acme.okta.example/keys",
        "http://127.0.0.1:8000/keys",
        "file:///etc/passwd",
        "ftp://acme.example/keys",
        "https:///keys",
        "https://user:secret@acme.example/keys",
        "https://acme.example/keys#top",
        "https://acme.example:port/keys",
        "//acme.example/keys",
        "keys.json",
        "",
    ],
)
def test_keys_come_over_https_only(url):
    """Whoever could change the answer on its way could mint any token."""
    with pytest.raises(IssuerError, match=r"^jwks_url: "):
        check_jwks_url(url)


@pytest.mark.parametrize(
    "url, is_good",
    [
        ("http://127.0.0.1:8000/keys", True),
        ("http://[::1]:8000/keys", True),
        ("http://localhost:8000/keys", False),
        ("http://127.0.0.1.evil.example/keys", False),
        ("http://10.0.0.1/keys", False),
        ("ftp://127.0.0.1/keys", False),
    ],
)
def test_tests_may_use_http_at_home(load, url, is_good):
    """Plain HTTP, when enabled, reaches loopback addresses and no name, whatever it resolves to."""
    entry = {"iss": "a", "kind": "jwt", "jwks_url": url}

    if is_good:
        assert url == load(entry, allow_loopback_http=True)[0].jwks_url
    else:
        with pytest.raises(IssuerError):
            load(entry, allow_loopback_http=True)
