"""Is the dialect reached where it is mounted, by whom it should be, in its own words?"""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.principals import PrincipalsError, load_principals

BIN = Path(sys.executable).parent
LIST = "/cognirelay/v1/continuity/list"


@pytest.mark.parametrize(
    "method, path, status, body",
    [
        ("GET", "/cognirelay/v1/nothing", 404, {"detail": "Not Found"}),
        ("GET", LIST, 405, {"detail": "Method Not Allowed"}),
        ("GET", "/cognirelay/", 404, {"detail": "Not Found"}),
    ],
)
def test_errors_of_the_mount_are_its_own(client, method, path, status, body):
    """What is asked of the dialect's place is answered in its words."""
    answer = client.request(method, path)

    assert (status, body) == (answer.status_code, answer.json())


def test_errors_of_the_core_stay_the_core(client):
    """Beside it the error envelope is what it was."""
    assert "NOT_FOUND" == client.get("/v1/nothing").json()["error_code"]
    assert "NOT_FOUND" == client.get("/cognirelayish").json()["error_code"]


def test_alone_it_is_at_the_root(relay):
    """Its clients need only another base URL; the core is not there."""
    assert 200 == relay.post("/v1/continuity/list", {}).status_code
    assert 404 == relay.post("/cognirelay/v1/continuity/list", {}).status_code
    assert {"detail": "Not Found"} == relay.post("/v1/recall", {}).json()


def test_unsigned_callers_are_let_in_on_one_s_own_machine(client):
    """`dev_local` without a file of principals: the asserted actor is the peer."""
    answer = client.post(LIST, json={}, headers={"x-cortex-actor": "agent:bob"})

    assert 200 == answer.status_code


@pytest.fixture(scope="module")
def realm(tmp_path_factory, start_server):
    """A server that asks for tokens, and a way to mint them."""
    folder = tmp_path_factory.mktemp("relayed")
    db, issuers = folder / "issuer.db", folder / "issuers.yaml"
    subprocess.run([BIN / "cortex-auth-ref", "init", "--db", db], check=True, capture_output=True)
    keys = [BIN / "cortex-auth-ref", "keys", "--db", db, "--issuers-file", issuers]
    subprocess.run(keys, check=True, capture_output=True)
    server = start_server(
        folder / "data",
        CORTEX_DEPLOYMENT_PRESET="on_prem_enterprise",
        CORTEX_ISSUERS_FILE=str(issuers),
    )

    def client(actor: str, tenant: str, *more: str) -> httpx.Client:
        mint = [BIN / "cortex-auth-ref", "mint", "--actor", actor, "--tenant", tenant, "--db", db]
        done = subprocess.run([*mint, *more], capture_output=True, text=True, check=True)
        token = done.stdout.strip().splitlines()[-1]
        headers = {"Authorization": f"Bearer {token}", "X-Cortex-Actor": actor}
        return server.client(headers=headers)

    yield server, client
    server.stop()


def test_signed_presets_ask_for_tokens(realm):
    """Without a token, or with one nobody made, the answer is 401 in the dialect's words."""
    with realm[0].client() as client:
        none = client.post(LIST, json={})
        wrong = client.post(LIST, json={}, headers={"Authorization": "Bearer x.y.z"})

    assert (401, "Missing Authorization header") == (none.status_code, none.json()["detail"])
    assert (401, "Invalid token") == (wrong.status_code, wrong.json()["detail"])


def test_a_token_s_capabilities_are_the_dialect_s_scopes(realm):
    """Who may read the scope has `read:files`, who may write it `write:projects`."""
    task = {"task_id": "t1", "title": "Weave", "owner_peer": "ada"}
    with realm[1]("agent:ada", "acme", "--cap", "scope.read.local") as reader:
        read = reader.post(LIST, json={})
        written = reader.post("/cognirelay/v1/tasks", json=task)
    with realm[1]("agent:ada", "acme") as writer:
        done = writer.post("/cognirelay/v1/tasks", json=task)

    assert (200, 403, 200) == (read.status_code, written.status_code, done.status_code)
    assert "Missing scope: write:projects" == written.json()["detail"]


# ── principals ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [
        [{"token": "t", "name": "bob"}],
        {"principals": [{"token": "t", "name": "bob", "tenant": "local"}]},
        {"t": {"peer": "bob"}},
    ],
)
def test_a_file_of_principals_in_its_forms(tmp_path, content):
    """A list, the same under a name, or by token; what is left out has its default."""
    path = tmp_path / "principals.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    caller = load_principals(path)["t"]

    assert ("agent:bob", "local", None) == (caller.actor, caller.tenant, caller.surface_scopes)


def test_scopes_of_a_principal_bound_its_capabilities(tmp_path):
    """Who has no scope to write may not write through any surface."""
    path = tmp_path / "principals.json"
    rows = [
        {"token": "r", "name": "reader", "scopes": ["read:files"]},
        {"token": "w", "name": "writer", "scopes": ["write:projects"]},
        {"token": "a", "name": "admin", "scopes": ["admin:peers"]},
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    known = load_principals(path)

    assert "scope.write" not in (known["r"].capabilities or ())
    assert "scope.write" in (known["w"].capabilities or ())
    assert None is known["a"].capabilities


@pytest.mark.parametrize("content", ["- 5", "[", "- {name: x}", '- {token: t, name: "a b"}'])
def test_a_file_that_cannot_be_used_is_named(tmp_path, content):
    """What is wrong with it is said, with the file's name."""
    path = tmp_path / "principals.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(PrincipalsError, match=r"principals\.yaml"):
        load_principals(path)


@pytest.mark.parametrize(
    "flags, said",
    [
        (("--surface", "gopher"), "there is no surface gopher"),
        (("--preset", "cloud_private", "--principals", "FILE"), "takes signed callers only"),
    ],
)
def test_the_command_refuses_what_cannot_be(tmp_path, flags, said):
    """An unknown surface, and unsigned callers where callers are signed."""
    known = tmp_path / "principals.json"
    known.write_text("[]", encoding="utf-8")
    given = [str(known) if flag == "FILE" else flag for flag in flags]
    command = [BIN / "strata", "serve", "--data", tmp_path / "data", "--port", "0", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    assert 0 != done.returncode
    assert said in " ".join(done.stderr.split())
