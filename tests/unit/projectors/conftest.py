"""What does a projector need to be asked?  Entries, and a view in memory."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from projectors.overlay import Overlay
from schemas.entry import KINDS, Body, Entry, Experience
from schemas.envelope import Context, Envelope, PlainText
from schemas.ids import format_id, uuid7

START = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)


class Rows:
    """The rows of every tenant, in a dictionary: the smallest base there is."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str, bytes], Any] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        """The row's value, or None."""
        return self.rows.get((tenant_no, table, key))

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        """Rows whose key starts with the prefix, in key order."""
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.rows[place]


@pytest.fixture
def base() -> Rows:
    """No rows yet."""
    return Rows()


@pytest.fixture
def overlay(base: Rows) -> Overlay:
    """Nothing pending on top of no rows."""
    return Overlay(base)


def _entry(offset: int, body: Body | None, **changes: Any) -> Entry:
    raw = uuid7(1_778_600_000_000_000 + offset, offset)
    fields: dict[str, Any] = {
        "offset": offset,
        "id": raw,
        "event_id": format_id("evt", raw),
        "tenant": "acme",
        "tenant_no": 1,
        "scope": "org:acme/user:alice",
        "scope_no": 4,
        "caller": "user:alice",
        "recorded_at": START + timedelta(microseconds=offset),
        "kind": KINDS[type(body)] if body is not None else 1,
        "body": body,
    }
    return Entry(**fields | changes)


@pytest.fixture
def entry() -> Callable[..., Entry]:
    """Entries by offset; all about them follows from it, unless it is said."""
    return _entry


@pytest.fixture
def said() -> Callable[..., Entry]:
    """Experiences by offset and text."""

    def make(offset: int, text: str = "hello", **changes: Any) -> Entry:
        envelope = Envelope(
            scope=changes.get("scope", "org:acme/user:alice"),
            modality="conversation",
            content=PlainText(text=text),
            context=Context(observed_at=START),
            idempotency_key=f"k{offset}",
        )
        return _entry(offset, Experience(envelope=envelope), **changes)

    return make


@pytest.fixture
def world(module: ModuleType) -> Any:
    """A log of candidates made by hand, and what follows from it."""
    return module.World()


@pytest.fixture(name="module")
def world_module() -> ModuleType:
    """What makes candidates, days and worlds."""
    return load_world()


def load_world() -> ModuleType:
    """The module beside this one: test folders are no packages, so it is loaded by its path."""
    name = "tests_world"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("world.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def hand() -> ModuleType:
    """Facts put into the view by hand, for the layers above them."""
    name = "tests_hand"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("hand.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
