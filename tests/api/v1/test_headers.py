"""What does every response carry, and what happens off the beaten path?  (001 §2.4.4, §6.6–6.8)"""

import pytest

from schemas.ids import parse_id

ROUTES = [
    ("GET", "/v1/admin/version", 200),
    ("GET", "/v1/admin/health", 200),
    ("GET", "/v1/admin/metrics", 200),
    ("GET", "/v1/events?scope=org:none", 200),
    ("GET", "/v1/events", 400),
    ("GET", "/v1/events/evt_1", 404),
    ("GET", "/v1/nothing/here", 404),
    ("GET", "/", 404),
    ("GET", "/v1/events/", 404),
    ("PUT", "/v1/experience", 405),
    ("DELETE", "/v1/events/evt_1", 405),
    ("POST", "/v1/experience", 400),
    ("POST", "/v1/admin/flush-views", 200),
]


@pytest.mark.parametrize("method, path, status", ROUTES)
def test_every_response_has_its_headers(api, method, path, status):
    """Success or failure, known path or not: a request id and a stability tier."""
    answer = api.request(method, path)

    assert status == answer.status_code
    assert parse_id("req", answer.headers["X-Cortex-Request-ID"]) is not None
    assert answer.headers["X-Cortex-Stability"] in ("stable", "beta", "experimental")


def test_the_experimental_surface_says_so(api):
    """With a notice beside the tier, on an answer and on a refusal (001 §2.4.3)."""
    answers = [
        api.post("/v1/admin/flush-views"),
        api.post("/v1/scopes/prune", json={"older_than": "soon"}),
        api.get("/v1/admin/version"),
    ]

    assert [200, 400, 200] == [answer.status_code for answer in answers]
    notices = ["X-Cortex-Experimental-Notice" in answer.headers for answer in answers]
    assert [True, True, False] == notices


@pytest.mark.parametrize("method, path, status", [r for r in ROUTES if r[2] >= 400])
def test_every_failure_is_one_envelope(api, method, path, status):
    """One shape for every failure, with the request id of the header (001 §6.6)."""
    answer = api.request(method, path)
    problem = answer.json()

    assert "application/json" == answer.headers["content-type"]
    assert {"error_code", "message", "request_id", "retriable"} <= set(problem)
    assert problem["error_code"] == problem["error_code"].upper()
    assert answer.headers["X-Cortex-Request-ID"] == problem["request_id"]
    assert False is problem["retriable"]


@pytest.mark.parametrize("header", ["X-Cortex-Request-ID", "X-Request-ID"])
@pytest.mark.parametrize("path", ["/v1/admin/version", "/v1/events/evt_1", "/nothing"])
def test_a_harmless_request_id_is_echoed(api, header, path):
    """The client's own id comes back under our name, also with an error (001 §6.7)."""
    answer = api.get(path, headers={header: "trace-1:a_B.2"})

    assert "trace-1:a_B.2" == answer.headers["X-Cortex-Request-ID"]
    assert "X-Request-ID" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/admin/version", "/v1/events/evt_1", "/nothing"])
@pytest.mark.parametrize(
    "odd", ["", "a b", "<script>", "a\tb", 'a"b', "é".encode(), "x" * 129, "a;b", "a,b"]
)
def test_an_odd_request_id_is_replaced(api, path, odd):
    """What could do harm in a log or a page is not repeated; an id of ours stands in."""
    answer = api.get(path, headers={"X-Cortex-Request-ID": odd})

    assert parse_id("req", answer.headers["X-Cortex-Request-ID"]) is not None


def test_our_name_wins_over_the_older_one(api):
    """X-Request-ID is a fallback only."""
    headers = {"X-Request-ID": "older", "X-Cortex-Request-ID": "ours"}
    answer = api.get("/v1/admin/version", headers=headers)

    assert "ours" == answer.headers["X-Cortex-Request-ID"]


@pytest.mark.parametrize(
    "method, path, capability",
    [
        ("POST", "/v1/experience", "scope.write"),
        ("POST", "/v1/experience/bulk", "scope.write"),
        ("GET", "/v1/events?scope=org:none", "scope.read.local"),
        ("GET", "/v1/lifecycle?limit=1", "lifecycle.subscribe"),
        ("GET", "/v1/admin/health", "admin.health"),
        ("POST", "/v1/admin/flush-views", "admin.flush"),
    ],
)
def test_a_gated_endpoint_says_who_decided(api, envelope, method, path, capability):
    """X-Cortex-Policy names the tier, the decision and the capability (001 §6.8)."""
    bodies = {"/v1/experience": envelope(), "/v1/experience/bulk": {"items": [envelope()]}}
    answer = api.request(method, path, json=bodies.get(path))
    said = f"tier=deployment; decision=allow; capability={capability}"

    assert said == answer.headers["X-Cortex-Policy"]


def test_an_open_endpoint_says_nothing_of_policy(api):
    """Where nothing was decided, nothing is claimed."""
    assert "X-Cortex-Policy" not in api.get("/v1/admin/version").headers


@pytest.mark.parametrize(
    "path, tier",
    [
        ("/v1/admin/version", "stable"),
        ("/v1/admin/projectors", "experimental"),
        ("/v1/nothing", "stable"),
    ],
)
def test_stability_is_that_of_the_endpoint(api, path, tier):
    """Every response carries the tier of the endpoint it came from (001 §2.4.4)."""
    assert tier == api.get(path).headers["X-Cortex-Stability"]


def test_a_wrong_method_says_which_are_right(api):
    """405 with Allow."""
    answer = api.request("DELETE", "/v1/experience")

    assert "METHOD_NOT_ALLOWED" == answer.json()["error_code"]
    assert "POST" == answer.headers["Allow"]


def test_head_has_no_body(api):
    """Refused without a body, and at once: before an idle connection would be closed (5 s)."""
    answer = api.head("/v1/admin/version", timeout=4)

    assert 405 == answer.status_code
    assert b"" == answer.content


def test_the_server_does_not_name_itself(api):
    """No Server header: nobody needs to know what to attack."""
    assert "server" not in api.get("/v1/admin/version").headers
