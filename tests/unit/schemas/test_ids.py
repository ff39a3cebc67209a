"""Do ids sort as they were made, and follow from their source alone?  (001 §3.6)"""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import (
    PREFIXES,
    derive_id,
    format_id,
    parse_id,
    uuid7,
    uuid7_first,
    uuid7_instant_us,
)

LAST_US = (1 << 48) * 1000 - 1
INSTANTS = st.integers(min_value=0, max_value=LAST_US)
ENTROPY = st.integers(min_value=0, max_value=(1 << 62) - 1)
PREFIX = st.sampled_from(sorted(PREFIXES))
SOURCE = uuid7(1_747_147_320_123_456, 42)


def test_every_prefix_of_the_seed():
    """001 §3.6 names nineteen."""
    listed = (
        "evt ep fact belief concept lce job batch imp exp ervw erasure pack audit blob ent "
        "concept_alias req tok"
    )

    assert set(listed.split()) == set(PREFIXES)


@given(INSTANTS, ENTROPY)
def test_an_id_is_a_uuid_of_version_seven(instant_us, entropy):
    """RFC 9562: version 7, its variant, and milliseconds in the first 48 bits."""
    made = uuid.UUID(bytes=uuid7(instant_us, entropy))

    assert 7 == made.version
    assert uuid.RFC_4122 == made.variant
    assert instant_us // 1000 == made.int >> 80


@given(INSTANTS, ENTROPY)
def test_the_instant_is_in_the_id(instant_us, entropy):
    """To the microsecond, exactly."""
    assert instant_us == uuid7_instant_us(uuid7(instant_us, entropy))


@given(st.lists(st.tuples(INSTANTS, ENTROPY), min_size=2, unique_by=lambda pair: pair[0]))
def test_ids_sort_by_their_instant(pairs):
    """As bytes and as text, whatever the rest of them holds."""
    by_time = [uuid7(*pair) for pair in sorted(pairs)]

    assert by_time == sorted(by_time)
    assert [format_id("evt", raw) for raw in by_time] == sorted(
        format_id("evt", raw) for raw in by_time
    )


@given(INSTANTS.filter(lambda us: us < LAST_US), ENTROPY)
def test_the_first_id_of_an_instant_is_a_bound(instant_us, entropy):
    """Every id of the microsecond lies at or after it, every earlier one before."""
    made = uuid7(instant_us, entropy)

    assert uuid7_first(instant_us) <= made < uuid7_first(instant_us + 1)


@given(PREFIX, INSTANTS, ENTROPY)
def test_parse_undoes_format(prefix, instant_us, entropy):
    """The text form loses nothing."""
    raw = uuid7(instant_us, entropy)

    assert raw == parse_id(prefix, format_id(prefix, raw))


def test_the_text_form():
    """Prefix, underscore, the usual five groups in lower case."""
    assert "evt_0196ca18-6b3b-774b-8000-00000000002a" == format_id("evt", SOURCE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "evt_",
        "evt_01HX",
        "lce_0196ca18-6b3b-774b-8000-00000000002a",
        "evt0196ca18-6b3b-774b-8000-00000000002a",
        "evt_0196CA18-6B3B-774B-8000-00000000002A",
        "evt_0196ca18-6b3b-474b-8000-00000000002a",
        "evt_0196ca18-6b3b-774b-c000-00000000002a",
        "evt_0196ca186b3b774b800000000000002a",
        "evt_0196ca18-6b3b-774b-8000-00000000002a\n",
        " evt_0196ca18-6b3b-774b-8000-00000000002a",
        "evt_0196ca18-6b3b-774b-8000-00000000002a0",
        "evt_٠196ca18-6b3b-774b-8000-00000000002a",
    ],
)
def test_what_is_no_id(text):
    """Another prefix, version, variant, case or length is None: namespaces do not mix."""
    assert parse_id("evt", text) is None


def test_concept_and_its_alias_are_apart():
    """One prefix begins with another; an id of one is none of the other."""
    alias = format_id("concept_alias", SOURCE)

    assert parse_id("concept", alias) is None
    assert SOURCE == parse_id("concept_alias", alias)


def test_a_derived_id_is_stable():
    """The same for ever: replays of years to come must find the same ids (I4)."""
    assert "fact_0196ca18-6b3b-774b-b59f-488f4102658d" == derive_id("fact", SOURCE, 0)


@given(PREFIX, INSTANTS, ENTROPY, st.integers(min_value=0, max_value=10_000))
def test_a_derived_id_carries_its_sources_time(prefix, instant_us, entropy, ordinal):
    """A UUIDv7 of its own prefix, made at the instant of the entry it follows from."""
    raw = parse_id(prefix, derive_id(prefix, uuid7(instant_us, entropy), ordinal))

    assert raw is not None
    assert instant_us == uuid7_instant_us(raw)


@given(st.lists(st.tuples(PREFIX, INSTANTS, st.integers(0, 99)), unique=True, max_size=30))
def test_derived_ids_differ(sources):
    """By prefix, by entry and by ordinal."""
    raws = [
        parse_id(prefix, derive_id(prefix, uuid7(instant_us, 0), ordinal))
        for prefix, instant_us, ordinal in sources
    ]

    assert len(sources) == len(set(raws))
