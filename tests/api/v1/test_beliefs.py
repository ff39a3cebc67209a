"""Beliefs over HTTP: what is held, how surely, why, and what became of it (001 §7.4, §8.7.5)."""

import pytest

ACME = {"name": "Acme"}


@pytest.fixture
def owners(stated):
    """Acme's owner was Alice, then Bob; the events."""
    return stated(
        ("2026-03-01T10:00:00Z", ACME, "owner", "Alice"),
        ("2026-05-01T10:00:00Z", ACME, "owner", "Bob"),
    )


def recorded(event):
    """When the log got it."""
    return event["context"]["recorded_at"]


def belief_of(event):
    """The belief that follows from an event."""
    return next(name for name in event["derives"] if name.startswith("belief_"))


def held(beliefs):
    """What the beliefs claim."""
    return [belief["claim"]["object"]["value"] for belief in beliefs]


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


def test_when_the_world_changes_the_new_belief_stands(everything, scope, owners):
    """One live belief; the old one has an end, and says what followed it."""
    [now] = everything("/v1/beliefs", scope=scope)
    both = everything("/v1/beliefs", scope=scope, valid_during="2026-01-01..", order="oldest")

    assert ["Bob"] == held([now])
    assert ["Alice", "Bob"] == held(both)
    assert ("2026-05-01T10:00:00Z", now["id"]) == (both[0]["valid_to"], both[0]["superseded_by"])


def test_a_belief_as_it_was(everything, scope, owners):
    """As of the first telling Alice was the owner, with no end in sight."""
    [then] = everything("/v1/beliefs", scope=scope, as_of=recorded(owners[0]))

    assert (["Alice"], None, 1) == (held([then]), then["valid_to"], then["version"])


def test_filters(everything, scope, owners, stated):
    """By what is spoken of, stance, confidence and predicate; all must hold."""
    stated(("2026-03-01T10:00:00Z", {"name": "Zeta Corp"}, "city", "Paris"))

    def found(**parameters):
        return sorted(held(everything("/v1/beliefs", scope=scope, **parameters)))

    assert ["Bob", "Paris"] == found()
    assert ["Bob"] == found(about="acme")
    assert [] == found(about="nobody")
    assert ["Paris"] == found(predicate="city")
    assert ["Bob", "Paris"] == found(stance="supported")
    assert [] == found(stance="contradicted")
    assert [] == found(min_confidence=0.99)
    assert ["Bob"] == found(min_confidence=0.5, about="Acme", include_deprecated=True)


def test_one_belief_by_its_id(api, owners):
    """As it is known, or was."""
    belief_id = belief_of(owners[0])
    now = api.get(f"/v1/beliefs/{belief_id}").json()
    then = api.get(f"/v1/beliefs/{belief_id}", params={"as_of": recorded(owners[0])}).json()

    assert (2, 1) == (now["version"], then["version"])
    assert f"/v1/beliefs/why?belief_id={belief_id}" == now["why_url"]


def test_an_id_that_names_no_belief(api):
    """404 on every route that takes one."""
    unknown = "belief_01a1e2e0-7ac8-7251-9e32-80af3a0102d2"
    answers = [
        api.get(f"/v1/beliefs/{unknown}"),
        api.get("/v1/beliefs/why", params={"belief_id": unknown}),
        api.get("/v1/beliefs/history", params={"belief_id": unknown}),
    ]

    assert [(404, "NOT_FOUND", None)] * 3 == [error_of(answer) for answer in answers]


def test_section_8_7_6(api, owners):
    """Why: the belief, the fact it rests on, the event the fact was extracted from, in words."""
    belief_id = belief_of(owners[1])
    fact_id = next(name for name in owners[1]["derives"] if name.startswith("fact_"))
    why = api.get("/v1/beliefs/why", params={"belief_id": belief_id}).json()
    graph = why["support_graph"]
    edges = {(edge["from"], edge["to"], edge["relation"]) for edge in graph["edges"]}

    assert belief_id == why["belief"]["id"]
    assert {belief_id, fact_id, owners[1]["id"]} <= {node["id"] for node in graph["nodes"]}
    assert (belief_id, fact_id, "supported_by") in edges
    assert (fact_id, owners[1]["id"], "extracted_from") in edges
    assert f"{why['belief']['confidence']:.2f}" in why["narrative"]
    assert fact_id in why["narrative"]
    assert "template" == why["narrative_model"]


