"""In which order is a capsule cut, and what is said of it?  (000, the two-phase trim order)"""

from datetime import UTC, datetime, timedelta

import pytest

from api.cognirelay.translate import trust
from api.cognirelay.translate.budget import tokens, trimmed
from schemas.surfaces.cognirelay.capsule import CAPSULE

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PAD = "x" * 120
ENTRY = {"kind": "decision", "status": "active", "summary": PAD, "reasoning": PAD}
FULL = CAPSULE.stored(
    {
        "subject_kind": "user",
        "subject_id": "ada",
        "updated_at": "2026-04-30T00:00:00Z",
        "verified_at": "2026-04-30T00:00:00Z",
        "source": {"producer": "p", "update_reason": "manual"},
        "continuity": {
            "top_priorities": [PAD, PAD],
            "active_concerns": [PAD, PAD],
            "active_constraints": [PAD, PAD],
            "open_loops": [PAD, PAD],
            "stance_summary": PAD,
            "drift_signals": [PAD, PAD],
            "working_hypotheses": [PAD],
            "long_horizon_commitments": [PAD],
            "trailing_notes": [PAD],
            "curiosity_queue": [PAD],
            "negative_decisions": [{"decision": PAD, "rationale": PAD}],
            "rationale_entries": [ENTRY | {"tag": "t"}],
            "relationship_model": {
                "trust_level": "high",
                "preferred_style": [PAD],
                "sensitivity_notes": [PAD],
            },
            "retrieval_hints": {"must_include": [PAD], "avoid": [PAD], "load_next": [PAD]},
        },
        "confidence": {"continuity": 1, "relationship_model": 1},
        "attention_policy": {"presence_bias_overrides": [PAD]},
        "freshness": {"freshness_class": "durable"},
        "canonical_sources": ["memory/a.md"],
        "metadata": {"note": PAD},
        "stable_preferences": [{"tag": "t", "content": PAD}],
    }
)
WHOLE_PARTS = [
    "metadata",
    "canonical_sources",
    "freshness",
    "attention_policy.presence_bias_overrides",
    "continuity.relationship_model.sensitivity_notes",
    "continuity.relationship_model.preferred_style",
    "continuity.retrieval_hints.avoid",
    "continuity.retrieval_hints.load_next",
    "continuity.trailing_notes",
    "continuity.curiosity_queue",
    "continuity.rationale_entries",
    "continuity.negative_decisions",
    "continuity.working_hypotheses",
    "stable_preferences",
]


@pytest.mark.parametrize("count", range(1, len(WHOLE_PARTS)))
def test_whole_parts_go_in_their_order(count):
    """With ever less room the next part of the list goes, and none before its turn."""
    room = tokens(FULL)
    while len(cut := trimmed(FULL, room)[1]) < count:
        room -= 1

    assert WHOLE_PARTS[: len(cut)] == cut


def test_the_core_is_shortened_last():
    """Every optional part is gone before a list that orients loses an item."""
    room = tokens(FULL)
    while not any(name.startswith("continuity.open") for name in trimmed(FULL, room)[1]):
        room -= 1
        assert room > 0
    cut = trimmed(FULL, room)[1]

    assert WHOLE_PARTS == cut[: len(WHOLE_PARTS)]
    assert "continuity.drift_signals" in cut


def test_too_little_room_is_none():
    """Where no orientation would be left there is no capsule."""
    assert None is trimmed(FULL, 20)[0]


@pytest.mark.parametrize(
    "days, phase", [(1, "fresh"), (31, "stale_soft"), (46, "stale_hard"), (61, "expired_by_age")]
)
def test_phases_of_a_situational_capsule(days, phase):
    """Fresh for thirty days, then softly and hardly stale, then expired."""
    verified = (NOW - timedelta(days=days)).isoformat()
    old = FULL | {"verified_at": verified, "freshness": {"freshness_class": "situational"}}

    assert phase == trust.phase_of(old, NOW)


def test_expiry_beats_age():
    """Past `expires_at` a capsule has expired, however fresh it is otherwise."""
    gone = FULL | {"freshness": {"expires_at": "2026-04-30T23:59:59Z"}}

    assert "expired" == trust.phase_of(gone, NOW)
    assert ["continuity_expired"] == trust.phase_warnings(gone, NOW)


def test_compact_signals_are_the_least():
    """The compact form has exactly the fields of the contract."""
    assert {
        "compact": True,
        "recency": {"phase": "fresh"},
        "completeness": {"orientation_adequate": True, "trimmed": False},
        "integrity": {"source_state": "active", "health_status": "healthy"},
        "scope_match": {"exact": True},
    } == trust.compact_signals(FULL, NOW, "active")


def test_full_and_compact_signals_are_aggregated():
    """Ages count where they are known; the worst of each dimension is told."""
    full = trust.trust_signals(FULL, NOW, "fallback", ["metadata"])
    compact = trust.compact_signals(FULL, NOW, "active")
    told = trust.aggregate_signals([full, compact], 3, 2, 1)

    assert told is not None
    assert 86_400 == told["recency"]["oldest_updated_age_seconds"]
    assert (True, True) == (told["integrity"]["any_fallback"], told["completeness"]["any_trimmed"])
    assert {
        "selectors_requested": 3,
        "selectors_returned": 2,
        "selectors_omitted": 1,
        "all_returned": False,
    } == told["scope_match"]
    assert None is trust.aggregate_signals([], 1, 0, 1)
