"""Temporal phrases over HTTP: a tenant's own words for a stretch of time (001 §8.17)."""

import itertools

import pytest

_numbers = itertools.count(1)
WINDOW = {"resolves_to": {"valid_during": ["2026-07-01", "2026-10-01"]}}


@pytest.fixture
def name():
    """A name that no other test has registered."""
    return f"phrase {next(_numbers)}"


@pytest.fixture
def register(api, name):
    """Register a phrase of the test's name; the answer. What it registers it drops."""
    made = []

    def post(**body):
        answer = api.post("/v1/temporal/phrases", json={"name": name, **body})
        made.append(body.get("name", name))
        return answer

    yield post
    for each in made:
        api.delete(f"/v1/temporal/phrases/{each}")


def error_of(answer):
    """Status, code and field of a refusal."""
    problem = answer.json()
    return answer.status_code, problem["error_code"], problem["details"].get("field")


def test_section_8_17_1(api, register):
    """The seed's example: 201, and listed as it was sent."""
    phrase = {"name": "fiscal_q3", "pattern": "fiscal Q3", **WINDOW}
    answer = register(**phrase)
    listed = api.get("/v1/temporal/phrases").json()["items"]

    assert 201 == answer.status_code, answer.text
    assert phrase.items() <= answer.json().items()
    assert answer.json() in listed


def test_the_running_system_s_shape(register, name):
    """Two durations from an anchor; the name is what readers write."""
    answer = register(anchor="2026-01-31T00:00:00Z", expression="+P6M..+P9M")

    assert 201 == answer.status_code, answer.text
    assert (name, "+P6M..+P9M") == (answer.json()["name"], answer.json()["expression"])


def test_the_same_again_is_the_same_answer(register):
    """Nothing is written twice, and the answer says so."""
    first, second = register(**WINDOW), register(**WINDOW)

    assert (201, "true") == (second.status_code, second.headers["x-cortex-replay"])
    assert first.json() == second.json()


def test_another_of_the_same_name_is_a_conflict(register):
    """So are the same words under another name: they would mean two things."""
    register(pattern="our big push", **WINDOW)
    other = {"resolves_to": {"as_of": "2026-04-01"}}

    assert (409, "CONFLICT", None) == error_of(register(**other))
    assert (409, "CONFLICT", None) == error_of(
        register(name="another", pattern="Our  Big Push", **other)
    )


def test_a_key_answers_as_the_first_did(register, fresh_key):
    """Another body under it is a conflict."""
    key = fresh_key()
    first = register(idempotency_key=key, **WINDOW)
    again = register(idempotency_key=key, **WINDOW)
    other = register(idempotency_key=key, expression="P0D..P1D")

    assert (first.json(), "true") == (again.json(), again.headers["x-cortex-replay"])
    assert (409, "IDEMPOTENCY_CONFLICT", "idempotency_key") == error_of(other)


def test_a_dropped_one_is_gone(api, name, register):
    """204, then 404; the name may be used for something else."""
    register(**WINDOW)
    assert 204 == api.delete(f"/v1/temporal/phrases/{name}").status_code

    assert 404 == api.delete(f"/v1/temporal/phrases/{name}").status_code
    assert 201 == register(expression="P0D..P1D").status_code


@pytest.mark.parametrize(
    "body, error",
    [
        ({}, (422, "INVALID_PARAMETER", "resolves_to")),
        ({**WINDOW, "expression": "P0D..P1D"}, (422, "INVALID_PARAMETER", "resolves_to")),
        ({**WINDOW, "anchor": "2026-01-01"}, (422, "INVALID_PARAMETER", "anchor")),
        ({"resolves_to": {}}, (422, "INVALID_PARAMETER", "resolves_to")),
        (
            {"resolves_to": {"as_of": "2026-01-01", "valid_during": ["2026-01-01", None]}},
            (422, "INVALID_PARAMETER", "resolves_to"),
        ),
        (
            {"resolves_to": {"valid_during": ["2026-10-01", "2026-07-01"]}},
            (422, "INVALID_PARAMETER", "resolves_to.valid_during"),
        ),
        (
            {"resolves_to": {"valid_during": ["summer", None]}},
            (422, "INVALID_TIMESTAMP", "resolves_to.valid_during.from"),
        ),
        ({"expression": "+P9M..+P6M"}, (422, "INVALID_PARAMETER", "expression")),
        ({"expression": "P9999999Y..P9999999Y"}, (422, "INVALID_TIMESTAMP", "expression")),
        ({"expression": "soon..later"}, (400, "INVALID_BODY", "expression")),
        ({"pattern": " ,. ", **WINDOW}, (422, "INVALID_PARAMETER", "pattern")),
        ({"colour": "red", **WINDOW}, (400, "INVALID_BODY", "colour")),
    ],
)
def test_what_makes_no_sense_is_named(register, body, error):
    """The field, and nothing is registered."""
    assert error == error_of(register(**body))


def test_pages_in_the_order_of_names(api, register, name):
    """With a cursor; each once."""
    names = [f"{name} {letter}" for letter in "bca"]
    for each in names:
        register(name=each, **WINDOW)
    seen, cursor = [], None
    while True:
        parameters = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = api.get("/v1/temporal/phrases", params=parameters).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert sorted(names) == [each for each in seen if each in names]
    assert not page["has_more"]
