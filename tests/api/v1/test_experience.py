"""Writing one experience, replaying it, and asking what became of it (001 §8.1, §6.3, §18.2.9)."""

from urllib.parse import quote

import pytest

STAGES = ["captured", "extracted", "indexed", "consolidated"]


@pytest.fixture(scope="module")
def server(young_server):
    """Entries are counted here."""
    return young_server


# ── the answer ───────────────────────────────────────────────────────────────────────────────


def test_a_post_is_captured(api, envelope, scope):
    """Without `wait` the answer is 202 with the event id, its offset and where to watch it."""
    answer = api.post("/v1/experience", json=envelope())
    receipt = answer.json()

    assert 202 == answer.status_code
    assert receipt["event_id"].startswith("evt_")
    assert {
        "event_id": receipt["event_id"],
        "status": "captured",
        "wal_offset": receipt["wal_offset"],
        "scope": scope,
        "durability": "fsync",
        "lifecycle_stream": f"/v1/lifecycle/stream?event_id={receipt['event_id']}",
    } == receipt


def test_offsets_are_dense(api, envelope, head):
    """One event takes one offset, the next after the last."""
    before = head()
    offsets = [api.post("/v1/experience", json=envelope()).json()["wal_offset"] for _ in range(3)]

    assert [before + 1, before + 2, before + 3] == offsets


@pytest.mark.parametrize(
    "wait, status, done",
    [
        ("captured", "captured", 1),
        ("indexed", "indexed", 3),
        ("consolidated", "consolidated", 4),
        ("settled", "consolidated", 4),
    ],
)
def test_wait_answers_when_the_stage_has_run(api, envelope, wait, status, done):
    """With `wait` the answer is 200 once the stage has run, with the stages and their times."""
    answer = api.post(f"/v1/experience?wait={wait}", json=envelope())
    receipt = answer.json()

    assert 200 == answer.status_code
    assert STAGES[:done] == receipt["stages_completed"][:done]
    assert receipt["stages_completed"][-1] == receipt["status"]
    assert STAGES.index(status) <= STAGES.index(receipt["status"])
    assert done == 1 or any(ref.startswith("ep_") for ref in receipt["derives"])
    assert {"capture"} <= set(receipt["elapsed_ms"])
    assert "_partial" not in receipt


def test_wait_past_its_deadline_is_an_honest_partial(api, envelope, backlog, eventually):
    """When the time is up the answer is 202 with the stages done so far, and says so."""

    def posted():
        backlog()
        return api.post("/v1/experience?wait=settled&wait_ms=1", json=envelope())

    # Now and then all is done before anybody asks.
    answer = eventually(posted, lambda found: found.status_code == 202)
    receipt = answer.json()

    assert 202 == answer.status_code
    assert True is receipt["_partial"]
    assert "wait_deadline" == receipt["_partial_reason"]
    assert "consolidated" not in receipt["stages_completed"]
    assert receipt["stages_completed"][-1] == receipt["status"]


@pytest.mark.parametrize("query, field", [("wait=never", "wait"), ("wait_ms=0", "wait_ms")])
def test_wait_takes_the_known_values(api, envelope, head, query, field):
    """A `wait` nobody knows is refused before anything is stored."""
    before = head()
    answer = api.post(f"/v1/experience?{query}", json=envelope())

    assert 422 == answer.status_code
    assert field == answer.json()["details"]["field"]
    assert before == head()


def test_every_content_kind_is_kept_as_it_came(api, envelope):
    """The five kinds of content are stored and read back exactly as submitted (001 §7.1)."""
    blob_id = api.post("/v1/blobs", content=b"a page").json()["blob_id"]
    media = [{"blob_id": blob_id, "content_type": "image/png", "hints": {"page": 1}}]
    kinds = [
        {"kind": "message", "role": "tool", "text": "ça va 🙂", "media": media},
        {"kind": "text", "text": "prose\nwith\u0000a NUL"},
        {"kind": "json", "data": {"a": [1, 2.5, None, True, {"deep": "er"}]}},
        {"kind": "blob_ref", "blob_id": blob_id, "transcript": "words"},
        {
            "kind": "triple",
            "triple": {
                "subject": {"type": "entity", "id": "ent_acme"},
                "predicate": "seats",
                "object": {"datatype": "int", "value": 200},
            },
        },
    ]
    ids = [
        api.post("/v1/experience", json=envelope(content=content)).json()["event_id"]
        for content in kinds
    ]
    read = [api.get(f"/v1/events/{event_id}").json()["content"] for event_id in ids]

    assert kinds == read


