"""How do several servers keep one limit?  They lease tokens from a bucket in Redis, ahead of calls.

A call is charged here and now, to tokens already leased or to a small advance; Redis is spoken to
in the background only. When it does not answer, each server keeps to its share of the limit. Redis
holds nothing that matters: a bucket that is gone begins again from what a server remembers of it
(docs/adr/0018).
"""

import asyncio
import contextlib
import hashlib
import math
import os
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from engine.clock import Clock
from engine.rates import BUCKETS_MAX, Bucket, Limit, Place
from engine.rows import Allowance

ADVANCE: Final = 0.2
"""Of a limit, what all servers together may grant before Redis has heard of it."""
AWAY_S: Final = 2.0
"""Without an answer for so long, Redis is away, and each server keeps to its share."""
CALL_S: Final = 0.25
"""What Redis has for an answer."""

_ALIVE_MS: Final = 5000
_BACKOFF_MAX_S: Final = 2.0
_BATCH: Final = 500  # Redis does nothing else meanwhile: some milliseconds.
_GAP_S: Final = 0.02
_PREFIX: Final = "strata:rates:"
_TICK_S: Final = 0.25

_AWAY: Final = (RedisError, OSError, TimeoutError, ValueError, TypeError)
"""Redis is not there, or what is there does not speak as it does."""

