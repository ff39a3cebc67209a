"""Registering, finding, sharing and dropping scopes over HTTP (001 §8.8)."""

import pytest

ALICE = {"X-Cortex-Actor": "user:alice"}
BOB = {"X-Cortex-Actor": "user:bob"}


@pytest.fixture
def register(api, scope):
    """Register the test's scope, or another; the answer."""

    def post(path=None, headers=ALICE, **body):
        return api.post("/v1/scopes", json={"path": path or scope, **body}, headers=headers)

    return post


def error_of(answer):
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error_code"]


# ── registering ──────────────────────────────────────────────────────────────────────────────


def test_section_8_8_1(api, scope, register):
    """The seed's example: members with roles, policies; 201 with the canonical record."""
    body = {
        "members": [
            {"actor": "user:alice", "role": "owner"},
            {"actor": "agent:planner_v3", "role": "writer"},
            {"actor": "agent:summarizer", "role": "reader"},
        ],
        "policies": {
            "consolidation": "merge_compatible_beliefs",
            "conflict_resolution": "latest_wins_within_confidence_band",
            "inherit_from": ["org:acme"],
            "audit": "full",
            "children": {"auto_register": True},
        },
    }
    answer = register(**body)
    record = answer.json()

    assert 201 == answer.status_code
    assert {
        "path": scope,
        "owner": "user:alice",
        "member_count": 3,
        "registered": True,
        "auto_provisioned": False,
        **body,
    }.items() <= record.items()
    assert record == api.get("/v1/scopes", params={"path": scope}, headers=ALICE).json()


def test_the_published_client_registers_with_an_owner(register):
    """`owner` is the one member it knows."""
    answer = register(owner="user:ines")

    assert [{"actor": "user:ines", "role": "owner"}] == answer.json()["members"]


def test_registering_twice(register):
    """409 with the code of the catalogue."""
    register()

    assert (409, "SCOPE_REGISTRATION_EXISTS") == error_of(register())


def test_a_retry_with_the_same_key(register):
    """The first answer, marked as a replay; another body is a conflict (001 §6.3)."""
    first = register(idempotency_key="k-register")
    again = register(idempotency_key="k-register")
    other = register(idempotency_key="k-register", owner="user:bob")

    assert (201, 201) == (first.status_code, again.status_code)
    assert first.json() == again.json()
    assert (None, "true") == tuple(
        answer.headers.get("x-cortex-replay") for answer in (first, again)
    )
    assert (409, "IDEMPOTENCY_CONFLICT") == error_of(other)


