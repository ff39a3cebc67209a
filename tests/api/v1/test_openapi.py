"""Is the published page valid, complete, and true?  (GET /v1/openapi.json)"""

import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.v1 import ENDPOINTS

NAMES = {
    "/v1/policy/tenant/{name}": "local",
    "/v1/policy/actor/{name}": "agent:nobody",
    "/v1/vocabularies/{name}": "sample",
    "/v1/temporal/phrases/{name}": "sample",
}
STATED = {
    "kind": "triple",
    "triple": {"subject": {"name": "Acme"}, "predicate": "deal_stage", "object": "poc"},
}
VOCABULARY = {"name": "sample", "predicates": [{"id": "sampled"}]}
PHRASE = {"name": "sample", "expression": "P0D..P1D"}
# Policies that change nothing: the shared server's other tests must not notice.
BODIES = {f"/v1/policy/{tier}": {"allow": ["*"]} for tier in ("deployment", "scope")} | {
    "/v1/policy/tenant/{name}": {},
    "/v1/policy/actor/{name}": {},
    "/v1/auth/revoke": {"jti": "none-such"},
    "/v1/scopes/members": {"members": [{"actor": "user:local", "role": "owner"}]},
    "/v1/scopes/prune": {"older_than": "P90D"},
    "/v1/vocabularies": VOCABULARY,
    "/v1/vocabularies/{name}": VOCABULARY,
    "/v1/temporal/phrases": PHRASE,
    "/v1/scopes/hold": {"held": False},
}
IMPORT = {"scope_template": "org:imported", "source": {"inline": []}}
PLAIN = {endpoint: re.sub(r":\w+(?=\})", "", endpoint.path) for endpoint in ENDPOINTS}


@pytest.fixture
def page(api):
    """The page as it is served."""
    return api.get("/v1/openapi.json").json()


def test_the_page_is_valid(page):
    """OpenAPI 3.1, by the validator of the specification's own community."""
    OpenAPIV31SpecValidator(page).validate()


def test_the_page_is_complete(page):
    """Every endpoint of the route table is on the page, and nothing else is."""
    table = {(endpoint.method, path) for endpoint, path in PLAIN.items()}
    listed = {
        (method.upper(), path) for path, methods in page["paths"].items() for method in methods
    }

    assert table == listed


def test_operation_ids_are_unique(page):
    """A generator of clients makes a function of each."""
    ids = [
        operation["operationId"] for item in page["paths"].values() for operation in item.values()
    ]

    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_an_operation_says_what_the_table_says(page, endpoint):
    """Stability, capability, body, parameters and answers follow from the one description."""
    operation = page["paths"][PLAIN[endpoint]][endpoint.method.lower()]
    names = {parameter["name"] for parameter in operation["parameters"]}

    assert endpoint.tier == operation["x-stability"]
    assert endpoint.capability == operation.get("x-capability")
    assert (endpoint.body is not None or endpoint.takes_bytes) == ("requestBody" in operation)
    assert set(endpoint.query.__struct_fields__) <= names
    assert set(re.findall(r"\{(\w+)\}", PLAIN[endpoint])) <= names
    assert {str(status) for status in endpoint.statuses} <= set(operation["responses"])
    assert {"422", "500"} <= set(operation["responses"])


