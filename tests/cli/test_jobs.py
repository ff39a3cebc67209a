"""Do the commands about long work say what is there, and what is missing?"""

import json

import pytest

from api.cli.exits import ABSENT


@pytest.fixture
def job_id(client):
    """An import that failed: its bytes are not there."""
    asked = {"scope_template": "org:imported", "source": {"blob_id": "blob_none"}}
    begun = client.post("/v1/import/mem0", json=asked).json()["import_id"]
    while client.get(f"/v1/admin/jobs/{begun}").json()["status"] == "running":
        pass
    return begun


def test_jobs_are_listed(strata, job_id):
    """Newest first, chosen by status and kind; for people and for scripts."""
    told = strata("jobs", "list", "--status", "failed", "--kind", "import").output
    items = json.loads(strata("jobs", "list", "--json").output)["items"]
    none = json.loads(strata("jobs", "list", "--kind", "export", "--json").output)["items"]

    assert job_id in told
    assert job_id in [item["job_id"] for item in items]
    assert job_id not in [item["job_id"] for item in none]


def test_a_job_is_shown(strata, job_id):
    """Why it failed, too."""
    told = strata("jobs", "show", job_id).output

    assert "failed" in told
    assert "INVALID" in told


def test_a_failed_job_is_retried_and_an_ended_one_is_not_cancelled(strata, job_id, client):
    """A job that failed runs on, and fails again; to cancel what is over changes nothing."""
    again = json.loads(strata("jobs", "retry", job_id, "--json").output)
    while client.get(f"/v1/admin/jobs/{job_id}").json()["status"] == "running":
        pass
    left = json.loads(strata("jobs", "cancel", job_id, "--json").output)

    assert ("running", 1) == (again["status"], again["retries"])
    assert "failed" == left["status"]


@pytest.mark.parametrize("words", [("show",), ("retry",), ("cancel",)])
def test_a_job_that_is_not_there(strata, words):
    """Is said as such."""
    assert "There is no job" in strata("jobs", *words, "imp_none", code=ABSENT).output


def test_a_job_that_did_not_fail_is_not_retried(strata, client):
    """What came to its end stays so."""
    asked = {"scope_template": "org:imported", "source": {"inline": []}}
    done = client.post("/v1/import/mem0", json=asked).json()["import_id"]
    while client.get(f"/v1/admin/jobs/{done}").json()["status"] == "running":
        pass

    assert "has not failed" in strata("jobs", "retry", done, code=1).output


def test_a_worker_needs_a_server_a_redis_and_a_token(strata):
    """It says what is missing, and does not start."""
    assert "needs --server" in strata("worker", code=1).output


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"CORTEX_WORKER_TOKEN": "short"}, "at least 16 characters"),
        ({"CORTEX_SERVER_URL": "nowhere"}, "CORTEX_SERVER_URL"),
    ],
)
def test_a_worker_with_settings_that_cannot_be(strata, monkeypatch, settings, said):
    """They are named."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert said in strata("worker", code=1).output
