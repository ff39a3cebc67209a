"""Facts over HTTP: filters, moments, timelines and conflicts (001 §7.3, §8.7.3)."""

import pytest

ACME = {"name": "Acme"}


@pytest.fixture
def deal(stated):
    """A deal that went from poc to close to signed, told in that order; its events."""
    return stated(
        ("2026-03-01T10:00:00Z", ACME, "deal_stage", "poc"),
        ("2026-04-10T10:00:00Z", ACME, "deal_stage", "close"),
        ("2026-05-13T10:00:00Z", ACME, "deal_stage", "signed"),
    )


def recorded(event):
    """When the log got it."""
    return event["context"]["recorded_at"]


def values(facts):
    """What the facts say."""
    return [fact["object"].get("value", fact["object"].get("name")) for fact in facts]


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


# ── what is so ───────────────────────────────────────────────────────────────────────────────


def test_what_is_current(everything, scope, deal):
    """One value of a single-valued predicate, with its trail to the event."""
    [fact] = everything("/v1/facts", scope=scope)

    assert ("deal_stage", "signed", 1.0) == (
        fact["predicate"],
        fact["object"]["value"],
        fact["confidence"],
    )
    assert [deal[2]["id"]] == fact["supports"]
    assert fact["id"] in deal[2]["derives"]
    assert (None, None) == (fact["valid_to"], fact["recorded_to"])


def test_the_plain_read_is_as_of_now(everything, scope, deal):
    """`as_of` the last entry says the same as no `as_of`."""
    plain = everything("/v1/facts", scope=scope)

    assert plain == everything("/v1/facts", scope=scope, as_of=recorded(deal[2]))


@pytest.mark.parametrize("known, value", [(0, "poc"), (1, "close"), (2, "signed")])
def test_as_of_pins_both_axes(everything, scope, deal, known, value):
    """001 §18.2.1: what was known then, about then."""
    assert [value] == values(everything("/v1/facts", scope=scope, as_of=recorded(deal[known])))


def test_known_then_about_a_window(everything, scope, deal):
    """Known on May 1, about April 15: the window takes the place of the second pin."""

    def asked(event, window):
        parameters = {"scope": scope, "as_of": recorded(event), "valid_during": window}
        return values(everything("/v1/facts", **parameters))

    april = "2026-04-15..2026-04-16"
    assert ["poc"] == asked(deal[0], april)
    assert ["close"] == asked(deal[2], april)
    assert ["poc"] == asked(deal[2], "2026-03-15..2026-03-16")
    assert [] == asked(deal[2], "2026-02-01..2026-02-02")


def test_superseded_versions_are_marked(everything, scope, deal):
    """001 §18.2.1: added when asked for, each with what followed it."""
    found = everything("/v1/facts", scope=scope, include_superseded=True)
    by_value = {fact["object"]["value"]: fact for fact in found}

    assert {"poc", "close", "signed"} == set(by_value)
    assert by_value["poc"]["superseded_by"] == by_value["close"]["id"]
    assert by_value["close"]["superseded_by"] == by_value["signed"]["id"]
    assert by_value["signed"]["supersedes"] == by_value["close"]["id"]
    assert by_value["poc"]["recorded_to"] == recorded(deal[1])
    assert by_value["signed"]["recorded_to"] is None


def test_what_was_learnt_in_a_window(everything, scope, deal):
    """`recorded_during` is about when a version came to be known."""
    window = f"{recorded(deal[1])}..{recorded(deal[2])}"
    found = everything(
        "/v1/facts", scope=scope, recorded_during=window, valid_during="2026-01-01.."
    )

    assert ["poc"] == values(found)  # that it had an end was learnt then, and is known still
    found = everything(
        "/v1/facts",
        scope=scope,
        recorded_during=window,
        valid_during="2026-01-01..",
        include_superseded=True,
    )
    assert {"poc", "close"} == set(values(found))


def test_in_words(everything, scope, deal):
    """`natural` against a reference date is a window of validity."""
    parameters = {"scope": scope, "natural": "last month", "reference_date": "2026-05-20"}

    assert {"poc", "close"} == set(values(everything("/v1/facts", **parameters)))


# ── filters ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def crowd(stated):
    """Facts about two things, with objects of several kinds."""
    stated(
        ("2026-03-01T10:00:00Z", ACME, "seat_count", 200),
        ("2026-03-01T10:00:00Z", ACME, "is_customer", True),
        ("2026-03-01T10:00:00Z", ACME, "partner_of", {"type": "entity", "name": "Zeta Corp"}),
        ("2026-03-01T10:00:00Z", {"name": "Zeta Corp"}, "city", "Paris"),
    )


