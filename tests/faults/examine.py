"""What does a data directory hold, as far as the engine will say?  Run as a process: it may crash.

A line on standard input names a directory; a line of JSON on standard output answers: what `verify`
said, and what opening it as a server would and then reading everything said. Opening changes the
directory.
"""

from __future__ import annotations

import asyncio
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from engine.engine import Engine, StoreError, open_engine
from engine.settings import Settings
from engine.upkeep import inspected, verify

_READ_ROWS = 500


def digest_of(engine: Engine) -> str:
    """Every header and body, as one number."""
    found = sha256()
    start = 1
    while rows := engine.log.read(start, _READ_ROWS):
        for row in rows:
            found.update(row.chain + (row.body or b"erased"))
        start += len(rows)
    return found.hexdigest()


def verified(settings: Settings) -> dict[str, Any]:
    """The verdict of a full check that writes nothing."""
    try:
        report = verify(settings, lambda *_: None)
        with inspected(settings) as engine:
            return {"entries": report.log.entries, "digest": digest_of(engine)}
    except (StoreError, OSError) as error:
        return {"error": str(error)}


def opened(settings: Settings) -> dict[str, Any]:
    """What a server would find at its start, and its readers after it."""

    async def run() -> dict[str, Any]:
        async with open_engine(settings) as engine:
            return {"entries": engine.log.head(), "digest": digest_of(engine)}

    try:
        return asyncio.run(run())
    except (StoreError, OSError) as error:
        return {"error": str(error)}


def main() -> None:
    """Answer until there is no more to examine."""
    for line in sys.stdin:
        settings = Settings(data=Path(line.strip()), ballast_mb=0, disk_low_water_mb=0)
        answer = {"verify": verified(settings), "open": opened(settings)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
