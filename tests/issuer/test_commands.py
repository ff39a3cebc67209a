"""Does the issuer do from a shell what it says, and is what it mints taken by a server?"""

import asyncio
import json
import stat
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from api.issuer.cli import main
from api.issuer.store import Minted, Store
from engine.clock import Clock
from engine.issuers import load_issuers
from engine.tokens import Verifier
from schemas.errors import BadSignature, RevokedToken
from schemas.token import LIFETIME_S_MAX, SERVICE_LIFETIME_S_MAX, Grant

ACTOR, SERVICE = "agent:planner_v3", "service:importer"


@pytest.fixture
def run(tmp_path):
    """`cortex-auth-ref` with these arguments, on a file of the test's own."""

    def invoked(*arguments: str, code: int = 0):
        done = CliRunner().invoke(main, [*arguments, "--db", str(tmp_path / "auth.db")])
        assert code == done.exit_code, done.output
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done

    return invoked


@pytest.fixture
def initialised(run):
    """An issuer with its first key."""
    run("init")


@pytest.fixture
def mint(run):
    """A token for the tenant acme, and what was remembered of it."""

    def minted(*arguments: str, actor: str = ACTOR) -> tuple[str, Minted]:
        done = run("mint", "--json", "--actor", actor, "--tenant", "acme", *arguments)
        found = json.loads(done.stdout)
        return found.pop("token"), Minted(**found)

    return minted


@pytest.fixture
def verifier(tmp_path, run):
    """What a server makes of the issuers file as it is now."""

    def loaded(revoked: set[str] = frozenset()) -> Verifier:
        path = tmp_path / "issuers.yaml"
        run("keys", "--issuers-file", str(path), "--force")
        known = load_issuers(path)
        return Verifier(known, frozenset({"acme"}), Clock(), lambda v: v.token_id in revoked)

    return loaded


def verified(verifier: Verifier, token: str, actor: str = ACTOR):
    return asyncio.run(verifier.verify(token, actor))


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


def test_a_minted_token_is_taken(tmp_path, run):
    """The three lines that turn signing on: init, the file it prints, mint."""
    path = tmp_path / "issuers.yaml"
    path.write_text(run("init", "--issuer", "https://auth.acme.com/cortexdb").stdout)
    token = run("mint", "--actor", ACTOR, "--tenant", "acme").stdout.strip()

    found = verified(Verifier(load_issuers(path), None, Clock(), lambda _: False), token)

    assert token.startswith("v4.public.")
    assert (ACTOR, "acme") == (found.actor, found.tenant)
    assert "https://auth.acme.com/cortexdb" == found.issuer
    assert (None, None) == (found.capabilities, found.scopes)
    assert 3600 == found.expires_at - found.issued_at


def test_what_was_asked_for_is_in_the_token(run, mint, verifier):
    """Capabilities and grants narrow; the record says who, for whom, and until when."""
    run("init")
    caps = ("--cap", "scope.write", "--cap", "lifecycle.subscribe")
    grant = "scope.write:org:acme/*"
    token, minted = mint(*caps, "--scope-grant", grant, "--ttl", "15m")

    found = verified(verifier(), token)

    assert ("scope.write", "lifecycle.subscribe") == found.capabilities
    assert (Grant.parse(grant),) == found.scopes
    assert (minted.jti, minted.iat, minted.exp) == (
        found.token_id,
        found.issued_at,
        found.expires_at,
    )
    assert (ACTOR, "cortexdb:tenant:acme", 900) == (minted.sub, minted.aud, minted.exp - minted.iat)


