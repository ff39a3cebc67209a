"""Where does a full disk come from?  A small file system in memory, mounted for one test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1024 * 1024


class NoMount(Exception):
    """This machine does not let us mount; the message says why."""


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def grow(self, size_mb: int) -> None:
        """Change its size while it is in use."""
        _run("mount", "-o", f"remount,size={size_mb}m", self.path)

    def free_bytes(self) -> int:
        """Room that is left."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave_bytes: int = 0) -> Path:
        """Take the room away with a file; deleting it gives it back."""
        hog = self.path / "hog"
        with hog.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.free_bytes() - leave_bytes)
        return hog


def _run(*command: object) -> None:
    found = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if found.returncode:
        raise NoMount(found.stderr.decode().strip() or f"{command[0]} failed")


@contextmanager
def small_disk(path: Path, size_mb: int) -> Iterator[SmallDisk]:
    """A disk of so many MiB, gone afterwards; NoMount where that needs more rights than we have."""
    path.mkdir()
    if os.geteuid() != 0:
        raise NoMount("mounting a tmpfs needs root")
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", path)
    except FileNotFoundError as error:
        raise NoMount("there is no mount command") from error
    try:
        yield SmallDisk(path)
    finally:
        # Lazy: whoever still holds a file there must not keep the mount for ever.
        subprocess.run(["umount", "-l", str(path)], check=True)
