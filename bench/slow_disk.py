"""What does group commit gain where the disk takes its time?  The same servers, each sync slower.

Run as `python -m bench.slow_disk serve …`, or `python -m bench.slow_disk single serve …` for one
fsync a request. The disk here may answer in a tenth of a millisecond, and then the processor sets
the pace; one without a cache that outlives a power cut takes milliseconds. The wait is added to the
real sync, and as in that one other threads go on meanwhile.
"""

import functools
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from api.cli import main
from engine import engine as opening
from engine.commit import Committer

MORE_MS: Final = 2.0
"""What every sync takes more."""

_open_stores = opening.open_stores


def _slower(sync: Callable[[], None]) -> Callable[[], None]:
    def slow() -> None:
        sync()
        time.sleep(MORE_MS / 1000)

    return slow


def _opened(*given: Any, **named: Any) -> opening.Stores:
    """A data directory on a disk that takes longer."""
    stores = _open_stores(*given, **named)
    for kv in (stores.kv, stores.vault_kv):
        kv.sync = _slower(kv.sync)  # type: ignore[method-assign]
    return stores


if __name__ == "__main__":
    opening.open_stores = _opened
    if sys.argv[1] == "single":
        del sys.argv[1]
        opening.Committer = functools.partial(Committer, entries_max=1)  # type: ignore[misc]
    sys.exit(main())
