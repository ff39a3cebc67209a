"""How is the damaged end of a store's log taken away?

A last record of full length that is not what was written may be what a power cut left of something
nobody was told is durable, or a disk's fault in what somebody was. The store cannot know, and is
refused; whoever looks after it may, and has the end cut off.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from engine.state.kv import StoreError, StoreLocked
from engine.state.prescan import damaged_tail


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a log that is no record: where it begins, and how long it is."""

    file: str
    offset: int
    bytes: int


def tail_of(store: Path, *, cut: bool) -> Tail | None:
    """The damaged end of a store that nobody has open, cut off if asked; None when it is whole.

    Raises CorruptStore where anything is behind the damage: that is not an end.
    """
    if not (store / "CURRENT").exists():
        raise StoreError(f"there is no store at {store}")
    with _held(store / "LOCK"):
        scan = damaged_tail(store)
        if scan is None:
            return None
        if cut:
            with scan.path.open("r+b") as log:
                log.truncate(scan.whole_bytes)
                os.fsync(log.fileno())
        length = scan.size_bytes - scan.whole_bytes
        return Tail(file=str(scan.path), offset=scan.whole_bytes, bytes=length)


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    """The store, as its owner would hold it."""
    with lock.open("a+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreLocked(f"another process holds {lock}") from error
        yield