def test_why_says_nothing_of_what_came_later(api, owners):
    """As of the first telling nothing stood against it."""
    parameters = {"belief_id": belief_of(owners[0]), "as_of": recorded(owners[0])}
    why = api.get("/v1/beliefs/why", params=parameters).json()

    assert [] == why["belief"]["contradicts"]
    assert belief_of(owners[1]) not in str(why)


def test_history(api, owners):
    """Every version, newest first, in pages; together they cover the time from the first."""
    parameters = {"belief_id": belief_of(owners[0]), "limit": 1}
    first = api.get("/v1/beliefs/history", params=parameters).json()
    second = api.get(
        "/v1/beliefs/history", params=parameters | {"cursor": first["next_cursor"]}
    ).json()
    [newer], [older] = first["items"], second["items"]

    assert (2, 1) == (newer["version"], older["version"])
    assert newer["recorded_from"] == older["recorded_to"] == recorded(owners[1])
    assert not second["has_more"]


def test_what_is_withdrawn_is_gone(api, everything, scope, owners):
    """001 §18.2.16: 410 by its id, in no list; and as of before it was there, it is."""
    belief_id, event_id = belief_of(owners[1]), owners[1]["id"]
    before = recorded(owners[1])
    assert 200 == api.post(f"/v1/lifecycle/memory-event/{event_id}/cancel", json={}).status_code
    api.post("/v1/admin/flush-views")
    listed = everything("/v1/beliefs", scope=scope, include_superseded=True)

    assert (410, "RESOURCE_DELETED") == error_of(api.get(f"/v1/beliefs/{belief_id}"))[:2]
    assert 410 == api.get("/v1/beliefs/why", params={"belief_id": belief_id}).status_code
    assert 410 == api.get("/v1/beliefs/history", params={"belief_id": belief_id}).status_code
    assert belief_id not in {belief["id"] for belief in listed}
    assert ["Alice"] == held(everything("/v1/beliefs", scope=scope))
    assert ["Bob"] == held(everything("/v1/beliefs", scope=scope, as_of=before))
    assert 200 == api.get(f"/v1/beliefs/{belief_id}", params={"as_of": before}).status_code


def test_either_name_of_one_thing_reads_one_set(api, everything, scope, owners, stated):
    """What turns out to be one has one set of beliefs under either name; before, it had two."""
    apex = {"name": "Apex"}
    [told] = stated(("2026-05-02T10:00:00Z", apex, "owner", "Bob"))
    [said] = stated(("2026-05-03T10:00:00Z", apex, "same_as", {"type": "entity", "name": "Acme"}))

    def found(about, **more):
        more |= {"scope": scope, "about": about, "predicate": "owner"}
        return everything("/v1/beliefs", **more)

    [belief] = found("Acme")
    gone = api.get(f"/v1/beliefs/{belief_of(told)}").json()
    why = api.get("/v1/beliefs/why", params={"belief_id": belief["id"]}).json()
    [before] = found("Apex", as_of=recorded(told))
    assert [belief] == found("Apex")
    assert (["Bob"], 2) == (held([belief]), belief["evidence_count"])
    assert belief["id"] == gone["superseded_by"]
    events = {node["id"] for node in why["support_graph"]["nodes"]}
    assert {owners[1]["id"], told["id"]} <= events
    assert (belief_of(told), 1) == (before["id"], before["evidence_count"])

    api.post(f"/v1/lifecycle/memory-event/{said['id']}/cancel", json={})
    api.post("/v1/admin/flush-views")
    [acme], [parted] = found("Acme"), found("Apex")
    assert (1, 1) == (acme["evidence_count"], parted["evidence_count"])
    assert [belief] == [
        {**one, "recorded_to": None, "superseded_by": belief["superseded_by"]}
        for one in found("Apex", as_of=recorded(said))
    ]


def test_the_tier_is_beta(api, scope):
    """001 §2.4.2."""
    answer = api.get("/v1/beliefs", params={"scope": scope})

    assert "beta" == answer.headers["x-cortex-stability"]
