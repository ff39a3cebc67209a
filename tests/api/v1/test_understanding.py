"""Understanding over HTTP: concepts, relations, coverage and synthesis (001 §7.5, §8.7.7)."""

import pytest

ACME, ZETA, OMEGA = ({"type": "entity", "name": name} for name in ("Acme", "Zeta Corp", "Omega"))


@pytest.fixture
def known(stated, everything, scope):
    """Enough about three things for a concept each; the concepts by name."""
    days = iter(f"2026-04-{day:02d}T10:00:00Z" for day in range(1, 28))
    stated(
        *((next(days), ACME, f"uses_{n}", ZETA) for n in range(4)),
        *((next(days), ZETA, f"buys_{n}", OMEGA) for n in range(4)),
        *((next(days), OMEGA, f"size_{n}", n) for n in range(4)),
    )
    return {concept["name"]: concept for concept in everything("/v1/understanding", scope=scope)}


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


def test_a_concept_has_its_trail(api, known):
    """Facts, and through them events; as listed, so by its id."""
    acme = known["Acme"]

    assert {"Acme", "Zeta Corp", "Omega"} <= set(known)
    assert acme["supported_by"]["facts"]
    assert acme["supports"]
    assert "Zeta Corp" in acme["summary"]
    assert acme == api.get(f"/v1/understanding/{acme['id']}").json()


def test_by_topic(everything, scope, known):
    """Words of a concept's names and topics, in any case; a depth adds what is related."""

    def found(**parameters):
        listed = everything("/v1/understanding", scope=scope, **parameters)
        return {concept["name"] for concept in listed} & set(known)

    assert {"Zeta Corp"} == found(topic="zeta corp")
    assert {"Zeta Corp"} < found(topic="zeta corp", depth=1)
    assert set() == found(topic="astronomy")
    assert set() == found(topic="astronomy", depth=2)


def test_versions_stay(api, known):
    """001 §7.5.1: a version is immutable, and every earlier one can be read."""
    acme = known["Acme"]
    first = api.get(f"/v1/understanding/{acme['id']}", params={"version": 1}).json()
    as_of = api.get(
        f"/v1/understanding/{acme['id']}", params={"as_of": first["recorded_from"]}
    ).json()
    none = api.get(f"/v1/understanding/{acme['id']}", params={"version": 99})

    assert acme["version"] > 1
    assert (1, None) == (first["version"], first["previous_version"])
    assert 1 == as_of["version"]
    assert 404 == none.status_code


def test_an_alias_leads_to_what_it_is(api, everything, scope, known, stated):
    """001 §7.5.1: the older id is canonical, the newer an alias that lists leave out."""
    stated(("2026-05-01T10:00:00Z", OMEGA, "same_as", ACME))
    acme, omega = known["Acme"]["id"], known["Omega"]["id"]
    shown = {concept["id"] for concept in everything("/v1/understanding", scope=scope)}
    kept = everything("/v1/understanding", scope=scope, include_deprecated=True)
    alias = next(concept for concept in kept if concept["id"] == omega)

    assert acme == api.get(f"/v1/understanding/{omega}").json()["id"]
    assert (acme, "deprecated") == (alias["canonical_id"], alias["stance"])
    assert acme in shown
    assert omega not in shown


def test_related(api, known):
    """By relation and depth, nearest first, each once, in pages."""
    path = f"/v1/understanding/{known['Acme']['id']}/related"
    near = api.get(path).json()
    far = api.get(path, params={"depth": 2}).json()
    names = [item["concept"]["name"] for item in far["items"]]
    page = api.get(path, params={"depth": 2, "limit": 1}).json()
    rest = api.get(path, params={"depth": 2, "limit": 1, "cursor": page["next_cursor"]}).json()

    assert {1} == {item["distance"] for item in near["items"]}
    assert "Zeta Corp" in {item["concept"]["name"] for item in near["items"]}
    assert sorted(set(names)) == sorted(names)
    assert [item["distance"] for item in far["items"]] == sorted(
        item["distance"] for item in far["items"]
    )
    assert page["items"][0]["concept"]["id"] != rest["items"][0]["concept"]["id"]
    assert [] == api.get(path, params={"relation": "causes"}).json()["items"]


def test_section_8_7_10(api, scope, known):
    """Coverage: how many, about what."""
    coverage = api.get("/v1/understanding/coverage", params={"scope": scope}).json()

    assert len(known) == coverage["concept_count"]
    assert 0 < coverage["coverage_score"] <= 1
    assert all(topic["concepts"] for topic in coverage["by_topic"])
    assert coverage["synthesis_lag"].startswith("P")


def test_section_8_7_11(api, listen, scope, known):
    """Synthesis: a job with a stream of its own, whose last word is how it ended."""
    body = {"scope": scope, "topics": [], "force": True}
    with listen(api, scope=scope) as frames:
        answer = api.post("/v1/understanding/synthesize", json=body)
        job = answer.json()
        heard = []
        for frame in frames:
            if frame.data.get("job_id") == job["job_id"]:
                heard.append(frame.data)
                if "status" in frame.data:
                    break
    state = api.get(f"/v1/understanding/synthesize/{job['job_id']}").json()
    again = api.get(f"/v1/understanding/{known['Acme']['id']}").json()

    assert (202, "experimental") == (answer.status_code, answer.headers["x-cortex-stability"])
    assert f"/v1/lifecycle/stream?job_id={job['job_id']}" == job["lifecycle_stream"]
    assert known["Acme"]["id"] in heard[0]["understanding_ids"]
    assert "completed" == heard[-1]["status"] == state["status"]
    assert len(known) == state["looked_at"]
    assert known["Acme"]["version"] + 1 == again["version"]


def test_a_key_begins_one_synthesis(api, scope, fresh_key):
    """Sent again it answers with the same job; another body under it is a conflict."""
    body = {"scope": scope, "idempotency_key": fresh_key()}
    first = api.post("/v1/understanding/synthesize", json=body)
    again = api.post("/v1/understanding/synthesize", json=body)
    other = api.post("/v1/understanding/synthesize", json=body | {"force": True})

    assert (202, first.json()["job_id"]) == (again.status_code, again.json()["job_id"])
    assert "true" == again.headers["x-cortex-replay"]
    assert (409, "IDEMPOTENCY_CONFLICT", "idempotency_key") == error_of(other)


@pytest.mark.parametrize(
    "path", ["concept_x", "concept_01a1e2e0-7ac8-7251-9e32-80af3a0102d2", "synthesize/job_x"]
)
def test_an_id_that_names_nothing(api, path):
    """404."""
    assert 404 == api.get(f"/v1/understanding/{path}").status_code


@pytest.mark.parametrize("parameters", [{"depth": "9"}, {"depth": "-1"}, {"theme": "x"}])
def test_a_parameter_that_means_nothing_is_refused(api, scope, parameters):
    """Never ignored."""
    answer = api.get("/v1/understanding", params={"scope": scope, **parameters})

    assert (422, "INVALID_PARAMETER", next(iter(parameters))) == error_of(answer)
