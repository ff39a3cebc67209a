"""Watch memory being made: one line for each announcement of a scope and all below it.

    python examples/subscriber.py --scope org:acme

A connection that breaks is taken up where it broke; nothing is missed and nothing comes twice.
"""

import argparse
import asyncio
import contextlib

from strata_client import AsyncClient


async def watch(arguments: argparse.Namespace) -> None:
    """Print announcements as they come."""
    async with (
        AsyncClient(arguments.url, scope=arguments.scope) as memory,
        memory.lifecycle.stream(scope=arguments.scope, view="descend") as announcements,
    ):
        print(f"listening to {arguments.scope}", flush=True)
        count = 0
        async for each in announcements:
            print(f"{each.event:<14} {each.event_id or '-'} {each.scope}", flush=True)
            count += 1
            if count == arguments.count:
                return


def main() -> None:
    """Watch until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="address of a server")
    parser.add_argument("--scope", default="user:local", help="what to watch")
    parser.add_argument("--count", type=int, help="stop after so many announcements")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(watch(parser.parse_args()))


if __name__ == "__main__":
    main()
