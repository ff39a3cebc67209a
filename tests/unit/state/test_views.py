"""Do readers find what was written, also when rows they read are kept?"""

import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.state.memory import MemoryKV
from engine.state.views import Halves, Unit, packed
from projectors.base import Projector
from schemas import limits


class Row(msgspec.Struct, frozen=True):
    """A row of a view."""

    said: int


NOTES = Projector(name="notes", version=1, tables={"notes": Row}, project=lambda _, __: ())


def make_unit(kv=None):
    unit = Unit(kv or MemoryKV(("meta",)), "staged", [NOTES], keeps_recent=True)
    unit.begin_build()
    unit.swap()
    return unit


def write(unit, pending, checkpoint=1):
    """What the daemon does: fill a batch, write it, commit."""
    batch = unit.kv.batch()
    after = unit.write(batch, packed(pending), checkpoint)
    unit.kv.write(batch)
    unit.commit(after)


KEYS = st.sampled_from([b"a", b"b", b"c"])
STEPS = st.lists(
    st.tuples(st.just("read"), KEYS, st.none())
    | st.tuples(st.just("read many"), st.lists(KEYS, max_size=4), st.none())
    | st.tuples(st.just("write"), KEYS, st.none() | st.integers(0, 9))
    | st.tuples(st.just("rebuild"), st.none(), st.none())
)


@given(STEPS)
def test_a_reader_finds_what_was_written_last(steps):
    """Reads, writes, removals and rebuilds in any order: a read is never older than the commit."""
    unit, truth = make_unit(), {}
    for what, key, said in steps:
        if what == "read":
            assert truth.get(key) == unit.get(1, "notes", key)
        elif what == "read many":
            assert [truth.get(one) for one in key] == unit.get_many(1, "notes", key)
        elif what == "write":
            value = None if said is None else Row(said)
            write(unit, {(1, "notes", key): value})
            truth[key] = value
        else:
            unit.begin_build()
            unit.swap()
            truth = {}


class Slow(MemoryKV):
    """A store in which somebody else gets in between looking a row up and having it."""

    meanwhile = None

    def get(self, family, key):
        return self._overtaken(family, super().get(family, key))

    def get_many(self, family, keys):
        return self._overtaken(family, super().get_many(family, keys))

    def _overtaken(self, family, found):
        if self.meanwhile is not None and family.startswith("view."):
            act, self.meanwhile = self.meanwhile, None
            act()
        return found


def one_of_many(unit, tenant_no, table, key):
    return unit.get_many(tenant_no, table, [b"other", key])[1]


@pytest.mark.parametrize("read", [Unit.get, one_of_many])
def test_a_row_that_changed_while_it_was_read_is_not_kept(read):
    """A reader that was overtaken by a write may answer with the old row, and must not keep it."""
    kv = Slow(("meta",))
    unit = make_unit(kv)
    place = (1, "notes", b"a")
    write(unit, {place: Row(1)})
    kv.meanwhile = lambda: write(unit, {place: Row(2)})

    assert read(unit, *place) == Row(1)
    assert read(unit, *place) == Row(2)


def test_readers_beside_a_writer_never_go_back():
    """What a reader saw once it never sees older again, with three of them beside a writer."""
    unit = make_unit()
    place = (1, "notes", b"a")
    write(unit, {place: Row(0)})
    went_back, done = [], threading.Event()

    def read():
        last = 0
        while not done.is_set():
            said = unit.get(*place).said
            if said < last:
                went_back.append((last, said))
            last = said

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, 400):
        write(unit, {place: Row(number)})
    done.set()
    for reader in readers:
        reader.join()

    assert [] == went_back


def test_what_is_kept_is_bounded():
    """Rows that nobody asks for again make room; those asked for stay."""
    kept = Halves(100)
    kept.keep((1, "notes", b"wanted"), "wanted")
    for number in range(1000):
        kept.keep((1, "notes", b"%d" % number), number)
        assert kept.get((1, "notes", b"wanted")) == "wanted"

    held = sum(kept.get((1, "notes", b"%d" % number)) is not kept for number in range(1000))
    assert 40 <= held <= 100
    assert limits.READ_CACHE_ROWS_MAX < limits.VIEW_CACHE_ROWS_MAX


PLACES = st.tuples(st.integers(1, 2), st.sampled_from(["notes", "talks"]), KEYS)


@given(steps=st.lists(st.tuples(st.sampled_from(["keep", "revise", "drop"]), PLACES)))
def test_what_is_kept_is_what_was_said_last(steps):
    """Of each row by itself, whatever is said of others of its key or its table."""
    kept, said = Halves(1000), {}
    for number, (verb, place) in enumerate(steps):
        if verb == "drop":
            kept.drop(place)
            said.pop(place, None)
        else:
            getattr(kept, verb)(place, number)
            if verb == "keep" or place in said:
                said[place] = number

    every = [(no, table, key) for no in (1, 2) for table in ("notes", "talks") for key in b"abc"]
    for tenant_no, table, key in every:
        place = (tenant_no, table, bytes([key]))
        assert kept.get(place) == said.get(place, kept)
