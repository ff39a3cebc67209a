"""What does the client do when an answer is no, late, cut or lost?  Real servers, real cuts."""

import asyncio
import json
import socket
import warnings

import pytest

from strata_client import (
    AsyncClient,
    ConnectionLost,
    Internal,
    NotFound,
    RateLimited,
    Retries,
    StrataError,
    TimedOut,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnstableEndpoint,
)

RECEIPT = json.dumps({"event_id": "evt_1", "status": "captured", "wal_offset": 1}).encode()
DONE = (202, {}, RECEIPT)


def refusal(status, code, *, retriable=True, **headers):
    """An error in the envelope of the contract."""
    said = {"error_code": code, "message": "no", "request_id": "req_1", "retriable": retriable}
    return status, headers, json.dumps(said).encode()


BUSY = refusal(503, "OVERLOADED", **{"Retry-After": "0"})


def test_a_busy_server_is_asked_again_with_the_same_key(stub, connect):
    """The key is made once a call: however often it is sent, it is one event."""
    stub.answers = [BUSY, refusal(429, "RATE_LIMITED"), (502, {}, b"<html>"), DONE]
    receipt = connect(stub.url).experience("once")

    bodies = [body for _, _, body in stub.heard]
    assert "evt_1" == receipt.event_id
    assert 4 == len(bodies)
    assert 1 == len(set(bodies))


def test_the_same_awaited(stub, scope):
    """An AsyncClient waits and asks again as a Client does: it is the same conversation."""
    stub.answers = [BUSY, BUSY, DONE]

    async def once():
        patient = Retries(count=3, first_s=0.01)
        async with AsyncClient(stub.url, scope=scope, retries=patient) as memory:
            return await memory.experience("once")

    assert "evt_1" == asyncio.run(once()).event_id
    assert 1 == len({body for _, _, body in stub.heard})


@pytest.mark.parametrize(
    "answer, error",
    [
        (BUSY, Unavailable),
        (refusal(429, "RATE_LIMITED"), RateLimited),
        ((504, {}, b""), Unavailable),
    ],
    ids=["overloaded", "rate limited", "a proxy's"],
)
def test_patience_ends(stub, connect, answer, error):
    """After as many tries as were allowed the error itself is raised, with all it says."""
    stub.answers = [answer] * 3
    with pytest.raises(error) as caught:
        connect(stub.url, retries=Retries(count=2, first_s=0.01)).recall("anything?")

    assert 3 == len(stub.heard)
    assert answer[0] == caught.value.status


@pytest.mark.parametrize(
    "status, code, error",
    [
        (404, "NOT_FOUND", NotFound),
        (503, "OVERLOADED", Unavailable),
    ],
)
def test_what_will_not_pass_is_not_tried_again(stub, connect, status, code, error):
    """`retriable` is the server's word, and it is taken."""
    stub.answers = [refusal(status, code, retriable=False)]
    with pytest.raises(error):
        connect(stub.url).recall("anything?")

    assert 1 == len(stub.heard)


def test_a_bug_of_the_server_is_tried_once_more(stub, connect):
    """INTERNAL says: retry once with the same key, then report it."""
    stub.answers = [refusal(500, "INTERNAL")] * 2
    with pytest.raises(Internal):
        connect(stub.url).experience("once")

    assert 2 == len(stub.heard)


@pytest.mark.parametrize("answer", [(502, {}, b""), refusal(500, "INTERNAL")], ids=["502", "500"])
def test_what_may_have_been_done_is_not_done_twice(stub, connect, answer):
    """A call without a key that may have been carried out is left to the caller."""
    stub.answers = [answer]
    with pytest.raises((Unavailable, Internal)):
        connect(stub.url).admin.rebuild()

    assert 1 == len(stub.heard)


