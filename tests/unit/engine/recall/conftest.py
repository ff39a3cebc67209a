"""How do tests of recall get a world to search?  From `world.py`, loaded by its path."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from engine.recall import columns
from engine.recall.native import Native


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """Turns as documents in real indexes."""
    name = "tests_recall_world"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("world.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(params=["numpy", "compiled"])
def arithmetic(request, world) -> Iterator[str]:
    """Both ways to choose and rank, one after the other."""
    if request.param == "compiled":
        world.ARITHMETIC = Native(request.getfixturevalue("kernel"))
    yield request.param
    world.ARITHMETIC = columns
