"""Where are the keys that wrap the tenants' keys, so that one can be destroyed?

A folder with a file for each tenant and generation, apart from the databases and from backups of
them: a copy of a database is only as readable as this folder still lets it be (docs/adr/0033).
"""

import contextlib
import os
from pathlib import Path

from engine.state.keys import SECRET_BYTES, load_secret, sync_directory, write_durably
from engine.state.kv import StoreError

FOLDER = "tenants"


class Keyring:
    """The wrapping keys of a data directory, by tenant and generation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Read now, before the databases are opened: one that is destroyed while a reader looks at
        # an older state of them still opens what it sees.
        self._keys = {place: path.read_bytes() for place, path in _files(folder).items()}

    def _path(self, tenant_no: int, generation: int) -> Path:
        return self._folder / f"{tenant_no}-{generation}.key"

    def key(self, tenant_no: int, generation: int) -> bytes | None:
        """The key of a generation; None when it was destroyed, or never was here."""
        place = (tenant_no, generation)
        if place not in self._keys:
            with contextlib.suppress(FileNotFoundError):
                found = self._path(*place).read_bytes()
                if len(found) == SECRET_BYTES:
                    self._keys[place] = found
        return self._keys.get(place)

    def make(self, tenant_no: int, generation: int) -> bytes:
        """A key on the disk before anything is wrapped with it; one that is there is used."""
        made = self._keys[tenant_no, generation] = load_secret(self._path(tenant_no, generation))
        return made

    def destroy_before(self, tenant_no: int, generation: int) -> None:
        """Destroy the keys of all earlier generations: out of memory, overwritten, unlinked."""
        for place, path in _files(self._folder).items():
            if place[0] == tenant_no and place[1] < generation:
                self._keys.pop(place, None)
                _shred(path)
        sync_directory(self._folder)


def _files(folder: Path) -> dict[tuple[int, int], Path]:
    found = {}
    for path in folder.glob("*-*.key"):
        tenant_no, _, generation = path.stem.partition("-")
        found[int(tenant_no), int(generation)] = path
    return found


def _shred(path: Path) -> None:
    """Overwrite what the file system lets us, then let go of the name."""
    with path.open("r+b") as file:
        file.write(os.urandom(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


def has_key(keys: Path, tenant_no: int, generation: int) -> bool:
    """Whether a folder of keys has this one."""
    return (keys / FOLDER / f"{tenant_no}-{generation}.key").exists()


def mirror(source: Path, target: Path) -> None:
    """Make one folder of keys the same as another: first what is new, then what is gone goes.

    There is one such copy, not one a backup: a key that was destroyed is destroyed here as well.
    """
    master = source / "master.key"
    theirs = target / "master.key"
    if theirs.exists() and theirs.read_bytes() != master.read_bytes():
        raise StoreError(f"{target} holds the keys of another data directory")
    for path in sorted(path for path in source.rglob("*.key") if path.is_file()):
        place = target / path.relative_to(source)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not place.exists() or place.read_bytes() != path.read_bytes():
            write_durably(place, path.read_bytes())
    kept = _files(source / FOLDER)
    for generation, path in _files(target / FOLDER).items():
        if generation not in kept:
            _shred(path)
    for folder in (target / FOLDER, target):
        if folder.exists():
            sync_directory(folder)