def test_retry_after_is_waited(stub, connect):
    """What the server asks for is waited in full, and the drawn part on top."""
    stub.answers = [refusal(429, "RATE_LIMITED", **{"Retry-After": "7"}), DONE]
    error = RateLimited("no", status=429, retry_after_s=7.0)
    drawn = Retries(first_s=0.5, draw=lambda: 1.0)

    assert [7.5, 8.0, 9.0] == [drawn.wait_s(tried, error) for tried in (1, 2, 3)]
    assert [0.5, 1.0, 10.0] == [drawn.wait_s(t, Unreachable("no")) for t in (1, 2, 30)]


def test_a_write_whose_answer_was_cut_off_is_one_event(proxy, connect):
    """The proxy cuts after the request has reached the server: the retry is a replay."""
    proxy.cut_after = [1, 1]
    receipt = connect(proxy.url).experience("exactly once", wait="indexed")

    events = connect().events.list().all()
    assert [receipt.event_id] == [event.id for event in events]
    assert receipt.replayed_from_idempotency
    assert 3 == proxy.connections


def test_what_has_no_key_is_not_sent_twice_when_its_answer_was_cut(proxy, connect):
    """Whether it was carried out is not known, and the error says so."""
    proxy.cut_after = [1]
    with pytest.raises(ConnectionLost):
        connect(proxy.url).exports.start()

    assert 1 == proxy.connections


def test_nobody_there(connect):
    """A port that nobody listens on is unreachable, after every try."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable):
        connect(f"http://127.0.0.1:{port}", retries=Retries(count=1, first_s=0.01)).recall("x")


def test_no_answer_in_time(connect):
    """A server that takes the request and says nothing is given up, and it is said what for."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        slow = connect(url, timeout_s=0.1, retries=Retries(count=1, first_s=0.01))
        with pytest.raises(TimedOut):
            slow.recall("x")


def test_an_address_that_is_none():
    """Said when the client is made, not at its first call."""
    with pytest.raises(StrataError, match="begins with http"):
        AsyncClient("localhost:3141")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


def test_a_token_that_ran_out_is_renewed_once(stub, connect):
    """A provider is asked for every request, and once more when its token was refused."""
    tokens = iter(["old", "new", "new"])
    stub.answers = [refusal(401, "EXPIRED_TOKEN", retriable=False), DONE]
    connect(stub.url, token=lambda: next(tokens)).experience("x")

    sent = [headers["Authorization"] for _, headers, _ in stub.heard]
    assert ["Bearer old", "Bearer new"] == sent


def test_a_token_that_stays_refused_is_an_error(stub, connect):
    """A fixed token is not tried twice."""
    stub.answers = [refusal(401, "EXPIRED_TOKEN", retriable=False)]
    with pytest.raises(Unauthenticated) as caught:
        connect(stub.url, token="old").experience("x")

    assert ("EXPIRED_TOKEN", 1) == (caught.value.code, len(stub.heard))


def test_a_token_may_be_awaited(stub, scope):
    """An AsyncClient's provider may be a coroutine."""
    stub.answers = [DONE]

    async def provided():
        await asyncio.sleep(0)
        return "awaited"

    async def once():
        async with AsyncClient(stub.url, scope=scope, token=provided, actor="user:ines") as memory:
            await memory.experience("x")

    asyncio.run(once())
    ((_, headers, _),) = stub.heard
    assert ("Bearer awaited", "user:ines") == (headers["Authorization"], headers["X-Cortex-Actor"])


# ── stability ────────────────────────────────────────────────────────────────────────────────


def test_an_endpoint_that_may_change_is_warned_of_once(connect):
    """One warning an endpoint and client, at the line that called it."""
    memory = connect(allow_unstable=False)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            memory.beliefs.list().page()
            memory.events.list().page()

    assert ["GET /v1/beliefs is beta"] == [str(each.message)[:23] for each in warned]
    assert [(UnstableEndpoint, __file__)] == [(each.category, each.filename) for each in warned]


def test_who_allows_it_is_not_warned(connect):
    """`allow_unstable` is an answer to the question."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect(allow_unstable=True).beliefs.list().page()
