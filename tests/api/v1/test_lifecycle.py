"""Watching experiences become memory: streams, resuming, pages, states, cancelling (001 §8.9)."""

import itertools
import threading

import pytest

from schemas.ids import format_id, uuid7

STAGES = ["captured", "extracted", "indexed", "consolidated"]
LONG_AGO = format_id("lce", uuid7(1_577_836_800_000_000, 7))


@pytest.fixture(scope="module")
def server(young_server):
    """Entries are counted here."""
    return young_server


def take(frames, count):
    """The next frames of a stream."""
    return list(itertools.islice(frames, count))


def rows(api, **parameters):
    """Every row of the paged form, by its cursors."""
    while True:
        page = api.get("/v1/lifecycle", params=parameters).json()
        yield from page["items"]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            return
        parameters = parameters | {"cursor": page["next_cursor"]}


# ── the stream ───────────────────────────────────────────────────────────────────────────────


def test_an_event_is_announced_stage_by_stage(api, envelope, scope, listen):
    """In order, numbered 1 to 4, each with the payload of 001 §13."""
    with listen(api, scope=scope) as frames:
        receipt = api.post("/v1/experience", json=envelope()).json()
        heard = take(frames, 4)
    said = [frame.data for frame in heard]

    assert STAGES == [frame.event for frame in heard] == [data["event"] for data in said]
    assert [1, 2, 3, 4] == [data["sequence"] for data in said]
    assert [receipt["event_id"]] * 4 == [data["event_id"] for data in said]
    assert [scope] * 4 == [data["scope"] for data in said]
    assert [frame.id for frame in heard] == [data["lifecycle_id"] for data in said]
    assert ("user:local", "conversation", receipt["wal_offset"]) == tuple(
        said[0][name] for name in ("actor", "modality", "wal_offset")
    )
    derived = said[1]["derived"]
    assert {"facts": 1, "beliefs": 0, "episodes": 1}.items() <= derived.items()
    assert derived["entities"] in (0, 1, 2), "those that another test has not named before"
    assert ["events", "episodes", "facts", "beliefs"] == said[2]["layers_indexed"]
    assert (1, 0, 0) == tuple(
        said[3][name] for name in ("beliefs_updated", "conflicts_resolved", "superseded_facts")
    )


def test_the_address_in_a_receipt_tells_from_the_beginning(api, envelope, listen):
    """Whoever follows it comes after the first announcements, and hears them all the same."""
    receipt = api.post("/v1/experience?wait=consolidated", json=envelope()).json()
    path, _, query = receipt["lifecycle_stream"].partition("?")
    with listen(api, **dict([query.split("=")])) as frames:
        heard = take(frames, 4)

    assert "/v1/lifecycle/stream" == path
    assert STAGES == [frame.event for frame in heard]


def test_a_stream_begins_with_the_place_it_begins_at(api, envelope, scope):
    """An id without an event: a client cut off before the first one has a place to resume from."""
    with api.stream("GET", "/v1/lifecycle/stream", params={"scope": scope}) as response:
        first = next(response.iter_bytes())
    api.post("/v1/experience?wait=consolidated", json=envelope())
    since = first.decode().strip().removeprefix("id: ")

    assert first.endswith(b"\n\n")
    assert STAGES == [row["stage"] for row in rows(api, scope=scope, since_lifecycle_id=since)]


def test_arrival_is_strictly_increasing(api, envelope, scope, listen):
    """Ids and times go up, over all events of a stream."""
    with listen(api, scope=scope) as frames:
        items = [envelope() for _ in range(50)]
        api.post("/v1/experience/bulk", json={"items": items})
        heard = take(frames, 200)

    assert sorted({frame.id for frame in heard}) == [frame.id for frame in heard]
    assert sorted(frame.data["timestamp"] for frame in heard) == [
        frame.data["timestamp"] for frame in heard
    ]


