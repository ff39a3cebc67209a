"""A deal over three months, told out of order, corrected and partly taken back: asked at any time.

Each question names two moments: when we knew, and what about.
"""

import pytest

ACME = {"name": "Acme"}

MARCH_10, MARCH_25 = "2026-03-10T00:00:00Z", "2026-03-25T00:00:00Z"
APRIL_15, MAY_20 = "2026-04-15T00:00:00Z", "2026-05-20T00:00:00Z"

TOLD = {
    "intro": ("2026-03-02T09:00:00Z", ACME, "deal_stage", "intro"),
    "signed": ("2026-05-13T15:42:00Z", ACME, "deal_stage", "signed"),
    "close": ("2026-04-10T11:00:00Z", ACME, "deal_stage", "close"),
    "poc": ("2026-03-20T16:00:00Z", ACME, "deal_stage", "poc"),
    "seats": ("2026-05-13T15:42:00Z", ACME, "seat_count", 200),
    "corrected": ("2026-05-13T15:42:00Z", ACME, "seat_count", 250),
}
"""The first call in March, the signature before the days that led to it, the seats wrong, then
right."""

STAGES = [
    ("intro", MARCH_10, "intro"),
    ("intro", MAY_20, "intro"),
    ("signed", APRIL_15, "intro"),
    ("signed", MAY_20, "signed"),
    ("close", MARCH_25, "intro"),
    ("close", APRIL_15, "close"),
    ("close", MAY_20, "signed"),
    ("poc", MARCH_10, "intro"),
    ("poc", MARCH_25, "poc"),
    ("poc", APRIL_15, "close"),
    ("retracted", APRIL_15, "close"),
    ("retracted", MAY_20, "close"),
]
SEATS = [
    ("poc", MAY_20, []),
    ("seats", MAY_20, [200]),
    ("corrected", MAY_20, [250]),
    ("corrected", APRIL_15, []),
    ("retracted", MAY_20, [250]),
]


@pytest.fixture(scope="module")
def story(server):
    """Tell it once; the scope, and when each thing was known."""
    scope = "org:tests/project:acme-deal"
    with server.client() as client:
        items = [
            {
                "scope": scope,
                "modality": "conversation",
                "content": {
                    "kind": "triple",
                    "triple": {"subject": subject, "predicate": predicate, "object": value},
                },
                "context": {"observed_at": at},
                "idempotency_key": f"story-{name}",
            }
            for name, (at, subject, predicate, value) in TOLD.items()
        ]
        assert 202 == client.post("/v1/experience/bulk", json={"items": items}).status_code
        assert 200 == client.post("/v1/admin/flush-views").status_code
        known, ids = {}, {}
        for name in TOLD:
            status = client.get(f"/v1/experience/by-idempotency-key/story-{name}").json()
            event = client.get(f"/v1/events/{status['event_id']}").json()
            known[name], ids[name] = event["context"]["recorded_at"], event["id"]
        # Nothing was signed after all: the customer only said that they would.
        path = f"/v1/lifecycle/memory-event/{ids['signed']}/cancel"
        assert 200 == client.post(path, json={"audit_note": "misheard"}).status_code
        assert 200 == client.post("/v1/admin/flush-views").status_code
    return scope, known


@pytest.fixture
def ask(everything, story):
    """What was the value at a moment, as known at another?"""
    scope, known = story

    def asked(predicate, when_known, about):
        parameters = {"scope": scope, "subject": "Acme", "predicate": predicate}
        if when_known in known:
            parameters["as_of"] = known[when_known]
        parameters["valid_during"] = f"{about}..{about.replace('00Z', '01Z')}"
        return [fact["object"]["value"] for fact in everything("/v1/facts", **parameters)]

    return asked


@pytest.mark.parametrize("known, about, stage", STAGES)
def test_the_stage_of_the_deal(ask, known, about, stage):
    """One value at any pair of times, whatever order it was told in."""
    assert [stage] == ask("deal_stage", known, about)


@pytest.mark.parametrize("known, about, seats", SEATS)
def test_the_seats_that_were_wrong(ask, known, about, seats):
    """What was corrected was never so, and was believed until then."""
    assert seats == ask("seat_count", known, about)


def test_the_timeline_as_it_stands(api, story):
    """In the order of time, each stage ending where the next begins; the retracted one is out."""
    scope, _ = story
    parameters = {"scope": scope, "subject": "Acme", "predicate": "deal_stage"}
    rows = api.get("/v1/facts/timeline", params=parameters).json()["timeline"]

    assert ["intro", "poc", "close"] == [row["value"] for row in rows]
    assert [row["valid_to"] for row in rows[:-1]] == [row["valid_from"] for row in rows[1:]]
    assert rows[-1]["valid_to"] is None


def test_the_timeline_before_the_retraction(api, story):
    """A later entry does not change an answer as of before it."""
    scope, known = story
    parameters = {"scope": scope, "subject": "Acme", "predicate": "deal_stage"}
    rows = api.get("/v1/facts/timeline", params=parameters | {"as_of": known["poc"]}).json()

    assert ["intro", "poc", "close", "signed"] == [row["value"] for row in rows["timeline"]]


def test_what_is_believed_follows(everything, story):
    """The belief in the signature is gone, the one in the stage before it stands."""
    scope, _ = story
    beliefs = everything("/v1/beliefs", scope=scope, predicate="deal_stage")

    assert ["close"] == [belief["claim"]["object"]["value"] for belief in beliefs]
