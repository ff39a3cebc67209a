"""Does a pack say numbers as they are?"""

from hypothesis import example, given
from hypothesis import strategies as st

from engine.recall.pack import score_of

HALFWAY = st.integers(0, 20_000).map(lambda at: at / 20_000)


@given(score=st.floats(-0.5, 1.5) | HALFWAY)
@example(score=0.0)
@example(score=1.0)
@example(score=0.99995)
def test_a_score_has_four_places(score):
    """As Python rounds it, also where it lies between two, and the same again."""
    found = score_of(score)

    assert round(score, 4) == float(found)
    assert found == score_of(score)
    assert found == f"{score:.4f}".rstrip("0") + ("0" if found.endswith(".0") else "")
