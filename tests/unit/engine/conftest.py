"""How do tests of the engine run?  On an event loop of their own, with the tools of `rig.py`.

And what is C: tests import plain Python, so it is built for them.
"""

import asyncio
import importlib.util
import inspect
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load(path: Path) -> ModuleType:
    """A module beside the tests: test folders are no packages, so it is loaded by its path."""
    name = f"tests_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory) -> Callable[[str], ModuleType]:
    """Modules that are C, by their names."""
    compiling = _loaded("scripts_compiling", ROOT / "scripts" / "compiling.py")
    if shutil.which(compiling._compiler()[0]) is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("kernels")
    compiling.kernels_into(folder)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return lambda name: _loaded(name, folder / f"{name.replace('.', '/')}{suffix}")


@pytest.fixture(scope="session")
def kernel(compiled) -> ModuleType:
    """The arithmetic of recall, compiled."""
    return compiled("engine.recall.kernel")


@pytest.fixture(scope="session")
def rig() -> ModuleType:
    """Stores that fail on command, a clock by hand, an engine to kill and reopen."""
    return _load(Path(__file__).with_name("rig.py"))


@pytest.fixture(scope="session")
def llm() -> ModuleType:
    """What to say as a language model's endpoint, well or badly."""
    return _load(Path(__file__).with_name("llm.py"))


@pytest.fixture(scope="session")
def _served(llm: ModuleType) -> Iterator[object]:
    with llm.running() as served:
        yield served


@pytest.fixture
def endpoint(_served: Any) -> Any:
    """A server that speaks like a language model's; it answers well unless told otherwise."""
    _served.reset()
    return _served


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
