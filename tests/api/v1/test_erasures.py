"""Is what was erased shown first, gone afterwards, and nothing else with it?  (001 §8.6, §11.3)"""

import time

import pytest


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    """A server of its own: what an erasure rebuilds should be little."""
    running = start_server(tmp_path_factory.mktemp("erasures") / "data")
    yield running
    running.stop()


@pytest.fixture
def story(stated, scope):
    """Two facts in a scope of its own; the ids of their events."""
    events = stated(
        ("2026-05-01T00:00:00Z", "user:ada", "lives_in", "Paris"),
        ("2026-05-01T00:00:00Z", "user:bob", "lives_in", "Rome"),
        scope=scope,
    )
    return [event["id"] for event in events]


@pytest.fixture
def preview(api):
    """Preview an erasure."""

    def ask(scope, **more):
        answer = api.post("/v1/erasures/preview", json={"scope": scope} | more)
        assert 200 == answer.status_code, answer.text
        return answer.json()

    return ask


def test_a_preview_counts_and_lists(api, preview, story, scope):
    """How many of what, and line by line what becomes of each; nothing changes."""
    shown = preview(scope, audit_note="DSR 1")
    lines = api.get(shown["manifest_url"], params={"limit": 100}).json()

    assert {"events_to_delete": 2, "events_to_redact": 0, "events_under_legal_hold": 0} == shown[
        "refcount_breakdown"
    ]
    assert {"events": 2, "facts": 2, "beliefs": 2}.items() <= shown["estimated_affected"].items()
    assert {"affected_workspaces": [], "requires_capability": None} == shown[
        "cross_scope_propagation"
    ]
    assert set(story) == {line["id"] for line in lines["items"] if line["kind"] == "event"}
    assert not lines["drifted"]
    assert 200 == api.get(f"/v1/events/{story[0]}").status_code


def test_what_others_refer_to_is_redacted(api, preview, story, scope, envelope):
    """A reference counts when it comes from another scope; then that scope is named."""
    other = scope + "x"
    context = {"observed_at": "2026-05-02T00:00:00Z", "preceded_by": [story[0]]}
    api.post("/v1/experience", json=envelope("and then", scope=other, context=context))
    inside = envelope("then", scope=scope, context=context)
    api.post("/v1/experience?wait=settled", json=inside)
    shown = preview(scope)

    assert {"events_to_delete": 2, "events_to_redact": 1}.items() <= shown[
        "refcount_breakdown"
    ].items()
    spaces = shown["cross_scope_propagation"]["affected_workspaces"]
    assert [(other, 1)] == [(space["scope"], space["events_referenced"]) for space in spaces]
    assert "forget.gdpr.cross_workspace" == shown["cross_scope_propagation"]["requires_capability"]


def test_a_legal_hold_keeps_what_is_there(api, preview, story, scope):
    """Held scopes, and those below, are neither deleted nor redacted."""
    held = api.put("/v1/scopes/hold", params={"path": scope}, json={"reason": "case 7"})
    shown = preview(scope)
    redacted = api.post(
        "/v1/forget", json={"scope": scope, "cascade": "redact_events", "confirm_all": True}
    )
    freed = api.put("/v1/scopes/hold", params={"path": scope}, json={"held": False})

    assert (True, "case 7") == (held.json()["held"], held.json()["reason"])
    assert 2 == shown["refcount_breakdown"]["events_under_legal_hold"]
    assert 0 == shown["estimated_affected"]["events"]
    assert [scope] == shown["legal_holds"]
    assert 2 == redacted.json()["events_under_legal_hold"]
    assert 200 == api.get(f"/v1/events/{story[0]}").status_code
    assert freed.json()["held"] is False


@pytest.mark.parametrize(
    "body, code",
    [
        ({"selector": {}}, "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"),
        ({"selector": {"memory_id": ["evt_1"]}}, "INVALID_PARAMETER"),
        (
            {"selector": {"memory_ids": ["x"]}, "confirm_all": True},
            "AMBIGUOUS_SELECTOR_CONFIRM_ALL",
        ),
    ],
)
@pytest.mark.usefixtures("story")
def test_what_could_mean_more_is_refused(api, scope, body, code):
    """A typing mistake never erases a scope."""
    for path in ("/v1/erasures/preview", "/v1/erasures"):
        assert code == api.post(path, json={"scope": scope} | body).json()["error_code"]


def test_drift_is_a_conflict(api, preview, story, capture, scope):
    """What came since the preview was not looked at: 409."""
    shown = preview(scope)
    capture("one more", scope=scope)
    answer = api.post("/v1/erasures", json={"scope": scope, "from_preview_id": shown["preview_id"]})

    assert 409 == answer.status_code
    assert api.get(shown["manifest_url"]).json()["drifted"]
    assert 200 == api.get(f"/v1/events/{story[0]}").status_code