def test_the_advertised_stream_works(api, envelope, listen):
    """The receipt's `lifecycle_stream` leads to this event's stages, the later ones too."""
    receipt = api.post("/v1/experience", json=envelope()).json()
    first = next(rows(api, event_id=receipt["event_id"]))
    with listen(
        api, event_id=receipt["event_id"], since_lifecycle_id=first["lifecycle_id"]
    ) as frames:
        heard = take(frames, 3)

    assert f"/v1/lifecycle/stream?event_id={receipt['event_id']}" == receipt["lifecycle_stream"]
    assert STAGES[1:] == [frame.event for frame in heard]


def test_headers_of_a_stream(api):
    """A stream is text/event-stream, not cached, with the headers of every response."""
    with api.stream("GET", "/v1/lifecycle/stream") as response:
        headers = response.headers

    assert headers["content-type"].startswith("text/event-stream")
    assert "no-store" in headers["cache-control"]
    assert "stable" == headers["x-cortex-stability"]
    assert headers["x-cortex-policy"].endswith("capability=lifecycle.subscribe")


# ── filters ──────────────────────────────────────────────────────────────────────────────────


def test_filter_by_event(api, envelope, scope, capture):
    """`event_id` narrows to one event, in pages as in streams."""
    wanted, _ = capture(), capture()
    found = list(rows(api, scope=scope, event_id=wanted))

    assert [(wanted, stage) for stage in STAGES] == [(r["event_id"], r["stage"]) for r in found]


def test_filter_by_names(api, scope, capture, listen):
    """`events` is a comma-separated list of names."""
    with listen(api, scope=scope, events="captured,consolidated") as frames:
        capture()
        capture()
        heard = [frame.event for frame in take(frames, 4)]
    found = [row["stage"] for row in rows(api, scope=scope, events="captured,consolidated")]

    assert ["captured", "consolidated"] * 2 == heard == found


def test_filter_by_batch(api, envelope, scope, listen, capture):
    """`batch_id` narrows to one bulk call: the stream its receipt advertises."""
    with listen(api, scope=scope) as frames:
        capture()
        items = [envelope() for _ in range(3)]
        batch_id = api.post("/v1/experience/bulk", json={"items": items}).json()["batch_id"]
        everything = take(frames, 16)
    found = list(rows(api, batch_id=batch_id))

    assert [f.id for f in everything if f.data.get("batch_id") == batch_id] == [
        row["lifecycle_id"] for row in found
    ]
    assert 12 == len(found)


@pytest.mark.parametrize("view, expected", [("local", 4), ("descend", 8)])
def test_filter_by_scope(api, scope, capture, view, expected):
    """A scope is meant exactly, or with what lies below it; never a name that only begins alike."""
    capture()
    capture(scope=f"{scope}/project:p")
    capture(scope=f"{scope}0")
    found = list(rows(api, scope=scope, view=view))

    assert expected == len(found)


def test_filters_hold_together(api, scope, capture):
    """Every condition given must hold."""
    event_id = capture()

    assert [] == list(rows(api, scope=f"{scope}/project:p", event_id=event_id))
    assert [] == list(rows(api, scope=scope, import_id="imp_1"))


