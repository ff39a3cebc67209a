"""/v1/schedule: every limit at its edge, and who wins when two want the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from api.cognirelay.translate import schedule as translate
from schemas.surfaces.cognirelay.schedule import ScheduledItem, Selector

PATH = "/v1/schedule/items"
METADATA = len('{"p":""}')


def asked(later, **fields):
    return {"kind": "reminder", "title": "look", "due_at": later()} | fields


TEXTS = [
    ("title", 160, "invalid_schedule_title"),
    ("note", 1000, "invalid_schedule_note"),
    ("task_id", 200, "invalid_schedule_payload"),
    ("thread_id", 200, "invalid_schedule_payload"),
    ("idempotency_key", 200, "invalid_schedule_payload"),
]


@pytest.mark.parametrize("field, most, code", TEXTS)
def test_longest_text(relay, later, field, most, code):
    """A text of the greatest length is taken, one character more is refused by name."""
    taken = relay.post(PATH, asked(later, **{field: "é" * most}))
    refused = relay.post(PATH, asked(later, **{field: "é" * (most + 1)}))

    assert (201, "é" * most) == (taken.status_code, taken.json()["item"][field])
    assert (422, code, field) == (
        refused.status_code,
        refused.json()["detail"]["code"],
        refused.json()["detail"]["field"],
    )


@pytest.mark.parametrize("field", ["title", "task_id", "thread_id", "idempotency_key"])
def test_blank_text(relay, later, field):
    """What has at least one character has one that is no space."""
    refused = relay.post(PATH, asked(later, **{field: " \t "}))

    assert (422, field) == (refused.status_code, refused.json()["detail"]["field"])


def test_longest_subject(relay, later):
    """A subject's id has at most 200 characters, its kind is one of four."""
    taken = relay.post(PATH, asked(later, subject_kind="task", subject_id="s" * 200))
    refused = relay.post(PATH, asked(later, subject_kind="task", subject_id="s" * 201))

    assert 201 == taken.status_code
    assert (422, "subject_id") == (refused.status_code, refused.json()["detail"]["field"])


@pytest.mark.parametrize("letter, width", [("x", 1), ("é", 2), ("字", 3)])
def test_largest_metadata(relay, later, letter, width):
    """Metadata has 2048 bytes of UTF-8, however many characters that is."""
    most, over = divmod(2048 - METADATA, width)
    pad = "x" * over
    taken = relay.post(PATH, asked(later, metadata={"p": letter * most + pad}))
    refused = relay.post(PATH, asked(later, metadata={"p": letter * most + pad + "x"}))

    assert 201 == taken.status_code
    assert (422, "metadata") == (refused.status_code, refused.json()["detail"]["field"])


@pytest.mark.parametrize("value", [{"a": [1]}, {"a": {"b": 1}}, {"a": 2**70}, "x", 1, [1]])
def test_metadata_that_is_not_flat(relay, later, value):
    """Metadata is an object of texts, numbers that 64 bits hold, truths and nulls."""
    refused = relay.post(PATH, asked(later, metadata=value))

    assert (422, "metadata") == (refused.status_code, refused.json()["detail"]["field"])


def test_longest_id(relay, later):
    """An id has at most 58 characters after its prefix."""
    taken = relay.post(PATH, asked(later, schedule_id="sched_" + "a" * 58))
    refused = relay.post(PATH, asked(later, schedule_id="sched_" + "a" * 59))
    newline = relay.post(PATH, asked(later, schedule_id="sched_a\nb"))
    blank = relay.post(PATH, asked(later, schedule_id=" sched_b\n"))

    assert [201, 422, 422, 201] == [one.status_code for one in (taken, refused, newline, blank)]
    assert "sched_b" == blank.json()["item"]["schedule_id"]


@pytest.mark.parametrize(
    "field, value, code",
    [
        ("due_at", "2030-01-01T00:00:00", "invalid_schedule_due_at"),
        ("subject_id", "", "invalid_schedule_payload"),
        ("idempotency_key", "", "invalid_schedule_payload"),
    ],
)
def test_what_stands_before_is_blamed_first(relay, later, field, value, code):
    """Fields are looked at in one order: metadata last, and null where it is as good as none."""
    body = asked(later, metadata=[1], schedule_id=None) | {"subject_kind": "user", field: value}
    refused = relay.post(PATH, body).json()["detail"]

    assert (field, code) == (refused["field"], refused["code"])


def test_null_is_as_good_as_none(relay, later):
    """Whoever gives null as id, key or link has given none; a blank note has no words."""
    none = dict.fromkeys(("schedule_id", "idempotency_key", "task_id", "thread_id", "metadata"))
    made = relay.post(PATH, asked(later, note="  ", **none))
    again = relay.post(PATH, asked(later, note=""))

    assert (201, 200) == (made.status_code, again.status_code)
    assert ("", {}) == (made.json()["item"]["note"], made.json()["item"]["metadata"])


