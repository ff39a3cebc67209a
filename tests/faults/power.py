"""What does a power cut leave?  The files as they were last synced, and perhaps a little more.

The server runs with `disk.c` preloaded and is killed; then its data directory is made anew from the
journal. What the simulation assumes:

* Bytes: a file has what it had when its last successful sync began. Of what was written later any
  part may be there, from none to all (`torn`), and the last of it may be garbage in a log: sectors
  reach a platter in their own order. Files only grow; a write inside one fails the simulation.
* A sync that failed is never made good: the kernel may have dropped the pages (and says so once).
* Names, `ordered`: as ext4 with its journal. Creates, renames and unlinks become durable in the
  order they were made; any sync, of whichever file, takes all earlier ones with it. Those after the
  last sync are there up to a random one. A file that has a name and was never synced is empty.
* Names, `strict`: as POSIX promises. A name is durable when its directory was synced after the
  change, and not before; a directory whose own name is not durable takes all below it along.
* An unlinked or replaced file whose unlink is not durable is back, with its synced bytes.
* Truncation and mkdir of the data directory itself are durable at once.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

SOURCE = Path(__file__).with_name("disk.c")
COMPILERS = ("cc", "gcc", "clang")
Naming = Literal["ordered", "strict"]
_GARBAGE_BYTES = 512


def compile_shim(folder: Path) -> Path | None:
    """The shim as a library to preload; None when there is no C compiler."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    built = folder / "disk.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built


_DERIVED = ("index",)
"""Folders that a power cut takes whole: what is in them follows from the log, and is made anew."""


class CutReport(NamedTuple):
    """What the cut took: bytes of logs, and names that were there."""

    bytes_lost: int
    names_lost: int


@dataclass
class _Node:
    """A file or directory, whatever it is called; `synced` bytes of it are on the disk."""

    synced: int = 0
    is_folder: bool = False
    is_broken: bool = False
    entries: dict[str, int] = field(default_factory=dict)
    durable_entries: dict[str, int] = field(default_factory=dict)


