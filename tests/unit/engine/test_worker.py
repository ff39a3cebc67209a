"""Does a worker leave when it is asked to, whatever it is doing?"""

import asyncio
import contextlib

from engine.clock import Clock
from engine.work.computes import Tools
from engine.work.worker import Worker

NOBODY = "127.0.0.1:1"
PATIENCE_S = 60.0


class TakingLeave(Worker):
    """Asked to end just when it closes a broken line to Redis: the first word is lost on it."""

    async def _listen(self, queue):
        with contextlib.suppress(asyncio.CancelledError):
            self.stop()
            await asyncio.sleep(PATIENCE_S)


def test_a_worker_leaves_also_when_it_was_just_leaving_redis():
    """It is told again until it has gone; once would leave it listening for ever."""

    async def run():
        worker = TakingLeave(
            server=f"http://{NOBODY}",
            token="t" * 32,
            redis_url=f"redis://{NOBODY}/0",
            tools=Tools(clock=Clock()),
        )
        await asyncio.wait_for(worker.run(), PATIENCE_S)

    asyncio.run(run())
