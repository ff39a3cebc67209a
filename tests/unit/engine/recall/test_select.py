"""The choice under the budget: caps, knapsack, novelty, and what did not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.recall.select import Frame, select
from engine.recall.shapes import Offer

LAYERS = ("events", "facts", "episodes")
MANY = dict.fromkeys(LAYERS, 100)


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


def ids(offers):
    return [offer.id for offer in offers]


offers = st.lists(
    st.builds(
        lambda layer, score, tokens, angle: (
            layer,
            score,
            tokens,
            unit(np.cos(angle), np.sin(angle)),
        ),
        st.sampled_from(LAYERS),
        st.floats(0, 1),
        st.integers(1, 60),
        st.floats(0, 6),
    ),
    max_size=20,
).map(lambda rows: [Offer(row[0], f"id{n}", *row[1:]) for n, row in enumerate(rows)])
caps = st.fixed_dictionaries({layer: st.integers(0, 8) for layer in LAYERS})
frames = st.builds(
    Frame, st.integers(0, 30), st.fixed_dictionaries({layer: st.integers(0, 5) for layer in LAYERS})
)


@given(offers, caps, st.integers(0, 300), frames, st.floats(0, 1))
def test_budget_and_caps_are_never_exceeded(offered, capped, budget, frame, mmr_lambda):
    """Whatever is offered, the pack costs at most its budget, and no layer is over its cap."""
    chosen = select(offered, capped, budget, frame, mmr_lambda)

    opened = {offer.layer for offer in chosen.chosen}
    paid = sum(offer.tokens for offer in chosen.chosen) + sum(frame.heading[n] for n in opened)
    assert chosen.used_tokens == (paid + frame.whole if chosen.chosen else 0)
    assert chosen.used_tokens <= budget
    for layer in LAYERS:
        assert sum(offer.layer == layer for offer in chosen.chosen) <= capped[layer]


@given(offers, caps, st.integers(0, 300), frames, st.floats(0, 1))
def test_what_did_not_fit_is_told(offered, capped, budget, frame, mmr_lambda):
    """Everything within the caps is either taken or reported with its price."""
    chosen = select(offered, capped, budget, frame, mmr_lambda)
    unlimited = select(offered, capped, 10**9, frame, mmr_lambda)

    assert sorted(ids(unlimited.chosen)) == sorted(ids(chosen.chosen + chosen.evicted))
    assert chosen.is_binding == bool(chosen.evicted)


def test_all_that_fits_comes_in_the_order_of_its_score():
    """Without a choice to make, novelty plays no part."""
    twin = unit(1, 0)
    offered = [
        Offer("facts", "b", 0.5, 5, unit(0, 1)),
        Offer("facts", "a", 0.9, 5, twin),
        Offer("facts", "c", 0.8, 5, twin),
    ]

    assert ["a", "c", "b"] == ids(select(offered, MANY, 15, mmr_lambda=0.1).chosen)


def test_a_long_item_makes_way_for_shorter_ones():
    """What does not fit is passed over, and the next that fits is taken."""
    offered = [
        Offer("events", "best", 0.9, 30, None),
        Offer("events", "long", 0.8, 80, None),
        Offer("events", "short", 0.7, 10, None),
    ]
    chosen = select(offered, MANY, 50)

    assert ["best", "short"] == ids(chosen.chosen)
    assert [("long", 80)] == [(offer.id, offer.tokens) for offer in chosen.evicted]


@pytest.mark.parametrize(
    "mmr_lambda, expected",
    [
        (1.0, ["first", "same"]),
        (0.9, ["first", "same"]),
        (0.3, ["first", "other"]),
    ],
)
def test_novelty_counts_only_as_much_as_it_is_asked_to(mmr_lambda, expected):
    """At the default a near repetition that scores higher stays; a low lambda prefers the new."""
    offered = [
        Offer("events", "first", 0.9, 10, unit(1, 0)),
        Offer("events", "same", 0.8, 10, unit(1, 0.1)),
        Offer("events", "other", 0.65, 10, unit(0, 1)),
    ]
    chosen = select(offered, MANY, 20, mmr_lambda=mmr_lambda)

    assert expected == ids(chosen.chosen)
    assert (expected[1] == "other") == (chosen.given_up > 0)


def test_the_cap_cuts_by_score():
    """A layer's cap keeps its best, whatever else they are like."""
    offered = [Offer("facts", str(n), n / 10, 1, unit(1, 0)) for n in range(8)]

    assert ["7", "6", "5"] == ids(select(offered, {"facts": 3}, 100).chosen)
