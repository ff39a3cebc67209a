"""Reading the layers over HTTP: pages, moments, views, and what each route says (001 §8.7)."""

import pytest

ALICE = {"X-Cortex-Actor": "user:alice"}
BOB = {"X-Cortex-Actor": "user:bob"}


@pytest.fixture
def tell(told, envelope):
    """Say things in the test's scope, each at its time; the ids of the events."""

    def say(*spoken, **changes):
        items = [envelope(text, context={"observed_at": at}, **changes) for at, text in spoken]
        return [event["id"] for event in told(*items)]

    return say


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


# ── events in time ───────────────────────────────────────────────────────────────────────────


def test_events_of_a_phrase(api, scope, tell, everything):
    """A window of validity is about when an event was observed."""
    tell(("2026-04-20T10:00:00Z", "in April"), ("2026-05-02T10:00:00Z", "in May"))
    parameters = {"scope": scope, "natural": "last month", "reference_date": "2026-05-13"}
    found = everything("/v1/events", **parameters)

    assert ["in April"] == [event["content"]["text"] for event in found]


def test_events_as_of_a_moment(api, scope, tell, everything):
    """What had been recorded by then, whenever it was observed (001 §18.2.17)."""
    first, second = tell(("2030-01-01T00:00:00Z", "one"), ("2020-01-01T00:00:00Z", "two"))
    recorded = {
        event["id"]: event["context"]["recorded_at"]
        for event in everything("/v1/events", scope=scope)
    }
    found = everything("/v1/events", scope=scope, as_of=recorded[first])
    later = everything("/v1/events", scope=scope, recorded_during=f"{recorded[second]}..")

    assert [first] == [event["id"] for event in found]
    assert [second] == [event["id"] for event in later]


def test_raw_events_have_no_validity(api, scope, tell):
    """001 §18.2.17: the window is ignored, with a warning and no error."""
    tell(("2026-05-02T10:00:00Z", "in May"))
    parameters = {"scope": scope, "valid_during": "2026-03-01..2026-04-01"}
    raw = api.get("/v1/events", params=parameters | {"view": "raw"})
    local = api.get("/v1/events", params=parameters)

    assert "valid_during_ignored_for_view_raw" == raw.headers["x-cortex-warning"]
    assert (1, 0) == (len(raw.json()["items"]), len(local.json()["items"]))
    assert "x-cortex-warning" not in local.headers


@pytest.mark.parametrize(
    "parameters, error",
    [
        ({"natural": "when pigs fly"}, (422, "UNPARSEABLE_TEMPORAL", "natural")),
        ({"as_of": "soon"}, (422, "INVALID_TIMESTAMP", "as_of")),
        ({"valid_during": "2026-05-01"}, (422, "INVALID_PARAMETER", "valid_during")),
        ({"valid_during": "2026-05-01..2026-04-01"}, (422, "INVALID_PARAMETER", "valid_during")),
        ({"timezone": "Mars/Olympus"}, (422, "INVALID_PARAMETER", "timezone")),
        ({"natural_mode": "hopeful"}, (422, "INVALID_PARAMETER", "natural_mode")),
        ({"asof": "2026-05-01"}, (422, "INVALID_PARAMETER", "asof")),
        ({"limit": "0"}, (422, "INVALID_PARAMETER", "limit")),
        ({"cursor": "bm9wZQ=="}, (422, "INVALID_CURSOR", "cursor")),
    ],
)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/episodes"])
def test_a_parameter_that_cannot_be_meant_is_named(api, scope, path, parameters, error):
    """Never ignored: page one for ever is what ignoring would serve."""
    assert error == error_of(api.get(path, params={"scope": scope, **parameters}))


def test_a_lenient_reader_is_warned(api, scope, tell):
    """As if the words had not been there."""
    tell(("2026-05-02T10:00:00Z", "in May"))
    answer = api.get(
        "/v1/events",
        params={"scope": scope, "natural": "when pigs fly", "natural_mode": "lenient"},
    )

    assert "natural_not_understood" == answer.headers["x-cortex-warning"]
    assert 1 == len(answer.json()["items"])


def test_a_registered_phrase_is_understood_at_once(api, scope, tell, everything):
    """Registered, asked with, and gone again."""
    tell(("2026-02-10T09:00:00Z", "launch day"), ("2026-01-01T09:00:00Z", "before"))
    phrase = {"name": "our launch", "resolves_to": {"valid_during": ["2026-02-10", "2026-02-11"]}}
    assert 201 == api.post("/v1/temporal/phrases", json=phrase).status_code
    parameters = {"scope": scope, "natural": "since our launch"}
    found = everything("/v1/events", **parameters)
    api.delete("/v1/temporal/phrases/our launch")

    assert ["launch day"] == [event["content"]["text"] for event in found]
    assert (422, "UNPARSEABLE_TEMPORAL", "natural") == error_of(
        api.get("/v1/events", params=parameters)
    )


# ── views ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/v1/events", "/v1/episodes"])
def test_scopes_below_that_are_closed_are_counted(api, envelope, scope, path):
    """001 §18.2.4: that they are there, how much, and who says no; not what."""
    closed = scope + "/ws:closed"
    members = [{"actor": "user:alice", "role": "owner"}]
    api.post("/v1/scopes", json={"path": closed, "members": members}, headers=ALICE)
    for text in ("one", "two"):
        body = envelope(text, scope=closed)
        assert 200 == api.post("/v1/experience?wait=settled", json=body, headers=ALICE).status_code
    assert 200 == api.post("/v1/experience?wait=settled", json=envelope("open")).status_code
    answer = api.get(path, params={"scope": scope, "view": "descend"}, headers=BOB)
    page = answer.json()
    placeholder = page["scopes_traversed"][1]

    assert 200 == answer.status_code, answer.text
    assert {"scope": scope, "items": 1} == page["scopes_traversed"][0]
    assert (closed, True) == (placeholder["scope"], placeholder["denied"])
    assert placeholder["item_count"] == (2 if path == "/v1/events" else 1)
    assert "NOT_A_MEMBER" in placeholder["denied_reason"]
    assert [scope] == [item["scope"] for item in page["items"]]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/episodes"])
