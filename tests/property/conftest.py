"""What do property tests share?  The rig of the engine's unit tests, loaded by its path."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def rig() -> ModuleType:
    """Stores that fail on command, a clock by hand, an engine to kill and reopen."""
    name = "tests_rig"
    if name not in sys.modules:
        path = Path(__file__).parents[1] / "unit" / "engine" / "rig.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
