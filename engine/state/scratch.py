"""How does a process see a store that another one owns, and where does it keep what it makes of it?

The owner's store is opened read-only, as it is at that moment; what follows from it is kept in a
small store of the process's own, below `fold/`, which goes with the process.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from engine.state.kv import KV
from engine.state.leaving import clear_away
from engine.state.rocks import RocksKV


def open_beside(store: Path, families: Sequence[str]) -> tuple[KV, KV]:
    """These families of a store as they are now, and empty ones of the same names for ourselves."""
    base = RocksKV.open_small(store, ["meta", "ids", *families], read_only=True)
    clear_scratch(store, os.getpid())
    own = RocksKV.open_small(_place(store, os.getpid()), families, read_only=False)
    return base, own


def clear_scratch(store: Path, pid: int | None = None) -> None:
    """What one process, or all, that looked at this store have left on the disk.

    That of all goes at once: there is nobody yet who could wait for the disk.
    """
    if pid is None:
        shutil.rmtree(_place(store, pid), ignore_errors=True)
    else:
        clear_away(_place(store, pid))


def _place(store: Path, pid: int | None) -> Path:
    every = store.parent / "fold"
    return every if pid is None else every / str(pid)
