"""Does a server that asks for tokens let in whom it should, and keep the others apart?"""

import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.v1 import ENDPOINTS

ISSUER = Path(sys.executable).parent / "cortex-auth-ref"
CANARY = "canary-9f3c1e7a"
SCOPE = "org:acme/user:alice"
PUBLIC = {e.path for e in ENDPOINTS if e.is_open}
# Open routes know no tenant, and the stream has a test of its own.
TENANTED = [e for e in ENDPOINTS if not e.is_open and e.media_type != "text/event-stream"]


class Realm:
    """A signed server and its issuer."""

    def __init__(self, server: Any, db: Path) -> None:
        self.server = server
        self._db = db
        self.token = lru_cache(self._mint)

    def _mint(self, actor: str, tenant: str, *more: str) -> str:
        """A token from the reference issuer."""
        command = [ISSUER, "mint", "--actor", actor, "--tenant", tenant, "--db", self._db, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip().splitlines()[-1]

    def client(self, actor: str, tenant: str, *more: str) -> httpx.Client:
        """A client that presents a token of its own."""
        headers = {
            "Authorization": f"Bearer {self.token(actor, tenant, *more)}",
            "X-Cortex-Actor": actor,
        }
        return self.server.client(headers=headers)


@pytest.fixture(scope="module")
def realm(tmp_path_factory, start_server):
    """One signed server for the module."""
    folder = tmp_path_factory.mktemp("realm")
    db, issuers = folder / "issuer.db", folder / "issuers.yaml"
    subprocess.run([ISSUER, "init", "--db", db], check=True, capture_output=True)
    subprocess.run(
        [ISSUER, "keys", "--db", db, "--issuers-file", issuers], check=True, capture_output=True
    )
    server = start_server(
        folder / "data",
        CORTEX_DEPLOYMENT_PRESET="on_prem_enterprise",
        CORTEX_ISSUERS_FILE=str(issuers),
        CORTEX_TENANTS="acme,rival,system",
    )
    yield Realm(server, db)
    server.stop()


def post(client: httpx.Client, key: str, scope: str = SCOPE, text: str = CANARY) -> httpx.Response:
    body = {
        "scope": scope,
        "modality": "conversation",
        "content": {"kind": "message", "role": "user", "text": text},
        "context": {"observed_at": "2026-05-13T15:42:00Z", "labels": [text]},
        "idempotency_key": key,
    }
    return client.post("/v1/experience?wait=settled", json=body)


def test_a_minted_token_is_let_in(realm):
    """The reference issuer's token writes, and whoami tells whose it is (001 §8.16.2)."""
    with realm.client("user:ines", "acme") as ines:
        written = post(ines, "in-1", "org:acme/user:ines")
        me = ines.get("/v1/auth/whoami").json()

    assert 200 == written.status_code, written.text
    assert ("user:ines", "acme") == (me["caller"], me["tenant_id"])
    assert me["token"]["jti"]
    assert "scope.write" in me["effective_capabilities"]
    assert "org:acme/user:ines" == me["natural_level"]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_every_route_asks_for_a_token(realm, endpoint):
    """Without one the answer is 401 MISSING_TOKEN, except where the table says open."""
    path = re.sub(r"\{\w+(:\w+)?\}", "x", endpoint.path)
    with realm.server.client() as nobody:
        answer = nobody.request(endpoint.method, path)

    if endpoint.path in PUBLIC:
        assert 401 != answer.status_code
    else:
        assert (401, "MISSING_TOKEN") == (answer.status_code, answer.json()["error_code"])


def test_the_header_must_name_the_token_s_subject(realm):
    """One identity a call (001 §4.1)."""
    token = realm.token("user:alice", "acme")
    headers = {"Authorization": f"Bearer {token}", "X-Cortex-Actor": "user:mallory"}
    with realm.server.client(headers=headers) as client:
        answer = client.get("/v1/auth/whoami")

    assert (401, "ACTOR_MISMATCH") == (answer.status_code, answer.json()["error_code"])


def test_a_revoked_token_is_refused_at_once(realm):
    """Also one whose signature was checked a moment ago; and revoking is durable."""
    with realm.client("user:eve", "acme") as eve:
        jti = eve.get("/v1/auth/whoami").json()["token"]["jti"]
        assert 204 == eve.post("/v1/auth/revoke", json={"jti": jti}).status_code
        answer = eve.get("/v1/auth/whoami")

    assert (401, "REVOKED_TOKEN") == (answer.status_code, answer.json()["error_code"])


def test_a_token_for_one_scope_is_good_for_no_other(realm):
    """Confinement holds on every route that names or finds a scope (DESIGN §8.10)."""
    grants = ("--scope-grant", "scope.write:org:acme/user:bob/*")
    with (
        realm.client("user:alice", "acme") as alice,
        realm.client("agent:bound", "acme", *grants) as bound,
    ):
        event_id = post(alice, "confine-1").json()["event_id"]
        inside = post(bound, "confine-2", "org:acme/user:bob")
        answers = {
            "write": post(bound, "confine-3"),
            "list": bound.get("/v1/events", params={"scope": SCOPE}),
            "event": bound.get(f"/v1/events/{event_id}"),
            "status": bound.get("/v1/experience/status", params={"event_id": event_id}),
            "state": bound.get(f"/v1/lifecycle/memory-event/{event_id}"),
            "cancel": bound.post(f"/v1/lifecycle/memory-event/{event_id}/cancel"),
            "watch": bound.get("/v1/lifecycle", params={"scope": SCOPE}),
            **{
                path: bound.get(f"/v1/{path}", params={"scope": SCOPE})
                for path in ("episodes", "facts", "facts/conflicts", "beliefs", "entities")
            },
            "understanding": bound.get("/v1/understanding", params={"scope": SCOPE}),
            "coverage": bound.get("/v1/understanding/coverage", params={"scope": SCOPE}),
            "synthesis": bound.post("/v1/understanding/synthesize", json={"scope": SCOPE}),
        }
        page = bound.get("/v1/lifecycle").json()

    assert 200 == inside.status_code, inside.text
    assert dict.fromkeys(answers, 403) == {n: a.status_code for n, a in answers.items()}
    assert {"token"} == {a.json()["details"]["denied_by_tier"] for a in answers.values()}
    assert {"org:acme/user:bob"} == {row["scope"] for row in page["items"]}


def test_capabilities_in_a_token_narrow(realm):
    """What the token does not name is denied by the token, with the capability named."""
    with realm.client("agent:writer", "acme", "--cap", "scope.write") as writer:
        written = post(writer, "narrow-1")
        denied = writer.get("/v1/events", params={"scope": SCOPE})

    details = denied.json()["details"]
    assert 200 == written.status_code, written.text
    assert (403, "POLICY_DENIED") == (denied.status_code, denied.json()["error_code"])
    assert ("scope.read.local", "token") == (details["capability"], details["denied_by_tier"])


def test_a_policy_is_in_force_for_the_next_request(realm):
    """Set by a directive, it denies at once; lifted, it allows again; each names its tier."""
    scope = "org:acme/ws:locked"
    with realm.client("user:alice", "acme") as alice:
        assert 200 == post(alice, "policy-1", scope).status_code
        lock = alice.put("/v1/policy/scope", params={"path": scope}, json={"deny": ["scope.write"]})
        denied = post(alice, "policy-2", scope)
        below = post(alice, "policy-3", scope + "/user:bob")
        effective = alice.get("/v1/policy/effective", params={"scope": scope}).json()
        alice.put("/v1/policy/scope", params={"path": scope}, json={})
        again = post(alice, "policy-4", scope)

    assert 200 == lock.status_code, lock.text
    assert ("POLICY_DENIED", "scope") == (
        denied.json()["error_code"],
        denied.json()["details"]["denied_by_tier"],
    )
    assert 403 == below.status_code
    assert {"capability": "scope.write", "denied_by_tier": "scope"} in effective["denied"]
    assert 200 == again.status_code


def test_an_actor_can_be_shut_out_and_its_stream_ends(realm):
    """`policy_revoked` is the last word on a stream that is no longer allowed (001 §5.4)."""
    with (
        realm.client("user:alice", "acme") as alice,
        realm.client("agent:watcher", "acme") as watcher,
    ):
        post(alice, "shut-1")
        with watcher.stream("GET", "/v1/lifecycle/stream") as stream:
            alice.put("/v1/policy/actor/agent:watcher", json={"deny": ["lifecycle.*"]})
            names = re.findall(r"^event: (\w+)", stream.read().decode(), re.MULTILINE)
        after = watcher.get("/v1/lifecycle")

    assert ["policy_changed", "policy_revoked"] == names[-2:]
    assert (403, "actor") == (after.status_code, after.json()["details"]["denied_by_tier"])


def test_a_pattern_that_means_nothing_is_refused(realm):
    """A typing error in a policy would silently do nothing."""
    with realm.client("user:alice", "acme") as alice:
        answer = alice.put("/v1/policy/tenant/acme", json={"deny": ["scop.write"]})

    assert (400, "deny[0]") == (answer.status_code, answer.json()["details"]["field"])


def test_an_operator_cannot_lock_the_door_behind_it(realm):
    """A deployment's document that takes its own way back away is refused."""
    with realm.client("user:root", "system") as root:
        empty = root.put("/v1/policy/deployment", json={})
        denied = root.put(
            "/v1/policy/deployment", json={"allow": ["*"], "deny": ["policy.administer.*"]}
        )

    assert [(400, "allow")] * 2 == [
        (answer.status_code, answer.json()["details"]["field"]) for answer in (empty, denied)
    ]


def test_operators_are_of_the_system(realm):
    """Y(op) in Appendix A: the deployment's policy is not a tenant's to set."""
    with realm.client("user:alice", "acme") as alice, realm.client("user:root", "system") as root:
        denied = alice.put("/v1/policy/deployment", json={"allow": ["*"]})
        allowed = root.put("/v1/policy/deployment", json={"allow": ["*"]})
        read = alice.get("/v1/policy/deployment")

    assert (403, "deployment") == (
        denied.status_code,
        denied.json()["details"]["denied_by_tier"],
    )
    assert 200 == allowed.status_code, allowed.text
    assert 200 == read.status_code


@pytest.mark.parametrize("endpoint", TENANTED, ids=lambda e: f"{e.method} {e.path}")
def test_no_byte_of_a_tenant_reaches_another(realm, endpoint):
    """I6: same scope, same key, guessed ids, on every route; a new one joins by itself."""
    with realm.client("user:alice", "acme") as alice, realm.client("user:alice", "rival") as rival:
        event_id = post(alice, "canary").json()["event_id"]
        state = alice.get(f"/v1/lifecycle/memory-event/{event_id}").json()
        cursor = alice.get("/v1/events", params={"scope": SCOPE, "limit": 1}).json()["next_cursor"]
        fill = {
            "event_id": event_id,
            "lifecycle_id": state["lifecycle_event_ids"][0],
            "key": "canary",
            "name": "acme" if "policy" in endpoint.path else "derives",
        }
        path = re.sub(r":\w+(?=\})", "", endpoint.path)
        for name in re.findall(r"\{(\w+)\}", path):
            path = path.replace("{" + name + "}", fill.get(name, event_id))
        fields = endpoint.query.__struct_fields__
        guesses = {"scope": SCOPE, "path": SCOPE, "event_id": event_id, "cursor": cursor}
        wanted = {name: value for name, value in guesses.items() if name in fields and value}
        for left_out in (None, "cursor", "event_id"):
            query = {name: value for name, value in wanted.items() if name != left_out}
            answer = rival.request(endpoint.method, path, params=query)
            text = answer.text

            assert answer.status_code < 500
            assert CANARY not in text
            # What the rival sent may be said back to it in an error, and in its own audit rows.
            is_echo = answer.status_code in (404, 422) or endpoint.path == "/v1/audit"
            assert event_id not in text or is_echo


def test_recall_finds_nothing_of_another_tenant(realm):
    """I6, with bodies: the same question of the same scope, and the other's pack and receipt."""
    asked = {"scope": SCOPE, "query": CANARY, "diagnostics": "full"}
    with realm.client("user:alice", "acme") as alice, realm.client("user:alice", "rival") as rival:
        event_id = post(alice, "recall-canary").json()["event_id"]
        found = alice.post("/v1/recall", json=asked).json()
        receipt = found["diagnostics"]["receipt"]
        question = {"scope": SCOPE, "question": f"What of {CANARY}?"}
        tried = [
            rival.post("/v1/recall", json=asked | {"diagnostics": "none"}),
            rival.post("/v1/recall", json=asked | {"view": "descend", "diagnostics": "none"}),
            rival.post("/v1/recall", json={"scope": SCOPE}),
            rival.post("/v1/answer", json=question),
            rival.post("/v1/answer", json=question | {"use_pack_id": found["pack_id"]}),
            rival.post("/v1/recall/replay", json={"receipt": receipt}),
        ]

    assert CANARY in json.dumps(found["layers"])
    assert [200, 200, 200, 200, 410, 422] == [answer.status_code for answer in tried]
    for answer in tried:
        assert CANARY not in answer.text.replace(f"What of {CANARY}?", "")
        assert event_id not in answer.text


def test_a_bound_token_recalls_in_its_scope_alone(realm):
    """A token for one scope is refused elsewhere, and walks to no scope it was not minted for."""
    grants = [f"scope.read.{how}:{SCOPE}" for how in ("local", "holistic")]
    flags = [part for grant in grants for part in ("--scope-grant", grant)]
    with realm.client("user:alice", "acme") as alice:
        post(alice, "above", scope="org:acme", text="the organisation's secret plan")
    with realm.client("user:alice", "acme", *flags) as bound:
        here = bound.post("/v1/recall", json={"scope": SCOPE, "query": "secret plan"})
        elsewhere = bound.post("/v1/recall", json={"scope": "org:acme", "query": "secret plan"})

    assert 200 == here.status_code, here.text
    assert "secret plan" not in json.dumps(here.json()["layers"])
    assert 403 == elsewhere.status_code


def test_a_stream_hears_its_own_tenant_only(realm):
    """Two tenants, one scope: each hears its own events."""
    with realm.client("user:alice", "acme") as alice, realm.client("user:alice", "rival") as rival:
        post(rival, "stream-0", text="mine")
        start = rival.get("/v1/lifecycle").json()["items"][-1]["lifecycle_id"]
        theirs = post(alice, "stream-1").json()["event_id"]
        mine = post(rival, "stream-2", text="mine").json()["event_id"]
        page = rival.get("/v1/lifecycle", params={"since_lifecycle_id": start}).json()

    assert {mine} == {row["event_id"] for row in page["items"]}
    assert theirs != mine
