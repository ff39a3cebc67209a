"""What does group commit gain where the disk takes its time?  The same servers, each sync slower.

Run as `python -m bench.slow_disk serve …`, or `python -m bench.slow_disk single serve …` for one
fsync a request. The disk here may answer in a tenth of a millisecond, and then the processor sets
the pace; one without a cache that outlives a power cut takes milliseconds. The wait is added to the
real sync, and as in that one other threads go on meanwhile.
"""

import functools
import sys
import time
from typing import Final

from api.cli import main
from engine import engine as opening
from engine.commit import Committer
from engine.state.rocks import RocksKV

MORE_MS: Final = 2.0
"""What every sync takes more."""

_sync = RocksKV.sync


def _slowly(store: RocksKV) -> None:
    _sync(store)
    time.sleep(MORE_MS / 1000)


if __name__ == "__main__":
    RocksKV.sync = _slowly  # type: ignore[method-assign]
    if sys.argv[1] == "single":
        del sys.argv[1]
        opening.Committer = functools.partial(Committer, entries_max=1)  # type: ignore[misc]
    sys.exit(main())
