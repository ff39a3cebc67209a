"""Operating it: health, readiness, metrics, version, and the few commands there are (001 §8.15)."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.admin import package_version
from projectors import INLINE, STAGES

STAGED = [projector.name for stage in STAGES for projector in stage.projectors]
ALL = [*(projector.name for projector in INLINE), *STAGED]


# ── seeing ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    """A server of its own: rebuilds of a log that all tests write to would take long."""
    running = start_server(tmp_path_factory.mktemp("admin") / "data")
    yield running
    running.stop()


@pytest.fixture
def quiet(api, eventually):
    """Health when what other tests have begun is done: a rebuild, a backlog, a busy moment.

    A server that stays otherwise is given as it is: the test tells what is wrong with it.
    """

    def asked():
        answer = api.get("/v1/admin/health")
        assert 200 == answer.status_code
        return answer.json()

    return lambda: eventually(
        asked, lambda found: ("healthy", 0) == (found["status"], found["lag_entries"])
    )


def test_health_of_a_healthy_server(capture, quiet):
    """Live, ready, caught up; it says what is durable, who extracts, and how far each part is."""
    capture()
    health = quiet()
    told = {
        "status": "healthy",
        "live": True,
        "ready": True,
        "reasons": [],
        "version": package_version(),
        "preset": "dev_local",
        "durability": "fsync",
        "extractor": "rules",
        "embedder": health["index"]["embedder"],
        "lag_entries": 0,
        "queued_entries": 0,
    }

    assert told == {name: health[name] for name in told}
    assert health["embedder"].startswith("wordllama")
    assert health["index"]["watermark"] <= health["head_offset"]
    assert health["head_offset"] == health["durable_offset"]
    assert [(name, "running", 0, 0, []) for name in ALL] == [
        (p["name"], p["state"], p["lag_entries"], p["parked"], p["parked_events"])
        for p in health["projectors"]
    ]
    assert 16 * 1024 * 1024 == health["disk"]["low_water_bytes"]
    assert 1024 * 1024 == health["disk"]["ballast_bytes"]
    assert health["disk"]["free_bytes"] > health["disk"]["low_water_bytes"]


def test_health_counts_streams(api, scope, listen, eventually):
    """An open stream is counted while it is open."""

    def count():
        return api.get("/v1/admin/health").json()["subscribers"]

    before = eventually(count, lambda found: found == 0)
    with listen(api, scope=scope):
        during = count()
    after = eventually(count, lambda found: found == 0)

    assert (0, 1, 0) == (before, during, after)


def test_health_says_when_durability_is_buffered(run_server, envelope):
    """The mode for tests is no secret: health says it, and so does every answer."""
    with run_server(None, "--durability", "buffered").client() as client:
        health = client.get("/v1/admin/health").json()
        receipt = client.post("/v1/experience?wait=settled", json=envelope()).json()

    assert "buffered" == health["durability"] == receipt["durability"]


def test_ready(api):
    """Ready is a yes with the checks that said so."""
    answer = api.get("/v1/admin/ready")

    assert 200 == answer.status_code
    assert True is answer.json()["ready"]
    assert [] == answer.json()["reasons"]
    assert all(answer.json()["checks"].values())


def test_metrics_are_prometheus(api, capture, head):
    """The page parses, and its counters are those of the log and the requests."""
    capture()
    page = api.get("/v1/admin/metrics")
    families = {family.name: family for family in text_string_to_metric_families(page.text)}
    requests = families["strata_http_requests"].samples
    posted = [
        s for s in requests if (s.labels["path"], s.labels["method"]) == ("/v1/experience", "POST")
    ]

    assert 200 == page.status_code
    assert head() == families["strata_log_head_offset"].samples[0].value
    assert set(ALL) == {
        sample.labels["projector"] for sample in families["strata_projector_lag_entries"].samples
    }
    assert families["strata_index_documents"].samples[0].value > 0
    assert 1 <= families["strata_index_generation"].samples[0].value
    assert "200" in {sample.labels["status"] for sample in posted}
    assert all(family.documentation for family in families.values())


def test_metrics_count_paths_as_they_are_declared(api, capture):
    """Ids are not labels: a counter a path, not a counter an event."""
    event_id = capture()
    api.get(f"/v1/events/{event_id}")

    assert event_id not in api.get("/v1/admin/metrics").text


def test_version(api):
    """What runs, which contract it speaks, and how many endpoints of each tier."""
    version = api.get("/v1/admin/version").json()
    page = api.get("/v1/openapi.json").json()
    operations = [operation for path in page["paths"].values() for operation in path.values()]

    assert ("strata", package_version(), "v1") == tuple(
        version[name] for name in ("name", "version", "api_version")
    )
    assert len(operations) == sum(version["endpoints"].values())
    assert (
        sorted({o["x-capability"] for o in operations if "x-capability" in o})
        == version["capabilities"]
    )


# ── doing ────────────────────────────────────────────────────────────────────────────────────


def test_flush_views_waits_for_the_log(api, backlog, head, quiet):
    """When it answers, every view has what was written before it was asked."""
    quiet()  # the checkpoint of views that are built anew is theirs, and not that of those read
    event_id = backlog()
    written = head()
    receipt = api.post("/v1/admin/flush-views").json()
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()

    assert written == receipt["flushed_to"]
    assert dict.fromkeys(ALL, written) == receipt["checkpoints"]
    assert "_partial" not in receipt
    assert [] == state["stages_pending"]


def test_flush_views_past_its_deadline(api, backlog, eventually):
    """A flush that took too long says how far it came."""

    def flushed():
        backlog()
        return api.post("/v1/admin/flush-views?wait_ms=1").json()

    # Now and then all is done before anybody asks.
    receipt = eventually(flushed, lambda found: "_partial" in found)

    assert True is receipt["_partial"]
    assert "wait_deadline" == receipt["_partial_reason"]


def test_compact(api, capture, scope):
    """Rewrites every family, says what it gave back, and loses nothing."""
    event_id = capture()
    receipt = api.post("/v1/admin/compact").json()

    assert {"bytes_before", "bytes_after", "families", "elapsed_ms"} == set(receipt)
    assert receipt["families"]
    assert 200 == api.get(f"/v1/events/{event_id}").status_code


def test_compact_while_a_rebuild_ends(api, capture):
    """Families come and go under a rebuild; compacting takes those that are there."""
    capture()
    answers = []
    for name in (STAGED * 5)[:5]:
        api.post(f"/v1/admin/projectors/{name}/rebuild")
        answers.append(api.post("/v1/admin/compact"))
    capture()

    assert [200] * len(answers) == [answer.status_code for answer in answers]


def test_projectors_are_listed(api, capture, quiet):
    """The same rows as in health, but for what is on its way in between."""
    capture()
    told = quiet()["projectors"]
    listed = api.get("/v1/admin/projectors").json()["items"]

    assert ALL == [projector["name"] for projector in listed]
    assert told == listed


def test_rebuild_of_a_projector(api, capture, eventually):
    """202 at once; the views are built beside the old ones and swapped, and writes go on."""
    events = [capture()]
    answers = {name: api.post(f"/v1/admin/projectors/{name}/rebuild") for name in STAGED}

    def went_on():
        events.append(capture())
        return api.get("/v1/admin/health").json()

    health = eventually(went_on, lambda found: found["status"] == "healthy")
    states = [api.get(f"/v1/lifecycle/memory-event/{event}").json() for event in events]

    assert [202] * len(STAGED) == [answer.status_code for answer in answers.values()]
    assert [{"projector": name, "status": "rebuilding", "unparked": []} for name in answers] == [
        answer.json() for answer in answers.values()
    ]
    assert {"consolidated"} == {state["status"] for state in states}
    assert "healthy" == health["status"]


@pytest.mark.parametrize("name", STAGED)
def test_retry_with_nothing_parked(api, head, name):
    """Nothing to take back in: said so, and nothing is written."""
    before = head()
    answer = api.post(f"/v1/admin/projectors/{name}/retry")

    assert 202 == answer.status_code
    assert {"projector": name, "status": "nothing parked", "unparked": []} == answer.json()
    assert before == head()


@pytest.mark.parametrize("command", ["rebuild", "retry"])
@pytest.mark.parametrize("name", ["nobody", "control", "%00", "x" * 3000])
def test_a_projector_that_is_not_staged(api, command, name):
    """404 that says which there are."""
    answer = api.post(f"/v1/admin/projectors/{name}/{command}")

    assert 404 == answer.status_code
    assert "NOT_FOUND" == answer.json()["error_code"]
    assert all(staged in answer.json()["message"] for staged in STAGED)


# ── errors explained ─────────────────────────────────────────────────────────────────────────


def test_every_error_leads_to_its_explanation(api):
    """`documentation` of an error is a page of this very server."""
    problem = api.get("/v1/events/evt_1").json()
    page = api.get(problem["documentation"])

    assert 200 == page.status_code
    assert problem["error_code"] == page.json()["error_code"]
    assert page.json() in api.get("/v1/errors").json()["items"]
