"""What does the issuer remember?  Its keys and the tokens it minted, in one SQLite file.

The file holds the private keys: it is made readable to its owner alone, and refused otherwise.
Times are Unix seconds by SQLite's own clock, so that all that is dated here is dated alike.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import msgspec

_SCHEMA: Final = """
CREATE TABLE issuer (name TEXT NOT NULL);
CREATE TABLE keys (
    kid TEXT PRIMARY KEY,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER
);
CREATE TABLE tokens (
    jti TEXT PRIMARY KEY,
    sub TEXT NOT NULL,
    aud TEXT NOT NULL,
    kid TEXT NOT NULL,
    iat INTEGER NOT NULL,
    exp INTEGER NOT NULL,
    revoked_at INTEGER
);
PRAGMA user_version = 1;
"""
_VERSION: Final = 1
_OTHERS: Final = 0o077
_LOCKED_S: Final = 10.0


class StoreRefused(Exception):
    """The file cannot be used; the message says why, and what would do."""


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key pair, as the 32 bytes of its secret half."""

    kid: str
    secret: bytes
    created_at: int
    retired_at: int | None = None


class Minted(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was handed out: what it says, never the token itself."""

    jti: str
    sub: str
    aud: str
    kid: str
    iat: int
    exp: int
    revoked_at: int | None = None


class Store:
    """The file, open. Use `create` and `opened`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def create(cls, path: Path, issuer: str) -> Self:
        """A new file for this issuer; one that is there already is left alone."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Made before SQLite sees it: there is no moment at which others could open it.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise StoreRefused(f"{path} is there already; `rotate` makes a new key in it") from None
        store = cls(_connect(path, "rw"))
        store._connection.executescript(_SCHEMA)
        with store._connection:
            store._connection.execute("INSERT INTO issuer VALUES (?)", (issuer,))
        return store

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """The file of an issuer, checked to be one and to be its owner's alone."""
        if not path.is_file():
            raise StoreRefused(f"{path} is not there; `cortex-auth-ref init` makes it")
        if path.stat().st_mode & _OTHERS:
            raise StoreRefused(f"{path} holds private keys and others may read it: chmod 600")
        connection = _connect(path, "ro" if read_only else "rw")
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            connection.close()
            raise StoreRefused(f"{path}: {error}") from error
        if version != _VERSION:
            connection.close()
            raise StoreRefused(f"{path} is not the file of an issuer of this version")
        return cls(connection)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    # ── what it knows ────────────────────────────────────────────────────────────────────────

    def now_s(self) -> int:
        """The time, in Unix seconds."""
        found: int = self._one("SELECT CAST(strftime('%s', 'now') AS INTEGER)")[0]
        return found

    def issuer(self) -> str:
        """The iss of every token minted here."""
        name: str = self._one("SELECT name FROM issuer")[0]
        return name

    def list_keys(self) -> list[SigningKey]:
        """Every key, the one that signs first."""
        order = "retired_at IS NOT NULL, retired_at DESC, rowid DESC"
        rows = self._connection.execute(f"SELECT * FROM keys ORDER BY {order}")  # noqa: S608
        return [msgspec.convert(dict(row), SigningKey) for row in rows]

    def list_tokens(self, *, expired: bool = False) -> list[Minted]:
        """The tokens minted, newest first; those that have expired only if asked."""
        since = 0 if expired else self.now_s()
        rows = self._connection.execute(
            "SELECT * FROM tokens WHERE exp > ? ORDER BY iat DESC, rowid DESC", (since,)
        )
        return [msgspec.convert(dict(row), Minted) for row in rows]

    def _one(self, query: str) -> sqlite3.Row:
        row: sqlite3.Row = self._connection.execute(query).fetchone()
        return row

    # ── what changes it ──────────────────────────────────────────────────────────────────────

    def add_key(self, kid: str, secret: bytes, *, drop_old: bool = False) -> None:
        """A new key signs from here on; the old ones are kept for verification, or dropped."""
        with self._connection:
            if drop_old:
                self._connection.execute("DELETE FROM keys")
            now_s = self.now_s()
            self._connection.execute(
                "UPDATE keys SET retired_at = ? WHERE retired_at IS NULL", (now_s,)
            )
            self._connection.execute(
                "INSERT INTO keys (kid, secret, created_at) VALUES (?, ?, ?)", (kid, secret, now_s)
            )

    def record(self, token: Minted) -> None:
        """Remember a token, before anyone gets it."""
        row = (token.jti, token.sub, token.aud, token.kid, token.iat, token.exp)
        with self._connection:
            self._connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, NULL)", row)

    def revoke(self, jti: str) -> Minted | None:
        """Mark a token as revoked, once; None when none of this id was minted here."""
        with self._connection:
            self._connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE jti = ? AND revoked_at IS NULL",
                (self.now_s(), jti),
            )
        row = self._connection.execute("SELECT * FROM tokens WHERE jti = ?", (jti,)).fetchone()
        return None if row is None else msgspec.convert(dict(row), Minted)


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[Store]:
    """The store of an issuer for the length of a block."""
    store = Store.open(path, read_only=read_only)
    try:
        yield store
    finally:
        store.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_LOCKED_S
    )
    connection.row_factory = sqlite3.Row
    return connection
