"""What would capture cost if nothing followed from it?  The same application, projection off.

Run as `python -m bench.unprojected serve …`: entries are captured and stay where they are.
"""

import functools
import sys

from api.cli import main
from engine import engine as opening

if __name__ == "__main__":
    opening.start = functools.partial(opening.start, run_daemon=False)
    sys.exit(main())