def test_an_unknown_modality_is_stored_verbatim(api, envelope):
    """Modalities are an open set (001 §3.5.3)."""
    written = api.post("/v1/experience", json=envelope(modality="smell"))
    read = api.get(f"/v1/events/{written.json()['event_id']}").json()

    assert 202 == written.status_code
    assert "smell" == read["modality"]


def test_identities_default_to_the_caller(api, envelope, capture):
    """Observed actor defaults to the caller, subject to the observed actor (001 §3.5.1)."""
    headers = {"X-Cortex-Actor": "agent:planner"}
    written = api.post("/v1/experience", json=envelope(), headers=headers).json()
    event = api.get(f"/v1/events/{written['event_id']}").json()

    assert "agent:planner" == event["caller"]
    assert {"id": "agent:planner", "type": "agent"} == event["observed_actor"]
    assert {"id": "agent:planner", "type": "agent"} == event["subject"]


def test_the_three_identities_are_kept_apart(api, envelope):
    """Caller, observed actor and subject may all differ."""
    body = envelope(
        observed_actor={"id": "user:alice", "session": "run_1"}, subject={"id": "customer:c7"}
    )
    headers = {"X-Cortex-Actor": "service:importer"}
    written = api.post("/v1/experience", json=body, headers=headers).json()
    event = api.get(f"/v1/events/{written['event_id']}").json()

    assert "service:importer" == event["caller"]
    assert "user:alice" == event["actor"]
    assert {"id": "user:alice", "session": "run_1"} == event["observed_actor"]
    assert {"id": "customer:c7"} == event["subject"]


# ── idempotency ──────────────────────────────────────────────────────────────────────────────


def test_the_same_post_again_is_a_replay(api, envelope, head):
    """Same key, same body: the same event and offset, marked, and nothing stored."""
    body = envelope()
    first = api.post("/v1/experience", json=body)
    before = head()
    again = api.post("/v1/experience", json=body)

    assert "X-Cortex-Replay" not in first.headers
    assert "true" == again.headers["X-Cortex-Replay"]
    assert first.json() | {"replayed_from_idempotency": True} == again.json()
    assert before == head()


def test_a_replay_may_wait(api, envelope):
    """A replay with `wait` answers how far the first write has come."""
    body = envelope()
    first = api.post("/v1/experience", json=body).json()
    again = api.post("/v1/experience?wait=settled", json=body)

    assert 200 == again.status_code
    assert "true" == again.headers["X-Cortex-Replay"]
    assert first["event_id"] == again.json()["event_id"]
    assert STAGES == again.json()["stages_completed"]


def test_observed_at_is_no_part_of_the_identity(api, envelope):
    """A client that retries may stamp the retry anew: it is the same write."""
    body = envelope()
    first = api.post("/v1/experience", json=body).json()
    later = body | {"context": {"observed_at": "2026-05-13T15:43:00+02:00"}}
    again = api.post("/v1/experience", json=later)

    assert "true" == again.headers["X-Cortex-Replay"]
    assert first["event_id"] == again.json()["event_id"]


