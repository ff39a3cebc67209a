"""Vocabularies over HTTP: a tenant's own terms (001 §7.3.1, §8.14)."""

import itertools

import pytest

_numbers = itertools.count(1)
SALES = {
    "predicates": [
        {
            "id": "deal_stage",
            "datatype": "string",
            "values": ["intro", "poc", "close", "signed", "lost"],
        },
        {"id": "seat_count", "datatype": "integer"},
        {"id": "contact_at", "datatype": "entity"},
    ]
}


@pytest.fixture
def name():
    """A name that no other test has registered."""
    return f"vocabulary_{next(_numbers)}"


@pytest.fixture
def register(api, name):
    """Register a vocabulary of the test's name; the answer. What it registers it drops."""
    made = []

    def post(**body):
        answer = api.post("/v1/vocabularies", json={"name": name, **SALES, **body})
        made.append(body.get("name", name))
        return answer

    yield post
    for each in made:
        api.delete(f"/v1/vocabularies/{each}")


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


def test_section_7_3_1(api, name, register):
    """The seed's example: 201, and read back as it was sent."""
    answer = register()
    record = api.get(f"/v1/vocabularies/{name}").json()

    assert 201 == answer.status_code, answer.text
    assert answer.json() == record
    assert [term["id"] for term in SALES["predicates"]] == [t["id"] for t in record["predicates"]]
    assert ("predicate", None, []) == (record["kind"], record["scope"], record["relations"])


def test_the_same_again_is_the_same_answer(register):
    """Nothing is written twice, and the answer says so."""
    first, second = register(), register()

    assert (201, "true") == (second.status_code, second.headers["x-cortex-replay"])
    assert first.json() == second.json()


def test_another_of_the_same_name_is_a_conflict(register):
    """A second POST does not replace what others rely on."""
    register()

    assert (409, "CONFLICT", None) == error_of(register(predicates=[{"id": "other"}]))


def test_a_key_answers_as_the_first_did(register, fresh_key):
    """Also when the vocabulary has changed since; another body under it is a conflict."""
    key = fresh_key()
    first = register(idempotency_key=key)
    again = register(idempotency_key=key)
    other = register(idempotency_key=key, predicates=[{"id": "other"}])

    assert (first.json(), "true") == (again.json(), again.headers["x-cortex-replay"])
    assert (409, "IDEMPOTENCY_CONFLICT", "idempotency_key") == error_of(other)


def test_put_replaces_what_is_there(api, name, register):
    """All of it; the record keeps when it began."""
    began = register().json()["created_at"]
    answer = api.put(
        f"/v1/vocabularies/{name}",
        json={"predicates": [{"id": "tier", "aliases": ["plan"], "cardinality": "single"}]},
    )
    record = api.get(f"/v1/vocabularies/{name}").json()

    assert 200 == answer.status_code, answer.text
    assert answer.json() == record
    assert ["tier"] == [term["id"] for term in record["predicates"]]
    assert began == record["created_at"] < record["updated_at"]


def test_put_of_what_is_not_there(api, name):
    """A typing error makes no second vocabulary."""
    answer = api.put(f"/v1/vocabularies/{name}", json=SALES)

    assert (404, "NOT_FOUND", None) == error_of(answer)


def test_put_under_another_name(api, name, register):
    """The path names it; the body may only agree."""
    register()
    answer = api.put(f"/v1/vocabularies/{name}", json={"name": "another", **SALES})

    assert (422, "INVALID_PARAMETER", "name") == error_of(answer)


def test_a_dropped_one_is_gone(api, name, register):
    """204, then 404 for reading and for dropping again."""
    register()
    assert 204 == api.delete(f"/v1/vocabularies/{name}").status_code

    assert 404 == api.get(f"/v1/vocabularies/{name}").status_code
    assert 404 == api.delete(f"/v1/vocabularies/{name}").status_code


def test_relations_are_a_kind_of_their_own(api, name, register):
    """001 §7.5.1: custom relations, kind=relation."""
    answer = register(
        kind="relation",
        predicates=[],
        relations=[{"id": "reports_to", "inverse": "manages", "aliases": ["works for"]}],
    )

    assert 201 == answer.status_code, answer.text
    assert "reports_to" == api.get(f"/v1/vocabularies/{name}").json()["relations"][0]["id"]


def test_the_running_system_s_shape(register):
    """`closed` with values: one predicate of the vocabulary's name that takes no other value."""
    answer = register(
        name="support_tier", kind="closed", predicates=[], values=["gold", "silver"]
    ).json()

    assert "predicate" == answer["kind"]
    assert [{"id": "support_tier", "values": ["gold", "silver"], "closed": True}] == answer[
        "predicates"
    ]


@pytest.mark.parametrize(
    "body, field",
    [
        ({"predicates": []}, "predicates"),
        ({"kind": "relation"}, "predicates"),
        ({"kind": "relation", "predicates": []}, "relations"),
        ({"relations": [{"id": "causes"}]}, "relations"),
        ({"values": ["x"]}, "values"),
        ({"kind": "closed", "predicates": []}, "values"),
        ({"kind": "open", "values": ["x"]}, "kind"),
        ({"predicates": [{"id": "a"}, {"id": "A"}]}, "predicates[1]"),
        ({"predicates": [{"id": "a"}, {"id": "b", "aliases": ["A"]}]}, "predicates[1]"),
        (
            {"predicates": [{"id": "a", "datatype": "integer", "values": ["one"]}]},
            "predicates[0].values[0]",
        ),
        (
            {"predicates": [{"id": "a", "datatype": "number", "values": [True]}]},
            "predicates[0].values[0]",
        ),
        ({"predicates": [{"id": "a", "values": ["x", "x"]}]}, "predicates[0].values[1]"),
    ],
)
def test_what_makes_no_sense_is_named(register, body, field):
    """422 with the field; nothing is registered."""
    assert (422, "INVALID_PARAMETER", field) == error_of(register(**body))


@pytest.mark.parametrize(
    "body, field",
    [
        ({"name": "two words"}, "name"),
        ({"kind": "colour"}, "kind"),
        ({"predicates": [{"id": "a", "datatype": "blob"}]}, "predicates[0].datatype"),
        ({"predicates": [{"id": "a", "unit": "kg"}]}, "predicates[0].unit"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_not_of_the_shape_is_named(register, body, field):
    """Closed objects: an unknown field is an error, never ignored."""
    assert (400, "INVALID_BODY", field) == error_of(register(**body))


def test_pages_in_the_order_of_names(api, register, name):
    """With a cursor; each once."""
    names = [f"{name}_{letter}" for letter in "bca"]
    for each in names:
        register(name=each)
    seen, cursor = [], None
    while True:
        parameters = {"limit": 1} | ({} if cursor is None else {"cursor": cursor})
        page = api.get("/v1/vocabularies", params=parameters).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        assert page["has_more"] == (cursor is not None)
        if cursor is None:
            break

    assert sorted(names) == [each for each in seen if each in names]
    assert sorted(seen) == seen


def test_a_cursor_of_another_listing(api):
    """422: positions are not shared between listings."""
    answer = api.get("/v1/vocabularies", params={"cursor": "bm9wZQ=="})

    assert (422, "INVALID_CURSOR", "cursor") == error_of(answer)


def test_the_tier_is_beta(api, name):
    """001 §2.4.2."""
    assert "beta" == api.get("/v1/vocabularies").headers["x-cortex-stability"]
