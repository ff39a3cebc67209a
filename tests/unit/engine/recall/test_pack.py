"""Does a pack say numbers as they are?"""

from types import SimpleNamespace

from hypothesis import example, given
from hypothesis import strategies as st

from engine.recall.pack import scores_of

HALFWAY = st.integers(0, 20_000).map(lambda at: at / 20_000)


@given(scores=st.lists(st.floats(-0.5, 1.5) | HALFWAY))
@example(scores=[0.0, 1.0, 0.00005, 0.99995, 0.5])
def test_scores_have_four_places(scores):
    """As Python rounds and JSON writes them, also those that lie between two."""
    shown = [SimpleNamespace(score=score) for score in scores]

    assert [str(round(score, 4)) for score in scores] == [
        format(float(text), "") for text in scores_of(shown)
    ]
