"""Writing many experiences in one atomic batch (001 §8.2, DESIGN §8.6)."""

import pytest

from schemas import limits


@pytest.fixture(scope="module")
def server(young_server):
    """Entries are counted here."""
    return young_server


@pytest.fixture
def item(envelope):
    """Items that leave the scope to the shared header."""

    def make(text="hello", **changes):
        made = envelope(text)
        del made["scope"]
        return made | changes

    return make


def listed(api, scope):
    """The events of a scope in log order."""
    page = api.get("/v1/events", params={"scope": scope, "order": "oldest", "limit": 1000}).json()
    assert page["next_cursor"] is None
    return page["items"]


def test_the_shared_header_form(api, item, scope):
    """Scope, actor, subject and directives of the header hold for every item that has none."""
    request = {
        "scope": scope,
        "actor": {"id": "agent:planner", "type": "agent"},
        "subject": {"id": "user:alice"},
        "directives": {"confidence_floor": 0.5},
        "items": [item("one"), item("two", scope=f"{scope}/project:p", modality="observation")],
        "ordering": "batch_throughput",
    }
    answer = api.post("/v1/experience/bulk", json=request)
    receipt = answer.json()
    events = listed(api, scope) + listed(api, f"{scope}/project:p")

    assert 202 == answer.status_code
    assert {
        "batch_id": receipt["batch_id"],
        "accepted": 2,
        "lifecycle_stream": f"/v1/lifecycle/stream?batch_id={receipt['batch_id']}",
        "status": "captured",
        "durability": "fsync",
    } == receipt
    assert ["one", "two"] == [event["content"]["text"] for event in events]
    assert ["agent:planner"] * 2 == [event["actor"] for event in events]
    assert ["user:alice"] * 2 == [event["subject"]["id"] for event in events]
    assert [{"confidence_floor": 0.5}] * 2 == [event["directives"] for event in events]
    assert [receipt["batch_id"]] * 2 == [event["batch_id"] for event in events]


def test_the_full_envelope_form(api, envelope, scope):
    """Without a header, each item is a whole envelope: what the published client sends."""
    other = f"{scope}/project:p"
    items = [envelope("one"), envelope("two", scope=other, observed_actor={"id": "user:bob"})]
    answer = api.post("/v1/experience/bulk", json={"items": items})

    assert 202 == answer.status_code
    assert ["one"] == [event["content"]["text"] for event in listed(api, scope)]
    assert ["user:bob"] == [event["actor"] for event in listed(api, other)]


def test_actor_is_read_as_observed_actor(api, item, scope):
    """`actor` is the older word: accepted in the header and in items; an item's own wins."""
    request = {
        "scope": scope,
        "actor": {"id": "agent:header"},
        "items": [
            item(),
            item(actor={"id": "agent:item"}),
            item(observed_actor={"id": "agent:own"}),
        ],
    }
    api.post("/v1/experience/bulk", json=request)

    assert ["agent:header", "agent:item", "agent:own"] == [
        event["actor"] for event in listed(api, scope)
    ]


def test_strict_temporal_writes_in_the_order_of_observation(api, item, scope):
    """Offsets follow `observed_at`, whatever the zone it was written in."""
    times = ["2026-01-03T00:00:00Z", "2026-01-02T23:00:00-02:00", "2026-01-01T00:00:00Z"]
    items = [item(at, context={"observed_at": at}) for at in times]
    request = {"scope": scope, "items": items, "ordering": "strict_temporal"}
    api.post("/v1/experience/bulk", json=request)

    assert [times[2], times[0], times[1]] == [e["content"]["text"] for e in listed(api, scope)]