_LEASE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. (now + ttl), '+inf')
redis.call('PEXPIRE', KEYS[1], ttl)
local answer = {redis.call('ZCARD', KEYS[1])}
for i = 2, #KEYS do
  local at = 3 + (i - 2) * 5
  local count, per_ms = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local left, owed, ask = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local held = redis.call('HMGET', KEYS[i], 'left', 'at')
  if held[1] and held[2] then
    left = tonumber(held[1]) + math.max(0, now - tonumber(held[2])) * per_ms
  end
  left = math.min(count, left) - owed
  local given = math.min(ask, math.max(0, math.floor(left)))
  left = math.min(count, left - given)
  redis.call('HSET', KEYS[i], 'left', string.format('%.6f', left), 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[i], string.format('%.0f', (count - left) / per_ms + 60000))
  answer[#answer + 1] = given
  answer[#answer + 1] = string.format('%.6f', left)
end
return answer
"""
"""Say that a server is alive; per bucket book what was advanced, then lease or take back.

Answers how many servers are alive, then per bucket what was leased and what is left. A bucket's
key goes when it is full again: a missing one and a full one are the same.
"""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """What a server says of one bucket: how full it knows it, what it advanced, what it wants."""

    limit: Limit
    known: float
    owed: float
    tokens: int
    """Below zero: so many leased tokens come back."""

    def arguments(self) -> tuple[str, ...]:
        """As the script takes them."""
        numbers = (self.limit.per_s / 1000, self.known, self.owed)
        return (str(self.limit.count), *(f"{number:.9f}" for number in numbers), str(self.tokens))


class Lease:
    """One bucket as this server knows it. Pure arithmetic: time is an argument."""

    __slots__ = ("_heard", "_pace", "balance", "demand", "limit", "local", "owed")

    def __init__(self, limit: Limit, now_s: float) -> None:
        self.limit = limit
        self.balance = 0
        """Tokens leased and not yet given."""
        self.owed = 0.0
        """Tokens given in advance, which Redis has not heard of."""
        self.demand = 0
        """Calls since Redis was last asked, also those refused."""
        self.local: Bucket | None = None
        """The share that holds while Redis is away."""
        self._heard = (float(limit.count), now_s)
        self._pace = 0.0

    def known(self, now_s: float) -> float:
        """Tokens in the shared bucket by what was last heard, and what time has added since."""
        left, at_s = self._heard
        return min(float(self.limit.count), left + max(0.0, now_s - at_s) * self.limit.per_s)

    def left(self, now_s: float) -> float:
        """Tokens this server believes the actor still has."""
        if self.local is not None:
            return self.local.left(now_s)
        return self.balance + self.known(now_s) - self.owed

    def take(self, now_s: float, advance: int) -> bool:
        """Take one while Redis is there: a leased one first, else in advance."""
        self.demand += 1
        if self.balance >= 1:
            self.balance -= 1
            return True
        if self.owed < advance and self.known(now_s) - self.owed >= 1:
            self.owed += 1
            return True
        return False

    def take_local(self, now_s: float, servers: int) -> bool:
        """Take one while Redis is away: of this server's share."""
        share = share_of(self.limit, servers)
        if self.local is None:
            fair = self.balance + max(0.0, self.known(now_s) - self.owed) / servers
            self.local = Bucket(share, now_s, fair)
            self.balance = 0
        elif self.local.limit != share:
            self.local.change(share, now_s)
        if self.local.take(now_s) is None:
            return False
        self.owed += 1
        return True

    def come_back(self, now_s: float) -> None:
        """Redis is there again: what was given meanwhile is owed, unless time has made it good."""
        if self.local is not None:
            missing = self.local.limit.count - self.local.left(now_s)
            self.owed = max(0.0, min(self.owed, missing))
            self.local = None

    def ask(self, now_s: float) -> Ask:
        """What to say to Redis; tokens to be given back are gone from here already.

        As many are wanted as were called for of late, so what nobody uses goes back in a second.
        """
        self._pace = max(float(self.demand), self._pace / 2)
        self.demand = 0
        wanted = min(self.limit.count, int(self._pace))
        tokens = wanted - self.balance
        self.balance = min(self.balance, wanted)
        return Ask(self.limit, self.known(now_s), self.owed, tokens)

    def hear(self, asked: Ask, leased: int, left: float, now_s: float) -> None:
        """Redis has answered."""
        self.owed = max(0.0, self.owed - asked.owed)
        self.balance += max(0, leased)
        self._heard = (left, now_s)

    @property
    def is_quiet(self) -> bool:
        """Whether Redis need not hear of it."""
        return not (self.demand or self.owed or self.balance or self._pace >= 1)

    def is_full(self, now_s: float) -> bool:
        """Whether it says no more than a new one would."""
        return (
            (self.local is None or self.local.is_full(now_s))
            and self.is_quiet
            and self.known(now_s) >= self.limit.count
        )


class SharedRates:
    """The buckets of every actor, shared through Redis. Owned by the event loop."""

    def __init__(
        self, url: str, clock: Clock, *, buckets_max: int = BUCKETS_MAX, call_s: float = CALL_S
    ) -> None:
        self._redis = Redis.from_url(url, socket_timeout=call_s, socket_connect_timeout=call_s)
        self._call_s = call_s
        # The one secret that all servers of a Redis share, wherever their data lies.
        password = urlsplit(url).password or ""
        self._key = hashlib.blake2b(password.encode(), person=b"strata rates").digest()
        self._name = os.urandom(8).hex()
        self._clock = clock
        self._buckets_max = buckets_max
        self._leases: OrderedDict[Place, Lease] = OrderedDict()
        self._active: dict[Place, Lease] = {}
        self._answered_s: float | None = None
        self._failures = 0
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.servers = 1
        """Servers last seen alive, this one among them."""

    @property
    def is_shared(self) -> bool:
        """Whether Redis answered of late; else this server keeps to its share."""
        return self._is_shared(self._clock.elapsed_s())

    @property
    def bucket_count(self) -> int:
        """Buckets in memory."""
        return len(self._leases)

    # ── on the path of a call ────────────────────────────────────────────────────────────────

    def charge(self, place: Place, limit: Limit) -> Allowance:
        """Take one token of a bucket, without waiting for anyone."""
        now_s = self._clock.elapsed_s()
        lease = self._lease(place, limit, now_s)
        self._active[place] = lease
        if self._is_shared(now_s):
            lease.come_back(now_s)
            advance = advance_of(limit, self.servers)
            is_granted = lease.take(now_s, advance)
            if lease.owed * 2 >= advance or (not is_granted and lease.left(now_s) >= 1):
                self._wanted.set()
        else:
            is_granted = lease.take_local(now_s, self.servers)
        return self._allowance(lease, now_s, is_granted=is_granted)

    def _is_shared(self, now_s: float) -> bool:
        return self._answered_s is not None and now_s - self._answered_s <= AWAY_S

    def _lease(self, place: Place, limit: Limit, now_s: float) -> Lease:
        lease = self._leases.get(place)
        if lease is None:
            self._make_room(now_s)
            lease = self._leases[place] = Lease(limit, now_s)
        else:
            self._leases.move_to_end(place)
            lease.limit = limit
        return lease

    def _allowance(self, lease: Lease, now_s: float, *, is_granted: bool) -> Allowance:
        limit, left = lease.limit, lease.left(now_s)
        # A limit of nothing never has a token; the wait named is its period.
        per_s = limit.per_s or 1 / limit.period_s
        full_s = self._clock.now_us() / 1_000_000 + max(0.0, limit.count - left) / per_s
        if lease.local is not None:
            wait_s = lease.local.until_s(1, now_s)
        else:
            wait_s = max(0.0, 1 - left) / per_s
        return Allowance(
            limit=limit.count,
            remaining=max(0, min(limit.count, int(left))) if is_granted else 0,
            reset_s=math.ceil(full_s),
            retry_after_s=0 if is_granted else max(1, math.ceil(wait_s)),
        )

    def _make_room(self, now_s: float) -> None:
        """Let go of what is full again, longest unused first, and of one when there are many."""
        leases = self._leases
        while leases:
            place = next(iter(leases))
            if len(leases) < self._buckets_max and not leases[place].is_full(now_s):
                return
            del leases[place]
            self._active.pop(place, None)

    # ── in the background ────────────────────────────────────────────────────────────────────

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to ask Redis; nothing waits for its answer."""
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        """Stop asking; the others need not wait to see that this server is gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(*_AWAY):
            async with asyncio.timeout(self._call_s):
                await cast("Awaitable[int]", self._redis.zrem(f"{_PREFIX}alive", self._name))
        with contextlib.suppress(*_AWAY):
            await self._redis.aclose()

    async def _run(self) -> None:
        while True:
            await self.refresh()
            if self._failures:
                await asyncio.sleep(min(_BACKOFF_MAX_S, _TICK_S * 2 ** (self._failures - 1)))
                continue
            # Not all at the same moments: who asks first would get most.
            tick_s = _TICK_S * (0.8 + (self._clock.entropy() % 400) / 1000)
            await asyncio.sleep(_GAP_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(tick_s):
                    await self._wanted.wait()

    async def refresh(self) -> None:
        """Book advances, and lease for the calls to come; what Redis does not hear is kept."""
        self._wanted.clear()
        try:
            if self._failures or self._answered_s is None or not self._active:
                # A Redis that was away is asked for nothing that its late answer could lose.
                await self._exchange(())
            places = list(self._active.items())
            for start in range(0, len(places), _BATCH):
                await self._exchange(places[start : start + _BATCH])
        except _AWAY:
            self._failures = min(self._failures + 1, 16)
            with contextlib.suppress(*_AWAY):
                await self._redis.connection_pool.disconnect()
        else:
            # Only now: a Redis that says it is there and leases nothing is away.
            self._failures = 0
            self._answered_s = self._clock.elapsed_s()

    async def _exchange(self, places: Sequence[tuple[Place, Lease]]) -> None:
        now_s = self._clock.elapsed_s()
        asked: list[tuple[Place, Lease, Ask]] = []
        for place, lease in places:
            lease.come_back(now_s)
            if lease.limit.count:
                asked.append((place, lease, lease.ask(now_s)))
            else:
                self._active.pop(place, None)
        keys = [f"{_PREFIX}alive", *(self._key_of(place) for place, _, _ in asked)]
        words = [word for _, _, ask in asked for word in ask.arguments()]
        async with asyncio.timeout(self._call_s):
            answer = await cast(
                "Awaitable[list[Any]]",
                self._redis.eval(_LEASE, len(keys), *keys, self._name, str(_ALIVE_MS), *words),
            )
        servers, *said = answer
        if len(said) != 2 * len(asked):
            raise ValueError("Redis answered for other buckets than were asked for")
        now_s = self._clock.elapsed_s()
        for (place, lease, ask), leased, left in zip(asked, said[::2], said[1::2], strict=True):
            lease.hear(ask, int(leased), float(left), now_s)
            if lease.is_quiet:
                self._active.pop(place, None)
        self.servers = max(1, int(servers))

    def _key_of(self, place: Place) -> str:
        """A bucket's name in Redis, which says nothing of whose it is."""
        named = hashlib.blake2b(key=self._key, digest_size=16)
        for part in place:
            raw = part.encode()
            named.update(len(raw).to_bytes(4, "big") + raw)
        return f"{_PREFIX}{named.hexdigest()}"


def share_of(limit: Limit, servers: int) -> Limit:
    """One server's part of a limit, rounded down; one call at least, then in a longer period."""
    if limit.count == 0 or servers <= 1:
        return limit
    if limit.count >= servers:
        return Limit(limit.count // servers, limit.period_s)
    return Limit(1, math.ceil(limit.period_s * servers / limit.count))


def advance_of(limit: Limit, servers: int) -> int:
    """Calls one server may grant before Redis has heard of them; a server alone needs no leave."""
    return limit.count if servers <= 1 else max(1, int(limit.count * ADVANCE / servers))
