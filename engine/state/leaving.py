"""How does a large file go without holding up everybody else?  A piece at a time.

A file system may tell its disk at once which blocks have become free (ext4 mounted with `discard`):
then a file that is removed takes the disk a millisecond or two a megabyte, and every fsync waits
behind it. RocksDB removes tens of megabytes at once, a log after each flush. So the files of a
store get a second name while they are there. One whose first name is gone is not gone itself: it is
cut shorter bit by bit, with pauses in which others have the disk, and then removed.

Nothing is cut that somebody has open, or that a backup has under a name of its own.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from engine.state.aside import stand_aside
from schemas import limits

GOING: Final = "going"
"""The folder of second names, in that of the files."""


class Leaving:
    """Sees files of a folder off. On Linux; elsewhere they go at once, as they ever did."""

    def __init__(self, folder: Path, kinds: tuple[str, ...]) -> None:
        self._folder = folder
        self._going = folder / GOING
        self._kinds = kinds
        self._named: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._running: threading.Thread | None = None

    def start(self) -> None:
        """Look after the folder until `stop`, in a thread of its own."""
        if sys.platform != "linux":
            return
        self._going.mkdir(mode=0o700, exist_ok=True)
        # What was on its way when the process before this one ended goes on from there.
        self._named.update(_names(self._going))
        self._running = threading.Thread(target=self._run, name="leaving", daemon=True)
        self._running.start()

    def stop(self) -> None:
        """Leave every file with the one name it has; what was on its way is gone at once."""
        self._stopping.set()
        if self._running is not None:
            self._running.join()
            self._running = None
            self._drop_names()
            with contextlib.suppress(OSError):
                self._going.rmdir()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Meanwhile files go when they are removed: something in them must be gone for certain."""
        with self._lock:
            self._drop_names()
            yield

    def look(self) -> None:
        """Give new files their second name, and let go of those whose first is gone."""
        with self._lock:
            there = {name for name in _names(self._folder) if name.endswith(self._kinds)}
            for name in there - self._named:
                with contextlib.suppress(FileNotFoundError):  # gone already, and at once
                    os.link(self._folder / name, self._going / name)
                    self._named.add(name)
            for name in self._named - there:
                if let_go(self._going / name, self._stopping.wait):
                    self._named.discard(name)

    def _run(self) -> None:
        stand_aside()
        while not self._stopping.wait(limits.LEAVING_LOOK_S):
            try:
                self.look()
            except OSError:
                # No second names here, or no more of them: files go at once.
                with self._lock:
                    self._drop_names()
                return

    def _drop_names(self) -> None:
        for name in self._named:
            with contextlib.suppress(OSError):
                (self._going / name).unlink()
        self._named.clear()


def _names(folder: Path) -> set[str]:
    with os.scandir(folder) as found:
        return {entry.name for entry in found}


def clear_away(folder: Path) -> None:
    """Remove a folder and all in it, large files bit by bit; what is not there need not go."""
    for path in sorted(folder.rglob("*")) if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):  # whatever it is, the folder goes
            if path.is_file() and path.stat().st_size > limits.LEAVING_STEP_BYTES:
                let_go(path, time.sleep)
    shutil.rmtree(folder, ignore_errors=True)


def let_go(path: Path, pause: Callable[[float], object]) -> bool:
    """Remove a file, a large one bit by bit; False where it is still read, and has to stay."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        found = os.fstat(number)
        if found.st_nlink == 1:
            if not _is_ours_alone(number):
                return False
            _shorten(number, found.st_size, pause)
    finally:
        os.close(number)
    path.unlink()
    return True


def _shorten(number: int, size: int, pause: Callable[[float], object]) -> None:
    """Give the blocks back in small lots. A pause that says True is the last."""
    now_s = time.perf_counter
    for end in range(size - limits.LEAVING_STEP_BYTES, 0, -limits.LEAVING_STEP_BYTES):
        began_s = now_s()
        os.ftruncate(number, end)
        taken_s = now_s() - began_s
        if pause(min(taken_s * limits.LEAVING_TIMES, limits.LEAVING_PAUSE_S_MAX)):
            return


def _is_ours_alone(number: int) -> bool:
    """Whether nobody else has the file open, or a page of it in reach: who would, lost it.

    Who opens it just then has us told by a signal. The usual one would end the process: this one
    nobody minds.
    """
    try:
        fcntl.fcntl(number, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