def test_what_is_past_is_said_before_what_conflicts(relay, later):
    """A key that is taken by another item is no reason while the item could not be made anyway."""
    relay.post(PATH, asked(later, idempotency_key="k"))
    past = relay.post(PATH, asked(later, idempotency_key="k", due_at="2020-01-01T00:00:00Z"))
    other = relay.post(PATH, asked(later, idempotency_key="k", title="other"))

    assert (422, "due_at_not_future") == (past.status_code, past.json()["detail"]["code"])
    assert (409, "idempotency_key_conflict") == (
        other.status_code,
        other.json()["detail"]["code"],
    )


def test_an_end_without_a_version(relay, later):
    """Null is no version: what can still end needs one, what has ended is told that it has."""
    item = relay.post(PATH, asked(later)).json()["item"]
    path = f"{PATH}/{item['schedule_id']}"
    first = relay.post(f"{path}/acknowledge", {"expected_version": None})
    relay.post(f"{path}/acknowledge", {"expected_version": 1})
    again = relay.post(f"{path}/acknowledge", {"expected_version": None})
    other = relay.post(f"{path}/acknowledge", {"status": "done"})
    retired = relay.post(f"{path}/retire", {})

    assert [422, 200, 409, 422] == [one.status_code for one in (first, again, other, retired)]


@pytest.mark.parametrize("ending", ["acknowledge", "retire"])
def test_longest_reason(relay, later, ending):
    """A reason has at most 500 characters."""
    item = relay.post(PATH, asked(later)).json()["item"]
    path = f"{PATH}/{item['schedule_id']}/{ending}"
    refused = relay.post(path, {"expected_version": 1, "reason": "r" * 501})
    taken = relay.post(path, {"expected_version": 1, "reason": "r" * 500})

    assert [422, 200] == [refused.status_code, taken.status_code]
    assert "r" * 500 == taken.json()["item"]["terminal_reason"]


@pytest.mark.parametrize(
    "query, status",
    [
        ("limit=1", 200),
        ("limit=200", 200),
        ("limit=0", 422),
        ("limit=201", 422),
        ("limit=1e2", 422),
        ("offset=0", 200),
        ("offset=10000", 200),
        ("offset=-1", 422),
        ("offset=10001", 422),
        ("task_id=" + "t" * 200, 200),
        ("task_id=" + "t" * 201, 422),
        ("subject_kind=user&subject_id=" + "t" * 200, 200),
        ("subject_kind=user&subject_id=" + "t" * 201, 422),
        ("limit=" + "9" * 5000, 422),
    ],
)
def test_listing_limits(relay, query, status):
    """A page has 1 to 200 items and begins at 0 to 10,000; filters are ids."""
    assert status == relay.get(f"{PATH}?{query}").status_code


def test_due_now_is_not_the_future(relay, later):
    """An item is due in the future: this very second is not."""
    refused = relay.post(PATH, asked(later, due_at=later(0)))

    assert (422, "due_at_not_future") == (refused.status_code, refused.json()["detail"]["code"])


@pytest.mark.parametrize(
    "due_at", ["2030-02-30T10:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T10:00:60Z", "0", " "]
)
def test_moments_that_are_none(relay, later, due_at):
    """A time that no calendar or clock shows is refused, and nothing is kept."""
    refused = relay.post(PATH, asked(later, due_at=due_at))

    assert (422, "due_at") == (refused.status_code, refused.json()["detail"]["field"])
    assert 0 == relay.get(PATH).json()["total"]


def test_one_of_many_patches_wins(relay, later):
    """Of patches that name one version, one is written and the others hear of a conflict."""
    relay.post(PATH, asked(later, schedule_id="sched_race"))

    def patch(number):
        body = {"expected_version": 1, "title": f"title {number}"}
        return relay("PATCH", f"{PATH}/sched_race", body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(patch, range(8)))

    assert [200] + [409] * 7 == sorted(statuses)
    assert 2 == relay.get(f"{PATH}/sched_race").json()["item"]["version"]


def test_one_of_many_creations_is_kept(relay, later):
    """The same creation sent many times at once is one item."""
    body = asked(later, idempotency_key="once")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: relay.post(PATH, body), range(8)))

    assert [200] * 7 + [201] == sorted(answer.status_code for answer in answers)
    assert 1 == len({answer.json()["item"]["schedule_id"] for answer in answers})
    assert 1 == relay.get(PATH).json()["total"]


