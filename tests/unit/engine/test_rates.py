"""How often may an actor call, and who says so?"""

import pytest

from engine.clock import Clock
from engine.policy import Tier
from engine.presets import PRESETS
from engine.rates import Bucket, Limit, Rates, importer_of, in_force, parse_limit, tenfold
from engine.rules import Target, set_policy
from engine.settings import Settings
from schemas.caller import Caller
from schemas.policy import PolicyDocument, RateLimits

ALICE = Caller(actor="user:alice", tenant="acme")
BOB = Caller(actor="user:bob", tenant="acme")
START_US = 1_770_000_000_000_000


class Turned(Clock):
    """A clock turned by hand; both its faces show the same passing of time."""

    def __init__(self):
        self.passed_s = 0.0
        super().__init__(lambda: START_US + int(self.passed_s * 1_000_000), seed=1)

    def elapsed_s(self):
        return self.passed_s


def document(**rates):
    return PolicyDocument(rate_limits=RateLimits(**rates))


class Said:
    """Policies of two tiers, as a test wants them."""

    def __init__(self, deployment=None, **actors):
        self.actors = actors
        self.document = deployment or PolicyDocument()

    def deployment(self):
        return self.document

    def tiers(self, tenant, actor, scope):
        own = self.actors.get(actor.partition(":")[2])
        wide = [Tier("deployment", self.document)]
        return wide if own is None else [*wide, Tier("actor", own)]


@pytest.fixture
def clock():
    return Turned()


# ── one bucket ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rate, count, period_s", [("100/s", 100, 1), ("30/m", 30, 60), ("5/h", 5, 3600)]
)
def test_a_rate_in_numbers(rate, count, period_s):
    """Calls in a second, a minute or an hour."""
    assert Limit(count, period_s) == parse_limit(rate)


def test_a_bucket_gives_what_it_holds():
    """As many at once as the limit says, then none."""
    bucket = Bucket(Limit(3, 60), 0.0)

    assert [2, 1, 0, None, None] == [bucket.take(0.0) for _ in range(5)]


def test_tokens_come_back_with_time():
    """A third of the period brings one of three; a whole one no more than all."""
    bucket = Bucket(Limit(3, 60), 0.0)
    for _ in range(3):
        bucket.take(0.0)

    assert None is bucket.take(19.0)
    assert 0 == bucket.take(20.0)
    assert 3 == bucket.left(1000.0)


def test_asking_in_vain_costs_nothing():
    """Who asks all the time gets its next token when everyone would."""
    bucket = Bucket(Limit(1, 10), 0.0)
    bucket.take(0.0)
    refused = [bucket.take(second) for second in range(1, 10)]

    assert [None] * 9 == refused
    assert 0 == bucket.take(10.0)


def test_a_clock_that_steps_back_gives_nothing():
    """And takes nothing: what was there is there."""
    bucket = Bucket(Limit(2, 10), 100.0)
    bucket.take(100.0)

    assert 1 == bucket.left(50.0)
    assert 0 == bucket.take(50.0)
    assert None is bucket.take(100.0)


def test_a_lower_limit_takes_what_is_too_much():
    """And a higher one gives nothing at once."""
    bucket = Bucket(Limit(10, 10), 0.0)
    bucket.change(Limit(2, 10), 0.0)
    lowered = bucket.left(0.0)
    bucket.change(Limit(10, 10), 0.0)

    assert (2, 2) == (lowered, bucket.left(0.0))


# ── what the documents say ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "said, expected",
    [
        ([], None),
        ([("deployment", "100/s")], "100/s"),
        ([("deployment", "100/s"), ("tenant", "10/s")], "10/s"),
        ([("deployment", "100/s"), ("tenant", "500/s")], "500/s"),
        ([("deployment", "100/s"), ("actor", "500/s")], "100/s"),
        ([("deployment", "100/s"), ("actor", "60/m")], "60/m"),
        ([("tenant", "10/s"), ("scope", "5/s"), ("actor", "7/s")], "5/s"),
        ([("actor", "7/s")], "7/s"),
    ],
)
def test_which_limit_is_in_force(said, expected):
    """A tenant's replaces the deployment's; narrower tiers can only lower it (001 §6.5)."""
    tiers = [Tier(name, document(write=rate)) for name, rate in said]

    assert expected == in_force(tiers).write


def test_reads_and_writes_are_apart():
    """A tier that speaks of one says nothing of the other."""
    tiers = [
        Tier("deployment", PRESETS["cloud_shared_saas"].document),
        Tier("tenant", document(read="7/s")),
    ]

    assert RateLimits(write="100/s", read="7/s") == in_force(tiers)


# ── many buckets ─────────────────────────────────────────────────────────────────────────────


def test_no_limit_no_bucket(clock):
    """Where nothing is said, nothing is counted."""
    rates = Rates(Said(), clock)

    assert None is rates.take(ALICE, is_write=True)
    assert 0 == rates.bucket_count