@pytest.mark.parametrize(
    "change, error",
    [
        ({"path": "nonsense"}, (422, "INVALID_SCOPE_GRAMMAR")),
        ({"policies": {"inherit_from": ["nonsense"]}}, (422, "INVALID_SCOPE_GRAMMAR")),
        ({"members": [{"actor": "alice", "role": "owner"}]}, (400, "INVALID_BODY")),
        ({"members": [{"actor": "user:a", "role": "king"}]}, (400, "INVALID_BODY")),
        ({"members": [{"actor": "user:a"}]}, (400, "MISSING_REQUIRED_FIELD")),
        ({"policies": {"retention": "P1D"}}, (400, "INVALID_BODY")),
        ({"policies": {"children": {"n": 2**70}}}, (400, "INVALID_BODY")),
        ({"surprise": 1}, (400, "INVALID_BODY")),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_named(register, change, error):
    """Nothing of it is registered, and the field is said."""
    answer = register(**change)

    assert error == error_of(answer)
    assert answer.json()["details"]["field"]


def test_a_type_of_ones_own_on_ones_own_machine(register, scope):
    """dev_local lets custom types be registered."""
    assert 201 == register(f"{scope}/squad:blue").status_code


# ── finding ──────────────────────────────────────────────────────────────────────────────────


def test_the_first_write_provisions(api, capture, scope):
    """With the writer as owner; before it the path is not found (001 §8.8.2)."""
    before = api.get("/v1/scopes", params={"path": scope})
    event_id = capture()
    record = api.get("/v1/scopes", params={"path": scope}).json()

    assert (404, "NOT_FOUND") == error_of(before)
    assert {
        "path": scope,
        "owner": "user:local",
        "auto_provisioned": True,
        "created_by": event_id,
        "updated_at": None,
    }.items() <= record.items()


def test_a_malformed_path(api):
    """422 with the code for scopes, on every route that takes one."""
    bad = {"path": "not a scope"}
    answers = [
        api.get("/v1/scopes", params=bad),
        api.delete("/v1/scopes", params=bad),
        api.put("/v1/scopes/members", params=bad, json={"members": []}),
    ]

    assert [(422, "INVALID_SCOPE_GRAMMAR")] * 3 == [error_of(answer) for answer in answers]


@pytest.mark.parametrize(
    "more", [{"prefix": "org:"}, {"limit": "5"}, {"auto_provisioned": "true"}, {"cursor": "x"}]
)
def test_one_scope_or_a_page(api, scope, more):
    """A path leaves nothing to filter: both together are a mistake, and it is said."""
    answer = api.get("/v1/scopes", params={"path": scope, **more})

    assert (422, "INVALID_PARAMETER") == error_of(answer)
    assert next(iter(more)) == answer.json()["details"]["field"]


@pytest.mark.parametrize("route", ["/v1/scopes", "/v1/scopes/list"])
def test_a_listing_ends_where_the_scopes_do(api, register, scope, route):
    """Cursor by cursor, every one of sixty; the real product stops at fifty without a word."""
    paths = [f"{scope}/ws:n{number}" for number in range(60)]
    for path in paths:
        register(path)
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        question = {"prefix": f"{scope}/", "limit": 25} | ({"cursor": cursor} if cursor else {})
        page = api.get(route, params=question, headers=ALICE).json()
        seen += [item["path"] for item in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
        assert page["has_more"] == (cursor is not None)

    assert paths == seen
    assert 3 == pages


def test_what_the_published_client_reads_of_a_listing(api, register, scope):
    """Path, owner, members and their number, of each item."""
    register()
    question = {"prefix": scope, "limit": 1}
    item = api.get("/v1/scopes/list", params=question, headers=ALICE).json()["items"][0]

    assert (scope, "user:alice", 1) == (item["path"], item["owner"], item["member_count"])
    assert [{"actor": "user:alice", "role": "owner"}] == item["members"]


def test_a_listing_by_how_it_came_to_be(api, capture, register, scope):
    """Provisioned by a write, or registered."""
    capture()
    register(f"{scope}/ws:x")

    def listed(is_auto):
        question = {"prefix": scope, "auto_provisioned": is_auto}
        page = api.get("/v1/scopes", params=question, headers=ALICE).json()
        return [item["path"] for item in page["items"]]

    assert ([scope], [f"{scope}/ws:x"]) == (listed("true"), listed("false"))


@pytest.mark.parametrize("question", [{"limit": 0}, {"limit": 1001}, {"page": 2}, {"cursor": "!"}])
def test_a_listing_asked_wrongly(api, question):
    """Unknown and impossible parameters are named, never passed over."""
    answer = api.get("/v1/scopes/list", params=question)

    assert 422 == answer.status_code
    assert next(iter(question)) == answer.json()["details"]["field"]


# ── members ──────────────────────────────────────────────────────────────────────────────────


def test_section_8_8_3(api, register, scope):
    """The whole list is sent, the server tells the difference."""
    register(
        members=[{"actor": "user:alice", "role": "owner"}, {"actor": "user:b", "role": "reader"}]
    )
    members = [
        {"actor": "user:alice", "role": "owner"},
        {"actor": "user:b", "role": "writer"},
        {"actor": "user:c", "role": "reader"},
    ]
    answer = api.put(
        "/v1/scopes/members", params={"path": scope}, json={"members": members}, headers=ALICE
    )

    assert {
        "path": scope,
        "members": members,
        "added": [{"actor": "user:c", "role": "reader"}],
        "removed": [],
        "changed": [{"actor": "user:b", "role": "writer", "role_before": "reader"}],
    } == answer.json()


def test_the_last_owner_stays(api, register, scope):
    """422, and the members are as they were."""
    register()
    answer = api.put(
        "/v1/scopes/members", params={"path": scope}, json={"members": []}, headers=ALICE
    )
    record = api.get("/v1/scopes", params={"path": scope}, headers=ALICE).json()

    assert (422, "INVALID_PARAMETER") == error_of(answer)
    assert "user:alice" == record["owner"]


def test_a_registered_scope_is_closed_to_strangers(api, envelope, register, scope):
    """403 NOT_A_MEMBER to write, to read, to administer; and it is in no stranger's listing."""
    register()
    answers = [
        api.post("/v1/experience", json=envelope(), headers=BOB),
        api.get("/v1/events", params={"scope": scope}, headers=BOB),
        api.get("/v1/scopes", params={"path": scope}, headers=BOB),
        api.put(
            "/v1/scopes/members",
            params={"path": scope},
            json={"members": [{"actor": "user:bob", "role": "owner"}]},
            headers=BOB,
        ),
        api.delete("/v1/scopes", params={"path": scope}, headers=BOB),
    ]
    page = api.get("/v1/scopes", params={"prefix": scope}, headers=BOB).json()

    assert [(403, "NOT_A_MEMBER")] * 5 == [error_of(answer) for answer in answers]
    assert [] == page["items"]


# ── dropping ─────────────────────────────────────────────────────────────────────────────────


def test_deleting_what_holds_records(api, envelope, register, scope):
    """409 with the count when nothing is said of them; `keep` leaves them to the scopes above."""
    register()
    api.post("/v1/experience", json=envelope(), headers=ALICE)
    refused = api.delete("/v1/scopes", params={"path": scope}, headers=ALICE)
    done = api.delete("/v1/scopes", params={"path": scope, "records": "keep"}, headers=ALICE)
    hidden = api.get("/v1/events", params={"scope": scope}, headers=ALICE)
    register()
    events = api.get("/v1/events", params={"scope": scope}, headers=ALICE).json()["items"]

    assert (409, "SCOPE_HAS_RECORDS") == error_of(refused)
    assert {"events": 1} == refused.json()["details"]["records"]
    assert (204, b"") == (done.status_code, done.content)
    assert (403, "NOT_A_MEMBER") == error_of(hidden)
    assert 1 == len(events)


def test_deleting_with_forget(api, scope, stated):
    """What was derived is forgotten, then the registration goes; events stay in the log."""
    stated(("2026-05-01T00:00:00Z", "user:ada", "lives_in", "Paris"), scope=scope)
    answer = api.delete("/v1/scopes", params={"path": scope, "records": "forget"})
    facts = api.get("/v1/facts", params={"scope": scope}).json()["items"]

    assert (204, b"") == (answer.status_code, answer.content)
    assert [] == facts


def test_deleting_what_is_not_there(api, scope):
    """404; and without a path it is the request that is wrong."""
    assert (404, "NOT_FOUND") == error_of(api.delete("/v1/scopes", params={"path": scope}))
    assert (400, "MISSING_REQUIRED_FIELD") == error_of(api.delete("/v1/scopes"))


# ── pruning ──────────────────────────────────────────────────────────────────────────────────


def test_section_8_8_6(api, capture, scope):
    """A dry run by default: candidates with their last write and their counts; experimental."""
    capture()
    found, cursor, stability = {}, None, set()
    while not found or cursor is not None:
        body = {"older_than": "PT0S", "limit": 1000} | ({"cursor": cursor} if cursor else {})
        answer = api.post("/v1/scopes/prune", json=body)
        page, cursor = answer.json(), answer.json()["next_cursor"]
        found |= {candidate["path"]: candidate for candidate in page["candidates"]}
        stability.add(answer.headers["x-cortex-stability"])
        assert (len(page["candidates"]), 0) == (page["total"], page["pruned"])

    assert {"experimental"} == stability
    assert {"events": 1} == found[scope]["records"]
    assert found[scope]["last_write"]
    assert 200 == api.get("/v1/scopes", params={"path": scope}).status_code


def test_pruning_for_real(run_server, envelope, scope):
    """The registration goes, the events stay, and a young scope is not touched."""
    with run_server().client() as client:
        client.post("/v1/experience?wait=settled", json=envelope())
        young = client.post("/v1/scopes/prune", json={"older_than": "P90D", "dry_run": False})
        done = client.post("/v1/scopes/prune", json={"older_than": "PT0S", "dry_run": False})
        record = client.get("/v1/scopes", params={"path": scope}).json()

    assert (0, 0) == (young.json()["total"], young.json()["pruned"])
    assert (1, 1) == (done.json()["total"], done.json()["pruned"])
    assert not record["registered"]


@pytest.mark.parametrize("length", ["90 days", "P", "-P1D", 90])
def test_a_length_that_is_none(api, length):
    """ISO 8601, or it is refused."""
    answer = api.post("/v1/scopes/prune", json={"older_than": length})

    assert (400, "INVALID_BODY") == error_of(answer)
    assert "older_than" == answer.json()["details"]["field"]
