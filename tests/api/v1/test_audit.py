"""Does every gated call leave one row, and can a client prove it?  (001 §8.10, §14)"""

import itertools
import json
from hashlib import sha256
from time import monotonic

import pytest

from api.v1 import ENDPOINTS
from schemas.ids import parse_id

WAIT_S_MAX = 120.0
_names = itertools.count(1)


@pytest.fixture
def actor():
    """Someone whose rows no other test writes."""
    return f"agent:audited{next(_names)}"


@pytest.fixture
def ask(api, actor):
    """Requests of that actor."""

    def send(method, path, **more):
        headers = {"X-Cortex-Actor": actor} | more.pop("headers", {})
        return api.request(method, path, headers=headers, **more)

    return send


@pytest.fixture
def rows(api, envelope, actor):
    """The actor's rows, oldest first; a write of someone else's takes the waiting ones along."""

    def find(**conditions):
        answer = api.post("/v1/experience", json=envelope())
        assert 202 == answer.status_code, answer.text
        page = api.get("/v1/audit", params={"actor": actor, "limit": 1000} | conditions).json()
        return page["items"][::-1]

    return find


# ── one row a call ───────────────────────────────────────────────────────────────────────────


def test_a_row_has_every_field_of_the_contract(ask, rows, envelope, scope, actor):
    """001 §14, as a client sees it."""
    body = json.dumps(envelope()).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "cortex-py/1.0.0",
        "X-Cortex-Request-ID": "trace-7",
    }
    receipt = ask("POST", "/v1/experience", content=body, headers=headers).json()
    [row] = rows()
    request = row.pop("request")

    assert parse_id("audit", row.pop("id")) is not None
    assert row.pop("ts").endswith("Z")
    assert row.pop("elapsed_ms") > 0
    assert row.pop("sequence") >= 0
    assert row.pop("tenant_pepper_version") > 200
    assert {
        "actor": actor,
        "tenant_id": "local",
        "scope": scope,
        "endpoint": "POST /v1/experience",
        "capability": "scope.write",
        "decision": "allow",
        "decided_by_tier": "deployment",
        "response_status": 202,
        "event_id": receipt["event_id"],
        "client_ip": "127.0.0.1",
        "user_agent": "cortex-py/1.0.0",
        "request_id": "trace-7",
        "gdpr": False,
    } == row
    assert ("POST", "/v1/experience", len(body)) == (
        request["method"],
        request["path"],
        request["body_bytes"],
    )
    assert "sha256:" + sha256(body).hexdigest() != request["body_hash"]


def test_each_gated_call_has_one_row_and_no_more(ask, rows, envelope, scope, capture):
    """Writes, replays, reads, failures after policy, streams; open endpoints have none."""
    event_id, one = capture(), envelope()
    calls = [
        ("POST", "/v1/experience", 202, {"json": one}),
        ("POST", "/v1/experience", 202, {"json": one}),
        ("POST", "/v1/experience", 409, {"json": one | {"modality": "other"}}),
        ("POST", "/v1/experience/bulk", 202, {"json": {"items": [envelope(), envelope()]}}),
        ("GET", "/v1/events", 200, {"params": {"scope": scope}}),
        ("GET", f"/v1/events/{event_id}", 200, {}),
        ("GET", "/v1/events/evt_none", 404, {}),
        ("POST", f"/v1/lifecycle/memory-event/{event_id}/cancel", 200, {"json": {}}),
        ("GET", "/v1/admin/health", 200, {}),
        ("POST", "/v1/admin/projectors/derives/retry", 202, {}),
    ]
    for method, path, status, more in calls:
        assert status == ask(method, path, **more).status_code, path
    assert 200 == ask("GET", "/v1/admin/version").status_code
    assert 400 == ask("POST", "/v1/experience", content=b"{").status_code
    found = [
        (row["request"]["method"], row["request"]["path"], row["response_status"]) for row in rows()
    ]

    assert [call[:3] for call in calls] == found
    assert {"allow"} == {row["decision"] for row in rows()}


