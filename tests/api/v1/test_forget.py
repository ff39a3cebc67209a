"""Does forgetting forget, and nothing else?  (001 §8.5, §11, §18.2.13)"""

import time

import pytest


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    """A server of its own: what redaction rebuilds should be little."""
    running = start_server(tmp_path_factory.mktemp("forget") / "data")
    yield running
    running.stop()


@pytest.fixture
def forget(api):
    """Forget something in a scope; the answer."""

    def ask(scope, path="/v1/forget", **body):
        return api.post(path, json={"scope": scope} | body)

    return ask


@pytest.fixture
def told_of(stated, scope):
    """Two facts about two subjects in a scope of its own; the events."""
    events = stated(
        ("2026-05-01T00:00:00Z", "user:ada", "lives_in", "Paris"),
        ("2026-05-01T00:00:00Z", "user:bob", "lives_in", "Rome"),
        scope=scope,
    )
    return [event["id"] for event in events]


def eventually(ask, wanted):
    """What is asked, once it is as wanted: a rebuild takes as long as it takes."""
    for _ in range(1200):
        found = ask()
        if wanted(found):
            return found
        time.sleep(0.05)
    return ask()


def facts_in(api, scope):
    return api.get("/v1/facts", params={"scope": scope}).json()["items"]


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body, code",
    [
        ({}, "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"),
        ({"selector": {}}, "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"),
        ({"selector": {"about_subject": ""}}, "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"),
        ({"layers": ["facts"]}, "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"),
        ({"confirm_all": True, "selector": {"predicate": "p"}}, "AMBIGUOUS_SELECTOR_CONFIRM_ALL"),
        ({"selector": {"abuot_subject": "user:ada"}}, "INVALID_PARAMETER"),
        ({"confirm_all": True, "cascade": "all"}, "INVALID_BODY"),
        ({"confirm_all": True, "layers": ["events"]}, "INVALID_PARAMETER"),
    ],
)
@pytest.mark.usefixtures("told_of")
def test_what_could_mean_more_than_was_said_is_refused(api, forget, scope, body, code):
    """A typing mistake is never everything: 4xx, and nothing changes."""
    answer = forget(scope, **body)

    assert code == answer.json()["error_code"]
    assert answer.status_code in (400, 422)
    assert 2 == len(facts_in(api, scope))


# ── derived records ──────────────────────────────────────────────────────────────────────────


def test_forgetting_a_subject(api, forget, told_of, scope):
    """Its facts and beliefs are gone, by list and by id; the event and the others stay."""
    ada, bob = sorted(facts_in(api, scope), key=lambda fact: fact["subject"]["id"])
    if ada["object"].get("value", ada["object"].get("name")) != "Paris":
        ada, bob = bob, ada
    answer = forget(scope, selector={"about_subject": "user:ada"}, audit_note="asked").json()

    assert {"events": 0, "facts": 1, "beliefs": 1} == {
        name: answer["deleted"][name] for name in ("events", "facts", "beliefs")
    }
    assert [bob["id"]] == [fact["id"] for fact in facts_in(api, scope)]
    assert 410 == api.get(f"/v1/facts/{ada['id']}").status_code
    assert 200 == api.get(f"/v1/events/{told_of[0]}").status_code
    assert [] == [
        name
        for name in api.get(f"/v1/events/{told_of[0]}").json()["derives"]
        if name.startswith(("fact_", "belief_"))
    ]
    assert answer["audit_id"].startswith("audit_")
    assert answer["deleted_count"] == answer["forgotten"] == sum(answer["deleted"].values())


def test_forgetting_is_not_for_ever(api, forget, told_of, stated, scope):
    """What is told again after a forget is known again: it is another fact."""
    before = {fact["id"] for fact in facts_in(api, scope)}
    forget(scope, confirm_all=True)
    assert [] == facts_in(api, scope)
    stated(("2026-05-02T00:00:00Z", "user:ada", "lives_in", "Paris"), scope=scope)

    assert 1 == len(facts_in(api, scope))
    assert not before & {fact["id"] for fact in facts_in(api, scope)}


