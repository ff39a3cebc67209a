"""Does an orientation keep its bounds, its order and its counsel?  (000, context/retrieve)"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas import limits

UPSERT = "/v1/continuity/upsert"
RETRIEVE = "/v1/context/retrieve"
LONG = "w" * 150


NOW = datetime.now(UTC)  # One moment a run: what is asked twice is the same.


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def upsert(relay: Any, kind: str, subject: str, **changes: Any) -> None:
    """Store a capsule that is not short."""
    made = {
        "subject_kind": kind,
        "subject_id": subject,
        "updated_at": ago(60),
        "verified_at": ago(60),
        "source": {"producer": "weaver", "update_reason": "manual"},
        "continuity": {
            "top_priorities": [LONG, LONG[1:]],
            "active_concerns": [LONG],
            "active_constraints": [LONG],
            "open_loops": [LONG],
            "stance_summary": LONG,
            "drift_signals": [LONG],
            "trailing_notes": [LONG],
            "curiosity_queue": [LONG[:100]],
        },
        "confidence": {"continuity": 0.5, "relationship_model": 0.5},
    } | changes
    body = {"subject_kind": kind, "subject_id": subject, "capsule": made}
    answer = relay.post(UPSERT, body)
    assert 200 == answer.status_code, answer.text


def state_of(relay: Any, **asked: Any) -> dict[str, Any]:
    answer = relay.post(RETRIEVE, {"task": "go on"} | asked)
    assert 200 == answer.status_code, answer.text
    found: dict[str, Any] = answer.json()["bundle"]["continuity_state"]
    return found


def selector(kind: str, subject: str) -> dict[str, str]:
    return {"subject_kind": kind, "subject_id": subject}


@pytest.mark.parametrize(
    "field, least, most",
    [
        ("max_tokens_estimate", *limits.CONTEXT_TOKENS[1:]),
        ("time_window_days", *limits.CONTEXT_WINDOW_DAYS[1:]),
        ("limit", *limits.CONTEXT_ITEMS[1:]),
        ("continuity_max_capsules", 1, limits.CONTEXT_CAPSULES_MAX),
    ],
)
def test_a_number_at_its_edges(relay, field, least, most):
    """At both ends it is taken, one beyond it is refused by name."""
    statuses = [
        relay.post(RETRIEVE, {"task": "go on", field: value}).status_code
        for value in (least - 1, least, most, most + 1)
    ]

    assert [422, 200, 200, 422] == statuses


def test_selectors_at_their_edge(relay):
    """Four are taken, five are not."""
    four = [selector("user", f"u{number}") for number in range(limits.CONTEXT_CAPSULES_MAX)]
    taken = relay.post(RETRIEVE, {"task": "go on", "continuity_selectors": four})
    refused = relay.post(RETRIEVE, {"task": "x", "continuity_selectors": [*four, four[0]]})

    assert (200, 422) == (taken.status_code, refused.status_code)


def test_warnings_come_in_the_order_of_selectors(relay):
    """What is said of the first selector is said before what is said of the next."""
    descriptor = {"label": "Old"}
    upsert(relay, "thread", "old", thread_descriptor=descriptor)
    moved = {
        "subject_kind": "thread",
        "subject_id": "old",
        "transition": "supersede",
        "superseded_by": "new",
        "updated_at": ago(10),
    }
    assert 200 == relay.post("/v1/continuity/lifecycle", moved).status_code
    named = [selector("thread", "old"), selector("user", "nobody")]
    state = state_of(relay, continuity_selectors=named, continuity_max_capsules=2)

    assert [
        "continuity_capsule_superseded:thread:old→new:thread:old",
        "continuity_active_missing:user:nobody",
        "continuity_fallback_missing:user:nobody",
    ] == state["recovery_warnings"]
    assert ["user:nobody"] == state["omitted_selectors"]


@pytest.mark.parametrize("budget", [256, 400, 500, 700, 1000, 2000])
def test_what_is_delivered_fits_the_budget(relay, budget):
    """Capsules, trust and salience together stay within what was asked for, or say why not."""
    upsert(relay, "task", "a")
    upsert(relay, "user", "b")
    named = [selector("task", "a"), selector("user", "b")]
    state = state_of(
        relay, continuity_selectors=named, continuity_max_capsules=2, max_tokens_estimate=budget
    )
    spent = state["budget"]["continuity_tokens_used"]
    # Each capsule ends with the names of its two blocks, which the original does not count either.
    names = 12 * len(state["capsules"])

    assert spent <= budget + names
    assert len(named) == len(state["capsules"]) + len(state["omitted_selectors"])
    if not state["capsules"]:
        assert state["warnings"]


def test_trimming_is_told(relay):
    """What was cut is named where there is room to say so, and the block says it in any case."""
    upsert(relay, "task", "a", metadata={"note": "n" * 2000})
    whole = state_of(relay, subject_kind="task", subject_id="a")["capsules"][0]
    cut = state_of(relay, subject_kind="task", subject_id="a", max_tokens_estimate=700)

    assert "metadata" in whole
    assert "metadata" not in cut["capsules"][0]
    assert cut["trust_signals"]["completeness"]["any_trimmed"]


def test_without_capsules_the_rest_is_there(relay):
    """Mode off: no capsules, no graph, also for a name that is no subject's."""
    asked = {"task": "go on", "subject_kind": "thread", "subject_id": "中文"}
    off = relay.post(RETRIEVE, asked | {"continuity_mode": "off"})
    auto = relay.post(RETRIEVE, asked)

    assert (200, 400) == (off.status_code, auto.status_code)
    assert not off.json()["bundle"]["continuity_state"]["present"]


def test_half_a_subject_is_none(relay):
    """A kind without an id, or the other way round, is refused."""
    for half in ({"subject_kind": "task"}, {"subject_id": "t"}):
        assert 400 == relay.post(RETRIEVE, {"task": "go on"} | half).status_code


def test_who_may_not_search_gets_no_bearings(relay):
    """`search` is a scope of its own."""
    answer = relay.post(RETRIEVE, {"task": "go on"}, by="reader")

    assert (403, "Missing scope: search") == (answer.status_code, answer.json()["detail"])
