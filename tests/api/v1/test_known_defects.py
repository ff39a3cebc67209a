"""What integrators found wrong with the original: each is a test here.

The list is in the notes on the running system; what concerns forgetting, erasing and recall is
tested where they are.
"""

import itertools

import msgspec
import pytest

from api.v1 import ENDPOINTS

LISTINGS = {
    endpoint.path: {f.name for f in msgspec.structs.fields(endpoint.query) if f.required}
    for endpoint in ENDPOINTS
    if endpoint.method == "GET"
    and {"limit", "cursor"} <= set(endpoint.query.__struct_fields__)
    and "{" not in endpoint.path
}
"""Every listing, and which parameters it must have."""
ACME = {"name": "Acme"}


def test_no_event_is_listed_twice(api, everything, scope, told, envelope):
    """`/v1/events` listed every record twice, and `limit` counted the copies."""
    written = [event["id"] for event in told(*(envelope(f"event {n}") for n in range(7)))]
    listed = [event["id"] for event in everything("/v1/events", scope=scope, limit=3)]
    page = api.get("/v1/events", params={"scope": scope, "limit": 5}).json()

    assert sorted(written) == sorted(listed)
    assert 5 == len({event["id"] for event in page["items"]})


@pytest.mark.parametrize("path", LISTINGS)
def test_an_unknown_parameter_is_an_error(api, scope, path):
    """A wrong paging parameter served page one for ever."""
    answer = api.get(path, params={"page": "2"})

    assert 422 == answer.status_code, f"{path} took a parameter it does not know"
    assert "page" == answer.json()["details"]["field"]


def test_the_state_of_a_write_advances(api, listen, scope, envelope):
    """It stayed at `captured` for ever, and the stream that was advertised said nothing."""
    body = envelope()
    with listen(api, scope=scope) as frames:
        event_id = api.post("/v1/experience", json=body).json()["event_id"]
        heard = [frame.event for frame in itertools.islice(frames, 4)]
    key = body["idempotency_key"]
    status = api.get("/v1/experience/status", params={"idempotency_key": key}).json()

    assert ["captured", "extracted", "indexed", "consolidated"] == heard
    assert (event_id, []) == (status["event_id"], status["stages_pending"])


def test_a_superseded_value_is_marked(everything, scope, stated):
    """Old values stayed among the new ones, and nothing told them apart."""
    stated(
        ("2026-03-01T10:00:00Z", ACME, "plan", "basic"),
        ("2026-04-01T10:00:00Z", ACME, "plan", "pro"),
    )
    plain = everything("/v1/facts", scope=scope)
    found = everything("/v1/facts", scope=scope, include_superseded=True)
    old = next(fact for fact in found if fact["object"]["value"] == "basic")

    assert ["pro"] == [fact["object"]["value"] for fact in plain]
    assert plain[0]["id"] == old["superseded_by"]
    assert old["recorded_to"] is not None


def test_beliefs_are_revised(everything, scope, stated):
    """Old and new owner were both believed for ever, each at confidence 1.0."""
    stated(
        ("2026-03-01T10:00:00Z", ACME, "owner", "Alice"),
        ("2026-04-01T10:00:00Z", ACME, "owner", "Bob"),
    )
    live = everything("/v1/beliefs", scope=scope, about="Acme")

    assert ["Bob"] == [belief["claim"]["object"]["value"] for belief in live]
    assert all(belief["confidence"] < 1.0 for belief in live)


def test_no_listing_stops_without_a_word(api, everything, scope, stated):
    """A listing stopped at fifty, with no cursor and no total."""
    stated(*(("2026-03-01T10:00:00Z", {"name": f"Thing {n}"}, "size", n) for n in range(60)))
    page = api.get("/v1/facts", params={"scope": scope}).json()

    assert (50, True) == (len(page["items"]), page["has_more"])
    assert page["next_cursor"]
    assert 60 == len(everything("/v1/facts", scope=scope))
    assert 60 == len(everything("/v1/entities", scope=scope))
    assert 60 == len(everything("/v1/beliefs", scope=scope))


@pytest.mark.parametrize("path", [path for path in LISTINGS if LISTINGS[path] <= {"scope"}])
def test_every_listing_says_whether_there_is_more(api, scope, path):
    """`has_more` and a cursor, on every page of everything."""
    parameters = dict.fromkeys(LISTINGS[path], scope)
    page = api.get(path, params=parameters | {"limit": 1}).json()

    assert page["has_more"] == (page["next_cursor"] is not None)


def test_health_says_what_is_not_running(api):
    """It said `healthy` while nothing was extracted."""
    health = api.get("/v1/admin/health").json()

    assert health["extractor"] not in (None, "none")
    assert all("lag_entries" in projector for projector in health["projectors"])


def test_labels_are_a_filter(everything, scope, told, envelope):
    """Keyed reads were scans of everything."""
    labelled = {"observed_at": "2026-05-13T15:42:00Z", "labels": ["red", "big"]}
    told(envelope("one", context=labelled), envelope("two"))
    found = everything("/v1/events", scope=scope, labels="big,red")

    assert ["one"] == [event["content"]["text"] for event in found]


def test_content_comes_back_as_it_was_sent(api, everything, scope, told, envelope):
    """The same event was two strings, one of them with `[user]` in front."""
    content = {"kind": "json", "data": {"a": [1, {"b": None}], "text": "[user] hi"}}
    [event] = told(envelope(content=content))
    [listed] = everything("/v1/events", scope=scope)

    assert content == event["content"] == listed["content"]


def test_vocabularies_are_there(api):
    """They were «on the roadmap»."""
    assert 200 == api.get("/v1/vocabularies").status_code
