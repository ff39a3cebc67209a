"""How do tests of recall get a world to search?  From `world.py`, loaded by its path.

And the compiled arithmetic: tests import plain Python, so it is built for them.
"""

import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from engine.recall import columns
from engine.recall.native import Native

ROOT = Path(__file__).resolve().parents[4]


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def kernel(tmp_path_factory) -> ModuleType:
    """The arithmetic of recall, compiled."""
    compiling = loaded("scripts_compiling", ROOT / "scripts" / "compiling.py")
    if shutil.which(compiling._compiler()[0]) is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("kernel")
    compiling.kernels_into(folder)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return loaded("engine.recall.kernel", folder / f"engine/recall/kernel{suffix}")


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
