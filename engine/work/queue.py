"""How do workers hear of a task?  A port, and arq on Redis behind it.

arq is a trigger and nothing else: no argument, no result and no retry of it matters. What it loses
is announced again, what it says twice is refused the second time.
"""

import asyncio
import contextlib
from typing import Any, Final, Protocol

import msgspec
from arq.connections import ArqRedis
from arq.constants import job_key_prefix
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from engine.work.wire import FUNCTION, redis_name
from schemas import limits

AWAY: Final = (RedisError, OSError, TimeoutError, ValueError, TypeError)
"""Redis is not there, or what is there does not speak as it does."""

pack: Final = msgspec.msgpack.Encoder().encode
unpack: Final = msgspec.msgpack.Decoder().decode


class QueueAway(Exception):
    """The queue does not answer: the work is done elsewhere."""


class JobQueue(Protocol):
    """Tells workers that there is a task. It may lose what it is told, and say it twice."""

    async def push(self, queue: str, message: str, task_id: str, epoch: int) -> None:
        """Announce a task; QueueAway when that cannot be done now."""

    async def has(self, message: str) -> bool:
        """Whether an announcement is still there; QueueAway when nobody knows."""

    async def close(self) -> None:
        """Let go of it."""


def redis_pool(url: str, call_s: float = limits.QUEUE_CALL_S) -> ArqRedis:
    """The client of arq: connects when it is used, never pickles, never waits for long."""
    pool: Any = ConnectionPool.from_url(url, socket_timeout=call_s, socket_connect_timeout=call_s)
    return ArqRedis(
        pool_or_conn=pool,
        job_serializer=pack,
        job_deserializer=unpack,
        expires_extra_ms=int(limits.QUEUE_KEPT_S * 1000),
    )


class ArqQueue:
    """The queue in Redis. Belongs to one event loop."""

    def __init__(self, url: str, token: str, *, call_s: float = limits.QUEUE_CALL_S) -> None:
        self._redis = redis_pool(url, call_s)
        self._token = token
        self._call_s = call_s

    async def push(self, queue: str, message: str, task_id: str, epoch: int) -> None:
        """Announce a task: under a name of its own, so that arq does not take it for an old one."""
        try:
            async with asyncio.timeout(self._call_s):
                await self._redis.enqueue_job(
                    FUNCTION,
                    task_id,
                    epoch,
                    _job_id=message,
                    _queue_name=redis_name(self._token, queue),
                )
        except AWAY as error:
            await self._hang_up()
            raise QueueAway(f"{type(error).__name__}: {error}") from error

    async def has(self, message: str) -> bool:
        """Whether the announcement waits, or is being looked at."""
        try:
            async with asyncio.timeout(self._call_s):
                return bool(await self._redis.exists(job_key_prefix + message))
        except AWAY as error:
            await self._hang_up()
            raise QueueAway(f"{type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        with contextlib.suppress(*AWAY):
            await self._redis.aclose(close_connection_pool=True)

    async def _hang_up(self) -> None:
        """A late answer would be taken for that to the next question."""
        with contextlib.suppress(*AWAY):
            await self._redis.connection_pool.disconnect()
