"""What would capture cost with one fsync a request?  The same application, group commit off.

Run as `python -m bench.single serve …`: the product's own command line, settings, server and
engine; only the committer takes one proposal at a time, however many wait.
"""

import asyncio
import sys
from collections import deque
from typing import Any

from api.cli import main
from engine import engine as opening
from engine.commit import Committer, Proposal

Waiting = tuple[Proposal, asyncio.Future[Any]]


class OneByOne(Committer):
    """A committer whose every batch is one request."""

    def _take(self) -> list[Waiting]:
        waiting = self._queue
        self._queue = deque([waiting.popleft()])
        try:
            return super()._take()
        finally:
            self._queue = waiting


if __name__ == "__main__":
    assert opening.Committer is Committer, "the engine makes its committer elsewhere"
    opening.Committer = OneByOne  # type: ignore[misc]
    sys.exit(main())
