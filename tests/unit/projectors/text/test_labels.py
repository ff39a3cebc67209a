"""Is the extractor as good as it is said to be?  The bars of the labelled set, as a test."""

import pytest

from bench.extraction import PRECISION_MIN, RECALL_MIN, reaches, score
from bench.labels import judge, labels

SET = labels()
VERDICTS = [judge(label) for label in SET]


@pytest.mark.parametrize("part", ["tuned", "held"])
def test_bars(part):
    """Precision and recall reach the bars on either part of the labelled set."""
    found = score([verdict for verdict in VERDICTS if verdict.label.part == part])

    assert found.precision >= PRECISION_MIN
    assert found.recall >= RECALL_MIN


@pytest.mark.parametrize("name", sorted({label.class_ for label in SET}))
def test_bars_of_a_class(name):
    """Every class reaches both bars by itself: a strong one does not hide a weak one."""
    assert reaches(score([verdict for verdict in VERDICTS if verdict.label.class_ == name]))


def test_what_tells_nothing_is_left_alone():
    """Of the sentences that tell nothing, hardly any yields a candidate."""
    found = score(VERDICTS)

    assert found.silent >= 0.95 * found.must_be_silent


def test_labels_are_enough():
    """At least 200 sentences, each of its own, in both halves."""
    texts = [label.text for label in SET]

    assert len(texts) >= 200
    assert len(texts) == len(set(texts))
    assert {"tuned", "held"} == {label.part for label in SET}