def test_every_actor_has_its_own(clock):
    """Nobody's calls are charged to another, nor reads to writes."""
    rates = Rates(Said(document(write="1/m", read="1/m")), clock)
    rival = Caller(actor="user:alice", tenant="rival")
    taken = [
        rates.take(caller, is_write=is_write)
        for caller in (ALICE, BOB, rival)
        for is_write in (True, False)
    ]
    again = rates.take(ALICE, is_write=True)

    assert all(allowance.granted for allowance in taken)
    assert not again.granted


def test_what_an_answer_says(clock):
    """The limit, what is left, when the bucket is full again, and how long to wait."""
    rates = Rates(Said(document(write="2/m")), clock)
    first, second, third = (rates.take(ALICE, is_write=True) for _ in range(3))
    clock.passed_s = 29.5
    fourth = rates.take(ALICE, is_write=True)
    clock.passed_s = 30.0
    fifth = rates.take(ALICE, is_write=True)
    now_s = START_US // 1_000_000

    assert [(2, 1, 0), (2, 0, 0), (2, 0, 30), (2, 0, 1), (2, 0, 0)] == [
        (allowance.limit, allowance.remaining, allowance.retry_after_s)
        for allowance in (first, second, third, fourth, fifth)
    ]
    assert [30, 60, 60, 60, 90] == [
        allowance.reset_s - now_s for allowance in (first, second, third, fourth, fifth)
    ]


def test_a_limit_of_nothing(clock):
    """Never a token; the wait named is the period."""
    allowance = Rates(Said(document(write="0/m")), clock).take(ALICE, is_write=True)

    assert (False, 0, 60) == (allowance.granted, allowance.remaining, allowance.retry_after_s)


def test_full_buckets_are_let_go(clock):
    """What has filled up again says no more than a new one would."""
    rates = Rates(Said(document(write="1/s")), clock)
    for number in range(100):
        rates.take(Caller(actor=f"user:n{number}", tenant="acme"), is_write=True)
        clock.passed_s += 0.5

    assert rates.bucket_count <= 3


def test_buckets_are_bounded(clock):
    """However many actors call; the one longest unused goes first, and others keep their debt."""
    rates = Rates(Said(document(write="1/h")), clock, buckets_max=10)
    callers = [Caller(actor=f"user:n{number}", tenant="acme") for number in range(15)]
    for caller in callers:
        rates.take(caller, is_write=True)

    assert 10 == rates.bucket_count
    assert not rates.take(callers[-1], is_write=True).granted


def test_a_changed_document_holds_from_the_next_call(clock):
    """What was remembered is dropped when control rows of policy were written, and only then."""
    said = Said(document(write="5/h"))
    rates = Rates(said, clock)
    before = rates.take(ALICE, is_write=True)
    said.document = document(write="2/h")
    rates.changed({(1, "scopes", b"x"): None})
    unheard = rates.take(ALICE, is_write=True)
    rates.changed({(1, "policies", b"tenant"): None})
    after = rates.take(ALICE, is_write=True)

    assert [(5, 4), (5, 3), (2, 1)] == [
        (allowance.limit, allowance.remaining) for allowance in (before, unheard, after)
    ]


# ── the importer ─────────────────────────────────────────────────────────────────────────────


def test_imports_have_a_bucket_of_their_own(clock):
    """Ten times the deployment's writes, a tenant, not the sender's (001 §18.2.6)."""
    rates = Rates(Said(document(write="1/m")), clock)
    rates.take(ALICE, is_write=True)
    taken = [rates.take_import("acme") for _ in range(11)]

    assert "service:importer_acme" == importer_of("acme")
    assert [True] * 10 + [False] == [allowance.granted for allowance in taken]
    assert rates.take_import("rival").granted


def test_a_tenant_may_set_the_importers_limit(clock):
    """Its document names it; without any limit there is none."""
    limited = Rates(Said(document(write="1/m", importer="3/m")), clock).take_import("acme")

    assert 3 == limited.limit
    assert None is Rates(Said(), clock).take_import("acme")
    assert ("1000/s", None) == (tenfold("100/s"), tenfold(None))


# ── in the engine ────────────────────────────────────────────────────────────────────────────


async def test_a_policy_in_the_log_sets_the_limit(rig):
    """The preset's at first, the tenant's from the moment its document is in force."""
    site = rig.Site()
    site.settings = Settings(preset="cloud_shared_saas")
    async with site:
        engine = await site.open()
        before = engine.rates.take(ALICE, is_write=True)
        await set_policy(engine, ALICE, Target("tenant", "acme"), document(write="7/s"))
        after = engine.rates.take(BOB, is_write=True)
        own = document(write="1000/s", read="1/s")
        await set_policy(engine, ALICE, Target("actor", "user:bob"), own)
        limits = engine.rates.limits("acme", "user:bob")

        assert (100, 7) == (before.limit, after.limit)
        assert RateLimits(write="7/s", read="1/s") == limits


async def test_development_has_no_limit(rig):
    """Nothing is set there, so nothing is counted."""
    async with rig.Site() as site:
        engine = await site.open()

        assert None is engine.rates.take(ALICE, is_write=True)
        assert None is engine.rates.take(ALICE, is_write=False)