FILTERS = [
    ({"subject": "Acme"}, {"seat_count", "is_customer", "partner_of"}),
    ({"subject": "acme"}, {"seat_count", "is_customer", "partner_of"}),
    ({"subject": "Zeta Corp"}, {"city"}),
    ({"subject": "Nobody"}, set()),
    ({"predicate": "city"}, {"city"}),
    ({"subject": "Acme", "predicate": "seat_count"}, {"seat_count"}),
    ({"subject": "Acme", "predicate": "city"}, set()),
    ({"object": "200"}, {"seat_count"}),
    ({"object": "200.0"}, {"seat_count"}),
    ({"object": "true"}, {"is_customer"}),
    ({"object": "paris"}, {"city"}),
    ({"object": "Zeta Corp"}, {"partner_of"}),
    ({"polarity": "negative"}, set()),
    ({"min_confidence": 1.0}, {"seat_count", "is_customer", "partner_of", "city"}),
]


def test_a_filter_takes_what_it_says(everything, scope, crowd):
    """By name or value, however it is spelt; all that is said must hold."""
    found = {
        str(parameters): {
            fact["predicate"] for fact in everything("/v1/facts", scope=scope, **parameters)
        }
        for parameters, _ in FILTERS
    }

    assert {str(parameters): predicates for parameters, predicates in FILTERS} == found


def test_a_subject_by_its_id(everything, scope, crowd):
    """As the fact itself names it."""
    [fact] = everything("/v1/facts", scope=scope, predicate="city")
    again = everything("/v1/facts", scope=scope, subject=fact["subject"]["id"])

    assert [fact] == again


@pytest.mark.usefixtures("deal", "crowd")
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_cover_each_version_once(everything, scope, order):
    """With superseded versions too."""
    parameters = {"scope": scope, "include_superseded": True, "order": order}
    whole = everything("/v1/facts", **parameters)
    paged = everything("/v1/facts", **parameters, limit=2)
    keys = [(fact["id"], fact["version"]) for fact in paged]

    assert whole == paged
    assert sorted(set(keys)) == sorted(keys)


def test_a_cursor_belongs_to_its_question(api, scope, crowd):
    """Another filter, another scope: another listing."""
    page = api.get("/v1/facts", params={"scope": scope, "limit": 1}).json()
    answer = api.get(
        "/v1/facts", params={"scope": scope, "predicate": "city", "cursor": page["next_cursor"]}
    )

    assert (422, "INVALID_CURSOR", "cursor") == error_of(answer)


