"""Which tasks are out, with whom, and what if nothing comes back?

The board lives with the owner of the log, in memory: what is on it follows from the jobs in the log
and is put there again by whoever runs them. A task is a worker's for as long as that beats, under
an epoch; what comes back under an older one is refused, so a late answer changes nothing. Nobody
able, or Redis away: the task is done here.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from engine.clock import Clock
from engine.work.computes import Answer, Asked, Compute, Refused, Tools
from engine.work.queue import JobQueue, QueueAway
from engine.work.wire import WORK, Beat, Given, Heard, Take, Taken, encode
from schemas import limits
from schemas.health import WorkerHealth, WorkHealth

_NO_SOURCE: Final[Callable[[], bytes]] = bytes


class NobodyThere(Exception):
    """No worker will do it: whoever asked does it."""


class TaskDead(Exception):
    """It was tried as often as it may be; the message says what happened last."""


class Stale(Exception):
    """The task is not this worker's, or not any more: what it has is not wanted."""


class Task:
    """One task that is out."""

    __slots__ = (
        "asked",
        "born_s",
        "due_s",
        "epoch",
        "future",
        "id",
        "kind",
        "lease_s",
        "limit_s",
        "looked_s",
        "lost",
        "message",
        "queue",
        "shape",
        "source",
        "taken_s",
        "tries",
        "worker",
    )

    def __init__(self, task_id: str, compute: Compute[Any, Any], queue: str, now_s: float) -> None:
        self.id, self.kind, self.queue = task_id, compute.kind, queue
        self.shape = compute.answer
        self.asked = b""
        self.source: Callable[[], bytes] | None = None
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.epoch, self.tries, self.lost = 1, 0, 0
        self.message = ""
        self.worker: str | None = None
        self.born_s = self.due_s = now_s
        self.lease_s = self.taken_s = self.looked_s = 0.0
        self.limit_s = limits.TASK_S_MAX

    def fail(self, error: Exception) -> None:
        """Whoever waits for it is told."""
        if not self.future.done():
            self.future.set_exception(error)


class Seen:
    """A worker that beats."""

    def __init__(self, beat: Beat, now_s: float) -> None:
        self.beat = beat
        self.at_s = now_s