def test_batch_throughput_keeps_the_order_of_the_request(api, item, scope):
    """Unless asked otherwise, items are written as they came."""
    times = ["2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]
    items = [item(at, context={"observed_at": at}) for at in times]
    api.post("/v1/experience/bulk", json={"scope": scope, "items": items})

    assert times == [event["content"]["text"] for event in listed(api, scope)]


def test_a_full_batch(api, item, scope, head):
    """A thousand items are one call, one batch, a thousand offsets."""
    before = head()
    items = [item(str(number)) for number in range(limits.BULK_ITEMS_MAX)]
    answer = api.post("/v1/experience/bulk?wait=indexed", json={"scope": scope, "items": items})

    assert 202 == answer.status_code
    assert 1000 == answer.json()["accepted"]
    assert "indexed" == answer.json()["status"]
    assert before + 1000 == head()
    assert [str(number) for number in range(1000)] == [
        event["content"]["text"] for event in listed(api, scope)
    ]


@pytest.mark.parametrize("count", [0, limits.BULK_ITEMS_MAX + 1])
def test_too_many_or_none(api, item, scope, head, count):
    """No items, or more than a thousand, are refused and nothing is stored."""
    before = head()
    items = [item() for _ in range(count)]
    answer = api.post("/v1/experience/bulk", json={"scope": scope, "items": items})

    assert 422 == answer.status_code
    assert "INVALID_ENVELOPE" == answer.json()["error_code"]
    assert "items" == answer.json()["details"]["field"]
    assert before == head()


@pytest.mark.parametrize(
    "bad, code, field",
    [
        ({"modality": 5}, "INVALID_ENVELOPE", "items[2].modality"),
        ({"context": {"observed_at": "soon"}}, "INVALID_TIMESTAMP", "items[2].context.observed_at"),
        (
            {"context": {"observed_at": "0001-01-01T00:00:00+14:00"}},
            "INVALID_TIMESTAMP",
            "items[2].context.observed_at",
        ),
        ({"content": {"kind": "json", "data": 2**64}}, "INVALID_ENVELOPE", "items[2].content.data"),
        ({"scope": "Nope"}, "INVALID_SCOPE_GRAMMAR", "items[2].scope"),
        ({"surprise": 1}, "INVALID_ENVELOPE", "items[2].surprise"),
        (
            {"subject": {"id": "user:a", "type": "agent"}},
            "INVALID_ENVELOPE",
            "items[2].subject.type",
        ),
    ],
)
def test_one_bad_item_stores_nothing(api, item, head, *, bad, code, field):
    """All or none: the answer names the item that stood in the way."""
    before = head()
    items = [item(), item(), item(**bad), item()]
    answer = api.post("/v1/experience/bulk", json={"scope": "org:tests", "items": items})

    assert answer.status_code in (400, 422)
    assert code == answer.json()["error_code"]
    assert field == answer.json()["details"]["field"]
    assert before == head()


def test_an_item_without_a_scope_anywhere(api, item, head):
    """A scope comes from the header or from the item."""
    before = head()
    answer = api.post("/v1/experience/bulk", json={"items": [item()]})

    assert 422 == answer.status_code
    assert "items[0].scope" == answer.json()["details"]["field"]
    assert before == head()


def test_a_missing_key_is_named(api, item, scope):
    """A required field of an item is named with the item's index."""
    second = item()
    del second["idempotency_key"]
    answer = api.post("/v1/experience/bulk", json={"scope": scope, "items": [item(), second]})

    assert 400 == answer.status_code
    assert "MISSING_REQUIRED_FIELD" == answer.json()["error_code"]
    assert "items[1].idempotency_key" == answer.json()["details"]["field"]


def test_the_same_batch_again_is_a_replay(api, item, scope, head):
    """The same call answers with the batch it was first written in, and stores nothing."""
    request = {"scope": scope, "items": [item("one"), item("two")]}
    first = api.post("/v1/experience/bulk", json=request)
    before = head()
    again = api.post("/v1/experience/bulk", json=request)

    assert "X-Cortex-Replay" not in first.headers
    assert "true" == again.headers["X-Cortex-Replay"]
    assert first.json() | {"replayed": 2} == again.json()
    assert before == head()


def test_a_batch_that_was_partly_written_before(api, item, scope):
    """What was there is replayed, the rest is written, and the answer counts both."""
    old, new = item("old"), item("new")
    api.post("/v1/experience/bulk", json={"scope": scope, "items": [old]})
    answer = api.post("/v1/experience/bulk", json={"scope": scope, "items": [old, new]})

    assert "X-Cortex-Replay" not in answer.headers
    assert (2, 1) == (answer.json()["accepted"], answer.json()["replayed"])
    assert ["old", "new"] == [event["content"]["text"] for event in listed(api, scope)]


@pytest.mark.parametrize("ordering", ["strict_temporal", "batch_throughput"])
def test_a_conflict_names_the_item_as_it_was_sent(api, item, scope, head, ordering):
    """The index is the client's, also when the batch was put in another order."""
    taken = item("taken", context={"observed_at": "2026-01-01T00:00:00Z"})
    api.post("/v1/experience/bulk", json={"scope": scope, "items": [taken]})
    before = head()
    items = [item("fresh"), taken | {"modality": "observation"}]
    request = {"scope": scope, "items": items, "ordering": ordering}
    answer = api.post("/v1/experience/bulk", json=request)

    assert 409 == answer.status_code
    assert "items[1].idempotency_key" == answer.json()["details"]["field"]
    assert before == head()


def test_a_key_twice_in_one_batch(api, item, scope, head):
    """The same item twice is one event; the same key with two bodies is refused."""
    once = item("once")
    same = api.post("/v1/experience/bulk", json={"scope": scope, "items": [once, once]})
    before = head()
    key = {"idempotency_key": item()["idempotency_key"]}
    different = {"scope": scope, "items": [item("one") | key, item("two") | key]}
    conflict = api.post("/v1/experience/bulk", json=different)

    assert (2, 1) == (same.json()["accepted"], same.json()["replayed"])
    assert 409 == conflict.status_code
    assert before == head()


def test_each_item_is_found_by_its_key(api, item, scope):
    """Event ids of a batch are asked for by key (001 §8.2)."""
    items = [item("one"), item("two")]
    receipt = api.post("/v1/experience/bulk", json={"scope": scope, "items": items}).json()
    found = [
        api.get(f"/v1/experience/by-idempotency-key/{one['idempotency_key']}").json()
        for one in items
    ]

    assert [event["id"] for event in listed(api, scope)] == [one["event_id"] for one in found]
    assert [receipt["batch_id"]] * 2 == [one["batch_id"] for one in found]
