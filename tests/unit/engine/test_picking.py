"""Does C pick what Python picks, of all that an index found?  (ADR 0046)"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state import picking
from engine.state.index import LAYERS

QUICK = settings(max_examples=200, deadline=None)
SCORES = [0.0, 0.25, 0.5, 0.75]


@pytest.fixture(scope="module")
def picks(compiled):
    return compiled("engine.state.picks")


@st.composite
def compared(draw):
    """Parts with scores of which many are equal, of all rows of a block or of some."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    parts = []
    for layer in draw(st.lists(st.integers(0, 4), max_size=5)):
        count = draw(st.integers(1, 30))
        raws = [chance.bytes(1) * 16 for _ in range(count)]
        scores = chance.choice(SCORES, count) if draw(st.booleans()) else chance.normal(size=count)
        rows = None
        if draw(st.booleans()):
            rows = np.sort(chance.permutation(count)[: draw(st.integers(0, count))])
        scores = scores if rows is None else scores[: len(rows)]
        parts.append((layer, rows, scores.astype(np.float32), raws))
    return parts


@QUICK
@given(parts=compared(), limit=st.integers(1, 60))
def test_the_same_rows_are_nearest(picks, parts, limit):
    """Both give each part the same rows in the same order, to the last bit of their scores."""
    assert picking.nearest(parts, limit) == picks.nearest(parts, limit)


@QUICK
@given(
    found=st.lists(
        st.tuples(
            st.sampled_from([0.5, 1.25, 7.0]),
            st.integers(0, len(LAYERS) - 1),
            st.integers(0, 3),
            st.sampled_from([0, 1, 2**63, 2**64 - 1]),
            st.sampled_from([0, 9, 2**64 - 1]),
        )
    )
)
def test_the_same_hits_come_first(picks, found):
    """Both give the same hits in the same order, whatever order they were found in."""
    given_ = (
        [(score, "address") for score, *_ in found],
        [passage << 8 | layer for _, layer, passage, _, _ in found],
        [high for *_, high, _ in found],
        [low for *_, low in found],
    )

    assert picking.ordered(*given_, LAYERS) == picks.ordered(*given_, LAYERS)


@pytest.mark.parametrize(
    "call",
    [
        ("nearest", [(0, np.array([3]), np.ones(1, "f4"), [b"x" * 16])], 1),
        ("nearest", [(0, np.array([0, 1]), np.ones(1, "f4"), [b"x" * 16])], 1),
        ("nearest", [(0, None, np.ones(1), [b"x" * 16])], 1),
        ("nearest", [(0, None, np.ones(1, "f4"), [b"short"])], 1),
        ("nearest", [], 0),
        ("ordered", [(1.0, None)], [0], [1], [], LAYERS),
        ("ordered", [(1.0, None)], [7], [1], [1], LAYERS),
        ("ordered", [1.0], [0], [1], [1], LAYERS),
    ],
    ids=lambda call: call[0],
)
def test_what_is_not_there_is_refused(picks, call):
    """C reads whatever lies at a place: every place is looked at before it is read."""
    name, *given_ = call

    with pytest.raises(ValueError, match=r"not|two lengths|another kind|nothing"):
        getattr(picks, name)(*given_)