@pytest.mark.parametrize(
    "actor, ttl, expected_s",
    [
        (ACTOR, "90s", 90),
        (ACTOR, "24h", LIFETIME_S_MAX),
        (ACTOR, "1d", LIFETIME_S_MAX),
        (SERVICE, "30d", SERVICE_LIFETIME_S_MAX),
    ],
)
@pytest.mark.usefixtures("initialised")
def test_the_longest_life_is_a_life(mint, verifier, actor, ttl, expected_s):
    """A day for all, thirty for services, and a server takes them (001 §4.2, §4.4)."""
    token, minted = mint("--ttl", ttl, actor=actor)

    found = verified(verifier(), token, actor)

    assert expected_s == minted.exp - minted.iat == found.expires_at - found.issued_at


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--ttl", "25h"), "ttl: a token of this actor lives at most 24 h"),
        (("--ttl", "31d", "--actor", SERVICE), "ttl: a token of this actor lives at most 720 h"),
        (("--ttl", "0s"), "ttl: a number and one of s, m, h, d"),
        (("--ttl", "-1h"), "ttl: a number and one of s, m, h, d"),
        (("--ttl", "soon"), "ttl: a number and one of s, m, h, d"),
        (("--actor", "planner"), "actor: type:id, type one of agent, service, system, user"),
        (("--actor", "org:acme"), "actor: type:id, type one of agent, service, system, user"),
        (("--actor", "agent:"), "actor: type:id, as in agent:planner_v3"),
        (("--tenant", "a:b"), "tenant: letters, digits, - and _"),
        (("--tenant", ""), "tenant: letters, digits, - and _"),
        (("--cap", "scope.read.*"), "cap: a capability in full"),
        (("--scope-grant", "scope.write"), "scope-grant: capability:path"),
        (("--cap", "x." + "y" * 100) * 90, "the token would have more than 8192 bytes"),
    ],
)
def test_a_token_no_server_would_take_is_not_minted(run, arguments, message):
    """The issuer reads its claims with the schema of the server; the message names the option."""
    run("init")

    done = run("mint", "--actor", ACTOR, "--tenant", "acme", *arguments, code=1)

    assert message in done.stderr
    assert "" == done.stdout
    assert {"items": []} == json.loads(run("list", "--all", "--json").stdout)


def test_tokens_are_listed_newest_first(run, mint):
    """What was handed out can be named; the tokens themselves are not kept."""
    run("init")
    first, second = mint()[1], mint(actor=SERVICE)[1]

    plain = run("list").stdout
    items = json.loads(run("list", "--json").stdout)["items"]

    assert [second.jti, first.jti] == [item["jti"] for item in items]
    assert all(text in plain for text in (first.jti, second.jti, ACTOR, SERVICE, "live"))
    assert "v4.public." not in plain


def test_expired_tokens_are_listed_on_request(tmp_path, run):
    """They are of no more use, but someone may ask who had one."""
    run("init")
    store = Store.open(tmp_path / "auth.db")
    store.record(Minted(jti="old", sub=ACTOR, aud="x", kid="k", iat=1, exp=2))
    store.close()

    assert [] == json.loads(run("list", "--json").stdout)["items"]
    assert ["old"] == [
        item["jti"] for item in json.loads(run("list", "--all", "--json").stdout)["items"]
    ]


def test_a_revoked_token_says_how_to_tell_the_server(run, mint, verifier):
    """The issuer marks it and prints the request; the server goes by its own list (001 §8.16)."""
    run("init")
    token, minted = mint()

    said = run("revoke", minted.jti)
    again = run("revoke", minted.jti)
    (item,) = json.loads(run("list", "--json").stdout)["items"]

    assert "POST" in said.stdout
    assert "/v1/auth/revoke" in said.stdout
    assert json.dumps({"jti": minted.jti}) in said.stdout
    assert said.stdout == again.stdout
    assert item["revoked_at"] is not None
    assert "revoked" in run("list").stdout
    with pytest.raises(RevokedToken):
        verified(verifier({minted.jti}), token)


def test_an_unknown_token_cannot_be_revoked(run):
    """A misspelt id is told, and fails."""
    run("init")

    done = run("revoke", "nobody", code=1)

    assert "no token of this id was minted here" in done.stderr


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


def test_keys_are_shown_in_each_spelling(tmp_path, run):
    """PEM for those who like it, PASERK for the rest; never the private half."""
    entry = yaml.safe_load(run("init").stdout)["issuers"][0]
    shown = run("keys").stdout
    path = tmp_path / "issuers.yaml"
    path.write_text(
        yaml.safe_dump({"issuers": [entry | {"keys": [shown[shown.index("-----BEGIN") :]]}]})
    )
    (by_pem,) = load_issuers(path)

    assert entry["keys"][0]["kid"] in shown
    assert entry["keys"][0]["key"] in shown
    assert entry["keys"][0]["key"] == by_pem.keys[0].public.to_paserk()
    assert "PRIVATE" not in shown
    assert "secret" not in shown


def test_after_a_rotation_both_keys_verify(run, mint, verifier):
    """Old tokens live on until they expire; new ones are signed with the new key."""
    run("init")
    old, old_record = mint()
    run("rotate")
    new, new_record = mint()

    server = verifier()

    assert [old_record.jti, new_record.jti] == [
        verified(server, token).token_id for token in (old, new)
    ]
    assert old_record.kid != new_record.kid
    assert ["signs", "verifies only"] == [
        line.split("  ")[1] for line in run("keys").stdout.splitlines() if "  " in line
    ]


