"""Does an actor hear of its limit, and is it held to it?  (001 §6.5)"""

import pytest

NAMES = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
ALICE = {"X-Cortex-Actor": "user:alice"}


@pytest.fixture
def limited(run_server):
    """A client of a server whose tenant allows three writes and two reads an hour."""
    with run_server().client() as client:
        rates = {"rate_limits": {"write": "3/h", "read": "2/h"}}
        answer = client.put("/v1/policy/tenant/local", json=rates)
        assert 200 == answer.status_code, answer.text
        yield client


def test_without_a_limit_nothing_is_said(api):
    """No headers where no limit applies."""
    answer = api.get("/v1/scopes")

    assert [] == [name for name in NAMES if name in answer.headers]


def test_every_answer_says_what_is_left(limited, envelope):
    """Also one that went wrong; the reset is a moment that moves on with each call."""
    answers = [
        limited.post("/v1/experience", json=envelope()),
        limited.post("/v1/experience", json={}),
        limited.post("/v1/experience", json=envelope()),
    ]
    resets = [int(answer.headers["x-ratelimit-reset"]) for answer in answers]

    assert [202, 400, 202] == [answer.status_code for answer in answers]
    assert ["3"] * 3 == [answer.headers["x-ratelimit-limit"] for answer in answers]
    assert ["2", "1", "0"] == [answer.headers["x-ratelimit-remaining"] for answer in answers]
    assert sorted(resets) == resets


def test_an_empty_bucket(limited, envelope):
    """429 with a code, when to come back, and nothing written; a retry may help."""
    for _ in range(3):
        assert 202 == limited.post("/v1/experience", json=envelope()).status_code
    refused = limited.post("/v1/experience", json=envelope())
    problem = refused.json()

    assert 429 == refused.status_code
    assert ("RATE_LIMITED", True) == (problem["error_code"], problem["retriable"])
    assert 0 < int(refused.headers["retry-after"]) <= 1200
    assert int(refused.headers["retry-after"]) == problem["details"]["retry_after_s"]
    assert "0" == refused.headers["x-ratelimit-remaining"]


def test_reads_and_writes_have_a_bucket_each(limited, envelope):
    """Who has read enough may still write, and the other way round."""
    reads = [limited.get("/v1/scopes").status_code for _ in range(3)]
    writes = [limited.post("/v1/experience", json=envelope()).status_code for _ in range(4)]

    assert [200, 200, 429] == reads
    assert [202, 202, 202, 429] == writes


def test_another_actor_has_its_own(limited):
    """The limit is an actor's, not a tenant's."""
    mine = [limited.get("/v1/scopes").status_code for _ in range(3)]
    alices = limited.get("/v1/scopes", headers=ALICE)

    assert 429 == mine[-1]
    assert (200, "1") == (alices.status_code, alices.headers["x-ratelimit-remaining"])
