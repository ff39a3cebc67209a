"""Does a task come to one end, whoever has it, loses it, or has it twice?

The queue is the port's twin in memory: it keeps what it was told, or nothing, or does not answer.
"""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from engine.clock import Clock
from engine.work.board import Board, NobodyThere, Stale, TaskDead
from engine.work.computes import SPLIT, Part, Refused, SplitPlan, split
from engine.work.queue import QueueAway
from engine.work.wire import WORK, Beat, Given, Take, encode
from schemas import limits

ASKED = SplitPlan(events=["a", "b", "c"], records=1, kept=[["a", "c"], ["x"]], step=2)
ANSWER = [Part(0, [0]), Part(2, [0])]


class Turned(Clock):
    """A clock turned by hand."""

    def __init__(self):
        super().__init__(seed=1)
        self.passed_s = 100.0

    def elapsed_s(self):
        return self.passed_s


class Told:
    """A queue in memory."""

    def __init__(self):
        self.told = {}
        self.is_away = False

    async def push(self, queue, message, task_id, epoch):
        if self.is_away:
            raise QueueAway("it is away")
        self.told[message] = (queue, task_id, epoch)

    async def has(self, message):
        if self.is_away:
            raise QueueAway("it is away")
        return message in self.told

    async def close(self):
        pass