class Disk:
    """A data directory on a disk whose power can be cut."""

    def __init__(self, folder: Path, shim: Path) -> None:
        self.folder = folder
        self._shim = shim
        self._journal = folder.parent / f"{folder.name}.journal"
        self._grave = folder.parent / f"{folder.name}.grave"
        self._nodes: dict[int, _Node] = {}
        self._root = 0
        self.on()

    def settings(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a process whose syncs are to be watched."""
        return {
            "LD_PRELOAD": str(self._shim),
            "FAULT_DIR": str(self.folder),
            "FAULT_JOURNAL": str(self._journal),
            "FAULT_GRAVE": str(self._grave),
            **(more or {}),
        }

    def on(self) -> None:
        """Take what is in the directory now for durable: the machine has just come up."""
        self._journal.write_bytes(b"")
        shutil.rmtree(self._grave, ignore_errors=True)
        self._grave.mkdir()
        self.folder.mkdir(exist_ok=True)
        self._nodes = {}
        self._root = self.folder.stat().st_ino
        for path in (self.folder, *self.folder.rglob("*")):
            found = path.stat()
            self._nodes[found.st_ino] = _Node(found.st_size, path.is_dir())
            if path != self.folder:
                parent = self._nodes[path.parent.stat().st_ino]
                parent.entries[path.name] = parent.durable_entries[path.name] = found.st_ino

    def cut(self, rng: Random, *, names: Naming, torn: bool) -> CutReport:
        """Leave what a power cut would. The process must be dead already."""
        lines = [line.split("\t") for line in self._journal.read_text().splitlines()]
        until = self._durable_lines(lines, rng)
        begun: dict[str, dict[str, int]] = {}
        for number, (kind, *rest) in enumerate(lines):
            match kind:
                case "begin":
                    begun[rest[0]] = dict(self._node(int(rest[1])).entries)
                case "sync":
                    self._synced(int(rest[1]), int(rest[2]))
                case "syncdir":
                    self._node(int(rest[1])).durable_entries = begun[rest[0]]
                case "failed":
                    self._node(int(rest[0])).is_broken = True
                case "truncate":
                    node = self._node(int(rest[0]))
                    node.synced = min(node.synced, int(rest[1]))
                case "overwrite":
                    node = self._node(int(rest[0]))
                    assert int(rest[1]) >= node.synced, "a file was changed inside, not at its end"
                case _ if names == "strict" or number < until:
                    self._rename(kind, rest)
        return self._rebuild(rng, strict=names == "strict", torn=torn)

    @staticmethod
    def _durable_lines(lines: list[list[str]], rng: Random) -> int:
        """How many lines' changes of names are on the disk when a journal orders them."""
        done = {line[1] for line in lines if line[0] in {"sync", "syncdir"}}
        begun = (at for at, line in enumerate(lines) if line[0] == "begin" and line[1] in done)
        return rng.randint(max(begun, default=0), len(lines))

    def _node(self, inode: int) -> _Node:
        return self._nodes.setdefault(inode, _Node())

    def _synced(self, inode: int, size: int) -> None:
        node = self._node(inode)
        if not node.is_broken:
            node.synced = max(node.synced, size)

    def _rename(self, kind: str, rest: list[str]) -> None:
        """Apply one change of names."""
        if kind in {"create", "mkdir"}:
            inode, path = int(rest[0]), Path(rest[1])
            if path == self.folder:
                self._root = inode
            else:
                self._parent(path).entries[path.name] = inode
            self._node(inode).is_folder = kind == "mkdir"
        elif kind in {"unlink", "rmdir"}:
            self._parent(Path(rest[0])).entries.pop(Path(rest[0]).name, None)
        else:
            start, end = Path(rest[0]), Path(rest[1])
            inode = self._parent(start).entries[start.name]
            if kind == "rename":
                del self._parent(start).entries[start.name]
            self._parent(end).entries[end.name] = inode

    def _parent(self, path: Path) -> _Node:
        inode = self._root
        for name in path.relative_to(self.folder).parts[:-1]:
            inode = self._nodes[inode].entries[name]
        return self._nodes[inode]

    def _rebuild(self, rng: Random, *, strict: bool, torn: bool) -> CutReport:
        """Make the directory anew from what is durable."""
        found = {path.stat().st_ino: path for path in _files(self.folder, self._grave)}
        after = self.folder.parent / f"{self.folder.name}.after"
        after.mkdir()
        bytes_lost = 0
        names: set[Path] = set()
        for place, inode in sorted(self._walk(self._root, Path(), strict=strict)):
            if place.parts[0] in _DERIVED:
                continue
            node = self._node(inode)
            if node.is_folder:
                (after / place).mkdir()
                continue
            names.add(place)
            size = found[inode].stat().st_size
            survives = _survivors(found[inode], node, rng, torn=torn)
            if place.suffix == ".log":
                bytes_lost += max(0, size - len(survives))
            (after / place).write_bytes(survives)
            (after / place).chmod(found[inode].stat().st_mode)
        there = {path.relative_to(self.folder) for path in _files(self.folder)}
        # Without power nothing runs on; here what the server started may still be about to end.
        before = self.folder.with_name(f"{self.folder.name}.before")
        self.folder.rename(before)
        after.rename(self.folder)
        shutil.rmtree(before, ignore_errors=True)
        self.on()
        return CutReport(bytes_lost, len(there - names))

    def _walk(self, inode: int, place: Path, *, strict: bool) -> Iterator[tuple[Path, int]]:
        node = self._node(inode)
        for name, child in (node.durable_entries if strict else node.entries).items():
            yield place / name, child
            if self._node(child).is_folder:
                yield from self._walk(child, place / name, strict=strict)


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


def _survivors(path: Path, node: _Node, rng: Random, *, torn: bool) -> bytes:
    """The synced bytes, and perhaps some that were written after them."""
    written = path.read_bytes()
    kept = written[: node.synced]
    if not torn or node.is_broken or len(written) <= node.synced:
        return kept
    rest = bytearray(
        written[node.synced : node.synced + rng.randint(0, len(written) - node.synced)]
    )
    if path.suffix == ".log" and rest and rng.random() < 0.5:
        size = min(len(rest), rng.randint(1, _GARBAGE_BYTES))
        rest[-size:] = rng.randbytes(size)
    return kept + bytes(rest)
