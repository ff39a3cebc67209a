"""Does a cursor lead back to its own question only?"""

import base64

import pytest

from engine.cursor import Cursors
from engine.read import EventsRequest
from schemas.errors import InvalidCursor

SECRET = bytes(32)
QUESTION = ("acme", EventsRequest(scope="org:acme"))


@pytest.mark.parametrize("position", [b"", b"\0", (7).to_bytes(8, "big"), bytes(16), b"x" * 200])
def test_a_cursor_gives_its_position_back(position):
    """For the question it was made for, also after a restart."""
    cursor = Cursors(SECRET).make(position, *QUESTION)

    assert position == Cursors(SECRET).read(cursor, *QUESTION)


@pytest.mark.parametrize(
    "other",
    [
        ("globex", EventsRequest(scope="org:acme")),
        ("acme", EventsRequest(scope="org:other")),
        ("acme", EventsRequest(scope="org:acme", order="oldest")),
        ("acme", EventsRequest(scope="org:acme", labels=("x",))),
        ("acme",),
        (),
    ],
)
def test_another_question_is_refused(other):
    """A cursor of another tenant, scope, order or filter would skip or leak rows."""
    cursors = Cursors(SECRET)
    cursor = cursors.make(b"position", *QUESTION)

    with pytest.raises(InvalidCursor, match="made for another listing"):
        cursors.read(cursor, *other)


def test_another_server_s_cursor_is_refused():
    """Cursors are made with the secret of the data directory."""
    cursor = Cursors(b"\1" * 32).make(b"position", *QUESTION)

    with pytest.raises(InvalidCursor):
        Cursors(SECRET).read(cursor, *QUESTION)


@pytest.mark.parametrize("at", range(20))
def test_a_changed_cursor_is_refused(at):
    """No byte of position or signature may be another."""
    cursors = Cursors(SECRET)
    raw = bytearray(base64.urlsafe_b64decode(cursors.make(b"position", *QUESTION)))
    raw[at] ^= 1

    with pytest.raises(InvalidCursor):
        cursors.read(base64.urlsafe_b64encode(bytes(raw)).decode(), *QUESTION)


@pytest.mark.parametrize(
    "text", ["", "a", "ab==", "!!!!", "é", "\0", "AAAA", "a" * 10_000, "A A=", "+/+/"]
)
def test_what_is_no_cursor_is_refused(text):
    """Any text may come from a client: it is a 400 that names the field, never a crash."""
    with pytest.raises(InvalidCursor) as refused:
        Cursors(SECRET).read(text, *QUESTION)

    assert "cursor" == refused.value.details["field"]


def test_a_position_cannot_borrow_from_the_question():
    """Where the position ends is part of what is signed."""
    cursors = Cursors(SECRET)
    long, short = cursors.make(b"ab", "c"), cursors.make(b"a", "bc")

    assert b"ab" == cursors.read(long, "c")
    with pytest.raises(InvalidCursor):
        cursors.read(short, "c")
