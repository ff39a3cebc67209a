"""What do the fault tests share?  Their chance, how often they repeat, and what they saw."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.faults.power import COMPILERS, compile_shim

_FIGURES: pytest.StashKey[list[str]] = pytest.StashKey()


class Trial:
    """One test's luck and its record."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self._name = name
        self._lines = lines
        self.seed = int(os.environ.get("STRATA_FAULT_SEED", "20260102"))

    def random(self) -> Random:
        """Chance that is the same in every run, unless STRATA_FAULT_SEED says otherwise."""
        return Random(f"{self.seed} {self._name}")

    @staticmethod
    def count(default: int) -> int:
        """How often to repeat: this often, or STRATA_FAULT_ROUNDS, which scripts/faults sets."""
        return int(os.environ.get("STRATA_FAULT_ROUNDS", default))

    def say(self, **found: object) -> None:
        """Print what the test saw; the figures of all tests stand at the end of a run, too."""
        line = f"{self._name}: " + ", ".join(f"{what}={value}" for what, value in found.items())
        print(line)
        self._lines.append(line)


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """Chance, rounds and figures of this test."""
    lines = request.config.stash.setdefault(_FIGURES, [])
    return Trial(request.node.name.removeprefix("test_"), lines)


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
