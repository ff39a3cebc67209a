"""What may a projector say, and what may it look up?

A projector is a pure function of an entry and a view: it reads no clock, mints no id, calls no
model and imports no other projector. What follows from an entry is data: changes to tables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from schemas.entry import Entry, Experience


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """This row is now so. A derived record names itself and the events that support it."""

    table: str
    key: bytes
    value: msgspec.Struct
    record_id: str | None = None
    supports: tuple[str, ...] = ()


class Close(msgspec.Struct, frozen=True, kw_only=True):
    """This record is superseded: it stays, known until `recorded_to`."""

    table: str
    key: bytes
    recorded_to: datetime


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """This row is gone."""

    table: str
    key: bytes


Change = Put | Close | Drop


class View(Protocol):
    """What a projector may look up: one tenant's rows, as of the entry before."""

    def get(self, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""

    def scan(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""


class Base(Protocol):
    """The rows of every tenant, as they were before a batch."""

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""


@dataclass(frozen=True)
class Projector:
    """A named, versioned projection. A new version is built beside the old from the log.

    One that follows directives alone is not asked about experiences, which are nearly all entries.
    Others may say which of them concern them: what they say of any other follows from its scope
    alone, and where they said nothing of one they say nothing of the next.
    """

    name: str
    version: int
    tables: Mapping[str, type[msgspec.Struct]]
    project: Callable[[Entry, View], Iterable[Change]]
    reads_experiences: bool = True
    concerns: Callable[[Experience], bool] | None = None


@dataclass(frozen=True)
class Stage:
    """A step of derivation; its name is the name of the lifecycle event (001 §13)."""

    name: str
    projectors: tuple[Projector, ...]
