"""Do two names mean one thing?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projectors.text.names import normal
from projectors.text.stems import singular, stem


@pytest.mark.parametrize(
    "one, other",
    [
        ("The Acme Corp.'s", "acme"),
        ("Acme, Inc.", "ACME"),
        ("Dr. Smith", "smith"),
        ("cats", "Cat"),
        ("companies", "company"),
        ("Anna’s sister", "anna's sister"),
        ("Ｒｏｍｅ", "rome"),
    ],
)
def test_the_same(one, other):
    """Case, articles, titles, possessives, suffixes and plurals do not tell names apart."""
    assert normal(one) == normal(other)


@pytest.mark.parametrize("one, other", [("Adam", "Adams"), ("William", "Williams"), ("C", "C++")])
def test_not_the_same(one, other):
    """A letter that belongs to a name stays."""
    assert normal(one) != normal(other)


def test_no_name():
    """What names nothing is empty."""
    assert "" == normal("?!")


@given(st.text(max_size=40))
def test_normal_is_final(name):
    """The normal form of a normal form is itself."""
    assert normal(name) == normal(normal(name))


def test_stems():
    """Inflected forms share a stem."""
    assert 1 == len({stem(word) for word in ("move", "moves", "moved", "moving")})
    assert "child" == singular("children")
