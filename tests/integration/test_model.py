"""Does a server with a model read what is posted, and tell when the model does not answer?"""

import importlib.util
import sys
import time
from pathlib import Path

import pytest

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
