"""What do property tests share?  The rig of the engine's unit tests, loaded by its path."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def rig() -> ModuleType:
    """Stores that fail on command, a clock by hand, an engine to kill and reopen."""
    return _load("tests_rig", Path("engine") / "rig.py")


@pytest.fixture(scope="session")
def facts_world() -> ModuleType:
    """Logs of candidates made by hand, and what follows from them."""
    return _load("tests_world", Path("projectors") / "world.py")


def _load(name: str, path: Path) -> ModuleType:
    """A module of the unit tests, by its path under them."""
    if name not in sys.modules:
        place = Path(__file__).parents[1] / "unit" / path
        spec = importlib.util.spec_from_file_location(name, place)
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
        path = Path(__file__).parents[1] / "unit" / "projectors" / "hand.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