def test_an_item_that_moves_is_still_found(relay, later):
    """An item may come to be about something else; its id stays good, its old link does not."""
    relay.post(PATH, asked(later, schedule_id="sched_m", thread_id="one"))
    body = {"expected_version": 1, "thread_id": None, "task_id": "中文"}
    moved = relay("PATCH", f"{PATH}/sched_m", body)

    assert 200 == moved.status_code
    assert 1 == relay.get(f"{PATH}?task_id=中文").json()["total"]
    assert 0 == relay.get(f"{PATH}?thread_id=one").json()["total"]


@pytest.mark.parametrize("by, status", [("reader", 403), ("unknown", 401)])
def test_who_may_not_write(relay, later, by, status):
    """Scheduling needs `write:projects`; reading does not."""
    assert status == relay.post(PATH, asked(later), by).status_code
    assert {"reader": 200, "unknown": 401}[by] == relay.get(PATH, by).status_code


def test_another_tenant_sees_nothing(served, relay, later):
    """I6: an id of one tenant means nothing in another."""
    relay.post(PATH, asked(later, schedule_id="sched_mine", title="canary"))
    other = served.tenants.tokens("other")["token:owner"]
    with served.server.client(headers={"authorization": f"Bearer {other}"}) as client:
        assert 404 == client.get(f"{PATH}/sched_mine").status_code
        assert 0 == client.get(PATH).json()["total"]


# ── orientations ─────────────────────────────────────────────────────────────────────────────


def pending(number, due_s, **links):
    due_at = translate.stamp(due_s)
    item = {"schedule_id": f"sched_{number:03}", "kind": "reminder", "title": "t", "identity": ""}
    times = dict.fromkeys(("created_at", "updated_at"), due_at)
    who = dict.fromkeys(("created_by", "updated_by"), "owner")
    return ScheduledItem(**item, **times, **who, due_at=due_at, **links)


@pytest.mark.parametrize(
    "due_limit, upcoming_limit, hours, told",
    [(1, 0, 1, (1, 0)), (100, 100, 720, (3, 4)), (3, 4, 2, (3, 2)), (2, 1, 72, (2, 1))],
)
def test_how_much_an_orientation_tells(due_limit, upcoming_limit, hours, told):
    """The three settings bound what is due, what is to come, and how far ahead that may lie."""
    now_s = 1_900_000_000
    due = [pending(at, now_s - at, thread_id="one") for at in range(3)]
    soon = [pending(10 + at, now_s + at * 3600, thread_id="one") for at in range(1, 5)]
    others = [pending(20, now_s - 1), pending(21, now_s - 1, task_id="one")]
    window = translate.Window(
        due_limit=due_limit, upcoming_limit=upcoming_limit, upcoming_hours=hours
    )
    about = [Selector(subject_kind="thread", subject_id="one")]

    found = translate.context_of([*due, *soon, *others], about, window, now_s)

    assert told == (found["due"]["count"], found["upcoming"]["count"])
    assert (told[0] < 3) is found["due"]["truncated"]
    assert (told[1] < min(4, hours)) is found["upcoming"]["truncated"]


def test_settings_reach_the_orientation(run_server, later):
    """What an operator set is what an agent is told."""
    server = run_server(
        None,
        "--surface",
        "cognirelay",
        COGNIRELAY_SCHEDULE_UPCOMING_LIMIT="1",
        COGNIRELAY_SCHEDULE_UPCOMING_WINDOW_HOURS="2",
        CORTEX_EMBEDDER="hashing",
    )
    subject = {"subject_kind": "thread", "subject_id": "one"}
    with server.client() as client:
        for seconds in (600, 1200, 9000):
            client.post(PATH, json=asked(later, due_at=later(seconds), thread_id="one"))
        body = subject | {"view": "startup", "allow_fallback": True}
        found = client.post("/v1/continuity/read", json=body).json()["schedule_context"]

    assert {"window_hours": 2, "count": 1, "truncated": True}.items() <= found["upcoming"].items()


def test_a_reminder_is_found_by_recall(client, later):
    """What was scheduled is an event of its scope: recall finds it and cites it, as it is now."""
    body = asked(later, schedule_id="sched_kiln", title="fire the kiln", thread_id="pottery")
    made = client.post(f"/cognirelay{PATH}", json=body | {"idempotency_key": "kiln"})
    assert 201 == made.status_code, made.text
    change = {"expected_version": 1, "title": "glaze the vases"}
    assert 200 == client.patch(f"/cognirelay{PATH}/sched_kiln", json=change).status_code
    assert 200 == client.post("/v1/admin/flush-views").status_code

    ask = {"scope": "ws:thread-pottery", "query": "what about the kiln and the vases?"}
    pack = client.post("/v1/recall", json=ask).json()
    found = [event["content"]["text"] for event in pack["layers"]["events"]]

    assert ["glaze the vases"] == [text.partition("Z: ")[2] for text in found]
