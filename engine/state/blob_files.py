"""Where do the bytes of a blob lie?  One encrypted file each, or a twin in memory for tests.

A file is a run of sealed pieces, each bound to its blob, its place and whether it is the last, so
that none can be left out, swapped or cut off unseen. The key is not here: it is in the payload of
the entry that stored the blob, and goes when that payload is erased.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.state.keys import sync_directory
from engine.state.kv import CorruptStore, StoreWriteFailed
from schemas import limits

_NONCE_BYTES = 12
_TAG_BYTES = 16
_SEALED_BYTES = _NONCE_BYTES + limits.BLOB_PIECE_BYTES + _TAG_BYTES
_PART = ".part"


def new_key() -> bytes:
    """A key for one blob."""
    return os.urandom(32)


def _bound(raw: bytes, at: int, *, is_last: bool) -> bytes:
    return raw + at.to_bytes(4, "big") + bytes([is_last])


class Sealer:
    """Turns a stream of bytes into sealed pieces."""

    def __init__(self, raw: bytes, key: bytes) -> None:
        self._raw = raw
        self._cipher = AESGCM(key)
        self._held = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that are full, and surely not the last."""
        self._held += data
        while len(self._held) > limits.BLOB_PIECE_BYTES:
            piece = bytes(self._held[: limits.BLOB_PIECE_BYTES])
            del self._held[: limits.BLOB_PIECE_BYTES]
            yield self._seal(piece, is_last=False)

    def finish(self) -> bytes:
        """The last piece, perhaps empty."""
        return self._seal(bytes(self._held), is_last=True)

    def _seal(self, piece: bytes, *, is_last: bool) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        bound = _bound(self._raw, self._at, is_last=is_last)
        self._at += 1
        return nonce + self._cipher.encrypt(nonce, piece, bound)


def unsealed(raw: bytes, key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes again, piece by piece; anything missing or changed is refused."""
    cipher, at, held = AESGCM(key), 0, None
    for piece in pieces:
        if held is not None:
            yield _open(cipher, raw, at, held, is_last=False)
            at += 1
        held = piece
    if held is None:
        raise CorruptStore(f"the file of blob {raw.hex()} is empty")
    yield _open(cipher, raw, at, held, is_last=True)


def _open(cipher: AESGCM, raw: bytes, at: int, piece: bytes, *, is_last: bool) -> bytes:
    try:
        sealed = piece[_NONCE_BYTES:]
        return cipher.decrypt(piece[:_NONCE_BYTES], sealed, _bound(raw, at, is_last=is_last))
    except (InvalidTag, ValueError) as error:
        raise CorruptStore(f"piece {at} of blob {raw.hex()} does not open") from error


class Upload(Protocol):
    """A blob that is being written; nothing of it is there until `keep`."""

    def write(self, data: bytes) -> None:
        """More of it."""

    def keep(self) -> None:
        """All of it is on the disk, under its name."""

    def drop(self) -> None:
        """None of it is wanted; harmless when repeated."""


class Blobs(Protocol):
    """Encrypted bytes by tenant and blob id."""

    def begin(self, tenant_no: int, raw: bytes, key: bytes) -> Upload:
        """Start writing one."""

    def read(self, tenant_no: int, raw: bytes, key: bytes) -> Iterator[bytes]:
        """Its bytes; CorruptStore when they are not what was written."""

    def remove(self, tenant_no: int, raw: bytes) -> None:
        """Take it away; harmless when it is not there."""

    def all(self) -> list[tuple[int, bytes]]:
        """Every (tenant number, raw id) there is."""


class FileBlobs:
    """Blobs as files: `blobs/<tenant number>/<raw id in hex>`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, tenant_no: int, raw: bytes, key: bytes) -> "FileUpload":
        """Start writing one."""
        place = self._place(tenant_no, raw)
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return FileUpload(place, Sealer(raw, key))
        except OSError as error:
            raise StoreWriteFailed(f"{place.parent} takes no file: {error.strerror}") from error

    def read(self, tenant_no: int, raw: bytes, key: bytes) -> Iterator[bytes]:
        """Its bytes; CorruptStore when they are not what was written."""
        try:
            file = self._place(tenant_no, raw).open("rb")
        except FileNotFoundError:
            raise CorruptStore(f"the file of blob {raw.hex()} is missing") from None
        with file:
            yield from unsealed(raw, key, _pieces(file))

    def remove(self, tenant_no: int, raw: bytes) -> None:
        """Take it away; harmless when it is not there."""
        place = self._place(tenant_no, raw)
        place.unlink(missing_ok=True)
        if place.parent.exists():
            sync_directory(place.parent)

    def all(self) -> list[tuple[int, bytes]]:
        """Every (tenant number, raw id) there is; what an upload left unfinished is taken away."""
        for part in self._folder.glob(f"*/*{_PART}"):
            part.unlink(missing_ok=True)
        found = sorted(path for path in self._folder.glob("*/*") if path.is_file())
        return [(int(path.parent.name), bytes.fromhex(path.name)) for path in found]

    def _place(self, tenant_no: int, raw: bytes) -> Path:
        return self._folder / str(tenant_no) / raw.hex()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_SEALED_BYTES):
        yield piece


