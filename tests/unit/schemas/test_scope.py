"""Does a scope path follow the grammar, and what are its ancestors?  (001 §3.4, DESIGN §8.8)"""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import limits
from schemas.errors import InvalidScope
from schemas.scope import (
    ACTOR_PATTERN,
    CALLER_TYPES,
    SCOPE_PATTERN,
    ancestors,
    is_actor,
    parse_scope,
)

SEGMENTS = st.from_regex(r"[a-z][a-z0-9_]{0,31}:[A-Za-z0-9_-]{1,64}", fullmatch=True)
SCOPES = st.lists(SEGMENTS, min_size=1, max_size=32).map("/".join)


@given(SCOPES)
def test_the_grammar_is_accepted(scope):
    """Up to 32 segments of type:id."""
    assert scope == parse_scope(scope)


@pytest.mark.parametrize(
    "scope",
    [
        "org:acme/dept:eng/user:alice",
        "ws:acme-q3-launch",
        "system:strata",
        "a:b",
        "x_9:-_",
        "/".join(["a:b"] * 32),
        "a" * 32 + ":" + "b" * 128,
    ],
)
def test_scopes_of_the_seed_and_of_the_edge(scope):
    """Reserved types, own types, and the largest of everything."""
    assert scope == parse_scope(scope)


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "acme",
        "org:",
        ":acme",
        "Org:acme",
        "org:ac me",
        "org:acme/",
        "/org:acme",
        "org:acme//user:a",
        "org:acme\n",
        "\norg:acme",
        "org:acme\x00",
        "org:å",
        "org:*",
        "9org:a",
        "a" * 33 + ":b",
        "a:" + "b" * 129,
        "/".join(["a:b"] * 33),
        "/".join(["a:" + "b" * 127] * 32),
    ],
)
def test_what_is_no_scope(scope):
    """InvalidScope names the field and shows no more than the beginning."""
    with pytest.raises(InvalidScope) as raised:
        parse_scope(scope)

    assert "scope" == raised.value.details["field"]
    assert scope[:200] == raised.value.details["value"]


def test_the_pattern_and_the_limits_agree():
    """The numbers in the pattern are those of limits.py."""
    found = [int(number) for number in re.findall(r"\{\d+,(\d+)\}", SCOPE_PATTERN)]
    type_max, id_max = limits.SCOPE_TYPE_CHARS_MAX, limits.SCOPE_ID_CHARS_MAX

    assert {type_max - 1, id_max, limits.SCOPE_SEGMENTS_MAX - 1} == set(found)
    assert str(id_max) in ACTOR_PATTERN


@given(SCOPES)
def test_ancestors_go_up_to_the_root(scope):
    """The scope itself first, then each parent, every one a scope."""
    walked = ancestors(scope)

    assert scope == walked[0]
    assert scope.count("/") + 1 == len(walked)
    assert all(child.startswith(parent + "/") for child, parent in pairwise(walked))
    assert all(parse_scope(one) == one for one in walked)


def test_ancestors_of_a_path():
    """Nearest first: what a holistic read walks."""
    assert ["org:a/dept:b/user:c", "org:a/dept:b", "org:a"] == ancestors("org:a/dept:b/user:c")


@pytest.mark.parametrize(
    "actor", ["user:alice", "agent:support_bot_v3", "user:priya@acme", "service:a.b+c=d~e-f"]
)
def test_actors(actor):
    """Names as the seed writes them, mail addresses too."""
    assert is_actor(actor)


@pytest.mark.parametrize(
    "actor",
    ["", "alice", "user:", "user:a b", "user:a\n", "user:a/b", "User:a", "user:" + "x" * 129],
)
def test_what_is_no_actor(actor):
    """type:id, one segment, no white space."""
    assert not is_actor(actor)


def test_who_may_call():
    """Users, agents, services and the system (001 §0)."""
    assert {"user", "agent", "service", "system"} == CALLER_TYPES