def test_a_stream_has_a_row_when_it_opens(api, listen, rows, actor, scope):
    """The row does not wait for the stream to end."""
    with api.stream(
        "GET",
        "/v1/lifecycle/stream",
        params={"scope": scope},
        headers={"X-Cortex-Actor": actor},
    ) as response:
        assert 200 == response.status_code
        [row] = rows()

    assert ("lifecycle.subscribe", 200, scope) == (
        row["capability"],
        row["response_status"],
        row["scope"],
    )
    assert 1 == len(rows())


def test_a_denial_has_its_row_before_it_is_said(api, ask, actor, scope, envelope):
    """No commit of anyone else is needed: the row is there when the 403 is."""
    policy = f"/v1/policy/actor/{actor}"
    assert 200 == api.put(policy, json={"deny": ["scope.write"]}).status_code
    denied = ask("POST", "/v1/experience", json=envelope())
    page = api.get("/v1/audit", params={"actor": actor, "decision": "deny"}).json()
    [row] = page["items"]

    assert 403 == denied.status_code
    assert ("scope.write", "actor", 403, scope) == (
        row["capability"],
        row["decided_by_tier"],
        row["response_status"],
        row["scope"],
    )
    assert denied.json()["request_id"] == row["request_id"]


def test_rows_of_reads_become_durable_by_themselves(api, ask, actor):
    """Nobody writes, and the row of a read is there all the same, a moment later."""
    deadline = monotonic() + WAIT_S_MAX
    assert 200 == ask("GET", "/v1/admin/health").status_code
    found = []
    while not found:
        assert monotonic() < deadline, "the row never came"
        found = api.get("/v1/audit", params={"actor": actor}).json()["items"]

    assert "admin.health" == found[0]["capability"]


@pytest.mark.parametrize("stores", [True, False])
def test_the_tenant_decides_about_body_bytes(run_server, envelope, stores):
    """audit.store_body_bytes: left out when false, there by default (001 §18.2.15)."""
    with run_server().client() as own:
        document = {} if stores else {"audit": {"store_body_bytes": False}}
        assert 200 == own.put("/v1/policy/tenant/local", json=document).status_code
        assert 202 == own.post("/v1/experience", json=envelope()).status_code
        row = own.get("/v1/audit", params={"capability": "scope.write"}).json()["items"][0]

    assert stores == ("body_bytes" in row["request"])
    assert "body_hash" in row["request"]


# ── whose ────────────────────────────────────────────────────────────────────────────────────


def test_others_rows_need_their_capability(api, ask, rows, actor):
    """Without audit.read.cross_actor: one's own listing, and 403 for another's rows."""
    assert 200 == ask("GET", "/v1/admin/health").status_code
    [mine] = rows()
    theirs = api.get("/v1/audit", params={"actor": "user:local", "limit": 1}).json()["items"][0]
    deny = {"deny": ["audit.read.cross_actor"]}
    assert 200 == api.put(f"/v1/policy/actor/{actor}", json=deny).status_code
    listed = ask("GET", "/v1/audit", params={"limit": 1000}).json()["items"]
    refused = [
        ask("GET", "/v1/audit", params={"actor": "user:local"}),
        ask("GET", f"/v1/audit/{theirs['id']}"),
        ask("POST", "/v1/audit/verify", json={"audit_id": theirs["id"], "body": ""}),
    ]

    assert {actor} == {row["actor"] for row in listed}
    assert mine in listed
    assert 200 == ask("GET", f"/v1/audit/{mine['id']}").status_code
    for answer in refused:
        assert 403 == answer.status_code
        assert "audit.read.cross_actor" == answer.json()["details"]["capability"]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_pages_follow_one_another(ask, rows, api, actor):
    """Newest first, by cursor, none twice and none left out."""
    for _ in range(7):
        ask("GET", "/v1/admin/health")
    whole = rows()[::-1]
    paged, parameters = [], {"actor": actor, "limit": 3}
    while True:
        page = api.get("/v1/audit", params=parameters).json()
        paged += page["items"]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        parameters = {**parameters, "cursor": page["next_cursor"]}

    assert 7 == len(paged)
    assert whole == paged
    assert (
        whole[1:4]
        == api.get(
            "/v1/audit", params={"actor": actor, "since": whole[3]["ts"], "until": whole[0]["ts"]}
        ).json()["items"]
    )


