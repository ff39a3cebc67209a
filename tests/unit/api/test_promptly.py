"""Which questions are answered on the event loop, and which in a thread?"""

import asyncio
import contextlib
import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.endpoint import Endpoint, Reply, Served
from api.promptly import Promptness
from api.v1.recall import ENDPOINTS
from engine.capture import capture
from engine.engine import open_engine
from engine.rows import CaptureRequest
from engine.settings import Settings
from schemas import limits
from schemas.caller import Caller
from schemas.envelope import Context, Envelope, PlainText
from schemas.errors import NotFound
from schemas.pack import RecallRequest

QUICK_S = limits.ON_LOOP_S_MAX / 2
ALICE = Caller(actor="user:alice", tenant="acme")


class Engine:
    """What is asked of an engine, and a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s, self.posted, self.is_settled = 100.0, 0, True
        self.promptness = Promptness(
            lambda: self.now_s, lambda: self.posted, lambda: self.is_settled
        )

    def rest(self) -> None:
        self.promptness.is_due("anything")
        self.now_s += limits.ON_LOOP_QUIET_S


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def at_rest(engine):
    engine.promptness.took("here", QUICK_S)
    engine.rest()
    assert engine.promptness.is_due("here")
    return engine


def test_the_first_of_its_kind_goes_to_a_thread(at_rest):
    """What it will take nobody knows: it may have to be read from the disk."""
    assert not at_rest.promptness.is_due("there")
    at_rest.promptness.took("there", QUICK_S)
    assert at_rest.promptness.is_due("there")


def test_after_a_post_questions_go_to_threads_for_a_while(at_rest):
    """Who posts is likely to post again, and should not wait for a question."""
    at_rest.posted += 1
    assert not at_rest.promptness.is_due("here")
    at_rest.now_s += limits.ON_LOOP_QUIET_S * 0.9
    assert not at_rest.promptness.is_due("here")
    at_rest.now_s += limits.ON_LOOP_QUIET_S * 0.2
    assert at_rest.promptness.is_due("here")


def test_while_something_is_derived_questions_go_to_threads(at_rest):
    """Those who derive hold what a question needs."""
    at_rest.is_settled = False
    assert not at_rest.promptness.is_due("here")


def test_one_that_became_slow_goes_to_threads_until_it_is_quick_again(at_rest):
    """It blocks the loop once at the most, and is not banned for ever."""
    at_rest.promptness.took("here", 1.0)
    assert not at_rest.promptness.is_due("here")
    for _ in range(64):
        at_rest.promptness.took("here", QUICK_S)
    assert at_rest.promptness.is_due("here")


def test_one_kind_does_not_speak_for_another(at_rest):
    """A slow scope leaves the others where they are."""
    at_rest.promptness.took("there", 1.0)
    assert at_rest.promptness.is_due("here")
    assert not at_rest.promptness.is_due("there")


def test_only_so_many_kinds_are_known(at_rest):
    """Then all are learned anew: it is a limit, and no leak."""
    for number in range(limits.ON_LOOP_PLACES_MAX):
        at_rest.promptness.took(number, QUICK_S)
    assert not at_rest.promptness.is_due("here")
    assert at_rest.promptness.is_due(limits.ON_LOOP_PLACES_MAX - 1)


@given(
    steps=st.lists(
        st.one_of(
            st.just("post"),
            st.floats(0.001, 2 * limits.ON_LOOP_QUIET_S),
            st.tuples(st.sampled_from("ab"), st.floats(0, 10 * limits.ON_LOOP_S_MAX)),
        )
    )
)
def test_nobody_who_posted_within_the_quiet_time_meets_a_question_on_the_loop(steps):
    """Whatever came before: a question stays on the loop only after a second without a post, and
    only where the last of its kind, or one before it, was quick.
    """
    engine, posted_s, quickest = Engine(), 100.0, {}
    for step in steps:
        if step == "post":
            engine.posted += 1
            posted_s = engine.now_s
        elif isinstance(step, float):
            engine.now_s += step
        else:
            place, seconds = step
            if engine.promptness.is_due(place):
                assert engine.now_s - posted_s >= limits.ON_LOOP_QUIET_S
                assert quickest[place] <= limits.ON_LOOP_S_MAX
            engine.promptness.took(place, seconds)
            quickest[place] = min(seconds, quickest.get(place, seconds))


@contextlib.asynccontextmanager
async def _serving(folder, handler, on_send):
    """An endpoint and an engine that are real; `ask` asks."""
    endpoint = Endpoint(
        "GET", "/x", handler, "Tries.", is_open=True, off_loop=True, promptly=lambda call: "here"
    )
    settings = Settings(data=folder, embedder="hashing", disk_low_water_mb=1, ballast_mb=1)
    async with open_engine(settings) as engine:
        served = Served(endpoint, engine, {}, (endpoint,))
        scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": []}

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            on_send(engine, message)

        async def ask():
            await served(dict(scope), receive, send)

        yield engine, ask


def test_a_quick_question_is_answered_on_the_loop_until_somebody_posts(tmp_path):
    """Whoever posts is not kept waiting by one."""
    asyncio.run(_played(tmp_path))


async def _played(folder):
    threads, sent = [], []

    def handler(call):
        threads.append(threading.current_thread())
        return Reply({"ok": True})

    def on_send(engine, message):
        sent.append(message.get("status", 200))

    async with _serving(folder, handler, on_send) as (engine, ask):

        async def is_on_loop():
            await ask()
            return threads[-1] is threading.main_thread()

        assert not await is_on_loop()
        async with asyncio.timeout(120):
            while not await is_on_loop():  # noqa: ASYNC110 - nothing here tells when
                await asyncio.sleep(0.05)
        await capture(engine, ALICE, _experience())
        assert not await is_on_loop()
    assert {200} == set(sent)


@pytest.mark.parametrize("fails", [False, True])
def test_those_who_derive_go_last_until_the_answer_is_sent(tmp_path, fails):
    """Also on its way back from a thread, and of an error; and no longer (ADR 0053)."""
    asyncio.run(_minded(tmp_path, fails=fails))


async def _minded(folder, *, fails):
    is_free = []

    def handler(call):
        is_free.append(call.engine.committer.way.is_free)
        if fails:
            raise NotFound("It is not there.")
        return Reply({"ok": True})

    def on_send(engine, message):
        is_free.append(engine.committer.way.is_free)

    async with _serving(folder, handler, on_send) as (engine, ask):
        before = engine.committer.way.is_free
        await ask()
        await asyncio.sleep(0)

        assert [False] * 3 == is_free
        assert before
        assert engine.committer.way.is_free


def _experience():
    envelope = Envelope(
        scope="org:acme/user:one",
        modality="conversation",
        content=PlainText(text="Hello."),
        context=Context(observed_at=datetime(2026, 5, 13, tzinfo=UTC)),
        idempotency_key="hello",
    )
    return CaptureRequest(envelope=envelope)


def _like(*, is_at_hand=True, **body):
    promptly = next(one.promptly for one in ENDPOINTS if one.path == "/v1/recall")
    served = SimpleNamespace(embedder=SimpleNamespace(is_at_hand=is_at_hand))
    call = SimpleNamespace(
        engine=SimpleNamespace(served=served),
        caller=ALICE,
        body=RecallRequest(scope="user:alice", **body),
    )
    return promptly(call)


@pytest.mark.parametrize("body", [{"stream": True}, {"view": "narrative"}, {"is_at_hand": False}])
def test_a_recall_that_may_wait_for_others_never_stays(body):
    """A stream, what a model tells, and a question whose vector an endpoint makes."""
    assert _like() is not None
    assert _like(**body) is None


def test_scopes_and_views_have_times_of_their_own():
    """A small scope's recall says nothing of a large one's."""
    kinds = {_like(), _like(view="descend"), _like(diagnostics="full"), _like(filters={"a": 1})}
    assert 4 == len(kinds)
    assert _like(query="who") == _like(query="when")
