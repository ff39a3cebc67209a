"""Where do secrets come from, and who may read their files?"""

import os
from pathlib import Path

from engine.state.kv import StoreError

SECRET_BYTES = 32


def load_secret(path: Path) -> bytes:
    """The 32 bytes in a key file; made, readable by the owner alone, when it is not there."""
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        return _make_secret(path)
    if len(secret) != SECRET_BYTES:
        raise StoreError(f"{path} is not a key of {SECRET_BYTES} bytes")
    return secret


def _make_secret(path: Path) -> bytes:
    """Write a new key durably before anything is encrypted with it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = os.urandom(SECRET_BYTES)
    write_durably(path, secret)
    sync_directory(path.parent.parent)
    return secret


def write_durably(path: Path, content: bytes) -> None:
    """A small file, for its owner alone: whole and on the disk when this returns."""
    partial = path.with_suffix(".new")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    partial.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """A new name is durable only when its directory is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
