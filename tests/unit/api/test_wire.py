"""What may an answer's head say, and who is told that more of a request has come?"""

import asyncio

import pytest

from api.wire import Moment, lines_of


def test_headers_become_lines():
    """A line for each, in their order."""
    assert b"a: 1\r\nb: 2\r\n" == lines_of([(b"a", b"1"), (b"b", b"2")])
    assert b"" == lines_of([])


@pytest.mark.parametrize("value", [b"1\r\nb: 2", b"1\n", b"\r1"])
def test_a_value_with_the_end_of_a_line_is_not_sent(value):
    """It would be another header, or the end of the head."""
    assert lines_of([(b"a", value)]) is None


def test_what_is_said_of_the_connection_goes_the_long_way():
    """Whether it stays open is the server's to decide."""
    assert lines_of([(b"a", b"1"), (b"connection", b"close")]) is None


def test_a_moment_is_waited_for():
    """It is as an event: who comes before it waits, who comes after it does not."""

    async def play() -> list[str]:
        moment, said = Moment(), []

        async def wait(name: str) -> None:
            await moment.wait()
            said.append(name)

        early = asyncio.ensure_future(wait("early"))
        await asyncio.sleep(0)
        said.append("set")
        moment.set()
        await early
        await wait("late")
        moment.clear()
        waiting = asyncio.ensure_future(wait("again"))
        await asyncio.sleep(0)
        said.append("set again")
        moment.set()
        await waiting
        return said

    assert ["set", "early", "late", "set again", "again"] == asyncio.run(play())
