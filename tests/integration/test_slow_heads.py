"""What does one who does not finish asking cost the others?  A connection, for a while."""

from __future__ import annotations

import socket

import pytest

from tests.faults.server import Server

TURNED_DOWN = """
from schemas import limits
limits.HEAD_READ_S_MAX = 1.0
"""
WHOLE = b"GET /v1/admin/version HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = WHOLE[:-4]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    """A server with a short patience."""
    with Server(tmp_path_factory.mktemp("heads") / "data", before=TURNED_DOWN) as server:
        yield server.address


def opened(address):
    return socket.create_connection(address, timeout=120)


def answer_on(line):
    """One answer; nothing when the server has hung up."""
    try:
        return line.recv(65536)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("said", [b"", b"G", HALF], ids=["nothing", "a letter", "half a head"])
def test_a_head_that_never_ends_is_cut_off(address, said):
    """However little was said, the server does not wait for ever."""
    with opened(address) as line:
        line.sendall(said)
        assert b"" == answer_on(line)


def test_dripping_bytes_do_not_buy_time(address):
    """The deadline is for the whole head, not for the next byte."""
    with opened(address) as line:
        line.settimeout(0.05)
        line.sendall(b"GET /")
        for _ in range(600):
            try:
                line.sendall(b"x")
                assert b"" == line.recv(1), "nothing is answered to half a head"
                return
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("600 letters, and it still waits")


def test_the_second_request_of_a_connection_has_its_own_deadline(address):
    """An answered request does not excuse a next one that is never finished."""
    with opened(address) as line:
        line.sendall(WHOLE)
        assert answer_on(line).startswith(b"HTTP/1.1 200")
        line.sendall(HALF)
        assert b"" == answer_on(line)


def test_a_slow_answer_is_not_cut_off(address):
    """The deadline ends with the head: a stream lives longer."""
    with opened(address) as line:
        line.sendall(b"GET /v1/lifecycle/stream HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer_on(line).startswith(b"HTTP/1.1 200")
        line.settimeout(2.0)
        with pytest.raises(TimeoutError):
            while line.recv(65536):
                pass
