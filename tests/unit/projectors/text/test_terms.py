"""Which term of a vocabulary does a free predicate mean?"""

import pytest

from projectors.text.shapes import Term
from projectors.text.terms import MATCH_MIN, best

SALES = (
    Term(id="deal_stage", datatype="string", values=("intro", "poc", "close", "signed", "lost")),
    Term(id="seat_count", datatype="integer"),
    Term(id="works_at", datatype="entity", aliases=("employer", "employed_by")),
)


@pytest.mark.parametrize(
    "predicate, value, term",
    [
        ("seat_count", 200, "seat_count"),
        ("seatCount", "1,200", "seat_count"),
        ("moved_to_seat_count", 200, "seat_count"),
        ("number_of_seats", 200, "seat_count"),
        ("employer", "Acme", "works_at"),
        ("employed_by", "Acme", "works_at"),
        ("deal_stage", "poc", "deal_stage"),
        ("status", "closed", "deal_stage"),
    ],
)
def test_mapped(predicate, value, term):
    """Spelling, aliases, synonyms and listed values lead to the term."""
    found = best(predicate, value, SALES)

    assert term == found.term.id
    assert MATCH_MIN <= found.confidence <= 1


@pytest.mark.parametrize(
    "predicate, value",
    [("seat_count", "many"), ("likes", "tea"), ("status", "blocked"), ("", None), ("___", 1)],
)
def test_free(predicate, value):
    """A predicate that is not near, or an object of another datatype, stays free text."""
    assert best(predicate, value, SALES) is None


def test_value_in_the_terms_spelling():
    """The object comes back as the vocabulary spells it."""
    assert "close" == best("status", "closed", SALES).value
    assert 1200 == best("seat_count", "1,200", SALES).value


def test_exact_is_surest():
    """The term's own name is surer than an alias, an alias than a synonym."""
    spelled = [best(name, "Acme", SALES).confidence for name in ("works_at", "employer", "job_at")]

    assert sorted(spelled, reverse=True) == spelled
    assert 1.0 == spelled[0]