def test_memory_ids_come_on_top_of_the_filters(api, forget, told_of, scope):
    """An id is forgotten whatever the filters say, and only in the scope that is named."""
    facts = facts_in(api, scope)
    elsewhere = forget("org:other/user:x", selector={"memory_ids": [facts[0]["id"]]})
    both = forget(
        scope, selector={"predicate": "no_such", "memory_ids": [facts[0]["id"], "fact_nope"]}
    )

    assert 0 == elsewhere.json()["deleted_count"]
    assert 1 == both.json()["deleted"]["facts"]
    assert [facts[1]["id"]] == [fact["id"] for fact in facts_in(api, scope)]


def test_a_layer_alone(api, forget, told_of, scope):
    """Only the named layers lose records."""
    answer = forget(scope, layers=["beliefs"], confirm_all=True).json()

    assert (0, 2) == (answer["deleted"]["facts"], answer["deleted"]["beliefs"])
    assert 2 == len(facts_in(api, scope))
    assert [] == api.get("/v1/beliefs", params={"scope": scope}).json()["items"]


def test_windows(api, forget, told_of, stated, scope):
    """Both axes, half-open; `created_during` is the older name of the second."""
    window = ["2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"]
    none = forget(scope, selector={"created_during": ["2020-01-01", "2020-02-01"]}).json()
    some = forget(scope, layers=["facts"], selector={"valid_during": window}).json()

    assert 0 == none["deleted_count"]
    assert 2 == some["deleted"]["facts"]


def test_a_key_is_good_once(api, forget, told_of, scope):
    """The same again is the same answer; another body under the key is a conflict."""
    ask = {"selector": {"about_subject": "user:ada"}, "idempotency_key": f"f-{scope[-12:]}"}
    first, again = forget(scope, **ask), forget(scope, **ask)
    other = forget(scope, confirm_all=True, idempotency_key=ask["idempotency_key"])

    assert first.json()["audit_id"] == again.json()["audit_id"]
    assert first.json()["deleted"] == again.json()["deleted"]
    assert 409 == other.status_code


def test_preview(api, forget, told_of, scope):
    """It says what would happen, changes nothing, and holds a later forget to it."""
    ask = {"selector": {"about_subject": "user:ada"}}
    preview = forget(scope, path="/v1/forget/preview", **ask).json()
    still = facts_in(api, scope)
    other = forget(scope, confirm_all=True, from_preview_id=preview["preview_id"])
    done = forget(scope, **ask, reason="seen", from_preview_id=preview["preview_id"])

    assert 2 == len(still)
    assert preview["estimated_deleted"] == done.json()["deleted"]
    assert preview["estimated_total"] == done.json()["deleted_count"] > 0
    assert 409 == other.status_code
    assert 404 == forget(scope, **ask, from_preview_id="ervw_none").status_code


def test_it_is_announced(api, forget, told_of, scope):
    """One `forgotten` a layer: how many, by whom, how."""
    forget(scope, selector={"about_subject": "user:ada"})
    page = api.get("/v1/lifecycle", params={"scope": scope, "events": "forgotten"}).json()
    said = {row["payload"]["layer"]: row["payload"] for row in page["items"]}

    assert {"count": 1, "cascade": "derived_only"}.items() <= said["facts"].items()


def test_taking_it_back(api, forget, told_of, scope):
    """Within a day what was derived is derived again, under the ids it had."""
    before = {fact["id"] for fact in facts_in(api, scope)}
    audit_id = forget(scope, confirm_all=True).json()["audit_id"]
    reverted = api.post(f"/v1/forget/{audit_id}/revert")
    assert 200 == reverted.status_code, reverted.text
    eventually(lambda: facts_in(api, scope), lambda facts: len(facts) == 2)

    assert before == {fact["id"] for fact in facts_in(api, scope)}
    assert "nothing to do" == api.post(f"/v1/forget/{audit_id}/revert").json()["status"]
    assert 404 == api.post("/v1/forget/audit_none/revert").status_code


