"""Does a server with a model read what is posted, and tell when the model does not answer?"""

import contextlib
import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest

from strata_client import Client
from strata_client.codes import AnswerUnavailable

WAIT_S = 120.0
FACT = {
    "subject": "Acme",
    "predicate": "has_seat_count",
    "object": 200,
    "confidence": 0.9,
    "polarity": "positive",
    "valid_from": None,
    "valid_to": None,
    "cardinality": "single",
}


@pytest.fixture(scope="module")
def llm():
    """What speaks like a language model's endpoint, loaded by its path."""
    name = "tests_llm"
    if name not in sys.modules:
        path = Path(__file__).parents[1] / "unit" / "engine" / "llm.py"
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def endpoint(llm):
    """An endpoint of the test's own."""
    with llm.running() as served:
        yield served


def until(condition):
    """Wait for something that no announcement tells of."""
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
    return found


def annotator(client):
    return client.get("/v1/admin/health").json()["annotator"]


def state(client, event_id):
    return client.get(f"/v1/lifecycle/memory-event/{event_id}").json()


def post(client, envelope, text):
    answer = client.post("/v1/experience?wait=settled", json=envelope(text))
    assert 200 == answer.status_code, answer.text
    return answer.json()["event_id"]


def test_an_event_is_read_by_the_model(run_server, endpoint, envelope, tmp_path):
    """Its facts are the event's; health says which model reads, and no page says its key."""
    endpoint.facts = [FACT]
    settings = {"CORTEX_LLM_URL": endpoint.url, "CORTEX_LLM_MODEL": "tiny"}
    server = run_server(tmp_path / "data", CORTEX_LLM_KEY="sk-swordfish", **settings)
    with server.client() as client:
        # Words that no rule makes anything of.
        event_id = post(client, envelope, "so it goes with them, 200 or not")
        until(lambda: not annotator(client)["waiting_entries"])
        client.post("/v1/admin/flush-views")
        read = state(client, event_id)
        health = client.get("/v1/admin/health").json()

    assert ("tiny", "tiny") == (health["extractor"], health["annotator"]["model"])
    assert "_partial" not in read
    assert {"ep", "fact"} <= {record_id.partition("_")[0] for record_id in read["derives"]}
    assert 1 == len(endpoint.asked)
    assert "Bearer sk-swordfish" == endpoint.headers[0]["authorization"]
    assert "swordfish" not in str(health)


def test_a_model_that_fails(run_server, endpoint, llm, envelope, tmp_path):
    """The event is captured and indexed; health and its state say what is missing, until it is."""
    endpoint.replies.extend([llm.status(503)] * 100)
    settings = {"CORTEX_LLM_URL": endpoint.url, "CORTEX_LLM_MODEL": "tiny"}
    server = run_server(tmp_path / "data", **settings)
    with server.client() as client:
        event_id = post(client, envelope, "Acme moved to 200 seats")
        until(lambda: annotator(client)["failed"])
        missing, health = state(client, event_id), client.get("/v1/admin/health")

        assert ("consolidated", True, "annotation_failed") == (
            missing["status"],
            missing["_partial"],
            missing["_partial_reason"],
        )
        assert "503" in missing["errors"][0]["error"]
        assert missing["errors"][0]["next_retry_at"] > "2"
        assert (200, "degraded") == (health.status_code, health.json()["status"])
        assert 1 == health.json()["annotator"]["failed"]

        endpoint.replies.clear()
        endpoint.facts = [FACT]
        again = client.post("/v1/admin/projectors/annotator/retry").json()
        until(lambda: "_partial" not in state(client, event_id))
        assert [event_id] == again["unparked"]
        until(lambda: "healthy" == client.get("/v1/admin/health").json()["status"])


def test_without_a_model_there_is_nothing_to_retry(client):
    """The annotator is no projector of a server that has no model."""
    answer = client.post("/v1/admin/projectors/annotator/retry")

    assert 404 == answer.status_code
    assert "annotator" not in client.get("/v1/admin/health").json()


# ── answers while the model speaks ───────────────────────────────────────────────────────────

SPOKEN = "org:tests/user:spoken"
QUESTION = {"scope": SPOKEN, "question": "How many seats does Acme have?", "stream": True}


