"""Which archive is stale, and which labels lead to a capsule?"""

from datetime import UTC, datetime, timedelta

import pytest

from api.cognirelay.translate.listing import labels_meant, labels_of, retention_class

THEN = datetime(2026, 1, 1, tzinfo=UTC)
FILTERS = (
    "label_exact",
    "anchor_value",
    "scope_anchor",
    "keyword",
    "anchor_kind",
    "lifecycle",
    "subject_kind",
)


@pytest.mark.parametrize("days", [1, 90])
def test_an_archive_is_stale_after_its_days(days):
    """To the very second of the setting it is recent; then it is stale."""
    ages = [timedelta(days=days), timedelta(days=days, seconds=1)]
    classes = [retention_class("2026-01-01T00:00:00Z", THEN + age, days) for age in ages]

    assert ["archive_recent", "archive_stale"] == classes


@pytest.mark.parametrize(
    "asked",
    [
        {"subject_kind": "thread"},
        {"lifecycle": "active"},
        {"keyword": " WAL "},
        {"scope_anchor": "Task:X"},
        {"label_exact": "Loom"},
        {"anchor_kind": " Repo"},
        {"anchor_value": "a/b"},
        {"lifecycle": "active", "keyword": "wal", "anchor_kind": "repo", "anchor_value": "a/b"},
    ],
)
def test_what_is_meant_has_the_label(asked):
    """Whatever a listing filters by leads to the capsule, in the spelling in which it is asked."""
    capsule = {
        "subject_kind": "thread",
        "thread_descriptor": {
            "label": "Loom",
            "lifecycle": "active",
            "keywords": ["wal", "log"],
            "scope_anchors": ["task:x"],
            "identity_anchors": [{"kind": "repo", "value": "a/b"}],
        },
    }
    meant = labels_meant(dict.fromkeys(FILTERS) | asked)

    assert meant is not None
    assert set(meant) <= set(labels_of(capsule))


def test_without_a_filter_any_capsule_is_meant():
    """Then there is no label to go by."""
    assert labels_meant(dict.fromkeys(FILTERS)) is None