def test_erasing_a_single_memory(api, preview, story, scope):
    """One event goes for good; the other, and what rests on it, stays. It can be watched."""
    chosen = {"memory_ids": [story[0]]}
    shown = preview(scope, selector=chosen)
    ask = {"scope": scope, "selector": chosen, "from_preview_id": shown["preview_id"]}
    begun = api.post("/v1/erasures", json=ask | {"idempotency_key": f"e-{scope[-12:]}"})
    again = api.post("/v1/erasures", json=ask | {"idempotency_key": f"e-{scope[-12:]}"})
    state = {}
    for _ in range(600):
        state = api.get(f"/v1/erasures/{begun.json()['erasure_id']}").json()
        if state["phase"] == "cleanup" or state["status"] != "running":
            break
        time.sleep(0.05)

    assert 202 == begun.status_code, begun.text
    assert begun.json()["erasure_id"] == again.json()["erasure_id"]
    assert state["status"] in ("running", "completed"), state
    assert 1 == state["progress"]["deleted_events"]
    assert 410 == api.get(f"/v1/events/{story[0]}").status_code
    assert 200 == api.get(f"/v1/events/{story[1]}").status_code
    lines = api.get(begun.json()["manifest_url"], params={"limit": 50}).json()["items"]
    assert [story[0]] == [line["id"] for line in lines if line["kind"] == "event"]
    page = api.get("/v1/lifecycle", params={"scope": scope, "events": "erasure_progress"}).json()
    phases = [row["payload"]["phase"] for row in page["items"]]
    assert ["enumerate", "refcount", "delete", "cleanup"] == list(dict.fromkeys(phases))


def test_the_manifest_names_who_else_is_concerned(api, preview, stated, scope):
    """What rests on it elsewhere is demoted, and the other scope stands there with its owners."""
    other = f"{scope}x"
    me = api.get("/v1/auth/whoami").json()["actor"]
    owners = [{"actor": actor, "role": "owner"} for actor in (me, "user:priya")]
    made = api.post("/v1/scopes", json={"path": other, "members": owners})
    assert made.status_code in (200, 201), made.text
    event = stated(
        ("2026-05-01T00:00:00Z", "user:ada", "lives_in", "Paris"),
        scope=scope,
        directives={"consolidate_into": other},
    )[0]
    shown = preview(scope)
    lines = api.get(shown["manifest_url"], params={"limit": 100}).json()["items"]
    by_action = {}
    for line in lines:
        by_action.setdefault((line["kind"], line["action"]), []).append(line)

    (redacted,) = by_action["event", "redact"]
    assert (event["id"], [other]) == (redacted["id"], redacted["references"])
    prefixes = [line["id"].partition("_")[0] for line in by_action["record", "demote"]]
    assert ["belief", "fact"] == sorted(prefixes)
    assert {other} == {line["scope"] for line in by_action["record", "demote"]}
    (space,) = by_action["workspace", "refer"]
    assert (other, 1) == (space["id"], space["events_referenced"])
    assert "user:priya" in space["co_owners"]
    assert ("record", "delete") not in by_action or other not in {
        line["scope"] for line in by_action["record", "delete"]
    }


def test_a_key_used_for_another_erasure_is_a_conflict(api, story, scope):
    """The same key and body is the same erasure; another body is 409, and erases nothing."""
    key = f"k-{scope[-12:]}"
    ask = {"scope": scope, "selector": {"memory_ids": [story[0]]}, "idempotency_key": key}
    first = api.post("/v1/erasures", json=ask)
    again = api.post("/v1/erasures", json=ask)
    other = api.post("/v1/erasures", json=ask | {"selector": {"memory_ids": [story[1]]}})

    assert (202, 202) == (first.status_code, again.status_code)
    assert first.json()["erasure_id"] == again.json()["erasure_id"]
    assert "true" == again.headers["x-cortex-replay"]
    assert "x-cortex-replay" not in first.headers
    assert (409, "IDEMPOTENCY_CONFLICT") == (other.status_code, other.json()["error_code"])
    assert 200 == api.get(f"/v1/events/{story[1]}").status_code


def test_an_erasure_that_is_not_there(api):
    """404, for the erasure and for a preview."""
    assert 404 == api.get("/v1/erasures/erasure_none").status_code
    assert 404 == api.get("/v1/erasures/preview/ervw_none/manifest").status_code
    assert 404 == api.post("/v1/erasures/erasure_none/cancel").status_code