@pytest.mark.parametrize("path", ["/v1/lifecycle", "/v1/lifecycle/stream"])
@pytest.mark.parametrize(
    "parameters, field",
    [
        ({"events": "captured,cooked"}, "events"),
        ({"view": "holistic"}, "view"),
        ({"since": LONG_AGO}, "since"),
        ({"since_lifecycle_id": "evt_01890000-0000-7000-8000-000000000000"}, "since_lifecycle_id"),
        ({"since_lifecycle_id": "lce_1"}, "since_lifecycle_id"),
        ({"event_id": "lce_01890000-0000-7000-8000-000000000000"}, "event_id"),
        ({"batch_id": "evt_01890000-0000-7000-8000-000000000000"}, "batch_id"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(api, path, parameters, field):
    """An unknown name, or an id of another namespace (001 §3.6), is 422 with the field."""
    answer = api.get(path, params=parameters)

    assert 422 == answer.status_code
    assert "INVALID_PARAMETER" == answer.json()["error_code"]
    assert field == answer.json()["details"]["field"]


# ── resuming ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["Last-Event-ID", "since_lifecycle_id"])
def test_a_stream_resumes_after_the_last_id(api, envelope, scope, listen, how):
    """What was heard before and what is heard after make the whole, without gap or repeat."""
    with listen(api, scope=scope) as frames:
        for _ in range(3):
            api.post("/v1/experience", json=envelope())
        whole = take(frames, 12)
    for at in (0, 4, 10):
        where = {"last_event_id": whole[at].id} if how == "Last-Event-ID" else {how: whole[at].id}
        with listen(api, scope=scope, **where) as frames:
            rest = take(frames, 11 - at)

        assert whole[at + 1 :] == rest


def test_last_event_id_wins_over_the_address(api, scope, capture, listen):
    """A browser reconnects to the same address with a later id in the header: it goes on there."""
    capture()
    ids = [row["lifecycle_id"] for row in rows(api, scope=scope)]
    with listen(api, ids[2], scope=scope, since_lifecycle_id=ids[0]) as frames:
        heard = next(frames)

    assert ids[3] == heard.id


def test_resuming_while_others_write(api, server, envelope, scope, listen):
    """A client that comes and goes while events pour in hears each announcement exactly once."""
    bodies = [envelope() for _ in range(150)]

    def write():
        with server.client() as client:
            for body in bodies:
                client.post("/v1/experience", json=body)

    heard = []
    with listen(api, scope=scope) as frames:
        writer = threading.Thread(target=write)
        writer.start()
        heard += take(frames, 3)
    while len(heard) < 600:
        with listen(api, heard[-1].id, scope=scope) as frames:
            heard += take(frames, min(4, 600 - len(heard)))
    writer.join()
    order = {}
    for frame in heard:
        order.setdefault(frame.data["event_id"], []).append(frame.event)

    assert [row["lifecycle_id"] for row in rows(api, scope=scope, limit=1000)] == [
        frame.id for frame in heard
    ]
    assert 150 == len(order)
    assert all(stages == STAGES for stages in order.values())


def test_resuming_after_a_restart(run_server, envelope, listen):
    """The buffer is on disk: a stream goes on where it was, with the ids it had."""
    first = run_server()
    with first.client() as client, listen(client) as frames:
        client.post("/v1/experience?wait=settled", json=envelope())
        whole = take(frames, 4)
    first.stop()
    with run_server(first.data).client() as client, listen(client, whole[0].id) as frames:
        rest = take(frames, 3)

    assert whole[1:] == rest


@pytest.mark.parametrize("path", ["/v1/lifecycle", "/v1/lifecycle/stream"])
def test_an_id_older_than_the_buffer(api, path):
    """410 with a way out, never a silent gap (001 §18.2.10)."""
    answer = api.get(path, params={"since_lifecycle_id": LONG_AGO})

    assert 410 == answer.status_code
    assert "LIFECYCLE_EXPIRED" == answer.json()["error_code"]
    assert 3600 == answer.json()["details"]["buffer_s"]


# ── pages and rows ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 3, 8, 100])
def test_pages_cover_everything_exactly_once(api, scope, capture, limit):
    """In order of arrival, without a repeat, whatever the size of the page."""
    events = [capture(), capture()]
    found = list(rows(api, scope=scope, limit=limit))

    assert [(event, stage) for event in events for stage in STAGES] == [
        (row["event_id"], row["stage"]) for row in found
    ]


def test_pages_after_an_id(api, scope, capture):
    """`since_lifecycle_id` begins after that row."""
    capture()
    found = list(rows(api, scope=scope))

    assert found[2:] == list(rows(api, scope=scope, since_lifecycle_id=found[1]["lifecycle_id"]))


def test_a_cursor_belongs_to_its_question(api, scope, capture):
    """A cursor of another listing is refused."""
    capture()
    cursor = api.get("/v1/lifecycle", params={"scope": scope, "limit": 1}).json()["next_cursor"]
    answer = api.get("/v1/lifecycle", params={"limit": 1, "cursor": cursor})

    assert 422 == answer.status_code
    assert "INVALID_CURSOR" == answer.json()["error_code"]


def test_one_row_by_its_id(api, scope, capture):
    """The row of 001 §8.9.2 is the same one by one as in a page."""
    capture()
    found = list(rows(api, scope=scope))
    alone = [api.get(f"/v1/lifecycle/event/{row['lifecycle_id']}").json() for row in found]

    assert found == alone


@pytest.mark.parametrize(
    "lifecycle_id, status",
    [
        ("lce_1", 404),
        ("evt_01890000-0000-7000-8000-000000000000", 404),
        (format_id("lce", uuid7(4_102_444_800_000_000, 1)), 404),
        (LONG_AGO, 410),
    ],
)
def test_a_row_that_is_not_there(api, lifecycle_id, status):
    """404 for what never was, 410 for what the buffer has let go."""
    assert status == api.get(f"/v1/lifecycle/event/{lifecycle_id}").status_code


def test_the_state_of_a_memory_event(api, scope, capture):
    """All stages done, none pending, with the ids of the announcements (001 §8.9.3)."""
    event_id = capture()
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()

    assert {
        "event_id": event_id,
        "status": "consolidated",
        "stages_completed": STAGES,
        "stages_pending": [],
        "stages_cancelled": [],
        "lifecycle_event_ids": [row["lifecycle_id"] for row in rows(api, scope=scope)],
        "derives": api.get(f"/v1/events/{event_id}").json()["derives"],
        "excluded_from_recall": False,
        "errors": [],
    } == state


def test_every_id_of_a_state_can_be_read(api, backlog):
    """A stage counts as done when its announcement is there to be read, not before."""
    state = api.get(f"/v1/lifecycle/memory-event/{backlog()}").json()
    found = [
        api.get(f"/v1/lifecycle/event/{lifecycle_id}").json()
        for lifecycle_id in state["lifecycle_event_ids"]
    ]

    assert state["stages_completed"] == [row["stage"] for row in found]


@pytest.mark.parametrize("event_id", ["evt_1", "lce_1", LONG_AGO])
def test_the_state_of_nothing(api, event_id):
    """An id that names no event is 404."""
    assert 404 == api.get(f"/v1/lifecycle/memory-event/{event_id}").status_code
    assert 404 == api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel").status_code


# ── cancelling ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cancelled_in_time(api, backlog, envelope):
    """Write an event at the end of a backlog and cancel it before its stages run.

    Who loses the race tries again. Gives what was posted, and the answer to the cancellation.
    """

    def race(path="/v1/experience"):
        for _ in range(10):
            backlog()
            item = envelope()
            body = {"items": [item]} if path.endswith("bulk") else item
            api.post(path, json=body)
            key = item["idempotency_key"]
            written = api.get(f"/v1/experience/by-idempotency-key/{key}").json()
            event_id = written["event_id"]
            receipt = api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel").json()
            if receipt["stages_cancelled"]:
                return body, receipt
        return pytest.fail("the projectors were faster ten times")

    return race


def test_cancel_before_the_stages_run(api, cancelled_in_time):
    """What had not run never will; the capture stays (001 §8.9.5)."""
    _, receipt = cancelled_in_time()
    event_id = receipt["event_id"]
    api.post("/v1/admin/flush-views")
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()
    names = [row["stage"] for row in rows(api, event_id=event_id)]

    assert {
        "event_id": event_id,
        "stages_cancelled": STAGES[1:],
        "stages_already_completed": ["captured"],
        "excluded_from_recall": True,
        "audit_id": receipt["audit_id"],
    } == receipt
    assert receipt["audit_id"].startswith("audit_")
    assert ["captured", "cancelled"] == names
    assert (["captured"], [], STAGES[1:]) == tuple(
        state[name] for name in ("stages_completed", "stages_pending", "stages_cancelled")
    )
    assert True is state["excluded_from_recall"]


@pytest.mark.parametrize("path", ["/v1/experience", "/v1/experience/bulk"])
def test_waiting_for_a_cancelled_event(api, cancelled_in_time, path):
    """A stage that will never come is said to be cancelled: neither waited for nor claimed."""
    body, _ = cancelled_in_time(path)
    answer = api.post(f"{path}?wait=settled", json=body)

    assert 202 == answer.status_code
    assert "true" == answer.headers["X-Cortex-Replay"]
    assert ("captured", True, "cancelled") == tuple(
        answer.json()[name] for name in ("status", "_partial", "_partial_reason")
    )


def test_cancel_after_the_stages_ran(api, capture):
    """It comes too late to stop anything; the event is left out of recall all the same."""
    event_id = capture()
    receipt = api.post(
        f"/v1/lifecycle/memory-event/{event_id}/cancel", json={"audit_note": "by accident"}
    ).json()
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()

    assert ([], STAGES, True) == tuple(
        receipt[name]
        for name in ("stages_cancelled", "stages_already_completed", "excluded_from_recall")
    )
    assert (STAGES, [], True) == tuple(
        state[name] for name in ("stages_completed", "stages_cancelled", "excluded_from_recall")
    )


def test_cancel_is_announced(api, scope, capture, listen):
    """Who watches the event hears of its end."""
    event_id = capture()
    with listen(api, event_id=event_id) as frames:
        api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel")
        heard = next(frame for frame in frames if frame.event == "cancelled")

    assert (event_id, scope, []) == tuple(
        heard.data[name] for name in ("event_id", "scope", "stages_cancelled")
    )


def test_cancel_twice(api, capture, head):
    """A repeat answers as the first did and writes no entry; both calls are in the audit."""
    path = f"/v1/lifecycle/memory-event/{capture()}/cancel"
    first = api.post(path).json()
    before = head()
    again = api.post(path).json()

    assert first | {"audit_id": again["audit_id"]} == again
    assert first["audit_id"] != again["audit_id"]
    assert before == head()


def test_cancel_by_another_actor(api, capture):
    """Who did not write it needs `scope.administer`, which dev_local gives to everyone."""
    answer = api.post(
        f"/v1/lifecycle/memory-event/{capture()}/cancel", headers={"X-Cortex-Actor": "user:other"}
    )

    assert 200 == answer.status_code


def test_a_cancelled_write_says_so_when_asked(api, envelope):
    """The status of a write and a replay of it carry the cancellation."""
    body = envelope()
    event_id = api.post("/v1/experience?wait=settled", json=body).json()["event_id"]
    api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel")
    status = api.get("/v1/experience/status", params={"event_id": event_id}).json()

    assert True is status["excluded_from_recall"]


def test_a_cancellation_survives_a_restart(run_server, envelope):
    """It is an entry of the log like any other."""
    first = run_server()
    with first.client() as client:
        body = envelope()
        event_id = client.post("/v1/experience?wait=settled", json=body).json()["event_id"]
        client.post(f"/v1/lifecycle/memory-event/{event_id}/cancel")
    first.kill()
    with run_server(first.data).client() as client:
        event = client.get(f"/v1/events/{event_id}").json()
        listed = client.get("/v1/events", params={"scope": body["scope"]}).json()

    assert True is event["excluded_from_recall"]
    assert [] == listed["items"]


@pytest.mark.parametrize(
    "body, field", [({"note": "x"}, "note"), ({"audit_note": "x" * 2001}, "audit_note")]
)
def test_a_cancel_body_that_means_nothing(api, capture, head, body, field):
    """Unknown fields and notes of a novel's length are refused; nothing is cancelled."""
    event_id = capture()
    before = head()
    answer = api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel", json=body)

    assert 400 == answer.status_code
    assert "INVALID_BODY" == answer.json()["error_code"]
    assert field == answer.json()["details"]["field"]
    assert before == head()
