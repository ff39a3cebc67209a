"""Who asks while it is measured?"""

import socket
import threading
from types import SimpleNamespace

import pytest

from bench.client import Client
from bench.host import Broken


class _Listener:
    """A server that answers one request after the other with given bytes, piece by piece.

    An answer of None hangs up instead.
    """

    def __init__(self, *answers):
        self.heard = []
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        host, port = self._listener.getsockname()
        return SimpleNamespace(host=host, port=port, token="t", heard=self.heard)

    def __exit__(self, *args):
        self._listener.close()
        self._thread.join(10)

    def _serve(self):
        while self._answers:
            connection, _ = self._listener.accept()
            with connection:
                while self._answers:
                    self.heard.append(connection.recv(65536))
                    pieces = self._answers.pop(0)
                    if pieces is None:
                        break
                    for piece in pieces:
                        connection.sendall(piece)


def test_an_answer_is_whole_however_it_comes_in_pieces():
    """A head cut in the middle of its end, a body in parts, and the next answer is another."""
    cut = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r", b'\n\r\n{"a"', b": 1 ", b"}"]
    one = [b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}"]
    with _Listener(cut, one) as host, Client(host) as client:
        assert {"a": 1} == client.post("/v1/recall", {"query": "Ana"})
        assert {} == client.get("/v1/admin/health")

        posted, got = host.heard
    assert posted.startswith(b"POST /v1/recall HTTP/1.1\r\n")
    assert posted.endswith(b'content-length: 16\r\n\r\n{"query": "Ana"}')
    assert b"authorization: Bearer t\r\n" in posted.lower().replace(b"bearer", b"Bearer")
    assert got.endswith(b"content-length: 0\r\n\r\n")


def test_a_connection_that_was_closed_meanwhile_is_made_again():
    """The server closes what is idle for long; the request is sent once more."""
    one = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"]
    with _Listener(one, None, one) as host, Client(host) as client:
        assert [{}, {}] == [client.get("/v1/events"), client.get("/v1/events")]
        assert 3 == len(host.heard)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
)
def test_anything_but_a_whole_success_breaks_the_run(answer):
    """A refusal is no quick answer, and neither is one whose end nobody knows."""
    with _Listener([answer]) as host, Client(host) as client, pytest.raises(Broken):
        client.get("/v1/events")
