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
    assert "result" in spoken(relay, "initialize", protocolVersion="2025-06-18")
    assert "result" in spoken(relay, "tools/list")
    assert -32000 == spoken(relay, "tools/list", by="alice")["error"]["code"]


@pytest.mark.parametrize("asked", ["2025-06-18", "2025-11-25"])
def test_versions_of_the_protocol(relay, asked):
    """A version that is spoken is kept."""
    said = spoken(relay, "initialize", protocolVersion=asked)

    assert asked == said["result"]["protocolVersion"]


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
    """What the route refuses is an error that says so, with the route's own words."""
    refused = tools("schedule.get", schedule_id="sched_none")["error"]

    assert (-32003, 404, "schedule_not_found") == (
        refused["code"],
        refused["data"]["status"],
        refused["data"]["detail"]["code"],
    )


@pytest.mark.parametrize(
    "name, arguments, code, status",
    [
        ("continuity.read", {"subject_kind": "user", "subject_id": "nobody"}, -32004, 404),
        ("continuity.read", {"subject_kind": "user", "subject_id": "中文"}, -32003, 400),
        ("schedule.get", {"schedule_id": "bad"}, -32602, 422),
        ("schedule.get", {}, -32602, 422),
        ("schedule.list", {"limit": "5"}, -32602, 422),
        ("schedule.list", {"due": 1}, -32602, 422),
        ("schedule.list", {"more": 1}, -32602, 422),
        (
            "schedule.create",
            {"kind": "reminder", "title": "x", "due_at": "2020-01-01T00:00:00Z"},
            -32003,
            422,
        ),
        (
            "coordination.handoff_create",
            {"recipient_peer": "nobody", "subject_kind": "user", "subject_id": "x"},
            -32004,
            404,
        ),
    ],
)
def test_a_refusal_has_the_code_of_its_kind(tools, name, arguments, code, status):
    """Not found, not valid, and failed are three errors; the route's status stands beside."""
    error = tools(name, **arguments)["error"]

    assert (code, status) == (error["code"], error["data"]["status"])


def test_a_missing_scope_is_forbidden(relay):
    """Who may only read is told so by the tool, as by the route."""
    start = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    relay.post(MCP, start | {"params": {"protocolVersion": "2025-06-18"}}, by="reader")
    params = {"name": "context.retrieve", "arguments": {"task": "go on"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    error = relay.post(MCP, call, by="reader").json()["error"]

    assert (-32002, "forbidden") == (error["code"], error["data"]["reason"])


@pytest.mark.parametrize(
    "sent, reason",
    [
        ([], "batch requests are not supported"),
        (5, "request body must be a JSON object"),
        ({"method": "ping", "id": 1}, 'jsonrpc must be exactly "2.0"'),
        ({"jsonrpc": "2.0", "method": 5, "id": 1}, "method must be a string"),
        ({"jsonrpc": "2.0", "method": "ping"}, "id is required for this method"),
        ({"jsonrpc": "2.0", "method": "ping", "id": None}, "id must be a string or integer"),
        ({"jsonrpc": "2.0", "method": "ping", "id": 1.5}, "id must be a string or integer"),
        ({"jsonrpc": "2.0", "method": "ping", "id": True}, "id must be a string or integer"),
        (
            {"jsonrpc": "2.0", "method": "notifications/initialized", "id": 1},
            "notifications/initialized is notification-only",
        ),
    ],
)
def test_what_is_no_request_is_said(relay, sent, reason):
    """A 400 without an id, and why."""
    answer = relay.post(MCP, sent)

    assert (400, None, reason) == (
        answer.status_code,
        answer.json()["id"],
        answer.json()["error"]["data"]["reason"],
    )


@pytest.mark.parametrize(
    "params, reason",
    [
        (None, "params must be an object"),
        ({}, "protocolVersion is required"),
        ({"protocolVersion": 5}, "protocolVersion must be a string"),
        ({"protocolVersion": "2025-06-18", "more": 1}, "unexpected initialize param"),
        ({"protocolVersion": "2025-06-18", "_meta": 1}, "_meta must be an object"),
        (
            {"protocolVersion": "2025-06-18", "capabilities": 1},
            "capabilities must be an object",
        ),
        ({"protocolVersion": "2025-06-18", "clientInfo": 1}, "clientInfo must be an object"),
        ({"protocolVersion": "2025-06-18", "clientInfo": {}}, "clientInfo.name is required"),
        (
            {"protocolVersion": "2025-06-18", "clientInfo": {"name": " "}},
            "clientInfo.name must be a non-empty string",
        ),
        (
            {"protocolVersion": "2025-06-18", "clientInfo": {"name": "x", "icons": 1}},
            "clientInfo.icons must be an array",
        ),
    ],
)
def test_what_is_wrong_with_a_beginning(relay, params, reason):
    """`initialize` names a version that is spoken, and says of the client what it knows."""
    call = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}
    answer = relay.post(MCP, call).json()

    assert (7, -32602, reason) == (
        answer["id"],
        answer["error"]["code"],
        answer["error"]["data"]["reason"],
    )


def test_a_version_that_is_not_spoken(relay):
    """The versions that are spoken are named."""
    params = {"protocolVersion": "1999-01-01"}
    call = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}
    error = relay.post(MCP, call).json()["error"]

    assert "Unsupported protocol version" == error["message"]
    assert "1999-01-01" == error["data"]["requested"]
    assert "2025-06-18" in error["data"]["supported"]


PATCH = {"subject_kind": "user", "subject_id": "x", "updated_at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "name, arguments, keyword, path",
    [
        ("continuity.archive", {}, "required", "/subject_kind"),
        ("continuity.archive", {"subject_kind": "odd"}, "required", "/subject_id"),
        ("coordination.handoffs_query", {"limit": 101}, "less_than_equal", "/limit"),
        ("continuity.list", {"limit": 201}, "less_than_equal", "/limit"),
        ("continuity.list", {"limit": "x"}, "type", "/limit"),
        ("continuity.list", {"keyword": 5}, "anyOf", "/keyword"),
        ("continuity.read", {"subject_kind": "user", "subject_id": ""}, "minLength", "/subject_id"),
        ("continuity.patch", PATCH | {"operations": []}, "minItems", "/operations"),
        ("continuity.patch", PATCH | {"operations": [{}] * 11}, "maxItems", "/operations"),
        ("continuity.patch", PATCH | {"operations": [5]}, "type", "/operations/0"),
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
    answer = relay.post(MCP, {"jsonrpc": "2.0", "method": "notifications/initialized"})

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