# ── events ───────────────────────────────────────────────────────────────────────────────────


def test_redacting_events(api, forget, told_of, scope, envelope):
    """The payload is gone and says so; id and offset stay; what rested on it is gone too."""
    ada = api.get(f"/v1/events/{told_of[0]}").json()
    answer = forget(
        scope, cascade="redact_events", selector={"memory_ids": [told_of[0]]}, reason="asked"
    ).json()

    assert {"events": 1, "facts": 1}.items() <= answer["deleted"].items()
    assert 410 == api.get(f"/v1/events/{told_of[0]}").status_code
    assert 1 == len(facts_in(api, scope))
    listed = api.get("/v1/events", params={"scope": scope}).json()["items"]
    assert [told_of[1]] == [event["id"] for event in listed]
    state = api.get(f"/v1/lifecycle/memory-event/{told_of[0]}").json()
    assert all(name.startswith("redacted:") for name in state["derives"])
    again = api.post(
        "/v1/experience", json=envelope("new") | {"idempotency_key": ada["idempotency_key"]}
    )
    assert 202 == again.status_code
    assert 409 == api.post(f"/v1/forget/{answer['audit_id']}/revert").status_code


def test_redacting_a_whole_scope(api, forget, told_of, scope):
    """`confirm_all` with `redact_events` leaves a scope of blank entries."""
    answer = forget(scope, cascade="redact_events", confirm_all=True).json()

    assert 2 == answer["deleted"]["events"]
    assert [] == facts_in(api, scope)
    assert [] == api.get("/v1/events", params={"scope": scope}).json()["items"]
    recalled = api.post("/v1/recall", json={"scope": scope, "query": "Paris"}).json()
    assert "Paris" not in recalled["context_block"]


# ── a poisoned source ────────────────────────────────────────────────────────────────────────


def test_a_rollback_takes_a_source_out_and_back_in(api, told_of, scope):
    """Dry first; then what its events derived is gone, they stay; and all of it comes back."""
    ask = {"scope": scope, "caller": "user:local", "audit_note": "incident 4"}
    dry = api.post("/v1/admin/rollback", json=ask).json()
    assert 2 == len(facts_in(api, scope))
    done = api.post("/v1/admin/rollback", json=ask | {"dry_run": False}).json()
    out = eventually(lambda: facts_in(api, scope), lambda facts: not facts)
    path = f"/v1/admin/rollback/{done['rollback_id']}"
    api.post(f"{path}/revert")
    eventually(lambda: facts_in(api, scope), lambda facts: len(facts) == 2)
    state = eventually(lambda: api.get(path).json(), lambda one: one["status"] != "rebuilding")

    assert (2, 2, None) == (dry["events"], dry["resting_on_them"]["facts"], dry["rollback_id"])
    assert (told_of[0], told_of[1]) == (done["first_event"], done["last_event"])
    assert [] == out
    assert 200 == api.get(f"/v1/events/{told_of[0]}").status_code
    assert 2 == len(facts_in(api, scope))
    assert ("reverted", 2) == (state["status"], state["events"])


def test_a_rollback_of_nobody_in_particular(api):
    """Everything is never meant by saying nothing."""
    assert 422 == api.post("/v1/admin/rollback", json={}).status_code
    assert 404 == api.get("/v1/admin/rollback/job_none").status_code


def test_a_rebuild_that_ignores_forgets(api, forget, told_of, scope):
    """The operator's other reading: what was forgotten is derived again."""
    audit_id = forget(scope, confirm_all=True).json()["audit_id"]
    answer = api.post("/v1/admin/rebuild", params={"ignore_forgets": True})
    eventually(lambda: facts_in(api, scope), lambda facts: len(facts) == 2)

    assert 202 == answer.status_code
    assert audit_id in answer.json()["unparked"]
    assert 2 == len(facts_in(api, scope))
