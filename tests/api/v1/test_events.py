"""Reading events: filters, order, pages, and what a scope's view takes in (001 §8.7.1)."""

import pytest

from schemas import limits

ACTORS = ("user:alice", "user:bob", "agent:planner")
SUBJECTS = ("user:alice", "customer:c7")
MODALITIES = ("conversation", "observation")
LABELS = ([], ["a"], ["a", "b"], ["b"])
COUNT = 24


@pytest.fixture
def written(api, envelope, scope):
    """Two dozen different events of one scope, oldest first, as they are read by id."""
    items = [
        envelope(
            f"event {number}",
            observed_actor={"id": ACTORS[number % 3]},
            subject={"id": SUBJECTS[number % 2]},
            modality=MODALITIES[number // 2 % 2],
            context={
                "observed_at": f"2026-03-{1 + number * 7 % 24:02d}T12:00:00Z",
                "labels": LABELS[number % 4],
            },
        )
        for number in range(COUNT)
    ]
    for half in (items[: COUNT // 2], items[COUNT // 2 :]):
        assert 202 == api.post("/v1/experience/bulk", json={"items": half}).status_code
    assert 200 == api.post("/v1/admin/flush-views").status_code  # what they derive is theirs too
    keys = [item["idempotency_key"] for item in items]
    ids = [api.get(f"/v1/experience/by-idempotency-key/{key}").json()["event_id"] for key in keys]
    return [api.get(f"/v1/events/{event_id}").json() for event_id in ids]


def pages(api, **parameters):
    """Every page of a listing, by its cursors."""
    while True:
        answer = api.get("/v1/events", params=parameters)
        assert 200 == answer.status_code, answer.text
        page = answer.json()
        yield page["items"]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            return
        parameters = parameters | {"cursor": page["next_cursor"]}


def everything(api, **parameters):
    """All items of a listing."""
    return [item for page in pages(api, **parameters) for item in page]


def texts(events):
    """What the events say, which names them."""
    return [event["content"]["text"] for event in events]


# ── one event ────────────────────────────────────────────────────────────────────────────────


def test_an_event_is_the_envelope_and_what_the_server_added(api, envelope, scope):
    """The record of 001 §7.1: as submitted, with id, caller, tenant, offset and both times."""
    body = envelope(
        observed_actor={"id": "user:alice", "type": "user", "session": "run_abc"},
        directives={"extract": ["facts"], "embed": "lazy"},
        context={
            "observed_at": "2026-05-13T17:42:00.250+02:00",
            "source_recorded_at": "2026-05-13T16:00:00Z",
            "location": {"room": "blue"},
            "preceded_by": ["evt_01H"],
            "intent": "deal_close",
            "labels": ["sales", "q3-launch"],
            "timezone": "Europe/Lisbon",
            "refers_to": [{"from": "2026-01-03"}],
        },
        language="en",
        scripts=["Latn"],
        source={"source_id": "src-1"},
    )
    receipt = api.post("/v1/experience?wait=settled", json=body).json()
    event = api.get(f"/v1/events/{receipt['event_id']}").json()
    recorded_at = event["context"].pop("recorded_at")

    assert recorded_at.endswith("Z")
    assert {
        "id": receipt["event_id"],
        "scope": scope,
        "tenant_id": "local",
        "caller": "user:local",
        "actor": "user:alice",
        "observed_actor": body["observed_actor"],
        "subject": body["observed_actor"],
        "modality": "conversation",
        "content": body["content"],
        "context": body["context"] | {"observed_at": "2026-05-13T15:42:00.250000Z"},
        "directives": body["directives"],
        "idempotency_key": body["idempotency_key"],
        "derives": receipt["derives"],
        "wal_offset": receipt["wal_offset"],
        "language": "en",
        "scripts": ["Latn"],
        "source": {"source_id": "src-1"},
    } == event


@pytest.mark.parametrize(
    "event_id",
    [
        "evt_1",
        "evt_01890000-0000-7000-8000-000000000000",
        "lce_01890000-0000-7000-8000-000000000000",
        "EVT_01890000-0000-7000-8000-000000000000",
        "evt_%00",
        "evt_%0A",
        "%20",
        "x" * 5000,
    ],
)
def test_an_id_that_names_no_event(api, event_id):
    """404, whatever the id looks like; the answer does not echo it at length."""
    answer = api.get(f"/v1/events/{event_id}")

    assert 404 == answer.status_code
    assert "NOT_FOUND" == answer.json()["error_code"]
    assert len(answer.content) < 1000


# ── filters ──────────────────────────────────────────────────────────────────────────────────

BEGIN, END = "2026-03-06T12:00:00Z", "2026-03-18T12:00:00Z"

FILTERS = {
    "none": ({}, lambda _: True),
    "since": ({"since": BEGIN}, lambda e: e["context"]["observed_at"] >= BEGIN),
    "until": ({"until": END}, lambda e: e["context"]["observed_at"] < END),
    "window": (
        {"since": BEGIN, "until": END},
        lambda e: BEGIN <= e["context"]["observed_at"] < END,
    ),
    "zone": (
        {"since": "2026-03-06T14:00:00+02:00"},
        lambda e: e["context"]["observed_at"] >= BEGIN,
    ),
    "observed_actor": ({"observed_actor": "user:bob"}, lambda e: e["actor"] == "user:bob"),
    "subject": ({"subject": "customer:c7"}, lambda e: e["subject"]["id"] == "customer:c7"),
    "modality": ({"modality": "observation"}, lambda e: e["modality"] == "observation"),
    "label": ({"labels": "a"}, lambda e: "a" in e["context"].get("labels", [])),
    "labels": ({"labels": "b,a"}, lambda e: {"a", "b"} <= set(e["context"].get("labels", []))),
    "together": (
        {"observed_actor": "user:alice", "labels": "b", "modality": "observation"},
        lambda e: (
            (e["actor"], e["modality"]) == ("user:alice", "observation")
            and "b" in e["context"].get("labels", [])
        ),
    ),
    "nobody": ({"observed_actor": "user:nobody"}, lambda _: False),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_filter_takes_what_it_says(api, written, scope, name, order):
    """Each filter alone and together, in both orders, agrees with the same test in Python."""
    parameters, wanted = FILTERS[name]
    found = everything(api, scope=scope, order=order, limit=5, **parameters)
    expected = [event for event in written if wanted(event)]

    assert (expected if order == "oldest" else expected[::-1]) == found


def test_the_time_of_recording_is_a_filter_too(api, written, scope):
    """`recorded_since` and `recorded_until` are half-open bounds of the server's own time."""
    begin, end = (written[at]["context"]["recorded_at"] for at in (5, 15))
    found = everything(api, scope=scope, order="oldest", recorded_since=begin, recorded_until=end)

    assert texts(written[5:15]) == texts(found)


def test_a_plus_in_a_time_may_stand_as_it_is(api, written, scope):
    """A `+` that was not escaped arrives as a space; in a time it can only be a plus."""
    answer = api.get(f"/v1/events?scope={scope}&since=2026-03-06T14:00:00+02:00&order=oldest")
    expected = [e for e in written if e["context"]["observed_at"] >= BEGIN]

    assert expected == answer.json()["items"]


@pytest.mark.parametrize(
    "parameters, code, field",
    [
        ({"offset": "5"}, "INVALID_PARAMETER", "offset"),
        ({"page": "2"}, "INVALID_PARAMETER", "page"),
        ({"view": "sideways"}, "INVALID_PARAMETER", "view"),
        ({"order": "up"}, "INVALID_PARAMETER", "order"),
        ({"limit": "0"}, "INVALID_PARAMETER", "limit"),
        ({"limit": "1001"}, "INVALID_PARAMETER", "limit"),
        ({"limit": "ten"}, "INVALID_PARAMETER", "limit"),
        ({"since": "yesterday"}, "INVALID_TIMESTAMP", "since"),
        ({"since": "2026"}, "INVALID_TIMESTAMP", "since"),
        ({"since": "1700000000"}, "INVALID_TIMESTAMP", "since"),
        ({"since": "null"}, "INVALID_TIMESTAMP", "since"),
        ({"since": ""}, "INVALID_TIMESTAMP", "since"),
        ({"until": "2026-03-06T12:00:00"}, "INVALID_TIMESTAMP", "until"),
        ({"cursor": "garbage"}, "INVALID_CURSOR", "cursor"),
        ({"cursor": "é"}, "INVALID_CURSOR", "cursor"),
        ({"scope": "Bad"}, "INVALID_SCOPE_GRAMMAR", "scope"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(api, scope, parameters, code, field):
    """Never ignored: a wrong paging parameter must not serve page one for ever."""
    answer = api.get("/v1/events", params={"scope": scope} | parameters)

    assert 422 == answer.status_code
    assert code == answer.json()["error_code"]
    assert field == answer.json()["details"]["field"]


def test_a_scope_is_required(api):
    """Listing everything is not offered."""
    answer = api.get("/v1/events")

    assert 400 == answer.status_code
    assert "MISSING_REQUIRED_FIELD" == answer.json()["error_code"]
    assert "scope" == answer.json()["details"]["field"]


# ── pages ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 5, 12, 24, 25])
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_cover_everything_exactly_once(api, written, scope, order, limit):
    """No event twice, none left out, none beyond the limit, whatever the size of the page."""
    found = list(pages(api, scope=scope, order=order, limit=limit))
    expected = written if order == "oldest" else written[::-1]

    assert expected == [event for page in found for event in page]
    assert max(len(page) for page in found) <= limit


def test_newest_first_is_the_default(api, written, scope):
    """Without `order`, the last written comes first."""
    assert texts(written[::-1]) == texts(
        api.get("/v1/events", params={"scope": scope}).json()["items"]
    )


def test_what_is_written_meanwhile_does_not_move_the_pages(api, written, scope, capture):
    """Newest first: a write between two pages neither repeats nor hides an older event."""
    walk = pages(api, scope=scope, limit=10)
    first = next(walk)
    capture("in between")
    rest = [event for page in walk for event in page]

    assert texts(written[::-1]) == texts(first + rest)


def test_what_is_written_meanwhile_is_still_to_come_when_oldest_is_first(
    api, written, scope, capture
):
    """Oldest first: a write between two pages is found at the end."""
    walk = pages(api, scope=scope, order="oldest", limit=10)
    first = next(walk)
    capture("in between")
    rest = [event for page in walk for event in page]

    assert [*texts(written), "in between"] == texts(first + rest)


@pytest.mark.parametrize(
    "change",
    [
        {"order": "oldest"},
        {"view": "holistic"},
        {"modality": "observation"},
        {"labels": "a"},
        {"since": BEGIN},
        {"scope": "org:tests"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_cursor_belongs_to_its_question(api, written, scope, change):
    """A cursor of another listing is refused, not guessed at."""
    first = api.get("/v1/events", params={"scope": scope, "limit": 5}).json()
    parameters = {"scope": scope, "limit": 5, "cursor": first["next_cursor"]} | change
    answer = api.get("/v1/events", params=parameters)

    assert 422 == answer.status_code
    assert "INVALID_CURSOR" == answer.json()["error_code"]


def test_the_limit_may_change_from_page_to_page(api, written, scope):
    """How much to read at once is no part of the question."""
    first = api.get("/v1/events", params={"scope": scope, "limit": 5}).json()
    parameters = {"scope": scope, "limit": 7, "cursor": first["next_cursor"]}
    second = api.get("/v1/events", params=parameters).json()

    assert texts(written[::-1][5:12]) == texts(second["items"])


def test_a_cursor_that_was_tampered_with(api, written, scope):
    """A cursor is signed: another position cannot be made up."""
    cursor = api.get("/v1/events", params={"scope": scope, "limit": 5}).json()["next_cursor"]
    forged = ("B" if cursor[0] == "A" else "A") + cursor[1:]
    answer = api.get("/v1/events", params={"scope": scope, "limit": 5, "cursor": forged})

    assert 422 == answer.status_code
    assert "INVALID_CURSOR" == answer.json()["error_code"]


def test_a_filter_that_matches_little_answers_short_pages(api, envelope, scope):
    """One call looks at a bounded number of entries; the cursor goes on until all was seen."""
    rare = envelope("rare", modality="observation")
    api.post("/v1/experience", json=rare)
    for _ in range(limits.PAGE_SCAN_MAX // 1000 + 1):
        items = [envelope("common") for _ in range(1000)]
        api.post("/v1/experience/bulk", json={"items": items})
    found = list(pages(api, scope=scope, modality="observation", limit=50))

    assert [0, 1] == [len(page) for page in found]
    assert ["rare"] == texts(found[-1])


# ── views ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tree(capture, scope):
    """A scope with a parent's event, a child's, a grandchild's and a sibling's."""
    child = f"{scope}/project:p"
    capture("parent")
    capture("child", scope=child)
    capture("grandchild", scope=f"{child}/team:t")
    capture("lookalike", scope=f"{scope}/project:p2")
    return child


@pytest.mark.parametrize(
    "view, expected",
    [
        (None, ["child"]),
        ("local", ["child"]),
        ("holistic", ["parent", "child"]),
        ("descend", ["child", "grandchild"]),
        ("raw", ["child"]),
        ("granular", ["child"]),
        ("narrative", ["child"]),
        ("structured", ["child"]),
    ],
)
def test_a_view_decides_which_scopes_are_walked(api, tree, view, expected):
    """`local` is this scope alone, `holistic` adds its ancestors, `descend` what lies below."""
    parameters = {"scope": tree, "order": "oldest"} | ({} if view is None else {"view": view})
    found = api.get("/v1/events", params=parameters).json()["items"]

    assert expected == texts(found)


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_over_several_scopes_keep_log_order(api, envelope, scope, order):
    """A walk over many scopes is merged by offset, and pages still cover it exactly once."""
    scopes = [scope, f"{scope}/project:p", f"{scope}/project:q", f"{scope}/project:p/team:t"]
    for number in range(20):
        body = envelope(str(number), scope=scopes[number * 7 % 4])
        api.post("/v1/experience", json=body)
    found = everything(api, scope=scope, view="descend", order=order, limit=3)
    numbers = [str(number) for number in range(20)]

    assert (numbers if order == "oldest" else numbers[::-1]) == texts(found)


def test_a_scope_nobody_wrote_to(api, scope):
    """An empty page, not an error: a scope exists as soon as something is written (001 §3.4.4)."""
    answer = api.get("/v1/events", params={"scope": scope})

    assert {"items": [], "next_cursor": None, "has_more": False} == answer.json()


# ── cancelled ────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_event_is_not_listed(api, capture, scope):
    """It stays readable by its id, with its flag (001 §8.9.5)."""
    kept, dropped = capture("kept"), capture("dropped")
    api.post(f"/v1/lifecycle/memory-event/{dropped}/cancel")
    event = api.get(f"/v1/events/{dropped}")

    assert [kept] == [e["id"] for e in everything(api, scope=scope)]
    assert 200 == event.status_code
    assert True is event.json()["excluded_from_recall"]
    assert "excluded_from_recall" not in api.get(f"/v1/events/{kept}").json()


def test_cancelled_events_do_not_fill_pages(api, written, scope):
    """`limit` counts what is listed, not what was left out."""
    for event in written[::2]:
        api.post(f"/v1/lifecycle/memory-event/{event['id']}/cancel")
    first = api.get("/v1/events", params={"scope": scope, "limit": 5, "order": "oldest"}).json()

    assert texts(written[1::2][:5]) == texts(first["items"])
    assert texts(written[1::2]) == texts(everything(api, scope=scope, limit=5, order="oldest"))
