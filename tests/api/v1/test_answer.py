"""Answers over HTTP: the example of 001 §8.4, quotes and their citations, and what is not known."""

import json
import re
from pathlib import Path

import pytest

SEED = Path(__file__).parents[2] / "golden" / "seed"
FACTS = (
    "Acme upgraded to 200 seats on May 13.",
    "Dana from Acme prefers tea to coffee.",
    "The office printer is out of paper again.",
    "We painted the fence on Sunday.",
)


@pytest.fixture
def told(api, envelope):
    """Experiences written and findable."""

    def write(*texts, **changes):
        items = [envelope(text, **changes) for text in texts]
        bulk = api.post("/v1/experience/bulk?wait=indexed", json={"items": items})
        assert bulk.status_code in {200, 202}, bulk.text

    return write


@pytest.fixture
def answer(api, scope):
    """Ask in the test's scope."""

    def post(question, **fields):
        reply = api.post("/v1/answer", json={"scope": scope, "question": question, **fields})
        assert 200 == reply.status_code, reply.text
        return reply.json()

    return post


def test_section_8_4_example(api, told, scope):
    """The seed's own request, without its model, has an answer of the documented shape."""
    told(*FACTS)
    body = json.loads((SEED / "8.4-request.txt").read_text(encoding="utf-8"))
    named = api.post("/v1/answer", json=body | {"scope": scope})
    del body["answer_model"]
    said = api.post("/v1/answer", json=body | {"scope": scope})

    assert (503, "ANSWER_UNAVAILABLE") == (named.status_code, named.json()["error_code"])
    assert 200 == said.status_code, said.text
    assert {"recall_ms", "llm_ms", "total_ms", "pack_used"} <= set(said.json()["diagnostics"])
    assert "stable" == said.headers["x-cortex-stability"]


def test_an_answer_quotes_what_was_said(answer, told):
    """The best sentence, verbatim, with its marker, who said it and when."""
    told(*FACTS)
    said = answer("How many seats does Acme have?")

    assert said["known"]
    assert "extractive" == said["method"]
    assert "“Acme upgraded to 200 seats on May 13.”" in said["answer"]
    assert "2026-05-13" in said["answer"]


def test_citations_lead_into_the_pack(api, answer, told, scope):
    """Each marker of the answer is one of its citations, and that record says the quote."""
    told(*FACTS)
    said = answer("What does Dana prefer?")
    markers = re.findall(r"\[\d+\]", said["answer"])

    assert markers
    assert set(markers) == {citation["marker"] for citation in said["citations"]}
    for citation in said["citations"]:
        assert 0 < citation["support_strength"] <= 1
    events = [c["id"] for c in said["citations"] if c["layer"] == "event"]
    quoted = [api.get(f"/v1/events/{event}").json()["content"]["text"] for event in events]
    assert any(text in said["answer"] for text in quoted)


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "Who won the chess tournament in Reykjavik?",
        "Which database does the billing service use?",
    ],
)
def test_what_is_not_known_is_said(answer, told, question):
    """Weak evidence is no answer: nothing is quoted and nothing is cited."""
    told(*FACTS)
    said = answer(question)

    assert not said["known"]
    assert said["answer"].startswith("Not known")
    assert [] == said["citations"]


def test_an_answer_from_a_pack_of_before(api, answer, told, scope):
    """`use_pack_id` skips recall: what was written since plays no part."""
    told(*FACTS)
    body = {"scope": scope, "query": "How many seats does Acme have?"}
    pack = api.post("/v1/recall", json=body).json()
    told("Acme upgraded to 900 seats.")
    said = answer("How many seats does Acme have?", use_pack_id=pack["pack_id"])

    assert pack["pack_id"] == said["pack_id"]
    assert pack["provenance"] == said["provenance"]
    assert pack["as_of"] == said["as_of"]
    assert "900" not in said["answer"]


def test_an_unknown_pack_is_gone(api, scope):
    """A pack that expired, or never was, is a 410 with what to do."""
    body = {"scope": scope, "question": "what?", "use_pack_id": "pack_1"}
    gone = api.post("/v1/answer", json=body)

    assert (410, "PACK_EXPIRED") == (gone.status_code, gone.json()["error_code"])


def test_anothers_pack_is_not_found(api, told, scope):
    """A pack was put together for one caller's eyes."""
    told(*FACTS)
    pack = api.post("/v1/recall", json={"scope": scope, "query": "Acme"}).json()
    body = {"scope": scope, "question": "Acme?", "use_pack_id": pack["pack_id"]}
    other = api.post("/v1/answer", json=body, headers={"X-Cortex-Actor": "user:somebody_else"})

    assert 410 == other.status_code


@pytest.mark.parametrize(
    "fields, marker",
    [({}, True), ({"citation_mode": "none"}, False), ({"cite_sources": False}, False)],
)
def test_an_answer_cites_as_it_was_asked_to(answer, told, fields, marker):
    """Markers can be left out."""
    told(*FACTS)
    said = answer("How many seats does Acme have?", **fields)

    assert marker == bool(re.search(r"\[\d+\]", said["answer"]))
    assert marker == bool(said["citations"])


def test_section_10_2_stream(api, told, scope):
    """Word by word, then the pack, the citations, the provenance, diagnostics and the end."""
    told(*FACTS)
    body = {"scope": scope, "question": "How many seats does Acme have?"}
    plain = api.post("/v1/answer", json=body).json()
    with api.stream("POST", "/v1/answer", json=body | {"stream": True}) as response:
        assert "experimental" == response.headers["x-cortex-stability"]
        frames = frames_of(response)

    names = [name for name, _ in frames]
    assert "token" == names[0]
    assert ["pack_id", "citations", "provenance", "diagnostics", "done"] == names[-5:]
    assert plain["answer"] == "".join(data["text"] for name, data in frames if name == "token")
    assert plain["citations"] == dict(frames)["citations"]


def frames_of(response):
    """(event, data) of every frame."""
    found, name = [], ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
    return found