class Table:
    """A board, its clock and its queue."""

    def __init__(self):
        self.clock, self.queue = Turned(), Told()
        self.board = Board(self.clock, self.queue)

    def beat(self, worker="w", queues=(WORK,), **more):
        more = {"version": "0"} | more
        beat = Beat(worker=worker, host="h", pid=1, queues=list(queues), **more)
        return self.board.beat(beat)

    def ask(self):
        return asyncio.create_task(self.board.compute(SPLIT, ASKED))

    async def told(self):
        """The newest announcement, when it is there."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return list(self.queue.told.values())[-1]

    async def taken(self, worker="w"):
        _, task_id, epoch = await self.told()
        self.board.take(task_id, Take(worker, epoch))
        return task_id, epoch

    def give(self, task_id, epoch, worker="w", **given):
        given = given or {"answer": encode(ANSWER)}
        self.board.give(task_id, Given(worker=worker, epoch=epoch, **given))

    async def pass_time(self, seconds, *alive):
        """Time passes; those who are alive beat all the while."""
        for _ in range(int(seconds * 2)):
            self.clock.passed_s += 0.5
            for worker in alive:
                self.beat(worker)
            await self.board.sweep()
        await asyncio.sleep(0)


@pytest.fixture
def table():
    return Table()


def test_a_plan_is_split():
    """A fact goes with every part that takes evidence from it; records lie beside events."""
    assert ANSWER == split(ASKED)
    assert [Part(0, []), Part(2, [])] == split(replace_records(3))


def replace_records(records):
    return msgspec.structs.replace(ASKED, events=[], records=records)


async def test_without_a_worker_it_is_done_here(table):
    """At once, and Redis hears nothing of it."""
    assert ANSWER == await table.ask()
    assert {} == table.queue.told
    assert {("erasure", "here"): 1} == table.board.done


async def test_a_worker_does_it(table):
    """What is announced is a number, and what comes back is taken."""
    table.beat()
    asking = table.ask()
    table.give(*await table.taken())

    assert ANSWER == await asking
    assert {("erasure", "worker"): 1} == table.board.done
    assert 0 == table.board.oldest_s == table.board.taken


async def test_a_worker_for_something_else_is_none(table):
    """Only who listens to the queue is able."""
    table.beat(queues=["model:tiny"])

    assert ANSWER == await table.ask()
    assert {("erasure", "here"): 1} == table.board.done


async def test_a_worker_of_another_version_is_none(table):
    """What follows from a text is what these rules say; health shows who is left behind."""
    table.beat(version="older")

    assert ANSWER == await table.ask()
    assert {("erasure", "here"): 1} == table.board.done
    assert [("older", [])] == [(w.version, w.queues) for w in table.board.health().workers]


async def test_a_queue_that_is_away(table):
    """Nobody waits for it, and nobody asks it for a while."""
    table.beat()
    table.queue.is_away = True
    first = await table.ask()
    table.queue.is_away = False
    second = await table.ask()
    told = dict(table.queue.told)
    table.clock.passed_s += limits.QUEUE_AWAY_S
    table.beat()
    asking = table.ask()
    table.give(*await table.taken())

    assert [ANSWER] * 3 == [first, second, await asking]
    assert {} == told


async def test_an_announcement_that_was_lost_is_made_again(table):
    """Redis was flushed: under the same epoch, for nobody had it."""
    table.beat()
    asking = table.ask()
    first = await table.told()
    table.queue.told.clear()
    await table.pass_time(2, "w")
    again = await table.told()
    table.give(*await table.taken())

    assert first == again
    assert ANSWER == await asking
    assert 0 == table.board.retries


async def test_a_queue_that_forgets_everything(table):
    """After a few announcements nobody believes in it, and the task is done here."""
    table.beat()
    asking = table.ask()
    for _ in range(limits.TASK_TRIES):
        await table.told()
        table.queue.told = {"other": ("", "", 0)}
        await table.pass_time(limits.TASK_LOOK_S + 0.5, "w")

    assert ANSWER == await asking
    assert {("erasure", "here"): 1} == table.board.done


async def test_an_announcement_that_waits_is_not_repeated(table):
    """Workers are busy: more of the same would not help."""
    table.beat()
    asking = table.ask()
    await table.told()
    await table.pass_time(20, "w")

    assert 1 == len(table.queue.told)
    table.give(*await table.taken())
    assert ANSWER == await asking


async def test_a_worker_that_goes_silent_loses_its_task(table):
    """Another has it under the next epoch; what the first one brings late is refused."""
    table.beat()
    table.beat("other")
    asking = table.ask()
    task_id, epoch = await table.taken()
    await table.pass_time(limits.TASK_LEASE_S + 1, "other")
    _, again, later = await table.told()
    table.board.take(again, Take("other", later))
    for late in (epoch, later):
        with pytest.raises(Stale):
            table.give(task_id, late)
    table.give(task_id, later, "other")

    assert (task_id, epoch + 1) == (again, later)
    assert ANSWER == await asking
    assert 1 == table.board.retries


async def test_a_worker_that_comes_back_is_told_what_is_gone(table):
    """It need not go on with what others have."""
    table.beat()
    table.beat("other")
    asking = table.ask()
    task_id, epoch = await table.taken()
    await table.pass_time(limits.TASK_LEASE_S + 1, "other")
    heard = table.beat(tasks={task_id: epoch})
    table.give(*await table.taken("other"), "other")

    assert [task_id] == heard.gone
    assert ANSWER == await asking


async def test_a_task_with_a_beat_is_kept(table):
    """As long as the worker says that it has it; but not for ever."""
    table.beat()
    asking = table.ask()
    task_id, epoch = await table.taken()
    while table.clock.passed_s < 100 + limits.TASK_S_MAX - 1:
        table.clock.passed_s += 1
        assert [] == table.beat(tasks={task_id: epoch}).gone
        await table.board.sweep()
    table.clock.passed_s += 2
    table.beat(tasks={task_id: epoch})
    await table.board.sweep()

    with pytest.raises(Stale):
        table.give(task_id, epoch)
    asking.cancel()


async def test_the_last_worker_is_gone(table):
    """What it had is done here."""
    table.beat()
    asking = table.ask()
    await table.taken()
    await table.pass_time(limits.TASK_LEASE_S + 2)

    assert ANSWER == await asking
    assert {("erasure", "here"): 1} == table.board.done


async def test_a_worker_that_leaves(table):
    """Its task is announced again at once, and nobody counts that against the task."""
    table.beat()
    table.beat("other")
    asking = table.ask()
    task_id, epoch = await table.taken()
    table.beat(tasks={task_id: epoch}, leaving=True)
    await table.board.sweep()
    table.give(*await table.taken("other"), "other")

    assert ANSWER == await asking
    assert 0 == table.board.retries


async def test_two_want_one_task(table):
    """The first has it."""
    table.beat()
    table.beat("other")
    asking = table.ask()
    task_id, epoch = await table.taken()
    with pytest.raises(Stale):
        table.board.take(task_id, Take("other", epoch))
    with pytest.raises(Stale):
        table.give(task_id, epoch, "other")
    table.give(task_id, epoch)
    with pytest.raises(Stale):
        table.give(task_id, epoch)

    assert ANSWER == await asking
    assert 3 == table.board.refused


async def test_a_task_that_fails_everywhere(table):
    """Three times, further and further apart; whoever asked is told, and it is not tried here."""
    table.beat()
    asking = table.ask()
    for _ in range(limits.TASK_TRIES):
        table.give(*await table.taken(), error="no")
        await table.pass_time(3, "w")

    with pytest.raises(TaskDead, match="no"):
        await asking
    assert (limits.TASK_TRIES - 1, 1) == (table.board.retries, table.board.dead)
    assert {} == table.board.done


@pytest.mark.parametrize("answer", [b"", b"\xc1", encode("no list"), encode([["x", 1]])])
async def test_an_answer_of_another_shape_is_none(table, answer):
    """It is tried again, as if the worker had failed."""
    table.beat()
    asking = table.ask()
    table.give(*await table.taken(), answer=answer)
    await table.pass_time(1, "w")
    table.give(*await table.taken())

    assert ANSWER == await asking
    assert 1 == table.board.retries


async def test_a_task_that_cannot_be_done(table):
    """Nobody tries again what a worker says is impossible."""
    table.beat()
    asking = table.ask()
    table.give(*await table.taken(), refused="no such file")

    with pytest.raises(Refused, match="no such file"):
        await asking
    assert 0 == table.board.retries


async def test_the_server_ends(table):
    """What is out is done here; a task of another server is nobody's."""
    table.beat()
    asking = table.ask()
    task_id, epoch = await table.taken()
    await table.board.stop()

    assert ANSWER == await asking
    for board in (table.board, Table().board):
        with pytest.raises(Stale):
            board.give(task_id, Given(worker="w", epoch=epoch, answer=encode(ANSWER)))


async def test_work_that_is_only_for_workers(table):
    """Whoever asks does it otherwise when nobody is there."""
    with pytest.raises(NobodyThere):
        await table.board.hand_out(replace(SPLIT, kind="model"), ASKED, "model:tiny")
