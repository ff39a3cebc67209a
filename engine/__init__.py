"""WHAT CAN I ASK OF IT, AND HOW DOES IT KEEP ITS WORD?  Verbs, and the organs that serve them."""

import os

# Before numpy is loaded: one thread a product. A second one gains little where memory is the limit,
# and waits for a core that serves requests: 16 ms instead of 0.4 for 10,000 rows (measured).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
