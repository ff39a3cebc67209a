"""What do the fault tests share?  Their figures, how many rounds they run, and their seed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.power import COMPILERS, compile_shim

_FIGURES: pytest.StashKey[list[str]] = pytest.StashKey()

Figures = Callable[..., None]
Rounds = Callable[[int], int]


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Says what a test saw: `figures(rounds=20, lost=0)`; all of them stand at the end of a run."""
    lines = request.config.stash.setdefault(_FIGURES, [])

    def say(**found: object) -> None:
        name = request.node.name.removeprefix("test_")
        line = f"{name}: " + ", ".join(f"{what}={value}" for what, value in found.items())
        print(line)
        lines.append(line)

    return say


@pytest.fixture
def rounds() -> Rounds:
    """How often to repeat: the number given, or STRATA_FAULT_ROUNDS, which scripts/faults sets."""
    return lambda default: int(os.environ.get("STRATA_FAULT_ROUNDS", default))


@pytest.fixture
def seed() -> int:
    """Where chance begins: STRATA_FAULT_SEED, or always the same place."""
    return int(os.environ.get("STRATA_FAULT_SEED", "20260102"))


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that watches and breaks the disk, built here and now."""
    built = compile_shim(tmp_path_factory.mktemp("shim"))
    if built is None:
        pytest.skip(f"no C compiler to build tests/faults/disk.c with: {', '.join(COMPILERS)}")
    return built


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print every figure, also those of tests that passed."""
    lines = config.stash.get(_FIGURES, [])
    if lines:
        terminalreporter.section("fault figures")
        for line in sorted(lines):
            terminalreporter.write_line(line)