@pytest.mark.parametrize(
    "parameters, field",
    [
        ({"min_confidence": "2"}, "min_confidence"),
        ({"polarity": "mixed"}, "polarity"),
        ({"include_superseded": "maybe"}, "include_superseded"),
        ({"subjekt": "Acme"}, "subjekt"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(api, scope, parameters, field):
    """Never ignored."""
    answer = api.get("/v1/facts", params={"scope": scope, **parameters})

    assert (422, "INVALID_PARAMETER", field) == error_of(answer)


# ── one fact ─────────────────────────────────────────────────────────────────────────────────


def test_one_fact_by_its_id(api, everything, scope, deal):
    """As it is known last, superseded or not; or as it was known."""
    found = everything("/v1/facts", scope=scope, include_superseded=True)
    poc = next(fact for fact in found if fact["object"]["value"] == "poc")
    now = api.get(f"/v1/facts/{poc['id']}").json()
    then = api.get(f"/v1/facts/{poc['id']}", params={"as_of": recorded(deal[0])}).json()
    before = api.get(f"/v1/facts/{poc['id']}", params={"as_of": "2026-01-01"})

    assert (2, "2026-04-10T10:00:00Z") == (now["version"], now["valid_to"])
    assert (1, None) == (then["version"], then["valid_to"])
    assert 404 == before.status_code


def test_an_id_that_names_no_fact(api):
    """404."""
    assert (404, "NOT_FOUND", None) == error_of(api.get("/v1/facts/fact_x"))


# ── timelines ────────────────────────────────────────────────────────────────────────────────


def test_section_8_7_4(api, scope, deal):
    """The chain of values, each from when to when."""
    timeline = api.get(
        "/v1/facts/timeline",
        params={"scope": scope, "subject": "Acme", "predicate": "deal_stage"},
    ).json()

    assert ("Acme", "deal_stage") == (timeline["subject"]["name"], timeline["predicate"])
    assert [
        ("poc", "2026-03-01T10:00:00Z", "2026-04-10T10:00:00Z"),
        ("close", "2026-04-10T10:00:00Z", "2026-05-13T10:00:00Z"),
        ("signed", "2026-05-13T10:00:00Z", None),
    ] == [(row["value"], row["valid_from"], row["valid_to"]) for row in timeline["timeline"]]


def test_a_timeline_as_it_was_known(api, scope, deal):
    """As of the second telling there was no third."""
    parameters = {"scope": scope, "subject": "Acme", "predicate": "deal_stage"}
    answer = api.get("/v1/facts/timeline", params=parameters | {"as_of": recorded(deal[1])})

    assert [("poc", "2026-04-10T10:00:00Z"), ("close", None)] == [
        (row["value"], row["valid_to"]) for row in answer.json()["timeline"]
    ]


def test_a_timeline_in_pages(api, scope, deal):
    """With a cursor, like every listing."""
    parameters = {"scope": scope, "subject": "Acme", "predicate": "deal_stage", "limit": 2}
    first = api.get("/v1/facts/timeline", params=parameters).json()
    second = api.get(
        "/v1/facts/timeline", params=parameters | {"cursor": first["next_cursor"]}
    ).json()

    assert (True, False) == (first["has_more"], second["has_more"])
    assert ["poc", "close", "signed"] == [
        row["value"] for row in (*first["timeline"], *second["timeline"])
    ]


def test_a_timeline_of_nothing(api, scope, deal):
    """What is not called so is not found; what has no such predicate has no rows."""
    parameters = {"scope": scope, "subject": "Nobody", "predicate": "deal_stage"}

    assert 404 == api.get("/v1/facts/timeline", params=parameters).status_code
    parameters = {"scope": scope, "subject": "Acme", "predicate": "mood"}
    assert [] == api.get("/v1/facts/timeline", params=parameters).json()["timeline"]


# ── conflicts and vocabularies ───────────────────────────────────────────────────────────────


def test_what_did_not_give_way_is_a_conflict(api, everything, scope, told, envelope):
    """Hearsay does not override what was stated: both are named, and which one stands."""
    stated = {"subject": ACME, "predicate": "seat_count", "object": 90}
    context = {"observed_at": "2026-03-02T10:00:00Z"}
    told(
        envelope(content={"kind": "triple", "triple": stated}, context=context),
        envelope("I heard that Acme has 500 seats.", context=context),
    )
    [fact] = everything("/v1/facts", scope=scope, subject="Acme", predicate="seat_count")
    [conflict] = everything("/v1/facts/conflicts", scope=scope)
    rival = api.get(f"/v1/facts/{conflict['rival']}").json()

    assert (90, fact["id"]) == (fact["object"]["value"], conflict["standing"])
    assert ("less_trusted", 500) == (conflict["reason"], rival["object"]["value"])


def test_a_predicate_is_mapped_to_a_term(api, everything, scope, stated):
    """001 §7.3.1: where a vocabulary holds, its word is used, and the fact says whose it is."""
    vocabulary = {
        "name": "pipeline",
        "scope": scope,
        "predicates": [{"id": "pipeline_step", "aliases": ["step in the pipeline"]}],
    }
    assert 201 == api.post("/v1/vocabularies", json=vocabulary).status_code
    stated(("2026-03-01T10:00:00Z", ACME, "step in the pipeline", "poc"))
    api.delete("/v1/vocabularies/pipeline")
    [fact] = everything("/v1/facts", scope=scope)

    assert ("pipeline_step", "pipeline") == (fact["predicate"], fact["vocabulary"])


# ── entities ─────────────────────────────────────────────────────────────────────────────────


def test_entities_by_name_and_id(api, everything, scope, crowd):
    """So that a reader gets the ids that other reads take."""
    [found] = everything("/v1/entities", scope=scope, name="acme")
    by_id = api.get(f"/v1/entities/{found['id']}", params={"scope": scope}).json()

    assert ("Acme", ["Acme"], 3) == (found["name"], found["names"], found["fact_count"])
    assert found == by_id
    assert {"Acme", "Zeta Corp"} == {
        entity["name"] for entity in everything("/v1/entities", scope=scope, limit=1)
    }


def test_a_thing_of_another_scope_is_not_told(api, everything, scope, crowd):
    """A name that only other scopes' facts know means nothing here."""
    other = scope + "/ws:other"

    assert [] == everything("/v1/entities", scope=other, name="Acme")
    assert 404 == api.get("/v1/entities/Acme", params={"scope": other}).status_code
