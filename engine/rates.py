"""How often may an actor call?  A token bucket each, in this process (001 §6.5).

Buckets are memory of the one process that serves a data directory; nothing of them is durable, and
a restart fills them. Limits come from the policy documents and hold from the next request on.
Where Redis is set, `shared_rates.py` holds the buckets instead, for several servers at once.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from engine.clock import Clock
from engine.policy import Policies, Tier
from engine.rows import Allowance
from schemas.caller import Caller
from schemas.policy import RateLimits

KINDS: Final = ("write", "read", "importer")
BUCKETS_MAX: Final = 100_000
"""Buckets held at once, some 200 bytes each; beyond it the one longest unused is let go."""
IMPORTER_FACTOR: Final = 10
"""001 §18.2.6: the importer's bucket, in writes of the deployment."""

Place = tuple[str, str, str]
"""Whose bucket it is: tenant, actor and kind."""

_PERIODS_S: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Limit:
    """So many calls in a period; as many may come at once."""

    count: int
    period_s: int

    @property
    def per_s(self) -> float:
        """Tokens that come back in a second."""
        return self.count / self.period_s


@lru_cache(maxsize=1024)
def parse_limit(rate: str) -> Limit:
    """`100/s` as numbers; the pattern of a rate was checked when it was set."""
    count, _, unit = rate.partition("/")
    return Limit(int(count), _PERIODS_S[unit])


def in_force(tiers: Iterable[Tier]) -> RateLimits:
    """The limits that follow from the tiers' documents, widest first.

    A tenant's word replaces the deployment's (001 §6.5). Below that a document can only lower a
    limit: an actor may set its own document, and not thereby its own limit.
    """
    found: dict[str, str] = {}
    for tier in tiers:
        said = tier.document.rate_limits or RateLimits()
        for kind in KINDS:
            rate = getattr(said, kind)
            if rate is None:
                continue
            known = found.get(kind)
            is_lower = known is None or parse_limit(rate).per_s < parse_limit(known).per_s
            if is_lower or tier.name in ("deployment", "tenant"):
                found[kind] = rate
    return RateLimits(**found)


class Bucket:
    """Tokens that come back over time, up to the limit. Pure arithmetic: time is an argument."""

    __slots__ = ("_at_s", "_left", "limit")

    def __init__(self, limit: Limit, now_s: float, left: float = math.inf) -> None:
        self.limit = limit
        self._left = min(float(limit.count), left)
        self._at_s = now_s

    def left(self, now_s: float) -> float:
        """Tokens there are now; a clock that steps back gives nothing and takes nothing."""
        passed_s = max(0.0, now_s - self._at_s)
        return min(float(self.limit.count), self._left + passed_s * self.limit.per_s)

    def take(self, now_s: float) -> float | None:
        """Take one; what is left then, or None when there was none to take."""
        left = self.left(now_s)
        if left < 1:
            return None
        self._left, self._at_s = left - 1, max(self._at_s, now_s)
        return self._left

    def change(self, limit: Limit, now_s: float) -> None:
        """The limit is another from now on; no more is left than it allows."""
        self._left = min(self.left(now_s), float(limit.count))
        self._at_s = max(self._at_s, now_s)
        self.limit = limit

    def until_s(self, tokens: float, now_s: float) -> float:
        """Seconds until so many are there; a limit of nothing never has any."""
        missing = tokens - self.left(now_s)
        if missing <= 0:
            return 0.0
        return missing / self.limit.per_s if self.limit.count else float(self.limit.period_s)

    def is_full(self, now_s: float) -> bool:
        """Whether it says no more than a new one would."""
        return self.left(now_s) >= self.limit.count


class Shared(Protocol):
    """Buckets that several servers fill and empty together."""

    def charge(self, place: Place, limit: Limit) -> Allowance:
        """Take one token, without waiting for anyone."""

    @property
    def bucket_count(self) -> int:
        """Buckets in memory."""


class Rates:
    """The buckets of every actor, and the limits they are filled to. Owned by the event loop."""

    def __init__(
        self,
        policies: Policies,
        clock: Clock,
        buckets_max: int = BUCKETS_MAX,
        shared: Shared | None = None,
    ) -> None:
        self._policies = policies
        self._clock = clock
        self._shared = shared
        self._buckets_max = buckets_max
        self._limits: dict[tuple[str, str], RateLimits] = {}
        self._buckets: OrderedDict[Place, Bucket] = OrderedDict()

    def changed(self, pending: Mapping[tuple[int, str, bytes], Any]) -> None:
        """Control rows were written: documents may say something else now."""
        if any(table in ("policies", "actor_policies") for _, table, _ in pending):
            self._limits.clear()

    def take(self, caller: Caller, *, is_write: bool) -> Allowance | None:
        """Charge one call to its actor; None when no limit applies."""
        kind = "write" if is_write else "read"
        limits = self.limits(caller.tenant, caller.actor)
        rate = limits.write if is_write else limits.read
        return None if rate is None else self._charge((caller.tenant, caller.actor, kind), rate)

    def take_import(self, tenant: str) -> Allowance | None:
        """Charge a submitted import to the tenant's importer, and not to who sent it."""
        actor = importer_of(tenant)
        wide = self._policies.deployment().rate_limits or RateLimits()
        rate = self.limits(tenant, actor).importer or tenfold(wide.write)
        return None if rate is None else self._charge((tenant, actor, "importer"), rate)

    def limits(self, tenant: str, actor: str) -> RateLimits:
        """The limits of an actor, remembered until a document changes.

        Which scope a call is about is not known yet, so scopes' documents do not bear on it.
        """
        found = self._limits.get((tenant, actor))
        if found is None:
            if len(self._limits) >= self._buckets_max:
                self._limits.clear()
            found = in_force(self._policies.tiers(tenant, actor, None))
            self._limits[tenant, actor] = found
        return found

    @property
    def bucket_count(self) -> int:
        """Buckets in memory."""
        return len(self._buckets) if self._shared is None else self._shared.bucket_count

    def _charge(self, place: Place, rate: str) -> Allowance:
        limit = parse_limit(rate)
        if self._shared is not None:
            return self._shared.charge(place, limit)
        now_s = self._clock.elapsed_s()
        bucket = self._buckets.get(place)
        if bucket is None:
            self._make_room(now_s)
            bucket = self._buckets[place] = Bucket(limit, now_s)
        else:
            self._buckets.move_to_end(place)
            if bucket.limit != limit:
                bucket.change(limit, now_s)
        left = bucket.take(now_s)
        full_s = self._clock.now_us() / 1_000_000 + bucket.until_s(limit.count, now_s)
        return Allowance(
            limit=limit.count,
            remaining=int(left or 0),
            reset_s=math.ceil(full_s),
            retry_after_s=max(1, math.ceil(bucket.until_s(1, now_s))) if left is None else 0,
        )

    def _make_room(self, now_s: float) -> None:
        """Let go of what is full again, longest unused first, and of one more when there are many.

        Each bucket goes once, so this costs a call no more than the making of a bucket did.
        """
        buckets = self._buckets
        while buckets:
            place = next(iter(buckets))
            if len(buckets) < self._buckets_max and not buckets[place].is_full(now_s):
                return
            del buckets[place]


def importer_of(tenant: str) -> str:
    """The synthetic actor that imports are charged to (001 §18.2.6)."""
    return f"service:importer_{tenant}"


def tenfold(rate: str | None) -> str | None:
    """The importer's limit when no document names one."""
    if rate is None:
        return None
    count, _, unit = rate.partition("/")
    return f"{int(count) * IMPORTER_FACTOR}/{unit}"