class Board:
    """Tasks and workers. Belongs to one event loop."""

    def __init__(self, clock: Clock, queue: JobQueue | None = None, version: str = "0") -> None:
        self._clock = clock
        self._version = version
        self._queue = queue
        self.tools = Tools(clock)
        self._name = f"{clock.entropy():016x}"
        self._count = 0
        self._tasks: dict[str, Task] = {}
        self._workers: dict[str, Seen] = {}
        self._away_until_s = 0.0
        self._sweeper: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.trouble: str | None = None
        """Why Redis did not take the last announcement."""
        self.done: dict[tuple[str, str], int] = {}
        """(kind, where) → tasks done."""
        self.retries = self.dead = self.refused = 0

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look after what is out, until `stop`."""
        self._loop = loop
        if self._queue is not None:
            self._sweeper = loop.create_task(self._run())

    async def stop(self) -> None:
        """Nothing goes out any more; what is out is done here, or by whoever starts next."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._workers.clear()
        for task in self._tasks.values():
            task.fail(NobodyThere())
        if self._queue is not None:
            await self._queue.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(limits.TASK_SWEEP_S)
            await self.sweep()

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    async def compute(
        self,
        compute: Compute[Asked, Answer],
        asked: Asked,
        source: Callable[[], bytes] = _NO_SOURCE,
    ) -> Answer:
        """The answer, from a worker or from here; Refused when there is none, TaskDead after all.

        `source` reads the bytes that the task is about, where they are too many to send along.
        """
        try:
            return await self.hand_out(compute, asked, WORK, source)
        except NobodyThere:
            answer = await compute.run(asked, self.tools, source)
            self._count_done(compute.kind, "here")
            return answer

    async def hand_out(
        self,
        compute: Compute[Asked, Answer],
        asked: Asked,
        queue: str,
        source: Callable[[], bytes] | None = None,
        *,
        limit_s: float = limits.TASK_S_MAX,
    ) -> Answer:
        """The answer of a worker, within a time; NobodyThere when there is none who would."""
        if not self.is_able(queue):
            raise NobodyThere
        self._count += 1
        task = Task(f"{self._name}-{self._count}", compute, queue, self._clock.elapsed_s())
        task.asked, task.source, task.limit_s = encode(asked), source, limit_s
        self._tasks[task.id] = task
        try:
            await self._announce(task)
            answer: Answer = await task.future
        finally:
            del self._tasks[task.id]
        self._count_done(compute.kind, "worker")
        return answer

    def hand_out_from_thread(
        self, compute: Compute[Asked, Answer], asked: list[Asked], queue: str
    ) -> list[Answer]:
        """Several at once, for a thread that waits for the answers."""
        if self._loop is None or not self.is_able(queue):
            raise NobodyThere

        async def together() -> list[Answer]:
            return await asyncio.gather(*(self.hand_out(compute, one, queue) for one in asked))

        return asyncio.run_coroutine_threadsafe(together(), self._loop).result()

    def is_able(self, queue: str) -> bool:
        """Whether a worker would hear of a task, as far as is known."""
        if self._queue is None or self._clock.elapsed_s() < self._away_until_s:
            return False
        return any(queue in seen.beat.queues for seen in list(self._workers.values()))

    def calls_of(self, queue: str) -> int:
        """Questions that all workers of a queue put to their model at once."""
        if not self.is_able(queue):
            return 0
        return sum(one.beat.calls for one in self._workers.values() if queue in one.beat.queues)

    def workers_of(self, queue: str) -> int:
        """Workers that listen to a queue."""
        return sum(queue in one.beat.queues for one in self._workers.values())

    def _count_done(self, kind: str, where: str) -> None:
        self.done[kind, where] = self.done.get((kind, where), 0) + 1

    # ── announcing ───────────────────────────────────────────────────────────────────────────

    async def _announce(self, task: Task) -> None:
        """Tell Redis; when it does not listen, nobody is asked for a while."""
        assert self._queue is not None, "workers are heard of through a queue"
        now_s = self._clock.elapsed_s()
        task.due_s, task.looked_s = float("inf"), now_s
        task.message = f"{task.id}.{task.epoch}.{int(now_s * 1000)}"
        try:
            await self._queue.push(task.queue, task.message, task.id, task.epoch)
        except QueueAway as error:
            self.trouble = str(error)
            self._away_until_s = self._clock.elapsed_s() + limits.QUEUE_AWAY_S
            if task.worker is None:
                task.fail(NobodyThere())
        else:
            self.trouble = None

    async def sweep(self) -> None:
        """Forget who went silent, and see to every task that somebody should have done."""
        now_s = self._clock.elapsed_s()
        for name, seen in list(self._workers.items()):
            if now_s - seen.at_s > limits.TASK_LEASE_S:
                del self._workers[name]
        for task in list(self._tasks.values()):
            if task.future.done():
                continue
            if task.worker is not None:
                self._look_at_taken(task, now_s)
            elif not self.is_able(task.queue):
                task.fail(NobodyThere())
            elif now_s >= task.due_s:
                await self._announce(task)
            elif await self._is_lost(task, now_s):
                task.lost += 1
                # A Redis that keeps nothing for a second is of no use to anybody.
                if task.lost < limits.TASK_TRIES:
                    await self._announce(task)
                else:
                    task.fail(NobodyThere())

    def _look_at_taken(self, task: Task, now_s: float) -> None:
        if now_s > task.lease_s:
            self._failed(task, f"worker {task.worker} went silent")
        elif now_s > task.taken_s + task.limit_s:
            self._failed(task, f"worker {task.worker} did not end in {task.limit_s:g} s")

    async def _is_lost(self, task: Task, now_s: float) -> bool:
        """Whether nobody will come for it: Redis was flushed, or started anew."""
        if now_s - task.looked_s < limits.TASK_LOOK_S or task.due_s < float("inf"):
            return False
        task.looked_s = now_s
        assert self._queue is not None
        try:
            return not await self._queue.has(task.message) and task.worker is None
        except QueueAway as error:
            self.trouble = str(error)
            self._away_until_s = self._clock.elapsed_s() + limits.QUEUE_AWAY_S
            return False

    def _failed(self, task: Task, why: str) -> None:
        """It went wrong once more: somebody else tries under the next epoch, or nobody does."""
        task.worker = None
        task.epoch += 1
        task.tries += 1
        if task.tries >= limits.TASK_TRIES:
            self.dead += 1
            task.fail(TaskDead(f"{task.kind}: tried {task.tries} times, at last: {why}"))
            return
        self.retries += 1
        task.due_s = self._clock.elapsed_s() + limits.TASK_RETRY_S * 2 ** (task.tries - 1)

    # ── workers ──────────────────────────────────────────────────────────────────────────────

    def beat(self, beat: Beat) -> Heard:
        """A worker is there; which of its tasks nobody waits for.

        One of another version is named in health and given nothing: its rules are others.
        """
        now_s = self._clock.elapsed_s()
        if beat.version != self._version:
            beat = msgspec.structs.replace(beat, queues=[])
        gone = []
        for task_id, epoch in beat.tasks.items():
            task = self._tasks.get(task_id)
            if task is None or task.worker != beat.worker or task.epoch != epoch:
                gone.append(task_id)
            else:
                task.lease_s = now_s + limits.TASK_LEASE_S
        if beat.leaving:
            self._workers.pop(beat.worker, None)
            for task in self._tasks.values():
                if task.worker == beat.worker:
                    task.worker, task.due_s = None, now_s
                    task.epoch += 1
        else:
            self._workers[beat.worker] = Seen(beat, now_s)
        return Heard(gone)

    def take(self, task_id: str, take: Take) -> Taken:
        """Give a task to the first who asks for it."""
        task = self._tasks.get(task_id)
        if task is None or task.worker is not None or task.epoch != take.epoch:
            self.refused += 1
            raise Stale("The task is done, or somebody else's.")
        task.worker = take.worker
        task.taken_s = self._clock.elapsed_s()
        task.lease_s = task.taken_s + limits.TASK_LEASE_S
        return Taken(task.kind, msgspec.Raw(task.asked), task.source is not None)

    def source(self, task_id: str, take: Take) -> Callable[[], bytes]:
        """What reads the bytes of a task, for the worker that has it."""
        source = self._held(task_id, take.worker, take.epoch).source
        if source is None:
            raise Stale("The task has no bytes besides what is asked.")
        return source

    def give(self, task_id: str, given: Given) -> None:
        """Take an answer, once, from the worker that has the task."""
        task = self._held(task_id, given.worker, given.epoch)
        if given.answer is not None:
            try:
                task.future.set_result(msgspec.msgpack.decode(given.answer, type=task.shape))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                self._failed(task, f"no such answer: {error} (worker {given.worker})")
        elif given.refused is not None:
            task.fail(Refused(given.refused))
        else:
            self._failed(task, f"{given.error or 'no reason'} (worker {given.worker})")

    def _held(self, task_id: str, worker: str, epoch: int) -> Task:
        task = self._tasks.get(task_id)
        is_held = task is not None and task.worker == worker and task.epoch == epoch
        if task is None or not is_held or task.future.done():
            self.refused += 1
            raise Stale("The task is not this worker's any more.")
        return task

    # ── for those who look ───────────────────────────────────────────────────────────────────

    @property
    def waiting(self) -> dict[str, int]:
        """Tasks by queue that no worker has yet."""
        found: dict[str, int] = {}
        for task in list(self._tasks.values()):
            if task.worker is None:
                found[task.queue] = found.get(task.queue, 0) + 1
        return found

    @property
    def taken(self) -> int:
        """Tasks that workers have."""
        return sum(task.worker is not None for task in list(self._tasks.values()))

    @property
    def oldest_s(self) -> float:
        """Age of the oldest task that is out."""
        born = [task.born_s for task in list(self._tasks.values())]
        return self._clock.elapsed_s() - min(born) if born else 0.0

    def health(self) -> WorkHealth:
        """Who works, and how much waits."""
        now_s = self._clock.elapsed_s()
        workers = [
            WorkerHealth(
                name=name,
                host=seen.beat.host,
                pid=seen.beat.pid,
                version=seen.beat.version,
                queues=seen.beat.queues,
                tasks=len(seen.beat.tasks),
                done=seen.beat.done,
                seen_s=round(now_s - seen.at_s, 3),
            )
            for name, seen in sorted(self._workers.items())
        ]
        return WorkHealth(
            queue="none" if self._queue is None else ("away" if self.trouble else "redis"),
            trouble=self.trouble,
            waiting=sum(self.waiting.values()),
            taken=self.taken,
            oldest_s=round(self.oldest_s, 3),
            retries=self.retries,
            dead=self.dead,
            workers=workers,
        )

    @contextlib.contextmanager
    def file_of(self, job_id: str) -> Iterator[None]:
        """A job whose file may be parsed here; it goes when the job stops."""
        try:
            yield
        finally:
            self.tools.forget(job_id)