def test_a_closed_scope_is_a_denial(api, envelope, scope, path):
    """Named itself it is a 403, not an empty page."""
    members = [{"actor": "user:alice", "role": "owner"}]
    api.post("/v1/scopes", json={"path": scope, "members": members}, headers=ALICE)
    answer = api.get(path, params={"scope": scope}, headers=BOB)

    assert (403, "NOT_A_MEMBER") == error_of(answer)[:2]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/episodes"])
def test_up_the_tree_when_asked_for(api, envelope, scope, path, everything):
    """001 §18.2.14: local unless the caller says holistic."""
    below = scope + "/project:x"
    for where in (scope, below):
        body = envelope("hello there", scope=where)
        assert 200 == api.post("/v1/experience?wait=settled", json=body).status_code
    local = everything(path, scope=below)
    up = api.get(path, params={"scope": below, "view": "holistic"}).json()

    assert [below] == [item["scope"] for item in local]
    assert {scope, below} == {item["scope"] for item in up["items"]}
    assert below == up["scopes_traversed"][0]["scope"]


# ── episodes ─────────────────────────────────────────────────────────────────────────────────

TALK = (
    ("2026-05-13T15:00:00Z", "We need a plan for the Acme renewal."),
    ("2026-05-13T15:05:00Z", "We decided to offer Acme 200 seats."),
    ("2026-05-13T15:10:00Z", "Acme signed the renewal."),
)


def test_an_open_episode_is_as_it_stands(api, scope, tell, everything):
    """Put together when it is read: every event so far, marked as not over."""
    ids = tell(*TALK)
    [episode] = everything("/v1/episodes", scope=scope)

    assert ids == episode["events"]
    assert (False, True, "episode_open") == (
        episode["sealed"],
        episode["_partial"],
        episode["_partial_reason"],
    )
    assert ("2026-05-13T15:00:00Z", "2026-05-13T15:10:00Z") == (
        episode["started_at"],
        episode["ended_at"],
    )
    assert episode == api.get(f"/v1/episodes/{episode['id']}").json()


def test_an_episode_as_of_its_second_event(api, scope, tell, everything):
    """Later events do not change an earlier answer."""
    ids = tell(*TALK)
    event = api.get(f"/v1/events/{ids[1]}").json()
    parameters = {"scope": scope, "as_of": event["context"]["recorded_at"]}
    parameters["valid_during"] = "2026-01-01.."
    [then] = everything("/v1/episodes", **parameters)
    by_id = api.get(
        f"/v1/episodes/{then['id']}", params={"as_of": event["context"]["recorded_at"]}
    ).json()

    assert ids[:2] == then["events"] == by_id["events"]


def test_episodes_by_time_actor_and_session(api, scope, tell, everything):
    """`overlapping` is about when they took place, both ends included."""
    tell(*TALK, observed_actor={"id": "user:alice", "session": "s1"})
    tell(
        ("2026-03-01T09:00:00Z", "Dana moved the standup."),
        observed_actor={"id": "user:dana", "session": "s2"},
    )

    def found(**parameters):
        listed = everything("/v1/episodes", scope=scope, **parameters)
        return sorted(episode["session"] for episode in listed)

    assert ["s1", "s2"] == found()
    assert ["s1"] == found(overlapping="2026-05-01..2026-06-01")
    assert ["s1"] == found(overlapping="2026-05-13T15:10:00Z..")
    assert [] == found(overlapping="2026-05-13T15:10:00.000001Z..")
    assert ["s2"] == found(actor="user:dana")
    assert ["s2"] == found(session="s2")
    assert [] == found(session="s2", actor="user:alice")


def test_causal_chains_may_be_left_out(api, scope, tell, everything):
    """There unless the reader does not want them."""
    tell(*TALK)
    [full] = everything("/v1/episodes", scope=scope)
    [bare] = everything("/v1/episodes", scope=scope, with_causal_chain=False)

    assert "trigger" == full["causal_chain"][0]["role"]
    assert [] == bare["causal_chain"]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_of_episodes_cover_each_once(scope, told, envelope, order, everything):
    """Whatever the size of a page."""
    actors = [{"id": "user:alice", "session": f"s{number}"} for number in range(4)]
    told(*(envelope("A story", observed_actor=actor) for actor in actors))

    expected = [actor["session"] for actor in actors]
    for limit in (1, 2, 5):
        found = everything("/v1/episodes", scope=scope, order=order, limit=limit)
        sessions = [episode["session"] for episode in found]
        assert sessions == (expected if order == "oldest" else expected[::-1])


@pytest.mark.parametrize(
    "record_id", ["ep_01a1e2e0-7ac8-7251-9e32-80af3a0102d2", "ep_x", "fact_x", "evt_1"]
)
def test_an_id_that_names_no_episode(api, record_id):
    """404, whatever it looks like."""
    assert (404, "NOT_FOUND", None) == error_of(api.get(f"/v1/episodes/{record_id}"))