def test_an_exposed_key_can_be_dropped(run, mint, verifier):
    """What the old key signed is refused as soon as the server has the new file."""
    run("init")
    old, _ = mint()
    run("rotate", "--drop-old")
    new, record = mint()

    server = verifier()

    assert record.jti == verified(server, new).token_id
    with pytest.raises(BadSignature):
        verified(server, old)


def test_an_issuers_file_is_not_overwritten_by_accident(tmp_path, run):
    """It may name other issuers, which only the operator can bring back."""
    run("init")
    path = tmp_path / "issuers.yaml"
    path.write_text("precious")

    done = run("keys", "--issuers-file", str(path), code=1)

    assert "--force overwrites it" in done.stderr
    assert "precious" == path.read_text()


def test_an_issuer_of_another_is_not_believed(tmp_path, run, mint, verifier):
    """Two issuers of the same name have different keys."""
    run("init")
    token, _ = mint()
    (tmp_path / "auth.db").unlink()
    run("init")

    with pytest.raises(BadSignature):
        verified(verifier(), token)


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def test_the_file_is_its_owner_s_alone(tmp_path, run):
    """It holds the private keys, so nobody else may read it, also not for a moment."""
    run("init")

    assert 0o600 == stat.S_IMODE((tmp_path / "auth.db").stat().st_mode)


def test_a_file_others_may_read_is_refused(tmp_path, run):
    """A key that others can read is no key; the message says what would do."""
    run("init")
    (tmp_path / "auth.db").chmod(0o640)

    done = run("mint", "--actor", ACTOR, "--tenant", "acme", code=1)

    assert "chmod 600" in done.stderr


def test_a_second_init_leaves_the_first_alone(run):
    """A key that is lost makes every token of a deployment worthless."""
    before = yaml.safe_load(run("init").stdout)

    done = run("init", code=1)

    assert "is there already" in done.stderr
    assert before["issuers"][0]["keys"][0]["key"] in run("keys").stdout


@pytest.mark.parametrize("issuer", ["", "x" * 513])
def test_an_issuer_has_a_name(run, issuer):
    """What no server could have on its list is refused before the file is made."""
    done = run("init", "--issuer", issuer, code=1)

    assert "issuer: 1 to 512 characters" in done.stderr
    assert "is not there" in run("keys", code=1).stderr


@pytest.mark.parametrize("issuer", ["a: b", 'quo"te', "- x", "naïve ☃", "#"])
def test_any_name_survives_the_issuers_file(run, mint, verifier, issuer):
    """The file is YAML, whatever the name holds."""
    run("init", "--issuer", issuer)
    token, _ = mint()

    assert issuer == verified(verifier(), token).issuer


@pytest.mark.parametrize("command", [("list",), ("keys",), ("rotate",), ("serve",)])
def test_a_missing_file_is_told(run, command):
    """`init` comes first."""
    done = run(*command, code=1)

    assert "`cortex-auth-ref init` makes it" in done.stderr


@pytest.mark.parametrize("content", [b"", b"not a database, and longer than a header of one" * 9])
def test_another_file_is_refused(tmp_path, run, content):
    """Nothing is read from, or written to, what is no issuer's file."""
    path = tmp_path / "auth.db"
    path.write_bytes(content)
    path.chmod(0o600)

    run("list", code=1)

    assert content == path.read_bytes()


def test_without_a_key_nothing_is_minted(tmp_path, run):
    """A file whose making was interrupted says what is missing."""
    Store.create(tmp_path / "auth.db", "cortex-auth-ref").close()

    done = run("mint", "--actor", ACTOR, "--tenant", "acme", code=1)
    run("rotate")
    run("mint", "--actor", ACTOR, "--tenant", "acme")

    assert "there is no key to sign with; `rotate` makes one" in done.stderr


# ── a program of its own ─────────────────────────────────────────────────────────────────────


def test_it_shares_no_code_with_what_verifies():
    """001 §4.6: the server does not include an issuer, nor the issuer a server."""
    program = "import sys, api.issuer.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "api" in done.stdout.split()
    assert set() == {"engine", "projectors", "rocksdict"} & set(done.stdout.split())