@pytest.mark.parametrize(
    "change",
    [
        {"content": {"kind": "message", "role": "user", "text": "something else"}},
        {"modality": "observation"},
        {"scope": "org:elsewhere"},
        {"subject": {"id": "user:someone"}},
        {"context": {"observed_at": "2026-05-13T15:42:00Z", "labels": ["new"]}},
        {"directives": {"confidence_floor": 0.5}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_same_key_with_another_body_is_a_conflict(api, envelope, head, change):
    """409 names the event that holds the key; nothing is stored."""
    body = envelope()
    first = api.post("/v1/experience", json=body).json()
    before = head()
    answer = api.post("/v1/experience", json=body | change)
    problem = answer.json()

    assert 409 == answer.status_code
    assert "IDEMPOTENCY_CONFLICT" == problem["error_code"]
    assert False is problem["retriable"]
    assert "idempotency_key" == problem["details"]["field"]
    assert first["event_id"] == problem["details"]["event_id"]
    assert before == head()


def test_a_key_belongs_to_its_caller(api, envelope):
    """Two callers may use the same key for different things."""
    body = envelope()
    ours = api.post("/v1/experience", json=body)
    other = body | {"modality": "observation"}
    theirs = api.post("/v1/experience", json=other, headers={"X-Cortex-Actor": "user:other"})

    assert 202 == theirs.status_code
    assert ours.json()["event_id"] != theirs.json()["event_id"]


def test_a_key_belongs_to_its_endpoint_family(api, envelope, head):
    """/v1/experience and /v1/experience/bulk are separate families (001 §18.2.9)."""
    body = envelope()
    single = api.post("/v1/experience", json=body).json()
    bulk = api.post("/v1/experience/bulk", json={"items": [body | {"modality": "observation"}]})

    assert 202 == bulk.status_code
    assert "X-Cortex-Replay" not in bulk.headers
    assert single["wal_offset"] + 1 == head()


def test_a_key_survives_a_restart(run_server, envelope):
    """Idempotency has no time window and no memory of its own to lose."""
    body = envelope()
    first = run_server()
    with first.client() as client:
        written = client.post("/v1/experience", json=body).json()
    first.stop()
    with run_server(first.data).client() as client:
        again = client.post("/v1/experience", json=body)
        conflict = client.post("/v1/experience", json=body | {"modality": "observation"})

    assert written | {"replayed_from_idempotency": True} == again.json()
    assert 409 == conflict.status_code


# ── what became of it ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "key",
    [
        "plain",
        "a/b",
        "/a//b/",
        "100%",
        "%2F",
        "a b+c&d=e?f#g",
        "ключ-🔑",
        "..",
        "a\\b",
        "'\"<>",
        "é",
    ],
)
def test_a_write_is_found_by_its_key(api, envelope, scope, key):
    """Any key that was accepted can be asked for, in the path and in the query."""
    actor = {"X-Cortex-Actor": f"user:{scope.rpartition(':')[2]}"}
    written = api.post("/v1/experience", json=envelope(idempotency_key=key), headers=actor).json()
    encoded = quote(key, safe="").replace(".", "%2E")
    by_path = api.get(f"/v1/experience/by-idempotency-key/{encoded}", headers=actor)
    by_query = api.get("/v1/experience/status", params={"idempotency_key": key}, headers=actor)

    assert [200, 200] == [by_path.status_code, by_query.status_code]
    assert written["event_id"] == by_path.json()["event_id"] == by_query.json()["event_id"]
    assert key == by_path.json()["idempotency_key"] == by_query.json()["idempotency_key"]


def test_a_write_is_found_by_its_id(api, envelope, scope):
    """The status of a write carries where it is, how far it came and what is still to come."""
    body = envelope()
    written = api.post("/v1/experience?wait=settled", json=body).json()
    status = api.get("/v1/experience/status", params={"event_id": written["event_id"]}).json()

    assert {
        "event_id": written["event_id"],
        "status": "consolidated",
        "wal_offset": written["wal_offset"],
        "scope": scope,
        "stages_completed": STAGES,
        "stages_pending": [],
        "lifecycle_stream": f"/v1/lifecycle/stream?event_id={written['event_id']}",
        "idempotency_key": body["idempotency_key"],
    } == status


def test_the_status_advances(api, envelope, listen):
    """The status follows the stages to the end: it is a readiness signal a writer can trust."""
    written = api.post("/v1/experience", json=envelope()).json()
    event_id = written["event_id"]
    api.post("/v1/admin/flush-views")
    status = api.get("/v1/experience/status", params={"event_id": event_id}).json()

    assert "consolidated" == status["status"]
    assert STAGES == status["stages_completed"]


def test_completed_and_pending_stages_are_all_of_them(api, backlog):
    """While an event is on its way, what is done and what is pending add up."""
    status = api.get("/v1/experience/status", params={"event_id": backlog()}).json()

    assert STAGES == status["stages_completed"] + status["stages_pending"]
    assert status["stages_completed"][-1] == status["status"]


@pytest.mark.parametrize(
    "parameters, code, status",
    [
        ({}, "INVALID_PARAMETER", 422),
        ({"idempotency_key": "a", "event_id": "evt_1"}, "INVALID_PARAMETER", 422),
        ({"idempotency_key": "never-used"}, "NOT_FOUND", 404),
        ({"idempotency_key": ""}, "NOT_FOUND", 404),
        ({"event_id": "evt_1"}, "NOT_FOUND", 404),
        ({"event_id": "evt_01890000-0000-7000-8000-000000000000"}, "NOT_FOUND", 404),
    ],
)
def test_status_of_nothing(api, parameters, code, status):
    """Neither, both, or something that was never written: said so, with the code of 001 §16."""
    answer = api.get("/v1/experience/status", params=parameters)

    assert status == answer.status_code
    assert code == answer.json()["error_code"]


def test_a_key_of_another_caller_is_not_found(api, envelope):
    """Keys are looked up as they are kept: by caller."""
    body = envelope()
    api.post("/v1/experience", json=body)
    answer = api.get(
        f"/v1/experience/by-idempotency-key/{body['idempotency_key']}",
        headers={"X-Cortex-Actor": "user:stranger"},
    )

    assert 404 == answer.status_code
