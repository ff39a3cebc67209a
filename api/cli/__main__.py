"""Can it be run as a module?  `python -m api.cli` is `strata`."""

import sys

from api.cli import main

if __name__ == "__main__":
    sys.exit(main())
