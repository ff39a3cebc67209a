"""What do the tests of surfaces share?  A server of many tenants, and recorded scenarios."""

import importlib.util
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
_AT_ONCE = 12


@pytest.fixture(scope="session")
def replay() -> ModuleType:
    """How scenarios are played and compared, from `tests/golden/replay.py`."""
    name = "tests_golden_replay"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, GOLDEN / "replay.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@dataclass(frozen=True)
class Tenants:
    """Tenants of one server, each with the same principals and bearer strings of its own."""

    principals: dict[str, list[str]]

    @staticmethod
    def tenant_of(scenario: str) -> str:
        """The tenant of a scenario, by its number."""
        return f"t{scenario.partition('-')[0]}"

    def tokens(self, tenant: str) -> dict[str, str]:
        """What a scenario calls `token:alice`; nobody has that of `unknown`."""
        return {f"token:{name}": f"{tenant}.{name}" for name in (*self.principals, "unknown")}

    def write(self, path: Path, tenants: list[str]) -> Path:
        """The file for `strata serve --principals`."""
        rows = [
            {"token": f"{tenant}.{name}", "name": name, "tenant": tenant, "scopes": scopes}
            for tenant in tenants
            for name, scopes in self.principals.items()
        ]
        path.write_text(json.dumps(rows), encoding="utf-8")
        return path


@pytest.fixture(scope="session")
def tenants() -> Callable[[dict[str, list[str]]], Tenants]:
    """Tenants whose principals are these: name to the scopes it has."""
    return Tenants


@pytest.fixture(scope="session")
def play_all(replay: ModuleType) -> Callable[..., dict[str, Any]]:
    """Play scenarios side by side, each in a tenant of its own; the differences of each."""

    def play(url: str, system: str, names: list[str], made: Tenants) -> dict[str, Any]:
        def one(name: str) -> list[Any]:
            scenario = replay.load(system, name)
            differences: list[Any] = replay.check(
                scenario, replay.play(url, scenario, made.tokens(made.tenant_of(name)))
            )
            return differences

        # Most of the time of a scenario is spent waiting for a second to pass.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(names, pool.map(one, names), strict=True))

    return play


@pytest.fixture(scope="session")
def scenarios(replay: ModuleType) -> Callable[[str], list[str]]:
    """The names of a system's scenarios."""
    names: Callable[[str], list[str]] = replay.names
    return names
