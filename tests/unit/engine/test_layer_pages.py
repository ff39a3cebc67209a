"""Is a layer walked so that every version is on exactly one page?"""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.layers.pages import Among, Walk
from schemas import limits


class Version(msgspec.Struct, frozen=True):
    """As much of a record as walking looks at."""

    raw: bytes
    version: int


raws = st.integers(0, 40).map(lambda number: number.to_bytes(16, "big"))
histories = st.dictionaries(raws, st.integers(1, 4), max_size=12)
"""Records, and how many versions of each there are to see."""


def versions_in(history):
    return lambda raw: [Version(raw, number) for number in range(history[raw], 0, -1)]


def in_pages(sources, history, *, newest, limit, wanted=lambda _: True):
    """Every page, each read by a walk of its own from where the last one ended."""
    position = None
    while True:
        walk = Walk(sources, newest=newest, position=position)
        yield walk.collect(limit, versions_in(history), wanted)
        if not walk.has_more():
            return
        assert position != walk.position, "a page that does not move on is the first of many"
        position = walk.position


@given(history=histories, parts=st.integers(1, 3), limit=st.integers(1, 5), newest=st.booleans())
def test_every_version_is_on_one_page(history, parts, limit, newest):
    """In the order of ids, versions together, whatever the size of a page and of the sources."""
    ids = list(history)
    sources = [Among(ids[part::parts]) for part in range(parts)]
    found = [
        (one.raw, one.version)
        for page in in_pages(sources, history, newest=newest, limit=limit)
        for one in page
    ]

    every = [(raw, number) for raw in history for number in range(1, history[raw] + 1)]
    assert sorted(every, reverse=newest) == found


@given(history=histories, limit=st.integers(1, 5), newest=st.booleans())
def test_pages_are_full_but_the_last(history, limit, newest):
    """A page is as long as asked, while there is something."""
    pages = list(in_pages([Among(list(history))], history, newest=newest, limit=limit))

    assert all(len(page) == limit for page in pages[:-1])


@given(history=histories, newest=st.booleans(), odd=st.booleans())
def test_a_filter_leaves_out_and_moves_on(history, newest, odd):
    """What is not wanted is not read again."""

    def is_wanted(one):
        return one.version % 2 == odd

    found = [
        one
        for page in in_pages(
            [Among(list(history))], history, newest=newest, limit=2, wanted=is_wanted
        )
        for one in page
    ]

    assert len(found) == len({(one.raw, one.version) for one in found})
    assert all(map(is_wanted, found))


def test_a_filter_that_matches_little_answers_a_short_page():
    """After very many records looked at, with a position to go on from."""
    ids = [number.to_bytes(16, "big") for number in range(limits.PAGE_SCAN_MAX + 300)]
    walk = Walk([Among(ids)], newest=False, position=None)
    found = walk.collect(5, lambda raw: [Version(raw, 1)], lambda one: one.raw == ids[-1])

    assert [] == found
    assert walk.has_more()
    assert [Version(ids[-1], 1)] == walk.collect(
        5, lambda raw: [Version(raw, 1)], lambda one: one.raw == ids[-1]
    )


def test_what_is_in_two_sources_is_read_once():
    """A belief about two things that are both asked for."""
    raw = bytes(16)
    walk = Walk([Among([raw]), Among([raw])], newest=True, position=None)

    assert [Version(raw, 1)] == walk.collect(9, lambda raw: [Version(raw, 1)], lambda _: True)
