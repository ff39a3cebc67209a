"""A worker that is made to fail: `python -m tests.faults.worker HOW KIND URL REDIS TOKEN`.

It is a real worker with one kind of task computed otherwise: `slow` says that it has a task and
then takes so long that it can be killed over it, `raise` fails, `die` takes the process along.
"""

import asyncio
import dataclasses
import os
import sys
from typing import Any

from engine.admin import package_version
from engine.clock import Clock
from engine.work.computes import COMPUTES, Tools
from engine.work.worker import Worker

SLOW_S = 600.0


def computed(how: str, kind: str) -> dict[str, Any]:
    """The kinds of tasks, one of them as the test wants it."""

    async def run(asked: Any, tools: Any, read: Any) -> Any:
        del asked, tools, read
        print(f"has {kind}", flush=True)
        if how == "slow":
            await asyncio.sleep(SLOW_S)
        if how == "die":
            os._exit(13)
        raise RuntimeError("it cannot be done here")

    return {**COMPUTES, kind: dataclasses.replace(COMPUTES[kind], run=run)}


async def main(how: str, kind: str, server: str, redis_url: str, token: str) -> None:
    """Work until killed."""
    worker = Worker(
        server=server,
        token=token,
        redis_url=redis_url,
        tools=Tools(Clock()),
        version=package_version(),
        computes=computed(how, kind),
    )
    assert await worker.greet() is None
    print("ready", flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
