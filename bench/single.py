"""What would capture cost with one fsync a request?  The same application, group commit off.

Run as `python -m bench.single serve …`: the product's own command line, settings, server and
engine; only the committer takes one proposal at a time, however many wait.
"""

import functools
import sys

from api.cli import main
from engine import engine as opening
from engine.commit import Committer

if __name__ == "__main__":
    assert opening.Committer is Committer, "the engine makes its committer elsewhere"
    opening.Committer = functools.partial(Committer, entries_max=1)  # type: ignore[misc]
    sys.exit(main())
