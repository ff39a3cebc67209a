"""Is there room, and what is left when there is not?"""

import contextlib
import os
from pathlib import Path

from engine.state.keys import sync_directory
from schemas.health import DiskHealth
from schemas.limits import MIB


class Disk:
    """A low-water mark below which writes stop, and a ballast file to open a full disk with."""

    def __init__(self, data: Path, low_water_mb: int, ballast_mb: int) -> None:
        self._data = data
        self._ballast = data / "ballast"
        self._low_water = low_water_mb * MIB
        self._ballast_bytes = ballast_mb * MIB

    def free_bytes(self) -> int:
        """What an ordinary process may still use."""
        found = os.statvfs(self._data)
        return found.f_bavail * found.f_frsize

    def is_low(self) -> bool:
        """Whether writes must stop."""
        return self.free_bytes() < self._low_water

    def is_tight(self) -> bool:
        """Whether a store may not find room to open: this is what the ballast was laid for."""
        return self.free_bytes() < max(self._low_water, self._ballast_bytes)

    def make_room(self) -> bool:
        """Give the ballast back so that the store can open; whether there was any to give."""
        if not self._ballast.exists():
            return False
        self._ballast.unlink()
        sync_directory(self._data)
        return True

    def lay_ballast(self) -> None:
        """Hold space back, when there is plenty: real blocks, not a hole."""
        held = self._ballast.stat().st_size if self._ballast.exists() else 0
        if held == self._ballast_bytes:
            return
        if held > self._ballast_bytes:
            self.make_room()
        if not self._ballast_bytes or self.free_bytes() < self._low_water + 2 * self._ballast_bytes:
            return
        handle = os.open(self._ballast, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(handle, 0, self._ballast_bytes)
        finally:
            os.close(handle)

    def health(self) -> DiskHealth:
        """Room and use, in bytes."""
        ballast = self._ballast.stat().st_size if self._ballast.exists() else 0
        return DiskHealth(
            free_bytes=self.free_bytes(),
            low_water_bytes=self._low_water,
            ballast_bytes=ballast,
            data_bytes=used_bytes(self._data) - ballast,
        )


def used_bytes(path: Path) -> int:
    """Bytes of every file below a directory; files that vanish meanwhile count nothing."""
    total = 0
    for root, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(root) / name).stat().st_size
    return total