@pytest.fixture(scope="module")
def told(llm, start_server, tmp_path_factory):
    """(a server that knows something, the endpoint of its model, which reads nothing more)."""
    with llm.running() as served:
        settings = {"CORTEX_LLM_URL": served.url, "CORTEX_LLM_MODEL": "tiny"}
        server = start_server(tmp_path_factory.mktemp("spoken") / "data", **settings)
        with Client(server.url, scope=SPOKEN) as memory, server.client() as client:
            memory.experience("Acme moved to 200 seats", wait="indexed")
            until(lambda: not annotator(client)["waiting_entries"])
        yield server, served
        server.stop()


@pytest.fixture
def speech(told, llm):
    """What the model says next, led by the test; it has begun."""
    _, endpoint = told
    endpoint.reset()
    begun = llm.Speech(llm.chunk('{"answer": "200'))
    endpoint.replies.append(begun)
    return begun


@contextlib.contextmanager
def answering(server, **fields):
    """(response, its events) of a streamed answer."""

    def events(response):
        name = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))

    with (
        server.client() as client,
        client.stream("POST", "/v1/answer", json=QUESTION | fields) as response,
    ):
        assert 200 == response.status_code, response.read()
        yield response, events(response)


def test_words_leave_the_server_while_the_model_speaks(told, speech, llm):
    """The model says the second word when the first was heard at the other end."""
    with answering(told[0]) as (_, events):
        first = next(events)
        speech.say(llm.chunk(" seats"))
        second = next(events)
        speech.say(llm.chunk(' [1] [77]", "known": true}'), llm.DONE).end()
        rest = list(events)

    assert [("token", {"text": "200"}), ("token", {"text": " seats"})] == [first, second]
    assert ["token", "pack_id", "citations", "provenance", "diagnostics", "done"] == [
        name for name, _ in rest
    ]
    assert {"text": " [1]"} == rest[0][1]
    assert ["[1]"] == [citation["marker"] for citation in dict(rest)["citations"]]


def test_an_answer_that_breaks_off_ends_with_an_error(told, speech):
    """The envelope of a refusal is its last event: nobody takes what was said for the whole."""
    with answering(told[0]) as (response, events):
        heard = [next(events)]
        speech.break_off()
        heard += events

    assert ["token", "error"] == [name for name, _ in heard]
    envelope = heard[-1][1]
    assert ("ANSWER_UNAVAILABLE", True) == (envelope["error_code"], envelope["retriable"])
    assert "broke off" in envelope["message"]
    assert response.headers["x-cortex-request-id"] == envelope["request_id"]


def test_a_named_model_that_does_not_answer(told, llm):
    """The stream has begun when that is known: it says so, and nothing else."""
    server, endpoint = told
    endpoint.reset()
    endpoint.replies.extend([llm.status(400)] * 9)
    with answering(server, answer_model="tiny") as (_, events):
        ((name, envelope),) = events

    assert ("error", "ANSWER_UNAVAILABLE") == (name, envelope["error_code"])
    assert "tiny" == envelope["details"]["answer_model"]


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_caller_who_hangs_up_hangs_up_the_model(told, speech, llm, is_silent):
    """The connection to the endpoint is closed, whether words wait to be sent or none come."""
    with answering(told[0]) as (_, events):
        assert ("token", {"text": "200"}) == next(events)
    if not is_silent:
        speech.say(*[llm.chunk(" seats")] * 100)

    assert speech.is_left.wait(WAIT_S)


def test_the_client_hears_an_answer_as_it_is_said(told, speech, llm):
    """Piece by piece, to the end."""
    with Client(told[0].url, scope=SPOKEN, allow_unstable=True) as memory:
        pieces = memory.answer_stream(QUESTION["question"])
        heard = [next(pieces)]
        speech.say(llm.chunk(' seats", "known": true}'), llm.DONE).end()
        heard += pieces

    assert "200 seats" == "".join(piece.text for piece in heard)
    assert "done" == heard[-1].event


def test_the_client_raises_what_broke_off(told, speech):
    """What was heard was heard, and a loop over it does not end as if it were all."""
    heard = []
    with (
        Client(told[0].url, scope=SPOKEN, allow_unstable=True) as memory,
        pytest.raises(AnswerUnavailable) as broken,
    ):
        for piece in memory.answer_stream(QUESTION["question"]):
            heard.append(piece.text)
            speech.break_off()

    assert ["200"] == heard
    assert broken.value.request_id
