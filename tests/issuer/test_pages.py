"""What does the issuer publish?  Its public keys, and nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from api.issuer.server import make_app
from api.issuer.signing import make_key, public_half
from api.issuer.store import Store

COMMAND = Path(sys.executable).with_name("cortex-auth-ref")
ISSUER = "https://auth.acme.com/<cortexdb>"
_EXIT_S = 60.0


@pytest.fixture
def database(tmp_path) -> Path:
    """The file of an issuer whose key was rotated once."""
    path = tmp_path / "auth.db"
    store = Store.create(path, ISSUER)
    make_key(store)
    make_key(store)
    store.close()
    return path


def keys_of(database: Path):
    store = Store.open(database)
    keys = [public_half(key) for key in store.list_keys()]
    store.close()
    return keys


def test_the_key_set_has_every_key(database):
    """Ed25519 keys in the form of RFC 8037, the one that signs first, and no private half."""
    with TestClient(make_app(database)) as client:
        answer = client.get("/.well-known/jwks.json")

    first, second = answer.json()["keys"]

    assert [key.kid for key in keys_of(database)] == [first["kid"], second["kid"]]
    assert {"kty", "crv", "x", "kid", "use", "alg"} == set(first)
    assert ("OKP", "Ed25519", "sig") == (first["kty"], first["crv"], first["use"])


def test_the_page_shows_fingerprints(database):
    """For people to compare; the issuer's name is text, not markup."""
    with TestClient(make_app(database)) as client:
        page = client.get("/keys")

    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" == page.headers["content-security-policy"]
    assert all(key.kid in page.text and key.paserk in page.text for key in keys_of(database))
    assert "&lt;cortexdb&gt;" in page.text
    assert "<cortexdb>" not in page.text
    assert "verifies only" in page.text


def test_a_rotation_shows_at_once(database):
    """The pages are read from the file, not from memory."""
    with TestClient(make_app(database)) as client:
        before = client.get("/.well-known/jwks.json").json()["keys"]
        store = Store.open(database)
        made = make_key(store)
        store.close()
        after = client.get("/.well-known/jwks.json").json()["keys"]

    assert made.kid == after[0]["kid"]
    assert before == after[1:]


def test_health_says_whether_the_file_is_there(database):
    """A probe learns what a caller would."""
    with TestClient(make_app(database)) as client:
        up = client.get("/health")
        database.unlink()
        down = client.get("/health")

    assert (200, {"status": "ok"}) == (up.status_code, up.json())
    assert (503, {"status": "down"}) == (down.status_code, down.json())


@pytest.mark.parametrize("path", ["/mint", "/tokens", "/", "/keys"])
def test_nothing_can_be_minted_from_outside(database, path):
    """The service publishes; minting takes the file."""
    with TestClient(make_app(database)) as client:
        assert client.post(path).status_code in {404, 405}


def test_it_serves_until_it_is_told_to_stop(database):
    """`serve` says where it listens, answers, and ends on SIGTERM."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0", "--db", database],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().removeprefix("listening on ").strip()
        with httpx.Client(base_url=url, verify=False) as client:
            health = client.get("/health")
            keys = client.get("/.well-known/jwks.json")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(_EXIT_S)
        process.stdout.close()

    assert url.startswith("http://127.0.0.1:")
    assert (200, 200) == (health.status_code, keys.status_code)
    assert 2 == len(keys.json()["keys"])
    assert 0 == code
