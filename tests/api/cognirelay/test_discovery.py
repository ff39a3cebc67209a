"""/v1/discovery, /v1/manifest, /v1/mcp: is what they say what there is?"""

import pytest

from api.cognirelay import ENDPOINTS
from schemas.surfaces.cognirelay.catalogue import TOOLS

MCP = "/v1/mcp"


def spoken(relay, method, by="owner", **params):
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return relay.post(MCP, body, by).json()


@pytest.fixture
def tools(relay):
    """A tenant whose owner has said hello; calls of tools by it."""
    spoken(relay, "initialize", protocolVersion="2025-06-18")
    return lambda name, **arguments: spoken(relay, "tools/call", name=name, arguments=arguments)


def test_every_tool_is_a_route(relay):
    """The catalogue lists each tool whose route is there, once, and says how many."""
    found = relay.get("/v1/discovery/tools").json()
    there = {f"{one.method} {one.path}" for one in ENDPOINTS}

    assert [f"{tool['method']} {tool['path']}" for tool in found["tools"]] == [
        route for route in TOOLS if route in there
    ]
    assert len(found["tools"]) == found["count"]


def test_every_route_is_in_the_manifest(relay):
    """The manifest has every route of the table, and no other."""
    found = relay.get("/v1/manifest").json()["endpoints"]

    assert {f"{one.method} {one.path}" for one in ENDPOINTS} == set(found)


def test_what_is_not_offered_says_so(relay):
    """A route that the manifest marks as not offered is a 404 that tells why."""
    listed = relay.get("/v1/manifest").json()["endpoints"]
    refused = [
        relay("POST", route.partition(" ")[2], {})
        for route, said in listed.items()
        if said.get("posture") == "not_offered"
    ]

    assert [404, 404] == [answer.status_code for answer in refused]
    assert all(answer.json()["detail"] != "Not Found" for answer in refused)


def test_discovery_needs_no_token(served):
    """Whoever may not call a tool may still read what there is."""
    with served.server.client() as client:
        answers = [client.get(path).status_code for path in ("/v1/discovery/tools", "/v1/manifest")]

    assert [200, 200] == answers


def test_ready_is_a_callers_own(relay):
    """One caller's `initialize` makes nobody else ready."""
    assert "result" in spoken(relay, "initialize")
    assert "result" in spoken(relay, "tools/list")
    assert -32000 == spoken(relay, "tools/list", by="alice")["error"]["code"]


@pytest.mark.parametrize(
    "asked, answered",
    [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25"), (5, "2025-11-25")],
)
def test_versions_of_the_protocol(relay, asked, answered):
    """A version that is spoken is kept; for any other the latest is offered."""
    assert (
        answered == spoken(relay, "initialize", protocolVersion=asked)["result"]["protocolVersion"]
    )


@pytest.mark.parametrize("raw, code", [(b"{", -32700), (b"[]", -32600), (b'{"id":1}', -32600)])
def test_what_is_no_message(served, relay, raw, code):
    """What cannot be read as a message is a 400 with the protocol's own code."""
    token = served.tenants.tokens("own1")["token:owner"]
    with served.server.client(headers={"authorization": f"Bearer {token}"}) as client:
        answer = client.post(MCP, content=raw)

    assert (400, code) == (answer.status_code, answer.json()["error"]["code"])


def test_a_tool_with_a_path_and_a_query(tools, later):
    """Arguments go where the route takes them: path, query and body."""
    made = tools("schedule.create", kind="reminder", title="look", due_at=later())
    schedule_id = made["result"]["structuredContent"]["item"]["schedule_id"]
    ended = tools("schedule.acknowledge", schedule_id=schedule_id, expected_version=1)
    found = tools("schedule.list", status="acknowledged", limit=1, include_retired=True)

    assert "acknowledged" == ended["result"]["structuredContent"]["item"]["status"]
    assert 1 == found["result"]["structuredContent"]["total"]


def test_a_tool_that_is_refused(tools):
    """What the route refuses is a result that says so, with the route's own words."""
    refused = tools("schedule.get", schedule_id="sched_none")["result"]

    assert refused["isError"]
    assert (404, "schedule_not_found") == (
        refused["structuredContent"]["status"],
        refused["structuredContent"]["detail"]["code"],
    )


@pytest.mark.parametrize(
    "name, arguments, keyword, path",
    [
        ("schedule.get", {}, "required", "/schedule_id"),
        ("schedule.get", {"schedule_id": "x", "more": 1}, "additionalProperties", "/more"),
        ("coordination.handoffs_query", {"limit": 101}, "maximum", "/limit"),
        ("coordination.shared_create", {"title": 5}, "type", "/title"),
        (
            "coordination.handoff_consume",
            {"handoff_id": "x", "status": "maybe"},
            "enum",
            "/status",
        ),
    ],
)
def test_arguments_that_do_not_fit(tools, name, arguments, keyword, path):
    """Arguments are held against the schema of the tool before anything is called."""
    error = tools(name, **arguments)["error"]

    assert -32602 == error["code"]
    assert {"path": path, "keyword": keyword}.items() <= error["data"]["details"][0].items()


def test_a_notification_is_not_answered(relay):
    """What has no id wants no answer."""
    answer = relay.post(MCP, {"jsonrpc": "2.0", "method": "notifications/cancelled"})

    assert (204, b"") == (answer.status_code, answer.content)


def test_paths_are_the_clients_own_wherever_it_is_mounted(client):
    """Mounted beside the core, the catalogue says paths as with a base URL of its own."""
    found = client.get("/cognirelay/v1/discovery/tools").json()

    assert "/v1/schedule/items" in {tool["path"] for tool in found["tools"]}


UNGATED = ("/v1/manifest", "/v1/discovery/tools", "/v1/continuity/refresh/plan")
UNGATED += ("/v1/continuity/retention/plan",)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_gated_routes_name_their_capability(endpoint):
    """A route that shows or changes anything names its capability: calls of it are audited."""
    is_open = endpoint.path in UNGATED or (endpoint.method, endpoint.path) == ("GET", MCP)

    assert is_open is (endpoint.capability is None)
    assert endpoint.capability in {None, "scope.read.local", "scope.write"}


def test_a_call_leaves_an_audit_row(client, envelope):
    """One row a call, whether by its route or as a tool, refused or not."""
    headers = {"X-Cortex-Actor": "agent:relayed"}
    for path in ("/v1/schedule/items", "/v1/schedule/items/sched_none"):
        client.get(f"/cognirelay{path}", headers=headers)
    for body in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "schedule.list"}},
    ):
        client.post(f"/cognirelay{MCP}", json=body, headers=headers)
    client.post("/v1/experience", json=envelope())
    rows = client.get("/v1/audit", params={"actor": "agent:relayed"}).json()["items"][::-1]

    assert [
        ("GET /cognirelay/v1/schedule/items", 200),
        ("GET /cognirelay/v1/schedule/items/sched_none", 404),
        ("POST /cognirelay/v1/mcp", 200),
        ("POST /cognirelay/v1/mcp", 200),
    ] == [(row["endpoint"], row["response_status"]) for row in rows]
