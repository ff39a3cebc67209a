"""Does a batch see its own changes, and only those of its own tenant?"""

from datetime import UTC, datetime

import msgspec
import pytest

from projectors.base import Close, Drop, Put
from projectors.overlay import Draft, Overlay

NOW = datetime(2026, 5, 13, tzinfo=UTC)


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    recorded_to: datetime | None = None


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    text: str


def put(key, text, table="facts"):
    return Put(table=table, key=key, value=Fact(text=text))


@pytest.fixture
def full(base):
    """Four rows below, of two tenants and two tables."""
    base.rows = {
        (1, "facts", b"a"): Fact(text="a"),
        (1, "facts", b"ab"): Fact(text="ab"),
        (1, "other", b"a"): Fact(text="other"),
        (2, "facts", b"a"): Fact(text="theirs"),
    }
    return base


def texts(rows):
    return [(key, row.text) for key, row in rows]


def test_untouched_rows_are_the_base_s(full):
    """What the batch has not touched shows as it was; what is not there is None."""
    view = Overlay(full).of(1)

    assert "a" == view.get("facts", b"a").text
    assert None is view.get("facts", b"zz")
    assert [(b"a", "a"), (b"ab", "ab")] == texts(view.scan("facts"))


def test_a_put_is_seen_at_once(full):
    """A new row and a changed one, by get and by scan, in key order."""
    overlay = Overlay(full)
    overlay.apply(1, put(b"aa", "new"))
    overlay.apply(1, put(b"a", "changed"))
    view = overlay.of(1)

    assert ["changed", "new"] == [view.get("facts", key).text for key in (b"a", b"aa")]
    assert [(b"a", "changed"), (b"aa", "new"), (b"ab", "ab")] == texts(view.scan("facts"))


def test_a_dropped_row_is_gone(full):
    """Also by scan; dropping what is not there is no error, and a later put brings it back."""
    overlay = Overlay(full)
    overlay.apply(1, Drop(table="facts", key=b"a"))
    overlay.apply(1, Drop(table="facts", key=b"never"))
    view = overlay.of(1)
    assert None is view.get("facts", b"a")
    assert [(b"ab", "ab")] == texts(view.scan("facts"))
    overlay.apply(1, put(b"a", "again"))

    assert "again" == view.get("facts", b"a").text


def test_a_closed_row_stays_until_then(full):
    """Superseded, not gone: all of it is kept, with the time from which it is known to be old."""
    overlay = Overlay(full)
    overlay.apply(1, put(b"n", "pending"))
    for key in (b"a", b"n"):
        overlay.apply(1, Close(table="facts", key=key, recorded_to=NOW))

    assert [Fact(text="a", recorded_to=NOW), Fact(text="pending", recorded_to=NOW)] == [
        overlay.get(1, "facts", key) for key in (b"a", b"n")
    ]
    assert Fact(text="a") == full.get(1, "facts", b"a")


@pytest.mark.parametrize("key", [b"never", b"dropped"])
def test_closing_what_is_not_there_is_a_bug(full, key):
    """A projector that closes a row it never saw has lost its way."""
    overlay = Overlay(full)
    overlay.apply(1, put(b"dropped", "x"))
    overlay.apply(1, Drop(table="facts", key=b"dropped"))

    with pytest.raises(AssertionError, match="closing a row that is not there"):
        overlay.apply(1, Close(table="facts", key=key, recorded_to=NOW))


def test_closing_what_has_no_end_is_a_bug(base):
    """Only a bi-temporal row can be closed."""
    overlay = Overlay(base)
    overlay.apply(1, Put(table="plain", key=b"k", value=Plain(text="x")))

    with pytest.raises(TypeError):
        overlay.apply(1, Close(table="plain", key=b"k", recorded_to=NOW))


def test_tenants_do_not_see_each_other(full):
    """Same table, same key: another tenant's row, pending or not, is not there (I6)."""
    overlay = Overlay(full)
    overlay.apply(2, put(b"x", "theirs too"))
    overlay.apply(1, Drop(table="facts", key=b"a"))

    assert None is overlay.of(1).get("facts", b"x")
    assert [(b"ab", "ab")] == texts(overlay.of(1).scan("facts"))
    assert [(b"a", "theirs"), (b"x", "theirs too")] == texts(overlay.of(2).scan("facts"))


def test_tables_do_not_see_each_other(full):
    """A pending row of one table is not in the scan of another."""
    overlay = Overlay(full)
    overlay.apply(1, put(b"x", "fact"))

    assert [(b"a", "other")] == texts(overlay.of(1).scan("other"))


@pytest.mark.parametrize(
    "prefix, expected", [(b"", [b"a", b"ab", b"b"]), (b"a", [b"a", b"ab"]), (b"ab", [b"ab"])]
)
def test_a_scan_takes_a_prefix(full, prefix, expected):
    """Of base and pending rows alike."""
    overlay = Overlay(full)
    overlay.apply(1, put(b"b", "b"))

    assert expected == [key for key, _ in overlay.of(1).scan("facts", prefix)]


def test_overlays_stack(full):
    """An attempt on top of a batch sees both, and leaves the batch as it was."""
    batch = Overlay(full)
    batch.apply(1, put(b"b", "batch"))
    attempt = Overlay(batch)
    attempt.apply(1, Drop(table="facts", key=b"a"))
    attempt.apply(1, put(b"c", "attempt"))

    assert [(b"ab", "ab"), (b"b", "batch"), (b"c", "attempt")] == texts(attempt.of(1).scan("facts"))
    assert [(b"a", "a"), (b"ab", "ab"), (b"b", "batch")] == texts(batch.of(1).scan("facts"))


def test_a_scan_is_of_its_moment(full):
    """Rows put while a scan is read do not show up in it."""
    overlay = Overlay(full)
    rows = overlay.of(1).scan("facts")
    overlay.apply(1, put(b"zz", "late"))

    assert [(b"a", "a"), (b"ab", "ab")] == texts(rows)


def test_a_draft_sees_its_own_changes(overlay):
    """A projector that moves a row twice within an entry reads what it said before."""
    overlay.apply(1, Put(table="t", key=b"a", value=Plain(text="base")))
    overlay.apply(1, Put(table="t", key=b"b", value=Plain(text="base")))
    draft = Draft(overlay.of(1))

    draft.put("t", b"a", Plain(text="said"))
    draft.drop("t", b"b")
    draft.take([Put(table="t", key=b"c", value=Plain(text="taken"))])

    assert [Plain(text="said"), None, Plain(text="taken"), None] == [
        draft.get("t", key) for key in (b"a", b"b", b"c", b"d")
    ]
    assert Plain(text="base") == overlay.of(1).get("t", b"a")


def test_a_draft_says_each_row_once(overlay):
    """What came out in the end, in the order in which rows were first touched."""
    draft = Draft(overlay.of(1))
    draft.put("t", b"a", Plain(text="1"))
    draft.put("t", b"b", Plain(text="1"))
    draft.drop("t", b"a")

    assert (Drop(table="t", key=b"a"), Put(table="t", key=b"b", value=Plain(text="1"))) == (
        draft.changes()
    )