class FileUpload:
    """One file under way."""

    def __init__(self, place: Path, sealer: Sealer) -> None:
        self._place = place
        self._part = place.with_name(place.name + _PART)
        self._sealer = sealer
        self._file = self._part.open("wb")

    def write(self, data: bytes) -> None:
        """More of it."""
        try:
            for piece in self._sealer.feed(data):
                self._file.write(piece)
        except OSError as error:
            raise StoreWriteFailed(f"{self._part} cannot be written: {error.strerror}") from error

    def keep(self) -> None:
        """All of it is on the disk, under its name."""
        try:
            self._file.write(self._sealer.finish())
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.rename(self._place)
            sync_directory(self._place.parent)
        except OSError as error:
            raise StoreWriteFailed(f"{self._part} cannot be kept: {error.strerror}") from error

    def drop(self) -> None:
        """None of it is wanted; harmless when repeated."""
        self._file.close()
        self._part.unlink(missing_ok=True)


class MemoryBlobs:
    """The twin: the same sealed pieces, in a dictionary."""

    def __init__(self) -> None:
        self.pieces: dict[tuple[int, bytes], list[bytes]] = {}

    def begin(self, tenant_no: int, raw: bytes, key: bytes) -> "MemoryUpload":
        """Start writing one."""
        return MemoryUpload(self.pieces, (tenant_no, raw), Sealer(raw, key))

    def read(self, tenant_no: int, raw: bytes, key: bytes) -> Iterator[bytes]:
        """Its bytes; CorruptStore when they are not what was written."""
        pieces = self.pieces.get((tenant_no, raw))
        if pieces is None:
            raise CorruptStore(f"the file of blob {raw.hex()} is missing")
        return unsealed(raw, key, pieces)

    def remove(self, tenant_no: int, raw: bytes) -> None:
        """Take it away; harmless when it is not there."""
        self.pieces.pop((tenant_no, raw), None)

    def all(self) -> list[tuple[int, bytes]]:
        """Every (tenant number, raw id) there is."""
        return sorted(self.pieces)


class MemoryUpload:
    """One blob under way, in memory."""

    def __init__(
        self, shelf: dict[tuple[int, bytes], list[bytes]], place: tuple[int, bytes], sealer: Sealer
    ) -> None:
        self._shelf = shelf
        self._place = place
        self._sealer = sealer
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """More of it."""
        self._pieces += self._sealer.feed(data)

    def keep(self) -> None:
        """All of it is there, under its name."""
        self._shelf[self._place] = [*self._pieces, self._sealer.finish()]

    def drop(self) -> None:
        """None of it is wanted; harmless when repeated."""
        self._pieces = []