def _forgetting(api, scope, endpoint, fill):
    """Bodies of what forgets and erases, and ids of what was: nothing that is there is named."""
    chosen = {"scope": scope, "selector": {"memory_ids": ["evt_none"]}}
    if endpoint.path == "/v1/forget/{audit_id}/revert":
        asked = chosen | {"idempotency_key": scope[-20:]}
        fill["audit_id"] = api.post("/v1/forget", json=asked).json()["audit_id"]
    if "{preview_id}" in endpoint.path:
        shown = api.post("/v1/erasures/preview", json=chosen).json()
        fill["preview_id"] = shown["preview_id"]
    if "{erasure_id}" in endpoint.path:
        fill["erasure_id"] = api.post("/v1/erasures", json=chosen).json()["erasure_id"]
    if "{rollback_id}" in endpoint.path:
        asked = {"scope": scope, "caller": "user:local", "dry_run": False}
        fill["rollback_id"] = api.post("/v1/admin/rollback", json=asked).json()["rollback_id"]
    paths = ("/v1/forget", "/v1/forget/preview", "/v1/erasures", "/v1/erasures/preview")
    return dict.fromkeys(paths, chosen) | {"/v1/admin/rollback": {"caller": "user:nobody"}}


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.media_type != "text/event-stream"],
    ids=lambda e: f"{e.method} {e.path}",
)
def test_every_documented_operation_answers(api, capture, envelope, scope, endpoint):
    """With real ids and a valid body each answers its first status; the client checks the shape."""
    event_id = capture(content=STATED)
    api.post("/v1/vocabularies", json=VOCABULARY)
    api.post("/v1/temporal/phrases", json=PHRASE)
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()
    fill = {
        "event_id": event_id,
        "lifecycle_id": state["lifecycle_event_ids"][0],
        "key": api.get(f"/v1/events/{event_id}").json()["idempotency_key"],
        "name": NAMES.get(endpoint.path, "derives"),
        "code": "NOT_FOUND",
        "audit_id": api.get("/v1/audit", params={"limit": 1}).json()["items"][0]["id"],
    }
    derived = {record_id.partition("_")[0]: record_id for record_id in state["derives"]}
    fill |= {"episode_id": derived["ep"], "fact_id": derived["fact"], "entity_id": "Acme"}
    fill["belief_id"] = derived["belief"]
    if "/understanding/{" in endpoint.path:
        fill["concept_id"] = _concept(api, capture, scope)
    if "job_id" in PLAIN[endpoint]:
        job = api.post("/v1/understanding/synthesize", json={"scope": scope}).json()
        fill["job_id"] = job["job_id"]
    if endpoint.path == "/v1/admin/jobs/{job_id}/retry":
        fill["job_id"] = _failed_job(api)
    bodies = BODIES | {
        "/v1/experience": envelope(),
        "/v1/experience/bulk": {"items": [envelope()]},
        "/v1/scopes": {"path": scope},
        **{f"/v1/import/{name}": IMPORT for name in ("mem0", "zep", "letta", "openai", "jsonl")},
        "/v1/export": {"scope": scope},
        "/v1/understanding/synthesize": {"scope": scope},
        "/v1/recall": {"scope": scope, "query": "stage"},
        "/v1/answer": {"scope": scope, "question": "Which stage?"},
        "/v1/audit/verify": {"audit_id": fill["audit_id"], "body": ""},
        **_forgetting(api, scope, endpoint, fill),
    }
    takes_scope = "scope" in endpoint.query.__struct_fields__
    parameters = {
        "/v1/experience/status": {"event_id": event_id},
        "/v1/beliefs/why": {"belief_id": fill["belief_id"]},
        "/v1/beliefs/history": {"belief_id": fill["belief_id"]},
        "/v1/facts/timeline": {"scope": scope, "subject": "Acme", "predicate": "deal_stage"},
        "/v1/policy/scope": {"path": scope},
        "/v1/scopes": {"path": scope, "records": "keep"} if endpoint.method == "DELETE" else {},
        "/v1/scopes/members": {"path": scope},
        "/v1/scopes/hold": {"path": scope},
    }.get(endpoint.path, {"scope": scope} if takes_scope else None)
    if endpoint.path == "/v1/recall/replay":
        asked = {"scope": scope, "query": "stage", "diagnostics": "full"}
        said = api.post("/v1/recall", json=asked).json()["diagnostics"]
        bodies["/v1/recall/replay"] = {"receipt": said["receipt"]}
    if "import_id" in PLAIN[endpoint]:
        fill["import_id"] = api.post("/v1/import/mem0", json=IMPORT).json()["import_id"]
    if "export_id" in PLAIN[endpoint]:
        fill["export_id"] = api.post("/v1/export", json={"scope": scope}).json()["export_id"]
    if "blob_id" in PLAIN[endpoint]:
        fill["blob_id"] = api.post("/v1/blobs", content=scope.encode()).json()["blob_id"]
    answer = api.request(
        endpoint.method,
        PLAIN[endpoint].format(**fill),
        params=parameters,
        content=b"bytes" if endpoint.takes_bytes else None,
        json=bodies.get(endpoint.path) if endpoint.body is not None else None,
    )

    assert endpoint.statuses[0] == answer.status_code


def _failed_job(api):
    """An import of bytes that are not there."""
    asked = {"scope_template": "org:imported", "source": {"blob_id": "blob_none"}}
    job_id = api.post("/v1/import/mem0", json=asked).json()["import_id"]
    while api.get(f"/v1/admin/jobs/{job_id}").json()["status"] == "running":
        pass
    return job_id


def _concept(api, capture, scope):
    """Say enough about one thing for a concept of it."""
    for number in range(4):
        said = {"subject": {"name": "Acme"}, "predicate": f"size_{number}", "object": number}
        capture(content={"kind": "triple", "triple": said})
    return api.get("/v1/understanding", params={"scope": scope}).json()["items"][0]["id"]


def test_the_stream_answers(api, listen, scope):
    """The one operation that does not end is there, too."""
    with listen(api, scope=scope):
        pass
