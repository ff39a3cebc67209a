"""How would we know that the end of the log is gone?

A hash chain shows an edit and a hole, never a lost tail: the shorter chain is valid too. So every
second or thousand entries a signed anchor (size, chain) goes to a file of its own, fsynced; a log
whose head is below its last anchor is refused.
"""

import base64
import errno
import os
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.state.keys import sync_directory
from engine.state.kv import CorruptStore

ORIGIN = "strata.log/1"
# A signature takes 0.16 ms to check, and a start checks them all: two thirds of a second at most.
_LINES_MAX = 4_000
_LINES_KEPT = 1_000
_SAMPLE = 100


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """The log had this many entries, and this was the chain."""

    size: int
    chain: bytes
    at_us: int


class Anchors:
    """An append-only file of signed anchors, one a line: origin, size, time, chain, signature."""

    def __init__(self, path: Path, signing_secret: bytes) -> None:
        self.path = path
        self._key = Ed25519PrivateKey.from_private_bytes(signing_secret)
        self.known: list[Anchor] = []

    @property
    def last(self) -> Anchor | None:
        """The newest anchor."""
        return self.known[-1] if self.known else None

    def load(self, *, repair: bool = True) -> None:
        """Read every anchor and check its signature. A torn last line is what a crash leaves."""
        if not self.path.exists():
            return
        lines = self.path.read_bytes().split(b"\n")
        self.known = [self._parse(line, number) for number, line in enumerate(lines[:-1], 1)]
        if not repair:
            return
        if len(self.known) > _LINES_MAX:
            self._thin(lines[:-1])
        elif lines[-1]:
            with self.path.open("r+b") as file:
                file.truncate(self.path.stat().st_size - len(lines[-1]))

    def _thin(self, lines: list[bytes]) -> None:
        """Keep the newest and a sample of the older ones: each vouches for all before it."""
        recent = len(lines) - _LINES_KEPT
        keep = [at for at in range(len(lines)) if at >= recent or at % _SAMPLE == 0]
        partial = self.path.with_suffix(".new")
        with partial.open("wb") as file:
            file.write(b"".join(lines[at] + b"\n" for at in keep))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self.path)
        sync_directory(self.path.parent)
        self.known = [self.known[at] for at in keep]

    def _parse(self, line: bytes, number: int) -> Anchor:
        try:
            body, _, signature = line.rpartition(b" ")
            self._key.public_key().verify(base64.b64decode(signature, validate=True), body)
            origin, size, at_us, chain = body.decode().split(" ")
            if origin != ORIGIN:
                raise ValueError(origin)
            return Anchor(size=int(size), chain=base64.b64decode(chain), at_us=int(at_us))
        except (InvalidSignature, ValueError) as error:
            message = f"{self.path}: line {number} is not an anchor of ours: {error!r}"
            raise CorruptStore(message, str(self.path)) from error

    def write(self, anchor: Anchor) -> None:
        """Append one anchor and fsync it. Called off the event loop."""
        chain = base64.b64encode(anchor.chain).decode()
        body = f"{ORIGIN} {anchor.size} {anchor.at_us} {chain}".encode()
        line = body + b" " + base64.b64encode(self._key.sign(body)) + b"\n"
        fresh = not self.path.exists()
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                # Half a line would swallow the next one, and then nothing would open.
                os.ftruncate(handle, size)
                raise OSError(errno.ENOSPC, "no room for an anchor", str(self.path))
            os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            sync_directory(self.path.parent)
        self.known.append(anchor)
        if len(self.known) > _LINES_MAX:
            self._thin(self.path.read_bytes().splitlines())
