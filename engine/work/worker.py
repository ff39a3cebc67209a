"""How does a worker work?  It hears of a task in Redis, and asks the owner of the log for the rest.

It opens no data directory and keeps nothing: what it is given, what it answers and that it is there
at all goes to the owner over HTTP, with a token. When Redis goes away it ends what it has at hand;
when the owner does, so does what it was doing.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec
from arq.worker import Worker as ArqWorker
from arq.worker import func

from engine.work.computes import COMPUTES, Compute, Refused, Tools
from engine.work.queue import AWAY, pack, redis_pool, unpack
from engine.work.wire import (
    FUNCTION,
    MODEL,
    WORK,
    Beat,
    Given,
    Heard,
    Take,
    Taken,
    embed_queue,
    encode,
    model_queue,
    redis_name,
)
from schemas import limits

_HTTP_S: Final = 30.0
_BACKOFF_S: Final = 0.5
_GIVE_TRIES: Final = 5
_LEAVE_S: Final = 10.0
_GONE: Final = (404, 409)


class OwnerAway(Exception):
    """The owner of the log does not answer."""


class Worker:
    """One worker process. Belongs to one event loop."""

    def __init__(
        self,
        *,
        server: str,
        token: str,
        redis_url: str,
        tools: Tools,
        version: str = "",
        jobs: int = 2,
        computes: Mapping[str, Compute[Any, Any]] = COMPUTES,
    ) -> None:
        self._redis_url = redis_url
        self._token = token
        self._tools = tools
        self._version = version
        self._jobs = jobs
        self._computes = computes
        self._running: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, int] = {}
        self._stopping = asyncio.Event()
        self.name = f"{socket.gethostname()}-{os.getpid()}-{tools.clock.entropy() & 0xFFFF:04x}"
        self.calls = 0 if tools.model is None else tools.model.calls
        self.queues = [WORK]
        if tools.model is not None:
            self.queues.append(model_queue(tools.model.name))
        if tools.embedder is not None:
            self.queues.append(embed_queue(tools.embedder.name))
        self.done = 0
        self._http = httpx.AsyncClient(
            base_url=server.rstrip("/"),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/msgpack"},
            timeout=_HTTP_S,
            verify=server.startswith("https:"),
        )

    async def greet(self) -> str | None:
        """Beat once; why that was not heard, if it was not."""
        try:
            await self._beat()
        except OwnerAway as error:
            return str(error)
        return None

    async def run(self) -> None:
        """Work until `stop`; what is at hand then is ended, or given back."""
        # arq tells of every message; what becomes of a task is the owner's to tell.
        logging.getLogger("arq").setLevel(logging.CRITICAL)
        followers = [asyncio.create_task(self._follow(queue)) for queue in self.queues]
        beating = asyncio.create_task(self._beat_on())
        await self._stopping.wait()
        following = set(followers)
        while following:
            # Once is not always enough: who was just taking leave of Redis goes on listening.
            for task in following:
                task.cancel()
            _, following = await asyncio.wait(following, timeout=_BACKOFF_S)
        if self._running:
            await asyncio.wait(self._running.values(), timeout=_LEAVE_S)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        with contextlib.suppress(OwnerAway):
            await self._beat(leaving=True)
        await self._http.aclose()

    def stop(self) -> None:
        """End: take nothing more."""
        self._stopping.set()

    # ── hearing ──────────────────────────────────────────────────────────────────────────────

    async def _follow(self, queue: str) -> None:
        """Listen to one queue, again and again while Redis comes and goes."""
        while True:
            with contextlib.suppress(*AWAY):
                await self._listen(queue)
            await asyncio.sleep(_BACKOFF_S)

    async def _listen(self, queue: str) -> None:
        pool = redis_pool(self._redis_url, call_s=limits.QUEUE_CALL_S * 4)
        listener = ArqWorker(
            functions=[func(self._heard, name=FUNCTION)],  # type: ignore[arg-type]
            queue_name=redis_name(self._token, queue),
            redis_pool=pool,
            handle_signals=False,
            # One task has enough questions for all the calls that this worker makes at once.
            max_jobs=1 if queue.startswith(MODEL) else self._jobs,
            job_timeout=limits.TASK_S_MAX,
            keep_result=0,
            max_tries=1,
            retry_jobs=False,
            poll_delay=limits.QUEUE_POLL_S,
            log_results=False,
            # Not the pool's but the worker's own are used; left out, it would unpickle.
            job_serializer=pack,
            job_deserializer=unpack,
        )
        try:
            await listener.async_run()
        finally:
            # The tasks go on: their answers do not go through Redis.
            with contextlib.suppress(*AWAY, asyncio.CancelledError):
                await listener.close()
            with contextlib.suppress(*AWAY):
                await pool.connection_pool.disconnect()

    async def _heard(self, _: dict[Any, Any], task_id: str, epoch: int) -> None:
        """A message: there is a task. It runs by itself, and what listens may break off."""
        if task_id in self._running or self._stopping.is_set():
            return
        task = asyncio.create_task(self._work(task_id, epoch))
        self._running[task_id] = task
        task.add_done_callback(lambda _: self._running.pop(task_id, None))
        await asyncio.shield(task)

    # ── working ──────────────────────────────────────────────────────────────────────────────

    async def _work(self, task_id: str, epoch: int) -> None:
        try:
            taken = await self._take(task_id, epoch)
            if taken is None:
                return
            self._held[task_id] = epoch
            given = await self._computed(task_id, epoch, taken)
            await self._give(task_id, given)
        except OwnerAway:
            return  # it gives the task to somebody else, or does it itself
        finally:
            self._held.pop(task_id, None)

    async def _computed(self, task_id: str, epoch: int, taken: Taken) -> Given:
        compute = self._computes[taken.kind]

        def source() -> bytes:
            with httpx.Client(
                base_url=self._http.base_url, headers=self._http.headers, timeout=_HTTP_S
            ) as client:
                asked = {"worker": self.name, "epoch": str(epoch)}
                answer = client.get(f"/internal/tasks/{task_id}/source", params=asked)
                if answer.status_code == 422:
                    raise Refused(answer.text)
                answer.raise_for_status()
                return answer.content

        try:
            asked = msgspec.msgpack.decode(taken.asked, type=compute.asked)
            answer = await compute.run(asked, self._tools, source)
        except Refused as refused:
            return Given(worker=self.name, epoch=epoch, refused=str(refused))
        except Exception as error:  # noqa: BLE001 - the owner counts it, and says so in health
            return Given(worker=self.name, epoch=epoch, error=repr(error)[:500])
        self.done += 1
        return Given(worker=self.name, epoch=epoch, answer=encode(answer))

    # ── speaking with the owner ──────────────────────────────────────────────────────────────

    async def _take(self, task_id: str, epoch: int) -> Taken | None:
        status, content = await self._post(f"tasks/{task_id}/take", Take(self.name, epoch))
        return None if status in _GONE else msgspec.msgpack.decode(content, type=Taken)

    async def _give(self, task_id: str, given: Given) -> None:
        """Hand the answer over; that a restarted owner does not know it is an answer, too."""
        for attempt in range(_GIVE_TRIES):
            try:
                await self._post(f"tasks/{task_id}/give", given)
            except OwnerAway:
                await asyncio.sleep(_BACKOFF_S * 2**attempt)
            else:
                return

    async def _beat_on(self) -> None:
        while True:
            with contextlib.suppress(OwnerAway):
                await self._beat()
            self._tools.forget_unused(limits.WORKER_FILE_S)
            await asyncio.sleep(limits.WORKER_BEAT_S)

    async def _beat(self, *, leaving: bool = False) -> None:
        """Say that it is there; what nobody waits for any more is let go."""
        beat = Beat(
            worker=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=self._version,
            queues=self.queues,
            calls=self.calls,
            tasks=dict(self._held),
            done=self.done,
            leaving=leaving,
        )
        status, content = await self._post("beat", beat)
        if status != 200:
            raise OwnerAway("it does not know this token, or has no Redis")
        for task_id in msgspec.msgpack.decode(content, type=Heard).gone:
            if self._held.get(task_id) == beat.tasks[task_id] and task_id in self._running:
                self._running[task_id].cancel()

    async def _post(self, path: str, said: msgspec.Struct) -> tuple[int, bytes]:
        try:
            answer = await self._http.post(f"/internal/{path}", content=encode(said))
        except httpx.HTTPError as error:
            raise OwnerAway(str(error)) from error
        if answer.status_code != 200 and answer.status_code not in _GONE:
            raise OwnerAway(f"{path}: {answer.status_code}")
        return answer.status_code, answer.content
