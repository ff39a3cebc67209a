"""Is an answer that goes out in one write the answer that HTTP asks for?"""

from __future__ import annotations

import json
import re
import socket
import time

import pytest

from tests.faults.server import Server

TURNED_DOWN = """
from schemas import limits
limits.KEEP_ALIVE_S = 1
"""
ASKED = b"GET /v1/admin/version%b HTTP/1.1\r\nHost: x\r\nX-Request-ID: %b\r\n%b\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    """A server that does not wait long for a next request."""
    with Server(tmp_path_factory.mktemp("wire") / "data", before=TURNED_DOWN) as server:
        yield server.address


@pytest.fixture
def line(address):
    """A connection to it."""
    with socket.create_connection(address, timeout=60) as opened:
        yield opened


def asked(name: bytes, query: bytes = b"", more: bytes = b"") -> bytes:
    return ASKED % (query, name, more)


def answers_on(line: socket.socket, count: int) -> list[tuple[dict[str, str], bytes]]:
    """So many answers: headers, and a body as long as they say."""
    held, found = b"", []
    while len(found) < count:
        head, ended, rest = held.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head) if ended else None
        if length is not None and len(rest) >= int(length[1]):
            lines = [text.split(": ", 1) for text in head.decode().split("\r\n")[1:]]
            found.append((dict(lines), rest[: int(length[1])]))
            assert len(lines) == len(found[-1][0]), "no header twice"
            held = rest[int(length[1]) :]
            continue
        came = line.recv(65536)
        assert came, "the server hung up"
        held += came
    assert b"" == held, "nothing after the last answer"
    return found


def test_requests_asked_at_once_are_answered_in_order(line):
    """Who does not wait for an answer gets all of them, in the order in which it asked."""
    names = [b"first", b"second", b"third"]
    line.sendall(b"".join(asked(name) for name in names))
    found = answers_on(line, 3)
    assert names == [headers["x-cortex-request-id"].encode() for headers, _ in found]


def test_every_answer_has_a_date(line):
    """RFC 9110 §6.6.1: a server with a clock says when it answered."""
    line.sendall(asked(b"dated"))
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", answers_on(line, 1)[0][0]["date"])


def test_a_target_seen_before_is_read_the_same(line):
    """What is remembered of a target is what it says."""
    for name, query in ((b"1", b""), (b"2", b"?what=else"), (b"3", b""), (b"4", b"?what=else")):
        line.sendall(asked(name, query))
        (_, body) = answers_on(line, 1)[0]
        assert (b"what" in body) == bool(query), "an unknown parameter is named"


def test_who_asks_to_close_is_hung_up_on(line):
    """The long way still knows what `Connection` means."""
    line.sendall(asked(b"last", more=b"Connection: close\r\n"))
    assert "close" == answers_on(line, 1)[0][0]["connection"]
    assert b"" == line.recv(1)


def test_an_answer_to_head_has_no_body(line):
    """A HEAD and a GET after it: were there a body, it would stand before the second answer."""
    line.sendall(asked(b"head").replace(b"GET", b"HEAD", 1) + asked(b"body"))
    held = b""
    while b"body" not in held:
        held += line.recv(65536)
    head, _, rest = held.partition(b"\r\n\r\n")
    assert b"x-cortex-request-id: head" in head
    assert rest.startswith(b"HTTP/1.1 200")


def test_an_idle_connection_is_closed(line):
    """One timer for all of its requests, and the last one counts."""
    line.sendall(asked(b"only"))
    answers_on(line, 1)
    assert b"" == line.recv(1)


def test_a_connection_in_use_outlives_many_idle_times(address):
    """Each request begins the wait anew."""
    with socket.create_connection(address, timeout=60) as line:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            line.sendall(asked(b"again"))
            answers_on(line, 1)
            time.sleep(0.1)


POSTED = (
    b"POST /v1/experience HTTP/1.1\r\nHost: x\r\nX-Cortex-Actor: user:anna\r\n"
    b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
)
BODY = (
    b'{"scope":"user:anna","modality":"conversation","idempotency_key":"%b",'
    b'"content":{"kind":"text","text":"Tea."},"context":{"observed_at":"2026-11-18T08:00:00Z"}}'
)


def posted(line, key: bytes, kind: bytes = b"application/json", body: bytes = BODY):
    body = body % key
    line.sendall(POSTED % (kind, len(body), body))
    headers, answer = answers_on(line, 1)[0]
    return headers, json.loads(answer)


def test_posts_with_one_head_are_each_their_own(line):
    """A head that came before says what it said; body, id and place are the request's own."""
    found = [posted(line, b"own-%d" % at) for at in range(4)]
    again, receipt = posted(line, b"own-2")

    assert 4 == len({headers["x-cortex-request-id"] for headers, _ in found})
    assert 4 == len({receipt["event_id"] for _, receipt in found})
    assert [headers["x-cortex-policy"] for headers, _ in found] == [again["x-cortex-policy"]] * 4
    assert found[2][1]["event_id"] == receipt["event_id"]
    assert ["x-cortex-replay" in headers for headers in (found[2][0], again)] == [False, True]


def test_a_head_that_is_refused_is_refused_again(line):
    """That its head is known makes no body readable, and a body that is none spoils no other."""
    refused = [posted(line, b"no-%d" % at, b"text/plain")[1] for at in range(3)]
    broken = posted(line, b"no-0", body=BODY.replace(b'{"scope"', b'["scope"'))[1]
    taken = posted(line, b"no-0")[1]

    assert ["UNSUPPORTED_MEDIA_TYPE"] * 3 == [said["error_code"] for said in refused]
    assert "error_code" in broken
    assert "captured" == taken["status"]