@pytest.mark.parametrize(
    "parameters, code",
    [
        ({"decision": "maybe"}, "INVALID_PARAMETER"),
        ({"limit": "0"}, "INVALID_PARAMETER"),
        ({"since": "yesterday"}, "INVALID_TIMESTAMP"),
        ({"scope": "not a scope"}, "INVALID_SCOPE_GRAMMAR"),
        ({"cursor": "AAAA"}, "INVALID_CURSOR"),
        ({"surprise": "1"}, "INVALID_PARAMETER"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(api, parameters, code):
    """Each refusal names what is wrong."""
    answer = api.get("/v1/audit", params=parameters)

    assert (422, code) == (answer.status_code, answer.json()["error_code"])


@pytest.mark.parametrize("audit_id", ["audit_1", "evt_1", "audit_" + "0" * 36, "chains"])
def test_an_unknown_row_is_not_found(api, audit_id):
    """Nor is another tenant's, nor an id of another kind."""
    assert 404 == api.get(f"/v1/audit/{audit_id}").status_code
    body = {"audit_id": audit_id, "body": ""}
    assert 404 == api.post("/v1/audit/verify", json=body).status_code


# ── proving ──────────────────────────────────────────────────────────────────────────────────


def lead(proof):
    """The head that a proof leads to, by RFC 9162 §2.1.3.2, written once more."""
    index, last = proof["leaf_index"], proof["tree_size"] - 1
    head = bytes.fromhex(proof["leaf_hash"].removeprefix("sha256:"))
    for text in proof["path"]:
        sibling = bytes.fromhex(text.removeprefix("sha256:"))
        if index % 2 or index == last:
            head = sha256(b"\1" + sibling + head).digest()
            while index % 2 == 0 and index:
                index, last = index // 2, last // 2
        else:
            head = sha256(b"\1" + head + sibling).digest()
        index, last = index // 2, last // 2
    assert last == 0
    return "sha256:" + head.hex()


def test_a_body_is_proven(api, ask, rows, envelope):
    """The body that was sent matches, byte for byte; the proof leads to the head."""
    body = json.dumps(envelope("Ünïcode “quotes” \\ and \n lines"), ensure_ascii=False)
    headers = {"Content-Type": "application/json"}
    ask("POST", "/v1/experience", content=body.encode(), headers=headers)
    [row] = rows()
    answer = api.post("/v1/audit/verify", json={"audit_id": row["id"], "body": body}).json()
    other = api.post("/v1/audit/verify", json={"audit_id": row["id"], "body": body + " "}).json()
    proof = answer.pop("inclusion")

    assert {
        "match": True,
        "hashed_at": row["ts"],
        "algorithm": "sha256",
        "tenant_pepper_version": row["tenant_pepper_version"],
    } == answer
    assert (row["sequence"], True) == (proof["leaf_index"], proof["holds"])
    assert proof["root"] == lead(proof)
    assert False is other["match"]
    assert True is other["inclusion"]["holds"]


def test_the_chain_has_a_head_and_holds(api, rows):
    """Size and head; reading every row again gives the same, and nothing broken."""
    rows()
    before = api.get("/v1/audit/chain").json()
    report = api.post("/v1/audit/chain/verify").json()

    assert {"length", "head_hash", "legacy_rows", "pruned_rows", "algorithm"} == set(before)
    assert before["length"] > 0
    assert report["length"] >= before["length"]
    assert (True, 0, None, None) == (
        report["valid"],
        report["legacy_rows"],
        report["first_broken_index"],
        report["reason"],
    )


def test_the_audit_is_stable_surface():
    """All five endpoints of it, under audit.read."""
    found = [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith("/v1/audit")]

    assert 5 == len(found)
    assert {("stable", "audit.read")} == {(one.tier, one.capability) for one in found}
