"""Do ids, scopes and the chain keep their promises for every input, not just the likely ones?"""

import string
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from engine.lifecycle import pack_stages, unpack_stages
from engine.state.log import GENESIS, chain_link
from schemas import limits
from schemas.errors import InvalidScope
from schemas.ids import (
    PREFIXES,
    derive_id,
    format_id,
    parse_id,
    uuid7,
    uuid7_first,
    uuid7_instant_us,
)
from schemas.scope import ScopePath, ancestors, is_actor, parse_scope
from schemas.times import from_us, to_us

LAST_US = to_us(datetime(9999, 12, 31, tzinfo=UTC))
instants = st.integers(0, LAST_US)
entropies = st.integers(0, 2**70)
prefixes = st.sampled_from(sorted(PREFIXES))
sources = st.builds(uuid7, instants, entropies)
ordinals = st.integers(0, 2**32)

# Ids


@given(us=instants, entropy=entropies, prefix=prefixes)
@example(us=0, entropy=0, prefix="evt")
@example(us=999, entropy=2**62 - 1, prefix="lce")
def test_an_id_comes_back(us, entropy, prefix):
    """Text, bytes and microsecond say the same; it is a UUIDv7 by its version and variant."""
    raw = uuid7(us, entropy)
    text = format_id(prefix, raw)

    assert raw == parse_id(prefix, text)
    assert us == uuid7_instant_us(raw)
    assert (7, 0b10) == (raw[6] >> 4, raw[8] >> 6)


@given(one=instants, other=instants, entropies=st.tuples(entropies, entropies))
def test_ids_sort_as_their_instants(one, other, entropies):
    """Whatever their entropy, bytes and text of a later microsecond are greater."""
    assume(one < other)
    early, late = uuid7(one, entropies[0]), uuid7(other, entropies[1])

    assert early < late
    assert format_id("evt", early) < format_id("evt", late)
    assert uuid7_first(one) <= early < uuid7_first(other) <= late


@given(prefix=prefixes, other=prefixes, raw=sources, text=st.text(max_size=60))
def test_only_its_own_prefix_reads_an_id(prefix, other, raw, text):
    """An id of another kind, or any other text, is None and never an error."""
    assume(prefix != other)

    assert None is parse_id(other, format_id(prefix, raw))
    assert None is parse_id(prefix, f"{prefix}_{text}") or len(text) == 36
    assert None is parse_id(prefix, format_id(prefix, raw) + "\n")


@given(prefix=prefixes, source=sources, ordinal=ordinals)
def test_a_derived_id_follows_from_its_entry(prefix, source, ordinal):
    """The same on every replay, and with the time of its entry (docs/adr/0009)."""
    derived = derive_id(prefix, source, ordinal)
    raw = parse_id(prefix, derived)

    assert derived == derive_id(prefix, source, ordinal)
    assert uuid7_instant_us(source) == uuid7_instant_us(raw)


@given(
    one=st.tuples(prefixes, sources, ordinals),
    other=st.tuples(prefixes, sources, ordinals),
)
def test_other_arguments_derive_another_id(one, other):
    """Prefix, entry and ordinal each tell two records apart, also by their sixteen bytes."""
    assume(one != other)
    raws = {parse_id(prefix, derive_id(prefix, *rest)) for prefix, *rest in (one, other)}

    assert 2 == len(raws)


@given(raws=st.lists(st.none() | sources, max_size=5))
def test_the_stages_row_comes_back(raws):
    """Which announcements an entry has had; what is missing at the end takes no room."""
    while raws and raws[-1] is None:
        raws.pop()

    assert raws == unpack_stages(pack_stages(raws))


# Scopes

LOWER, IDS = string.ascii_lowercase, string.ascii_letters + string.digits + "_-"
kinds = st.builds(
    str.__add__,
    st.sampled_from(LOWER),
    st.text(LOWER + string.digits + "_", max_size=31),
)
names = st.text(IDS, min_size=1, max_size=128)
segments = st.builds("{}:{}".format, kinds, names)
paths = st.lists(segments, min_size=1, max_size=32).map("/".join)
near_paths = st.text("aZ0_-:/ .\né", max_size=12) | st.lists(
    st.builds("{}:{}".format, st.text(IDS + "é", max_size=34), st.text(IDS + ".\n", max_size=130)),
    max_size=34,
).map("/".join)


def is_scope(text: str) -> bool:
    """001 Appendix B, spelt out."""
    parts = text.split("/")
    if not 0 < len(parts) <= limits.SCOPE_SEGMENTS_MAX or len(text) > limits.SCOPE_CHARS_MAX:
        return False
    for part in parts:
        kind, colon, name = part.partition(":")
        if not (
            colon
            and kind[:1] in tuple(LOWER)
            and set(kind) <= set(LOWER + string.digits + "_")
            and len(kind) <= limits.SCOPE_TYPE_CHARS_MAX
            and 0 < len(name) <= limits.SCOPE_ID_CHARS_MAX
            and set(name) <= set(IDS)
        ):
            return False
    return True


@given(path=paths)
def test_every_path_of_the_grammar_is_taken(path):
    """As it is; only its length may be too much."""
    if len(path) <= limits.SCOPE_CHARS_MAX:
        assert path == parse_scope(path) == msgspec.convert(path, ScopePath)
    else:
        with pytest.raises(InvalidScope):
            parse_scope(path)


@given(text=near_paths | paths)
@example(text="")
@example(text="org:acme\n")
@example(text="org:acme/")
@example(text="a:" + "x" * 129)
@example(text="/".join(["a:b"] * 33))
def test_the_grammar_is_that_of_the_seed(text):
    """What the appendix allows is taken, and everything else is refused, by parser and schema."""
    expected = is_scope(text)
    taken = []
    for ask in (parse_scope, lambda path: msgspec.convert(path, ScopePath)):
        try:
            ask(text)
            taken.append(True)
        except (InvalidScope, msgspec.ValidationError):
            taken.append(False)

    assert [expected, expected] == taken


@given(path=paths)
def test_ancestors_are_the_path_cut_shorter(path):
    """The scope itself first, then each parent, up to the root; all of them scopes."""
    assume(len(path) <= limits.SCOPE_CHARS_MAX)
    found = ancestors(path)

    assert path == found[0]
    assert path.count("/") + 1 == len(found)
    for child, parent in pairwise(found):
        assert parent == child.rpartition("/")[0]
        assert parent == parse_scope(parent)


@given(text=segments | near_paths | st.text(max_size=10))
def test_every_segment_is_an_actor_and_no_path_is(text):
    """Actors are written like a scope's segment, with a few more characters in the name."""
    if is_scope(text) and "/" not in text:
        assert is_actor(text) == (len(text) <= limits.ACTOR_ID_CHARS_MAX)
    if "/" in text or "\n" in text or ":" not in text:
        assert not is_actor(text)


# Times


@given(us=instants)
def test_an_instant_comes_back(us):
    """Microseconds and instants are one thing, to the last digit."""
    assert us == to_us(from_us(us))
    assert UTC is from_us(us).tzinfo


# The chain


@given(
    headers=st.lists(st.binary(max_size=8), min_size=1, max_size=8),
    other=st.lists(st.binary(max_size=8), max_size=8),
)
def test_a_chain_tells_its_whole_past(headers, other):
    """Two pasts that differ anywhere, also in where a header ends, have different chains."""

    def link(past):
        chain = GENESIS
        for header in past:
            chain = chain_link(chain, header)
        return chain

    assert (headers == other) == (link(headers) == link(other))
