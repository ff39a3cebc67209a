"""Does the published client get its answers?  Its recorded requests, replayed (tests/golden)."""

import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[2] / "golden" / "sdk-cortexdbai.json"
CALLS = json.loads(RECORDED.read_text(encoding="utf-8"))["calls"]
NOW = "2026-05-13T15:42:00.123456Z"


def named(call):
    """The call as a test id."""
    return f"{call['client']}.{call['method']}-{call['variant']}"


def recorded(method, variant):
    """The request of one recorded call."""
    return next(c for c in CALLS if (c["method"], c["variant"]) == (method, variant))["requests"][0]


@pytest.fixture
def send(api, fresh_key):
    """Replay a recorded request; the client's placeholders are filled in as it would."""

    def filled(value):
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        return {"<now>": NOW, "<sdk-uuid>": f"sdk-{fresh_key()}", "blob_1": blob_id}.get(
            value, value
        )

    blob_id = api.post("/v1/blobs", content=b"what blob_1 stood for").json()["blob_id"]

    def play(request, **query):
        return api.request(
            request["method"],
            request["path"],
            params=request["query"] | query,
            headers=request["headers"],
            json=filled(request["body"]),
        )

    return play


@pytest.fixture
def state(send):
    """What the recording took for granted: an event, its key, and a listing with a next page."""
    written = send(recorded("experience", "full")).json()
    listing = recorded("events", "full")
    question = {**listing["query"], "limit": "1"}
    del question["cursor"]
    return {"event_id": written["event_id"], "question": question}


def stand_ins(call, api, state):
    """Real values for `evt_1` and `c1`, which the recording server never looked at."""
    query = call["requests"][0]["query"]
    if query.get("event_id") == "evt_1":
        return {"event_id": state["event_id"]}
    if query.get("cursor") == "c1":
        return {"cursor": page_cursor(api, state["question"])}
    return {}


def page_cursor(api, question):
    """A cursor of this listing: two events that it matches, read one at a time."""
    for number in (1, 2):
        body = recorded("experience", "full")["body"]
        context = body["context"] | {"labels": ["a", "b"]}
        body = body | {"idempotency_key": f"page-{number}", "context": context}
        api.post("/v1/experience", json=body)
    return api.get("/v1/events", params=question).json()["next_cursor"]


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_a_recorded_call_is_answered(api, send, state, call):
    """2xx to each, with the fields that the client reads."""
    answer = send(call["requests"][0], **stand_ins(call, api, state))
    body = answer.json()

    assert 200 <= answer.status_code < 300, answer.text
    assert [] == [path for path in call["response_fields_read"] if path.strip("/") not in body]


def test_the_recording_is_what_we_serve():
    """Every call of the client that this version has an endpoint for is replayed."""
    assert {
        "version",
        "experience",
        "experience_bulk",
        "experience_source_text",
        "events",
        "write_status",
        "recall",
        "answer",
    } == {call["method"] for call in CALLS}
